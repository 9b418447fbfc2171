"""A picture of several charts in one file of its own: points, whiskers, captions and one legend."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree

import numpy as np
import pytest

from slurm_fair_accounting.drawing import plot
from slurm_fair_accounting.drawing.page import COLOURS, drawing_style
from slurm_fair_accounting.drawing.panels import Panel, Points, picture
from slurm_fair_accounting.drawing.plot import Axis, Series

SVG = "{http://www.w3.org/2000/svg}"
NAN, INF = float("nan"), float("inf")
X, Y = (Axis(name, 0.0, 10.0, ticks=((0.0, "0"), (10.0, "10"))) for name in ("jobs", "hours"))
LEFT, TOP, ACROSS, UP = 58.0, 10.0, 640.0 - 58 - 34, 300.0 - 10 - 44  # of the inside of a chart


def points(
    *at: tuple[float, float, float], name: str = "fair", place: int = 0, words: Sequence[str] = ()
) -> Points:
    """A curve through these, each with half of its whisker."""
    x, y, whisker = np.array(at, dtype=np.float64).reshape(-1, 3).T
    said = words or [f"{name} at {each:g}" for each in x.tolist()]
    return Points(Series(name, x, y, place), whisker, said)


def panel(*curves: Points, caption: str = "waits") -> Panel:
    return Panel(caption, curves, X, Y)


def drawn(*panels: Panel, title: str = "sweep") -> ElementTree.Element:
    return ElementTree.fromstring(picture(title, panels))


def parts(drawing: ElementTree.Element, tag: str, look: str = "") -> list[ElementTree.Element]:
    return [part for part in drawing.iter(SVG + tag) if look in part.get("class", "")]


def texts(drawing: ElementTree.Element) -> list[str]:
    return [text.text or "" for text in parts(drawing, "text")]


def whiskers(drawing: ElementTree.Element) -> list[tuple[float, ...]]:
    """Place, upper and lower end of each upright line."""
    paths = [part.get("d") or "" for part in parts(drawing, "path", "line")]
    found = [re.fullmatch(r"M([\d.]+) ([\d.]+)V([\d.]+)", path) for path in paths]
    return [tuple(map(float, match.groups())) for match in found if match]


def test_no_panel_is_a_picture_with_its_title_alone() -> None:
    drawing = drawn()
    assert texts(drawing) == ["sweep"]
    assert float(drawing.get("width", "nan")) > 0
    assert parts(drawing, "circle") == []


def test_a_file_stands_alone_and_brings_its_style() -> None:
    text = picture("sweep", [panel(points((1, 2, NAN)))])
    assert text.startswith('<svg xmlns="http://www.w3.org/2000/svg" ')
    assert text.endswith("</svg>\n")
    assert f"<style>\n{drawing_style()}\n</style>" in text
    assert re.findall(r"url\(|@import|href", text) == []


@pytest.mark.parametrize(("count", "across", "rows"), [(1, 1, 1), (2, 2, 1), (3, 2, 2), (5, 2, 3)])
def test_panels_stand_two_in_a_row_below_the_legend(count: int, across: int, rows: int) -> None:
    drawing = drawn(*[panel(points((1, 2, NAN)), caption=f"p{at}") for at in range(count)])
    width, height = (float(drawing.get(name, "nan")) for name in ("width", "height"))
    assert width == across * (plot.WIDTH + 14) + 14
    moves = [part.get("transform") or "" for part in parts(drawing, "g")]
    places = [tuple(map(float, move[10:-1].split())) for move in moves][::2]
    lefts, tops = ([place[axis] for place in places] for axis in (0, 1))
    assert lefts == [14 + at % 2 * (plot.WIDTH + 14) for at in range(count)]
    assert len(set(tops)) == rows
    assert tops == sorted(tops)
    assert max(tops) + plot.HEIGHT + 2 * 18 + 14 == height


def test_each_curve_is_named_once_in_the_order_of_their_places() -> None:
    one = panel(points((1, 2, NAN), name="late", place=2), points((1, 2, NAN), name="first", place=0))
    named = [name for name in texts(drawn(one, one)) if name in ("first", "late")]
    assert named == ["first", "late"]


def test_a_legend_that_is_too_long_goes_on_in_the_next_line() -> None:
    many = [points((1, 2, NAN), name=f"a policy of a long name {at}", place=at) for at in range(6)]
    drawing = drawn(panel(*many))
    keys = [text for text in parts(drawing, "text") if (text.text or "").startswith("a policy")]
    heights = [float(key.get("y", "nan")) for key in keys]
    assert len(set(heights)) > 1
    assert heights == sorted(heights)
    assert len({(key.get("x"), key.get("y")) for key in keys}) == len(keys)
    (outer,) = [part for part in parts(drawing, "g") if "waits" in texts(part)]
    assert float((outer.get("transform") or "")[10:-1].split()[1]) > max(heights)


def test_a_name_that_is_longer_than_the_picture_has_a_line_of_its_own() -> None:
    drawing = drawn(panel(points((1, 2, NAN), name="x" * 900), points((1, 2, NAN), name="b", place=1)))
    by_name = {
        (text.text or "")[:1]: text for text in parts(drawing, "text") if text.text in ("x" * 900, "b")
    }
    assert by_name["x"].get("x") == by_name["b"].get("x")
    assert by_name["x"].get("y") != by_name["b"].get("y")
    short = drawn(panel(points((1, 2, NAN), name="b")))
    first = next(text for text in parts(short, "text") if text.text == "b")
    assert by_name["x"].get("y") == first.get("y"), "it leaves no line empty"


def test_points_and_whiskers_lie_where_their_numbers_say() -> None:
    drawing = drawn(panel(points((5, 5, 2.5), (10, 0, NAN))))
    dots = [(float(dot.get("cx", "nan")), float(dot.get("cy", "nan"))) for dot in parts(drawing, "circle")]
    assert dots == [(LEFT + ACROSS / 2, TOP + UP / 2), (LEFT + ACROSS, TOP + UP)]
    ((x, low, high),) = whiskers(drawing)
    assert (x, low, high) == (LEFT + ACROSS / 2, TOP + 0.75 * UP, TOP + 0.25 * UP)


@pytest.mark.parametrize("whisker", [NAN, 0.0])
def test_a_point_whose_spread_is_none_or_not_known_has_no_whisker(whisker: float) -> None:
    drawing = drawn(panel(points((5, 5, whisker))))
    assert whiskers(drawing) == []
    assert len(parts(drawing, "circle")) == 1


@pytest.mark.parametrize("at", [(NAN, 5.0), (5.0, NAN)])
def test_a_point_that_is_not_known_is_not_drawn(at: tuple[float, float]) -> None:
    text = picture("sweep", [panel(points((*at, 1.0), (2, 2, NAN), words=("gone", "there")))])
    assert re.findall("nan|inf", text.replace("font-family", "")) == []
    assert [dot.findtext(SVG + "title") for dot in parts(ElementTree.fromstring(text), "circle")] == ["there"]


def test_a_point_beyond_the_axis_lies_at_its_end() -> None:
    (dot,) = parts(drawn(panel(points((5, INF, NAN)))), "circle")
    assert float(dot.get("cy", "nan")) == TOP


def test_a_curve_beyond_the_colours_has_the_colour_of_an_earlier_one_and_other_dashes() -> None:
    drawing = drawn(panel(points((1, 2, 1.0), place=COLOURS + 1, name="b"), points((1, 2, 1.0), place=1)))
    assert [dot.get("class") for dot in parts(drawing, "circle")] == ["f1", "f1"]
    assert {"line c1 d0", "line c1 d1"} <= {path.get("class") for path in parts(drawing, "path")}


@pytest.mark.parametrize("words", ["</title><script>x</script>", 'a" onload="x', "\x1b[2J\x00\u202e=1&"])
def test_words_of_others_are_text_and_nothing_else(words: str) -> None:
    shown = "".join(char if char.isprintable() else "?" for char in words)
    drawing = drawn(panel(points((1, 2, NAN), name=words, words=(words,)), caption=words), title=words)
    assert drawing.get("aria-label") == shown
    assert texts(drawing).count(shown) == 3  # title, legend and caption
    (dot,) = parts(drawing, "circle")
    assert dot.findtext(SVG + "title") == shown
    assert {part.tag for part in drawing.iter()} <= {
        SVG + tag for tag in ("svg", "style", "rect", "text", "path", "g", "circle", "title")
    }


def test_words_for_too_few_points_are_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        picture("sweep", [panel(points((1, 2, NAN), (2, 3, NAN), words=("one",)))])
