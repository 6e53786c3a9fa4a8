"""What a file is there for, as far as its path tells."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=65536)
def is_test(path: str) -> bool:
    """Whether a file holds tests, by the conventions of pytest and unittest.

    What tests do often says nothing of what training does often, nor do they run where and on what it runs: they are
    read for what they define, and neither followed nor inspected.
    """
    *folders, name = path.split("/")
    return (
        name.startswith("test_")
        or name.endswith("_test.py")
        or name == "conftest.py"
        or bool({"tests", "test"} & set(folders))
    )
