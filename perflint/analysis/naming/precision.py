"""What names say of types and of ways to compute: narrow and wide numbers, attention that was chosen."""

from __future__ import annotations

import re

from perflint.system.patterns import pattern
from perflint.torch_model import attention, precision

#: Settings that choose a narrower type.
CHOICE_OF_TYPE = pattern(rf"(?:{'|'.join(sorted(precision.CHOICES))})", re.IGNORECASE)
#: Sixteen bits with the range of float32.
WIDE_RANGE = pattern(r"bf16|bfloat16", re.IGNORECASE)
#: Sixteen bits that need a scaler.
NARROW_RANGE = pattern(r"(?<!b)fp16|(?<!b)float16|(?<!b)16|half", re.IGNORECASE)
#: Arguments of a move that are no accelerator.
TYPE_OR_HOST = pattern(r"type|^d?t$|float|int|half|cpu|host", re.IGNORECASE)
#: What has fewer bits than a float32, as it is written.
NARROW_VALUES = pattern(r"uint8|int8|bool|float16|bfloat16|half|byte|ByteTensor|BoolTensor|read_image|pil_to_tensor")
#: Ways of attention of transformers that are fused.
FAST_ATTENTION = pattern(r"""["'](?:sdpa|flash_attention_[23]|flex_attention)["']""")
#: Names of models as they stand in identifiers such as "google/gemma-2-9b": `led` is one, `loaded` is none.
WRITTEN_OUT_MODELS = pattern(
    rf"^[\w.\-/]*(?<![A-Za-z])(?:{'|'.join(sorted(attention.WRITTEN_OUT_ONLY))})(?![a-z])[\w.\-/]*$", re.IGNORECASE
)
