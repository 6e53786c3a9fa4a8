"""What makes the host wait: one row for each operation and condition, with the source that says so.

The first row of an operation whose condition holds decides. An operation without a row launches kernels and does not
wait. Conditions look at arguments as the operation got them: device tensors, sizes and flags, never at values.
No torch is imported here: the table is data, and docs/waits.md is made from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perflint.observe.trace import Kind

#: Where PyTorch's sources are; a row's source is a path below, a page of documentation has its whole address.
PYTORCH = "https://github.com/pytorch/pytorch/blob/main/"
_NATIVE = "aten/src/ATen/native/"
_CUDA = _NATIVE + "cuda/"
_CUDA_COPIES = "https://docs.nvidia.com/cuda/cuda-runtime-api/api-sync-behavior.html"

Arguments = Sequence[Any]
Keywords = Mapping[str, Any]
Condition = Callable[[Arguments, Keywords], bool]

#: Copies from pageable memory up to this size are staged by the driver without waiting for the stream.
STAGED_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Row:
    """What one operation does to the host under one condition.

    `operation` is the dispatcher's name without overload, or a Python function's for what never comes to the
    dispatcher. `condition` is for readers, `holds` decides (None: always). `read`: the source was read for this row.
    `example` are statements that make exactly this happen; they may use `torch`, `x` (float32, 4 by 4, on the
    device), `n` (int64, 8, on the device), `mask` (4 by 4, on the device, two set) and `host` (float32, pageable).
    """

    operation: str
    condition: str
    waits: bool
    kind: Kind
    source: str
    example: str
    read: bool = True
    holds: Condition | None = None


def _argument(position: int, name: str, default: Any = None) -> Callable[[Arguments, Keywords], Any]:
    def of(arguments: Arguments, keywords: Keywords) -> Any:
        return arguments[position] if position < len(arguments) else keywords.get(name, default)

    return of


def _given(position: int, name: str) -> Condition:
    of = _argument(position, name)
    return lambda arguments, keywords: of(arguments, keywords) is not None


def _true(position: int, name: str) -> Condition:
    of = _argument(position, name, default=False)
    return lambda arguments, keywords: bool(of(arguments, keywords))


def _is_mask(index: Any) -> bool:
    return index is not None and str(index.dtype) in {"torch.bool", "torch.uint8"}


def _has_mask(arguments: Arguments, _keywords: Keywords) -> bool:
    """One of the indices is a mask on the device."""
    return any(_is_mask(index) and index.device.type == "cuda" for index in arguments[1])


def _fills_by_mask(arguments: Arguments, keywords: Keywords) -> bool:
    """One mask and one number that is on the host: PyTorch makes it `masked_fill_`, which needs no positions."""
    value = arguments[2]
    accumulate = arguments[3] if len(arguments) > 3 else keywords.get("accumulate", False)
    if accumulate or value.numel() != 1 or value.device.type != "cpu":
        return False
    indices = [index for index in arguments[1] if index is not None]
    return len(indices) == 1 and _is_mask(indices[0])


def _sorts(arguments: Arguments, _keywords: Keywords) -> bool:
    """`isin` compares each with each for few test elements, and sorts for many."""
    elements, tests = arguments[0], arguments[1]
    if not (hasattr(elements, "numel") and hasattr(tests, "numel")):
        return False
    assumed = arguments[2] if len(arguments) > 2 else _keywords.get("assume_unique", False)
    return not assumed and bool(tests.numel() >= 10.0 * elements.numel() ** 0.145)


def _no_range(arguments: Arguments, keywords: Keywords) -> bool:
    return bool(_argument(2, "min", 0)(arguments, keywords) == _argument(3, "max", 0)(arguments, keywords))


def _checks_probabilities(arguments: Arguments, keywords: Keywords) -> bool:
    replacement = _argument(2, "replacement", default=False)(arguments, keywords)
    return not replacement or _argument(1, "num_samples", 1)(arguments, keywords) == 1


ROWS: tuple[Row, ...] = (
    Row(
        "aten::_local_scalar_dense",
        "a value of a device tensor is used on the host: item(), bool(), int(), float(), an index, a condition",
        waits=True,
        kind="read",
        source=_CUDA + "CUDAScalar.cu",
        example="x.sum().item()",
    ),
    Row(
        "aten::equal",
        "`torch.equal`: the answer is a Python bool",
        waits=True,
        kind="read",
        source=_CUDA + "Equal.cpp",
        example="torch.equal(x, x + 1)",
    ),
    Row(
        "aten::nonzero",
        "the size of the result is the number of values that are not zero; also `torch.where(condition)`",
        waits=True,
        kind="shape",
        source=_CUDA + "Nonzero.cu",
        example="x.nonzero()",
    ),
    Row(
        "aten::nonzero_static",
        "the size is given",
        waits=False,
        kind="launch",
        source=_CUDA + "Nonzero.cu",
        example="torch.nonzero_static(x, size=16)",
    ),
    Row(
        "aten::masked_select",
        "the size of the result is the number of values that are set in the mask",
        waits=True,
        kind="shape",
        source=_CUDA + "IndexKernel.cpp",
        read=False,
        example="x.masked_select(mask)",
    ),
    Row(
        "aten::index",
        "an index is a mask (bool or uint8) on the device: `x[mask]`",
        waits=True,
        kind="shape",
        source=_NATIVE + "IndexingUtils.h",
        example="x[mask]",
        holds=_has_mask,
    ),
    Row(
        "aten::index",
        "all indices are positions",
        waits=False,
        kind="launch",
        source=_NATIVE + "TensorAdvancedIndexing.cpp",
        read=False,
        example="x[n % 4]",
    ),
    *(
        row
        for operation in ("aten::index_put_", "aten::_index_put_impl_", "aten::index_put")
        for row in (
            Row(
                operation,
                "one mask, and the value is one number: `x[mask] = 0` becomes `masked_fill_`",
                waits=False,
                kind="launch",
                source=_NATIVE + "TensorAdvancedIndexing.cpp",
                read=False,
                example="x[mask] = 0.0" if operation == "aten::index_put_" else "",
                holds=_fills_by_mask,
            ),
            Row(
                operation,
                "an index is a mask on the device, and the values are a device tensor: `x[mask] = values`",
                waits=True,
                kind="shape",
                source=_NATIVE + "IndexingUtils.h",
                example="x[mask] = x.sum()" if operation == "aten::index_put_" else "",
                holds=_has_mask,
            ),
        )
    ),
    *(
        Row(
            f"aten::{name}",
            "the size of the result is the number of distinct values",
            waits=True,
            kind="shape",
            source=_CUDA + "Unique.cu",
            example=example,
        )
        for name, example in (
            ("_unique2", "n.unique()"),
            ("_unique", "torch.ops.aten._unique(n)"),
            ("unique_dim", "x.unique(dim=0)"),
            ("unique_consecutive", "n.unique_consecutive()"),
            ("unique_dim_consecutive", "torch.ops.aten.unique_dim_consecutive(x, 0)"),
        )
    ),
    Row(
        "aten::bincount",
        "the size of the result is the greatest value",
        waits=True,
        kind="shape",
        source=_CUDA + "SummaryOps.cu",
        example="n.bincount()",
    ),
    Row(
        "aten::histc",
        "no range is given (min equals max), so that the least and the greatest value are read",
        waits=True,
        kind="read",
        source=_CUDA + "SummaryOps.cu",
        example="x.histc(4)",
        holds=_no_range,
    ),
    Row(
        "aten::histc",
        "the range is given",
        waits=False,
        kind="launch",
        source=_CUDA + "SummaryOps.cu",
        example="x.histc(4, min=-1.0, max=1.0)",
    ),
    Row(
        "aten::repeat_interleave",
        "`output_size` is given",
        waits=False,
        kind="launch",
        source=_NATIVE + "Repeat.h",
        example="x.repeat_interleave(n[:4], dim=0, output_size=int(6))",
        holds=_given(1, "output_size"),
    ),
    Row(
        "aten::repeat_interleave",
        "the counts are a device tensor and `output_size` is not given: their sum is the size of the result",
        waits=True,
        kind="shape",
        source=_NATIVE + "Repeat.h",
        example="x.repeat_interleave(n[:4], dim=0)",
    ),
    Row(
        "aten::multinomial",
        "one sample, or without replacement: the probabilities are checked on the host",
        waits=True,
        kind="read",
        source=_NATIVE + "Distributions.cpp",
        read=False,
        example="x.abs().multinomial(1)",
        holds=_checks_probabilities,
    ),
    Row(
        "aten::multinomial",
        "several samples with replacement",
        waits=False,
        kind="launch",
        source=_CUDA + "MultinomialKernel.cu",
        read=False,
        example="x.abs().multinomial(3, replacement=True)",
    ),
    *(
        Row(
            f"aten::normal.{overload}",
            "the standard deviation is a device tensor, which is checked for negative values",
            waits=True,
            kind="read",
            source=_NATIVE + "DistributionTemplates.h",
            read=False,
            example=example,
        )
        for overload, example in (
            ("Tensor_Tensor", "torch.normal(x, x.abs())"),
            ("float_Tensor", "torch.normal(0.0, x.abs())"),
        )
    ),
    Row(
        "aten::isin",
        "many test elements: duplicates are removed first (`unique`)",
        waits=True,
        kind="shape",
        source=_NATIVE + "TensorCompare.cpp",
        read=False,
        example="torch.isin(n, torch.arange(64, device=n.device))",
        holds=_sorts,
    ),
    *(
        Row(
            f"aten::{name}",
            "the error codes of the decomposition are read by the host",
            waits=True,
            kind="read",
            source=_NATIVE + "BatchLinearAlgebra.cpp",
            read=False,
            example=example,
        )
        for name, example in (
            ("_linalg_eigh", "torch.linalg.eigh(x @ x.T)"),
            ("_linalg_svd", "torch.linalg.svd(x)"),
        )
    ),
    *(
        Row(
            f"aten::{name}",
            "`check_errors=True`: the error codes are read by the host",
            waits=True,
            kind="read",
            source=_NATIVE + "BatchLinearAlgebra.cpp",
            read=False,
            example=f"torch.linalg.{name.removeprefix('linalg_')}({matrix}, check_errors=True)",
            holds=_true(1 if name == "linalg_inv_ex" else 99, "check_errors"),
        )
        for name, matrix in (("linalg_inv_ex", "x + 9 * torch.eye(4, device=x.device)"),)
    ),
    Row(
        "aten::linalg_inv_ex",
        "without `check_errors`; `torch.linalg.inv` and `cholesky` read the error codes themselves and wait",
        waits=False,
        kind="launch",
        source=_NATIVE + "BatchLinearAlgebra.cpp",
        read=False,
        example="torch.linalg.inv_ex(x)",
    ),
    *(
        Row(
            f"aten::{name}",
            "runs on the host (MAGMA) or reads its error codes",
            waits=True,
            kind="read",
            source=_NATIVE + "BatchLinearAlgebra.cpp",
            example=example,
            read=False,
        )
        for name, example in (("linalg_eig", "torch.linalg.eig(x)"), ("linalg_lstsq", "torch.linalg.lstsq(x, x)"))
    ),
    Row(
        "torchvision::nms",
        "which boxes are kept is found on the host",
        waits=True,
        kind="shape",
        source="https://github.com/pytorch/vision/blob/main/torchvision/csrc/ops/cuda/nms_kernel.cu",
        example="",
        read=False,
    ),
    Row(
        "torch.cuda.synchronize",
        "waits for all that was queued",
        waits=True,
        kind="synchronize",
        source="https://docs.pytorch.org/docs/stable/generated/torch.cuda.synchronize.html",
        read=False,
        example="torch.cuda.synchronize()",
    ),
    Row(
        "torch.cuda.Event.synchronize",
        "waits for all that was queued before the event",
        waits=True,
        kind="synchronize",
        source="https://docs.pytorch.org/docs/stable/generated/torch.cuda.Event.html",
        read=False,
        example="event = torch.cuda.Event()\nevent.record()\nevent.synchronize()",
    ),
    Row(
        "torch.cuda.Stream.synchronize",
        "waits for all that was queued on the stream",
        waits=True,
        kind="synchronize",
        source="https://docs.pytorch.org/docs/stable/generated/torch.cuda.Stream.html",
        read=False,
        example="torch.cuda.current_stream().synchronize()",
    ),
    Row(
        "torch.cuda.empty_cache",
        "gives blocks back to the driver, whose `cudaFree` waits for the device",
        waits=True,
        kind="synchronize",
        source="c10/cuda/CUDACachingAllocator.cpp",
        read=False,
        example="torch.cuda.empty_cache()",
    ),
)

COPIES: tuple[Row, ...] = (
    Row(
        "aten::copy_",
        "host to device, `non_blocking=False`",
        waits=True,
        kind="to-device",
        source=_CUDA + "Copy.cu",
        example="host.to(x.device)",
    ),
    Row(
        "aten::copy_",
        "host to device, `non_blocking=True`, from pinned memory without gaps (else it is gathered in pageable memory "
        "first)",
        waits=False,
        kind="to-device",
        source=_CUDA + "Copy.cu",
        example="host.pin_memory().to(x.device, non_blocking=True)",
    ),
    Row(
        "aten::copy_",
        "host to device, `non_blocking=True`, from pageable memory, up to 64 KB: the driver stages it at once",
        waits=False,
        kind="to-device",
        source=_CUDA_COPIES,
        read=False,
        example="host.to(x.device, non_blocking=True)",
    ),
    Row(
        "aten::copy_",
        "host to device, `non_blocking=True`, from pageable memory, more than 64 KB",
        waits=True,
        kind="to-device",
        source=_CUDA_COPIES,
        read=False,
        example="torch.zeros(100_000).to(x.device, non_blocking=True)",
    ),
    Row(
        "aten::copy_",
        "device to host, `non_blocking=False`",
        waits=True,
        kind="to-host",
        source=_CUDA + "Copy.cu",
        example="x.cpu()",
    ),
    Row(
        "aten::copy_",
        "device to host, `non_blocking=True`, to pinned memory (`.to('cpu', non_blocking=True)` makes it so)",
        waits=False,
        kind="to-host",
        source=_CUDA + "Copy.cu",
        example="x.to('cpu', non_blocking=True)",
    ),
    Row(
        "aten::copy_",
        "device to host, `non_blocking=True`, to pageable memory",
        waits=True,
        kind="to-host",
        source=_CUDA_COPIES,
        read=False,
        example="host.copy_(x, non_blocking=True)",
    ),
)

_BY_OPERATION: dict[str, tuple[Row, ...]] = {}
for _row in ROWS:
    _BY_OPERATION[_row.operation] = (*_BY_OPERATION.get(_row.operation, ()), _row)


def rows_of(operation: str) -> tuple[Row, ...]:
    """The rows of an operation, named as the dispatcher does, with its overload or without (`aten::index`)."""
    return _BY_OPERATION.get(operation) or _BY_OPERATION.get(operation.partition(".")[0], ())


def row_for(rows: Sequence[Row], arguments: Arguments, keywords: Keywords) -> Row | None:
    """The first whose condition holds."""
    return next((row for row in rows if row.holds is None or row.holds(arguments, keywords)), None)


def copy_waits(*, to_device: bool, non_blocking: bool, pinned: bool, size: int) -> bool:
    """Whether the host waits for a copy of `size` bytes between host and device. `pinned` is the host's memory."""
    if not non_blocking:
        return True
    if pinned:
        return False
    return not to_device or size > STAGED_BYTES
