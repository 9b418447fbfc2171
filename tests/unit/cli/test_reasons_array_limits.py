"""Tasks that their array's own limit keeps back: what they hear, and what those behind them hear."""

from __future__ import annotations

from dataclasses import replace

import pytest

from slurm_fair.board.board import Board, draw
from slurm_fair.cli.explain import what_would_help
from slurm_fair.cli.reasons import Reasons
from slurm_fair.model import JobState
from slurm_fair_plugins.fair import Fair
from tests.support.builders import JobSpec, job
from tests.support.tick_bench import BEGAN, TickBench

NOW = BEGAN + 20


def seen(*others: JobSpec, gpus: int = 12) -> Board:
    """An array of six tasks of which two may run, and do, after the second look at it."""
    columns = {"gpus": 1, "array_limit": 2, "submit": BEGAN, "tenant": "a", "record": 60}
    bench = TickBench(Fair())
    waits = [job(60, task=at, gated=True, gate_until=1e9, **columns) for at in range(6)]
    bench.see(*waits, *others, gpus=gpus)
    runs = [
        job(60, task=at, state=JobState.RUNNING, start=BEGAN + 15, on={"n1": 1}, **columns) for at in range(2)
    ]
    bench.see(*runs, *waits[2:], *others, gpus=gpus)
    record = bench.journal.records[-1]
    return draw(record, bench.standing, policy=bench.policy)


def said(board: Board, name: str) -> tuple[str, list[str]]:
    row = board.find(name)
    assert row is not None
    reasons = Reasons(board, NOW)
    return reasons.short(row), reasons.full(row)


def test_beside_idle_gpus_they_hear_of_the_limit_and_of_no_line() -> None:
    board = seen()
    word = "its array's own limit is reached by jobs 60_0, 60_1 (a)"
    for task in range(2, 6):
        assert said(board, f"60_{task}") == (word, [word])
    row = board.find("60_2")
    assert row is not None
    assert (row["rank"], row["blocked"]) == (-1, "array_limit")
    assert what_would_help(row) == "it takes part as soon as another task of its array has ended"


def test_they_go_before_nobody() -> None:
    board = seen(job(70, gpus=16, tenant="b", submit=BEGAN, gated=True, gate_until=1e9), gpus=16)
    short, full = said(board, "70")
    assert short.startswith("next in line: it wants 16 GPUs, 14 GPUs are free")
    assert full[0] == "it is next in line: no waiting job goes before it"
    assert "60_2" not in "".join(full)


def test_on_a_full_cluster_they_are_not_next_in_line_either_and_no_plan_could_be_worth_more_by_them() -> None:
    board = seen(gpus=2)
    short, full = said(board, "60_2")
    assert (short, full) == ("its array's own limit is reached by jobs 60_0, 60_1 (a)", [short])
    assert "gap" not in str(board.decided.get("about", "")) or "gap 0" in str(board.decided["about"])


@pytest.mark.parametrize("rank", [-1, 0])
def test_a_task_that_a_policy_finds_to_be_over_the_limit_stands_in_no_line(rank: int) -> None:
    """Nor where nothing but the plan says so."""
    board = seen(job(70, gpus=16, tenant="b", submit=BEGAN, gated=True, gate_until=1e9), gpus=16)
    jobs = tuple(
        {**row, "rank": rank, "verdict": "wait", "blocked": ""} if row["job"] == "60_2" else row
        for row in board.jobs
    )
    board = replace(board, jobs=jobs)
    assert said(board, "60_2")[0] == "its array's own limit is reached by jobs 60_0, 60_1 (a)"
    assert said(board, "70")[1][0] == "it is next in line: no waiting job goes before it"
