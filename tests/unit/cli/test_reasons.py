"""Reasons have a subject, and are true at every rank."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from slurm_fair.board.board import Board, draw
from slurm_fair.cli.reasons import _by
from slurm_fair.cli.story import story
from slurm_fair.cli.table import instant
from slurm_fair.model import Event, Plan
from slurm_fair.policy import View
from slurm_fair.reconcile.for_whom import NEEDED_NO_MORE
from slurm_fair_plugins.astraea import Astraea
from slurm_fair_plugins.fair import Fair
from slurm_fair_plugins.fifo import Fifo
from slurm_fair_plugins.tiresias import Las
from tests.support.board_reasons import full, short
from tests.support.board_scene import ENDS, NOW, recorded

END = instant(ENDS)[11:]


@pytest.fixture
def board() -> Board:
    return draw(*recorded(), policy=Astraea())


def test_who_is_next_in_line_hears_who_holds_the_gpus_and_until_when(board: Board) -> None:
    first, *held = full(board, "10")
    assert first == "it is next in line: no waiting job goes before it"
    assert f"16 of 32 GPUs are held by jobs 1, 2 (vision), whose leases end {END} (in 26 s)" in held
    assert "8 of 32 GPUs are held by job 4 (vision), which gives them back now" in held
    assert "8 GPUs are promised to job 9 (speech), which starts first" in held
    assert not [line for line in [first, *held] if "owed more" in line]


def test_a_holder_that_cannot_save_is_named_with_its_limit(board: Board) -> None:
    limit = instant(NOW + 1800)[11:]
    said = "8 of 32 GPUs are held by job 3 (nlp), which cannot save and keeps its GPUs until it ends "
    assert f"{said}(limit {limit} (in 30 min))" in full(board, "10")
    assert (
        short(board, "3") == f"it cannot save, so it keeps its GPUs until it ends (limit {limit} (in 30 min))"
    )


def test_who_goes_before_is_named_with_the_numbers_that_decided(board: Board) -> None:
    assert full(board, "11")[0] == (
        "1 job of 32 GPUs goes before it: first job 10 (speech), which the policy astraea puts first by what its "
        "tenant has had, with the leases of this round before it, of its quota: 0.00 against 1.10"
    )
    assert short(board, "20_1") == "2 jobs of 34 GPUs go before it, first job 10 (speech)"


def test_the_number_is_told_by_the_policy_and_not_by_its_name() -> None:
    other = draw(*recorded(policy="mine"), policy=Astraea())
    assert "which the policy mine puts first by what its tenant has had" in full(other, "11")[0]
    record, standing = recorded(policy="las")
    score = np.arange(len(record.plan.explanation.score), dtype=float)
    plan = replace(record.plan, why=record.plan.explanation.with_columns(score=score))
    told = draw(record._replace(plan=plan), standing, policy=Las())
    said = full(told, "11")[0]
    assert said.endswith(
        "which the policy las puts first by the GPU-seconds that it has had: 5.00 against 6.00"
    )


def test_what_the_policy_says_of_its_whole_plan_stands_at_the_end(board: Board) -> None:
    record, standing = recorded(policy="fair")
    weighed = {"period": {"value": 7.5, "bound": 8.0, "how": "walk"}}
    told = draw(record._replace(plan=replace(record.plan, memory=weighed)), standing, policy=Fair())
    about = "the plan is worth 7.5 of at most 8 (gap 6.2%), found by the walk"
    assert full(told, "11")[-1] == about
    assert about not in full(board, "11")


def test_of_a_plan_that_is_not_the_policys_own_no_number_is_told() -> None:
    record, standing = recorded()
    stood = record._replace(plan=replace(record.plan, note="the policy raised"))
    board = draw(stood, standing, policy=Astraea())
    assert full(board, "11")[0].endswith("which the policy astraea puts first")


def test_a_job_that_waits_for_jobs_that_cannot_be_asked_hears_who_they_are(board: Board) -> None:
    word = "it needs GPUs of jobs that cannot be asked to give way: it starts when they end"
    for blocked in ("", "kept"):
        change = {"verdict": "leave", "why": word, "rank": -1, "blocked": blocked}
        jobs = tuple({**row, **change} if row["job"] == "10" else row for row in board.jobs)
        first, *held = full(replace(board, jobs=jobs), "10")
        assert first == word
        assert [line for line in held if "held by job 3 (nlp), which cannot save" in line]
        assert short(replace(board, jobs=jobs), "10") == word


def test_of_a_policy_that_does_not_say_what_it_goes_by_nothing_is_said() -> None:
    class Mine:
        def plan(self, view: View) -> Plan:
            raise NotImplementedError

    said = full(draw(*recorded(policy="mine"), policy=Mine()), "11")[0]
    assert said.endswith("first job 10 (speech), which the policy mine puts first")


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ((60.0, 50.0), "by the seconds since it was submitted: 60.00 against 50.00"),
        ((0.004, 0.003), "by the seconds since it was submitted: 0.004 against 0.003"),
        ((60.0, 60.0), "by its number, since the seconds since it was submitted is 60.00 for both"),
        ((50.0, 60.0), "by its number, though the seconds since it was submitted is 50.00 against 60.00"),
        ((60.0, np.nan), "by the seconds since it was submitted: 60.00 against none"),
        ((np.nan, 60.0), "by its number"),
        ((np.nan, np.nan), "by its number"),
    ],
)
def test_where_the_number_does_not_decide_it_is_said_what_does(
    scores: tuple[float, float], said: str
) -> None:
    record, standing = recorded(policy="fifo")
    score = np.full(len(record.plan.explanation.score), np.nan)
    score[5], score[6] = scores  # jobs 10 and 11
    plan = replace(record.plan, why=record.plan.explanation.with_columns(score=score))
    board = draw(record._replace(plan=plan), standing, policy=Fifo())
    assert full(board, "11")[0].endswith(f"which the policy fifo puts first {said}")


@pytest.mark.parametrize(
    ("told", "one", "other", "said"),
    [
        (
            {"by": "rho", "then": "age", "highest_first": False},
            1.00083,
            1.00486,
            " by rho: 1.001 against 1.005",
        ),
        (
            {"by": "rho", "then": "age", "highest_first": False},
            1.0,
            1.0,
            " by age, since rho is 1.00 for both",
        ),
        (
            {"by": "rho", "then": "age", "highest_first": True},
            1.0,
            2.0,
            " by age, though rho is 1.00 against 2.00",
        ),
        (
            {"by": "its priority"},
            200.0,
            100.0,
            " by its priority: 200.00 against 100.00",
        ),  # an older daemon's
    ],
)
def test_numbers_are_told_with_the_places_that_tell_them_apart(
    told: dict[str, Any], one: float, other: float, said: str
) -> None:
    assert _by(told, one, other) == said


def test_a_request_that_was_withdrawn_is_not_told_as_a_refusal_of_slurm() -> None:
    detail = {"why": NEEDED_NO_MORE, "until": NOW + 60, "number": 2}
    told = " ".join(map(str, story([Event(NOW, "stays", 1, "vision", 1, detail)])))
    assert "the request was withdrawn, nobody needs its GPUs any more: its lease goes on" in told
    assert "did not take it off" not in told


def test_of_ones_own_tenant_the_jobs_own_numbers_are_told(board: Board) -> None:
    jobs = tuple({**row, "tenant": "vision"} if row["job"] == "10" else row for row in board.jobs)
    assert "which is of its own tenant and has not run yet" in full(replace(board, jobs=jobs), "11")[0]


def test_a_promised_job_is_told_where_it_starts(board: Board) -> None:
    assert short(board, "9") == "starting on n4: its GPUs are promised, it starts when they are free"


@pytest.mark.parametrize(
    ("awaits", "said"),
    [
        ([], "its GPUs are promised, it starts when they are free"),
        (["GPUs", "CPUs"], "its GPUs are promised, it starts when they are free"),
        (["CPUs"], "its GPUs are free and promised, it starts when CPUs are free too"),
        (["CPUs", "memory"], "its GPUs are free and promised, it starts when CPUs and memory are free too"),
    ],
)
def test_a_promised_job_is_not_said_to_await_gpus_that_are_free(
    board: Board, awaits: list[str], said: str
) -> None:
    jobs = tuple({**row, "awaits": awaits} if row["job"] == "9" else row for row in board.jobs)
    assert short(replace(board, jobs=jobs), "9") == f"starting on n4: {said}"


def test_a_job_that_was_asked_is_told_for_whom(board: Board) -> None:
    whom = [{"job": "9", "tenant": "speech"}]
    jobs = tuple({**row, "asked_for": whom} if row["job"] == "4" else row for row in board.jobs)
    said = short(replace(board, jobs=jobs), "4")
    assert (
        said == f"asked to save at {instant(NOW - 4)[11:]}: its GPUs go to job 9 (speech), which is owed more"
    )


def test_names_that_are_not_shown_are_another_account(board: Board) -> None:
    hidden = tuple({**row, "tenant": ""} if row["job"] in ("1", "2", "10") else row for row in board.jobs)
    said = "\n".join(full(replace(board, jobs=hidden), "11"))
    assert "job 10 (another account)" in said
    assert "jobs 1, 2 (another account), whose leases end" in said


def test_free_gpus_are_told_to_whoever_waits_for_more(board: Board) -> None:
    jobs = tuple(row for row in board.jobs if row["job"] != "2")
    free = replace(board, jobs=jobs, gpus={"used": 24, "others": 0, "free": 16, "out": 0})
    assert "8 GPUs are free and promised to nobody" in full(free, "10")


@pytest.mark.parametrize(
    ("kind", "detail", "words"),
    [
        ("opened", {"why": "granted", "nodes": ["n1"]}, "its gate was opened: Slurm may start it on n1"),
        (
            "asked",
            {"why": "its lease is over", "nodes": [], "for": ["10"]},
            "it was asked to save and to give way, because its lease is over; for job 10",
        ),
        (
            "returned",
            {"why": "revoked", "number": 1, "held_seconds": 60.8},
            "it gave its GPUs back after 00:01:01, because its lease was over and others were owed more",
        ),
        ("stopped", {"start": 1.0, "had": 480.0, "restarts": 0}, "this run was over: it had 0.13 GPU-hours"),
        ("renewed", {"until": NOW, "number": 3}, f"lease 3 of this run until {instant(NOW)}"),
        ("finished", {"had": 7200.0, "state": "COMPLETED"}, "ended (COMPLETED): 2.00 GPU-hours in all"),
        ("invented", {"x": "\x1b[31m"}, "invented: x ?[31m"),
    ],
)
def test_what_happened_is_told_in_sentences(kind: str, detail: dict[str, Any], words: str) -> None:
    (line,) = story([Event(NOW, kind, 1, "a", 1, detail)])
    assert line.startswith(instant(NOW))
    assert words in line


@pytest.mark.parametrize("blocked", ["", "kept", "user_hold"])
@pytest.mark.parametrize(("latest", "missed"), [(None, False), (NOW + 1, False), (NOW - 1, True)])
def test_a_job_that_is_too_late_for_its_deadline_hears_so_whatever_else_it_waits_for(
    board: Board, blocked: str, latest: float | None, missed: bool
) -> None:
    change = {"blocked": blocked, "latest_start": latest}
    jobs = tuple({**row, **change} if row["job"] == "10" else row for row in board.jobs)
    late = replace(board, jobs=jobs)
    said = full(late, "10")
    ends = "it can no longer make its deadline: Slurm ends it instead of starting it"
    assert said.count(ends) == missed
    assert not missed or said[blocked == "user_hold" :] == [ends]
    assert (short(late, "10") == ends) is (missed and blocked != "user_hold")


def test_of_free_gpus_it_is_not_said_that_they_wait_for_a_gang_that_they_do_not_fit(board: Board) -> None:
    word = "its gang does not fit what those ahead of it leave"
    jobs = tuple(
        {**row, "why": word} if row["job"] == "10" else row for row in board.jobs if row["job"] != "2"
    )
    seven = replace(board, jobs=jobs, gpus={"used": 24, "others": 0, "free": 15, "out": 0})
    assert short(seven, "10") == "next in line: it wants 32 GPUs, 7 GPUs are free"
    assert "its gang does not fit what the jobs that run leave" in full(seven, "10"), "nobody is ahead of it"
    forty = replace(board, jobs=jobs, gpus={"used": 24, "others": 0, "free": 48, "out": 0})
    assert short(forty, "10") == "next in line: 40 GPUs are free, but its gang does not fit them as they lie"


def test_a_task_at_its_arrays_limit_hears_which_tasks_use_it_up_and_not_who_holds_other_gpus(
    board: Board,
) -> None:
    word = "its array's own limit is reached"
    changes: dict[str, dict[str, Any]] = {
        "20_1": {"state": "running", "lease": "running"},
        "20_2": {"why": word, "verdict": "leave", "rank": -1},
    }
    jobs = tuple({**row, **changes.get(row["job"], {})} for row in board.jobs)
    told = replace(board, jobs=jobs)
    said = f"{word} by job 20_1 (nlp) and by job 20_3 (nlp), which goes before it"
    assert (full(told, "20_2"), short(told, "20_2")) == ([said], said)


def test_what_happened_within_one_second_is_told_as_it_came() -> None:
    """Slurm's own instants have no parts of a second."""
    at = float(int(NOW))
    events = [
        Event(at, "started", 1, "a", 1, {}),
        Event(at, "finished", 1, "a", 1, {}),
        Event(at + 0.1, "granted", 1, "a", 1, {}),
        Event(at + 0.2, "opened", 1, "a", 1, {}),
        Event(at + 0.5, "asked", 1, "a", 1, {"for": ["13", "14"]}),
    ]
    said = [line.partition(" ")[2] for line in story(events, {"13": "speech"})]
    assert [line.split()[0:4] for line in said] == [
        ["GPUs", "were", "promised", "to"],
        ["its", "gate", "was", "opened:"],
        ["started"],
        ["it", "was", "asked", "to"],
        ["ended"],
    ]
    assert said[3].endswith("; for jobs 13 (speech), 14")


def test_renewals_in_a_row_are_one_line() -> None:
    def lease(number: int, at: float) -> Event:
        return Event(at, "renewed", 1, "a", 1, {"number": number, "until": at + 60})

    events = [
        Event(NOW, "submitted", 1, "a", 1, {}),
        *(lease(number, NOW + 60 * number) for number in range(2, 40)),
        Event(NOW + 9000, "stopped", 1, "a", 1, {}),
        lease(1, NOW + 9100),
    ]
    submitted, many, stopped, one = story(events)
    until = instant(NOW + 2400)
    assert many.endswith(f"its lease was renewed 38 times, at last to lease 39 of this run until {until}")
    assert one.endswith(f"its lease was renewed: lease 1 of this run until {instant(NOW + 9160)}")
    assert (submitted[20:], stopped[20:]) == ("submitted", "this run was over")


def test_gpus_are_told_of_all_nodes_because_jobs_also_run_on_nodes_that_are_drained(board: Board) -> None:
    drained = replace(board, total_gpus=24)  # n4 takes no new work, and job 4 runs on it
    assert sum(board.gpus.values()) == 32
    held = [line for line in full(drained, "10") if "are held by" in line]
    assert len(held) == 3
    assert all(" of 32 GPUs" in line for line in held)


def test_what_slurm_has_against_a_promised_job_is_told(board: Board) -> None:
    for reason, said in (
        ("AssocGrpGRES", "its GPUs on n4 are promised, but Slurm does not start it (AssocGrpGRES)"),
        (
            "ReqNodeNotAvail, UnavailableNodes:n4",
            "its GPUs on n4 are promised, but Slurm does not start it (ReqNodeNotAvail, UnavailableNodes:n4)",
        ),
        ("ReqNodeNotAvail", "starting on n4: its GPUs are promised, it starts when they are free"),
        ("Resources", "starting on n4: its GPUs are promised, it starts when they are free"),
        ("BeginTime", "starting on n4: its GPUs are promised, it starts when they are free"),
    ):
        jobs = tuple({**row, "slurm_reason": reason} if row["job"] == "9" else row for row in board.jobs)
        assert short(replace(board, jobs=jobs), "9") == said


def test_a_task_that_goes_first_uses_its_arrays_limit_too(board: Board) -> None:
    word = "its array's own limit is reached"
    jobs = tuple({**row, "why": word, "rank": -1} if row["job"] == "20_2" else row for row in board.jobs)
    said = "its array's own limit leaves no room beside jobs 20_1, 20_3 (nlp), which go before it"
    assert short(replace(board, jobs=jobs), "20_2") == said, "none of them runs yet"
