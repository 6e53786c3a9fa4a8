"""What the tests of reports share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from headless import BROWSER, Page, browser


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A tab of a browser, where there is one."""
    if BROWSER is None:
        pytest.skip("no browser on this machine")
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened
