"""Drawings of pages: axes that read well, curves with few points, foreign words as text only."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from slurm_fair_accounting.drawing import page, plot
from slurm_fair_accounting.drawing.gantt import Bar, Lane, gantt
from slurm_fair_accounting.drawing.plot import Axis, Series


@pytest.mark.parametrize(
    ("low", "high", "first", "last", "marks"),
    [
        (0.0, 1.0, 0.0, 1.0, ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
        (0.0, 97.0, 0.0, 100.0, ["0", "20", "40", "60", "80", "100"]),
        (0.0, 0.0, 0.0, 1.0, ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
        (0.0, 2.0, 0.0, 2.0, ["0", "0.5", "1", "1.5", "2"]),
    ],
)
def test_a_linear_axis_has_round_marks(
    low: float, high: float, first: float, last: float, marks: list[str]
) -> None:
    axis = plot.linear_axis("x", low, high, 5)
    assert (axis.low, axis.high) == pytest.approx((first, last))
    assert [words for _, words in axis.ticks] == marks


def test_a_logarithmic_axis_reaches_over_all_values_at_few_marks() -> None:
    axis = plot.logarithmic("x", np.array([0.0, np.nan, 0.3, 4000.0]))
    assert (axis.low, axis.high) == pytest.approx((0.2, 5000.0))
    assert 3 <= len(axis.ticks) <= 10
    assert axis.at(np.array([0.0, 0.2, 5000.0, 1e9])).tolist() == pytest.approx([0, 0, 1, 1])


def test_an_axis_of_durations_is_marked_at_durations() -> None:
    axis = plot.logarithmic("JCT", np.array([40.0, 5000.0]), seconds=True)
    assert [words for _, words in axis.ticks] == ["10 s", "1 min", "10 min", "1 h", "10 h"]
    assert plot.logarithmic("JCT", np.array([]), seconds=True).high > 0


@pytest.mark.parametrize(
    ("seconds", "unit", "high"),
    [
        (600.0, "min", 10.0),
        (4000.0, "min", 70.0),
        (36_000.0, "h", 10.0),
        (864_000.0, "d", 10.0),
        (0.0, "min", 0.0),
    ],
)
def test_an_axis_of_time_chooses_its_unit(seconds: float, unit: str, high: float) -> None:
    axis, of_unit = plot.over_time(seconds)
    assert axis.label == f"time since the first submission, {unit}"
    assert axis.high == pytest.approx(high, abs=1e-6)
    assert of_unit == {"min": 60.0, "h": 3600.0, "d": 86400.0}[unit]


def test_a_cumulative_curve_of_many_values_keeps_its_ends_and_few_points() -> None:
    values = np.concatenate([np.arange(50_000, dtype=np.float64), [np.nan]])
    curve = plot.cumulative("x", values)
    assert len(curve.x) == plot.MOST_POINTS
    assert (curve.x[0], curve.x[-1], curve.y[-1]) == (0.0, 49_999.0, 1.0)
    assert np.abs(curve.y - (curve.x + 1) / 50_000).max() < 1e-9
    assert len(plot.cumulative("x", np.array([np.nan])).x) == 0


def test_a_chart_breaks_its_curve_where_nothing_is_known_and_keeps_words_as_text() -> None:
    axis = Axis("x & y", 0.0, 4.0, ticks=((0.0, "0"), (4.0, "4")))
    x = np.arange(5, dtype=np.float64)
    y = np.array([0.0, 1.0, np.nan, 3.0, 4.0])
    figure = plot.chart(
        "<a>", [Series('"b"', x, y), Series("", x[:0], y[:0], 1)], axis, axis, across=1.0, up=9.0
    )
    drawing = ElementTree.fromstring(re.findall(r"<svg [^>]*role.*?</svg>", figure)[0])
    (curve,) = (path for path in drawing.iter("path") if "line" in path.get("class", ""))
    assert re.findall("[ML]", curve.get("d", "")) == ["M", "L", "M", "L"]
    assert (curve.findtext("title"), drawing.get("aria-label")) == ('"b"', "<a>")
    assert len([path for path in drawing.iter("path") if path.get("class") == "mark"]) == 1
    assert "<figcaption>&lt;a&gt;</figcaption>" in figure


def test_curves_beyond_the_colours_are_dashed() -> None:
    legend = plot.legend_of([(f"p{place}", place) for place in range(2 * page.COLOURS + 1)])
    looks = re.findall(r'class="line (c\d d\d)"', legend)
    assert len(set(looks)) == len(looks) == 2 * page.COLOURS + 1


def test_every_colour_and_look_that_is_drawn_is_in_the_style_sheet() -> None:
    style = page.style()
    assert re.findall(r"[A-Z]{5,}", style) == []
    for number in range(page.COLOURS):
        assert style.count(f"--c{number}:") == 2
        assert f".c{number} {{" in style
        assert f".f{number} {{" in style
    used = set(re.findall(r"var\((--[\w-]+)\)", style))
    assert all(style.count(f"{name}:") == 2 for name in used)
    assert style.count("{") == style.count("}")


def test_on_paper_no_column_is_cut_no_figure_is_torn_and_nothing_is_dark() -> None:
    style = page.style()
    printed = style[style.index("@media print") :]
    for rule in (
        "landscape",
        ".wide { overflow: visible }",
        "white-space: normal; overflow-wrap: break-word",
        "tr, figure, ul.legend { break-inside: avoid }",
        "figcaption { break-after: avoid }",
        "thead { display: table-header-group }",
    ):
        assert rule in printed
    assert "@media screen and (prefers-color-scheme: dark)" in style
    assert style.count("prefers-color-scheme") == 1


def test_a_chart_of_gpus_names_its_nodes_and_runs() -> None:
    bars = [Bar(0, 0.0, 3600.0, 3, "job 1"), Bar(2, 1800.0, 1800.0, 14, "job <2>")]
    figure = gantt("who", [Lane("n1", 2), Lane("n2", 1)], bars, 3600.0)
    drawing = ElementTree.fromstring(re.findall(r"<svg .*</svg>", figure)[0])
    one, two = drawing.iter("rect")
    assert (one.get("class"), two.get("class")) == ("bar f3", "bar f4")
    assert float(two.get("width", "0")) > 0
    assert two.findtext("title") == "job <2>"
    assert {"n1", "n2"} <= {text.text for text in drawing.iter("text")}


def test_a_page_and_its_tables_hold_foreign_words_as_text() -> None:
    groups = [("A & B", [("<i>", [page.Cell("1", best=True), page.Cell("2")])])]
    whole = page.page(
        "<t>", ["x < y"], [page.section("<s>", "n", page.grouped_table(["", "p", "q"], groups))]
    )
    assert "<i>" not in whole
    assert "<title>&lt;t&gt;</title>" in whole
    assert '<td class="best">1</td><td>2</td>' in whole
    assert "A &amp; B" in whole
