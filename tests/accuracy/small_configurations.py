"""A transformers model of any type, small enough to train on a CPU: its configuration made small, and inputs for it.

The sizes are written over whatever the default configuration has, in nested configurations too. Where the model cannot
be made of them, larger and larger parts of the default are kept.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

#: Attributes of configurations by what they size, and the small value. A list gets as many small values as it has.
_SIZES: dict[str, int] = {
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "embed_dim", "dim", "emb_dim", "hidden_dim", "d_embed"), 64),
    **dict.fromkeys(("embedding_size", "projection_dim", "decoder_hidden_size", "text_embed_dim", "model_dim"), 64),
    **dict.fromkeys(("intermediate_size", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim", "d_ff", "n_inner"), 96),
    **dict.fromkeys(("moe_intermediate_size", "shared_expert_intermediate_size", "decoder_intermediate_size"), 32),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads"), 4),
    **dict.fromkeys(("decoder_attention_heads", "attention_heads", "decoder_num_attention_heads"), 4),
    **dict.fromkeys(("num_key_value_heads", "num_kv_heads", "n_kv_heads"), 2),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers"), 2),
    **dict.fromkeys(("num_encoder_layers", "num_decoder_layers", "decoder_num_hidden_layers", "depth"), 2),
    **dict.fromkeys(("vocab_size", "text_vocab_size"), 512),
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"), 4),
    **dict.fromkeys(("head_dim", "qk_nope_head_dim", "v_head_dim", "d_kv"), 16),
}
_TOKENS, _BATCH = 12, 2


def small_model(kind: str) -> Any:
    """The model of a type as `AutoModel` names it. Raises what the library raises when no size fits."""
    from transformers import AutoModel
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    first: Exception | None = None
    for names in _attempts():
        try:
            configuration = CONFIG_MAPPING[kind]()
            _shrink(configuration, names)
            _too_large(configuration)
            return AutoModel.from_config(configuration)
        except Exception as error:  # noqa: BLE001 - another size may do
            first = first or error
    assert first is not None
    raise first


def _attempts() -> Iterator[set[str]]:
    """Which sizes are written over: all, then only those that are seldom tied to others."""
    everything = set(_SIZES)
    yield everything
    yield everything - {"head_dim", "qk_nope_head_dim", "v_head_dim", "d_kv"}
    layers = {name for name in _SIZES if "layer" in name or name == "depth"}
    yield layers | {"vocab_size", "intermediate_size", "num_experts", "num_local_experts", "n_routed_experts"}
    yield layers
    yield {"num_hidden_layers"}
    yield set()


def _shrink(configuration: Any, names: set[str]) -> None:
    from transformers import PretrainedConfig

    for value in list(vars(configuration).values()):
        if isinstance(value, PretrainedConfig):
            _shrink(value, names)
    for name in names:
        mapped = getattr(configuration, "attribute_map", {}).get(name, name)
        value = vars(configuration).get(mapped)
        if isinstance(value, int) and not isinstance(value, bool) and value > _SIZES[name]:
            setattr(configuration, mapped, _SIZES[name])
    types = vars(configuration).get("layer_types")
    if types and "num_hidden_layers" in names:
        configuration.layer_types = types[: getattr(configuration, "num_hidden_layers", len(types))]
    for name, value in list(vars(configuration).items()):
        if name.endswith("_token_id") and isinstance(value, int) and value >= 512 and "vocab_size" in names:
            setattr(configuration, name, 1)


def _too_large(configuration: Any) -> None:
    """Raises ValueError for a model of more than 300 million parameters, counted without memory."""
    import torch
    from transformers import AutoModel

    with torch.device("meta"):
        model = AutoModel.from_config(configuration)
    if (count := sum(one.numel() for one in model.parameters())) > 300_000_000:
        raise ValueError(f"{count:,} parameters")


def small_inputs(model: Any) -> dict[str, Any]:
    """Inputs by the names that `forward` takes: all without a default, and of the others those that make it run."""
    makers = _Inputs(model)
    taken = inspect.signature(model.forward).parameters
    found: dict[str, Any] = {}
    for name, parameter in taken.items():
        maker = getattr(makers, name, None)
        is_needed = parameter.default is parameter.empty and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        if maker is not None and (is_needed or name in _WANTED):
            found[name] = maker()
    if "pixel_values" in found and "input_ids" in found:
        found["input_ids"] = makers.with_images(found["input_ids"])
    return found


#: What a model is given though it has a default, when its `forward` takes it.
_WANTED = frozenset(
    {
        "input_ids",
        "attention_mask",
        "pixel_values",
        "input_features",
        "input_values",
        "decoder_input_ids",
        "pixel_values_videos",
    }
)


class _Inputs:
    """Makes inputs, each by the name of its argument."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.configuration = model.config

    def _of(self, *names: str, default: Any = None) -> Any:
        """The first of these that the configuration or one nested in it has."""
        waiting, seen = [self.configuration], []
        while waiting:
            one = waiting.pop(0)
            seen.append(one)
            for name in names:
                value = getattr(one, name, None)
                if value is not None:
                    return value
            waiting += [value for value in vars(one).values() if hasattr(value, "attribute_map") and value not in seen]
        return default

    def input_ids(self) -> Any:
        import torch

        vocabulary = min(int(self._of("vocab_size", default=512)), 500)
        return torch.randint(min(5, vocabulary - 1), vocabulary, (_BATCH, _TOKENS))

    def decoder_input_ids(self) -> Any:
        return self.input_ids()

    def attention_mask(self) -> Any:
        import torch

        main = getattr(self.model, "main_input_name", "input_ids")
        if main in {"input_values", "input_features", "pixel_values"}:
            return None
        mask = torch.ones(_BATCH, _TOKENS, dtype=torch.long)
        mask[1, -3:] = 0
        return mask

    def _image(self) -> tuple[int, int, int]:
        size = self._of("image_size", "img_size", default=64)
        side = size if isinstance(size, int) else size[0] if isinstance(size, (list, tuple)) else 64
        return int(self._of("num_channels", "in_channels", "num_input_channels", default=3)), side, side

    def pixel_values(self) -> Any:
        import torch

        channels, height, width = self._image()
        frames = self._of("num_frames")
        main = type(self.configuration).__name__.lower()
        if frames is not None and any(word in main for word in ("video", "vivit", "timesformer", "vjepa")):
            return torch.rand(_BATCH, int(frames), channels, height, width)
        return torch.rand(_BATCH, channels, height, width)

    def pixel_values_videos(self) -> Any:
        import torch

        channels, height, width = self._image()
        if "VJEPA" in type(self.configuration).__name__:
            return torch.rand(_BATCH, int(self._of("frames_per_clip", default=4)), channels, height, width)
        return None

    def input_features(self) -> Any:
        import torch

        bins = int(self._of("num_mel_bins", "input_feat_per_channel", "feature_size", "input_dim", default=80))
        if self._of("max_source_positions") and "hisper" in type(self.configuration).__name__:
            return torch.rand(_BATCH, bins, 2 * int(self._of("max_source_positions")))
        return torch.rand(_BATCH, 64, bins)

    def input_values(self) -> Any:
        import torch

        bins = self._of("num_mel_bins")
        if bins is not None and self._of("max_length") and "AST" in type(self.configuration).__name__:
            return torch.rand(_BATCH, int(self._of("max_length")), int(bins))
        channels = self._of("audio_channels")
        if channels is not None:
            return torch.rand(_BATCH, int(channels), 3200)
        return torch.rand(_BATCH, 8000)

    def bbox(self) -> Any:
        import torch

        low = torch.randint(0, 500, (_BATCH, _TOKENS, 2))
        return torch.cat([low, low + 10], dim=-1)

    def past_values(self) -> Any:
        import torch

        length = int(self._of("context_length", default=16)) + max(self._of("lags_sequence", default=[0]))
        channels = int(self._of("num_input_channels", "input_size", default=1))
        shape = (_BATCH, length) if channels == 1 and self._of("lags_sequence") else (_BATCH, length, channels)
        return torch.rand(shape)

    def past_observed_mask(self) -> Any:
        import torch

        return torch.ones_like(self.past_values())

    def past_time_features(self) -> Any:
        import torch

        return torch.rand(_BATCH, self.past_values().shape[1], int(self._of("num_time_features", default=1)))

    def future_values(self) -> Any:
        import torch

        return torch.rand(_BATCH, int(self._of("prediction_length", default=4)))

    def future_time_features(self) -> Any:
        import torch

        length = int(self._of("prediction_length", default=4))
        return torch.rand(_BATCH, length, int(self._of("num_time_features", default=1)))

    def audio_values(self) -> Any:
        return self.input_values()

    def noise(self) -> Any:
        return None

    def with_images(self, ids: Any) -> Any:
        """Token ids with as many image tokens as the images have places for, where the model says which token."""
        import torch

        token = self._of("image_token_id", "image_token_index")
        count = self._of("mm_tokens_per_image", "image_seq_length", "num_image_tokens")
        if token is None:
            return ids
        if count is None:
            _, side, _ = self._image()
            patch = self._of("patch_size", default=16)
            count = (side // (patch if isinstance(patch, int) else patch[0])) ** 2
        images = torch.full((ids.shape[0], int(count)), min(int(token), 511) if int(token) > 10**6 else int(token))
        return torch.cat([ids[:, :1], images, ids[:, 1:]], dim=1)
