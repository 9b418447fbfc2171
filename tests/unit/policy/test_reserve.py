"""Nodes set aside for a gang under rolling leases: which, until when, and for whom."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from slurm_fair.model import Blocked, JobState, Leases, Plan, Snapshot, TickRecord, Verdict
from slurm_fair.model.ids import label, pack, parse_label
from slurm_fair.model.reservation import reservations
from slurm_fair.policy import View
from slurm_fair.policy.check import objections
from slurm_fair.policy.never_stopped import with_never_stopped
from slurm_fair.policy.registry import load
from slurm_fair.policy.reserve import set_aside, with_new
from slurm_fair.reconcile import apply_plan
from tests.support.accounts import Account, ledger, places, reasons, verdicts, view
from tests.support.builders import JobSpec, job, lease, leases, snapshot
from tests.support.simulated import Rounds, arrival, simulated

NOW, TERM = 10_000.0, 900.0
ASTRAEA = load("astraea", {})
FIFO = load("fifo", {})


def running(base: int, on: dict[str, int]) -> JobSpec:
    """A job that runs there."""
    return job(base, gpus=sum(on.values()), on=on, state=JobState.RUNNING)


# n1: a lease ends in 100 s and one in 500 s; n2: in 300 s and 800 s; n3: in 200 s and 250 s.
RUNS = (
    running(1, {"n1": 4}),
    running(2, {"n1": 4}),
    running(3, {"n2": 4}),
    running(4, {"n2": 4}),
    running(5, {"n3": 4}),
    running(6, {"n3": 4}),
)
# n4: a job that cannot be stopped; its lease ends now, and is renewed.
STAYS = replace(running(8, {"n4": 8}), checkpoints=False)
ENDS = (100.0, 500.0, 300.0, 800.0, 200.0, 250.0)
GANG = job(9, gpus=16, tenant="b", nodes=2, submit=NOW - 2 * TERM)


def seen(*jobs: JobSpec, now: float = NOW, down: tuple[str, ...] = ()) -> Snapshot:
    nodes = {name: 8 for name in ("n1", "n2", "n3", "n4") if name not in down}
    return snapshot(time=now, nodes=nodes, jobs=[*jobs, STAYS])


def held(*ends: float) -> Leases:
    specs = [*zip(RUNS, ends, strict=True), (STAYS, 0.0)]
    return leases(*(lease(spec.base, spec.on or {}, end=NOW + end) for spec, end in specs))


def shown(jobs: Snapshot, of: Leases, reserve_after: float = TERM, earlier: Plan | None = None) -> View:
    """The view of a policy under rolling leases, after an earlier plan."""
    made = view(jobs, of, tenants={"a": Account(10, 10), "b": Account(0, 10)})
    terms = replace(made.terms, aligned=False, reserve_after=reserve_after)
    return set_aside(replace(made, terms=terms, memory=earlier.memory if earlier else {}), ASTRAEA)


def planned(now: View) -> Plan:
    """The plan of Astraea with what is set aside, to which the controller does not object."""
    plan = with_new(ASTRAEA.plan(now), now, ASTRAEA)
    assert objections(plan, now) == ""
    return plan


def test_as_few_nodes_are_set_aside_as_the_gang_needs_and_those_that_are_free_soonest() -> None:
    now = shown(seen(*RUNS, GANG), held(*ENDS))
    (found,) = reservations(planned(now).memory)
    assert (label(found.key), found.nodes, found.gpus, found.due - NOW) == ("9", ("n1", "n3"), 8, 500.0)
    assert reasons(now.snapshot, planned(now))["9"] == (
        "GPUs of n1, n3 are set aside for it: the last lease that it waits for ends in 500 s"
    )


@pytest.mark.parametrize(("slow", "chosen"), [(1, ("n2", "n3")), (2, ("n1", "n3")), (3, ("n1", "n2"))])
def test_of_nodes_that_are_free_in_time_those_are_set_aside_whose_jobs_save_soonest(
    slow: int, chosen: tuple[str, ...]
) -> None:
    runs = tuple(running(base, {f"n{base}": 8}) for base in (1, 2, 3))
    jobs = replace(seen(*runs, GANG), graces={parse_label(str(slow)): 300.0})
    ends = leases(
        *(lease(run.base, run.on or {}, end=NOW + 100.0) for run in runs), lease(8, {"n4": 8}, end=NOW)
    )
    (found,) = reservations(planned(shown(jobs, ends)).memory)
    assert found.nodes == chosen


NOT_YET = [
    ("it has not waited long enough", replace(GANG, submit=NOW - TERM + 1), TERM, ASTRAEA),
    ("the site sets no nodes aside", GANG, float("inf"), ASTRAEA),
    ("a single GPU gets the next that comes free", replace(GANG, gpus=1, nodes=1), TERM, ASTRAEA),
    ("its policy stops nobody", GANG, TERM, FIFO),
]


@pytest.mark.parametrize(
    ("gang", "after", "policy"), [case[1:] for case in NOT_YET], ids=[c[0] for c in NOT_YET]
)
def test_no_node_is_set_aside_when(gang: JobSpec, after: float, policy: object) -> None:
    now = shown(seen(*RUNS, gang), held(*ENDS), after)
    assert reservations(with_new(ASTRAEA.plan(now), now, policy).memory) == ()  # type: ignore[arg-type]


@pytest.mark.parametrize(("kept", "nodes"), [((), ("n1", "n3")), ((1,), ("n2", "n3")), ((1, 6), ())], ids=str)
def test_no_node_is_set_aside_that_waits_for_a_job_which_its_policy_never_stops(
    kept: tuple[int, ...], nodes: tuple[str, ...]
) -> None:
    now = shown(seen(*RUNS, GANG), held(*ENDS))
    plan = ASTRAEA.plan(now)
    keys = np.array([pack(base) for base in kept], dtype=np.int64)
    found = reservations(with_new(replace(plan, memory=with_never_stopped({}, keys)), now, ASTRAEA).memory)
    assert [each.nodes for each in found] == ([nodes] if nodes else [])


def test_what_waits_for_a_job_that_has_become_one_of_these_is_void() -> None:
    now = shown(seen(*RUNS, GANG), held(*ENDS))
    memory = planned(now).memory
    keys = np.array([pack(1)], dtype=np.int64)
    assert set_aside(replace(now, memory=memory), ASTRAEA).reserved
    assert not set_aside(replace(now, memory=with_never_stopped(memory, keys)), ASTRAEA).reserved


SOONER = {
    "as long as its policy says": (60.0, TERM, 60.0, True),
    "not so long": (59.0, TERM, 60.0, False),
    "the site says less": (60.0, 60.0, TERM, True),
    "its policy says nothing, and a term is over": (TERM, TERM, math.nan, True),
    "its policy says nothing, and a term is not over": (TERM - 1.0, TERM, math.nan, False),
    "the site sets no nodes aside": (60.0, math.inf, 0.0, False),
}


@pytest.mark.parametrize(("waited", "after", "says", "reserved"), SOONER.values(), ids=SOONER)
def test_a_plan_may_say_that_a_gang_waits_for_less(
    waited: float, after: float, says: float, reserved: bool
) -> None:
    now = shown(seen(*RUNS, replace(GANG, submit=NOW - waited)), held(*ENDS), after)
    plan = replace(ASTRAEA.plan(now), reserve_after=np.full(len(now.waiting), says))
    assert bool(reservations(with_new(plan, now, ASTRAEA).memory)) == reserved


def test_nothing_is_set_aside_where_leases_end_together() -> None:
    now = replace(shown(seen(*RUNS, GANG), held(*ENDS)))
    together = replace(now, terms=replace(now.terms, aligned=True))
    assert reservations(with_new(ASTRAEA.plan(together), together, ASTRAEA).memory) == ()


def test_the_gang_must_be_the_first_that_waits_in_the_order_of_the_policy() -> None:
    needier = job(7, gpus=8, tenant="b", submit=NOW - 3 * TERM)
    now = shown(seen(*RUNS, GANG, needier), held(*ENDS))
    now = replace(now, ledger=view(now.snapshot, jobs={"7": Account(0, 99), "9": Account(5, 9)}).ledger)
    (found,) = reservations(planned(now).memory)
    assert label(found.key) == "7"


def test_a_lease_that_this_plan_renews_is_over_after_a_renewal() -> None:
    """The lease on n1 is renewed if a beat has passed since its end; one that ends now is only over."""
    runs = (running(1, {"n1": 8}), running(2, {"n2": 8}))
    jobs = snapshot(time=NOW, nodes={"n1": 8, "n2": 8}, jobs=[*runs, GANG])
    for ago, due in ((20.0, TERM / 3), (0.0, 100.0)):
        now = shown(jobs, leases(lease(1, {"n1": 8}, end=NOW - ago), lease(2, {"n2": 8}, end=NOW + 100.0)))
        now = replace(now, terms=replace(now.terms, renewal=TERM / 3))
        plan = planned(now)
        assert verdicts(jobs, plan)["1"] == Verdict.RENEW
        (found,) = reservations(plan.memory)
        assert (found.nodes, found.due - NOW) == (("n1", "n2"), due)


def test_nodes_whose_leases_are_over_are_had_at_the_next_beat_at_the_earliest() -> None:
    """A look between two beats finds one lease over and not renewed; its job goes before the gang."""
    runs = (running(1, {"n1": 8}), running(2, {"n2": 8}))
    jobs = snapshot(time=NOW, nodes={"n1": 8, "n2": 8}, jobs=[*runs, GANG])
    now = shown(jobs, leases(lease(1, {"n1": 8}, end=NOW - 1.0), lease(2, {"n2": 8}, end=NOW + 5.0)))
    now = replace(now, terms=replace(now.terms, renewal=TERM / 4))
    beat = float(now.terms.renewed_at(np.array([NOW - 1.0]))[0])
    assert beat > NOW
    (found,) = reservations(planned(now).memory)
    assert found.due == max(beat, NOW + 5.0)


def later(seconds: float, *more: JobSpec, ends: tuple[float, ...] = ENDS) -> View:
    """The view so much later, behind the plan that set n1 and n3 aside."""
    first = planned(shown(seen(*RUNS, GANG), held(*ENDS)))
    return shown(seen(*RUNS, GANG, *more, now=NOW + seconds), held(*ends), earlier=first)


def test_a_lease_that_ends_there_is_renewed_until_the_gang_has_its_turn_and_goes_to_nobody() -> None:
    needier = job(7, gpus=4, tenant="c", submit=NOW)
    now = later(100.0, needier)
    plan = planned(now)
    assert verdicts(now.snapshot, plan)["1"] == Verdict.RENEW
    assert verdicts(now.snapshot, plan)["7"] == Verdict.WAIT
    after, _ = apply_plan(now.leases, plan, now.snapshot, now.terms, now.now)
    assert after.end[after.key == parse_label("1")].item() == NOW + 500.0
    assert reasons(now.snapshot, plan)["1"] == (
        "its node is set aside for job 9: it keeps its GPUs for 400 s more"
    )


def test_what_comes_free_there_goes_to_nobody_else() -> None:
    """The job with 4 GPUs of n1 ends: they are set aside, those of n2 are not."""
    few, small = (RUNS[1], *RUNS[2:]), job(7, gpus=4, tenant="c", submit=NOW)
    first = planned(shown(seen(*RUNS, GANG), held(*ENDS)))
    of = held(*ENDS).take(np.array([1, 2, 3, 4, 5, 6]))
    now = shown(seen(*few, GANG, small, now=NOW + 50), of, earlier=first)
    assert verdicts(now.snapshot, planned(now))["7"] == Verdict.WAIT
    without = shown(seen(*few, GANG, small, now=NOW + 50), of)
    assert places(without.snapshot, ASTRAEA.plan(without)) == {"7": {"n1": 4}}


def test_the_gang_has_the_first_turn_when_the_last_lease_is_over() -> None:
    neediest = job(7, gpus=4, tenant="c", submit=NOW)
    now = later(500.0, neediest, ends=(500.0, 500.0, 1200.0, 800.0, 500.0, 500.0))
    plan = planned(now)
    assert places(now.snapshot, plan)["9"] == {"n1": 8, "n3": 8}
    assert reservations(plan.memory) == ()
    assert {verdicts(now.snapshot, plan)[name] for name in ("1", "2", "5", "6")} == {Verdict.REVOKE}
    assert verdicts(now.snapshot, plan)["3"] == Verdict.KEEP


VOID = [
    ("its job is gone", seen(*RUNS, now=NOW + 50)),
    ("its job is held", seen(*RUNS, replace(GANG, blocked=Blocked.USER_HOLD), now=NOW + 50)),
    ("a node of it is gone", seen(*RUNS[:4], GANG, now=NOW + 50, down=("n3",))),
]


def test_no_node_is_set_aside_between_the_ends_of_leases() -> None:
    now = shown(seen(*RUNS, GANG), held(*ENDS).take(np.arange(6)))
    assert reservations(planned(now).memory) == ()


@pytest.mark.parametrize("jobs", [case[1] for case in VOID], ids=[case[0] for case in VOID])
def test_a_reservation_is_void_when(jobs: Snapshot) -> None:
    first = planned(shown(seen(*RUNS, GANG), held(*ENDS)))
    of = held(*ENDS).take(np.isin(held(*ENDS).key, jobs.jobs.key))
    assert shown(jobs, of, earlier=first).reserved == ()


def test_it_is_due_earlier_when_a_job_there_ends_earlier() -> None:
    first = planned(shown(seen(*RUNS, GANG), held(*ENDS)))
    left = (RUNS[0], *RUNS[2:], STAYS)
    of = held(*ENDS).take(np.isin(held(*ENDS).key, [parse_label(str(spec.base)) for spec in left]))
    now = shown(seen(*left[:-1], GANG, now=NOW + 50), of, earlier=first)
    assert [each.due for each in now.reserved] == [NOW + 250.0]


FLOOD = [arrival(13.0 * number, gpus=1, seconds=7_000.0, tenant=f"t{number % 4}") for number in range(48)]


@pytest.mark.parametrize("policy", ["astraea", "las", "gandiva-fair", "tiresias", "srtf", "gavel"])
def test_a_gang_of_all_nodes_starts_within_a_lease_of_being_first_against_a_flood(policy: str) -> None:
    """From the first look at which nodes are set aside for it to its start: a term, and a look on either side."""
    began, started = [], []

    def listen(tick: TickRecord, standing: object) -> None:
        for each in reservations(tick.plan.memory):
            began.append(each.since)
        gang = tick.snapshot.jobs.gpus == 16
        started.extend(tick.snapshot.jobs.start[gang & tick.snapshot.jobs.running].tolist())

    how = Rounds(lease=600.0, aligned=False, reserve_after=600.0)
    gang = arrival(1000.0, gpus=16, seconds=500.0, tenant="big")
    simulated([*FLOOD, gang], policy, gpus=16, how=how, until=60_000.0, listen=listen)
    assert began, "no node was ever set aside"
    assert min(started) - min(began) <= 600.0 + 2 * 10.0


@pytest.mark.parametrize("renewal", [32.0, 33.0], ids=["of 16 beats", "of 16 and a half"])
def test_a_lease_that_is_over_and_not_renewed_yet_is_not_taken_for_free(renewal: float) -> None:
    """Each beat finds another node's lease over: it goes on, for its job comes before the gang."""
    nodes, waited = 20, []
    run = [
        arrival(2.0 * node, gpus=8, seconds=5_000.0, declared=5_000.0, tenant="a") for node in range(nodes)
    ]
    gang = arrival(50.0, gpus=8, seconds=9_000.0, declared=9_000.0, tenant="b")

    def listen(tick: TickRecord, standing: object) -> None:
        jobs = tick.snapshot.jobs
        first = jobs.running & (jobs.restarts == 0) & (jobs.tenant == tick.snapshot.tenants.names.index("b"))
        waited.extend((jobs.start - jobs.submit)[first].tolist())

    how = Rounds(lease=64.0, interval_min=1.0, aligned=False, renewal=renewal)
    simulated([*run, gang], "srtf", gpus=8 * nodes, how=how, until=400.0, listen=listen)
    assert min(waited, default=math.inf) <= 2 * 64.0


def test_the_same_gang_waits_far_longer_where_nothing_is_set_aside() -> None:
    gang = arrival(1000.0, gpus=16, seconds=500.0, tenant="big")
    waits = []
    for after in (600.0, float("inf")):
        how = Rounds(lease=600.0, aligned=False, reserve_after=after)
        done = simulated([*FLOOD, gang], "astraea", gpus=16, how=how)
        row = int(np.flatnonzero(done.outcomes.gpus == 16)[0])
        waits.append(float(done.outcomes.waited[row]))
    assert waits[0] < 1500 < 5000 < waits[1]


@pytest.mark.parametrize(
    ("ran", "terms", "set_aside_now"),
    [
        pytest.param(0.0, 0.9, False, id="it never ran, and waits for less than a term"),
        pytest.param(0.0, 1.1, True, id="it never ran, and waits for a term"),
        pytest.param(5.0, 1.9, False, id="it has run, and waits for less than two terms"),
        pytest.param(5.0, 2.1, True, id="it has run, and waits for two"),
    ],
)
def test_a_gang_that_has_run_had_its_turn_and_waits_a_term_more(
    ran: float, terms: float, set_aside_now: bool
) -> None:
    gang = replace(GANG, submit=NOW - terms * TERM)
    made = shown(seen(*RUNS, gang), held(*ENDS))
    accounts = {"9": Account(had=ran, owed=10.0, ran=ran)}
    made = replace(made, ledger=ledger(made.snapshot, {"a": Account(10, 10), "b": Account(0, 10)}, accounts))
    assert bool(reservations(planned(made).memory)) == set_aside_now


def test_a_gang_that_has_run_waits_no_longer_than_its_policy_says() -> None:
    made = shown(seen(*RUNS, replace(GANG, submit=NOW - 0.5 * TERM)), held(*ENDS))
    ledgers = ledger(made.snapshot, {"b": Account(0, 10)}, {"9": Account(had=5.0, owed=10.0, ran=5.0)})
    made = replace(made, ledger=ledgers)
    plan = replace(ASTRAEA.plan(made), reserve_after=np.full(len(made.waiting), 0.4 * TERM))
    assert reservations(with_new(plan, made, ASTRAEA).memory)
