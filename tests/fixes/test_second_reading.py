"""The second parser has the last word on a rewritten file, and none on what it never could read."""

from __future__ import annotations

from perflint.fixes.second_reading import second_reading


def test_a_sound_rewrite_passes() -> None:
    assert second_reading("x = 1\n", "x = 2  # two\r\n\ty\n".replace("\t", "")) is None


def test_a_broken_rewrite_does_not() -> None:
    assert "second parser" in (second_reading("f(a)\n", "f(a\n") or "")


def test_what_could_not_be_read_before_says_nothing() -> None:
    assert second_reading("print 'old'\n", "print 'new'\n") is None
