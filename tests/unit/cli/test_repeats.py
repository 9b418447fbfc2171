"""`--repeat`: mean and spread of several runs, and no difference where chance may have made it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_fair.cli.simulate.repeats import deviation_of, mean_of
from slurm_fair.cli.simulate.table import ALIKE, BEST, Better, Metric, marks, metric_text
from slurm_fair.sim import NodeEvent, Outage, Scenario
from slurm_fair.sim.repeat import shaken
from slurm_fair.sim.tune import Tolerances, Trial, TrialDeviations, advise
from slurm_fair.trace import uniform
from tests.support.command_line import call
from tests.support.pasts import run, saved
from tests.support.schemas import faults
from tests.support.simulated import Arrival, arrivals
from tests.support.simulated import trace as trace_of
from tests.support.simulations import TIMINGS, document, made, only, simulated

SCHEMAS = Path(__file__).parents[3] / "docs" / "schema"
LESS = Metric("less", "x", lambda value: f"{value:.1f}")
MORE = replace(LESS, better=Better.HIGH)


def row(mean: float, spread: float | None = None) -> dict[str, Any]:
    """One policy's only metric."""
    told = None if spread is None else {"runs": 3, "mean": {"x": mean}, "spread": {"x": spread}}
    return {"x": mean, "repeated": told}


# -- a scenario once more -----------------------------------------------------------------------------------------


@given(arrivals(900, (5, 900)), st.integers(0, 99), st.sampled_from((1.0, 10.0)))
def test_what_comes_from_outside_is_moved_by_less_than_one_interval_and_a_job_by_less_than_one_more(
    jobs: list[Arrival], seed: int, interval: float
) -> None:
    jobs = [replace(job, job_id=f"j{at}") for at, job in enumerate(jobs)]
    scenario = Scenario(
        trace_of(jobs), uniform(8), outages=(Outage(50.0, "n1", NodeEvent.DOWN),), until_s=5000.0
    )
    moved = shaken(scenario, interval, np.random.default_rng(seed))
    phase = moved.until_s - 5000.0
    assert 0.0 <= phase < interval
    assert moved.outages[0].time_s == pytest.approx(50.0 + phase)
    assert (np.diff(moved.trace.submit_s) >= 0).all(), "in order of submission"
    before = dict(zip(scenario.trace.job_id.tolist(), scenario.trace.submit_s.tolist(), strict=True))
    late = [
        at - before[job]
        for job, at in zip(moved.trace.job_id.tolist(), moved.trace.submit_s.tolist(), strict=True)
    ]
    assert all(phase <= seconds < phase + interval for seconds in late)
    worked = dict(zip(moved.trace.job_id.tolist(), moved.trace.duration_s.tolist(), strict=True))
    assert worked == dict(
        zip(scenario.trace.job_id.tolist(), scenario.trace.duration_s.tolist(), strict=True)
    )


# -- commands -----------------------------------------------------------------------------------------------------


def test_the_first_run_is_the_one_without_repeats_and_the_others_follow_from_the_seed(tmp_path: Path) -> None:
    trace = made(tmp_path)
    alone, three = only(trace), only(trace, "--repeat", "3")
    told = three.pop("repeated")
    assert alone.pop("repeated") is None
    assert three == alone
    assert told["runs"] == 3
    assert told["spread"]["jct_mean_s"] > 0
    again, other = only(trace, "--repeat", "3"), only(trace, "--repeat", "3", "--seed", "9")
    same = [{key: told[part][key] for key in told[part].keys() - TIMINGS} for part in ("mean", "spread")]
    assert same == [{key: again["repeated"][part][key] for key in same[0]} for part in ("mean", "spread")]
    assert other["repeated"]["mean"]["jct_mean_s"] != told["mean"]["jct_mean_s"]
    workers = only(trace, "--repeat", "3", "--workers", "2")["repeated"]
    assert workers["mean"]["jct_mean_s"] == told["mean"]["jct_mean_s"]


def test_mean_and_spread_are_those_of_the_runs(tmp_path: Path) -> None:
    """Two runs: the first is known, and mean and spread tell the other."""
    found = only(made(tmp_path), "--repeat", "2")
    first, mean = found["jct_mean_s"], mean_of(found, "jct_mean_s")
    assert mean is not None
    both = [first, 2 * mean - first]
    assert deviation_of(found, "jct_mean_s") == pytest.approx(stdev(both))
    assert mean == pytest.approx(fmean(both))


def test_the_table_shows_both_and_the_document_keeps_to_its_schema(tmp_path: Path) -> None:
    trace = made(tmp_path)
    said = simulated(trace, "--policy", "astraea,fifo", "--repeat", "3")
    assert " +- " in said.out
    assert "note: mean and standard deviation of 3 runs" in said.out
    assert " +- " not in simulated(trace).out
    found = document(trace, "--repeat", "2")
    assert found["options"]["repeat"] == 2
    assert faults(found, json.loads((SCHEMAS / "simulate.json").read_text())) == []


def test_a_past_is_replayed_and_tuned_several_times_too(tmp_path: Path) -> None:
    rows = [
        run(str(job), 40 * job, 2000 * job, 2000 * job + 700, gpus=4, tenant="ab"[job % 2])
        for job in range(1, 9)
    ]
    given = ("--sacct", str(saved(tmp_path / "sacct.txt", rows)), "--gpus", "8", "--repeat", "3", "--json")
    replayed = json.loads(call("replay", *given).out)
    assert faults(replayed, json.loads((SCHEMAS / "replay.json").read_text())) == []
    assert [result["repeated"] is None for result in replayed["results"]] == [True, False]
    tuned = json.loads(call("tune-lease", *given, "--terms", "300,900").out)
    assert faults(tuned, json.loads((SCHEMAS / "tune-lease.json").read_text())) == []
    assert [term["repeated"]["runs"] for term in tuned["terms"]] == [3, 3]
    assert "+-" in call("tune-lease", *given[:-1], "--terms", "300,900").out


# -- differences --------------------------------------------------------------------------------------------------


def test_a_difference_less_than_the_spread_is_none() -> None:
    assert marks(LESS, [row(10, 1), row(11.5, 1), row(30, 1)]) == [BEST, "", ""]
    assert marks(LESS, [row(10, 2), row(11.5, 1), row(30, 1)]) == [ALIKE, ALIKE, ""]
    assert marks(LESS, [row(10, 1), row(11.5, 2), row(30, 1)]) == [ALIKE, ALIKE, ""]
    assert marks(MORE, [row(10, 1), row(30, 1), row(29, 2)]) == ["", ALIKE, ALIKE]
    assert marks(LESS, [row(10), row(11.5), row(10)]) == [BEST, "", BEST]
    assert marks(LESS, [row(10), row(30, 0), row(10, 0)]) == [BEST, "", BEST]
    assert marks(LESS, [row(10), row(10, 0), row(10, 0)]) == ["", "", ""]
    assert marks(LESS, [row(10), row(10.5, 1)]) == [ALIKE, ALIKE]
    assert metric_text(LESS, row(10, 2)) == "10.0 +- 2.0"


def trial(term: float, jct: float, spread: float = 0.0, preemptions: float = 0.0) -> Trial:
    """A term that costs nothing and treats all alike."""
    apart = TrialDeviations(jct_mean_seconds=spread, preemptions=spread)
    return Trial(term, 0.0, 0.0, jct, 0.0, preemptions, deviations=apart)


def test_a_term_lags_only_by_more_than_the_spread_of_its_runs() -> None:
    limits = Tolerances(jct=0.01)
    certain = [trial(300, 1000.0, preemptions=50), trial(1800, 1050.0, preemptions=10)]
    assert advise(certain, limits).lease_seconds == 300
    uncertain = [replace(each, deviations=TrialDeviations(jct_mean_seconds=60.0)) for each in certain]
    assert advise(uncertain, limits).lease_seconds == 1800
    behind = advise(uncertain, limits).behind[1]
    assert behind is not None
    assert behind.jct == 0.0


def test_pre_emptions_that_differ_by_chance_do_not_choose_a_term() -> None:
    fewer = [trial(600, 1000.0, preemptions=12), trial(7200, 1000.0, preemptions=10)]
    assert advise(fewer).lease_seconds == 7200
    by_chance = [replace(each, deviations=TrialDeviations(preemptions=3.0)) for each in fewer]
    assert advise(by_chance).lease_seconds == 600
