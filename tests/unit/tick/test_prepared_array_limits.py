"""Tasks that their array's own limit keeps back ask for nothing: no share, no quota, no place, no nodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from slurm_fair.model import Blocked, JobState, Leases, LeaseTerms, Ledger, Snapshot, Standing, Told, Verdict
from slurm_fair.model.ids import labels
from slurm_fair.model.reservation import reservations
from slurm_fair.policy import load
from slurm_fair.policy.reserve import with_new
from slurm_fair.tick import Prepared, Rules, prepare
from slurm_fair_plugins.fair import Fair
from tests.support.accounts import Account, ledger, verdicts
from tests.support.builders import JobSpec, job, lease, leases, snapshot
from tests.support.every_policy import EVERY
from tests.support.tick_bench import BEGAN, TickBench

HOUR, NOW = 3600.0, 10_000.0
RUNNING = JobState.RUNNING
TERMS = LeaseTerms(term=900.0, aligned=False, reserve_after=900.0, renewal=225.0)


def array(tasks: int, *, running: int = 0, gpus: int = 1, limit: int = 1, on: str = "n1") -> list[JobSpec]:
    """Tasks of account a, of which the first run."""
    columns = {"gpus": gpus, "tenant": "a", "submit": 1.0, "array_limit": limit}
    runs = [job(1, task=at, state=RUNNING, start=1.0, on={on: gpus}, **columns) for at in range(running)]
    return runs + [job(1, task=at, **columns) for at in range(running, tasks)]


def ready(
    seen: Snapshot, held: Leases | None = None, name: str = "fair", accounts: Ledger | None = None
) -> Prepared:
    """A look folded into ledger and leases."""
    standing = Standing.new(seen.time)._replace(ledger=accounts or Ledger.new(seen.time))
    standing = standing._replace(leases=leases() if held is None else held)
    return prepare(standing, seen, Rules(name, load(name, {}), {}, TERMS))


@pytest.mark.parametrize("tasks", [1, 2, 8])
def test_an_array_is_owed_what_its_limit_lets_it_ask_for(tasks: int) -> None:
    """One account has an array of which one task may run, the other waits for all GPUs that it can get."""
    others = [job(at, tenant="b", submit=1.0, state=RUNNING, start=1.0, on={"n1": 1}) for at in range(20, 27)]
    standing, rules = Standing.new(1.0), Rules("fair", Fair(), {}, TERMS)
    for now in (1.0, 1.0 + HOUR):
        seen = snapshot(
            time=now,
            nodes={"n1": 8},
            jobs=[*array(tasks, running=1), *others, job(30, tenant="b", submit=1.0)],
        )
        standing = prepare(standing, seen, rules).standing
    accounts = standing.ledger.tenants
    at = accounts.names.index("a")
    assert (accounts.had[at], accounts.owed_demand[at]) == (HOUR, HOUR)


@pytest.mark.parametrize("dated", [0, 1, 8])
def test_a_made_up_deadline_wins_no_places_that_limited_tasks_lend(dated: int) -> None:
    """Account a has one short task that may run, and long jobs; b has eight jobs in between."""
    longer = [job(10 + at, tenant="a", submit=2.0) for at in range(8)]
    others = [job(30 + at, tenant="b", submit=3.0) for at in range(8)]
    seen = snapshot(time=NOW, nodes={"n1": 8}, jobs=[*array(8), *longer, *others])
    left = np.repeat([2 * HOUR, 9 * HOUR, 5 * HOUR], 8)
    deadline = np.full(24, np.inf)
    deadline[8 : 8 + dated] = NOW + 9 * HOUR + 600
    seen = replace(seen, told=Told.nothing(24, 1).with_columns(left_seconds=left, deadline=deadline))
    plain = {"a": Account(), "b": Account()}
    view = ready(seen, accounts=ledger(seen, plain)).view
    single = replace(seen, jobs=seen.jobs.with_columns(array_limit=np.zeros(24, dtype=np.int64)))
    rows = np.r_[0, 8:24]
    single = replace(
        single, jobs=single.jobs.take(rows), told=single.told and single.told.take(rows), reasons=("",) * 17
    )
    alone = ready(single, accounts=ledger(single, plain)).view
    granted = [
        label for label, said in verdicts(view.snapshot, Fair().plan(view)).items() if said is Verdict.GRANT
    ]
    assert sum(label.startswith("3") for label in granted) == 4, "each has its quota"
    as_one = verdicts(alone.snapshot, Fair().plan(alone))
    assert granted == [label for label, said in as_one.items() if said is Verdict.GRANT]


def full(*, gangs: bool = True) -> tuple[Snapshot, Leases]:
    """A task runs, and the next of its array waits longer than anybody; a gang and small jobs wait too."""
    smalls = [job(at, tenant="b", submit=2.0, state=RUNNING, start=1.0, on={"n1": 1}) for at in range(10, 14)]
    waits = [job(20, tenant="c", submit=300.0), job(21, tenant="c", submit=301.0)]
    gang = [job(30, gpus=4, tenant="c", submit=200.0)] if gangs else []
    tasks = array(2, running=1, gpus=4, on="n2")
    seen = snapshot(time=NOW, nodes={"n1": 6, "n2": 4}, jobs=[*tasks, *smalls, *waits, *gang])
    ends = [lease(10 + at, {"n1": 1}, end=NOW + 100 * (at > 0) + at, start=1.0) for at in range(4)]
    return seen, leases(lease(1, {"n2": 4}, task=0, end=NOW + 1e5, start=1.0), *ends)


@pytest.mark.parametrize("name", ["tiresias", "fair", "las", "srtf", "astraea"])
def test_no_nodes_are_set_aside_for_a_task_that_its_array_keeps_back(name: str) -> None:
    seen, held = full(gangs=False)
    view, policy = ready(seen, held, name).view, load(name, {})
    assert reservations(with_new(policy.plan(view), view, policy).memory) == ()


@pytest.mark.parametrize("name", EVERY)
def test_no_policy_gives_such_a_task_a_place_or_gpus(name: str) -> None:
    seen, held = full()
    view = ready(seen, held, name).view
    plan, row = load(name, {}).plan(view), labels(seen.jobs.key).index("1_1")
    assert Verdict(int(plan.verdict[row])) is Verdict.LEAVE
    assert plan.explanation.rank[row] == -1
    assert plan.explanation.reasons[plan.explanation.reason[row]] == "its array's own limit is reached"


def test_when_a_task_has_ended_the_next_starts_at_that_look_and_its_promise_is_kept() -> None:
    bench = TickBench()
    columns = {"gpus": 4, "array_limit": 1, "submit": BEGAN, "gated": True, "gate_until": 1e9}
    tasks = [job(1, task=at, record=1, **columns) for at in range(3)]
    bench.see(*tasks)
    assert bench.acts() == ["open 1_0"]
    bench.see(*tasks)
    assert (bench.acts(), labels(bench.standing.leases.key)) == ([], ["1_0"])
    runs = job(
        1, task=0, **{**columns, "state": RUNNING, "start": BEGAN + 15, "on": {"n1": 4}, "gated": False}
    )
    bench.see(runs, *tasks[1:])
    assert bench.acts() == []
    over = job(1, task=0, **{**columns, "state": JobState.DONE, "start": BEGAN + 15, "end": BEGAN + 35})
    done = bench.see(over, *tasks[1:])
    assert bench.acts() == ["open 1_1"]
    assert done.record is not None
    assert done.record.snapshot.jobs.blocked.tolist() == [0, 0, Blocked.ARRAY_LIMIT]
