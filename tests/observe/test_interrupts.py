"""Ctrl-C while the recorder runs: torch calls it from places where no exception may pass."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from perflint.observe import interrupts

_BUSY = """
def busy():
    signal.raise_signal(signal.SIGINT)
    finished.append(True)
"""


@pytest.fixture
def _own_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def _busy(file: str, finished: list[bool]) -> Any:
    known = {"signal": signal, "finished": finished}
    exec(compile(_BUSY, file, "exec"), known)  # where it stands is what the test is about
    return known["busy"]


def _and_goes_on(recorder: Any) -> None:
    recorder()
    until = time.monotonic() + 60
    while time.monotonic() < until:
        time.sleep(0.001)


@pytest.mark.usefixtures("_own_handler")
def test_the_recorder_is_left_before_the_program_is_interrupted() -> None:
    interrupts.raise_in_the_program()
    finished: list[bool] = []
    recorder = _busy(str(Path(interrupts.__file__).parent / "recording" / "recorder.py"), finished)
    with pytest.raises(KeyboardInterrupt):
        _and_goes_on(recorder)
    assert finished == [True]


@pytest.mark.usefixtures("_own_handler")
def test_the_program_is_interrupted_where_it_stands() -> None:
    interrupts.raise_in_the_program()
    finished: list[bool] = []
    with pytest.raises(KeyboardInterrupt):
        _busy("train.py", finished)()
    assert finished == []


def test_a_program_with_its_own_treatment_keeps_it() -> None:
    def own(*_: object) -> None: ...

    before = signal.signal(signal.SIGINT, own)
    try:
        interrupts.raise_in_the_program()
        assert signal.getsignal(signal.SIGINT) is own
    finally:
        signal.signal(signal.SIGINT, before)
