"""Mixed precision: what switches it on, what goes with it, and the names by which programs speak of it."""

from __future__ import annotations

from perflint.torch_model.names import words

#: Contexts and decorators that run operations in a narrower type.
AUTOCASTS = words("torch.autocast torch.cuda.amp.autocast torch.amp.autocast torch.cpu.amp.autocast")
#: What scales losses so that the gradients of float16 do not vanish, by last name.
SCALERS = words("GradScaler ShardedGradScaler NativeScaler")
#: Names and words by which a program chooses a type.
CHOICES = words("fp16 float16 half bf16 bfloat16 precision dtype")

#: Parts of identifiers by which a program speaks of a narrower type, or hands the choice to a framework.
NARROWER = words(
    "autocast bf16 fp16 bfloat16 float16 gradscaler mixed_precision torch_dtype fp8 float8 amp_dtype use_amp apex "
    "half_precision mixedprecision set_default_dtype ptdtype quantiz bitsandbytes"
)
#: Whole identifiers that do so.
NARROWER_NAMES = words(
    "amp half precision Accelerator Fabric deepspeed accelerate Trainer SFTTrainer DeepSpeedEngine model_dtype "
    "param_dtype train_dtype weight_dtype"
)
#: What code names that needs all digits.
NEEDS_DIGITS = words("double complex64 complex128 gradcheck")
#: What a program names that means to run on an accelerator.
ACCELERATORS = words("cuda device local_rank xpu accelerator get_device")
#: What raises the speed of float32 products on tensor cores.
TENSOR_CORES = words("set_float32_matmul_precision allow_tf32 fp32_precision tf32 enable_tf32 use_tf32 float32_matmul")
#: Policies by which whole models are made narrower.
POLICIES = words("MixedPrecision MixedPrecisionPolicy")
#: What programs name whose models lie on the host, for all processes or on a server of parameters.
ON_THE_HOST = words("share_memory share_memory_ RemoteModule")
#: Products that nets of convolutions have too, at their end and beside them.
HEADS = words("Linear LazyLinear Bilinear mm addmm matmul bmm einsum baddbmm")
#: What else multiplies matrices, as a class or a function; nets without it are of convolutions, which use tensor cores.
PRODUCTS = words(
    "LSTM GRU RNN MultiheadAttention Transformer TransformerEncoder TransformerEncoderLayer "
    "scaled_dot_product_attention from_pretrained from_config Embedding "
    "create_model create_model_and_transforms"
)
