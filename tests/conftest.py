"""What tests in several folders share."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

# How long an example takes says how busy the machine is.
settings.register_profile("perflint", deadline=None)
settings.load_profile("perflint")


@pytest.fixture
def heeded_signals() -> Iterator[None]:
    """Processes that the test starts heed the signals that end a program.

    What started the test run may ignore some, as nohup does and a shell in the background; that is inherited.
    """
    numbers = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    ignored = [number for number in numbers if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, signal.SIG_DFL)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
