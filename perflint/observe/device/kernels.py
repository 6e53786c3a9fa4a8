"""Runs every operation on a pretended CUDA tensor on the host, and tells the recorder.

Registered with PyTorch's dispatcher for the CUDA key: operations that have a kernel on the host one by one, all others
(custom ones too) by the fallback. Views, sizes and strides are PyTorch's own, on the device's tensors; what computes
runs on the host's views of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from perflint.observe.device import distributed
from perflint.observe.device.emulated import EMULATED, HOST_ONLY, REFUSED
from perflint.observe.device.memory import Memory
from perflint.observe.device.operation import CPU, Kernel, Operation
from perflint.observe.device.special import SPECIAL

if TYPE_CHECKING:
    from perflint.observe.device.graphs import Graph
    from perflint.observe.recording.recorder import Recorder

#: Change sizes, strides or storage only: the host's kernels do that on any tensor, and launch nothing.
_VIEWS = frozenset(
    """as_strided view _reshape_alias unfold view_as_real view_as_complex set_ _conj_physical_view
    _nested_view_from_buffer is_set_to""".split()
)
#: Composite in PyTorch, but one kernel (or one call of a library) on CUDA, or dearer to take apart than to run whole.
_WHOLE = frozenset(
    """convolution convolution_backward convolution_overrideable clone empty_like zeros_like ones_like full_like
    zeros ones full new_zeros new_ones new_full new_empty rand randn randint rand_like randn_like randint_like
    _embedding_bag_backward eye linspace logspace arange randperm""".split()
)


@dataclass
class Device:
    """The pretended device: its memory, and who is told what happens (None: nobody)."""

    memory: Memory
    recorder: Recorder | None = None
    #: Implementations that the user gave for operations (`namespace::name`), on host tensors.
    stubs: dict[str, Kernel] = field(default_factory=dict)
    #: The CUDA graph that is being captured.
    graph: Graph | None = None
    _libraries: list[Any] = field(default_factory=list)

    def register(self) -> None:
        """Tell the dispatcher. Once a process: what is registered stays."""
        named: dict[str, Any] = {}
        names = torch._C._dispatch_get_all_op_names()
        aten = torch.library.Library("aten", "IMPL")
        for full in names:
            space, _, name = full.partition("::")
            if space != "aten" or not self._is_ours(full, name.partition(".")[0]):
                continue
            overload = _overload(name)
            if overload is not None:
                named[name] = overload
        with _without_warnings():
            for name, overload in named.items():
                aten.impl(name, self._kernel_of(overload), "CUDA")
        everything = torch.library.Library("_", "IMPL")
        everything.fallback(self._fallback, "CUDA")
        for key, what in _OTHER_LAYOUTS.items():
            everything.fallback(_refusing(what), key)
        self._libraries += [aten, everything, *distributed.register(self)]

    def _is_ours(self, full: str, base: str) -> bool:
        has = torch._C._dispatch_has_kernel_for_dispatch_key
        if base in HOST_ONLY:
            return False
        named = base in _WHOLE or base in SPECIAL or base in EMULATED or full.partition("::")[2] in EMULATED
        return named or has(full, "CPU") or has(full, "CUDA") or base.startswith("_foreach_")

    def _kernel_of(self, overload: Any) -> Kernel:
        base = overload._schema.name.partition("::")[2]
        if base in _VIEWS:
            return _view_kernel(overload)
        special = SPECIAL.get(base)
        if special is not None:
            return special(self, overload)
        return Operation(self, overload)

    def _fallback(self, overload: Any, *arguments: Any, **keywords: Any) -> Any:
        if overload._schema.name.partition("::")[2] in REFUSED:
            raise NotImplementedError(f"Could not run '{overload}' with arguments from the 'CUDA' backend.")
        kernel = _operations.get(overload)
        if kernel is None:
            kernel = _operations[overload] = self._kernel_of(overload)
        return kernel(*arguments, **keywords)


#: Tensors that have no memory of one piece, by their dispatch keys.
_OTHER_LAYOUTS = {"SparseCUDA": "sparse", "SparseCsrCUDA": "sparse (compressed)", "NestedTensorCUDA": "nested"}


def _refusing(what: str) -> Kernel:
    def refuse(overload: Any, *_arguments: Any, **_keywords: Any) -> Any:
        raise NotImplementedError(
            f"{overload._schema.name}: {what} tensors do not run on a simulated device; make them dense for the "
            "observation, or observe with --device cuda"
        )

    return refuse


_operations: dict[Any, Kernel] = {}


def _overload(name: str) -> Any:
    base, _, overload = name.partition(".")
    packet = getattr(torch.ops.aten, base, None)
    return getattr(packet, overload or "default", None)


def _without_warnings() -> Any:
    import contextlib
    import warnings

    @contextlib.contextmanager
    def quiet() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield

    return quiet()


def _view_kernel(overload: Any) -> Kernel:
    redispatch = overload.redispatch

    def view(*arguments: Any, **keywords: Any) -> Any:
        return redispatch(CPU, *arguments, **keywords)

    return view
