"""Acts follow from the difference between leases and facts: one row per situation of a job."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from slurm_fair.model import Action, Blocked, JobState, LeasePhase, LeaseTerms, Snapshot, Verb, label
from slurm_fair.model.ids import pack
from slurm_fair.reconcile import actions_for
from tests.support.builders import JobSpec, LeaseSpec, job, lease, leases, node, snapshot

TERMS = LeaseTerms(term=900.0, interval=10.0, grace=60.0)
NOW = 5000.0
AHEAD = NOW + 1500.0
RUNNING, WAITING, ENDING, DONE = JobState.RUNNING, JobState.WAITING, JobState.ENDING, JobState.DONE
GRANTED, REVOKING = LeasePhase.GRANTED, LeasePhase.REVOKING


def acts(
    jobs: list[JobSpec],
    *held: LeaseSpec,
    nodes: Mapping[str, Any] | None = None,
    unsettled: Mapping[int, float] = {},
) -> tuple[Action, ...]:
    """The acts that are due now."""
    shown = snapshot(time=NOW, nodes=nodes or {"n1": 8, "n2": 8}, jobs=jobs)
    return actions_for(leases(*held), shown, TERMS, unsettled, NOW)


def told(actions: tuple[Action, ...]) -> list[str]:
    """Verbs and jobs, in order."""
    return [f"{a.verb.value} {label(a.key)}" for a in actions]


def gated(base: int = 1, **columns: Any) -> JobSpec:
    """A job that waits behind a gate of ours that holds for long."""
    return job(base, **({"gpus": 4, "gated": True, "gate_until": AHEAD, "gate_set": NOW - 60} | columns))


# -- revoking ---------------------------------------------------------------------------------------------------

REVOCATIONS: dict[str, tuple[JobState, float, int, list[str]]] = {
    # what: (state, asked before so many seconds or -1, acknowledged, acts)
    "a job to be stopped is asked first": (RUNNING, -1, 0, ["ask 1"]),
    "one that was asked and has not answered is left in peace": (RUNNING, 30, 0, []),
    "one that has saved is requeued at once": (RUNNING, 5, 1, ["requeue 1"]),
    "so is one that could not save": (RUNNING, 5, 2, ["requeue 1"]),
    "one that does not answer is requeued at the end of the grace": (RUNNING, 60, 0, ["requeue 1"]),
    "and not before": (RUNNING, 59, 0, []),
    "an answer within the grace counts at its end too": (RUNNING, 60, 1, ["requeue 1"]),
    "an answer that nobody came for is too old: it is asked anew": (RUNNING, 71, 1, ["ask 1"]),
    "one whose grace ended while nobody looked, or by a step of the clock, is asked anew": (
        RUNNING,
        3600,
        0,
        ["ask 1"],
    ),
    "one that already leaves is let go": (ENDING, 5, 1, []),
    "one that is suspended cannot answer": (JobState.SUSPENDED, -1, 0, []),
    "one that ended is let go": (DONE, 5, 1, []),
}


@pytest.mark.parametrize(("state", "asked", "answer", "wanted"), REVOCATIONS.values(), ids=REVOCATIONS)
def test_revoking(state: JobState, asked: float, answer: int, wanted: list[str]) -> None:
    runs = job(1, gpus=4, state=state, start=4000.0, acknowledged=answer)
    held = lease(1, {"n1": 4}, phase=REVOKING, asked=0.0 if asked < 0 else NOW - asked)
    assert told(acts([runs], held)) == wanted


# -- opening ----------------------------------------------------------------------------------------------------


def test_a_promised_job_is_opened_on_the_nodes_promised_when_they_are_free() -> None:
    (action,) = acts([gated()], lease(1, {"n1": 2, "n2": 2}, phase=GRANTED))
    assert (action.verb, action.nodes, action.until) == (Verb.OPEN, ("n1", "n2"), AHEAD)


def test_it_waits_while_somebody_has_them() -> None:
    runs = job(2, gpus=6, state=RUNNING, start=4000.0, on={"n1": 6})
    assert told(acts([gated(), runs], lease(1, {"n1": 4}, phase=GRANTED), lease(2, {"n1": 6}, end=9e9))) == []


@pytest.mark.parametrize("state", [ENDING, JobState.SUSPENDED])
def test_gpus_of_a_job_that_leaves_or_sleeps_are_not_free(state: JobState) -> None:
    leaves = job(2, gpus=8, state=state, start=4000.0, on={"n1": 8})
    assert told(acts([gated(), leaves], lease(1, {"n1": 4}, phase=GRANTED))) == []


def test_it_waits_while_a_node_of_it_cannot_be_used() -> None:
    down = {"n1": node(8, usable=False), "n2": 8}
    assert told(acts([gated()], lease(1, {"n1": 4}, phase=GRANTED), nodes=down)) == []


def test_jobs_that_are_not_ours_come_first() -> None:
    others = {"n1": node(8, gpus_others=5), "n2": 8}
    assert told(acts([gated()], lease(1, {"n1": 4}, phase=GRANTED), nodes=others)) == []


def test_an_opened_job_that_has_not_started_keeps_its_gpus_and_is_not_opened_again() -> None:
    jobs = [gated(1, gated=False, pinned=True, gpus=6), gated(2)]
    opened = lease(1, {"n1": 6}, phase=GRANTED, opened=NOW - 3)
    assert told(acts(jobs, opened, lease(2, {"n1": 4}, phase=GRANTED))) == []


def test_two_promises_on_one_node_are_opened_in_their_order() -> None:
    jobs = [gated(1, gpus=6), gated(2, gpus=6)]
    first = lease(2, {"n1": 6}, phase=GRANTED, granted=NOW - 50)
    second = lease(1, {"n1": 6}, phase=GRANTED, granted=NOW - 10)
    assert told(acts(jobs, first, second)) == ["open 2"]


# Job 1 is a gang on two nodes of 8 GPUs, granted at NOW - 20; job 2 has been promised GPUs on one of them.
BESIDE: dict[str, tuple[dict[str, Any], dict[str, int], dict[str, int], float, list[str]]] = {
    # what: (the gang, its place, the other's, granted before so many seconds, acts)
    "it fills its first node, and the other has the second": (
        {"gpus": 12}, {"n1": 8, "n2": 4}, {"n2": 4}, 20, ["open 1", "open 2"],
    ),
    "it leaves one for its second node, whoever starts first": (
        {"gpus": 8}, {"n1": 7, "n2": 1}, {"n1": 1}, 50, ["open 2", "open 1"],
    ),
    "it would take the other's on its first node, and waits": (
        {"gpus": 8}, {"n1": 5, "n2": 3}, {"n1": 3}, 50, ["open 2"],
    ),
    "who was promised later has what it leaves: it waits for none of those, who may be ever newer ones": (
        {"gpus": 8}, {"n1": 5, "n2": 3}, {"n1": 3}, 10, ["open 1", "open 2"],
    ),
    "a gang of a fixed split takes what it was promised": (
        {"gpus": 8, "gpus_per_node": 4}, {"n1": 4, "n2": 4}, {"n1": 4}, 50, ["open 2", "open 1"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("gang", "place", "others", "ago", "wanted"), BESIDE.values(), ids=BESIDE)
def test_a_gang_that_slurm_splits_starts_when_it_can_take_nothing_of_others(
    gang: dict[str, Any], place: dict[str, int], others: dict[str, int], ago: float, wanted: list[str]
) -> None:
    jobs = [gated(1, nodes=2, **gang), gated(2, gpus=sum(others.values()))]
    first = lease(1, place, phase=GRANTED, granted=NOW - 20)
    second = lease(2, others, phase=GRANTED, granted=NOW - ago)
    assert told(acts(jobs, first, second)) == wanted


def test_of_two_gangs_that_may_take_each_others_gpus_the_earlier_starts() -> None:
    jobs = [gated(1, nodes=2, gpus=8), gated(2, nodes=2, gpus=8)]
    first = lease(1, {"n1": 3, "n2": 5}, phase=GRANTED, granted=NOW - 20)
    second = lease(2, {"n1": 5, "n2": 3}, phase=GRANTED, granted=NOW - 50)
    assert told(acts(jobs, first, second)) == ["open 2"]


def test_of_two_gangs_promised_at_once_the_one_that_takes_nothing_of_the_other_starts_first() -> None:
    jobs = [gated(1, nodes=2, gpus=7), gated(2, nodes=2, gpus=5)]
    first = lease(1, {"n1": 4, "n2": 3}, phase=GRANTED, granted=NOW - 20)
    second = lease(2, {"n1": 4, "n3": 1}, phase=GRANTED, granted=NOW - 20)
    assert told(acts(jobs, first, second, nodes={"n1": 8, "n2": 8, "n3": 8})) == ["open 2"]


def test_behind_a_gang_that_may_lie_otherwise_than_promised_a_later_one_waits() -> None:
    jobs = [gated(1, nodes=2, gpus=7), gated(2, nodes=2, gpus=5), gated(3, gpus=7)]
    first = lease(1, {"n1": 4, "n2": 3}, phase=GRANTED, granted=NOW - 50)
    second = lease(2, {"n1": 4, "n3": 1}, phase=GRANTED, granted=NOW - 20)
    third = lease(3, {"n3": 7}, phase=GRANTED, granted=NOW - 20)
    done = acts(jobs, first, second, third, nodes={"n1": 8, "n2": 8, "n3": 8})
    assert told(done) == ["open 1", "open 3"]


def test_a_promise_without_nodes_is_not_opened() -> None:
    shown = snapshot(time=NOW, nodes={"n1": 8}, jobs=[gated()])
    bare = leases(lease(1, {}, phase=GRANTED))
    assert told(actions_for(bare, shown, TERMS, {}, NOW)) == []


# -- closing ----------------------------------------------------------------------------------------------------

CLOSINGS: dict[str, tuple[JobSpec, bool]] = {
    "a waiting job without a gate gets one": (job(1), True),
    "a gate that holds for a term and more is left": (gated(gate_until=NOW + 900), False),
    "a gate that opens within a term is renewed": (gated(gate_until=NOW + 899), True),
    "a hold needs no renewal": (gated(gate_until=math.inf), False),
    "a node list left over from a start that did not happen is taken away": (gated(pinned=True), True),
    "a gate that its user opened lately stays open": (job(1, gate_set=NOW - 899), False),
    "until the lease of that time is over": (job(1, gate_set=NOW - 901), True),
    "a begin time of its user far ahead keeps it back well enough": (
        job(1, blocked=Blocked.OWN_BEGIN, gate_until=NOW + 21),
        False,
    ),
    "a begin time of its user that comes is followed by our gate": (
        job(1, blocked=Blocked.OWN_BEGIN, gate_until=NOW + 20),
        True,
    ),
    "a job of a shape that cannot be planned is never gated": (job(1, blocked=Blocked.SHAPE), False),
    "nor one whose last act is of unknown outcome": (job(1, blocked=Blocked.UNSETTLED), False),
    "one that waits for another job is gated all the same": (job(1, blocked=Blocked.DEPENDENCY), True),
    "so is one that rests after a failed start": (job(1, blocked=Blocked.BACKOFF), True),
    "and one that its array's own limit keeps back": (job(1, blocked=Blocked.ARRAY_LIMIT), True),
    "whose gate is renewed like any other": (gated(gate_until=NOW + 899, blocked=Blocked.ARRAY_LIMIT), True),
    "and left while it holds": (gated(gate_until=NOW + 900, blocked=Blocked.ARRAY_LIMIT), False),
    "a running job is not": (job(1, state=RUNNING, start=4000.0), False),
    "nor one that is leaving": (job(1, state=ENDING, start=4000.0), False),
    "nor one that ended": (job(1, state=DONE), False),
}


@pytest.mark.parametrize(("shown", "due"), CLOSINGS.values(), ids=CLOSINGS)
def test_closing(shown: JobSpec, due: bool) -> None:
    held = [lease(1, {"n1": 1}, end=9e9)] if shown.state == RUNNING else []
    assert told(acts([shown], *held)) == (["close 1"] if due else [])


def test_a_gate_is_set_two_terms_ahead_in_whole_seconds() -> None:
    shown = snapshot(time=NOW + 0.25, nodes={"n1": 8}, jobs=[job(1)])
    (action,) = actions_for(leases(), shown, TERMS, {}, NOW + 0.25)
    assert action.until == NOW + 1801.0


def test_a_begin_time_later_than_our_gate_stays() -> None:
    late = gated(gate_until=NOW + 9000, pinned=True)
    (action,) = acts([late])
    assert action.until == NOW + 9000


def test_a_job_that_is_opened_is_not_closed_in_the_same_breath() -> None:
    assert told(acts([job(1)], lease(1, {"n1": 1}, phase=GRANTED))) == ["open 1"]


def test_an_opened_job_is_not_closed_while_it_may_start() -> None:
    opened = lease(1, {"n1": 1}, phase=GRANTED, opened=NOW - 5)
    assert told(acts([job(1, pinned=True)], opened)) == []


def test_a_promised_job_whose_gate_runs_out_is_closed_until_its_gpus_are_free() -> None:
    runs = job(2, gpus=8, state=RUNNING, start=4000.0, on={"n1": 8})
    held = lease(2, {"n1": 8}, phase=REVOKING, asked=NOW - 1)
    assert told(acts([gated(gate_until=NOW + 5), runs], lease(1, {"n1": 4}, phase=GRANTED), held)) == [
        "close 1"
    ]


def test_while_jobs_start_or_stop_a_node_list_behind_a_good_gate_waits_for_the_next_look() -> None:
    left = gated(2, pinned=True)
    assert told(acts([job(1), left], lease(1, {"n1": 1}, phase=GRANTED))) == ["open 1"]
    runs = job(3, gpus=8, state=RUNNING, start=4000.0, on={"n1": 8})
    assert told(acts([left, runs], lease(3, {"n1": 8}, phase=REVOKING))) == ["ask 3"]
    assert told(acts([left])) == ["close 2"]


@pytest.mark.parametrize("left", [gated(2, pinned=True, gate_until=NOW + 440), job(2, pinned=True)])
def test_but_no_gate_that_is_missing_or_soon_over_waits_for_others(left: JobSpec) -> None:
    assert told(acts([job(1), left], lease(1, {"n1": 1}, phase=GRANTED))) == ["open 1", "close 2"]


# -- arrays -----------------------------------------------------------------------------------------------------


def array(*tasks: int, **columns: Any) -> list[JobSpec]:
    """Tasks of an unsplit array."""
    return [job(7, task=task, record=7, **columns) for task in tasks]


def test_an_unsplit_array_is_closed_by_one_act_on_the_whole() -> None:
    (action,) = acts(array(1, 2, 3))
    assert (action.verb, action.key, action.record, action.whole_record) == (Verb.CLOSE, pack(7), 7, True)


def test_tasks_that_were_split_off_are_closed_one_by_one() -> None:
    jobs = [*array(1, 2), job(7, task=3, record=9), job(7, task=4, record=10)]
    assert told(acts(jobs)) == ["close 7", "close 7_3", "close 7_4"]


def test_the_last_task_of_an_array_is_a_job_like_any_other() -> None:
    jobs = [job(7, task=1, record=7), job(7, task=2, record=8, state=RUNNING, start=4000.0)]
    (action,) = acts(jobs, lease(7, {"n1": 1}, task=2, end=9e9))
    assert (label(action.key), action.whole_record) == ("7_1", False)


def test_an_array_whose_gate_is_due_is_closed_before_its_tasks_are_opened() -> None:
    """Else an array that has a task to open in every tick would never have its gate renewed."""
    due = array(1, 2, 3, gated=True, gate_until=NOW + 100)
    assert told(acts(due, lease(7, {"n1": 1}, task=2, phase=GRANTED))) == ["close 7"]


def test_a_task_of_an_array_whose_gate_holds_is_opened_at_once() -> None:
    holds = array(1, 2, 3, gated=True, gate_until=AHEAD)
    assert told(acts(holds, lease(7, {"n1": 1}, task=2, phase=GRANTED))) == ["open 7_2"]


@pytest.mark.parametrize(("left", "wanted"), [(500.0, []), (449.0, ["close 7"])])
def test_while_a_task_is_starting_its_array_is_closed_only_when_there_is_need(
    left: float, wanted: list[str]
) -> None:
    jobs = [*array(1, 2, gated=True, gate_until=NOW + left), job(7, task=3, record=9, pinned=True)]
    assert told(acts(jobs, lease(7, {"n1": 1}, task=3, phase=GRANTED, opened=NOW - 2))) == wanted


def test_a_node_list_remembered_for_a_task_that_was_never_split_off_is_no_reason_to_act() -> None:
    assert told(acts(array(1, 2, gated=True, gate_until=AHEAD, pinned=True))) == []


# -- order and latches ------------------------------------------------------------------------------------------


def test_gpus_are_freed_first_then_given_then_gates_are_set() -> None:
    jobs = [
        job(1, gpus=4, state=RUNNING, start=4000.0, on={"n1": 4}),
        gated(2),
        job(3),
        job(4, gpus=2, state=RUNNING, start=4000.0, on={"n1": 2}, acknowledged=1),
    ]
    held = [
        lease(1, {"n1": 4}, phase=REVOKING),
        lease(2, {"n2": 4}, phase=GRANTED),
        lease(4, {"n1": 2}, phase=REVOKING, asked=NOW - 1),
    ]
    assert told(acts(jobs, *held)) == ["ask 1", "requeue 4", "open 2", "close 3"]


def test_nothing_is_done_to_a_job_whose_last_act_is_not_settled() -> None:
    jobs = [job(1), gated(2), *array(1, 2)]
    unsettled = {pack(1): NOW - 1, pack(2): NOW - 1, pack(7): NOW - 1}
    assert told(acts(jobs, lease(2, {"n1": 4}, phase=GRANTED), unsettled=unsettled)) == []


def test_no_task_is_opened_while_an_act_on_its_array_may_still_come() -> None:
    """The act shuts the gate of each task that waits, but not of one that runs or has no gate."""
    tasks = array(3, 4, 5, gated=True, gate_until=AHEAD)
    runs = job(7, task=6, record=76, gpus=2, state=RUNNING, start=4000.0, on={"n1": 2}, acknowledged=1)
    held = [
        lease(7, {"n1": 4}, task=3, phase=GRANTED),
        lease(7, {"n1": 2}, task=6, phase=REVOKING, asked=NOW - 1),
    ]
    jobs = [*tasks, runs, job(7, task=8, record=78)]
    assert told(acts(jobs, *held)) == ["requeue 7_6", "open 7_3", "close 7_8"]
    assert told(acts(jobs, *held, unsettled={pack(7): NOW - 1})) == ["requeue 7_6", "close 7_8"]
    assert "open 7_3" in told(acts(jobs, *held, unsettled={pack(7, 4): NOW - 1, pack(8): NOW - 1}))


@pytest.mark.parametrize("waiting", [[], [job(3)]], ids=["nothing else", "a gate"])
def test_what_is_not_managed_is_freed_last_of_all(waiting: list[JobSpec]) -> None:
    free = Action(Verb.FREE, pack(9), 9, 100.0, 0, why="it is not managed")
    seen = replace(snapshot(jobs=waiting, time=NOW, nodes={"n1": 8}), to_free=(free,))
    unsettled = {free.key: NOW - 1}  # of a time when it was managed
    actions = actions_for(leases(), seen, TERMS, unsettled, NOW)
    assert actions[-1] == free
    assert [action.verb for action in actions[:-1]] == [Verb.CLOSE] * len(waiting)


def test_acts_carry_the_identity_that_they_were_decided_for() -> None:
    (action,) = acts([job(5, record=55, submit=4321.0, restarts=3)])
    assert (action.key, action.record, action.submit, action.restarts) == (pack(5), 55, 4321.0, 3)


def test_when_all_is_as_it_should_be_there_is_nothing_to_do() -> None:
    jobs = [
        job(1, gpus=8, state=RUNNING, start=4000.0, on={"n1": 8}),
        gated(2),
        *array(1, 2, gated=True, gate_until=AHEAD),
    ]
    assert acts(jobs, lease(1, {"n1": 8}, end=9e9)) == ()


def test_an_empty_cluster_has_nothing_to_do() -> None:
    assert actions_for(leases(), without_jobs(), TERMS, {}, NOW) == ()


def without_jobs() -> Snapshot:
    return snapshot(time=NOW, nodes={"n1": 8})


def test_a_job_that_cannot_save_is_requeued_without_a_question() -> None:
    plain = job(1, gpus=2, state=JobState.RUNNING, checkpoints=False, restartable=True, on={"n1": 2})
    seen = snapshot(time=1000.0, jobs=[plain])
    held = leases(lease(1, {"n1": 2}, phase=LeasePhase.REVOKING, end=990.0))
    (act,) = actions_for(held, seen, LeaseTerms(), {}, 1000.0)
    assert (act.verb, act.why) == (Verb.REQUEUE, "its lease is over, and it cannot save")
