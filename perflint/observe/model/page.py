"""docs/hardware.md, made from the table of hardware: `python -m perflint.observe.model.page > docs/hardware.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from perflint.observe.model.hardware import HARDWARE, Hardware, Source

_MARK = "<!-- Made by `python -m perflint.observe.model.page`; change perflint/observe/model/hardware.py instead. -->"
_PEAKS = ("float64", "float32", "tfloat32", "float16", "bfloat16", "float8", "int8")
_ASSUMED = (
    ("dispatch_us", "one eager operation on the host, Python included", "us"),
    ("launch_us", "each further kernel of the same operation, on the host", "us"),
    ("wait_us", "a wait that finds nothing to wait for, on the host", "us"),
    ("floor_us", "the least time a kernel takes the device", "us"),
    ("host_copy", "the host's copies in its own memory (pageable memory is copied once more)", "GB/s"),
    ("reached_flops", "the part of the peak that large products reach", ""),
    ("reached_bandwidth", "the part of a bandwidth that large copies reach", ""),
)


_ABOUT = """\
What `perflint observe` replays a recorded step on. Every time that comes of it is **modelled**: computed from the
figures below, not measured. `--as NAME` chooses the accelerator; `--what-if` replays the same step on all of them."""
_PUBLISHED = """\
Peaks are dense (without structured sparsity), in 10^12 operations a second. A type that an accelerator does not have is
computed as float32."""
_HONESTLY = """\
No data sheet has these. They are the same for all accelerators, round, and were **not measured** for this table; ranks
of lines depend on them little, milliseconds a lot."""


def page() -> str:
    blocks = [_MARK, "# Hardware models", _ABOUT, "## Published figures", _PUBLISHED, "\n".join(_published())]
    blocks += ["\n".join(_sources()), "## Assumptions", _HONESTLY, "\n".join(_assumed())]
    return "\n\n".join(blocks) + "\n"


def _published() -> Iterator[str]:
    heads = ["name", "`--as`", *_PEAKS, "memory, GB/s", "bus, GB/s", "sources"]
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    numbers = _numbers()
    for one in HARDWARE.values():
        peaks = [f"{one.peaks[dtype] / 1e12:g}" if dtype in one.peaks else "-" for dtype in _PEAKS]
        used = sorted({numbers[source] for source in one.sources.values()})
        named = " ".join(f"[{number}](#sources)" for number in used)
        cells = [one.name, f"`{one.key}`", *peaks, f"{one.bandwidth / 1e9:g}", f"{one.bus / 1e9:.1f}", named]
        yield f"| {' | '.join(cells)} |"


def _numbers() -> dict[Source, int]:
    """Each source by its number, in the order of the table."""
    found = dict.fromkeys(source for one in HARDWARE.values() for source in one.sources.values())
    return {source: number for number, source in enumerate(found, 1)}


def _sources() -> Iterator[str]:
    yield "### Sources"
    yield ""
    yield "The vendor's document, and the page on which its figures were read and compared."
    yield ""
    for source, number in _numbers().items():
        yield f"{number}. {source.document} ({source.read_at})"


def _assumed() -> Iterator[str]:
    yield "| what | value |"
    yield "|---|---|"
    for name, said, unit in _ASSUMED:
        values = sorted({_value(one, name, unit) for one in HARDWARE.values()})
        yield f"| {said} | {', '.join(values)} |"


def _value(one: Hardware, name: str, unit: str) -> str:
    value = getattr(one, name) / (1e9 if unit == "GB/s" else 1)
    return f"{value:g} {unit}".strip()


if __name__ == "__main__":
    sys.stdout.write(page())
