"""JSON schemas: of the configuration, for editors, and of the `json` report and of an observation, for the tools that
read them."""

from __future__ import annotations

from typing import Any

from perflint.finding import Applicability, Confidence, Heat, Impact, Part, Verdict
from perflint.observe.document import VERSION as OBSERVATION
from perflint.observe.model.hardware import HARDWARE
from perflint.observe.trace import KINDS, PHASES
from perflint.report import FORMATS
from perflint.report.order import GROUPS, SORTS
from perflint.system.time_limit import LONGEST

Json = dict[str, Any]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_STRINGS: Json = {"type": "array", "items": {"type": "string"}}
_LEVELS = [level.label for level in Confidence]
_LEVEL = "|".join(_LEVELS)
_FAIL_ON = f"^((impact=)?({_LEVEL})|confidence=({_LEVEL}))(,((impact=)?({_LEVEL})|confidence=({_LEVEL})))*$"

_TEXT: Json = {"type": "string"}
_FROM_ZERO: Json = {"type": "number", "minimum": 0}
_DURATION: Json = {
    "anyOf": [
        {"type": "number", "exclusiveMinimum": 0},
        {"type": "string", "pattern": r"^\s*(?=[\d.]*[1-9])\d+(\.\d+)?\s*(ms|s|m|min|h)?\s*$"},
    ]
}

_VERIFY: dict[str, tuple[str, Json]] = {
    "bench": ("Callable that measures fixes: `package.module:name` or `file.py:name`.", _TEXT),
    "command": ("Command that measures fixes.", _TEXT),
    "metric": ("Pattern with a group that matches the printed figure to compare.", _TEXT),
    "higher-is-better": ("Whether a higher figure is better.", {"type": "boolean"}),
    "result": ("Pattern with a group that matches printed text that no fix may change.", _TEXT),
    "budget": ("Time for one comparison: seconds, or a text such as `2m`. Default: 60s.", _DURATION),
    "timeout": ("Time for one run. Default: 300s.", _DURATION),
    "precision": ("Stop a comparison when its ratio is known to this precision. Default: 0.025.", _FROM_ZERO),
    "device": ("cpu, cuda, cuda:1, mps, xpu, auto (the default), or simulated, which counts.", _TEXT),
    "rtol": ("Relative tolerance of results. Default: 1e-5.", _FROM_ZERO),
    "atol": ("Absolute tolerance of results. Default: 1e-8.", _FROM_ZERO),
    "seed": ("Random seed of both sides. Default: 0.", {"type": "integer"}),
    "threads": (
        "Threads of torch, OpenMP and BLAS on both sides; 0: the libraries choose. Default: OMP_NUM_THREADS, else 1.",
        {"type": "integer", "minimum": 0},
    ),
    "link": ("Data folders that are linked, not copied, into the copy of the tree.", _STRINGS),
    "min-speedup": ("Minimum speed-up of a kept fix.", _FROM_ZERO),
}

_KEYS: dict[str, tuple[str, Json]] = {
    "select": ("Rules to run: codes, prefixes, names or ALL. Default: all core rules.", _STRINGS),
    "ignore": ("Rules not to run.", _STRINGS),
    "extend-select": ("Additional rules to run; enables extra rules.", _STRINGS),
    "extra": ("Whether all extra rules run.", {"type": "boolean"}),
    "confidence": ("Minimum confidence of reported findings.", {"enum": _LEVELS}),
    "impact": (
        "Minimum impact of printed findings. Default: medium in text formats, low in the others.",
        {"enum": _LEVELS},
    ),
    "fail-on": (
        (
            "Findings that cause exit code 1, as in `impact=medium,confidence=high`. Default: `impact`, or medium "
            "without it."
        ),
        {"type": "string", "pattern": _FAIL_ON},
    ),
    "exclude": ("Files and folders to exclude, as .gitignore patterns.", _STRINGS),
    "per-file-ignores": (
        "Rules not to run in files that match a .gitignore pattern.",
        {"type": "object", "additionalProperties": _STRINGS},
    ),
    "target-torch": (
        "Minimum supported version of torch. Default: from the project's requirements, else the newest.",
        {"type": "string", "pattern": r"^\d+\.\d+(\.\d+)?$"},
    ),
    "output-format": ("Output format of `perflint check`.", {"enum": list(FORMATS)}),
    "sort": ("Sort order of findings. Default: impact in text formats, path in the others.", {"enum": list(SORTS)}),
    "group-by": ("Grouping of findings in text formats. Default: none.", {"enum": list(GROUPS)}),
    "max-findings": ("Print only this many of the worst findings.", {"type": "integer", "minimum": 1}),
    "cache-dir": ("Cache folder, relative to this file.", {"type": "string", "minLength": 1}),
    "jobs": ("Number of processes. Default: the number of processors.", {"type": "integer", "minimum": 1}),
    "baseline": (
        "Baseline file, relative to this file.",
        {"type": "string", "minLength": 1},
    ),
    "observed": (
        "Observation file to compare findings with, relative to this file.",
        {"type": "string", "minLength": 1},
    ),
    "time-limit": (
        "Processor time limit per file in seconds; 0 means no limit. Default: 30.",
        {"type": "number", "minimum": 0, "maximum": LONGEST},
    ),
    "verify": (
        "Settings of `perflint verify`.",
        {
            "type": "object",
            "properties": {key: {"description": said, **schema} for key, (said, schema) in _VERIFY.items()},
            "additionalProperties": False,
        },
    ),
}


def configuration() -> Json:
    """Of the table `[tool.perflint]`, which is the whole of a `perflint.toml`."""
    properties = {key: {"description": said, **schema} for key, (said, schema) in _KEYS.items()}
    return {
        "$schema": _DIALECT,
        "title": "perflint: [tool.perflint] or perflint.toml",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }


def _object(properties: Json, *optional: str) -> Json:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def report() -> Json:
    """Of what `perflint check --output-format json` prints. Later versions may add properties."""
    number: Json = {"type": "integer", "minimum": 1}
    text: Json = {"type": "string"}
    span: Json = {"line": number, "column": number, "end_line": number, "end_column": number}
    cell: Json = {"description": "In a notebook, its cell, counted from 1; lines are those of the cell.", **number}
    code: Json = {"description": "The rule that found the same defect there.", **text}
    hop = _object({"path": text, "line": number, "text": text, "cell": cell, "code": code}, "cell", "code")
    edit = _object({**span, "text": text, "cell": cell}, "cell")
    fix = _object(
        {
            "title": text,
            "applicability": {"enum": [one.label for one in Applicability]},
            "reason": {"description": "Why the fix is not safe; empty if it is.", **text},
            "edits": {"type": "array", "items": edit},
        }
    )
    maybe_number: Json = {"anyOf": [_FROM_ZERO, {"type": "null"}]}
    observed = _object(
        {
            "verdict": {"enum": [one.value for one in Verdict]},
            "per_step": {"description": "Occurrences per step, mean over the steady steps.", **maybe_number},
            "bytes": {"description": "Bytes copied or allocated per step.", **maybe_number},
            "modelled_ms": {"description": "What the step would be shorter without these waits.", **maybe_number},
            "modelled_share": {"description": "The part of the step that is, 0 to 1.", **maybe_number},
            "hidden": {"description": "Costs nothing as long as other waits are there.", "type": "boolean"},
            "hardware": {"type": ["string", "null"]},
            "by_rule": {"description": "False: only the observation found this.", "type": "boolean"},
        }
    )
    run = _object(
        {
            "device": text,
            "hardware": text,
            "steps": _FROM_ZERO,
            "waits": _FROM_ZERO,
            "launches": _FROM_ZERO,
            "modelled_ms": maybe_number,
            "without_waits_ms": maybe_number,
            "bound_by": {"enum": ["host", "device", "copies", None]},
            "changed_functions": _FROM_ZERO,
        }
    )
    finding = _object(
        {
            "code": text,
            "name": text,
            "path": {"description": "From the working directory, with forward slashes.", **text},
            **span,
            "message": text,
            "confidence": {"enum": _LEVELS},
            "impact": {"enum": [one.label for one in Impact]},
            "heat": {"enum": [one.label for one in Heat]},
            "part": {"description": "The part of the program that it costs.", "enum": [one.value for one in Part]},
            "why_hot": {"type": "array", "items": hop},
            "fix": {"anyOf": [fix, {"type": "null"}]},
            "advice": text,
            "related": {"type": "array", "items": hop},
            "cell": cell,
            "observed": {"description": "With `--observed` only: what that run showed here.", **observed},
        },
        "cell",
        "observed",
    )
    maybe: Json = {"type": ["integer", "null"], "minimum": 1}
    error = _object({"path": text, "line": maybe, "column": maybe, "message": text})
    return {
        "$schema": _DIALECT,
        "title": "perflint check --output-format json",
        "description": "Lines and columns count from 1, columns in characters, ends are exclusive.",
        **_object(
            {
                "version": text,
                "findings": {"type": "array", "items": finding},
                "errors": {"type": "array", "items": error},
                "files": {"type": "integer", "minimum": 0},
                "observation": {"description": "With `--observed` only: that run.", **run},
            },
            "observation",
        ),
    }


def observation() -> Json:
    """Of what `perflint observe --output FILE` writes. Later versions may add properties."""
    line: Json = {"type": "integer", "minimum": 1}
    count: Json = {"type": "integer", "minimum": 0}
    maybe_ms: Json = {"anyOf": [_FROM_ZERO, {"type": "null"}]}
    frame = _object(
        {
            "path": _TEXT,
            "line": count,
            "function": _TEXT,
            "library": {"description": "Not of the project: for reading only.", "const": True},
        },
        "library",
    )
    stack: Json = {"description": "Outermost first.", "type": "array", "items": frame}
    place: Json = {"path": _TEXT, "line": line, "column": line, "end_line": line, "end_column": line}
    sums: Json = {"waits": count, "launches": count, "bytes_to_device": count, "bytes_to_host": count}
    seen = _object(
        {
            **place,
            "kind": {"enum": list(KINDS)},
            "waits": {"description": "Whether the host could not go on before the device was done.", "type": "boolean"},
            "per_step": {"description": "Mean over the steady steps.", **_FROM_ZERO},
            "bytes": {"description": "Per step, mean over the steady steps.", **_FROM_ZERO},
            "modelled_ms": {
                "description": "Time the step would save without these synchronizations; null without any.",
                **maybe_ms,
            },
            "phase": {"enum": list(PHASES)},
            "in_backward": {"description": "Happened in the backward pass of this forward line.", "type": "boolean"},
            "operation": _TEXT,
            "counts": {
                "description": "By number of the step.",
                "type": "object",
                "propertyNames": {"pattern": r"^\d+$"},
                "additionalProperties": count,
            },
            "bytes_in_all": count,
            "function": {"description": "The innermost function; empty outside all.", "type": "string"},
            "function_hash": {
                "description": "Hash of the function's text, without indentation and comments.",
                "type": "string",
            },
            "stack": stack,
            "finding": {"description": "The rule that found this line.", "type": ["string", "null"]},
            "site": {"description": "Index into `sites`.", **count},
        }
    )
    step = _object(
        {
            **{name: {"description": "Mean over the steady steps.", **_FROM_ZERO} for name in sums},
            "modelled_ms": {"description": "Length of the kept step, modelled for `hardware`.", **maybe_ms},
            "without_waits_ms": {"description": "The same without any wait.", **maybe_ms},
            "host_ms": {"description": "Busy time of the host in it.", **maybe_ms},
            "device_ms": {"description": "Busy time of the device in it.", **maybe_ms},
            "bound_by": {"enum": ["host", "device", "copies", None]},
            "measured_ms": {"description": "Mean length on a real device.", **maybe_ms},
        }
    )
    total = _object({"index": count, **sums, "measured_ms": maybe_ms})
    region = _object({"line": line, "end_line": line, "name": _TEXT, "hash": _TEXT})
    row: Json = {
        "description": "operation, kind, waits, site, phase, flops, bytes, launches, pinned, dtype, microseconds of "
        "the host where measured; names by index.",
        "type": "array",
        "minItems": 11,
        "maxItems": 11,
    }
    trace = _object(
        {
            "index": count,
            "operations": _STRINGS,
            "kinds": _STRINGS,
            "phases": _STRINGS,
            "rows": {"type": "array", "items": row},
        }
    )
    run: Json = {"type": "array", "items": line, "minItems": 2, "maxItems": 2}
    return {
        "$schema": _DIALECT,
        "title": "perflint observe --output FILE",
        "description": "Lines and columns count from 1, columns in characters, ends are exclusive. What is called "
        "modelled was computed, not measured.",
        **_object(
            {
                "version": {"description": "Of this format.", "const": OBSERVATION},
                "perflint": _TEXT,
                "device": {"enum": ["simulated", "cuda"]},
                "hardware": {"enum": list(HARDWARE)},
                "torch": _TEXT,
                "python": _TEXT,
                "program": _STRINGS,
                "directory": {"description": "Base folder of paths, relative to this file.", "type": "string"},
                "steps": {"description": "Steady steps: those after the warm-up.", **count},
                "warmup": count,
                "step": {"anyOf": [step, {"type": "null"}]},
                "totals": {"type": "array", "items": total},
                "errors": _STRINGS,
                "ended": {"description": "Why the program ended early; empty if it did not.", "type": "string"},
                "lines": {"type": "array", "items": seen},
                "sites": {"type": "array", "items": _object({**place, "stack": stack})},
                "ran": {
                    "description": "Lines that ran in steady steps, as runs of first and last, by file.",
                    "type": "object",
                    "additionalProperties": {"type": "array", "items": run},
                },
                "functions": {
                    "description": "The functions those lines stand in, by file.",
                    "type": "object",
                    "additionalProperties": {"type": "array", "items": region},
                },
                "trace": {"anyOf": [trace, {"type": "null"}]},
            }
        ),
    }
