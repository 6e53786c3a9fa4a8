"""One operation on pretended CUDA tensors: what it computes, what it refuses, and what CUDA would have done for it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.flop_counter import flop_registry

from perflint.observe import waits
from perflint.observe.device.emulated import EMULATED
from perflint.observe.device.memory import on_host
from perflint.observe.trace import Kind

if TYPE_CHECKING:
    from perflint.observe.device.kernels import Device

Kernel = Callable[..., Any]
CPU = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
HOST = torch.device("cpu")
_Tensor = torch.Tensor

#: Types of arguments that are the same on both devices.
_PLAIN = frozenset({int, float, bool, str, type(None), torch.dtype, torch.layout, torch.memory_format})
_MOVES_MEMORY = frozenset({"launch", "shape"})
_NAMES = {torch.float32: "float32", torch.float16: "float16", torch.bfloat16: "bfloat16", torch.float64: "float64"}
#: Give memory without writing to it.
_ALLOCATIONS = frozenset(
    "empty empty_strided empty_like new_empty new_empty_strided resize_ _efficientzerotensor".split()
)
#: Tensors that one launch of CUDA's multi-tensor kernels takes, by the number of lists (MultiTensorApply.cuh), and
#: the values of one chunk.
_TENSORS_A_LAUNCH = (110, 110, 64, 48, 36, 30)
_BLOCKS_A_LAUNCH, _CHUNK = 320, 65536
#: Say which implementation to take, and look at no values.
_QUESTIONS = frozenset({"_use_cudnn_ctc_loss", "_use_miopen_ctc_loss"})
#: May mix devices: they move or read the host's part.
_MIXED = _QUESTIONS | frozenset(
    "index index_put_ index_put _index_put_impl_ copy_ _to_copy set_ _fused_adam_ _fused_adamw_ record_stream".split()
)
#: Types of indices that are masks.
_MASKS = frozenset({torch.bool, torch.uint8})


class MissingKernelError(NotImplementedError):
    """An operation has no implementation on the host, so that it cannot be run without a GPU."""

    def __init__(self, operation: str) -> None:
        super().__init__(
            f"{operation} has no implementation for the CPU, so it cannot run on a simulated device. Give one: "
            f"perflint observe --stub {operation}=package.reference"
        )
        self.operation = operation


#: What an operation that the host lacks for a type is computed in.
_WIDER = {
    torch.float16: torch.float32,
    torch.bfloat16: torch.float32,
    **dict.fromkeys((torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64), torch.float64),
}


def _zero_dimensional(given: Sequence[Any]) -> torch.Tensor:
    """A Python number that came where a tensor is due (`1 - x`), of the type that leaves the result's type alone."""
    other = next((one for one in given if isinstance(one, _Tensor)), None)
    dtype = None if other is None else torch.result_type(given[0], other)
    return torch.scalar_tensor(given[0], dtype=dtype)


class Operation:
    """One operation: computes on the host, keeps CUDA's rules about devices, and records what CUDA would have done."""

    def __init__(self, device: Device, overload: Any) -> None:
        schema = overload._schema
        self.device = device
        self.overload = overload
        self.operation = schema.name
        self.base = schema.name.partition("::")[2]
        self.rows = waits.rows_of(f"{schema.name}.{schema.overload_name}") or waits.rows_of(schema.name)
        self.flops = flop_registry.get(overload.overloadpacket)
        self.counted: dict[str, float] = {}
        self.launches = 0 if self.base in _ALLOCATIONS or self.base in _QUESTIONS else 1
        self.lists = self.base.startswith(("_foreach_", "_fused_", "_amp_foreach"))
        self.pointwise = torch.Tag.pointwise in overload.tags
        self.mixed = self.base in _MIXED
        self.outs = tuple(argument.name for argument in schema.arguments if argument.is_out)
        self.mutates = schema.is_mutable
        self.returned = _returned(schema)
        self.returns_arguments = any(one is not None for one in self.returned)
        self.emulated = EMULATED.get(f"{self.base}.{schema.overload_name}") or EMULATED.get(self.base)
        self.parameters = tuple(argument.name for argument in schema.arguments)
        self.takes_tensor_first = bool(schema.arguments) and str(schema.arguments[0].type) == "Tensor"
        #: Where else a Python number may stand for a tensor.
        self.numbers = tuple(
            at for at, one in enumerate(schema.arguments) if at and str(one.type) == "Tensor" and not one.kwarg_only
        )

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        frame = sys._getframe(1)
        given = [
            argument if type(argument) in _PLAIN else self._on_host(argument)  # most arguments, and this runs often
            for argument in arguments
        ]
        if keywords:
            named = {name: self._on_host(argument) for name, argument in keywords.items()}
            if named.get("pin_memory"):
                named["pin_memory"] = False
        else:
            named = keywords
        if self.outs:
            return self._into_outs(frame, arguments, keywords, given, named)
        result = self._run(given, named)
        if self.device.graph is not None and self.launches:
            self.device.graph.keep(lambda: self._run(given, named), result)
        out = self._on_device(result, arguments, keywords)
        if self.device.recorder is not None:
            self._record(frame, arguments, keywords, out)
        return out

    def _on_host(self, argument: Any) -> Any:
        if isinstance(argument, _Tensor):
            if argument.is_cuda:
                return on_host(argument)
            if not self.mixed and argument.dim() > 0:
                self._refuse(argument)
            return argument
        if isinstance(argument, (list, tuple)):
            if argument and not isinstance(argument[0], (int, float)):
                return [self._on_host(one) for one in argument]
            return argument
        if isinstance(argument, torch.device) and argument.type == "cuda":
            return HOST
        return argument

    def _refuse(self, argument: Any) -> None:
        """As CUDA does for operands on different devices. Raises RuntimeError."""
        if argument.device.type != "cpu":
            return
        if self.pointwise:
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
            )
        raise RuntimeError(
            f"Expected all tensors to be on the same device, but got tensors on cpu, different from other tensors on "
            f"cuda:0 (when checking argument in method wrapper_CUDA_{self.base})"
        )

    def _run(self, given: Sequence[Any], named: Mapping[str, Any]) -> Any:
        stub = self.device.stubs.get(self.operation) or self.emulated
        if stub is not None:
            return stub(*given, **named)
        try:
            if given and isinstance(given[0], (int, float, complex)) and self.takes_tensor_first:
                given = [_zero_dimensional(given), *given[1:]]
            for at in self.numbers:
                if at < len(given) and isinstance(given[at], (int, float, complex)):
                    # Only the call from Python makes a number of it that leaves the type of the result alone.
                    return self.overload.overloadpacket(*given, **named)
            return self.overload.redispatch(CPU, *given, **named)
        except NotImplementedError as error:
            if "Could not run" in str(error) or "no fallback" in str(error):
                raise MissingKernelError(self.operation) from None
            return self._in_float32(given, named, error)
        except RuntimeError as error:
            if "not implemented for" not in str(error):
                raise
            return self._in_float32(given, named, error)

    def _in_float32(self, given: Sequence[Any], named: Mapping[str, Any], error: Exception) -> Any:
        """The host lacks some operations for half precision, and for integers, that CUDA has: compute in float32 (in
        float64 for integers), round the result.
        """
        lower: list[Any] = []

        def widened(value: Any) -> Any:
            if isinstance(value, _Tensor) and value.dtype in _WIDER:
                lower.append(value.dtype)
                return value.to(_WIDER[value.dtype])
            return [widened(one) for one in value] if isinstance(value, (list, tuple)) else value

        def narrowed(value: Any) -> Any:
            if isinstance(value, _Tensor) and value.dtype == _WIDER[lower[0]]:
                return value.to(lower[0])
            return type(value)(narrowed(one) for one in value) if isinstance(value, (list, tuple)) else value

        wide = [widened(one) for one in given], {name: widened(one) for name, one in named.items()}
        if not lower:
            raise error
        result = narrowed(self.overload.redispatch(CPU, *wide[0], **wide[1]))
        if self.mutates:
            for before, after in zip(given, wide[0]):
                if isinstance(before, _Tensor) and before is not after:
                    before.copy_(after)
        return result

    def _on_device(self, result: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """The program's view of what the host gave: the argument itself where the schema says so, else a new tensor."""
        if isinstance(result, _Tensor):
            where = self.returned[0] if self.returned else None
            if where is not None:
                return self._argument(where, arguments, keywords)
            return self.device.memory.adopt(result)
        if isinstance(result, (list, tuple)):
            if not self.returns_arguments:
                adopt = self.device.memory.adopt
                if all(isinstance(one, _Tensor) for one in result):
                    return type(result)([adopt(one) for one in result])
            return type(result)(
                self._argument(self.returned[at], arguments, keywords)
                if at < len(self.returned) and self.returned[at] is not None
                else self.device.memory.adopt(one)
                if isinstance(one, _Tensor)
                else [self.device.memory.adopt(inner) for inner in one]
                if isinstance(one, (list, tuple))
                else one
                for at, one in enumerate(result)
            )
        return result

    def _argument(self, name: str | None, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        assert name is not None
        if name in keywords:
            return keywords[name]
        return arguments[self.parameters.index(name)]

    def _into_outs(
        self,
        frame: FrameType,
        arguments: Sequence[Any],
        keywords: Mapping[str, Any],
        given: Sequence[Any],
        named: dict[str, Any],
    ) -> Any:
        """Operations with `out=`: an output that does not fit gets new memory, as PyTorch resizes it."""
        views = {name: named[name] for name in self.outs if name in named}
        fresh = {name: _like_empty(view) for name, view in views.items()}
        self._run(given, named | fresh)
        for name, view in views.items():
            pairs = (
                zip(keywords[name], view, fresh[name])
                if isinstance(view, list)
                else [(keywords[name], view, fresh[name])]
            )
            for out, host, new in pairs:
                if tuple(new.shape) == tuple(host.shape):
                    host.copy_(new)
                else:
                    replace(out, self.device.memory.adopt(new))
        outs = [keywords[name] for name in self.outs if name in keywords]
        if self.device.graph is not None:
            hosts = [on_host(out) for out in outs if isinstance(out, _Tensor)]
            self.device.graph.keep(
                lambda: self._run(given, named | {name: _like_empty(view) for name, view in views.items()}), hosts
            )
        if self.device.recorder is not None:
            self._record(frame, arguments, keywords, outs)
        return outs[0] if len(outs) == 1 else tuple(outs)

    def _record(self, frame: FrameType, arguments: Sequence[Any], keywords: Mapping[str, Any], result: Any) -> None:
        recorder = self.device.recorder
        assert recorder is not None
        kind: Kind = "launch"
        blocks, times = False, 1
        if self.rows:
            row = waits.row_for(self.rows, arguments, keywords)
            if row is not None:
                kind, blocks, times = row.kind, row.waits, row.times
        if self.mixed:
            self._record_moved(frame, arguments)
        flops = 0.0
        dtype = ""
        size = 0
        if recorder.sizes:
            if self.launches and kind in _MOVES_MEMORY:
                size = bytes_of((*arguments, *keywords.values(), result) if keywords else (*arguments, result))
            if self.flops is not None:
                flops = self._flops_of(arguments, keywords, result)
                dtype = _dtype_of(arguments)
        launches = self._launches(arguments) if self.lists else self.launches
        place, in_backward = recorder.place(frame)
        recorder.wrote = self.mutates
        recorder.count(self.operation, kind, place, blocks, in_backward, size, launches, flops, dtype)
        for _ in range(times - 1):
            recorder.count(self.operation, kind, place, blocks, in_backward)

    def _flops_of(self, arguments: Sequence[Any], keywords: Mapping[str, Any], result: Any) -> float:
        """They depend on shapes and options only, and counting them takes longer than a small product."""
        key = str([one.shape if isinstance(one, _Tensor) else one for one in (*arguments, *keywords.values())])
        known = self.counted.get(key)
        if known is None:
            if len(self.counted) > 10_000:
                self.counted.clear()
            assert self.flops is not None
            known = self.counted[key] = float(self.flops(*arguments, **keywords, out_val=result))
        return known

    def _record_moved(self, frame: FrameType, arguments: Sequence[Any]) -> None:
        """Indices on the host are copied to the device first: positions from pageable memory; of a mask the positions,
        which are put into pinned memory and copied without waiting (`expandTensors` in IndexingUtils.h).
        """
        if self.base.startswith(("index", "_index")) and len(arguments) > 1:
            recorder = self.device.recorder
            assert recorder is not None
            for index in arguments[1]:
                if index is not None and not index.is_cuda:
                    mask = index.dtype in _MASKS
                    size = int(index.count_nonzero()) * index.dim() * 8 if mask else index.nbytes
                    recorder.record("aten::copy_", "to-device", frame, waits=not mask, size=size, pinned=mask)

    def _launches(self, arguments: Sequence[Any]) -> int:
        """Of a multi-tensor kernel: so many tensors and so many chunks fit into one launch."""
        lists = [one for one in arguments if isinstance(one, (list, tuple)) and one and isinstance(one[0], _Tensor)]
        if not lists or not lists[0][0].is_cuda:
            return self.launches
        tensors = _TENSORS_A_LAUNCH[min(len(lists), len(_TENSORS_A_LAUNCH) - 1)]
        chunks: int = sum(-(-one.numel() // _CHUNK) for one in lists[0])
        return max(1, -(-len(lists[0]) // tensors), -(-chunks // _BLOCKS_A_LAUNCH))


def _dtype_of(arguments: Sequence[Any]) -> str:
    for argument in arguments:
        if isinstance(argument, _Tensor) and argument.is_floating_point():
            if argument.dtype is torch.float32 and torch.backends.cuda.matmul.allow_tf32:
                return "tfloat32"
            return _NAMES.get(argument.dtype) or str(argument.dtype).removeprefix("torch.")
    return ""


def bytes_of(value: Any) -> int:
    """Of all device tensors in it: what a kernel reads and writes once."""
    if isinstance(value, _Tensor):
        return int(value.nbytes) if value.is_cuda else 0
    size = 0
    if isinstance(value, (list, tuple)):
        for one in value:  # most are tensors or plain, and this runs for every operation
            if isinstance(one, _Tensor):
                if one.is_cuda:
                    size += one.nbytes
            elif type(one) not in _PLAIN:
                size += bytes_of(one)
    return size


def replace(tensor: Any, other: Any) -> None:
    """Give a device tensor the memory, sizes and strides of another."""
    torch.ops.aten.set_.source_Storage_storage_offset.redispatch(
        CPU, tensor, other.untyped_storage(), other.storage_offset(), other.shape, other.stride()
    )


def _like_empty(view: Any) -> Any:
    if isinstance(view, list):
        return [_like_empty(one) for one in view]
    return torch.empty(0, dtype=view.dtype)


def _returned(schema: Any) -> tuple[str | None, ...]:
    """For each value returned, the name of the argument that it is, None for a new one."""
    written = {}
    for argument in schema.arguments:
        alias = argument.alias_info
        if alias is not None and alias.is_write:
            for name in alias.before_set:
                written[name] = argument.name
    found: list[str | None] = []
    for value in schema.returns:
        alias = value.alias_info
        names = alias.before_set if alias is not None and alias.is_write else ()
        found.append(next((written[name] for name in names if name in written), None))
    return tuple(found)
