"""Bars on a line of time: where they lie, how long they are, and what foreign words may do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree

import pytest

from slurm_fair_accounting.drawing.gantt import Bar, Lane, Layout, gantt
from slurm_fair_accounting.drawing.page import COLOURS

HOUR = 3600.0
ROOM = 1160 - 70 - 24  # pixels between the names of the lanes and the right edge
ONE = (Lane("n1", 1),)


def drawn(
    lanes: Sequence[Lane], bars: Sequence[Bar], seconds: float, layout: Layout | None = None
) -> ElementTree.Element:
    figure = gantt("who", lanes, bars, seconds, layout or Layout())
    return ElementTree.fromstring(re.findall(r"<svg .*</svg>", figure, re.DOTALL)[0])


def boxes(drawing: ElementTree.Element) -> list[tuple[float, ...]]:
    """Left edge, top, width and height of each bar."""
    keys = ("x", "y", "width", "height")
    return [tuple(float(box.get(key, "nan")) for key in keys) for box in drawing.iter("rect")]


def places(drawing: ElementTree.Element) -> dict[str, tuple[float, float]]:
    """The place of each text."""
    return {
        text.text or "": (float(text.get("x", "nan")), float(text.get("y", "nan")))
        for text in drawing.iter("text")
    }


def test_a_bar_of_the_whole_span_reaches_from_the_names_to_the_end() -> None:
    assert boxes(drawn(ONE, [Bar(0, 0.0, HOUR, 0, "")], HOUR)) == [(70.0, 1.0, ROOM, 9.0)]


def test_bars_lie_at_their_times_in_their_rows() -> None:
    bars = [Bar(0, 0.0, HOUR / 4, 0, ""), Bar(2, HOUR / 2, HOUR, 0, "")]
    found = boxes(drawn([Lane("n1", 2), Lane("n2", 1)], bars, HOUR))
    assert found[0] == pytest.approx((70.0, 1.0, ROOM / 4, 9.0), abs=0.06)
    assert found[1] == pytest.approx((70.0 + ROOM / 2, 23.0, ROOM / 2, 9.0), abs=0.06)


@pytest.mark.parametrize("seconds", [0.0, 0.001])
def test_a_bar_of_no_time_can_be_seen(seconds: float) -> None:
    ((_, _, width, _),) = boxes(drawn(ONE, [Bar(0, 0.0, seconds, 0, "")], 30 * 24 * HOUR))
    assert width == 0.2


def test_lanes_are_named_at_their_middles_and_divided_at_their_tops() -> None:
    drawing = drawn([Lane("n1", 4), Lane("n2", 2)], [], HOUR)
    assert places(drawing)["n1"] == (4.0, 2 * 11 + 4)
    assert places(drawing)["n2"] == (4.0, 5 * 11 + 4)
    rules = [path.get("d") for path in drawing.iter("path")]
    assert [rule for rule in rules if rule and rule.endswith("H1160")] == ["M0 0H1160", "M0 44H1160"]


def test_the_layout_says_how_high_rows_are_and_what_the_time_counts_from() -> None:
    drawing = drawn(ONE, [Bar(0, 0.0, HOUR, 0, "")], HOUR, Layout(18.0, 170.0, "noon"))
    assert boxes(drawing) == [(170.0, 1.0, 1160 - 170 - 24, 16.0)]
    assert "time since noon, min" in places(drawing)
    assert drawing.get("viewBox") == "0 0 1160 58"


def test_the_marks_of_time_stand_where_their_times_lie() -> None:
    found = places(drawn(ONE, [], 2 * 24 * HOUR))
    hours = {float(words): x for words, (x, _) in found.items() if re.fullmatch(r"\d+", words)}
    assert min(hours) == 0
    assert max(hours) >= 48
    for hour, x in hours.items():
        assert x == pytest.approx(70 + hour / max(hours) * ROOM, abs=0.06)


@pytest.mark.parametrize("span", [0.0, 1e-9, 1e9])
def test_any_span_can_be_drawn(span: float) -> None:
    figure = gantt("", ONE, [Bar(0, 0.0, span, 0, "")], span)
    assert re.findall(r"nan|inf", figure) == []
    (box,) = boxes(drawn(ONE, [Bar(0, 0.0, span, 0, "")], span))
    assert 0 < box[2] <= ROOM + 0.2


def test_no_lanes_are_an_axis_alone() -> None:
    drawing = drawn([], [], HOUR)
    assert boxes(drawing) == []
    assert drawing.get("viewBox") == "0 0 1160 40"


def test_colours_begin_anew_behind_the_last_one() -> None:
    drawing = drawn(ONE, [Bar(0, 0.0, 1.0, at, "") for at in (0, COLOURS - 1, COLOURS, COLOURS + 1)], HOUR)
    looks = [box.get("class") for box in drawing.iter("rect")]
    assert looks == ["bar f0", f"bar f{COLOURS - 1}", "bar f0", "bar f1"]


HOSTILE = ["</title><script>x</script>", 'a" onload="x', "&amp;=<>", "\x1b[31m\x00\u202e"]


@pytest.mark.parametrize("words", HOSTILE)
def test_words_of_others_are_text_and_nothing_else(words: str) -> None:
    figure = gantt(words, [Lane(words, 1)], [Bar(0, 0.0, 1.0, 0, words)], HOUR, Layout(since=words))
    shown = "".join(char if char.isprintable() else "?" for char in words)
    drawing = ElementTree.fromstring(figure)
    assert drawing.findtext("figcaption") == shown
    assert [title.text for title in drawing.iter("title")] == [shown]
    assert shown in [text.text for text in drawing.iter("text")]
    assert not {part.tag for part in drawing.iter()} - {
        "figure", "figcaption", "svg", "path", "text", "rect", "title",
    }  # fmt: skip
