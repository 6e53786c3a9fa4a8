"""The stable face for rule writers: everything a rule imports, and nothing else of perflint."""

from __future__ import annotations

from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.call_graph.ways_in import ways_in
from perflint.analysis.cost import Exposure, impact_of_wait
from perflint.analysis.device_queue import transfer
from perflint.analysis.device_queue.functions import Entry
from perflint.analysis.device_queue.queue import DeviceQueue
from perflint.analysis.device_queue.transfer import Transfer
from perflint.analysis.effects.summary import Effects, Kept, Witness
from perflint.analysis.effects.wrappers import KEEPING, is_wrapper
from perflint.analysis.elsewhere import bound, class_of, definition_of
from perflint.analysis.feasibility.at_nodes import is_in_training, is_unreached
from perflint.analysis.frequency.epochs import LoopHeat
from perflint.analysis.frequency.routes import function_of
from perflint.analysis.names.refs import CLASS, EXTERNAL, EXTERNAL_INSTANCE, FUNCTION, INSTANCE, Ref, Refs, Scope
from perflint.analysis.own_attributes import reads_of, values_of
from perflint.analysis.phases.own_training import beside_own_training
from perflint.analysis.phases.phase import Phase, PhaseOf
from perflint.analysis.program import Program
from perflint.analysis.values.dtypes import Dtype
from perflint.analysis.values.implicit_copies import (
    COPYING_NAMES,
    OVERWRITING,
    copied_data,
    indices_of,
    written_element,
)
from perflint.analysis.values.implicit_reads import numbers_in
from perflint.analysis.values.kind import Device, Kind, Place, Tag
from perflint.analysis.values.origin import Provenance, is_from
from perflint.finding import Applicability, Confidence, Edit, Finding, Fix, Heat, Hop, Impact, Span
from perflint.ir import guards
from perflint.ir.callees import last_name as last_of
from perflint.ir.calls import argument, arguments_of, callee_name, has_unpacking, is_constant, keyword, of_tensor
from perflint.ir.control_flow import Condition, ControlFlow, Inherited
from perflint.ir.notation import is_text, last_name
from perflint.ir.summary import MODULE, CallFacts, FunctionFacts, LoopFacts
from perflint.rule_api.context import Context
from perflint.rule_api.rule import Calls, Claim, Claims, Classes, Functions, Listen, Loops, Nodes, Rule, Tier
from perflint.syntax.bindings import Binding, Definition
from perflint.syntax.file import SourceFile
from perflint.syntax.named import is_name, mentions_name
from perflint.syntax.suppressions import Malformed, Suppression
from perflint.syntax.walk import statements, walk
from perflint.system.patterns import pattern
from perflint.torch_model import (
    arrays,
    attention,
    compiling,
    counts,
    debugging,
    distributed,
    frameworks,
    host_work,
    images,
    loaders,
    modules,
    precision,
    randomness,
    sample_work,
    tensors,
    trackers,
    versions,
)
from perflint.torch_model.effects import Effect
from perflint.torch_model.hooks import Does
from perflint.torch_model.names import canonical, last

__all__ = [
    "CLASS",
    "COPYING_NAMES",
    "EXTERNAL",
    "EXTERNAL_INSTANCE",
    "FUNCTION",
    "INSTANCE",
    "KEEPING",
    "MODULE",
    "OVERWRITING",
    "Applicability",
    "Binding",
    "CallFacts",
    "Calls",
    "Claim",
    "Claims",
    "Classes",
    "Condition",
    "Confidence",
    "Context",
    "ControlFlow",
    "Definition",
    "Device",
    "DeviceQueue",
    "Does",
    "Dtype",
    "Edge",
    "Edit",
    "Effect",
    "Effects",
    "Entry",
    "Exposure",
    "Finding",
    "Fix",
    "FunctionFacts",
    "Functions",
    "Heat",
    "Hop",
    "Impact",
    "Inherited",
    "Kept",
    "Kind",
    "Listen",
    "LoopFacts",
    "LoopHeat",
    "Loops",
    "Malformed",
    "Nodes",
    "Phase",
    "PhaseOf",
    "Place",
    "Program",
    "Provenance",
    "Ref",
    "Refs",
    "Rule",
    "Scope",
    "SourceFile",
    "Span",
    "Suppression",
    "Tag",
    "Tier",
    "Transfer",
    "Witness",
    "argument",
    "arguments_of",
    "arrays",
    "attention",
    "beside_own_training",
    "bound",
    "callee_name",
    "canonical",
    "class_of",
    "compiling",
    "copied_data",
    "counts",
    "debugging",
    "definition_of",
    "distributed",
    "frameworks",
    "function_of",
    "guards",
    "has_unpacking",
    "host_work",
    "images",
    "impact_of_wait",
    "indices_of",
    "is_constant",
    "is_from",
    "is_in_training",
    "is_name",
    "is_text",
    "is_unreached",
    "is_wrapper",
    "keyword",
    "last",
    "last_name",
    "last_of",
    "loaders",
    "mentions_name",
    "modules",
    "numbers_in",
    "of_tensor",
    "pattern",
    "precision",
    "randomness",
    "reads_of",
    "sample_work",
    "statements",
    "tensors",
    "trackers",
    "transfer",
    "values_of",
    "versions",
    "walk",
    "ways_in",
    "written_element",
]
