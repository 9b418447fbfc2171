"""An arrival waits for the next look that may grant it something."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command_line import call
from tests.support.simulations import jobs_of, only, written


@pytest.mark.parametrize(("align", "intervals"), [("rolling", 1), ("aligned", 2)])
def test_an_arrival_waits_up_to_one_interval_and_up_to_two_before_leases_end_together(
    tmp_path: Path, align: str, intervals: int
) -> None:
    trace = written(tmp_path, *(f"j{at},x,{300 * at + 7 * at % 300},1,100" for at in range(100)))
    out = tmp_path / "jobs.csv"
    options = ("--policy", "fifo", "--interval", "30", "--lease", "300", "--align", align)
    only(trace, *options, "--jobs-out", str(out))
    longest = max(float(row["wait_s"]) for row in jobs_of(out))
    assert 30 * (intervals - 1) < longest <= 30 * intervals


AUTO = ("--policy", "fifo", "--interval", "auto", "--lease", "300")


@pytest.mark.parametrize("align", ["rolling", "aligned"])
def test_a_look_that_follows_changes_is_at_the_arrival_or_a_second_after_the_last(
    tmp_path: Path, align: str
) -> None:
    rows = (f"j{at},x,{300 * at + 7.3 * at % 300:g},1,100" for at in range(100))
    trace, out = written(tmp_path, *rows), tmp_path / "jobs.csv"
    only(trace, *AUTO, "--align", align, "--jobs-out", str(out))
    waits = [float(row["wait_s"]) for row in jobs_of(out)]
    assert max(waits) <= 2.0 + 1e-6, "a second since the last look, and a second before leases end together"
    assert sorted(waits)[50] == 0.0


def test_gpus_that_come_free_are_given_on_at_once(tmp_path: Path) -> None:
    trace, out = written(tmp_path, "a,x,0,16,123.4", "b,x,3,16,50", "c,y,4,16,50"), tmp_path / "jobs.csv"
    only(trace, *AUTO, "--jobs-out", str(out))
    starts = {row["job_id"]: float(row["start_s"]) for row in jobs_of(out)}
    assert starts == pytest.approx({"a": 0.0, "b": 123.4, "c": 173.4}, abs=1e-3)


def test_many_arrivals_within_a_second_share_a_look(tmp_path: Path) -> None:
    trace = written(tmp_path, *(f"j{at},x,{at / 50:g},1,1000" for at in range(500)))
    said = only(trace, *AUTO, "--until", "60")
    assert said["looks"] <= 62
    assert (said["interval_s"], said["interval_min_s"]) == (10.0, 1.0)


@pytest.mark.parametrize(
    ("settings", "interval", "least"),
    [
        ("", 10.0, None),
        ("[lease]\nterm = 600", 10.0, None),
        ("[lease]\ninterval = 30", 30.0, None),
        ('[lease]\ninterval = "auto"\ninterval_min = 2', 10.0, 2.0),
    ],
)
def test_looks_come_every_ten_seconds_unless_the_file_of_settings_says_otherwise(
    tmp_path: Path, settings: str, interval: float, least: float | None
) -> None:
    trace, config = written(tmp_path, "a,x,0,1,100"), tmp_path / "c.toml"
    config.write_text(settings)
    said = call("--config", str(config), "simulate", str(trace), "--gpus", "16", "--json")
    (result,) = json.loads(said.out)["results"]
    assert (result["interval_s"], result.get("interval_min_s")) == (interval, least)
    given = call("--config", str(config), "simulate", str(trace), "--gpus", "16", "--json", "--interval", "5")
    assert json.loads(given.out)["results"][0]["interval_s"] == 5.0


def test_a_word_that_is_no_interval_is_refused(tmp_path: Path) -> None:
    said = call("simulate", str(written(tmp_path, "a,x,0,1,100")), "--gpus", "16", "--interval", "always")
    assert said.code == 2
    assert "--interval" in said.complaint


def test_the_daemons_pace_looks_while_a_job_starts_and_when_it_hears_of_a_change(tmp_path: Path) -> None:
    trace, out = written(tmp_path, "a,x,0,16,123.4", "b,x,3.5,16,50"), tmp_path / "jobs.csv"
    said = only(trace, *AUTO, "--pace", "daemon", "--look-cost", "0.01", "--jobs-out", str(out))
    assert said["look_cost_s"] == 0.01
    waits = {row["job_id"]: float(row["wait_s"]) for row in jobs_of(out)}
    assert 0 < waits["a"] <= 1.0, "nobody wakes it: it hears of the job when it asks"
    ends = {row["job_id"]: float(row["end_s"]) for row in jobs_of(out)}
    starts = {row["job_id"]: float(row["start_s"]) for row in jobs_of(out)}
    assert 0 < starts["b"] - ends["a"] <= 1.0
    assert said["looks"] > only(trace, *AUTO)["looks"]


def test_the_daemons_pace_with_an_interval_looks_at_that_interval(tmp_path: Path) -> None:
    trace = written(tmp_path, "a,x,0,16,100")
    said = only(trace, "--policy", "fifo", "--interval", "5", "--pace", "daemon")
    assert 20 <= said["looks"] <= 26


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--look-cost", "1"), "add --pace daemon"),
        (("--pace", "daemon", "--rounds", "gavel"), "leave --pace out"),
        (("--pace", "daemon", "--look-cost", "1e9"), "--look-cost 1e+09 must not exceed the lease of 900 s"),
        (("--align", "aligned", "--renewal", "5"), "--renewal is of leases that roll"),
        (("--align", "aligned", "--reserve-after", "5"), "--reserve-after is of leases that roll"),
        (("--half-life", "1e-320"), "shorter than a millisecond"),
        (("--gpu-weights", "gpu=1e-12"), "gpu must count 0, or from 0.001 to 1e+06"),
    ],
)
def test_options_that_change_nothing_or_are_too_much_are_refused(
    tmp_path: Path, options: tuple[str, ...], words: str
) -> None:
    trace = written(tmp_path, "a,x,0,1,100")
    said = call("simulate", str(trace), "--gpus", "16", *options)
    assert said.code == 2
    assert words in said.complaint
