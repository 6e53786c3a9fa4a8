"""`torch.compile`: what makes compiled code, what keeps code out of it, and what cuts its graph."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from perflint.torch_model.names import words

#: Hand back a compiled version of their first argument.
COMPILERS = words("torch.compile torch._dynamo.optimize")
#: Decorators of functions that are never traced into.
KEPT_OUT = words(
    "torch.compiler.disable torch._dynamo.disable torch._disable_dynamo torch.jit.ignore torch.jit.unused "
    "torch.library.custom_op torch.compiler.assume_constant_result torch._dynamo.assume_constant_result "
    "torch.compiler.allow_in_graph torch._dynamo.allow_in_graph torch.jit.script_if_tracing"
)
#: Ask whether the code is being traced, scripted or exported: what they guard is not in the graph, and no eager run
#: comes to it.
TRACING_TESTS = words(
    "is_compiling is_dynamo_compiling is_torchdynamo_compiling is_tracing _is_tracing _get_tracing_state is_scripting "
    "is_exporting is_in_onnx_export"
)
#: Hand back the library's own callables, which have a compiled form of their own or must be compiled to be fast.
MADE_FOR_COMPILING = words("torch.nn.attention.flex_attention.flex_attention")


class Break(enum.Enum):
    """Why a call cannot stay in a graph."""

    PRINT = "prints"
    LOG = "logs, at whatever level,"
    WARN = "warns"
    CLOCK = "reads the clock"
    RANDOM = "draws from Python's random numbers"
    COLLECT = "collects garbage"
    EXPLICIT = "asks for a graph break"
    READ = "reads a tensor's value"


_LOG_METHODS = words("debug info warning warn error critical exception log fatal")

#: Functions that cut the graph at their call, by dotted name.
BREAKING_FUNCTIONS: Mapping[str, Break] = {
    "print": Break.PRINT,
    **{f"logging.{name}": Break.LOG for name in _LOG_METHODS},
    "warnings.warn": Break.WARN,
    **{
        f"time.{name}": Break.CLOCK
        for name in words("time perf_counter monotonic process_time time_ns perf_counter_ns monotonic_ns")
    },
    "datetime.datetime.now": Break.CLOCK,
    **{
        f"random.{name}": Break.RANDOM
        for name in words("random randint uniform choice sample shuffle gauss randrange choices getrandbits")
    },
    "gc.collect": Break.COLLECT,
    "torch._dynamo.graph_break": Break.EXPLICIT,
}
#: What makes loggers: their methods cut the graph.
LOGGER_FACTORIES = words("logging.getLogger logging.Logger loguru.logger structlog.get_logger absl.logging")
LOG_METHODS = _LOG_METHODS
#: Methods of a tensor that cut the graph.
BREAKING_METHODS: Mapping[str, Break] = {"item": Break.READ, "tolist": Break.READ}
