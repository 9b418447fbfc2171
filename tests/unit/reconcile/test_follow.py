"""Leases follow what is seen: one row per thing that can have happened since the last look."""

from __future__ import annotations

from typing import Any

import pytest

from slurm_fair.model import Blocked, JobState, LeasePhase, Leases, LeaseTerms, Snapshot
from slurm_fair.reconcile import follow
from tests.support.builders import JobSpec, LeaseSpec, job, lease, leases, lying, node, snapshot

TERMS = LeaseTerms(term=900.0, interval=10.0, grace=60.0, start_timeout=60.0)
NOW = 5000.0
WAITING, RUNNING, ENDING = JobState.WAITING, JobState.RUNNING, JobState.ENDING
SUSPENDED, DONE = JobState.SUSPENDED, JobState.DONE
GRANTED, REVOKING = LeasePhase.GRANTED, LeasePhase.REVOKING


def promised(**changes: Any) -> LeaseSpec:
    """A lease whose job has not been seen running."""
    return lease(1, {"n1": 4}, **({"phase": GRANTED, "granted": NOW - 20, "end": 5400.0} | changes))


def running(**changes: Any) -> LeaseSpec:
    """A lease of a running job."""
    return lease(1, {"n1": 4}, **({"start": 4500.0, "granted": 4500.0, "end": 5400.0} | changes))


def seen(*jobs: JobSpec, time: float = NOW) -> Snapshot:
    """Two nodes of eight GPUs."""
    return snapshot(time=time, nodes={"n1": 8, "n2": 8}, jobs=jobs)


def wait(**columns: Any) -> JobSpec:
    return job(1, gpus=4, **columns)


def ends(**columns: Any) -> JobSpec:
    """Job 7, which has yet to leave the first node."""
    given = {"gpus": 1, "state": ENDING, "start": 4500.0} | columns
    return job(7, **given, on={"n1": given["gpus"]})


def run(state: JobState = RUNNING, **columns: Any) -> JobSpec:
    """Job 1, holding its GPUs on the first node."""
    return job(1, gpus=4, state=state, on={"n1": 4}, **({"start": 4500.0} | columns))


# what happened -> (lease before, jobs now, phase after or None = no lease, kind of event or None, why)
CASES: dict[str, tuple[LeaseSpec, list[JobSpec], LeasePhase | None, str, str]] = {
    "a promised job that waits keeps its promise": (promised(), [wait()], GRANTED, "", ""),
    "a promised job whose gate is open may take its time to start": (
        promised(opened=NOW - 59), [wait()], GRANTED, "", "",
    ),
    "a promised job that Slurm does not start in time loses its promise": (
        promised(opened=NOW - 61), [wait(reason="Resources")], None, "takenback", "did not start it: Resources",
    ),
    "a promise whose GPUs do not come free lasts a term": (
        promised(granted=NOW - 899), [wait(), ends(gpus=6)], GRANTED, "", "",
    ),
    "and no longer": (
        promised(granted=NOW - 901), [wait(), ends(gpus=6)], None, "takenback", "its GPUs did not come free",
    ),
    "one whose CPUs do not come free lasts a term too": (
        promised(granted=NOW - 899), [wait(cpus=8), ends(cpus=60)], GRANTED, "", "",
    ),
    "and is not told that its GPUs were missing": (
        promised(granted=NOW - 901), [wait(cpus=8), ends(cpus=60)], None, "takenback", "have the CPUs or memory",
    ),
    "nor is one that lacked nothing on its nodes": (
        promised(granted=NOW - 901), [wait()], None, "takenback", "its gate was not opened in time",
    ),
    "a promised job seen running has a running lease": (
        promised(opened=NOW - 5), [run(start=4998.0)], LeasePhase.RUNNING, "", "",
    ),
    "a promised job that is held before it starts gives its promise back": (
        promised(), [wait(blocked=Blocked.USER_HOLD)], None, "returned", "held",
    ),
    "a promised job that was cancelled gives it back": (
        promised(), [job(1, state=DONE)], None, "returned", "ended",
    ),
    "a promised job that is no longer listed gives it back": (promised(), [], None, "returned", "ended"),
    "a promised job that was requeued by its user is another run": (
        promised(restarts=0), [wait(restarts=1)], None, "returned", "",
    ),
    "a running job keeps its lease": (running(), [run()], LeasePhase.RUNNING, "", ""),
    "a suspended job keeps its GPUs and its lease": (running(), [run(SUSPENDED)], LeasePhase.RUNNING, "", ""),
    "a job that completes keeps its lease until its GPUs are free": (
        running(), [run(ENDING)], LeasePhase.RUNNING, "", "",
    ),
    "a requeued job keeps it while it leaves, although Slurm counts the restart already": (
        running(phase=REVOKING), [run(ENDING, restarts=1)], REVOKING, "", "",
    ),
    "a revoked job that is back in the queue has none": (
        running(phase=REVOKING), [wait(restarts=1)], None, "returned", "revoked",
    ),
    "a job that somebody else requeued has none": (
        running(), [wait(restarts=1)], None, "returned", "somebody else",
    ),
    "a job that ended has none": (running(), [job(1, state=DONE)], None, "returned", "ended"),
    "a job that is no longer listed has none": (running(), [], None, "returned", "ended"),
    "a job that is being asked to leave still runs": (running(phase=REVOKING), [run()], REVOKING, "", ""),
}  # fmt: skip


@pytest.mark.parametrize(("before", "jobs", "phase", "kind", "why"), CASES.values(), ids=CASES)
def test_a_lease_follows(
    before: LeaseSpec, jobs: list[JobSpec], phase: LeasePhase | None, kind: str, why: str
) -> None:
    after, events, _ = follow(leases(before), seen(*jobs), TERMS)
    assert after.phase.tolist() == ([] if phase is None else [phase])
    assert [event.kind for event in events] == ([kind] if kind else [])
    assert all(why in event.detail["why"] for event in events)


def test_a_job_that_was_requeued_and_started_again_between_two_looks_has_another_lease() -> None:
    after, events, _ = follow(leases(running(renewals=3)), seen(run(restarts=1, start=4990.0)), TERMS)
    assert [event.kind for event in events] == ["returned", "adopted"]
    assert (after.restarts.tolist(), after.renewals.tolist(), after.adopted.tolist()) == ([1], [0], [True])


def test_a_lease_that_starts_ends_with_the_others() -> None:
    """Aligned leases end at multiples of the term, counted from the start that Slurm reports."""
    after, _, _ = follow(leases(promised(granted=4990.0, opened=4991.0)), seen(run(start=4992.0)), TERMS)
    assert (after.start.tolist(), after.end.tolist()) == ([4992.0], [5400.0])


def test_a_rolling_lease_lasts_a_term_from_its_start() -> None:
    terms = LeaseTerms(term=900.0, aligned=False)
    after, _, _ = follow(leases(promised(granted=4990.0, opened=4991.0)), seen(run(start=4992.0)), terms)
    assert after.end.tolist() == [4992.0 + 900.0]


def test_a_lease_keeps_the_common_end_that_it_was_granted_for() -> None:
    """However long its GPUs took to come free: past the end it would keep whole gangs waiting."""
    boundary = 5400.0
    after, _, _ = follow(
        leases(promised(granted=boundary - 600)), seen(run(start=boundary - 5), time=5396.0), TERMS
    )
    assert after.end.tolist() == [boundary]


def test_a_lease_that_starts_after_its_common_end_gets_the_next_one() -> None:
    boundary = 5400.0
    after, _, _ = follow(
        leases(promised(granted=boundary - 600)), seen(run(start=boundary + 2), time=5404.0), TERMS
    )
    assert after.end.tolist() == [boundary + 900.0]


@pytest.mark.parametrize(
    ("seconds_before_the_end", "granted"),
    [(600.0, True), (11.0, True), (9.0, False), (0.5, False), (0.0, True)],
)
def test_nothing_is_granted_shortly_before_a_common_end(seconds_before_the_end: float, granted: bool) -> None:
    assert LeaseTerms().grants_at(5400.0 - seconds_before_the_end) is granted


def test_a_job_that_runs_without_a_lease_is_adopted() -> None:
    after, events, _ = follow(Leases.none(), seen(run(start=4995.0)), TERMS)
    assert after.adopted.tolist() == [True]
    assert after.phase.tolist() == [LeasePhase.RUNNING]
    assert (after.granted.tolist(), after.end.tolist()) == ([4995.0], [5400.0])
    assert [event.kind for event in events] == ["adopted"]


def test_a_job_that_ran_long_before_us_has_a_whole_lease_from_now_on() -> None:
    after, _, _ = follow(Leases.none(), seen(run(start=1000.0)), TERMS)
    assert (after.start.tolist(), after.granted.tolist()) == ([1000.0], [NOW])
    assert after.end.tolist() == [5400.0]


@pytest.mark.parametrize("state", [WAITING, ENDING, DONE])
def test_a_job_that_does_not_run_is_not_adopted(state: JobState) -> None:
    shown = run(ENDING) if state == ENDING else job(1, gpus=4, state=state)
    after, events, _ = follow(Leases.none(), seen(shown), TERMS)
    assert (len(after), list(events)) == (0, [])


def test_a_suspended_job_is_adopted_because_it_keeps_its_gpus() -> None:
    after, _, _ = follow(Leases.none(), seen(run(SUSPENDED)), TERMS)
    assert after.adopted.tolist() == [True]


def test_where_a_job_runs_is_what_slurm_says_and_not_what_was_promised() -> None:
    started = job(1, gpus=4, state=RUNNING, start=4990.0, on={"n2": 4})
    after, _, _ = follow(leases(promised(opened=NOW - 5)), seen(started), TERMS)
    assert lying(after, seen(started)).node.tolist() == [1]


def test_a_promise_keeps_its_nodes_when_the_snapshot_numbers_them_anew() -> None:
    before = leases(promised())
    shown = snapshot(time=NOW, nodes={"n0": 8, "n1": 8}, jobs=[wait()])
    after, _, _ = follow(before, shown, TERMS)
    assert after.node_names == ("n0", "n1")
    assert after.promises.node.tolist() == [1]


def test_a_promise_keeps_of_its_nodes_those_that_are_not_gone() -> None:
    """Its gate is open: whether Slurm starts it is Slurm's to say."""
    before = leases(lease(1, {"n1": 3, "n2": 1}, phase=GRANTED, granted=NOW - 20, opened=NOW - 5, end=5400.0))
    after, events, _ = follow(before, snapshot(time=NOW, nodes={"n2": 8, "n9": 8}, jobs=[wait()]), TERMS)
    assert (len(after), list(events)) == (1, [])
    assert after.node_names == ("n2", "n9")
    assert (after.promises.node.tolist(), after.promises.gpus.tolist()) == ([0], [1])


def test_a_promise_behind_a_shut_gate_ends_when_its_node_is_gone() -> None:
    after, events, _ = follow(leases(promised()), snapshot(time=NOW, nodes={"n9": 8}, jobs=[wait()]), TERMS)
    assert len(after) == 0
    assert [event.kind for event in events] == ["takenback"]


@pytest.mark.parametrize("phase", [LeasePhase.RUNNING, REVOKING, GRANTED])
def test_a_job_requeued_and_started_again_between_two_looks_does_not_keep_the_lease_of_the_run_before(
    phase: LeasePhase,
) -> None:
    before = leases(running(phase=phase, restarts=0, end=5400.0, renewals=3))
    after, events, _ = follow(before, seen(run(restarts=1, start=4995.0)), TERMS)
    assert sorted(event.kind for event in events) == ["adopted", "returned"]
    assert (after.restarts.tolist(), after.adopted.tolist(), after.renewals.tolist()) == ([1], [True], [0])
    assert after.granted.tolist() == [4995.0]


def test_leases_stay_sorted_when_some_end_and_others_are_adopted() -> None:
    before = leases(lease(2, {"n1": 2}, start=4000.0), lease(5, {"n1": 2}, start=4000.0))
    jobs = [
        job(1, gpus=1, state=RUNNING, on={"n2": 1}, start=4990.0),
        job(2, state=DONE),
        job(5, gpus=2, state=RUNNING, on={"n1": 2}, start=4000.0),
        job(9, gpus=3, state=RUNNING, on={"n2": 3}, start=4990.0),
    ]
    after, _, _ = follow(before, seen(*jobs), TERMS)
    assert [key >> 23 for key in after.key.tolist()] == [1, 5, 9]
    places = lying(after, seen(*jobs))
    assert list(zip(places.row.tolist(), places.gpus.tolist(), strict=True)) == [
        (0, 1),
        (1, 2),
        (2, 3),
    ]


def test_each_lease_is_told_with_the_row_of_its_job() -> None:
    """Adopted ones too, wherever they lie between those that stay; a policy's view goes by these rows."""
    before = leases(lease(2, {"n1": 1}), promised(), lease(7, {"n2": 2}))
    shown = seen(
        wait(),
        job(2, state=DONE),
        job(4, gpus=1, state=RUNNING, on={"n1": 1}, start=4000.0),
        job(7, gpus=2, state=RUNNING, on={"n2": 2}, start=4000.0),
        job(9),
    )
    after = follow(before, shown, TERMS)
    assert shown.jobs.key[after.job].tolist() == after.leases.key.tolist()
    assert after.job.tolist() == [0, 2, 3]


def test_a_promise_lies_where_it_lay_when_leases_before_it_are_over() -> None:
    before = leases(lease(1, {"n1": 1}), lease(2, {"n1": 2}), lease(3, {"n2": 5}, phase=GRANTED, granted=NOW))
    shown = seen(job(2, gpus=2, state=RUNNING, on={"n1": 2}, start=4000.0), job(3, gpus=5))
    after = follow(before, shown, TERMS).leases
    places = lying(after, shown)
    assert list(zip(places.row.tolist(), places.node.tolist(), places.gpus.tolist(), strict=True)) == [
        (0, 0, 2),
        (1, 1, 5),
    ]


def test_following_twice_is_following_once() -> None:
    shown = seen(run(start=4995.0), job(2, gpus=2, state=RUNNING, on={"n2": 2}, start=4000.0))
    once, _, _ = follow(leases(promised(opened=NOW - 5)), shown, TERMS)
    twice, events, _ = follow(once, shown, TERMS)
    assert events == ()
    assert all(
        (getattr(once, n) == getattr(twice, n)).all() for n in ("key", "phase", "start", "end", "granted")
    )


def test_without_any_job_all_leases_are_over() -> None:
    after, events, _ = follow(leases(promised(), lease(2, {"n1": 1})), seen(), TERMS)
    assert len(after) == 0
    assert [event.kind for event in events] == ["returned", "returned"]


def test_a_returned_lease_says_how_long_it_was_held_and_which_it_was() -> None:
    _, (event,), _ = follow(leases(running(renewals=2)), seen(job(1, state=DONE)), TERMS)
    assert event.detail == {"why": "its job ended", "number": 3, "held_seconds": 500.0}


@pytest.mark.parametrize(("opened", "kept"), [(0.0, 0), (NOW - 5, 1)])
def test_a_promise_on_a_node_that_takes_no_work_is_given_back_unless_the_gate_is_open(
    opened: float, kept: int
) -> None:
    out = snapshot(time=NOW, nodes={"n1": node(8, usable=False), "n2": 8}, jobs=[wait()])
    after, events, _ = follow(leases(promised(opened=opened)), out, TERMS)
    assert len(after) == kept
    assert [(e.kind, e.detail["opened"]) for e in events] == ([] if kept else [("takenback", False)])


HOLDERS = job(7, gpus=6, state=RUNNING, on={"n1": 6}, start=100.0)


@pytest.mark.parametrize(
    ("what", "holder", "first", "kept"),
    [
        ("its holder gives them back", LeasePhase.REVOKING, {}, [1, 2, 7]),
        (
            "its holder keeps them, so the latest promise that does not fit goes",
            LeasePhase.RUNNING,
            {},
            [2, 7],
        ),
        ("a gate that is open has its own time", LeasePhase.RUNNING, {"opened": NOW - 5}, [1, 7]),
    ],
)
def test_a_promise_of_gpus_that_their_holder_keeps_is_taken_back_at_once(
    what: str, holder: LeasePhase, first: dict[str, float], kept: list[int]
) -> None:
    held = leases(
        promised(**first),
        lease(2, {"n1": 2}, phase=GRANTED, granted=NOW - 30, end=5400.0),
        lease(7, {"n1": 6}, phase=holder, start=100.0, granted=4500.0, end=5400.0),
    )
    shown = seen(wait(), job(2, gpus=2), HOLDERS)
    after, events, _ = follow(held, shown, TERMS)
    assert [key >> 23 for key in after.key.tolist()] == kept, what
    back = [(event.kind, event.detail["why"]) for event in events]
    assert back == [("takenback", "its GPUs did not come free")] * (3 - len(kept))


def test_promises_of_gpus_on_other_nodes_stand() -> None:
    held = leases(
        lease(2, {"n2": 8}, phase=GRANTED, granted=NOW - 5, end=5400.0),
        lease(3, {"n1": 4}, phase=GRANTED, granted=NOW - 30, end=5400.0),
        lease(7, {"n1": 6}, start=100.0, granted=4500.0, end=5400.0),
    )
    after, _, _ = follow(held, seen(job(2, gpus=8), job(3, gpus=4), HOLDERS), TERMS)
    assert [key >> 23 for key in after.key.tolist()] == [2, 7]


def test_a_job_that_was_submitted_after_the_start_of_a_leased_run_is_another_one_under_its_id() -> None:
    for before in (running(), running(phase=REVOKING, asked=4900.0)):
        after, events, _ = follow(leases(before), seen(run(submit=4501.0, start=4990.0)), TERMS)
        assert [event.kind for event in events] == ["returned", "adopted"]
        assert (after.start.tolist(), after.asked.tolist(), after.adopted.tolist()) == (
            [4990.0],
            [0.0],
            [True],
        )


def test_a_job_that_starts_in_the_second_of_its_submission_keeps_its_lease() -> None:
    after, events, _ = follow(leases(running()), seen(run(submit=4500.0)), TERMS)
    assert (after.adopted.tolist(), events) == ([False], ())


@pytest.mark.parametrize("phase", [LeasePhase.RUNNING, REVOKING])
@pytest.mark.parametrize("state", [RUNNING, SUSPENDED, ENDING])
def test_a_job_that_started_before_its_submission_keeps_its_lease(phase: LeasePhase, state: JobState) -> None:
    """The clock was set back between the two, and both instants stay on the job for its whole run."""
    before = running(phase=phase, asked=4900.0)
    after, events, _ = follow(leases(before), seen(run(state, submit=4503.0)), TERMS)
    assert events == ()
    assert (after.phase.tolist(), after.end.tolist(), after.asked.tolist()) == ([phase], [5400.0], [4900.0])


def test_a_job_that_started_before_its_submission_is_adopted_once() -> None:
    shown = seen(run(submit=4503.0))
    adopted, events, _ = follow(leases(), shown, TERMS)
    assert [event.kind for event in events] == ["adopted"]
    assert follow(adopted, shown, TERMS).events == ()
