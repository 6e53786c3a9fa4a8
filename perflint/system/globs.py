"""Patterns of ignore files and configurations, matched in time that no pattern can make long.

`pathspec` makes a regular expression of each, in which every `*` may give back what it took. With a dozen of them a
single name can take longer than anybody waits. A glob needs no such second thoughts: of the text between two stars the
first place it fits is as good as any later one, so each star but the last keeps what it has taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_STAR = "[^/]*"
#: Each `**` may stand for any number of folders; patterns with more of them than this are of no use to anybody.
_MOST_DOUBLE_STARS = 6


def spec_of(lines: Iterable[str]) -> GitIgnoreSpec:
    """The patterns of `lines`. Raises ValueError or re.error for one that does not read."""
    from pathspec import GitIgnoreSpec  # late: most of a project's folders have no ignore file

    spec = GitIgnoreSpec.from_lines(lines)
    harmless = True
    for pattern in spec.patterns:
        regex = getattr(pattern, "regex", None)
        if regex is not None and regex.pattern.count(".+") > _MOST_DOUBLE_STARS:
            raise ValueError("too many '**'")
        if regex is None or regex.pattern.count(_STAR) < 2:
            continue
        pattern.regex = re.compile(_without_second_thoughts(regex.pattern))
        harmless = False
    if harmless:
        return spec
    try:
        return GitIgnoreSpec(spec.patterns, backend="simple")  # the others do not know what has been written here
    except TypeError:  # older ones have no other
        return GitIgnoreSpec(spec.patterns)


def _without_second_thoughts(regex: str) -> str:
    first, *between, last = regex.split(_STAR)
    written = [first]
    for number, part in enumerate(between):
        if "(" in part:
            written.append(_STAR + part)
        else:
            # What a lookahead has matched it does not take back: an atomic group, which Python 3.10 lacks.
            written.append(f"(?=(?P<s{number}>{_STAR}?{part}))(?P=s{number})")
    return "".join((*written, _STAR, last))
