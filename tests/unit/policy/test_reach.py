"""Some jobs cannot be placed whoever gives way, and some are asked to give way though nobody needs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from slurm_fair.model import Aside, Blocked, JobState, LeasePhase, Leases, LeaseTerms
from slurm_fair.model.ids import labels, pack
from slurm_fair.model.lease import NEVER_ENDS_SECONDS
from slurm_fair.policy.reach import without_the_impossible, without_the_kept_out
from slurm_fair.reconcile.for_whom import Spare, withdrawn
from slurm_fair_plugins.astraea import Astraea
from tests.support.accounts import view
from tests.support.builders import JobSpec, job, lease, leases, node, snapshot
from tests.support.tight_views import tight

RUNS: dict[str, Any] = {"state": JobState.RUNNING, "submit": 100.0}
TERMS = LeaseTerms(term=900.0)


def kept_out(stays: JobSpec, *leased: Any, term: float = 900.0) -> bool:
    """True where job 2 is blocked because job 1 has its GPUs."""
    seen = view(snapshot(time=1000.0, jobs=[stays, job(2, gpus=8)]), leases(*leased), {}, {}, term)
    blocked = without_the_kept_out(seen, Astraea()).snapshot.jobs.blocked.tolist()
    return bool(blocked == [Blocked.NOT_BLOCKED, Blocked.KEPT])


def test_who_waits_for_a_job_that_cannot_be_asked_is_blocked_only_where_leases_end() -> None:
    plain = job(1, gpus=4, checkpoints=False, **RUNS)
    assert kept_out(plain)
    assert not kept_out(plain, term=NEVER_ENDS_SECONDS)


@pytest.mark.parametrize("cpus", [2, 4])
def test_an_elastic_job_keeps_others_out_by_what_it_takes_with_the_size_that_it_was_promised(
    cpus: int,
) -> None:
    """Its 2 GPUs take 4 of 6 CPUs."""
    jobs = [job(1, gpus=1, cpus=2, checkpoints=False), job(2, gpus=1, cpus=cpus)]
    promised = lease(1, {"n1": 2}, phase=LeasePhase.GRANTED)
    seen = tight(jobs, [promised], 1, {"n1": node(4, cpus=6)})
    blocked = without_the_kept_out(seen, Astraea()).snapshot.jobs.blocked.tolist()
    assert blocked == [Blocked.NOT_BLOCKED, Blocked.KEPT if cpus > 2 else Blocked.NOT_BLOCKED]


def test_who_has_been_asked_to_leave_keeps_nobody_out_though_it_could_not_be_asked_again() -> None:
    """Slurm would not start it again before its deadline, as is seen by now."""
    late = job(1, gpus=4, requeueable=False, **RUNS)
    assert kept_out(late, lease(1, {"n1": 4}))
    assert not kept_out(late, lease(1, {"n1": 4}, phase=LeasePhase.REVOKING, asked=990.0))


def test_a_job_of_a_partition_without_a_usable_node_is_blocked_however_much_others_have() -> None:
    nodes = {"n1": node(8), "n2": node(8, partitions=("other",), usable=False)}
    seen = snapshot(time=1000.0, nodes=nodes, jobs=[job(1), job(2, partition="other")])
    after = without_the_impossible(seen, Leases.none(), Astraea())
    assert after.jobs.blocked.tolist() == [Blocked.NOT_BLOCKED, Blocked.NODES]


ASIDE = {
    "GPUs": ({"gpus": 8}, {"gpus_others": 8}, {}),
    "CPUs": ({"gpus": 1, "cpus": 60}, {"gpus_others": 1, "cpus_others": 60}, {"cpus": 16}),
    "memory": (
        {"gpus": 1, "memory_mb": 400_000},
        {"gpus_others": 1, "memory_others_mb": 400_000},
        {"memory_mb": 200_000},
    ),
}


@pytest.mark.parametrize(("has", "others", "asks"), ASIDE.values(), ids=ASIDE)
def test_a_job_that_only_those_left_alone_keep_out_is_kept_and_not_without_nodes(
    has: dict[str, int], others: dict[str, int], asks: dict[str, int]
) -> None:
    """The same as foreign jobs hold, which nobody of the managed ones is charged for, leaves it without nodes."""
    both = {"a": 1.0, "b": 1.0}
    seen = snapshot(time=1000.0, nodes={"n1": node(8, **others)}, jobs=[job(1, **asks)], weights=both)
    theirs = job(9, on={"n1": has["gpus"]}, tenant="b", **has, **RUNS)
    alone = snapshot(nodes={"n1": 8}, jobs=[theirs], weights=both)
    for aside, blocked in (
        (Aside(alone.jobs, alone.held, alone.reasons), Blocked.KEPT),
        (None, Blocked.NODES),
    ):
        after = without_the_impossible(replace(seen, aside=aside), Leases.none(), Astraea())
        assert after.jobs.blocked.tolist() == [blocked]


def test_what_was_promised_is_followed_and_not_blocked() -> None:
    seen = snapshot(time=1000.0, nodes={"n1": node(8, usable=False)}, jobs=[job(1), job(2)])
    promised = leases(lease(1, {"n1": 1}, phase=LeasePhase.GRANTED))
    after = without_the_impossible(seen, promised, Astraea())
    assert after.jobs.blocked.tolist() == [Blocked.NOT_BLOCKED, Blocked.NODES]


def stay(
    asked_for: Mapping[int, tuple[int, ...]],
    needs: Mapping[str, int] | None = None,
    unsettled: tuple[int, ...] = (),
    first: JobState = JobState.RUNNING,
) -> list[str]:
    """The jobs of two that were asked that go on, where job 3 was promised two GPUs beside them."""
    needs = needs or {}
    pair = [
        job(base, gpus=2, on={"n1": 2}, cpus=30, memory_mb=200_000, submit=100.0, state=state)
        for base, state in ((1, first), (2, JobState.RUNNING))
    ]
    third = [job(3, **{"gpus": 2, **needs})] if needs else []
    revoked = [lease(base, {"n1": 2}, phase=LeasePhase.REVOKING, asked=990.0) for base in (1, 2)]
    granted = [lease(3, {"n1": needs.get("gpus", 2)}, phase=LeasePhase.GRANTED)] if needs else []
    seen = view(snapshot(time=1000.0, jobs=[*pair, *third]), leases(*revoked, *granted), {}, {})
    spare = Spare(seen.spare_gpus, seen.spare_cpus, seen.spare_memory_mb)
    after, events = withdrawn(seen.leases, seen.snapshot, TERMS, asked_for, unsettled, spare)
    goes_on = labels(after.key[after.phase == LeasePhase.RUNNING])
    assert [event.kind for event in events] == ["stays"] * len(goes_on)
    return goes_on


FOR_ANOTHER = {pack(1): (pack(3),), pack(2): (pack(3),)}


@pytest.mark.parametrize(
    ("needs", "goes_on"),
    [
        ({}, ["1", "2"]),
        ({"cpus": 1}, ["1", "2"]),
        ({"cpus": 5}, ["1"]),
        ({"cpus": 40}, []),
        ({"memory_mb": 112_001}, ["1"]),
        ({"memory_mb": 400_000}, []),
        ({"gpus": 5}, ["1"]),
        ({"gpus": 8}, []),
    ],
    ids=str,
)
def test_only_who_is_not_needed_goes_on_by_gpus_cpus_and_memory(
    needs: dict[str, int], goes_on: list[str]
) -> None:
    assert stay(FOR_ANOTHER, needs) == goes_on


def test_who_was_asked_to_run_elsewhere_itself_or_is_not_settled_does_not_go_on() -> None:
    assert stay({pack(1): (pack(1),), pack(2): (pack(3),)}) == ["2"]
    assert stay({pack(2): (pack(3),)}) == ["2"]
    assert stay(FOR_ANOTHER, unsettled=(pack(1),)) == ["2"]


def test_who_leaves_already_does_not_go_on() -> None:
    assert stay(FOR_ANOTHER, first=JobState.ENDING) == ["2"]
