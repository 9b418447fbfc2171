"""Turns of the profiler: who gets one, when it ends, what is remembered of it, and what it never does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from slurm_fair.model import (
    Blocked,
    JobState,
    Leases,
    Plan,
    Profiles,
    ReservedNodes,
    Sizes,
    Snapshot,
    Verdict,
)
from slurm_fair.model.ids import label, pack
from slurm_fair.policy import View, no_turn
from slurm_fair.policy.check import objections
from slurm_fair.policy.profiling import Profiling, ended_with_turns, with_their_turns, with_turns
from slurm_fair.policy.registry import load
from slurm_fair.policy.turns import Turn, TurnBook
from tests.support.accounts import places, reasons, verdicts, view
from tests.support.builders import JobSpec, NodeSpec, job, lease, leases, node, snapshot

NOW = 100 * 86_400.0 + 5_000.0
ASTRAEA = load("astraea", {})
BOUNDS = Profiling(gpus=4, seconds=60.0, gpu_hours=1.0, iterations=30, tries=2)
NODES = {"a1": node(4, gpu_type="a100"), "v1": node(4, gpu_type="v100")}
A, V = "a100", "v100"


def seen(
    *jobs: JobSpec,
    known: Mapping[int, str] | None = None,
    at_nodes: Mapping[str, NodeSpec] = NODES,
    **columns: Any,
) -> Snapshot:
    """A look at these jobs, which all ask for it; `known` are GPU types by job, its steps 40."""
    shown = snapshot(time=NOW, nodes=at_nodes, jobs=jobs)
    count = len(jobs)
    measured = np.zeros((count, len(shown.gpu_types)), dtype=bool)
    for row, key in enumerate(shown.jobs.key.tolist()):
        for at, gpu_type in enumerate(shown.gpu_types):
            measured[row, at] = gpu_type in (known or {}).get(key >> 23, "")
    profiles = Profiles(np.arange(count), np.arange(count), np.full(count, 40.0), measured)
    return replace(shown, profiles=profiles.with_columns(**columns))


def at(shown: Snapshot, held: Leases | None = None, book: TurnBook | None = None, **changes: Any) -> View:
    """The view of it, after a plan that left this book."""
    made = view(shown, held)
    terms = replace(made.terms, aligned=False)
    made = replace(made, **{"terms": terms, "memory": book.into({}) if book else {}, **changes})
    return replace(made, leases=ended_with_turns(made, BOUNDS))


def planned(now: View, bounds: Profiling = BOUNDS) -> Plan:
    """The plan of Astraea with the turns, to which the controller does not object."""
    shown, turns = with_turns(now, ASTRAEA, bounds)
    plan = with_their_turns(ASTRAEA.plan(shown), now, ASTRAEA, bounds, turns)
    assert objections(plan, now) == ""
    return plan


def book(*turns: Turn, tries: Mapping[tuple[int, str], int] | None = None, spent: float = 0.0) -> TurnBook:
    """The memory of today."""
    return TurnBook(turns, tries or {}, 100, {"a": spent} if spent else {})


def turn(
    base: int, gpu_type: str = A, since: float = NOW - 50.0, gpus: int = 1, *, over: bool = False
) -> Turn:
    """The turn of a job of tenant a."""
    return Turn(pack(base), gpu_type, "a", gpus, since, over)


def turns_of(plan: Plan) -> list[tuple[int, str]]:
    """Jobs and GPU types of the turns after a plan."""
    return [(each.key >> 23, each.gpu_type) for each in TurnBook.kept(plan.memory, NOW).turns]


def runs(
    base: int, node_name: str = "a1", since: float = NOW - 50.0, gpus: int = 1
) -> tuple[JobSpec, Leases]:
    """A running job and its lease, which does not end soon."""
    spec = job(base, gpus=gpus, state=JobState.RUNNING, start=since, on={node_name: gpus})
    return spec, leases(lease(base, {node_name: gpus}, granted=since, start=since, end=NOW + 800.0))


def test_a_job_of_unknown_speed_gets_free_gpus_of_a_type_before_all_others() -> None:
    others = [job(base, gpus=4, submit=NOW - 900.0) for base in (1, 2)]
    shown = seen(*others, job(3, gpus=2, submit=NOW - 1.0), known={1: A + V, 2: A + V})
    plan = planned(at(shown))
    assert places(shown, plan)["3"] == {"a1": 2}
    assert verdicts(shown, plan)["3"] is Verdict.GRANT
    assert (
        reasons(shown, plan)["3"] == "it has a short turn on a100 GPUs, so that its speed there becomes known"
    )
    assert [key for key in places(shown, plan) if key != "3"] in (["1"], ["2"]), "the rest is the policy's"
    assert turns_of(plan) == [(3, A)]


NO_TURN = {
    "its speed is known everywhere": (job(1), {1: A + V}, BOUNDS),
    "it cannot save and be requeued": (job(1, checkpoints=False, time_limit_seconds=10.0), {}, BOUNDS),
    "it asks for more than turns may have": (job(1, gpus=3), {}, replace(BOUNDS, gpus=2)),
    "a turn of it would take more than is left of the day": (
        job(1, gpus=2),
        {},
        replace(BOUNDS, gpu_hours=0.03),
    ),
    "its owner holds it": (job(1, blocked=Blocked.USER_HOLD), {}, BOUNDS),
    "the site has no profiler": (job(1), {}, None),
}


@pytest.mark.parametrize("why", NO_TURN)
def test_no_turn(why: str) -> None:
    spec, known, bounds = NO_TURN[why]
    now = at(seen(spec, known=known))
    shown, turns = with_turns(now, ASTRAEA, bounds)
    assert shown is now
    plan = with_their_turns(ASTRAEA.plan(shown), now, ASTRAEA, bounds, turns)
    assert turns_of(plan) == []


def test_one_job_of_a_class_is_enough_and_another_one_has_the_other_type() -> None:
    shown = seen(job(1), job(2), job(3), job_class=np.zeros(3, dtype=np.int64))
    assert turns_of(planned(at(shown))) == [(1, A)]
    spec, held = runs(1)
    shown = seen(spec, job(2), job(3), job_class=np.zeros(3, dtype=np.int64))
    assert turns_of(planned(at(shown, held, book(turn(1))))) == [(1, A), (2, V)]


@pytest.mark.parametrize("split", [{}, {"nodes": 2}])
@pytest.mark.parametrize("elastic", [True, False])
def test_a_gang_bigger_than_any_node_gets_what_it_asks_for(elastic: bool, split: Mapping[str, int]) -> None:
    shown = seen(job(1, gpus=3, **split), at_nodes={"a1": node(2, gpu_type=A), "a2": node(2, gpu_type=A)})
    if elastic:
        shown = replace(
            shown, sizes=Sizes(np.zeros(2, dtype=np.int64), np.array([1, 3]), np.zeros(2, dtype=bool))
        )
    assert sum(places(shown, planned(at(shown)))["1"].values()) == 3


def test_turns_together_have_no_more_gpus_than_the_bound() -> None:
    shown = seen(*(job(base, gpus=2) for base in range(1, 6)))
    assert turns_of(planned(at(shown))) == [(1, A), (2, A)]


def test_who_had_most_of_the_day_stands_last() -> None:
    shown = seen(job(1, tenant="a", gpus=4), job(2, tenant="b", gpus=4))
    assert turns_of(planned(at(shown, book=book(spent=10.0)))) == [(2, A)]


def test_turns_under_way_and_those_of_the_same_look_count_too() -> None:
    waits = [job(base, tenant="a", submit=NOW - 900.0) for base in (2, 3, 4)]
    late = job(9, tenant="b", submit=NOW - 1.0)
    assert turns_of(planned(at(seen(*waits, late)))) == [(2, A), (9, A), (3, A), (4, A)]
    spec, held = runs(1, gpus=3)
    assert turns_of(planned(at(seen(spec, *waits, late), held, book(turn(1, gpus=3))))) == [(1, A), (9, A)]


@pytest.mark.parametrize(("spent", "has_one"), [(1770.0, True), (1771.0, False)])
def test_an_account_that_had_more_of_the_day_than_would_be_left_gets_no_more(
    spent: float, has_one: bool
) -> None:
    shown = seen(job(1, tenant="a"))
    assert turns_of(planned(at(shown, book=book(spent=spent)))) == ([(1, A)] if has_one else [])
    others = seen(job(1, tenant="a"), job(2, tenant="b"))
    assert (2, A) in turns_of(planned(at(others, book=book(spent=spent))))


def test_a_type_that_was_tried_in_vain_is_not_tried_for_ever() -> None:
    once, often = ({(pack(1), A): count} for count in (1, 2))
    shown = seen(job(1))
    assert turns_of(planned(at(shown, book=book(tries=once)))) == [(1, A)]
    assert turns_of(planned(at(shown, book=book(tries=often)))) == [(1, V)]
    assert TurnBook.kept(planned(at(shown, book=book(tries=once))).memory, NOW).tries == {(pack(1), A): 2}


def test_a_turn_ends_when_its_time_is_over_or_enough_steps_were_reported() -> None:
    spec, held = runs(1)
    slow = at(seen(spec, steps=np.array([29.0]), measured=np.ones((1, 2), dtype=bool)), held, book(turn(1)))
    assert slow.leases.end.tolist() == [NOW + 10.0]
    assert reasons(slow.snapshot, planned(slow))["1"] == (
        "its speed on a100 GPUs is measured: its turn ends in 10 s at the latest"
    )
    told = at(seen(spec, known={1: A}), held, book(turn(1)))
    assert told.leases.end.tolist() == [NOW]
    silent = at(seen(spec, known={1: V}), held, book(turn(1)))
    assert silent.leases.end.tolist() == [NOW + 10.0], "of this type nothing is known yet"
    late = at(seen(spec), held, book(turn(1)), terms=replace(slow.terms, min_runtime=90.0))
    assert late.leases.end.tolist() == [NOW + 40.0], "nobody is asked before the site's least time"


def test_it_moves_to_another_type_that_is_free() -> None:
    spec, held = runs(1)
    now = at(seen(spec, known={1: A}), held, book(turn(1)))
    plan = planned(now)
    assert verdicts(now.snapshot, plan)["1"] is Verdict.REVOKE
    assert reasons(now.snapshot, plan)["1"] == (
        "its turn on a100 GPUs is over, and another GPU type on which its speed is not known is free"
    )
    assert TurnBook.kept(plan.memory, NOW).turns == (turn(1, over=True),), (
        "it holds its GPUs until it has left"
    )


def test_of_two_only_one_leaves_for_the_same_free_gpus() -> None:
    specs = [runs(1, gpus=2)[0], runs(2, gpus=2)[0], runs(3, "v1", gpus=2)[0]]
    held = leases(
        *(lease(n, dict(s.on or {}), start=NOW - 50.0, end=NOW + 800.0) for n, s in enumerate(specs, 1))
    )
    now = at(seen(*specs, known={1: A, 2: A, 3: A + V}), held, book(turn(1, gpus=2), turn(2, gpus=2)))
    assert [verdicts(now.snapshot, planned(now))[name] for name in "12"] == [Verdict.REVOKE, Verdict.RENEW]


STAYS = {
    "everything is known of it": ([], {1: A + V}),
    "the other type is full": ([runs(2, "v1", gpus=4)], {1: A, 2: A + V}),
}


@pytest.mark.parametrize("why", STAYS)
def test_it_is_like_all_others_afterwards(why: str) -> None:
    more, known = STAYS[why]
    specs = [spec for spec, _ in (runs(1), *more)]
    every = leases(
        *(lease(n, dict(s.on or {}), start=NOW - 50.0, end=NOW + 800.0) for n, s in enumerate(specs, 1))
    )
    now = at(seen(*specs, known=known), every, book(turn(1)))
    plan = planned(now)
    assert verdicts(now.snapshot, plan)["1"] is Verdict.RENEW
    kept = TurnBook.kept(plan.memory, NOW)
    assert (kept.turns, kept.spent) == ((), {"a": 50.0})


def test_gpus_that_a_job_has_not_given_back_yet_count_and_what_it_had_is_written_down() -> None:
    spec, _ = runs(1, gpus=4)
    leaving = leases(lease(1, {"a1": 4}, start=NOW - 70.0, end=NOW, phase=2))
    shown = seen(spec, job(2), known={1: A})
    left = book(turn(1, gpus=4, over=True))
    assert turns_of(planned(at(shown, leaving, left))) == [(1, A)]
    kept = TurnBook.kept(planned(at(shown, None, left)).memory, NOW)
    assert kept.spent == {"a": 200.0}
    assert turns_of(planned(at(seen(job(2)), None, left))) == [(2, A)]


def test_a_new_day_begins_with_nothing_spent_and_jobs_that_are_gone_are_forgotten() -> None:
    yesterday = book(tries={(pack(9), A): 2}, spent=3600.0)._replace(day=99)
    assert turns_of(planned(at(seen(job(1)), book=yesterday._replace(day=100)))) == []
    kept = TurnBook.kept(planned(at(seen(job(1)), book=yesterday)).memory, NOW)
    assert (kept.spent, kept.tries) == ({}, {(pack(1), A): 1})


def test_nodes_that_are_set_aside_stay_so() -> None:
    shown = seen(job(1), job(9, gpus=4, gpu_type=A), known={9: A + V})
    gang = ReservedNodes(pack(9), NOW - 10.0, NOW + 100.0, ("a1",), 4, 0)
    assert turns_of(planned(at(shown, reserved=(gang,)))) == [(1, V)]
    due = gang._replace(due=NOW)
    assert turns_of(planned(at(shown, reserved=(due,)))) == [], "at this look the gang has its turn"


def test_an_array_keeps_its_own_limit() -> None:
    tasks = [job(1, task=number, gpus=1, array_limit=1) for number in (1, 2)]
    shown = seen(*tasks)
    assert len(turns_of(planned(at(shown)))) == 1


def test_a_policy_grants_no_task_beyond_the_limit_of_an_array_whose_other_task_has_a_turn() -> None:
    tasks = [job(1, task=number, gpus=1, array_limit=1) for number in (1, 2)]
    shown = seen(*tasks, job_class=np.zeros(2, dtype=np.int64))
    assert places(shown, planned(at(shown))) == {"1_1": {"a1": 1}}


def test_a_profiler_that_is_switched_off_leaves_what_was_spent_today_and_what_was_tried() -> None:
    spec, held = runs(1)
    under_way = book(turn(1), tries={(pack(1), A): 2, (pack(9), A): 1}, spent=5.0)
    now = at(seen(spec), held, under_way)
    off = with_their_turns(ASTRAEA.plan(now), now, ASTRAEA, None, None)
    assert TurnBook.kept(off.memory, NOW) == book(tries={(pack(1), A): 2}, spent=55.0)
    again = at(seen(job(1), job(2)), book=TurnBook.kept(off.memory, NOW + 10.0)._replace(spent={"a": 1771.0}))
    assert turns_of(planned(again)) == [], "switched on again, it goes on with the day that was"
    gone = replace(now, memory=under_way._replace(turns=(), day=99, tries={(pack(9), A): 1}).into({}))
    assert with_their_turns(ASTRAEA.plan(gone), gone, ASTRAEA, None, None).memory == {}


def without(plan: Plan) -> dict[str, str]:
    """The reason of each job that gets no turn."""
    assert not set(plan.explanation.no_turn) - {text.format(gpus=4, hours=1, tries=2) for text in TEXTS}
    return {label(key): why for why, keys in plan.explanation.no_turn.items() for key in keys.tolist()}


TEXTS = (
    no_turn.OFF, no_turn.KNOWN, no_turn.TOO_BIG, no_turn.STAYS, no_turn.TRIED, no_turn.CLASS, no_turn.DAY,
    no_turn.OWN, no_turn.FULL, no_turn.NOT_FREE, no_turn.NO_PLACE,
)  # fmt: skip
FULL = [
    job(n, gpus=4, state=JobState.RUNNING, start=NOW - 50.0, on={name: 4})
    for n, name in ((8, "a1"), (9, "v1"))
]
IN_VAIN: dict[str, tuple[list[JobSpec], dict[int, str], TurnBook | None, str]] = {
    "all is known of it": ([job(1)], {1: A + V}, None, "the speed of its class is known on every GPU type"),
    "it is bigger than all turns": (
        [job(1, gpus=5)], {}, None, "it asks for more than the 4 GPUs that turns may have"
    ),
    "it cannot be requeued": (
        [job(1, checkpoints=False, time_limit_seconds=10.0)], {}, None, "it cannot save and be requeued"
    ),
    "it was tried in vain": (
        [job(1)], {1: V}, book(tries={(pack(1), A): 2}),
        "its turns told no speed, and it had as many as a job may have on a GPU type (2)",
    ),
    "the day is spent": (
        [job(1)], {}, book()._replace(spent={"b": 3599.0}),
        "too little is left of the 1 GPU-hours that turns may have on one day (UTC)",
    ),
    "its account had its part": (
        [job(1)], {}, book(spent=1771.0),
        "its account has had more of this day's turns (UTC) than would be left for the others",
    ),
    "all GPUs are held": (
        [job(1), *FULL], {8: A + V, 9: A + V}, None, "no GPU is free of a type on which its speed is not known"
    ),
    "all GPUs of the type that matters are held": (
        [job(1), FULL[0]], {1: V, 8: A + V}, None, "no GPU is free of a type on which its speed is not known"
    ),
    "too few GPUs are free on any node": (
        [job(1, gpus=3, nodes=1), *(job(n, gpus=2, state=JobState.RUNNING, start=NOW - 50.0, on={name: 2})
         for n, name in ((8, "a1"), (9, "v1")))], {8: A + V, 9: A + V}, None,
        "other jobs have their turns first, or the free GPUs do not suit it",
    ),
    "it is blocked": ([job(1, blocked=Blocked.USER_HOLD)], {}, None, ""),
}  # fmt: skip


@pytest.mark.parametrize("case", IN_VAIN)
def test_a_job_that_asks_for_turns_in_vain_is_told_why(case: str) -> None:
    jobs, known, before, why = IN_VAIN[case]
    shown = seen(*jobs, known=known)
    plan = planned(at(shown, book=before))
    assert turns_of(plan) == []
    assert without(plan).get("1", "") == why


def test_of_several_jobs_each_has_its_reason_and_a_job_with_a_turn_has_none() -> None:
    shown = seen(job(1, gpus=3), job(2, gpus=2), job(3), job(4), job_class=np.array([0, 1, 0, 2]))
    plan = planned(at(shown))
    assert turns_of(plan) == [(1, A), (3, V)]
    full = "the turns of other jobs leave it too few of the 4 GPUs that turns may have at a time"
    assert without(plan) == {"2": full, "4": full}
    shown = seen(job(1), job(2), known={1: V, 2: V}, job_class=np.zeros(2, dtype=np.int64))
    assert without(planned(at(shown))) == {
        "2": "another job of its class has its turn on the GPU types that are left"
    }


def test_a_running_job_hears_only_what_a_later_turn_would_not_change() -> None:
    spec, held = runs(1)
    assert without(planned(at(seen(spec), held))) == {}
    known = {"1": "the speed of its class is known on every GPU type"}
    shown = seen(spec, known={1: A + V})
    assert without(planned(at(shown, held))) == known
    assert without(planned(at(shown, held, book(turn(1, gpus=1))))) == {}, "its turn is under way"


def test_without_a_profiler_whoever_asks_for_turns_hears_that_it_is_switched_off() -> None:
    now = at(seen(job(1), job(2)))
    plan = with_their_turns(ASTRAEA.plan(now), now, ASTRAEA, None, None)
    off = "this site's profiler is switched off"
    assert without(plan) == {"1": off, "2": off}
