"""The stable face for rule writers: everything a rule imports, and nothing else of perflint."""

from __future__ import annotations

from perflint.context import Context, argument, callee_name, has_unpacking, is_constant, keyword
from perflint.facts import guards
from perflint.finding import Applicability, Confidence, Edit, Finding, Fix, Heat, Hop, Impact, Span
from perflint.kinds.kind import Device, Kind, Place, Tag
from perflint.pytorch import frameworks, loaders
from perflint.rule import Calls, Classes, Functions, Listen, Loops, Nodes, Rule, Tier

__all__ = [
    "Applicability",
    "Calls",
    "Classes",
    "Confidence",
    "Context",
    "Device",
    "Edit",
    "Finding",
    "Fix",
    "Functions",
    "Heat",
    "Hop",
    "Impact",
    "Kind",
    "Listen",
    "Loops",
    "Nodes",
    "Place",
    "Rule",
    "Span",
    "Tag",
    "Tier",
    "argument",
    "callee_name",
    "frameworks",
    "guards",
    "has_unpacking",
    "is_constant",
    "keyword",
    "loaders",
]
