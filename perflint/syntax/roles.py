"""What a file is there for, as far as its path and what stands at its top level tell."""

from __future__ import annotations

import ast
from functools import lru_cache

#: What files of tests import and scripts do not.
_FRAMEWORKS = frozenset({"pytest", "unittest", "hypothesis", "nose", "testtools", "absl.testing", "torch.testing"})


def holds_tests(path: str, module: ast.Module) -> bool:
    """Whether a file holds tests, by the conventions of pytest and unittest.

    What tests do often says nothing of what training does often, nor do they run where and on what it runs: they are
    read for what they define, and neither followed nor inspected. What tests a network, `test_net.py`, has a name like
    theirs: it runs by itself, or has no test that pytest would find, but a function for others to call. So does what
    tests one that lies in a folder `test`; all that lies in `tests` is there for tests.
    """
    if not is_named_as_test(path):
        return False
    if path.endswith("conftest.py") or _OF_TESTS in path.split("/")[:-1]:
        return True
    if any(_is_of_framework(node) for node in ast.walk(module)):
        return True
    return not any(map(_runs, module.body)) and any(map(_is_test, module.body))


_OF_TESTS = "tests"
_FOLDERS = frozenset({_OF_TESTS, "test"})
#: What begins as the name of a test does, and is what a program calls: `testing(db, net)`.
_TESTING = "testing"


@lru_cache(maxsize=65536)
def is_named_as_test(path: str) -> bool:
    """Whether a path is one that pytest looks for tests at, or stands in a folder of them."""
    *folders, name = path.split("/")
    return (
        name.startswith("test_") or name.endswith("_test.py") or name == "conftest.py" or bool(_FOLDERS & set(folders))
    )


def _is_test(statement: ast.stmt) -> bool:
    """Whether pytest would run a definition: `test(cfg)` takes what no fixture is called."""
    if isinstance(statement, ast.ClassDef):
        return statement.name.startswith("Test")
    if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)) or not statement.name.startswith("test"):
        return False
    return statement.name not in ("test", _TESTING) or not statement.args.args


def _is_of_framework(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return any(_is_framework(item.name) for item in node.names)
    if isinstance(node, ast.ImportFrom):
        return node.level == 0 and node.module is not None and _is_framework(node.module)
    return isinstance(node, ast.ClassDef) and any("TestCase" in ast.unparse(base) for base in node.bases)


def _is_framework(name: str) -> bool:
    return any(name == known or name.startswith(f"{known}.") for known in _FRAMEWORKS)


def _runs(statement: ast.stmt) -> bool:
    """Whether a statement of the top level is a loop, or an `if __name__ == "__main__":` that runs more than tests."""
    if isinstance(statement, (ast.For, ast.While, ast.With)):
        return True
    if not isinstance(statement, ast.If) or "__name__" not in ast.unparse(statement.test):
        return False
    return not all(_calls_test(item) for item in statement.body)


def _calls_test(statement: ast.stmt) -> bool:
    """`test_shapes()`: a test takes no argument that it would not be given by the one who runs all tests."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    return (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id.startswith("test")
        and not (call.args or call.keywords)
    )
