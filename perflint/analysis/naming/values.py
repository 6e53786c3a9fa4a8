"""What names say of values: counts and settings, what is on the host, masks, and types that annotations name."""

from __future__ import annotations

import re

from perflint.system.patterns import pattern

#: Names of what is on the host as a rule: arrays, lengths (which packing wants there), what tokenizers give.
ON_HOST = pattern(
    r"^(np|numpy|pd|math|jnp|random|counts?|meta(data)?)$|len(gth)?s?(_|$)|tokeniz|processor|numpy|_np|cpu|host",
    re.IGNORECASE,
)
#: Names of the steps that an optimizer counts: a number, or a tensor that torch's optimizers keep on the host, too.
OPTIMIZER_STEPS = pattern(r"(^|_)steps?(_t)?$")
MAPPING_OF_TENSORS = pattern(
    r"(?:^|\.)(?:[Dd]ict|OrderedDict|(?:Mutable)?Mapping)\[\s*str\s*,\s*(?:torch\.)?Tensor\s*\]$"
)
TENSOR_TYPE = pattern(r"^(?:torch\.)?Tensor$")
MASK = pattern(r"(?:^|_)(?:mask|masks|valid)$")
HOLDS_LENGTHS = pattern(r"len(?:gth)?s?(?:_|$)|counts?$|cpu|host")
IS_COUNT = pattern(r"^(?:n|bs|n_\w+|num_\w+|\w*batch_?size|\w*seed|\w+_(?:count|number))$", re.IGNORECASE)
COUNT = pattern(r"^(?:n|num|nb|count|len|number_of|total)_|_(?:count|len|num)$|^(?:n|count|total|len|numel|size)$")
#: Names of objects that hold settings.
SETTINGS = pattern(
    r"^_?(?:\w+_)?(?:args?|config|cfg|conf|hparams?|hps|opts?|settings|options|flags|hyp)$", re.IGNORECASE
)
PIXELS = pattern(
    r"(?:^|_)(?:im|imgs?|images?|frames?|pixels?|pixel_values|masks?|videos?|clips?)(?:_|\d*$)", re.IGNORECASE
)
#: One flag for each place of a text or series: a few kilobytes.
PADDING_MASK = pattern(r"(?:^|_)(?:pad|padding|attn|attention|length|sequence|token)_masks?$")
#: Functions that leave out boxes beside better ones.
SUPPRESSES = pattern(r"(?:^|_)nms(?:_|\d|$)|non_?max(?:imum)?_?suppression", re.IGNORECASE)
KEY = pattern(r"^(?:k|key|name|kind)$")
#: What a loop over a state dict, or over named parameters, calls its turns.
NAME_OF_PART = pattern(r"^(?:k|n)\d*$|key|name|param|weight|module|layer", re.IGNORECASE)
#: Annotations of whole numbers, one or some of them.
WHOLE_NUMBERS = pattern(
    r"(?=.*\bint\b)(?:typing\.)?(?:(?:int|bool|None|list|List|tuple|Tuple|Sequence|Iterable|Optional|Union)\b|[\[\]|,.\s])+"
)
#: What holds a device without being a tensor: `args.device`, `self.accelerator.device`, `model.device`.
HAS_DEVICE = pattern(
    r"(?:^|[^a-z])(?:self|arg|cfg|conf|opt|param|accelerator|fabric|trainer|model|net|state|runner|engine)"
)
#: A format that shows a value by `str` or `repr`, which of a tensor names its graph.
BY_STR = pattern(r"%[^a-z%]*[sra]")
#: What holds or gives no single device tensor, by what `.cpu()` is called on.
HOLDS_SEVERAL = pattern(r"model|net$|module|encoder|decoder|state|results?$")
#: What is asked of a machine, in a test.
OF_MACHINE = pattern(r"cuda|gpu|device|cpu", re.IGNORECASE)
