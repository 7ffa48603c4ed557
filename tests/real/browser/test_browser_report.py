"""The HTML report in a real browser: no errors, no network, usable by keyboard, legible at two widths."""

import pytest
import run_folder as fake

from infx.report.html import render
from infx.results.load import load_run

PRICES = {"mi355x": 1.5}


@pytest.fixture
def page(tmp_path):
    first = fake.write(tmp_path, "20261201T090000Z-demo-aaaaaa", concurrencies=(1, 4, 16, 64), arms=(None, "no-mono"),
                       failed=("demo-fp4-mi355x-vllm/tp2/c64",), columns=True)
    second = fake.write(tmp_path, "20261201T090001Z-demo-bbbbbb", concurrencies=(1, 4, 16, 64), speed=1.1,
                        simulated=False, skipped=("tp4/c16",))
    path = tmp_path / "report.html"
    path.write_text(render([load_run(first), load_run(second)], PRICES, "mi355x $1.5"), encoding="utf-8")
    return path


def labels(browser):
    return browser.js("DATA.series.map(s => s.label)")


def drawn(browser):
    """Names of the traces that hold measured dots."""
    return browser.js("document.getElementById('chart').data.filter(t => t.customdata).map(t => t.name)")


def test_the_page_loads_without_errors_or_network(browser, page):
    browser.open(page)
    assert browser.errors == []
    assert browser.js("document.title") == "[SIMULATED] demo-fp4-mi355x-vllm"
    assert "SIMULATED: no hardware was measured (in aaaaaa)" in browser.js("document.querySelector('header').innerText")
    assert drawn(browser) == labels(browser)
    assert browser.js("document.querySelectorAll('#points tbody tr').length") == 24
    assert browser.js("document.querySelector('.leftout').innerText").count("\n") == 2


def test_dots_are_where_the_figures_say_and_nothing_is_at_zero(browser, page):
    browser.open(page)
    trace = browser.js("""(t => ({x: t.x, y: t.y}))(document.getElementById('chart').data.find(
        t => t.name === 'aaaaaa tp2' && t.customdata))""")
    want = [fake.curve(2, c) for c in (1, 4, 16)]
    assert trace["x"] == pytest.approx([w["interactivity-median"] for w in want], rel=1e-5)
    assert trace["y"] == pytest.approx([w["output-throughput-per-gpu"] for w in want], rel=1e-5)
    for y in browser.js("DATA.y_axes"):
        browser.js(f"$('y-axis').value = '{y}'; draw()")
        lowest = browser.js("Math.min(...document.getElementById('chart').data.flatMap(t => t.y), 1e9)")
        assert lowest > 0, y
    assert browser.errors == []


def test_a_missing_figure_is_told_beside_the_chart(browser, page):
    browser.open(page)
    browser.js("$('y-axis').value = 'energy-per-output-token'; draw()")
    assert drawn(browser) == []
    assert "22 of 22 good points are not in this chart" in browser.js("$('chart-note').textContent")


@pytest.mark.parametrize("width", [1280, 600])
def test_it_fits_its_window_and_nothing_in_the_chart_is_cut_off(browser, page, tmp_path, width):
    browser.open(page, width)
    assert browser.js("document.documentElement.scrollWidth") <= width
    outside = browser.js("""[...document.querySelectorAll('#chart text, h1, h2, .controls *, .banner')].filter(e => {
        const b = e.getBoundingClientRect(); return b.width && (b.left < -1 || b.right > innerWidth + 1); }).length""")
    assert outside == 0
    small = browser.js("""[...document.querySelectorAll('body *')].filter(e => e.childNodes.length && e.innerText &&
        e.offsetParent && parseFloat(getComputedStyle(e).fontSize) < 11).length""")
    assert small == 0
    browser.picture(tmp_path / f"report-{width}.png")
    assert (tmp_path / f"report-{width}.png").stat().st_size > 20_000
    assert browser.errors == []


def focus(browser):
    return browser.js("(e => e.id || e.textContent.trim().slice(0, 40) || e.tagName)(document.activeElement)")


def tab_to(browser, wanted, most=80):
    for _ in range(most):
        browser.press("Tab")
        if focus(browser) == wanted:
            return
    raise AssertionError(f"{wanted!r} cannot be reached by Tab; the focus is on {focus(browser)!r}")


def test_everything_works_by_keyboard(browser, page):
    browser.open(page)
    browser.press("Tab")
    assert focus(browser) == "Skip the chart"
    tab_to(browser, "y-axis")
    browser.press("ArrowDown")
    assert browser.js("document.getElementById('chart').layout.yaxis.title.text").startswith("Total throughput")
    tab_to(browser, "log-x")
    browser.press(" ")
    assert browser.js("document.getElementById('chart').layout.xaxis.type") == "log"
    tab_to(browser, "none")
    browser.press("Enter")
    assert drawn(browser) == [] and browser.js("document.querySelectorAll('#points tbody tr').length") == 0
    browser.js("$('all').focus()")
    browser.press("Enter")
    assert drawn(browser) == labels(browser)
    tab_to(browser, "TTFT, median (ms)")
    browser.press("Enter")
    column = browser.js("""(() => { const i = [...document.querySelectorAll('#points th')].findIndex(
        t => t.getAttribute('aria-sort') === 'ascending');
        return [...document.querySelectorAll('#points tbody tr')].map(r => r.children[i].textContent); })()""")
    shown = [float(text.replace(",", "")) for text in column if text != "–"]
    assert shown == sorted(shown) and column[len(shown):] == ["–", "–"], "what is missing sorts last"
    tab_to(browser, browser.js("document.querySelector('#points tbody button').textContent"))
    browser.press("Enter")
    assert focus(browser) == "point-title" and browser.js("location.hash").startswith("#point-")
    assert browser.errors == []


def test_a_point_has_its_page_with_distributions_and_reasons(browser, page):
    browser.open(page)
    good = browser.js("DATA.points.findIndex(p => p.run === 'aaaaaa' && p.status === 'ok')")
    browser.js(f"showPoint({good})")
    charts = browser.js("[...document.querySelectorAll('#point .charts > div')].map(d => d.getAttribute('aria-label'))")
    assert charts == ["TTFT of measured requests", "TPOT of measured requests", "E2EL of measured requests",
                      "Requests in flight", "Output"]
    assert "SIMULATED: no hardware was measured" in browser.js("$('point-body').innerText")
    browser.js("showPoint(DATA.points.findIndex(p => p.status === 'failed'))")
    assert "engine-died" in browser.js("$('point-body').innerText")
    browser.js("showPoint(DATA.points.findIndex(p => p.status === 'missing'))")
    assert "no start has measured it" in browser.js("$('point-body').innerText")
    assert browser.errors == []


def test_series_differ_without_colour(browser, page):
    browser.open(page)
    browser.call("Emulation.setEmulatedVisionDeficiency", {"type": "achromatopsia"})
    looks = browser.js("DATA.series.filter(s => s.group === DATA.series[0].group).map(s => s.marker)")
    assert len(set(looks)) == len(looks)
