"""Attention: what computes it in one kernel, and the names by which programs choose between ways to compute it."""

from __future__ import annotations

from perflint.pytorch.names import words

#: Fused attention, of torch and of other libraries: code that names one, or a switch for it, has a fast way already.
FUSED = words(
    "scaled_dot_product_attention sdpa_kernel flex_attention flash_attn flash_attn_func flash_attn_varlen_func "
    "flash_attn_qkvpacked_func flash_attn_varlen_qkvpacked_func flash_attn_unpadded_func flash_attention "
    "memory_efficient_attention xformers xops FlashAttention FlashAttention2 FlashSelfAttention FlashCrossAttention "
    "sageattn sdpa _flash_attention_forward flash_attn_interface efficient_attention use_fused_attn fused_attn "
    "_attn_implementation use_sdpa use_flash use_flash_attn use_flash_attention enable_flash"
)
#: Tables from which a program picks a way to compute attention: the written-out one is an entry.
DISPATCHERS = words("ALL_ATTENTION_FUNCTIONS AttentionInterface ATTENTION_CLASSES eager_attention_forward")
#: What names of values that scale attention scores are called.
SCALES = words(
    "scale scaling scaling_factor softmax_scale sm_scale attn_scale attention_scale norm_factor inv_norm_factor "
    "inv_sqrt_d qk_scale scale_factor inv_scale head_scale"
)
#: Functions that multiply matrices.
PRODUCTS = words("torch.matmul torch.bmm torch.mm")
#: Their methods.
PRODUCT_METHODS = words("matmul bmm mm")
