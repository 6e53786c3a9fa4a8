"""torchvision's compiled operators in Python, where its compiled part does not fit the PyTorch at hand.

The schemas are those of torchvision. `nms`, `roi_align` and `deform_conv2d` compute; the others are declared only. All
run on host tensors, so that a simulated device takes each for one operation, as it would the compiled one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_BOXES = "Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width"
_GRADIENT = "Tensor grad, Tensor rois"
_SIZES = "SymInt batch_size, SymInt channels, SymInt height, SymInt width"
_POOLED = "float spatial_scale, SymInt pooled_height, SymInt pooled_width"
_STEPS = (
    "SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, "
    "SymInt groups, SymInt offset_groups, bool use_mask"
)
_DEFORMED = "Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias"
_QUANTIZED = (
    "Tensor input, Tensor rois, float input_scale, int input_zero_point, float rois_scale, int rois_zero_point, "
    "float spatial_scale, SymInt pooled_height, SymInt pooled_width, int sampling_ratio, bool aligned"
)
_SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    f"roi_align({_BOXES}, int sampling_ratio, bool aligned) -> Tensor",
    f"qroi_align({_QUANTIZED}) -> Tensor",
    f"_roi_align_backward({_GRADIENT}, {_POOLED}, {_SIZES}, int sampling_ratio, bool aligned) -> Tensor",
    f"roi_pool({_BOXES}) -> (Tensor, Tensor)",
    f"_roi_pool_backward({_GRADIENT}, Tensor argmax, {_POOLED}, {_SIZES}) -> Tensor",
    f"ps_roi_align({_BOXES}, int sampling_ratio) -> (Tensor, Tensor)",
    f"_ps_roi_align_backward({_GRADIENT}, Tensor channel_mapping, {_POOLED}, int sampling_ratio, {_SIZES}) -> Tensor",
    f"ps_roi_pool({_BOXES}) -> (Tensor, Tensor)",
    f"_ps_roi_pool_backward({_GRADIENT}, Tensor channel_mapping, {_POOLED}, {_SIZES}) -> Tensor",
    f"deform_conv2d({_DEFORMED}, {_STEPS}) -> Tensor",
    f"_deform_conv2d_backward(Tensor grad, {_DEFORMED}, {_STEPS}) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    "_cuda_version() -> int",
)
_kept: list[Any] = []


def install() -> None:
    """Import torchvision; where its compiled part cannot be loaded, with these operators in its place."""
    import torch

    if _kept:
        return
    library = torch.library.Library("torchvision", "FRAGMENT")
    _kept.append(library)
    with _compiled_part(library):
        try:
            import torchvision  # noqa: F401
        except ImportError:
            return


@contextmanager
def _compiled_part(library: Any) -> Iterator[None]:
    """While the block runs, loading torchvision's operators defines these if it fails."""
    import torch

    original = torch.ops.load_library

    def load(path: Any) -> None:
        try:
            original(path)
        except OSError:
            if "torchvision" not in str(path) or "_C" not in str(path):
                raise
            _define(library)

    torch.ops.load_library = load
    try:
        yield
    finally:
        torch.ops.load_library = original


def _define(library: Any) -> None:
    for schema in _SCHEMAS:
        library.define(schema)
    computing: dict[str, Callable[..., Any]] = {
        "nms": _nms,
        "roi_align": _roi_align,
        "_roi_align_backward": _roi_align_backward,
        "deform_conv2d": _deform_conv2d,
        "_deform_conv2d_backward": _deform_conv2d_backward,
    }
    for name, function in computing.items():
        library.impl(name, function, "CPU")
    library.impl("_cuda_version", lambda: -1, "CompositeExplicitAutograd")


def _nms(boxes: Any, scores: Any, threshold: float) -> Any:
    """Indices of the boxes that stay, the best first: each removes those that it overlaps by more than a threshold."""
    import torch

    order = scores.argsort(descending=True, stable=True)
    kept: list[Any] = []
    sides = boxes[:, 2:] - boxes[:, :2]
    areas = sides[:, 0] * sides[:, 1]
    while order.numel():
        best, order = order[0], order[1:]
        kept.append(best)
        low = torch.maximum(boxes[best, :2], boxes[order, :2])
        high = torch.minimum(boxes[best, 2:], boxes[order, 2:])
        common = (high - low).clamp(min=0).prod(dim=1)
        order = order[common <= threshold * (areas[best] + areas[order] - common)]
    return torch.stack(kept) if kept else torch.empty(0, dtype=torch.long)


def _roi_align(images: Any, boxes: Any, scale: float, height: int, width: int, samples: int, aligned: bool) -> Any:
    """The mean over a grid of samples in each bin of each box. `boxes` are rows of (image, x1, y1, x2, y2)."""
    import torch

    if not len(boxes):
        return images.new_zeros((0, images.shape[1], height, width))
    shift = 0.5 if aligned else 0.0
    corners = boxes[:, 1:] * scale - shift
    sizes = corners[:, 2:] - corners[:, :2]
    sizes = sizes if aligned else sizes.clamp(min=1.0)
    count = samples if samples > 0 else 2
    made = []
    for at in range(len(boxes)):
        rows, columns = (
            corners[at, axis] + sizes[at, axis] * (torch.arange(bins * count) + 0.5) / (bins * count)
            for axis, bins in ((1, height), (0, width))
        )
        grid = torch.stack(torch.meshgrid(columns, rows, indexing="xy"), dim=-1)
        made.append(_sampled(images[int(boxes[at, 0])], grid))
    return torch.nn.functional.avg_pool2d(torch.stack(made), count)


def _sampled(image: Any, places: Any) -> Any:
    """Values between the pixels of one image (channels first) at `places` (rows of x, y)."""
    import torch

    _, height, width = image.shape
    limits = torch.tensor([max(width - 1, 1), max(height - 1, 1)], dtype=image.dtype)
    scaled = (places.to(image.dtype).clamp(min=0) / limits * 2 - 1)[None]
    return torch.nn.functional.grid_sample(image[None], scaled, padding_mode="border", align_corners=True)[0]


@contextmanager
def _recorded() -> Iterator[None]:
    """Autograd on, as outside of an operator."""
    import torch

    excluded = torch._C._dispatch_tls_local_exclude_set()
    for name in ("AutogradFunctionality", "ADInplaceOrView"):
        excluded = excluded.remove(getattr(torch._C.DispatchKey, name))
    with torch._C._ForceDispatchKeyGuard(torch._C._dispatch_tls_local_include_set(), excluded), torch.enable_grad():
        yield


def _roi_align_backward(
    gradient: Any,
    boxes: Any,
    scale: float,
    height: int,
    width: int,
    batch: int,
    channels: int,
    rows: int,
    columns: int,
    samples: int,
    aligned: bool,
) -> Any:
    import torch

    with _recorded():
        images = torch.zeros(batch, channels, rows, columns, dtype=gradient.dtype, requires_grad=True)
        pooled = _roi_align(images, boxes, scale, height, width, samples, aligned)
        if not pooled.requires_grad:
            return images.detach()
        return torch.autograd.grad(pooled, images, gradient)[0]


def _deform_conv2d(
    images: Any,
    weight: Any,
    offsets: Any,
    mask: Any,
    bias: Any,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    groups: int,
    offset_groups: int,
    use_mask: bool,
) -> Any:
    """A convolution that reads each of its inputs at a place of its own, weighted by the mask."""
    import torch

    batch, channels = images.shape[:2]
    outputs, _, high, wide = weight.shape
    rows, columns = offsets.shape[2:]
    padded = torch.nn.functional.pad(images, (pad_w, pad_w, pad_h, pad_h))
    moved = offsets.view(batch, offset_groups, high * wide, 2, rows, columns)
    weights = mask.view(batch, offset_groups, high * wide, rows, columns) if use_mask else None
    part = channels // offset_groups
    patches = padded.new_zeros(batch, channels, high * wide, rows, columns)
    down, right = torch.meshgrid(torch.arange(rows) * stride_h, torch.arange(columns) * stride_w, indexing="ij")
    for image in range(batch):
        for group in range(offset_groups):
            taken = padded[image, group * part : (group + 1) * part]
            for tap in range(high * wide):
                y = down + tap // wide * dilation_h + moved[image, group, tap, 0]
                x = right + tap % wide * dilation_w + moved[image, group, tap, 1]
                values = _sampled(taken, torch.stack([x, y], dim=-1))
                scaled = values if weights is None else values * weights[image, group, tap]
                patches[image, group * part : (group + 1) * part, tap] = scaled
    split = patches.view(batch, groups, channels // groups * high * wide, rows * columns)
    kernel = weight.view(groups, outputs // groups, -1)
    return torch.einsum("goc,bgcn->bgon", kernel, split).reshape(batch, outputs, rows, columns) + bias[:, None, None]


def _deform_conv2d_backward(gradient: Any, *given: Any) -> Any:
    import torch

    with _recorded():
        tensors = [one.detach().requires_grad_() for one in given[:5]]
        result = _deform_conv2d(*tensors, *given[5:])
        found = torch.autograd.grad(result, tensors, gradient, allow_unused=True)
    return tuple(torch.zeros_like(one) if two is None else two for one, two in zip(tensors, found))
