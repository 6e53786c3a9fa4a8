"""Small inputs for a transformers model, by the names that its `forward` takes and the sizes of its configuration."""

from __future__ import annotations

import re
from typing import Any

from input_makers import BATCH, Makers, Variant

VARIANTS = (
    Variant(),
    Variant(has_image_sizes=False),
    Variant(is_time_last=True),
    Variant(has_image_axis=True),
    Variant(has_mask=False),
    Variant(tokens=128),
    Variant(is_main_only=True, is_rich=False),
    Variant(is_main_only=True, is_rich=False, is_time_last=True),
    Variant(is_text_only=True, is_rich=False),
    Variant(is_text_only=True, is_rich=False, has_mask=False),
    Variant(is_text_only=True, is_rich=False, tokens=128),
)

#: What a model is given though it has a default, when its `forward` takes it.
_WANTED = frozenset(
    """input_ids attention_mask pixel_values input_features input_values decoder_input_ids pixel_values_videos
    image_grid_thw pixel_attention_mask spatial_shapes image_sizes bbox input_features_mask
    feature_attention_mask input_points states actions rewards returns_to_go timesteps inputs past_values
    visual_embeds decoder_input_values video_grid_thw image_merge_sizes mm_token_type_ids
    target_sizes input_boxes lang_ids images_per_sample visual_feats visual_pos image_position_ids""".split()
)
_TEXT = frozenset("input_ids attention_mask decoder_input_ids decoder_attention_mask".split())
#: What an error tells of the size of an axis: what it was, and what it has to be.
_AXES = (
    re.compile(r"shapes cannot be multiplied \(\d+x(?P<got>\d+) and (?P<wanted>\d+)x\d+\)"),
    re.compile(r"expected input\[[\d, ]+\] to have (?P<wanted>\d+) channels, but got (?P<got>\d+) channels"),
    re.compile(r"normalized_shape=\[(?P<wanted>\d+)\].*input of size\[[\d, ]*?(?P<got>\d+)\]"),
    re.compile(r"length (?P<got>\d+) is not a multiple of (?P<unit>\d+)"),
    re.compile(r"multiple of .*?\((?P<unit>\d+)\), but got (?P<got>\d+)"),
    re.compile(r"size of tensor a \((?P<got>\d+)\) must match the size of tensor b \((?P<wanted>\d+)\)"),
)
_IMAGES = re.compile(r"of shape \(batch_size, (\d), num_channels")
_PIECES = re.compile(r"split_sizes=\[(\d+), ?\1\]")
_MISMATCH = re.compile(r"tokens?:? *\(?(\d+)\D+?features:? *\(?(\d+)")


def that_run(model: Any, variant: Variant) -> dict[str, Any]:
    """Inputs with which a forward on the host runs. Raises what it raises."""
    import torch

    makers = Inputs(model, variant)
    for _ in range(8):
        inputs = makers.all()
        try:
            with torch.no_grad():
                model(**inputs)
        except Exception as error:
            if not makers.learns_from(str(error)):
                raise
        else:
            return inputs
    raise ValueError("no number of placeholder tokens is right")


class Inputs(Makers):
    """Makes inputs, each by the name of its argument."""

    def all(self) -> dict[str, Any]:
        """Inputs for all without a default, and of the others those that the variant asks for."""
        found: dict[str, Any] = {}
        for name, parameter in self.taken.items():
            maker = getattr(self, name, None) or self._by_ending(name)
            is_needed = parameter.default is parameter.empty and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
            if maker is not None and (is_needed or self._is_wanted(name)):
                value = self._fitting(maker())
                if value is not None or is_needed:
                    found[name] = value
        return found

    def _by_ending(self, name: str) -> Any:
        """A maker for what only its ending tells."""
        makers = {"_ids": self.input_ids, "_mask": self._whole_mask, "_embeds": self._embeds, "_states": self._embeds}
        return next((maker for ending, maker in makers.items() if name.endswith(ending)), None)

    def _whole_mask(self) -> Any:
        import torch

        return torch.ones(BATCH, self._length(), dtype=torch.long)

    def _embeds(self) -> Any:
        import torch

        return torch.rand(BATCH, self._length(), self._hidden())

    def encoder_hidden_states(self) -> Any:
        import torch

        return torch.rand(BATCH, 6, self._size(self.configuration, "encoder_hidden_size", "hidden_size", default=64))

    def _fitting(self, value: Any) -> Any:
        """An input with its axes as long as errors told."""
        import torch

        if not isinstance(value, torch.Tensor) or not value.is_floating_point():
            return value
        if self.has_channel_axis and value.dim() == 2:
            value = value.unsqueeze(1)
        if self.are_patches_pictures and value.dim() == 2:
            side, _, _ = self._patch()
            return value.reshape(len(value), -1, side, side)
        # Pictures are as large as their configuration says.
        if value.dim() > 3:
            return value
        shape = list(value.shape)
        for at in range(1, len(shape)):
            for _ in range(3):
                shape[at] = self.axes.get(shape[at], shape[at])
        return value if shape == list(value.shape) else torch.rand(shape)

    def _is_wanted(self, name: str) -> bool:
        if name in self.asked:
            return True
        if self.variant.is_text_only:
            return name in _TEXT
        if self.variant.is_main_only:
            return name in {self.model.main_input_name, "decoder_input_ids"}
        return name in _WANTED

    def learns_from(self, message: str) -> bool:
        """Whether an error tells what the inputs lack: an argument, another size, a number of placeholders."""
        return self._learns_count(message) or self._learns_name(message) or self._learns_axis(message)

    def _learns_name(self, message: str) -> bool:
        if not re.search(r"must be|have to|has to|required|provide|specif|missing", message):
            return False
        named = {name for name in re.findall(r"\w+", message) if name in self.taken} - self.asked
        named = {name for name in named if getattr(self, name, None) or self._by_ending(name)}
        self.asked |= named
        return bool(named)

    def _learns_axis(self, message: str) -> bool:
        if "input to conv2d, but got input of size" in message and not self.are_patches_pictures and self._is_packed():
            self.are_patches_pictures = True
            return True
        found = next((found for one in _AXES if (found := one.search(message)) is not None), None)
        if found is None:
            return False
        got, sizes = int(found["got"]), found.groupdict()
        unit = int(sizes.get("unit") or 0)
        wanted = -(-got // unit) * unit if unit else int(sizes["wanted"])
        if got == BATCH and wanted == 1 and not self.has_channel_axis:
            self.has_channel_axis = True
            return True
        if got in self.axes or got == wanted or wanted > 1 << 16:
            return False
        self.axes[got] = wanted
        return True

    def _learns_count(self, message: str) -> bool:
        images = _IMAGES.search(message)
        if images is not None and self.images != int(images[1]):
            self.images = int(images[1])
            return True
        pieces = _PIECES.search(message)
        if pieces is not None and self.images != int(pieces[1]):
            self.images = int(pieces[1])
            return True
        found = _MISMATCH.search(message)
        if found is None:
            return False
        features = int(found[2])
        lower = message.lower()
        kind = next((one for one in ("video", "audio", "image") if f"{one} " in lower), "image")
        wanted = features // BATCH
        if wanted in self.tried or wanted > 4096:  # what is told is the number of values, not of places
            wanted //= self._size(self._part("text_config"), "hidden_size", "d_model", default=1)
        if wanted in self.tried or wanted > 4096:
            return False
        self.tried.add(wanted)
        self.placeholders[kind] = wanted
        return True
