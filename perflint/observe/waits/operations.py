"""The rows of operations on the device, and of what waits for it."""

from __future__ import annotations

from perflint.observe.waits.conditions import asked, checks_lengths, fills_by_mask, given, has_mask, no_range, sorts
from perflint.observe.waits.row import CUDA, NATIVE, Row

#: A matrix with every decomposition, made of what examples may use.
_DEFINITE = "x @ x.T + 9 * torch.eye(4, device=x.device)"

ROWS: tuple[Row, ...] = (
    Row(
        "aten::_local_scalar_dense",
        "a value of a device tensor is used on the host: item(), bool(), int(), float(), an index, a condition",
        waits=True,
        kind="read",
        source=CUDA + "CUDAScalar.cu",
        example="x.sum().item()",
    ),
    Row(
        "aten::equal",
        "`torch.equal`: the answer is a Python bool",
        waits=True,
        kind="read",
        source=CUDA + "Equal.cpp",
        example="torch.equal(x, x + 1)",
    ),
    Row(
        "aten::nonzero",
        "the size of the result is the number of values that are not zero; also `torch.where(condition)`",
        waits=True,
        kind="shape",
        source=CUDA + "Nonzero.cu",
        example="x.nonzero()",
    ),
    Row(
        "aten::nonzero_static",
        "the size is given",
        waits=False,
        kind="launch",
        source=CUDA + "Nonzero.cu",
        example="torch.nonzero_static(x, size=16)",
    ),
    Row(
        "aten::masked_select",
        "the size of the result is the number of values that are set in the mask",
        waits=True,
        kind="shape",
        source=CUDA + "IndexKernel.cpp",
        function="masked_select_out_cuda_impl",
        example="x.masked_select(mask)",
    ),
    Row(
        "aten::index",
        "an index is a mask (bool or uint8) on the device: `x[mask]`",
        waits=True,
        kind="shape",
        source=NATIVE + "IndexingUtils.h",
        function="expandTensors",
        example="x[mask]",
        holds=has_mask,
    ),
    Row(
        "aten::index",
        "all indices are positions on the device",
        waits=False,
        kind="launch",
        source=NATIVE + "TensorAdvancedIndexingUtils.h",
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
                source=NATIVE + "TensorAdvancedIndexingUtils.h",
                function="canDispatchToMaskedFill",
                example="x[mask] = 0.0" if operation == "aten::index_put_" else "",
                holds=fills_by_mask,
            ),
            Row(
                operation,
                "an index is a mask on the device, and the values are a device tensor: `x[mask] = values`",
                waits=True,
                kind="shape",
                source=NATIVE + "IndexingUtils.h",
                function="expandTensors",
                example="x[mask] = x.sum()" if operation == "aten::index_put_" else "",
                holds=has_mask,
            ),
        )
    ),
    *(
        Row(
            f"aten::{name}",
            "the size of the result is the number of distinct values",
            waits=True,
            kind="shape",
            source=CUDA + "Unique.cu",
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
        source=CUDA + "GroupedBlas.cpp",
        function="_grouped_mm_cuda",
        example="torch._grouped_mm("
        "x.new_ones(4, 8).bfloat16(), x.new_ones(2, 8, 8).bfloat16(), offs=(2 * n[:2] ** 0).int())",
    ),
    Row(
        "aten::bincount",
        "the size of the result is the greatest value",
        waits=True,
        kind="shape",
        source=CUDA + "SummaryOps.cu",
        example="n.bincount()",
    ),
    Row(
        "aten::histc",
        "no range is given (min equals max), so that the least and the greatest value are read",
        waits=True,
        kind="read",
        source=CUDA + "SummaryOps.cu",
        example="x.histc(4)",
        holds=no_range,
    ),
    Row(
        "aten::histc",
        "the range is given",
        waits=False,
        kind="launch",
        source=CUDA + "SummaryOps.cu",
        example="x.histc(4, min=-1.0, max=1.0)",
    ),
    Row(
        "aten::repeat_interleave",
        "`output_size` is given",
        waits=False,
        kind="launch",
        source=NATIVE + "Repeat.h",
        example="x.repeat_interleave(n[:4], dim=0, output_size=int(6))",
        holds=given(1, "output_size"),
    ),
    Row(
        "aten::repeat_interleave",
        "the counts are a device tensor and `output_size` is not given: their sum is the size of the result, and that "
        "none is negative is checked",
        waits=True,
        kind="shape",
        source=NATIVE + "Repeat.h",
        function="repeat_interleave_common",
        times=2,
        example="x.repeat_interleave(n[:4], dim=0)",
    ),
    Row(
        "aten::multinomial",
        "the probabilities are checked on the device; PyTorch before 2.6 read them",
        waits=False,
        kind="launch",
        source=NATIVE + "Distributions.cpp",
        function="multinomial_out",
        example="x.abs().multinomial(1)",
    ),
    Row(
        "aten::_assert_async",
        "the device checks; what fails ends the program at a later call",
        waits=False,
        kind="launch",
        source=CUDA + "TensorCompare.cu",
        function="_assert_async_cuda",
        example="torch._assert_async(x.sum() < 1000)",
    ),
    *(
        Row(
            f"aten::normal.{overload}",
            "the standard deviation is a device tensor, which is checked for negative values",
            waits=True,
            kind="read",
            source=NATIVE + "DistributionTemplates.h",
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
        source=NATIVE + "TensorCompare.cpp",
        function="isin_sorting",
        times=2,
        example="torch.isin(n, torch.arange(64, device=n.device))",
        holds=sorts,
    ),
    *(
        Row(
            f"aten::{name}",
            "the error codes of the decomposition are read by the host",
            waits=True,
            kind="read",
            source=NATIVE + "BatchLinearAlgebra.cpp",
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
                source=NATIVE + "BatchLinearAlgebra.cpp",
                function="_linalg_check_errors",
                example=f"torch.linalg.{call}, check_errors=True)",
                holds=asked("check_errors"),
            ),
            Row(
                f"aten::{name}",
                "without `check_errors`; the function without `_ex` reads the error codes itself and waits",
                waits=False,
                kind="launch",
                source=NATIVE + "BatchLinearAlgebra.cpp",
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
        source=NATIVE + "LinearAlgebra.cpp",
        function="mexp_impl",
        example="torch.matrix_exp(x)",
    ),
    Row(
        "aten::segment_reduce",
        "with `lengths`, and without `unsafe=True`: that none is negative is checked, and their sum",
        waits=True,
        kind="read",
        source=NATIVE + "SegmentReduce.cpp",
        function="segment_reduce_kernel",
        times=2,
        example="torch.segment_reduce(x, 'sum', lengths=n[3:5], unsafe=False)",
        holds=checks_lengths,
    ),
    Row(
        "aten::segment_reduce",
        "with `offsets`, or with `unsafe=True`",
        waits=False,
        kind="launch",
        source=NATIVE + "SegmentReduce.cpp",
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
            source=CUDA + "LossCTC.cu",
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
            source=CUDA + file,
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
