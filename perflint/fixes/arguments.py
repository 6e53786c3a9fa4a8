"""Arguments of calls: where each begins and ends, and how the call is laid out."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from perflint.finding import Edit
from perflint.fixes.layout import NOWHERE, Layout


@dataclass(frozen=True, slots=True)
class Argument:
    """Offsets of one argument with the parentheses around it. `comma` is that of the comma behind it, if any."""

    node: ast.expr | ast.keyword
    start: int
    end: int
    comma: int | None

    @property
    def is_unpacked_mapping(self) -> bool:
        return isinstance(self.node, ast.keyword) and self.node.arg is None


class Arguments:
    """The arguments of one call, in the order they are written."""

    def __init__(self, layout: Layout, call: ast.Call) -> None:
        self.layout = layout
        self.open, self.close = _parentheses(layout, call)
        self.each = self._read(call)

    def _read(self, call: ast.Call) -> list[Argument]:
        layout = self.layout
        nodes: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
        nodes.sort(key=lambda item: (item.lineno, item.col_offset))
        found: list[Argument] = []
        begin = self.open + 1
        for node in nodes:
            start = layout.skip(begin)
            if layout.is_bare_generator(node):
                return [Argument(node, start, self._last_before(start, self.close), None)]
            end = layout.range(node)[1]
            after = layout.skip(end)
            while layout.code[after] == ")" and after < self.close:
                end = after + 1
                after = layout.skip(end)
            comma = after if layout.code[after] == "," else None
            found.append(Argument(node, start, end, comma))
            begin = after + 1
        return found

    def _last_before(self, start: int, stop: int) -> int:
        """The end of the last token between two offsets."""
        end = position = start
        while position < stop:
            following = self.layout.skip(position)
            if following > position:
                position = following
            else:
                position += 1
                end = position
        return min(end, stop)

    def one_per_line(self) -> bool:
        """Whether each argument begins a line of its own; the first may stand behind the parenthesis."""
        layout = self.layout
        line = -1
        for index, item in enumerate(self.each):
            if index and layout.position(item.start)[0] == line:
                return False
            if len(self.each) == 1 and not layout.begins_line(item.start):
                return False
            line = layout.position(item.end)[0]
        return bool(self.each) and layout.begins_line(self._lead(self.each[-1]))

    def _lead(self, item: Argument) -> int:
        """Where the argument begins, or the comma that stands before it at the beginning of its line."""
        before = self.layout.before(item.start)
        if before.strip() == ",":
            return self.layout.line_start(item.start) + before.index(",")
        return item.start

    def add(self, text: str) -> Edit:
        """Write one more argument, after the others but before a final `**mapping`."""
        if not self.each:
            return self.layout.insert(self.close, text)
        if self.layout.is_bare_generator(self.each[0].node):
            inside = self.layout.code[self.open + 1 : self.close]
            return self.layout.edit(self.open + 1, self.close, f"({inside}), {text}")
        kept = list(self.each)
        while kept and kept[-1].is_unpacked_mapping:
            kept.pop()
        if not kept:
            first = self.each[0]
            new_line = f"\n{self.layout.indent(first.start)}" if self.one_per_line() else " "
            return self.layout.insert(first.start, f"{text},{new_line}")
        return self._add_after(kept[-1], text)

    def _add_after(self, item: Argument, text: str) -> Edit:
        layout = self.layout
        if not self.one_per_line():
            if item.comma is None:
                return layout.insert(item.end, f", {text}")
            return layout.insert(item.comma + 1, f" {text},")
        last = self.each[-1]
        if self._lead(last) < last.start:
            # Commas begin the lines here.
            end = layout.line_end(item.end) if layout.ends_line(item.end) else item.end
            return layout.insert(end, f"\n{layout.before(last.start)}{text}")
        indent = layout.before(item.start)
        if indent.strip():
            indent = layout.before(last.start)
        if item.comma is not None:
            end = layout.line_end(item.comma) if layout.ends_line(item.comma + 1) else item.comma + 1
            return layout.insert(end, f"\n{indent}{text},")
        end = layout.line_end(item.end) if layout.ends_line(item.end) else item.end
        return layout.edit(item.end, end, f",{layout.code[item.end : end]}\n{indent}{text}")

    def remove(self, node: ast.expr | ast.keyword) -> Edit:
        """Take an argument away, with its comma and, where it stands on a line of its own, that line."""
        index = next((index for index, item in enumerate(self.each) if item.node is node), None)
        if index is None:
            return NOWHERE
        layout, item = self.layout, self.each[index]
        end = item.end if item.comma is None else item.comma + 1
        if len(self.each) == 1:
            whole = not layout.has_comment(self.open + 1, self.close)
            return layout.edit(self.open + 1, self.close, "") if whole else layout.edit(item.start, end, "")
        previous = self.each[index - 1] if index else None
        if previous is not None and item.comma is None:
            return self._remove_last(previous, item)
        if self._owns_lines(item, end):
            return layout.edit(layout.line_start(item.start), layout.line_end(end) + 1, "")
        if index + 1 < len(self.each) and not layout.code[end : self.each[index + 1].start].strip(" \t"):
            return layout.edit(item.start, self.each[index + 1].start, "")
        if previous is not None and previous.comma is not None:
            if not layout.code[previous.comma + 1 : item.start].strip(" \t"):
                return layout.edit(previous.comma + 1, end, "")
        return layout.edit(item.start, end, "")

    def _owns_lines(self, item: Argument, end: int) -> bool:
        return self.layout.begins_line(item.start) and self.layout.ends_line(end)

    def loses_comment(self, node: ast.expr | ast.keyword) -> bool:
        """Whether a comment goes when the argument is removed."""
        for item in self.each:
            if item.node is node:
                end = item.end if item.comma is None else item.comma + 1
                if len(self.each) > 1 and self._owns_lines(item, end) and item.comma is not None:
                    end = self.layout.line_end(end)
                return self.layout.has_comment(item.start, end)
        return False

    def _remove_last(self, previous: Argument, item: Argument) -> Edit:
        """The last one takes the comma before it along, and leaves the comments between the two."""
        layout = self.layout
        comma = previous.end if previous.comma is None else previous.comma
        between = layout.code[comma + 1 : item.start]
        kept = between if layout.has_comment(comma + 1, item.start) else ""
        if layout.ends_line(item.end):
            kept = kept.rstrip()
            while kept.rpartition("\n")[2].strip() == "\\":
                kept = kept.rpartition("\n")[0].rstrip()  # a backslash goes on to a line: the one that went
        return layout.edit(comma, item.end, kept)


def _parentheses(layout: Layout, call: ast.Call) -> tuple[int, int]:
    start = layout.skip(layout.range(call.func)[1])
    while layout.code[start] == ")":  # those around the callee
        start = layout.skip(start + 1)
    return start, layout.range(call)[1] - 1
