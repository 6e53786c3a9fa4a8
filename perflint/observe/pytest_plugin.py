"""pytest: a CUDA device that is not there, and budgets for what a test makes it do. Imports torch in tests that use it.

    @pytest.mark.perflint(max_waits=0, max_launches=50)
    def test_forward_never_waits(perflint_device, model):
        model(torch.randn(8, 3, device=perflint_device))

What fixtures do before the test is not counted. A test that uses `perflint_observed.step()` is held to the budget in
each of those steps, any other test as a whole.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from perflint.observe.observed import Observed

_BUDGETS = ("max_waits", "max_launches", "max_bytes_to_host", "max_bytes_to_device")
_MARKER = (
    "perflint(max_waits, max_launches, max_bytes_to_host, max_bytes_to_device, hardware): "
    "run on a simulated CUDA device and fail beyond the budget"
)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)


def pytest_itemcollected(item: pytest.Item) -> None:
    """A marked test has the device whether it names the fixture or not."""
    names = getattr(item, "fixturenames", None)
    if names is not None and item.get_closest_marker("perflint") is not None and "perflint_observed" not in names:
        names.insert(0, "perflint_observed")


@pytest.fixture
def perflint_observed(request: pytest.FixtureRequest) -> Generator[Observed, None, None]:
    """What the test makes the simulated device do: `waits`, `launches`, `step()`, `report()`."""
    from perflint.errors import PerflintError
    from perflint.observe.observed import observed

    marker = request.node.get_closest_marker("perflint")
    options = dict(marker.kwargs) if marker is not None else {}
    unknown = sorted(set(options) - {*_BUDGETS, "hardware"})
    if unknown:
        pytest.fail(f"pytest.mark.perflint has no {', '.join(unknown)}; there are {', '.join(_BUDGETS)}", pytrace=False)
    given = {"hardware": options["hardware"]} if "hardware" in options else {}
    try:
        with observed(root=request.config.rootpath, **given) as seen:
            yield seen
    except ImportError:
        pytest.skip("perflint's simulated device needs PyTorch")
    except PerflintError as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture
def perflint_device(perflint_observed: Observed) -> Any:
    """The simulated device, a `torch.device` of type cuda. It is there for this test only."""
    return perflint_observed.device


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Count what the test itself does, and hold it to its budget."""
    seen = getattr(item, "funcargs", {}).get("perflint_observed")
    if seen is None:
        return (yield)
    seen.restart()
    result = yield
    _hold(item, seen)
    return result


def _hold(item: pytest.Item, seen: Observed) -> None:
    marker = item.get_closest_marker("perflint")
    budgets = {name: marker.kwargs[name] for name in _BUDGETS if name in marker.kwargs} if marker is not None else {}
    if not budgets:
        return
    seen.finish()
    beyond = []
    for name, most in budgets.items():
        what = name.removeprefix("max_")
        count = getattr(seen, what)
        if count > most:
            beyond.append(f"{count} {what.replace('_', ' ')}, more than {name}={most}")
    if beyond:
        pytest.fail("\n".join([*beyond, seen.report()]).rstrip(), pytrace=False)
