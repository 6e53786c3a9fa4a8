"""A transformers model of any type, small enough to train on a CPU: its default configuration, made small.

How small goes is found by trying: all widths divided by the same number, which keeps what has to be equal or a multiple
of something else, or written over by one small value for each kind of size, or only fewer layers. The first that runs
forward on the host with one of the inputs of `small_inputs` is taken.
"""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import small_inputs
from input_makers import Variant

_MOST_PARAMETERS = 400_000_000
_VOCABULARY = 512
_LAYERS = re.compile(r"^(n_layers?|layers|depth|.*_layers|num_(hidden|text|vision)?_?blocks)$")
#: Counts of layers that are tied to lists of sizes, or are no depth.
_OTHER_LAYERS = re.compile(r"feat_extract|residual|lstm|adapter|nextn|mtp|conv_|window_layers|feature_layer|predict")
_DEPTHS = re.compile(r"^(depths|encoder_depths|decoder_depths|num_blocks|layer_depths|block_repeats)$")
_WIDTHS = re.compile(
    r"hidden_(size|dim)|hidden_channels|_channels$|intermediate|ffn|_dim$|^dim$|d_model|d_ff$|d_kv$|d_inner|embd"
    r"|embed_(dim|size)|embedding_size|_rank$|d_head|head_dim|_width$|^dff$|mlp_dim|_embed_dim|linear_units|embed_dims|_groups$"
)
_NO_WIDTHS = re.compile(r"^(num|in|max|input|audio|image|latent)_|in_channels|hash|codebook|kernel|query_dim|^scale")
_EXPERTS = re.compile(r"num_(local_)?experts$|n_routed_experts|moe_num_experts|num_routed_experts")
_CHOSEN = re.compile(r"experts_per_tok|moe_top_?k|^moe_k$|top_k_experts|num_selected_experts")
_GROUPS = re.compile(r"^(n_group|topk_group|num_expert_group|n_expert_groups?)$")
_LAYERS_NAMED = re.compile(r"(out_indices|_indexes|_indices|layer_idxs?|layer_ids|_layers)$")
_TYPES = ("layer_types", "layers_block_type", "mlp_layer_types", "block_types")
#: Widths that nothing else has to be equal to: any multiple of what kernels want will do.
_FREE_WIDTHS = re.compile(r"intermediate|ffn|d_ff$|mlp_dim")
_LACKS = re.compile(r"'(\w+)' object has no attribute '(\w+)'")
_TOKEN = re.compile(r"_token_(id|index)$|^(bos|eos|pad|sep|cls|mask|image|video|audio)_index$")


#: Sizes that a default configuration leaves open.
_MISSING = {
    "num_experts_per_tok": 2,
    "num_local_experts": 4,
    "num_experts": 4,
    "top_k_experts": 2,
    "moe_intermediate_size": 64,
    "attn_layer_indices": [1],
    "vocab_size": 64,
    "pad_token_id": 0,
    "prediction_length": 4,
    "context_length": 8,
}


@dataclass(frozen=True, slots=True)
class Sizes:
    """How a configuration is made small."""

    divisor: int = 1
    layers: int = 2
    is_image_small: bool = True
    is_vocabulary_small: bool = True
    are_experts_few: bool = True


_ATTEMPTS = (
    Sizes(8),
    Sizes(4),
    Sizes(2),
    Sizes(),
    Sizes(is_image_small=False),
    Sizes(is_image_small=False, is_vocabulary_small=False, are_experts_few=False),
    Sizes(is_image_small=False, layers=4, is_vocabulary_small=False),
    Sizes(is_image_small=False, layers=0, is_vocabulary_small=False, are_experts_few=False),
)


def small(kind: str) -> tuple[Any, dict[str, Any]]:
    """The model of a type as `AutoModel` names it, and inputs with which it runs. Raises what the first attempt met."""
    import torch

    torch.set_num_threads(1)
    built = _Built(kind)
    met: list[Exception] = []
    failed: Counter[tuple[Variant, str]] = Counter()
    for is_rich in (True, False):
        for sizes in _ATTEMPTS:
            try:
                model = built.model(sizes)
            except Exception as error:  # noqa: BLE001 - another size may do
                met.append(error)
                continue
            for variant in small_inputs.VARIANTS:
                if variant.is_rich != is_rich or any(n > 1 for (one, _), n in failed.items() if one == variant):
                    continue
                try:
                    inputs = small_inputs.that_run(model, variant)
                    return built.fresh(sizes), inputs
                except Exception as error:  # noqa: BLE001 - another input may do
                    met.append(error)
                    failed[variant, str(error)] += 1
    raise met[0]


class _Built:
    """Models of one type, each made once."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.made: dict[Sizes, Any] = {}

    def model(self, sizes: Sizes) -> Any:
        if sizes not in self.made:
            try:
                self.made[sizes] = self._make(sizes)
            except Exception as error:  # noqa: BLE001 - raised at each asking
                self.made[sizes] = error
        found = self.made[sizes]
        if isinstance(found, Exception):
            raise found
        return found

    def fresh(self, sizes: Sizes) -> Any:
        """One that has not run: what a first forward keeps lies where that forward ran."""
        return self._make(sizes)

    def _make(self, sizes: Sizes) -> Any:
        import torch
        from transformers import AutoModel
        from transformers.models.auto.configuration_auto import CONFIG_MAPPING

        torch.manual_seed(0)
        configuration = CONFIG_MAPPING[self.kind]()
        shrink(configuration, sizes)
        for _ in range(8):
            try:
                _too_large(configuration)
                return AutoModel.from_config(configuration).train()
            except AttributeError as error:
                if not _complete(configuration, str(error)):
                    raise
        raise ValueError("the configuration lacks too much")


def _complete(configuration: Any, message: str) -> bool:
    """Whether a configuration that lacks an attribute can be given that of another one in it."""
    lacks = _LACKS.search(message)
    if lacks is None:
        return False
    all_of_it = list(_nested(configuration))
    value = next((vars(one)[lacks[2]] for one in all_of_it if vars(one).get(lacks[2]) is not None), None)
    for one in all_of_it:
        if type(one).__name__ == lacks[1] and value is not None:
            setattr(one, lacks[2], value)
            return True
    return False


def _nested(configuration: Any) -> Iterator[Any]:
    """A configuration and all in it, each once, the innermost first."""
    from transformers import PretrainedConfig

    seen: set[int] = set()

    def walk(one: Any) -> Iterator[Any]:
        if id(one) in seen:
            return
        seen.add(id(one))
        for value in list(vars(one).values()):
            if isinstance(value, PretrainedConfig):
                yield from walk(value)
        yield one

    yield from walk(configuration)


def shrink(configuration: Any, sizes: Sizes) -> None:
    """Write small values over the sizes of a configuration and of those in it."""
    for one in _nested(configuration):
        layers = _layers_of(one, sizes)
        if sizes.is_image_small:
            _shrink_image(one)
        for name, value in list(vars(one).items()):
            if _is_other_name(name, one):
                continue
            small_value = _small(name, value, sizes, layers)
            if small_value is not value and small_value != value:
                setattr(one, name, small_value)
    if sizes.layers:
        _tie(configuration)


def _tie(configuration: Any) -> None:
    """What two configurations have to agree on, and what has no default."""
    text = getattr(configuration, "text_config", None)
    width = getattr(text, "hidden_size", None)
    vision = getattr(configuration, "vision_config", None)
    if width is not None and vision is not None:
        if "out_hidden_size" in vars(vision):
            vision.out_hidden_size = width
        elif {"embed_dim", "hidden_size"} <= set(vars(vision)):
            vision.hidden_size = width
    for one in _nested(configuration):
        for name, value in _MISSING.items():
            if name in vars(one) and getattr(one, name) is None:
                setattr(one, name, value)
        _tie_heads(one)
        _tie_types(one)
        for name in [name for name, value in vars(one).items() if value is None and _TOKEN.search(name)]:
            if name.startswith(("image", "video", "audio")):
                setattr(one, name, _token(name, _VOCABULARY))
        if "mrope_section" in getattr(one, "ignore_keys_at_rope_validation", ()):
            _tie_rotation(one)


def _tie_heads(one: Any) -> None:
    """Heads divide the width, those of keys the heads, and what is left open follows from both."""
    width, heads = getattr(one, "hidden_size", None), getattr(one, "num_attention_heads", None)
    if not isinstance(width, int) or not isinstance(heads, int) or not heads:
        return
    values = vars(one)
    if not values.get("head_dim") and width % heads and "num_attention_heads" in values:
        one.num_attention_heads = heads = math.gcd(width, 8)
    keys = values.get("num_key_value_heads", 0)
    if keys is None or (keys and heads % keys):
        one.num_key_value_heads = heads if keys is None else math.gcd(heads, keys)
    if "head_dim" in values and values["head_dim"] is None:
        one.head_dim = width // heads


def _tie_types(one: Any) -> None:
    """One layer of full attention, where all others keep a state: what a cache counts by."""
    for name in _TYPES:
        types = vars(one).get(name)
        if isinstance(types, list) and types and set(types) <= {"linear_attention", "mamba"}:
            setattr(one, name, [*types[:-1], "full_attention" if types[0] == "linear_attention" else "attention"])


def _tie_rotation(one: Any) -> None:
    """The parts of a head that are turned by time, row and column add up to its pairs."""
    heads, rope = getattr(one, "num_attention_heads", None), getattr(one, "rope_parameters", None)
    if not isinstance(heads, int) or not isinstance(rope, dict):
        return
    head = getattr(one, "head_dim", None) or one.hidden_size // heads
    pairs = int(head * rope.get("partial_rotary_factor", 1.0)) // 2
    third = 3 * pairs // 8
    one.rope_parameters = {**rope, "mrope_section": [pairs - 2 * third, third, third]}


def _shrink_image(one: Any) -> None:
    """Eight or four patches a side, where patches are large and the side is one number."""
    side, patch = getattr(one, "image_size", None), getattr(one, "patch_size", None)
    if isinstance(side, int) and isinstance(patch, int) and patch >= 8 and side % patch == 0:
        one.image_size = min(side, 8 * patch if side >= 8 * patch else 4 * patch)


def _layers_of(one: Any, sizes: Sizes) -> int:
    """How many layers this configuration needs: one of each type, and as many as a list of layers names."""
    if not sizes.layers:
        return 10**6
    values = vars(one)
    needed = [sizes.layers, *(len(_one_of_each(values.get(name) or ())) for name in _TYPES)]
    offset = values.get("attn_layer_offset")
    if isinstance(offset, int):
        needed.append(offset + 1)
    for name, value in values.items():
        if _is_other_name(name, one):
            continue
        if _LAYERS_NAMED.search(name) and _are_numbers(value) and not _DEPTHS.match(name):
            needed.append(min(len(value), 4))
    return max(needed)


def _is_other_name(name: str, one: Any) -> bool:
    """Whether this says by numbers which stages are given out, which stand there by their names too."""
    return name.endswith("out_indices") and hasattr(one, "out_features")


def _one_of_each(types: Any) -> list[Any]:
    return [one for at, one in enumerate(types) if one not in types[:at]]


def _are_numbers(value: Any) -> bool:
    return (
        isinstance(value, (list, tuple))
        and bool(value)
        and all(isinstance(one, int) and not isinstance(one, bool) for one in value)
    )


def _small(name: str, value: Any, sizes: Sizes, layers: int) -> Any:
    if isinstance(value, dict):
        return {key: _small(str(key), one, sizes, layers) for key, one in value.items()}
    if name in _TYPES and isinstance(value, list):
        kept = _one_of_each(value)
        return value if len(value) <= layers else [*kept, *value][:layers] if len(kept) <= layers else value[:layers]
    if _are_numbers(value):
        return type(value)(_small_list(name, value, sizes, layers))
    if isinstance(value, bool) or not isinstance(value, int):
        return value
    if _TOKEN.search(name):
        return _token(name, value) if sizes.is_vocabulary_small else value
    if _LAYERS.match(name):
        return value if _OTHER_LAYERS.search(name) else min(value, layers)
    return _small_count(name, value, sizes, layers)


def _small_count(name: str, value: int, sizes: Sizes, layers: int) -> int:
    if "vocab" in name and value > _VOCABULARY:
        return _VOCABULARY if sizes.is_vocabulary_small else value
    if name in {"first_k_dense_replace", "num_dense_layers", "num_kv_shared_layers"} and layers < 10**6:
        return min(value, 1 if name != "num_kv_shared_layers" else 0)
    if name == "insert_layer_id":
        return min(value, layers - 1)
    if sizes.are_experts_few:
        if _EXPERTS.search(name):
            return min(value, 4)
        if _CHOSEN.search(name):
            return min(value, 2)
        if _GROUPS.match(name):
            return min(value, 1)
    if name == "mm_tokens_per_image" and sizes.is_image_small:
        return min(value, 16)
    if name in {"num_queries", "num_object_queries"}:
        return min(value, 20)
    if name in {"max_position_embeddings", "n_positions"} and value > 2048 and sizes.is_vocabulary_small:
        return 2048
    return _narrow(name, value, sizes)


def _narrow(name: str, value: int, sizes: Sizes) -> int:
    if _FREE_WIDTHS.search(name) and not _NO_WIDTHS.search(name) and value >= 32 and value % (8 * sizes.divisor):
        return -(-value // (8 * sizes.divisor)) * 8
    is_width = _WIDTHS.search(name) and not _NO_WIDTHS.search(name)
    return value // sizes.divisor if is_width and value >= 32 and value % sizes.divisor == 0 else value


def _small_list(name: str, value: Any, sizes: Sizes, layers: int) -> list[int]:
    if name == "mrope_section" and all(one % sizes.divisor == 0 for one in value):
        return [one // sizes.divisor for one in value]
    if _DEPTHS.match(name):
        return [min(one, 2) for one in value] if sizes.layers else list(value)
    if _LAYERS_NAMED.search(name) and max(value) >= layers:
        return list(range(max(0, layers - len(value)), layers))
    if re.search(r"(hidden_sizes|embed_dims?|channels|dims)$", name) and not _NO_WIDTHS.search(name):
        if all(one % sizes.divisor == 0 and one // sizes.divisor >= 4 for one in value):
            return [one // sizes.divisor for one in value]
    return list(value)


#: What tokens are called so far: a token has one number in all configurations.
_NUMBERS: dict[str, int] = {"pad": 0, "bos": 1, "eos": 2}


def _token(name: str, value: int) -> int:
    """A number below the small vocabulary for a token that lies beyond it."""
    if value < _VOCABULARY:
        return value
    key = _TOKEN.sub("", name)
    return _NUMBERS.setdefault(key, 400 + len(_NUMBERS))


def _too_large(configuration: Any) -> None:
    """Raises ValueError for a model of too many parameters, counted without memory."""
    import torch
    from transformers import AutoModel

    try:
        with torch.device("meta"):
            model = AutoModel.from_config(configuration)
    except (NotImplementedError, RuntimeError) as error:  # it reads a value, which nothing without memory has
        print(f"not counted: {error}"[:200], file=sys.stderr)
        return
    if (count := sum(one.numel() for one in model.parameters())) > _MOST_PARAMETERS:
        raise ValueError(f"{count:,} parameters")
