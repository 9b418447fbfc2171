"""`slurm-fair sweep table` and `sweep plot`: means, marks, documents and charts from the file alone."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from statistics import stdev
from typing import Any
from xml.etree import ElementTree

import pytest

from slurm_fair.cli.sweep.grid import SweepRun
from slurm_fair.cli.sweep.results_file import About, ResultsFile
from tests.support.command_line import call
from tests.support.schemas import faults

SCHEMA = json.loads((Path(__file__).parents[3] / "docs" / "schema" / "sweep-table.json").read_text())
ABOUT = About({"path": "jobs.csv", "jobs": 3, "sha256": "0" * 64}, {"gpus": 8, "nodes": 1}, {"--gpus": 8})
SVG = "{http://www.w3.org/2000/svg}"


def kept(file: Path, *runs: tuple[str, float | None, float, int, dict[str, Any]]) -> Path:
    """A file with these runs: policy, lease, load, seed, metrics; one without metrics has failed."""
    with ResultsFile.to_write(file) as results:
        results.belong(ABOUT, {})
        for policy, lease, load, seed, row in runs:
            cell = SweepRun(policy, lease, load, seed)
            if row:
                results.keep(cell, {"tenants": []} | row, "0.1")
            else:
                results.fail(cell, "out of\x1b[1m luck", "0.1")
    return file


def scene(folder: Path) -> Path:
    """Two policies at two loads with two seeds, one run failed, one policy without lease ends."""
    return kept(
        folder / "sweep.db",
        ("astraea", 900.0, 1.0, 0, {"jct_mean_s": 3600.0, "jain_tenants": 0.9}),
        ("astraea", 900.0, 1.0, 1, {"jct_mean_s": 7200.0, "jain_tenants": None}),
        ("astraea", 900.0, 2.0, 0, {"jct_mean_s": 10800.0, "jain_tenants": 0.8}),
        ("astraea", 900.0, 2.0, 1, {}),
        ("fifo", None, 1.0, 0, {"jct_mean_s": 36000.0, "jain_tenants": 0.5}),
        ("fifo", None, 2.0, 0, {"jct_mean_s": 72000.0, "jain_tenants": 0.4}),
    )


# -- table ----------------------------------------------------------------------------------------------------


def test_the_table_has_means_and_spreads_and_marks_the_best_of_each_load(tmp_path: Path) -> None:
    said = call("sweep", "table", str(scene(tmp_path)), "--metric", "jct_mean_s")
    assert (said.code, said.err) == (0, "")
    head, below, *lines = said.out.splitlines()
    assert head.split() == ["JCT,", "mean,"]
    assert below.split() == ["policy", "lease,", "s", "load", "seeds", "h"]
    assert [" ".join(line.split()) for line in lines] == [
        "astraea 900 1 2 1.50 +- 0.71*",
        "astraea 900 2 1 (1 failed) 3.00*",
        "fifo never ends 1 1 10.00",
        "fifo never ends 2 1 20.00",
        "",
        "* best at this load",
        "failed: astraea, lease 900 s, load 2, seed 1: out of?[1m luck",
    ]


def test_values_that_differ_less_than_their_seeds_are_alike(tmp_path: Path) -> None:
    file = kept(
        tmp_path / "sweep.db",
        *(("srtf", 900.0, 1.0, seed, {"jct_mean_s": 3600.0 * (1 + seed)}) for seed in range(2)),
        *(("las", 900.0, 1.0, seed, {"jct_mean_s": 3600.0 * (1.2 + seed)}) for seed in range(2)),
    )
    out = call("sweep", "table", str(file), "--metric", "jct_mean_s").out
    assert ("1.50 +- 0.71=" in out, "1.70 +- 0.71=" in out, "no difference" in out) == (True, True, True)


def test_each_seed_has_a_row_of_its_own_when_asked(tmp_path: Path) -> None:
    lines = call("sweep", "table", str(scene(tmp_path)), "--each", "--csv").out.splitlines()
    assert len(lines) == 7
    assert lines[1] == "astraea,900.0,1.0,0,0,3600.0,,0.9,"
    assert lines[4].startswith("astraea,900.0,2.0,,1")
    out = call("sweep", "table", str(tmp_path / "sweep.db"), "--each", "--metric", "jct_mean_s").out
    rows = [" ".join(line.split()) for line in out.splitlines()[2:6]]
    assert rows == [
        "astraea 900 1 0 1.00",
        "astraea 900 1 1 2.00",
        "astraea 900 2 0 3.00",
        "astraea 900 2 1 (failed) -",
    ]


def test_csv_and_json_have_plain_numbers_of_all_metrics(tmp_path: Path) -> None:
    file = scene(tmp_path)
    rows = list(csv.DictReader(io.StringIO(call("sweep", "table", str(file), "--csv").out)))
    assert (rows[0]["jct_mean_s"], rows[0]["jct_mean_s_spread"]) == ("5400.0", repr(stdev([3600.0, 7200.0])))
    assert (rows[0]["seeds"], rows[2]["lease_s"], rows[2]["jain_tenants"]) == ("0 1", "", "0.5")
    found = json.loads(call("sweep", "table", str(file), "--json").out)
    assert faults(found, SCHEMA) == []
    first = found["results"][0]
    assert (first["seeds"], first["mean"]["jct_mean_s"], first["mean"]["jain_tenants"]) == (
        [0, 1],
        5400.0,
        None,
    )
    assert found["failures"] == [
        {"policy": "astraea", "lease_s": 900.0, "load": 2.0, "seed": 1, "problem": "out of\x1b[1m luck"}
    ]
    some = json.loads(call("sweep", "table", str(file), "--json", "--metric", "jct_mean_s").out)
    assert list(some["results"][0]["mean"]) == ["jct_mean_s"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("table", "--metric", "jct"), "no metric 'jct'; did you mean 'jct_"),
        (("table", "--json", "--csv"), "--json and --csv"),
        (("plot",), "'--out'"),
        (("plot", "--out", "x.svg", "--x", "jct_mean_s,slowdown_mean"), "one thing is along the x axis"),
        (("plot", "--out", "x.svg", "--y", "hours"), "no metric 'hours'"),
        (("plot", "--out", "sweep.db"), "is read here too"),
    ],
)
def test_what_cannot_be_shown_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    file = scene(tmp_path)
    said = call("sweep", arguments[0], file.name, *arguments[1:])
    assert (said.code, words in said.complaint) == (2, True), said.err


def test_a_file_without_runs_says_how_to_go_on(tmp_path: Path) -> None:
    file = kept(tmp_path / "sweep.db")
    for more in (("table", str(file)), ("plot", str(file), "--out", str(tmp_path / "x.svg"))):
        said = call("sweep", *more)
        assert (said.code, "go on with the same slurm-fair sweep TRACE" in said.complaint) == (2, True)
    only_failed = kept(tmp_path / "failed.db", ("srtf", 900.0, 1.0, 0, {}))
    assert "(1 failed)" in call("sweep", "table", str(only_failed)).out
    assert call("sweep", "plot", str(only_failed), "--out", str(tmp_path / "x.svg")).code == 2


# -- charts ---------------------------------------------------------------------------------------------------


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
        "astraea, lease 900 s, load 1: 1.5",
        "astraea, lease 900 s, load 2: 3",
        "fifo, lease never ends, load 1: 10",
        "fifo, lease never ends, load 2: 20",
    ]
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
        False,
        True,
        False,
    )
