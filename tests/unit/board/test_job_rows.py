"""Each living job has one row, in the order of the board, with what is known of it and nothing made up."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from slurm_fair.board.job_rows import job_rows
from slurm_fair.forecast import Forecast
from slurm_fair.model import JobState, LeasePhase, Leases, LeaseTerms, Snapshot, Standing, Told, Verdict
from slurm_fair.model.ids import pack
from slurm_fair.policy.decided import Decided
from tests.support.accounts import Account, ledger
from tests.support.board_scene import plan, tick
from tests.support.builders import JobSpec, job, lease, leases, snapshot
from tests.support.deadline_views import with_deadlines

NOW = 5000.0
RUNS = JobState.RUNNING


def _rows(
    jobs: Sequence[JobSpec], held: Leases | None = None, *, told: Told | None = None, **beside: Any
) -> dict[str, dict[str, Any]]:
    """The rows of these jobs on two nodes; what stands beside is that of `_rows_of`."""
    seen = snapshot(time=NOW, nodes={"n1": 8, "n2": 8}, jobs=jobs)
    return _rows_of(replace(seen, told=told), held, **beside)


def _rows_of(
    seen: Snapshot,
    held: Leases | None = None,
    *,
    rank: Mapping[int, int] | None = None,
    starts: Mapping[int, float] | None = None,
    not_before: Mapping[int, float] | None = None,
    decided: Decided | None = None,
    accounts: Mapping[str, Account] | None = None,
    terms: LeaseTerms | None = None,
) -> dict[str, dict[str, Any]]:
    """The rows by job, in the order in which they stand."""
    ranks = [(rank or {}).get(int(key) >> 23, -1) for key in seen.jobs.key]
    planned = plan(seen, [Verdict.LEAVE] * len(seen.jobs), ("others are owed more",), rank=np.array(ranks))
    record = tick(seen, planned, terms=terms or LeaseTerms(term=900.0))
    standing = Standing(ledger(seen, jobs=accounts), held or Leases.none(), 7)
    ahead = Forecast(dict(starts or {}), dict(not_before or {}))
    return {row["job"]: row for row in job_rows(record, standing, ahead, decided or Decided())}


def test_the_promised_come_first_then_those_that_run_by_their_end_then_the_waiting_by_rank() -> None:
    jobs = [
        job(1, state=RUNS), job(2, state=RUNS), job(3, state=RUNS), job(4, state=JobState.SUSPENDED),
        job(5), job(6), job(7), job(8), job(9), job(10, state=JobState.DONE),
    ]  # fmt: skip
    held = leases(
        lease(1, {"n1": 1}, end=5900.0),
        lease(2, {"n1": 1}, end=5600.0),
        lease(3, {"n1": 1}, end=5600.0),
        lease(9, {"n2": 1}, phase=LeasePhase.GRANTED),
    )
    assert list(_rows(jobs, held, rank={5: 2, 6: 0, 8: 1})) == ["9", "2", "3", "1", "4", "6", "8", "5", "7"]


def test_equal_jobs_stand_in_the_order_of_their_ids() -> None:
    jobs = [job(12), job(9, task=10), job(9, task=2), job(3)]
    assert list(_rows(jobs)) == ["3", "9_2", "9_10", "12"]
    assert _rows([]) == {}


def test_a_running_job_without_a_lease_has_none_of_its_words() -> None:
    row = _rows([job(1, state=RUNS, start=4000.0)])["1"]
    said = ("lease", "lease_end", "leases", "promised_nodes", "awaits", "asked", "asked_for")
    assert [row[name] for name in said] == ["", None, 0, "", [], None, []]


@pytest.mark.parametrize(
    ("end", "said"),
    [(5001.0, 5001.0), (5000.0, 5010.0), (4995.0, 5010.0), (4999.0, 5010.0), (math.inf, None)],
)
def test_a_lease_ends_when_it_ends_and_one_that_is_over_goes_on_to_the_next_beat(
    end: float, said: float | None
) -> None:
    terms = LeaseTerms(term=900.0, renewal=300.0, aligned=False)
    assert terms.beat == 15.0
    row = _rows([job(1, state=RUNS)], leases(lease(1, {"n1": 1}, end=end, renewals=2)), terms=terms)["1"]
    assert (row["leases"], row["lease_end"]) == (3, said)


def test_a_promise_has_nodes_and_no_end() -> None:
    full = job(2, gpus=8, state=RUNS, on={"n2": 8})
    held = leases(lease(1, {"n1": 1, "n2": 2}, phase=LeasePhase.GRANTED, end=6000.0), lease(2, {"n2": 8}))
    row = _rows([job(1, gpus=3), full], held)["1"]
    assert (row["lease"], row["lease_end"], row["promised_nodes"]) == ("promised", None, "n1,n2")
    assert (row["awaits"], row["nodes"]) == (["GPUs"], "")


def test_a_job_that_was_asked_tells_since_when() -> None:
    held = leases(lease(1, {"n1": 1}, phase=LeasePhase.REVOKING, asked=4990.0, end=4990.0))
    row = _rows([job(1, state=RUNS)], held)["1"]
    assert (row["lease"], row["asked"], row["asked_for"]) == ("revoking", 4990.0, [])


def test_instants_that_are_none_are_said_to_be() -> None:
    rows = _rows(
        [
            job(1, state=RUNS, start=4000.0, time_limit_seconds=600.0),
            job(2, state=RUNS, start=4000.0),
            job(3, time_limit_seconds=600.0),
        ]
    )
    assert [(row["start"], row["ends_by"]) for row in rows.values()] == [
        (4000.0, 4600.0),
        (4000.0, None),
        (None, None),
    ]
    assert {row["latest_start"] for row in rows.values()} == {None}


def test_the_latest_start_of_a_job_with_a_deadline_is_when_slurm_would_start_it_last() -> None:
    jobs = [job(1, time_limit_seconds=1200.0), job(2, time_limit_seconds=1200.0), job(3), job(4)]
    told = Told.nothing(4, 1).with_columns(
        deadline=np.array([9000.0, 9000.0, 9000.0, math.inf]),
        must_fit_seconds=np.array([math.nan, 300.0, math.nan, math.nan]),
        declared_seconds=np.array([60.0, 60.0, 60.0, 60.0]),
    )
    rows = _rows(jobs, told=told)
    assert [rows[name]["latest_start"] for name in "1234"] == [7800.0, 8700.0, 9000.0, None]


def test_an_expected_start_is_not_behind_and_only_of_a_job_that_waits() -> None:
    starts = {pack(1): NOW - 30, pack(2): NOW + 30, pack(3): NOW + 60}
    rows = _rows(
        [job(1), job(2), job(3, state=RUNS), job(4)], starts=starts, not_before={pack(4): 9000.0, pack(3): 1}
    )
    assert {name: row["expected_start"] for name, row in rows.items()} == {
        "1": NOW,
        "2": NOW + 30,
        "3": None,
        "4": None,
    }
    assert [rows[name]["not_before"] for name in "1234"] == [None, None, None, 9000.0]


def test_accounts_are_those_of_the_job_and_rho_is_known_where_something_was_owed() -> None:
    rows = _rows(
        [job(1), job(2)], accounts={"1": Account(had=40, owed=80, ran=10), "2": Account(had=0, owed=0)}
    )
    assert (rows["1"]["had_gpu_seconds"], rows["1"]["owed_gpu_seconds"], rows["1"]["ran_seconds"]) == (
        40,
        80,
        10,
    )
    assert (rows["1"]["rho"], rows["2"]["rho"]) == (0.5, None)


def test_the_number_that_decides_is_told_where_a_policy_names_one() -> None:
    numbers = np.array([0.25, np.nan])
    named = _rows([job(1), job(2)], decided=Decided("its share", numbers=numbers))
    assert [row["decided"] for row in named.values()] == [0.25, None]
    unnamed = _rows([job(1), job(2)], decided=Decided("", numbers=numbers))
    assert [row["decided"] for row in unnamed.values()] == [None, None]


def test_a_job_on_several_nodes_names_them_all() -> None:
    rows = _rows([job(1, gpus=9, state=RUNS, on={"n2": 1, "n1": 8}), job(2)])
    assert sorted(rows["1"]["nodes"].split(",")) == ["n1", "n2"]
    assert rows["2"]["nodes"] == ""


def test_every_row_has_every_column() -> None:
    rows = _rows([job(1, state=RUNS), job(2), job(3, task=4)])
    assert len({tuple(row) for row in rows.values()}) == 1
    assert {type(row["gpus"]) for row in rows.values()} == {int}


def test_a_job_that_would_start_too_late_for_its_deadline_has_no_expected_start() -> None:
    """Slurm starts a job only while its whole limit, or its least time, fits before its deadline."""
    nodes = {"n1": 8}
    hour = [job(number, time_limit_seconds=3600.0) for number in range(1, 6)]
    deadlines = {"j1": (1800.0, 1.0), "j4": (1800.0, 1.0), **dict.fromkeys(("j2", "j3", "j5"), (3700.0, 1.0))}
    starts = {pack(1): NOW + 30, pack(2): NOW + 30, pack(3): NOW + 200, pack(4): NOW + 30}
    seen = with_deadlines(snapshot(time=NOW, nodes=nodes, jobs=hour), **deadlines)
    assert seen.told is not None
    least = np.array([math.nan, math.nan, math.nan, 600.0, math.nan])
    seen = replace(seen, told=seen.told.with_columns(must_fit_seconds=least))
    rows = _rows_of(seen, starts=starts, not_before={pack(5): NOW + 500})
    said = {
        name: (row["latest_start"], row["expected_start"], row["not_before"]) for name, row in rows.items()
    }
    assert said == {
        "1": (NOW - 1800, None, None),
        "2": (NOW + 100, NOW + 30, None),
        "3": (NOW + 100, None, NOW + 100),
        "4": (NOW + 1200, NOW + 30, None),
        "5": (NOW + 100, None, NOW + 100),
    }
