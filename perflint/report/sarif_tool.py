"""The tool and its rules as SARIF describes them; rules of plug-ins stand under extensions of their own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perflint.finding import Confidence, Finding, Impact
from perflint.report.visible import visible, visible_lines
from perflint.rule_api.page import file_of, markdown, page_of

if TYPE_CHECKING:
    from perflint.rule_api.rule import Rule

Json = dict[str, Any]
_HOME = "https://pypi.org/project/torch-perflint/"
#: Where the pages of the rules lie in the repository.
PAGES = "docs/rules"
_PRECISION = {Confidence.HIGH: "high", Confidence.MEDIUM: "medium", Confidence.LOW: "low"}
# `error` fails a pull request's check by default; wasted time is no error.
LEVELS = {Impact.HIGH: "warning", Impact.MEDIUM: "warning", Impact.LOW: "note"}
_SEVERITY = {Impact.HIGH: "warning", Impact.MEDIUM: "warning", Impact.LOW: "recommendation"}
NOTIFICATIONS = (
    ("perflint/error", "Input or tool at fault: what is named here was not checked in full."),
    ("perflint/cut", "The output was cut to what code scanning takes."),
)


@dataclass(frozen=True, slots=True)
class Tool:
    """`groups` are the tool itself and then its extensions, each with descriptors; `at` says where a code stands."""

    version: str
    groups: tuple[tuple[str, tuple[Json, ...]], ...]
    at: dict[str, tuple[int, int]]

    @classmethod
    def of(cls, rules: Sequence[type[Rule]], findings: Sequence[Finding], version: str) -> Tool:
        """All rules, and a bare descriptor for each finding of a code that no rule has (the engine's own)."""
        grouped: dict[str, list[Json]] = {"perflint": []}
        for rule in sorted(rules, key=lambda rule: rule.code):
            grouped.setdefault(_owner(rule), []).append(_descriptor(rule))
        known = {rule.code for rule in rules}
        for finding in sorted(findings, key=lambda finding: finding.code):
            if finding.code not in known:
                known.add(finding.code)
                grouped["perflint"].append(_bare(finding))
        groups = tuple((name, tuple(described)) for name, described in grouped.items())
        at = {one["id"]: (group, index) for group, (_, many) in enumerate(groups) for index, one in enumerate(many)}
        return cls(version, groups, at)

    def reference(self, code: str) -> Json:
        """What a result says about its rule; one of an extension is named by `rule` alone, as validators demand."""
        group, index = self.at[code]
        if group == 0:
            return {"ruleId": code, "ruleIndex": index}
        return {"rule": {"id": code, "index": index, "toolComponent": {"index": group - 1}}}

    def described(self) -> Json:
        (name, rules), *extensions = self.groups
        driver: Json = {
            "name": name,
            "fullName": "perflint: performance mistakes in PyTorch training code",
            "semanticVersion": self.version,
            "informationUri": _HOME,
            "rules": list(rules),
            "notifications": [
                {
                    "id": code,
                    "name": _pascal(code.partition("/")[2]),
                    "shortDescription": {"text": text},
                    "fullDescription": {"text": text},
                    "help": {"text": text},
                }
                for code, text in NOTIFICATIONS
            ],
        }
        described: Json = {"driver": driver}
        if extensions:
            described["extensions"] = [{"name": name, "rules": list(rules)} for name, rules in extensions]
        return described


def _owner(rule: type[Rule]) -> str:
    """Only our own rules have codes that begin with TPL."""
    return "perflint" if rule.code.startswith("TPL") else rule.__module__.partition(".")[0]


def _descriptor(rule: type[Rule]) -> Json:
    page = page_of(rule)
    why = " ".join(page.sections.get("Why is this slow?", page.summary).split())
    full = sentence(f"{sentence(page.summary)} {why}".strip() if why != page.summary else page.summary)
    tags = ["performance", "pytorch", rule.tier.value]
    if rule.needs_accelerator:
        tags.append("accelerator")
    return {
        "id": rule.code,
        "name": _pascal(rule.name),
        "shortDescription": {"text": visible_lines(sentence(page.summary))},
        "fullDescription": {"text": visible_lines(full if len(full) <= 1024 else full[:1020] + "...")},
        "help": {"text": visible_lines(rule.page()), "markdown": visible_lines(markdown(rule))},
        **_help_uri(rule),
        "defaultConfiguration": {"level": LEVELS[rule.impact], "enabled": rule.tier.value == "core"},
        "properties": {
            "precision": _PRECISION[rule.confidence],
            "problem.severity": _SEVERITY[rule.impact],
            "tags": tags,
        },
    }


def _help_uri(rule: type[Rule]) -> Json:
    """The rule's page in the repository that the installed package names; nothing where it names none.

    An address that leads nowhere is worse than none: the page itself goes with `help`.
    """
    repository = _repository()
    if repository is None or _owner(rule) != "perflint":
        return {}
    return {"helpUri": f"{repository}/blob/HEAD/{PAGES}/{file_of(rule)}"}


def _repository() -> str | None:
    """The address that the package's metadata gives as `Repository`."""
    from importlib import metadata

    try:
        given = metadata.metadata("torch-perflint").get_all("Project-URL") or []
    except metadata.PackageNotFoundError:
        return None
    urls = dict(re.split(r"\s*,\s*", str(one), maxsplit=1) for one in given if "," in str(one))
    address = {label.lower(): url for label, url in urls.items()}.get("repository")
    return address.rstrip("/").removesuffix(".git") if address else None


def _bare(finding: Finding) -> Json:
    text = sentence(visible(finding.name.replace("-", " ").capitalize()))
    return {
        "id": finding.code,
        "name": _pascal(visible(finding.name)),
        "shortDescription": {"text": text},
        "fullDescription": {"text": text},
        "help": {"text": text, "markdown": text},
        "defaultConfiguration": {"level": LEVELS[finding.impact]},
        "properties": {
            "precision": _PRECISION[finding.confidence],
            "problem.severity": _SEVERITY[finding.impact],
            "tags": ["performance", "pytorch"],
        },
    }


def sentence(text: str) -> str:
    """`text` with a full stop where nothing ends it."""
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _pascal(slug: str) -> str:
    """`blocking-transfer` as `BlockingTransfer`, the form that validators ask of a rule's name."""
    return "".join(part[:1].upper() + part[1:] for part in slug.split("-"))[:255]
