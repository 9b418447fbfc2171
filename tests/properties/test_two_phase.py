"""The merge of sorted lists picks what Astraea's loop picks, word by word (algorithms 1 and 2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_fair.model import Verdict
from slurm_fair_plugins.astraea import Astraea
from slurm_fair_plugins.astraea.words import OWED_MOST
from tests.support.accounts import Account, reasons, verdicts, view
from tests.support.builders import JobSpec, job, snapshot

TENANTS = "abcd"
LEASE_SECONDS = 900.0
NODE_GPUS = 8
Draw = Callable[[st.SearchStrategy[Any]], Any]


@st.composite
def queues(draw: Draw) -> tuple[list[JobSpec], dict[str, Account], dict[str, Account], int]:
    """Waiting jobs, what tenants and jobs had and were owed, and how many free nodes there are."""
    sizes = st.sampled_from([1, 1, 2, 3, 4, 8, 16])
    jobs = [
        job(i, gpus=draw(sizes), tenant=draw(st.sampled_from(TENANTS)), submit=float(draw(st.integers(0, 5))))
        for i in range(1, 1 + draw(st.integers(1, 30)))
    ]
    seconds = st.integers(0, 20).map(lambda n: 450.0 * n)
    owed = st.integers(1, 20).map(lambda n: 700.0 * n)
    tenants = {name: Account(draw(seconds), draw(owed)) for name in TENANTS}
    accounts = {
        str(j.base): Account(draw(seconds), draw(owed), draw(st.sampled_from([0.0, 1.0]))) for j in jobs
    }
    return jobs, tenants, accounts, draw(st.integers(1, 6))


def loop(
    jobs: list[JobSpec], tenants: dict[str, Account], accounts: dict[str, Account], nodes: int
) -> set[str]:
    """Algorithm 1 as it is printed."""
    had = {name: account.had for name, account in tenants.items()}
    pending = {name: [j for j in jobs if j.tenant == name] for name in tenants}
    free, chosen = [NODE_GPUS] * nodes, set()
    while in_play := [name for name, waiting in pending.items() if waiting]:
        neediest = min(in_play, key=lambda name: (had[name] / tenants[name].owed, had[name], name))
        candidate = min(pending[neediest], key=lambda j: reward_order(j, accounts[str(j.base)]))
        if place(candidate.gpus, free):
            chosen.add(str(candidate.base))
            pending[neediest].remove(candidate)
            had[neediest] += candidate.gpus * LEASE_SECONDS
        else:
            del pending[neediest]
    return chosen


def reward_order(j: JobSpec, account: Account) -> tuple[bool, float, float, int]:
    """Algorithm 2: the greatest reward is the smallest rho; new jobs first (section 6.1.1)."""
    return (account.ran > 0, account.had / account.owed, j.submit, j.base)


def place(gpus: int, free: list[int]) -> bool:
    """Consolidated: the fullest node that fits, or whole nodes."""
    if gpus <= NODE_GPUS:
        fitting = [n for n, f in enumerate(free) if f >= gpus]
        if fitting:
            free[min(fitting, key=lambda n: free[n])] -= gpus
        return bool(fitting)
    idle = [n for n, f in enumerate(free) if f == NODE_GPUS]
    if len(idle) * NODE_GPUS < gpus:
        return False
    for n in idle[: -(-gpus // NODE_GPUS)]:
        free[n] = 0
    return True


@given(queue=queues())
@settings(max_examples=300, deadline=None)
def test_the_merge_picks_what_the_loop_picks(
    queue: tuple[list[JobSpec], dict[str, Account], dict[str, Account], int],
) -> None:
    jobs, tenants, accounts, nodes = queue
    seen = snapshot(
        nodes={f"n{i}": NODE_GPUS for i in range(nodes)}, jobs=jobs, weights=dict.fromkeys(TENANTS, 1.0)
    )
    plan = Astraea(early_starts=0).plan(view(seen, tenants=tenants, jobs=accounts, term=LEASE_SECONDS))
    decided, told = verdicts(seen, plan), reasons(seen, plan)
    picked = {label for label in decided if decided[label] == Verdict.GRANT and told[label] == OWED_MOST}
    assert picked == loop(jobs, tenants, accounts, nodes)
