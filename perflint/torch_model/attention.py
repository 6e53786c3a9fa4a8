"""Attention: what computes it in one kernel, and the names by which programs choose between ways to compute it."""

from __future__ import annotations

from perflint.torch_model.names import words

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
#: The one that adds a matrix to the product, which it may scale.
BATCHED_SUM = "torch.baddbmm"
#: Their methods.
PRODUCT_METHODS = words("matmul bmm mm")

#: What reads a model's attention weights, which only the written-out way computes.
READERS = words(
    "output_attentions return_attentions attentions cross_attentions encoder_attentions decoder_attentions "
    "output_attention return_attention attention_weights attn_weights head_view model_view bertviz captum nnsight "
    "HookedTransformer TransformerBridge"
)
#: What looks into or replaces a model's attention, exports it, or differentiates it in a way that fused kernels lack.
TAKES_APART = words(
    "register_forward_hook register_forward_pre_hook register_full_backward_hook onnx openvino coremltools tensorrt "
    "hessian jvp jacfwd hvp vhp create_graph use_deterministic_algorithms set_deterministic forward_ad "
    "eager_attention_forward AttentionInterface ALL_ATTENTION_FUNCTIONS"
)
#: Parts of model names of transformers whose attention has no fused way there, or is capped in one it must not take.
WRITTEN_OUT_ONLY = words(
    "gemma deberta longformer big_bird bigbird bigbirdpegasus led longt5 funnel xlnet flaubert reformer roformer mpnet "
    "megatron_bert prophetnet bloom codegen gptj gpt_oss gpt-oss convbert canine tapas layoutlmv2 layoutlmv3 lilt "
    "luke lxmert rembert splinter squeezebert yoso nystromformer mra xglm switch_transformers wavlm speecht5 perceiver "
    "mpt switch-transformers vilt visual_bert flava florence"
)
