"""Random edits of a project, as people make them: each changes one thing, many change what other files are told."""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path

_NUMBER = re.compile(r"\b\d+\b")
_STATEMENTS = (ast.Expr, ast.Assign, ast.AugAssign, ast.Return)
#: Tables of `[tool.perflint]`, from none to one that changes what every file may find.
_SETTINGS = (
    "",
    'extend-select = ["TPL405"]',
    'ignore = ["TPL1"]',
    "extra = true",
    'target-torch = "1.13"',
    'target-torch = "2.7"',
    '[tool.perflint.per-file-ignores]\n"**/*e*.py" = ["TPL2", "TPL303"]',
    'confidence = "high"',
)


class Editor:
    """Edits the files of `root` in an order that `seed` decides, and tells what it did."""

    def __init__(self, root: Path, seed: int, *, settings: bool = True) -> None:
        self.root = root
        self.random = random.Random(seed)
        self._before: list[tuple[Path, str | None]] = []
        self._edits: list[Callable[[], str]] = [
            self._change_number, self._add_comment, self._add_comment, self._call_another, self._call_another,
            self._remove_statement, self._duplicate_statement, self._rename_function, self._rename_everywhere,
            self._put_in_loop, self._put_in_loop, self._put_under_guard, self._take_out, self._delete_file,
            self._copy_file, self._drop_import, self._swap_name, self._break_file, self._go_back,
            self._go_back,
        ]  # fmt: skip
        if settings:
            self._edits += [self._change_settings, self._change_requirements]

    def edit(self) -> str:
        """Make one edit that changes a file."""
        for _ in range(200):
            done = self.random.choice(self._edits)()
            if done:
                return done
        raise RuntimeError("there is nothing left to edit")

    # What edits are made of.

    def _files(self) -> list[Path]:
        return sorted(path for path in self.root.rglob("*.py") if ".perflint_cache" not in path.parts)

    def _pick(self) -> tuple[Path, list[str], ast.Module | None]:
        file = self.random.choice(self._files())
        text = file.read_text(encoding="utf-8")
        try:
            return file, text.splitlines(keepends=True), ast.parse(text)
        except SyntaxError:
            return file, text.splitlines(keepends=True), None

    def _write(self, file: Path, text: str | None, what: str) -> str:
        before = file.read_text(encoding="utf-8") if file.exists() else None
        if before == text:
            return ""
        self._before.append((file, before))
        if text is None:
            file.unlink()
        else:
            file.write_text(text, encoding="utf-8")
        return f"{what} ({file.relative_to(self.root).as_posix()})"

    def _statement(self, module: ast.Module | None) -> ast.stmt | None:
        found = [
            node
            for node in ast.walk(module or ast.Module([], []))
            if isinstance(node, _STATEMENTS) and node.lineno == node.end_lineno
        ]
        return self.random.choice(found) if found else None

    def _on_statement(self, what: str, change: Callable[[str, str], Sequence[str]]) -> str:
        """Replace the line of one statement by those that `change` makes of its indentation and its words."""
        file, lines, module = self._pick()
        statement = self._statement(module)
        if statement is None:
            return ""
        line = lines[statement.lineno - 1]
        words = line.strip()
        indent = line[: len(line) - len(line.lstrip())]
        if not words or ";" in words or words.startswith(("if ", "for ", "with ", "def ", "else", "class ")):
            return ""
        made = [f"{indent}{part}\n" for part in change(indent, words)]
        text = "".join([*lines[: statement.lineno - 1], *made, *lines[statement.lineno :]])
        try:
            ast.parse(text)
        except SyntaxError:
            return ""
        return self._write(file, text, what)

    # Edits.

    def _change_number(self) -> str:
        file, lines, _ = self._pick()
        places = [index for index, line in enumerate(lines) if _NUMBER.search(line)]
        if not places:
            return ""
        place = self.random.choice(places)
        lines[place] = _NUMBER.sub(lambda found: str(int(found.group()) + 1), lines[place], count=1)
        return self._write(file, "".join(lines), "change a number")

    def _add_comment(self) -> str:
        return self._on_statement("add a comment", lambda _, words: ["# a remark", words])

    def _call_another(self) -> str:
        name = self.random.choice(self._functions() or [""])
        if not name:
            return ""
        return self._on_statement(f"call {name}", lambda _, words: [f"{name}()", words])

    def _remove_statement(self) -> str:
        return self._on_statement("remove a statement", lambda _, __: ["pass"])

    def _duplicate_statement(self) -> str:
        return self._on_statement("say it twice", lambda _, words: [words, words])

    def _put_in_loop(self) -> str:
        header = self.random.choice(["for batch in train_loader:", "for _ in range(3):", "while True:"])
        return self._on_statement("put in a loop", lambda _, words: [header, f"    {words}"])

    def _put_under_guard(self) -> str:
        header = self.random.choice(["if step % 100 == 0:", "with torch.no_grad():", "if self.training:"])
        return self._on_statement("put under a guard", lambda _, words: [header, f"    {words}"])

    def _take_out(self) -> str:
        """Move a one-line body in front of its loop or condition."""
        file, lines, module = self._pick()
        found = [
            node
            for node in ast.walk(module or ast.Module([], []))
            if isinstance(node, (ast.For, ast.If, ast.With, ast.While)) and len(node.body) == 1
        ]
        if not found:
            return ""
        node = self.random.choice(found)
        body = node.body[0]
        if body.lineno != body.end_lineno or body.lineno == node.lineno:
            return ""
        words = lines[body.lineno - 1].strip()
        header = lines[node.lineno - 1]
        indent = header[: len(header) - len(header.lstrip())]
        lines[body.lineno - 1] = lines[body.lineno - 1].replace(words, "pass", 1)
        lines.insert(node.lineno - 1, f"{indent}{words}\n")
        try:
            ast.parse("".join(lines))
        except SyntaxError:
            return ""
        return self._write(file, "".join(lines), "take out of a block")

    def _functions(self) -> list[str]:
        return sorted({name for file in self._files() for name in re.findall(r"def (\w+)", file.read_text())})

    def _rename_function(self) -> str:
        file, lines, _ = self._pick()
        text = "".join(lines)
        names = re.findall(r"def ([a-z]\w+)\(", text)
        if not names:
            return ""
        name = self.random.choice(names)
        return self._write(file, text.replace(f"def {name}(", f"def {name}_too(", 1), f"rename {name} here only")

    def _rename_everywhere(self) -> str:
        names = [name for name in self._functions() if not name.startswith("__") and name != "forward"]
        if not names:
            return ""
        name, done = self.random.choice(names), ""
        for file in self._files():
            text = file.read_text(encoding="utf-8")
            done = self._write(file, re.sub(rf"\b{name}\b", f"{name}_x", text), f"rename {name} everywhere") or done
        return done

    def _delete_file(self) -> str:
        return self._write(self._pick()[0], None, "delete a file") if len(self._files()) > 8 else ""

    def _copy_file(self) -> str:
        file, lines, _ = self._pick()
        copy = file.with_name(f"{file.stem}_{self.random.randrange(100)}.py")
        return "" if copy.exists() else self._write(copy, "".join(lines), f"copy {file.name}")

    def _drop_import(self) -> str:
        file, lines, _ = self._pick()
        places = [
            index for index, line in enumerate(lines) if line.startswith(("import ", "from ")) and "(" not in line
        ]
        if not places:
            return ""
        del lines[self.random.choice(places)]
        return self._write(file, "".join(lines), "drop an import")

    def _swap_name(self) -> str:
        """Use another name of the same file in one place."""
        file, _, module = self._pick()
        names = [node for node in ast.walk(module or ast.Module([], [])) if isinstance(node, ast.Name)]
        if len(names) < 2:
            return ""
        old, new = self.random.sample(names, 2)
        lines = file.read_bytes().splitlines(keepends=True)
        line = lines[old.lineno - 1]
        end = old.end_col_offset or 0
        lines[old.lineno - 1] = line[: old.col_offset] + new.id.encode() + line[end:]
        return self._write(file, b"".join(lines).decode(), f"{new.id} in place of {old.id}")

    def _break_file(self) -> str:
        file, lines, module = self._pick()
        return self._write(file, "".join([*lines, "def (:\n"]), "break a file") if module is not None else ""

    def _go_back(self) -> str:
        """Undo the latest edit of some file, or of all that a rename touched."""
        return self._write(*self._before.pop(), "go back") if self._before else ""

    def _change_settings(self) -> str:
        table = f"[tool.perflint]\n{self.random.choice(_SETTINGS)}\n"
        return self._write(self.root / "pyproject.toml", table, f"settings {table.split()[1:]}")

    def _change_requirements(self) -> str:
        version = self.random.choice(["1.12.0", "2.0.1", "2.4.0", "2.7.1"])
        return self._write(self.root / "requirements.txt", f"torch=={version}\n", f"torch {version}")
