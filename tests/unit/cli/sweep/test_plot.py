"""Charts of a sweep from its file alone."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from tests.support.command_line import call
from tests.support.kept_sweeps import kept, scene

SVG = "{http://www.w3.org/2000/svg}"


def drawn(file: Path, *arguments: str) -> ElementTree.Element:
    """The chart, which must be well-formed XML."""
    out = file.with_suffix(".svg")
    said = call("sweep", "plot", str(file), "--out", str(out), *arguments)
    assert said.code == 0, said.err
    return ElementTree.fromstring(out.read_text())


def words_in(picture: ElementTree.Element) -> list[str]:
    return [text.text or "" for text in picture.iter(f"{SVG}text")]


def dots_in(picture: ElementTree.Element) -> list[str]:
    return [str(dot.findtext(f"{SVG}title")) for dot in picture.iter(f"{SVG}circle")]


def test_loads_lie_along_the_axis_where_they_differ(tmp_path: Path) -> None:
    picture = drawn(scene(tmp_path), "--y", "jct_mean_s")
    assert {"Sweep of jobs.csv on 8 GPUs", "astraea", "fifo", "load", "JCT, mean, h"} <= set(
        words_in(picture)
    )
    assert dots_in(picture) == [
        "astraea, lease 900 s, load 1: 1.5", "astraea, lease 900 s, load 2: 3",
        "fifo, lease never ends, load 1: 10", "fifo, lease never ends, load 2: 20",
    ]  # fmt: skip
    curves = [path for path in picture.iter(f"{SVG}path") if "line" in path.get("class", "")]
    whiskers = [path for path in curves if "V" in path.get("d", "")]
    assert len(whiskers) == 1, "one group has two seeds"


def test_lease_terms_lie_along_the_axis_and_leases_without_end_are_told(tmp_path: Path) -> None:
    file = kept(
        tmp_path / "sweep.db",
        *(("srtf", lease, 1.0, 0, {"jct_mean_s": lease}) for lease in (300.0, 900.0, 3600.0)),
        ("fifo", None, 1.0, 0, {"jct_mean_s": 9000.0}),
    )
    said = call("sweep", "plot", str(file), "--out", str(tmp_path / "a.svg"), "--y", "jct_mean_s")
    assert said.err == "without a place on the axis, because their leases never end: fifo\n"
    picture = drawn(file, "--y", "jct_mean_s")
    assert "lease term, log" in words_in(picture)
    assert len(dots_in(picture)) == 3


def test_a_metric_along_the_axis_makes_a_frontier(tmp_path: Path) -> None:
    picture = drawn(scene(tmp_path), "--x", "jct_mean_s", "--y", "jain_tenants")
    assert "JCT, mean, h" in words_in(picture)
    assert "fifo, lease never ends, load 2: 0.4" in dots_in(picture)


def test_the_settings_of_a_policy_are_one_curve_of_a_frontier(tmp_path: Path) -> None:
    values = {"fair x=10": 1.0, "fair x=2": 2.0, "fair x=0.5": 3.0, "srtf": 0.5}
    file = kept(
        tmp_path / "sweep.db",
        *((name, 900.0, 1.0, 0, {"jct_mean_s": at, "slowdown_mean": 1.0}) for name, at in values.items()),
    )
    picture = drawn(file, "--x", "jct_mean_s", "--y", "slowdown_mean")
    assert [dot.partition(",")[0] for dot in dots_in(picture)] == [
        "fair x=0.5",
        "fair x=2",
        "fair x=10",
        "srtf",
    ]
    assert {"fair", "srtf"} <= set(words_in(picture))
    assert not [word for word in words_in(picture) if "x=" in word]


def test_policies_alone_are_points_of_mean_jct(tmp_path: Path) -> None:
    file = kept(
        tmp_path / "sweep.db",
        *((name, 900.0, 1.0, 0, {"jct_mean_s": 3600.0, "slowdown_mean": 1.5}) for name in ("las", "srtf")),
    )
    picture = drawn(file, "--y", "slowdown_mean")
    assert dots_in(picture) == ["las, lease 900 s, load 1: 1.5", "srtf, lease 900 s, load 1: 1.5"]


def test_a_picture_has_its_colours_in_itself(tmp_path: Path) -> None:
    drawn(scene(tmp_path))
    text = (tmp_path / "sweep.svg").read_text()
    assert ("var(" in text, "#1f6feb" in text, "http" in text.replace("http://www.w3.org/2000/svg", "")) == (
        False, True, False,
    )  # fmt: skip
