"""`slurm-fair sweep table`: means, marks and documents from the file alone."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from statistics import stdev

import pytest

from tests.support.command_line import call
from tests.support.kept_sweeps import kept, scene
from tests.support.schemas import faults

SCHEMA = json.loads((Path(__file__).parents[4] / "docs" / "schema" / "sweep-table.json").read_text())


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
        "astraea 900 1 0 1.00", "astraea 900 1 1 2.00", "astraea 900 2 0 3.00", "astraea 900 2 1 (failed) -",
    ]  # fmt: skip


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
