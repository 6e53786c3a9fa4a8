"""Mixed precision: what switches it on, what goes with it, and the names by which programs speak of it."""

from __future__ import annotations

from perflint.pytorch.names import words

#: Contexts and decorators that run operations in a narrower type.
AUTOCASTS = words("torch.autocast torch.cuda.amp.autocast torch.amp.autocast torch.cpu.amp.autocast")
#: What scales losses so that the gradients of float16 do not vanish, by last name.
SCALERS = words("GradScaler ShardedGradScaler NativeScaler")
#: The range of float32: nothing has to be scaled.
WIDE_RANGE = words("bfloat16 bf16")
#: Names and words by which a program chooses a type.
CHOICES = words("fp16 float16 half bf16 bfloat16 precision dtype")
