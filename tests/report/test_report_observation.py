"""The page of an observation in a browser: what a reader sees of the step and its lines, on a screen and on a phone."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from headless import BROWSER, Page, browser

from perflint.observe.report import Options, render
from perflint.observe.trace import Event, Frame, LineCount, Observation, Site, Step, StepTotal


def _observation(waits: int = 8) -> Observation:
    """A step of many launches with a wait of another line after each tenth, some close to each other."""
    sites = [
        Site(f"package/{'deeply_nested/' * 6}module.py", at, 5, at, 40, (Frame("train.py", 3, "main"),))
        for at in range(1, waits + 2)
    ]
    events = [Event("aten::mm", "launch", False, 0, "forward", 1e9, 10**6, 1) for _ in range(10 * waits)]
    for number in range(waits):
        at = 10 * number if number > 2 else 3 * number
        events.insert(at, Event("aten::_local_scalar_dense", "read", True, number + 1, "other", bytes=4))
    lines = [LineCount(0, "launch", False, "forward", {1: 10 * waits}, 10**6, operation="aten::mm")]
    lines += [
        LineCount(number + 1, "read", True, "other", {1: 1}, 4, operation="aten::_local_scalar_dense")
        for number in range(waits)
    ]
    total = StepTotal(1, waits, 10 * waits, 0, 4 * waits)
    return Observation("simulated", "2.13", "h100", 1, 1, sites, lines, Step(1, events), [total])


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    if BROWSER is None:
        pytest.skip("no browser on this machine")
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def opened(page: Page, tmp_path: Path, width: int) -> Page:
    path = tmp_path / "observation.html"
    options = Options(what_if=True, hardware=("h100", "t4"), findings={})
    path.write_text(render(_observation(), "html", options), encoding="utf-8")
    page.problems.clear()
    page.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
    page.open(path)
    return page


@pytest.mark.parametrize("width", [360, 1200])
def test_the_page_never_scrolls_sideways_and_breaks_no_rule(opened: Page) -> None:
    assert opened.ask("document.documentElement.scrollWidth <= window.innerWidth") is True
    assert opened.problems == []


@pytest.mark.parametrize("width", [360, 1200])
def test_numbers_of_waits_can_be_read(opened: Page) -> None:
    """They are large enough, stand beside each other, and above the clocks instead of on them."""
    boxes = "[...document.querySelectorAll('svg text.mark')].map(one => one.getBoundingClientRect().toJSON())"
    marks = opened.ask(boxes)
    assert len(marks) >= 5
    assert all(one["height"] > 7 for one in marks)
    assert all(one["right"] <= other["left"] for one, other in pairwise(marks))
    top = opened.ask(
        "Math.min(...[...document.querySelectorAll('svg rect')].map(one => one.getBoundingClientRect().top))"
    )
    assert all(one["bottom"] <= top + 2 for one in marks)


@pytest.mark.parametrize("width", [1200])
def test_lines_are_sorted_by_a_click(opened: Page) -> None:
    often = "[...document.querySelector('table').tBodies[0].rows].map(row => Number(row.children[2].dataset.v))"
    button = "document.querySelectorAll('th button')[2].click()"
    opened.ask(button)
    assert opened.ask(often) == sorted(opened.ask(often), reverse=True)
    opened.ask(button)
    assert opened.ask(often) == sorted(opened.ask(often))


@pytest.mark.parametrize("width", [1200])
def test_waits_lead_to_their_lines(opened: Page) -> None:
    opened.ask("document.querySelector('section.step ol a').click()")
    assert opened.ask("document.querySelector('tr:target') !== null") is True
