"""Makes a small input for each argument of a transformers model's `forward`, by its name and the configuration.

`Makers` has a method for each name; `small_inputs` decides which arguments are given, and learns sizes from errors.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

BATCH = 2


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to make inputs, where names and sizes leave it open."""

    is_rich: bool = True
    #: Sound as (batch, bins, time), not as (batch, time, bins).
    is_time_last: bool = False
    has_mask: bool = True
    tokens: int = 12
    #: Only what `forward` calls its main input, and what has no default.
    is_main_only: bool = False
    #: Nothing but text.
    is_text_only: bool = False
    #: Pixels of an image come as (batch, images, channels, height, width).
    has_image_axis: bool = False
    has_image_sizes: bool = True


class Reader:
    """A model, how its inputs shall be, and what is known of their sizes."""

    def __init__(self, model: Any, variant: Variant) -> None:
        self.model = model
        self.variant = variant
        self.configuration = model.config
        self.taken = inspect.signature(model.forward).parameters
        #: How many placeholders stand in the text for an image, a video, a sound.
        self.placeholders = {"image": 0, "video": 0, "audio": 0}
        self.tried: set[int] = set()
        #: How many pieces an image comes in, where it comes in pieces.
        self.images = 0
        #: Sizes of axes that turned out to be others, and arguments that turned out to be needed.
        self.axes: dict[int, int] = {}
        self.asked: set[str] = set()
        self.has_channel_axis = False
        self.are_patches_pictures = False

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

    def _part(self, *names: str) -> Any:
        """A nested configuration by its name, or the whole."""
        return next(
            (found for name in names if (found := getattr(self.configuration, name, None)) is not None),
            self.configuration,
        )

    def _size(self, part: Any, *names: str, default: int) -> int:
        for one in (part, self.configuration):
            for name in names:
                value = getattr(one, name, None)
                if isinstance(value, (list, tuple)) and value:
                    value = value[-1]
                if isinstance(value, int) and not isinstance(value, bool):
                    return value
        return int(self._of(*names, default=default)) if not isinstance(self._of(*names), (list, tuple)) else default

    def _length(self) -> int:
        return self.variant.tokens + sum(self.placeholders.values())

    def _hidden(self) -> int:
        return self._size(self.configuration, "hidden_size", "d_model", default=64)


class Text(Reader):
    """Tokens and what goes with them."""

    def _vocabulary(self) -> int:
        part = self._part("text_config", "text_encoder", "text_encoder_config", "encoder")
        return min(self._size(part, "vocab_size", default=512), 380)

    def input_ids(self) -> Any:
        import torch

        vocabulary = self._vocabulary()
        ids = torch.randint(min(10, vocabulary - 1), vocabulary, (BATCH, self.variant.tokens))
        for kind, count in self.placeholders.items():
            token = self._of(f"{kind}_token_id", f"{kind}_token_index", f"{kind}_pad_token_id")
            if count and token is not None:
                places = torch.full((BATCH, count), int(token))
                ids = torch.cat([ids[:, :1], places, ids[:, 1:]], dim=1)
        eos = self._of("eos_token_id")
        if "CLIP" in type(self.model).__name__ and isinstance(eos, int) and eos < 512:
            ids[:, -1] = eos
        return ids

    def decoder_input_ids(self) -> Any:
        import torch

        part = self._part("decoder", "text_config", "decoder_config")
        vocabulary = min(self._size(part, "vocab_size", default=512), 380)
        shape: tuple[int, ...] = (BATCH, self.variant.tokens)
        if "Dia" in type(self.model).__name__:
            shape = (*shape, int(self._of("num_channels", default=9)))
        return torch.randint(min(10, vocabulary - 1), vocabulary, shape)

    def attention_mask(self) -> Any:
        import torch

        main = getattr(self.model, "main_input_name", "input_ids")
        if not self.variant.has_mask or "input_ids" not in self.taken or main in {"input_values", "input_features"}:
            return None
        mask = torch.ones(BATCH, self._length(), dtype=torch.long)
        if not any(self.placeholders.values()):
            mask[1, -3:] = 0
        return mask

    def mm_token_type_ids(self) -> Any:
        import torch

        if not any(self.placeholders.values()):
            return torch.zeros(BATCH, self._length(), dtype=torch.int)
        ids = self.input_ids()
        kinds = torch.zeros_like(ids, dtype=torch.int)
        for number, kind in enumerate(("image", "video", "audio"), 1):
            token = self._of(f"{kind}_token_id", f"{kind}_token_index")
            if token is not None and self.placeholders[kind]:
                kinds[ids == int(token)] = number
        return kinds

    def bbox(self) -> Any:
        import torch

        if "Bros" in type(self.model).__name__:
            return torch.rand(BATCH, self._length(), 8)
        low = torch.randint(0, 500, (BATCH, self._length(), 2))
        boxes = torch.cat([low, low + 10], dim=-1)
        return boxes / 1000.0 if "Udop" in type(self.model).__name__ else boxes

    def lang_ids(self) -> Any:
        import torch

        return torch.zeros(BATCH, dtype=torch.long) if "Xmod" in type(self.model).__name__ else None


class Pictures(Text):
    """Pictures, videos, and rows of patches."""

    def _vision(self) -> Any:
        return self._part("vision_config", "vision_encoder_config", "backbone_config", "encoder", "image_encoder")

    def _image(self) -> tuple[int, int, int]:
        part = self._vision()
        side = self._size(part, "image_size", "img_size", "pretrain_image_size", "resolution", default=64)
        sides = getattr(part, "image_size", None)
        height, side = sides if isinstance(sides, (list, tuple)) and len(sides) == 2 else (side, side)
        height, side = (min(one, 1024) if one > 1 else 64 for one in (height, side))
        channels = self._size(part, "num_channels", "in_channels", "num_input_channels", "in_chans", default=3)
        return (channels if channels in {1, 3, 4, 6} else 3), height, side

    def _patch(self) -> tuple[int, int, int]:
        """Sides of a patch, and the frames in it."""
        part = self._vision()
        side = self._size(part, "patch_size", default=14)
        return side, side, self._size(part, "temporal_patch_size", "patch_temporal", default=1)

    def _is_packed(self) -> bool:
        """Whether images come as rows of flat patches, with their grids."""
        return any(name in self.taken for name in ("image_grid_thw", "grid_thw"))

    def _grid(self) -> tuple[int, int, int]:
        merge = self._size(self._vision(), "spatial_merge_size", "merge_size", default=2)
        return 1, 2 * merge, 2 * merge

    def _flat_patches(self) -> Any:
        import torch

        height, width, frames = self._patch()
        _, rows, columns = self._grid()
        channels, _, _ = self._image()
        return torch.rand(BATCH * rows * columns, channels * frames * height * width)

    def grid_thw(self) -> Any:
        import torch

        return torch.tensor([self._grid()] * BATCH)

    image_grid_thw = grid_thw

    def merge_sizes(self) -> Any:
        import torch

        return torch.tensor([self._size(self._vision(), "spatial_merge_size", "merge_size", default=2)] * BATCH)

    image_merge_sizes = merge_sizes

    def images_per_sample(self) -> Any:
        import torch

        return torch.ones(BATCH, dtype=torch.long)

    def hidden_states(self) -> Any:
        import torch

        if "grid_thw" in self.taken:
            return self._flat_patches()
        return torch.rand(BATCH, 1 if "Encoder" in type(self.model).__name__ else self._hidden(), 3200)

    def pixel_values(self) -> Any:
        import torch

        if self._is_packed():
            return self._flat_patches()
        channels, height, width = self._image()
        side, _, _ = self._patch()
        if "spatial_shapes" in self.taken or "pixel_position_ids" in self.taken:
            return torch.rand(BATCH, 16, channels * side * side)
        if self._is_video():
            return torch.rand(BATCH, int(self._of("num_frames", default=4)), channels, height, width)
        if self.images:
            return torch.rand(BATCH, self.images, channels, height, width)
        if self.variant.has_image_axis or ("pixel_attention_mask" in self.taken):
            return torch.rand(BATCH, 1, channels, height, width)
        return torch.rand(BATCH, channels, height, width)

    def _is_video(self) -> bool:
        name = type(self.configuration).__name__.lower()
        return any(word in name for word in ("videomae", "vivit", "timesformer", "xclip", "tvp"))

    def spatial_shapes(self) -> Any:
        import torch

        return torch.tensor([[4, 4]] * BATCH)

    def pixel_attention_mask(self) -> Any:
        import torch

        if "spatial_shapes" in self.taken:
            return torch.ones(BATCH, 16, dtype=torch.long)
        _, height, width = self._image()
        return torch.ones(BATCH, 1, height, width, dtype=torch.bool)

    def target_sizes(self) -> Any:
        import torch

        _, height, width = self._image()
        side, _, _ = self._patch()
        return torch.tensor([[height // side, width // side]] * BATCH)

    def image_sizes(self) -> Any:
        import torch

        if not self.variant.has_image_sizes:
            return None
        _, height, width = self._image()
        return torch.tensor([[height, width]] * BATCH)

    def pixel_position_ids(self) -> Any:
        import torch

        places = torch.stack(torch.meshgrid(torch.arange(4), torch.arange(4), indexing="ij"), dim=-1)
        return places.reshape(1, 16, 2).expand(BATCH, -1, -1).contiguous()

    image_position_ids = pixel_position_ids

    def pixel_values_videos(self) -> Any:
        import torch

        channels, height, width = self._image()
        if "VJEPA" in type(self.configuration).__name__ or "VideoPrism" in type(self.configuration).__name__:
            frames = int(self._of("frames_per_clip", "num_frames", default=4))
            return torch.rand(1, min(frames, 16), channels, height, width)
        return None

    def prompt_pixel_values(self) -> Any:
        return self.pixel_values()

    def prompt_masks(self) -> Any:
        return self.pixel_values()

    def input_points(self) -> Any:
        import torch

        return torch.rand(BATCH, 1, 2, 2) * 50

    def input_boxes(self) -> Any:
        return None

    def visual_embeds(self) -> Any:
        import torch

        return torch.rand(BATCH, 6, self._size(self.configuration, "visual_embedding_dim", default=64))

    def visual_feats(self) -> Any:
        import torch

        return torch.rand(BATCH, 6, self._size(self.configuration, "visual_feat_dim", default=64))

    def visual_pos(self) -> Any:
        import torch

        return torch.rand(BATCH, 6, self._size(self.configuration, "visual_pos_dim", default=4))

    def image(self) -> Any:
        import torch

        return torch.rand(BATCH, 3, 224, 224)


class Makers(Pictures):
    """Sound, series, games."""

    def _bins(self) -> int:
        part = self._part("audio_config", "encoder_config", "encoder", "speech_encoder_config")
        names = "num_mel_bins", "feature_projection_input_dim", "input_feat_per_channel", "input_feat_size"
        return self._size(part, *names, "feature_size", "input_dim", default=80)

    def input_features(self) -> Any:
        import torch

        bins = self._bins()
        if self.variant.is_time_last:
            longest = self._of("max_source_positions")
            return torch.rand(BATCH, bins, 2 * int(longest) if longest else 128)
        if "Clap" in type(self.configuration).__name__:
            return torch.rand(BATCH, 1, 1001, 64)
        return torch.rand(BATCH, 64, bins)

    def audio_mel(self) -> Any:
        import torch

        return torch.rand(BATCH, 64, self._bins())

    def audio_mel_mask(self) -> Any:
        import torch

        return torch.zeros(BATCH, 64, dtype=torch.bool)

    def input_features_mask(self) -> Any:
        import torch

        features = self.input_features()
        return torch.ones(BATCH, features.shape[2 if self.variant.is_time_last else 1], dtype=torch.long)

    feature_attention_mask = input_features_mask

    def input_values(self) -> Any:
        import torch

        bins = self._of("num_mel_bins")
        if bins is not None and self._of("max_length") and "AST" in type(self.configuration).__name__:
            return torch.rand(BATCH, int(self._of("max_length")), int(bins))
        if "SpeechT5" in type(self.configuration).__name__:
            return torch.randint(10, 80, (BATCH, 12))
        channels = self._of("audio_channels", "channels")
        is_codec = channels is not None or self._of("codebook_size") is not None
        return torch.rand(BATCH, int(channels or 1), 3840) if is_codec else torch.rand(BATCH, 8000)

    def decoder_input_values(self) -> Any:
        import torch

        return torch.rand(BATCH, 8, self._bins())

    # Series, games

    def past_values(self) -> Any:
        import torch

        length = int(self._of("context_length", default=16)) + max(self._of("lags_sequence", default=[0]))
        channels = int(self._of("num_input_channels", "input_size", default=1))
        is_flat = "timesfm" in type(self.configuration).__name__.lower()
        is_flat = is_flat or (channels == 1 and self._of("lags_sequence"))
        return torch.rand((BATCH, length) if is_flat else (BATCH, length, channels))

    def past_values_padding(self) -> Any:
        import torch

        return torch.zeros_like(self.past_values())

    def freq(self) -> Any:
        import torch

        return torch.zeros(BATCH, 1, dtype=torch.long)

    def past_observed_mask(self) -> Any:
        import torch

        return torch.ones_like(self.past_values())

    def past_time_features(self) -> Any:
        import torch

        return torch.rand(BATCH, self.past_values().shape[1], self._of("num_time_features", default=1))

    def future_values(self) -> Any:
        import torch

        return torch.rand(BATCH, int(self._of("prediction_length") or 4))

    def future_time_features(self) -> Any:
        import torch

        return torch.rand(BATCH, int(self._of("prediction_length") or 4), self._of("num_time_features", default=1))

    def states(self) -> Any:
        import torch

        return torch.rand(BATCH, 6, int(self._of("state_dim", default=17)))

    def actions(self) -> Any:
        import torch

        return torch.rand(BATCH, 6, int(self._of("act_dim", default=4)))

    def rewards(self) -> Any:
        import torch

        return torch.rand(BATCH, 6, 1)

    returns_to_go = rewards

    def timesteps(self) -> Any:
        import torch

        return torch.arange(6).expand(BATCH, 6)

    def inputs(self) -> Any:
        import torch

        return torch.rand(BATCH, 16, int(self._of("d_model", default=64)))

    def query_embeds(self) -> Any:
        import torch

        return torch.rand(BATCH, 8, self._hidden())
