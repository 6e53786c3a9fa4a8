"""Room on Python's stack is a matter of speed: what a function does is the same with it and without."""

from __future__ import annotations

import platform

import pytest

from perflint.engine.worker import with_room


def depth(left: int, *, step: int = 1) -> int:
    return 0 if left <= 0 else step + depth(left - step, step=step)


def test_a_function_with_room_does_what_it_did() -> None:
    bare = depth.__code__
    roomy = with_room(depth)
    assert (roomy(100), roomy(100, step=5)) == (100, 100)
    with pytest.raises(RecursionError):
        roomy(10**6)
    if platform.python_implementation() == "CPython":
        assert roomy.__code__.co_stacksize > 100 * bare.co_stacksize
    depth.__code__ = bare


def test_what_cannot_be_given_room_is_left_as_it_is() -> None:
    assert with_room(len) is len
    assert with_room(len)("abc") == 3
