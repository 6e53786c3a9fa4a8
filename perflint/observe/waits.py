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
_CUDA_GUIDE = "https://docs.nvidia.com/cuda/archive/12.8.0/cuda-c-programming-guide/index.html#concurrent-execution-between-host-and-device"

#: A matrix with every decomposition, made of what examples may use.
_DEFINITE = "x @ x.T + 9 * torch.eye(4, device=x.device)"

Arguments = Sequence[Any]
Keywords = Mapping[str, Any]
Condition = Callable[[Arguments, Keywords], bool]

#: Copies from pageable memory to the device up to this size are asynchronous for the host ("a memory block of 64 KB or
#: less"); greater ones are staged, before which the driver may synchronize with the stream, so they count as waits.
STAGED_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Row:
    """What one operation does to the host under one condition.

    `operation` is the dispatcher's name without overload, or a Python function's for what never comes to the
    dispatcher. `condition` is for readers, `holds` decides (None: always).
    `example` are statements that make exactly this happen; they may use `torch`, `x` (float32, 4 by 4, on the
    device), `n` (int64, 8, on the device), `mask` (4 by 4, on the device, two set) and `host` (float32, pageable).
    """

    operation: str
    condition: str
    waits: bool
    kind: Kind
    source: str
    example: str
    holds: Condition | None = None
    #: The function in the source, where it is not plain from the operation's name.
    function: str = ""
    #: How often the host waits in one call.
    times: int = 1


def _argument(position: int, name: str, default: Any = None) -> Callable[[Arguments, Keywords], Any]:
    def of(arguments: Arguments, keywords: Keywords) -> Any:
        return arguments[position] if position < len(arguments) else keywords.get(name, default)

    return of


def _given(position: int, name: str) -> Condition:
    of = _argument(position, name)
    return lambda arguments, keywords: of(arguments, keywords) is not None


def _asked(name: str) -> Condition:
    """An option that is given by name only, and that is off otherwise."""
    return lambda _arguments, keywords: bool(keywords.get(name, False))


def _checks_lengths(_arguments: Arguments, keywords: Keywords) -> bool:
    """`segment_reduce` checks lengths, and neither offsets nor what is said to be safe."""
    return keywords.get("lengths") is not None and keywords.get("offsets") is None and not keywords.get("unsafe", False)


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
        function="masked_select_out_cuda_impl",
        example="x.masked_select(mask)",
    ),
    Row(
        "aten::index",
        "an index is a mask (bool or uint8) on the device: `x[mask]`",
        waits=True,
        kind="shape",
        source=_NATIVE + "IndexingUtils.h",
        function="expandTensors",
        example="x[mask]",
        holds=_has_mask,
    ),
    Row(
        "aten::index",
        "all indices are positions on the device",
        waits=False,
        kind="launch",
        source=_NATIVE + "TensorAdvancedIndexingUtils.h",
        function="make_info",
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
                source=_NATIVE + "TensorAdvancedIndexingUtils.h",
                function="canDispatchToMaskedFill",
                example="x[mask] = 0.0" if operation == "aten::index_put_" else "",
                holds=_fills_by_mask,
            ),
            Row(
                operation,
                "an index is a mask on the device, and the values are a device tensor: `x[mask] = values`",
                waits=True,
                kind="shape",
                source=_NATIVE + "IndexingUtils.h",
                function="expandTensors",
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
        "aten::_grouped_mm",
        "bfloat16 on compute capability 9.0 or 10.0; in other types, and on other GPUs, the offsets are copied to the "
        "host (`_grouped_mm_fallback`), which waits",
        waits=False,
        kind="launch",
        source=_CUDA + "GroupedBlas.cpp",
        function="_grouped_mm_cuda",
        example="torch._grouped_mm("
        "x.new_ones(4, 8).bfloat16(), x.new_ones(2, 8, 8).bfloat16(), offs=(2 * n[:2] ** 0).int())",
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
        "the counts are a device tensor and `output_size` is not given: their sum is the size of the result, and that "
        "none is negative is checked",
        waits=True,
        kind="shape",
        source=_NATIVE + "Repeat.h",
        function="repeat_interleave_common",
        times=2,
        example="x.repeat_interleave(n[:4], dim=0)",
    ),
    Row(
        "aten::multinomial",
        "the probabilities are checked on the device; PyTorch before 2.6 read them",
        waits=False,
        kind="launch",
        source=_NATIVE + "Distributions.cpp",
        function="multinomial_out",
        example="x.abs().multinomial(1)",
    ),
    Row(
        "aten::_assert_async",
        "the device checks; what fails ends the program at a later call",
        waits=False,
        kind="launch",
        source=_CUDA + "TensorCompare.cu",
        function="_assert_async_cuda",
        example="torch._assert_async(x.sum() < 1000)",
    ),
    *(
        Row(
            f"aten::normal.{overload}",
            "the standard deviation is a device tensor, which is checked for negative values",
            waits=True,
            kind="read",
            source=_NATIVE + "DistributionTemplates.h",
            function="CHECK_NORMAL_TENSOR_STD",
            times=2,
            example=example,
        )
        for overload, example in (
            ("Tensor_Tensor", "torch.normal(x, x.abs())"),
            ("float_Tensor", "torch.normal(0.0, x.abs())"),
        )
    ),
    Row(
        "aten::isin",
        "many test elements: duplicates are removed from both first (`unique`)",
        waits=True,
        kind="shape",
        source=_NATIVE + "TensorCompare.cpp",
        function="isin_sorting",
        times=2,
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
            function="_linalg_check_errors",
            example=example,
        )
        for name, example in (
            ("_linalg_eigh", "torch.linalg.eigh(x @ x.T)"),
            ("_linalg_svd", "torch.linalg.svd(x)"),
            ("linalg_eig", "torch.linalg.eig(x)"),
            ("_linalg_eigvals", "torch.linalg.eigvals(x)"),
            ("linalg_lstsq", "torch.linalg.lstsq(x, x)"),
            ("cholesky", ""),
            ("cholesky_inverse", f"torch.cholesky_inverse({_DEFINITE})"),
        )
    ),
    *(
        row
        for name, call in (
            ("linalg_inv_ex", f"inv_ex({_DEFINITE}"),
            ("linalg_cholesky_ex", f"cholesky_ex({_DEFINITE}"),
            ("_linalg_solve_ex", f"solve_ex({_DEFINITE}, x"),
            ("linalg_lu_factor_ex", f"lu_factor_ex({_DEFINITE}"),
            ("linalg_ldl_factor_ex", f"ldl_factor_ex({_DEFINITE}"),
        )
        for row in (
            Row(
                f"aten::{name}",
                "`check_errors=True`: the error codes are read by the host",
                waits=True,
                kind="read",
                source=_NATIVE + "BatchLinearAlgebra.cpp",
                function="_linalg_check_errors",
                example=f"torch.linalg.{call}, check_errors=True)",
                holds=_asked("check_errors"),
            ),
            Row(
                f"aten::{name}",
                "without `check_errors`; the function without `_ex` reads the error codes itself and waits",
                waits=False,
                kind="launch",
                source=_NATIVE + "BatchLinearAlgebra.cpp",
                function=f"{name}_out",
                example=f"torch.linalg.{call})",
            ),
        )
    ),
    Row(
        "aten::linalg_matrix_exp",
        "how many products are needed depends on the norm, which is copied to the host",
        waits=True,
        kind="read",
        source=_NATIVE + "LinearAlgebra.cpp",
        function="mexp_impl",
        example="torch.matrix_exp(x)",
    ),
    Row(
        "aten::segment_reduce",
        "with `lengths`, and without `unsafe=True`: that none is negative is checked, and their sum",
        waits=True,
        kind="read",
        source=_NATIVE + "SegmentReduce.cpp",
        function="segment_reduce_kernel",
        times=2,
        example="torch.segment_reduce(x, 'sum', lengths=n[3:5], unsafe=False)",
        holds=_checks_lengths,
    ),
    Row(
        "aten::segment_reduce",
        "with `offsets`, or with `unsafe=True`",
        waits=False,
        kind="launch",
        source=_NATIVE + "SegmentReduce.cpp",
        function="segment_reduce_kernel",
        example="torch.segment_reduce(x, 'sum', lengths=n[3:5], unsafe=True)",
    ),
    *(
        Row(
            f"aten::{name}",
            "lengths of inputs and targets, and where each target begins, are copied to the device, in forward and in "
            "backward. Lengths that are device tensors are copied to the host before, which waits as well",
            waits=True,
            kind="to-device",
            source=_CUDA + "LossCTC.cu",
            function=function,
            times=3,
            example=example,
        )
        for name, function, example in (
            ("_ctc_loss", "ctc_loss_gpu_template", "torch._ctc_loss(x.log_softmax(1)[:, None], n[None, :2], [4], [2])"),
            ("_ctc_loss_backward", "ctc_loss_backward_gpu_template", ""),
        )
    ),
    *(
        Row(
            f"aten::{name}",
            "how many rows differ stays on the device",
            waits=False,
            kind="launch",
            source=_CUDA + file,
            function=function,
            example=example,
        )
        for name, file, function, example in (
            (
                "embedding_dense_backward",
                "EmbeddingBackwardKernel.cu",
                "embedding_backward_cuda_kernel",
                "torch.ops.aten.embedding_dense_backward(x[n % 4], n, 4, -1, False)",
            ),
            ("embedding_renorm_", "Embedding.cu", "embedding_renorm_cuda_", "torch.embedding_renorm_(x, n, 1.0, 2.0)"),
        )
    ),
    Row(
        "torchvision::nms",
        "which boxes are kept is found on the host",
        waits=True,
        kind="shape",
        source="https://github.com/pytorch/vision/blob/main/torchvision/csrc/ops/cuda/nms_kernel.cu",
        function="nms_kernel",
        example="",
    ),
    Row(
        "torch.cuda.synchronize",
        "waits for all that was queued",
        waits=True,
        kind="synchronize",
        source="torch/cuda/__init__.py",
        function="synchronize",
        example="torch.cuda.synchronize()",
    ),
    Row(
        "torch.cuda.Event.synchronize",
        "waits for all that was queued before the event",
        waits=True,
        kind="synchronize",
        source="torch/cuda/streams.py",
        function="Event.synchronize",
        example="event = torch.cuda.Event()\nevent.record()\nevent.synchronize()",
    ),
    Row(
        "torch.cuda.Stream.synchronize",
        "waits for all that was queued on the stream",
        waits=True,
        kind="synchronize",
        source="torch/cuda/streams.py",
        function="Stream.synchronize",
        example="torch.cuda.current_stream().synchronize()",
    ),
    Row(
        "torch.cuda.empty_cache",
        "gives blocks back to the driver: events are waited for, and `cudaFree` waits for the device",
        waits=True,
        kind="synchronize",
        source="c10/cuda/CUDACachingAllocator.cpp",
        function="synchronize_and_free_events",
        example="torch.cuda.empty_cache()",
    ),
    *(
        Row(
            f"torch.cuda.{name}",
            condition,
            waits=False,
            kind="synchronize",
            source=source,
            function=function,
            example=example,
        )
        for name, condition, source, function, example in (
            (
                "Event.query",
                "asks whether the device has come to the event",
                "torch/cuda/streams.py",
                "Event.query",
                "event = torch.cuda.Event()\nevent.record()\nevent.query()",
            ),
            (
                "Stream.query",
                "asks whether the queue is empty",
                "torch/cuda/streams.py",
                "Stream.query",
                "torch.cuda.current_stream().query()",
            ),
            (
                "memory_stats",
                "figures that the host keeps; `memory_allocated` and `max_memory_allocated` too",
                "torch/cuda/memory.py",
                "memory_stats",
                "torch.cuda.memory_stats()\ntorch.cuda.max_memory_allocated()",
            ),
        )
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
        "host to device, `non_blocking=True`, from pageable memory, up to 64 KB: the driver takes it along at once",
        waits=False,
        kind="to-device",
        source=_CUDA_GUIDE,
        example="host.to(x.device, non_blocking=True)",
    ),
    Row(
        "aten::copy_",
        "host to device, `non_blocking=True`, from pageable memory, more than 64 KB: the driver synchronizes with the "
        "stream and copies to a buffer of its own first",
        waits=True,
        kind="to-device",
        source=_CUDA_COPIES,
        example="torch.zeros(100_000).to(x.device, non_blocking=True)",
    ),
    Row(
        "aten::index",
        "positions on the host index a device tensor: they are copied from pageable memory; a list is made a tensor "
        "on the host first",
        waits=True,
        kind="to-device",
        source=_NATIVE + "IndexingUtils.h",
        function="expandTensors",
        example="x[torch.tensor([0, 1])]",
    ),
    Row(
        "aten::index",
        "a mask on the host indexes a device tensor: the host finds the positions, in pinned memory, and copies them "
        "without waiting",
        waits=False,
        kind="to-device",
        source=_NATIVE + "IndexingUtils.h",
        function="expandTensors",
        example="x[torch.tensor([True, False, True, False])]",
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
