"""The stable face for rule writers: everything a rule imports, and nothing else of perflint."""

from __future__ import annotations

from perflint.context import Context, argument, callee_name, has_unpacking, is_constant, keyword
from perflint.facts import guards
from perflint.facts.notation import is_text, last_name
from perflint.facts.summary import MODULE, CallFacts, FunctionFacts, LoopFacts
from perflint.finding import Applicability, Confidence, Edit, Finding, Fix, Heat, Hop, Impact, Span
from perflint.kinds.kind import Device, Kind, Place, Tag
from perflint.own_training import beside_own_training
from perflint.patterns import pattern
from perflint.program.edges import Edge
from perflint.program.epochs import LoopHeat
from perflint.program.program import Program
from perflint.program.refs import CLASS, EXTERNAL, EXTERNAL_INSTANCE, FUNCTION, INSTANCE, Ref, Refs, Scope
from perflint.pytorch import (
    arrays,
    attention,
    compiling,
    debugging,
    distributed,
    frameworks,
    loaders,
    modules,
    precision,
    randomness,
    tensors,
    trackers,
    versions,
)
from perflint.pytorch.hooks import Does
from perflint.pytorch.names import canonical, last
from perflint.rule import Calls, Claim, Claims, Classes, Functions, Listen, Loops, Nodes, Rule, Tier
from perflint.source.bindings import Definition
from perflint.source.file import SourceFile
from perflint.source.suppressions import Malformed, Suppression
from perflint.source.walk import statements, walk
from perflint.unreached import is_unreached

__all__ = [
    "CLASS",
    "EXTERNAL",
    "EXTERNAL_INSTANCE",
    "FUNCTION",
    "INSTANCE",
    "MODULE",
    "Applicability",
    "CallFacts",
    "Calls",
    "Claim",
    "Claims",
    "Classes",
    "Confidence",
    "Context",
    "Definition",
    "Device",
    "Does",
    "Edge",
    "Edit",
    "Finding",
    "Fix",
    "FunctionFacts",
    "Functions",
    "Heat",
    "Hop",
    "Impact",
    "Kind",
    "Listen",
    "LoopFacts",
    "LoopHeat",
    "Loops",
    "Malformed",
    "Nodes",
    "Place",
    "Program",
    "Ref",
    "Refs",
    "Rule",
    "Scope",
    "SourceFile",
    "Span",
    "Suppression",
    "Tag",
    "Tier",
    "argument",
    "arrays",
    "attention",
    "beside_own_training",
    "callee_name",
    "canonical",
    "compiling",
    "debugging",
    "distributed",
    "frameworks",
    "guards",
    "has_unpacking",
    "is_constant",
    "is_text",
    "is_unreached",
    "keyword",
    "last",
    "last_name",
    "loaders",
    "modules",
    "pattern",
    "precision",
    "randomness",
    "statements",
    "tensors",
    "trackers",
    "versions",
    "walk",
]
