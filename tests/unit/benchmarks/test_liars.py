"""`benchmarks/liars.py`: what lies bring is measured, and under policies for sites they bring next to nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from statistics import fmean

import pytest

from benchmarks.liars import HEADS, LIES, MEASURES, lines_of, main, options_of, rows_of
from slurm_fair.errors import InputError
from tests.support.simulations import written

MOST_GAIN, MOST_HARM = 0.05, 0.02
SMALL = ("--jobs", "60", "--gpus", "16", "--seeds", "2", "--liars", "1")
# `fair` goes by claims and learns whom to believe: that shows only where tenants have some jobs behind them.
LARGER = ("--jobs", "80", "--gpus", "24", "--seeds", "3", "--liars", "2")


def changes(policy: str, *lies: str, runs: tuple[str, ...] = SMALL) -> dict[str, dict[str, float]]:
    """The mean change of each measure under each lie."""
    chosen = [word for lie in lies for word in ("--lie", lie)]
    rows = list(rows_of(options_of(["--policy", policy, *chosen, *runs])))
    return {
        lie: {measure: fmean(row[measure] for row in rows if row["lie"] == lie) for measure in MEASURES}
        for lie in dict.fromkeys(row["lie"] for row in rows)
    }


@pytest.mark.parametrize(("policy", "runs"), [("astraea", SMALL), ("fair", LARGER)], ids=["astraea", "fair"])
def test_lies_gain_a_tenant_little_and_cost_the_honest_less(policy: str, runs: tuple[str, ...]) -> None:
    found = changes(policy, *(lie.words for lie in LIES), runs=runs)
    assert len(found) == len(LIES)
    assert {lie: told for lie, told in found.items() if told["liar_service"] > MOST_GAIN} == {}
    assert {lie: told for lie, told in found.items() if told["honest_service"] < -MOST_HARM} == {}


def test_under_shortest_first_a_short_claim_pays_and_a_long_one_does_not() -> None:
    short, long_ = changes("srtf", "declares 0.1 x, silent", "declares 10 x, silent").values()
    assert short["liar_service"] > MOST_GAIN
    assert short["honest_service"] < -MOST_HARM
    assert (long_["liar_service"] < 0, long_["liar_jct"] > 0, long_["honest_jct"] < 0) == (True, True, True)


def test_a_lie_is_compared_with_the_truth_in_the_same_form(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--policy", "fifo", "--jobs", "20", "--seeds", "1", "--liars", "1", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told["name"] == "liars"
    assert [row["lie"] for row in told["rows"]] == [lie.words for lie in LIES]
    assert {row[measure] for row in told["rows"] for measure in MEASURES} == {0.0}


def test_the_table_has_the_mean_and_its_standard_error(tmp_path: Path) -> None:
    rows = [
        {"method": "srtf", "lie": "l", **dict.fromkeys(MEASURES, 0.1), "liar_jct": change}
        for change in (0.1, 0.3)
    ]
    assert lines_of(rows) == [
        ("srtf", "l", "2", "+10.0 % +- 0.0", "+20.0 % +- 10.0", *["+10.0 % +- 0.0"] * 2)
    ]
    trace = written(tmp_path, *(f"{at},{'xy'[at % 2]},{100 * at},4,100" for at in range(8)))
    options = [
        "--trace",
        str(trace),
        "--policy",
        "fifo",
        "--gpus",
        "8",
        "--lie",
        LIES[0].words,
        "--seeds",
        "1",
    ]
    lines = lines_of(list(rows_of(options_of(options))))
    assert [line[:3] for line in lines] == [("fifo", LIES[0].words, "2")]
    assert len(lines[0]) == len(HEADS)


@pytest.mark.parametrize(
    "words", [("--jobs", "0"), ("--lie", "x"), ("--trace", "/no/where.csv"), ("--policy", "x")]
)
def test_a_wrong_word_is_refused(words: tuple[str, ...]) -> None:
    with pytest.raises(InputError):
        main(words)


def test_the_program_ends_in_one_line() -> None:
    program = Path(__file__).parents[3] / "benchmarks" / "liars.py"
    done = subprocess.run(
        [sys.executable, program, "--jobs", "x"], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
