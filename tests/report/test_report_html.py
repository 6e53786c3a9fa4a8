import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from headless import BROWSER, Page, browser
from report_samples import EMPTY, HOSTILE, HOSTILE_LINE, REPORT, RULES, SYNC, TRAIN, TRANSFER, one, shown

from perflint.finding import Edit, Hop, Report, Span
from perflint.report import render
from perflint.report.measured import Bar
from perflint.report.patch import diff


class Elements(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}


def test_a_card_says_everything() -> None:
    page = shown(REPORT, "html")
    card = page[page.index('data-rule="TPL101"') :]
    card = card[: card.index("</article>")]
    assert "x = <mark>batch[&quot;image&quot;].to(device)</mark>\n" in card
    assert "<b>Why hot:</b> runs every step" in card
    assert '<li><span class="at">train.py:3</span> <code>for step, batch in enumerate(loader)</code></li>' in card
    assert '<span class="add">+    images = ' in card
    assert "x = batch[&quot;image&quot;].to(device, non_blocking=True)</span>" in card
    assert "pkg/broken.py:7:3" in page
    assert page.index('data-rule="TPL201"') < page.index('data-rule="TPL101"')


def test_the_empty_page_says_so() -> None:
    page = shown(EMPTY, "html")
    assert "4 files checked, nothing found" in page
    assert "<article" not in page


def test_nothing_is_fetched() -> None:
    page = shown(REPORT, "html")
    assert not re.search(r"""(src|href)=["'](?!#)|url\(|@import|https?:""", page)


def test_hostile_text_makes_no_markup() -> None:
    plain, hostile = Elements(shown(REPORT, "html")), Elements(shown(HOSTILE, "html"))
    assert set(hostile.tags) <= set(plain.tags)
    assert hostile.tags.count("script") == 1
    assert hostile.attributes <= plain.attributes


def test_diff_has_hunks_with_shifted_lines() -> None:
    lines = [f"line {number}" for number in range(1, 31)] + [""]
    edits = [Edit(Span(20, 1, 20, 5), "LINE"), Edit(Span(1, 1, 1, 1), "import torch\n")]
    assert [line.sign + line.text for line in diff(lines, edits)] == [
        "@@@ -1,3 +1,4 @@",
        "+import torch",
        " line 1",
        " line 2",
        " line 3",
        "@@@ -18,5 +19,5 @@",
        " line 18",
        " line 19",
        "-line 20",
        "+LINE 20",
        " line 21",
        " line 22",
    ]
    assert diff(lines, [Edit(Span(99, 1, 99, 1), "x")]) == []


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    if BROWSER is None:
        pytest.skip("no browser on this machine")
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


MEASURED = {
    "TPL101": [
        Bar("8 x 1M", "cpu (A processor), torch 2.13", "faster", 4.0, 3.5, 4.5),
        Bar("1 x 1k", HOSTILE_LINE, "no difference", 1.0, 0.98, 1.02, HOSTILE_LINE),
        Bar("1 x 1k", "cuda", "slower", 0.5, 0.5, 0.5),
    ]
}


def with_measurements(bars: list[Bar]) -> str:
    return render(REPORT, "html", RULES, version="1", measured={"TPL101": bars})


def test_measurements_of_a_rule_stand_below_its_page() -> None:
    page = with_measurements(MEASURED["TPL101"])
    section = page[page.index('id="rule-TPL101"') :]
    assert "8 x 1M: faster, 4x (3.5 to 4.5)" in section
    # A ratio and its inverse lie as far from the middle.
    middles = [float(x) + 0.3 for x in re.findall(r'class="mid" x="([\d.]+)"', section)]
    assert middles[1] == pytest.approx(50, abs=0.1)
    four, half = middles[0] - 50, 50 - middles[2]
    assert four == pytest.approx(2 * half, abs=0.1)
    assert set(Elements(page).tags) - set(Elements(shown(REPORT, "html")).tags) == {"br", "line"}


@pytest.mark.parametrize("bar", [(0.0, 0.0, 1.0), (1.0, 1.0, float("inf")), (float("nan"),) * 3, (2.0, 3.0, 4.0)])
def test_figures_that_are_none_are_left_out(bar: tuple[float, float, float]) -> None:
    assert '<svg class="bar' not in with_measurements([Bar("x", "cpu", "faster", *bar)])


def put(path: Path, report: Report) -> Path:
    path.write_text(shown(report, "html"), encoding="utf-8")
    return path


def cards(page: Page) -> list[str]:
    chosen = '[...document.querySelectorAll("article")].filter(one => !one.hidden).map(one => one.dataset.rule)'
    found = page.ask(chosen)
    assert isinstance(found, list)
    return found


def choose(page: Page, control: str, value: str) -> None:
    page.ask(
        f'(() => {{ const one = document.getElementById("{control}"); one.value = "{value}";'
        ' one.dispatchEvent(new Event("input", {bubbles: true})); })()'
    )


def test_the_overview_shows_the_end_of_a_long_path() -> None:
    path = "projects/speech/vocoder/model-of-one-name/training/config_2019/model.py"
    page = shown(Report((replace(SYNC, path=path),), (), 1), "html")
    assert f'data-value="{path}" title="{path}">\u2026' in page
    assert "training/config_2019/model.py: 1</a>" in page


def test_the_page_opens_with_an_overview() -> None:
    text = shown(REPORT, "html")
    head = text[: text.index('<main id="findings">')]
    assert 'data-set="impact" data-value="high">high: 1</a>' in head
    assert 'data-set="rule" data-value="TPL201">TPL201 sync-in-hot-loop: 1</a>' in head
    assert 'data-set="file" data-value="train.py" title="train.py">train.py: 2</a>' in head
    assert "Hot calls with findings" in head
    assert '<a href="#f1">train.py:4:24</a>' in head
    assert "style=" not in head, "the security policy allows none"
    assert 'class="overview"' not in shown(EMPTY, "html")


def test_a_large_report_keeps_its_overview_short() -> None:
    many = tuple(
        replace(SYNC, path=name, message=f"`{name}.item()` waits.", route=(Hop(name, 1, "for b in l"),))
        for name in (f"m{number}.py" for number in range(500))
    )
    text = shown(Report(many, (), 500), "html")
    head = text[: text.index('<main id="findings">')]
    assert head.count("<li") < 60
    assert "and 488 others" in head


def test_filters_are_kept_in_the_address_in_a_browser(page: Page, tmp_path: Path) -> None:
    page.open(put(tmp_path / "r.html", REPORT))
    page.ask('document.querySelector("a[data-set=rule][data-value=TPL101]").click()')
    assert cards(page) == ["TPL101"]
    assert page.ask("location.hash") == "#rule=TPL101"
    page.ask('document.querySelector("a[data-set=rule][data-value=TPL101]").click()')
    assert cards(page) == ["TPL201", "TPL101"]
    page.ask('location.hash = "#impact=high"')
    assert cards(page) == ["TPL201"]
    page.ask('document.querySelector("button[type=reset]").click()')


def test_filters_in_a_browser(page: Page, tmp_path: Path) -> None:
    other = replace(one("x\n", Span(1, 1, 1, 2)).findings[0], path="other.py")
    page.open(put(tmp_path / "r.html", Report((SYNC, TRANSFER, other), (), 2, {"train.py": TRAIN, "other.py": "x\n"})))
    assert cards(page) == ["TPL201", "TPL101", "TPL501"]
    for control, value, left in [
        ("rule", "TPL101", ["TPL101"]),
        ("impact", "high", ["TPL201"]),
        ("heat", "once", ["TPL501"]),
        ("file", "train.py", ["TPL201", "TPL101"]),
        ("fix", "none", ["TPL501"]),
        ("q", "COPY host", ["TPL101"]),
        ("q", "no such words", []),
    ]:
        choose(page, control, value)
        assert cards(page) == left
        assert page.ask('document.getElementById("shown").textContent') == f"{len(left)} of 3 shown"
        choose(page, control, "")
    choose(page, "order", "place")
    assert cards(page) == ["TPL501", "TPL101", "TPL201"]
    assert page.problems == []


def test_keyboard_in_a_browser(page: Page, tmp_path: Path) -> None:
    page.open(put(tmp_path / "r.html", REPORT))
    focused = "document.activeElement.dataset.rule || document.activeElement.id"
    for key, where in [("j", "TPL201"), ("j", "TPL101"), ("j", "TPL101"), ("k", "TPL201")]:
        page.press(key)
        assert page.ask(focused) == where
    page.press("f")
    assert page.ask('document.querySelector("article[data-rule=TPL201] details.fix").open') is True
    page.press("/")
    assert page.ask(focused) == "q"
    page.press("j")
    assert page.ask('document.getElementById("q").value') == "j"


@pytest.mark.parametrize("width", [360, 1200])
def test_the_page_never_scrolls_sideways(page: Page, tmp_path: Path, width: int) -> None:
    long = one("x" * 5000 + "\n", Span(1, 1, 1, 5001), path="v" * 300 + ".py")
    page.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
    page.open(
        put(tmp_path / "r.html", Report((*REPORT.findings, *long.findings), (), 2, {**REPORT.texts, **long.texts}))
    )
    assert page.ask("document.documentElement.scrollWidth <= window.innerWidth") is True
    cut = '[...document.querySelectorAll("h2, p, li, summary")].filter(one => one.scrollWidth > one.clientWidth + 1)'
    assert page.ask(f"{cut}.map(one => one.textContent)") == []


@pytest.mark.parametrize("width", [360, 1200])
def test_measurements_in_a_browser(page: Page, tmp_path: Path, width: int) -> None:
    page.problems.clear()
    path = tmp_path / "r.html"
    path.write_text(with_measurements(MEASURED["TPL101"]), encoding="utf-8")
    page.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
    page.open(path)
    page.ask('document.getElementById("rule-TPL101").open = true')
    boxes = '[...document.querySelectorAll("svg.bar")].map(one => one.getBoundingClientRect().width)'
    assert all(200 < wide < width for wide in page.ask(boxes))
    colours = '[...document.querySelectorAll("svg.bar rect:not(.mid)")].map(one => getComputedStyle(one).fill)'
    assert len(set(page.ask(colours))) == 3
    assert page.ask("document.documentElement.scrollWidth <= window.innerWidth") is True
    assert page.problems == []


def test_dark_and_light(page: Page, tmp_path: Path) -> None:
    path = put(tmp_path / "r.html", REPORT)
    colours = []
    for scheme in ("light", "dark"):
        page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        page.open(path)
        colours.append(page.ask("getComputedStyle(document.body).backgroundColor"))
    assert len(set(colours)) == 2


def test_hostile_text_runs_nothing_in_a_browser(page: Page, tmp_path: Path) -> None:
    page.problems.clear()
    page.open(put(tmp_path / "r.html", HOSTILE))
    assert page.problems == []
    assert page.ask('document.querySelectorAll("img, iframe, object").length') == 0
    # Even markup that did get in could not run: the policy knows the page's own script only.
    page.ask('document.body.insertAdjacentHTML("beforeend", "<img src=x onerror=\'window.ran = 1\'>")')
    page.ask(
        'window.added = document.createElement("script"); added.text = "window.ran = 1"; document.body.append(added)'
    )
    assert page.ask("new Promise(done => setTimeout(done, 50))") is None
    assert page.ask("window.ran") is None
