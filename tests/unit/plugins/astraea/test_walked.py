"""The part of a walk that is kept, and the reasons that come of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slurm_fair.model import JobState, Placement
from slurm_fair_plugins.astraea.round import Round
from slurm_fair_plugins.astraea.settings import AstraeaSettings
from slurm_fair_plugins.astraea.walked import Walked
from slurm_fair_plugins.astraea.words import FILLS, MISFIT, OWED_MOST, TENANT_SKIPPED
from tests.support.accounts import Account, view
from tests.support.astraea_views import cluster, over, running
from tests.support.builders import JobSpec, job

NOBODY = np.zeros(0, dtype=np.int64)
NOTHING = Walked(Placement.none(), [], [], [], NOBODY, [], [])


def round_of(*jobs: JobSpec, gpus: int = 8, **owed: float) -> Round:
    """A round of these jobs, of which those that run have a lease that is over; what each tenant had of 1e6."""
    ended = [each for each in jobs if each.state == JobState.RUNNING]
    accounts = {tenant: Account(had, 1e6) for tenant, had in owed.items()}
    return Round(AstraeaSettings(), view(cluster(*jobs, gpus=gpus), over(*ended), accounts))


def told(walked: Walked, round_: Round) -> dict[int, str]:
    """The reason of each row, where a later one replaces an earlier one."""
    found: dict[int, str] = {}
    for rows, text in walked.why(round_.candidates, round_.order):
        found.update(dict.fromkeys(np.asarray(rows).tolist(), str(text)))
    return found


def kept(round_: Round) -> Walked:
    """The walk of a round in which something could change."""
    assert round_.walked is not None
    return round_.walked


# Tenant a goes first; its gang of 8 does not fit on 4 GPUs, and its own job 2 stands behind it.
MISFIT_FIRST = (job(1, gpus=8, tenant="a"), job(2, tenant="a", submit=5), job(3, gpus=3, tenant="b"))


def test_a_walk_keeps_who_was_granted_who_did_not_fit_and_whose_lane_is_shut() -> None:
    round_ = round_of(*MISFIT_FIRST, gpus=4, a=0.0, b=9e6)
    walked = kept(round_)
    assert (sorted(walked.granted), walked.filled, walked.misfits) == ([1, 2], [1], [0])
    assert told(walked, round_) == {0: MISFIT, 1: FILLS, 2: OWED_MOST}
    assert walked.places.sites == {1: [(0, 1)], 2: [(0, 3)]}


def test_siblings_behind_a_gang_that_does_not_fit_are_skipped_and_a_tenant_apart_is_not() -> None:
    jobs = (job(1, gpus=8, tenant="a"), job(2, gpus=8, tenant="a", submit=5), job(3, gpus=6, tenant="b"))
    held = job(4, gpus=2, tenant="c", state=JobState.RUNNING, on={"n1": 2})
    round_ = Round(
        AstraeaSettings(),
        view(cluster(*jobs, held), None, {"a": Account(0, 10), "b": Account(90, 10), "c": Account(0, 10)}),
    )
    walked = kept(round_)
    tenants = round_.view.snapshot.tenants.names
    assert (walked.granted, walked.misfits) == ([2], [0])
    assert [tenants[at] for at in np.asarray(walked.shut).tolist()] == ["a"]
    assert told(walked, round_) == {0: MISFIT, 1: TENANT_SKIPPED, 2: OWED_MOST}


def test_where_nobody_was_granted_anything_there_are_no_places() -> None:
    held = job(2, gpus=8, tenant="b", state=JobState.RUNNING, on={"n1": 8})
    round_ = Round(AstraeaSettings(), view(cluster(job(1, gpus=8), held)))
    walked = kept(round_)
    assert (walked.granted, len(walked.places), walked.evicted) == ([], 0, [])


def test_who_loses_its_lease_is_kept_by_its_place_among_the_contested() -> None:
    first, second = running(1, {"n1": 4}, tenant="b"), running(2, {"n1": 4}, tenant="a")
    round_ = round_of(first, second, job(3, gpus=4, tenant="b"), a=9e6, b=0.0)
    walked = kept(round_)
    assert walked.evicted == [1]
    assert walked.granted == [2]


def test_nothing_to_say_is_said_of_a_walk_in_which_nothing_came_about() -> None:
    round_ = round_of(job(1), job(2))
    assert told(NOTHING, round_) == {}


def test_of_a_tenant_that_is_shut_only_those_who_wait_are_skipped() -> None:
    round_ = round_of(running(1, {"n1": 4}, tenant="a"), job(2, tenant="a"), job(3, tenant="b"))
    shut = replace_shut(NOTHING, 0)
    assert told(shut, round_) == {1: TENANT_SKIPPED}


def replace_shut(walked: Walked, *tenants: int) -> Walked:
    return walked._replace(shut=np.array(tenants, dtype=np.int64))


def test_a_later_reason_replaces_an_earlier_one() -> None:
    """A grant of the second pass fills, whatever was said of its tenant before."""
    round_ = round_of(job(1), job(2), job(3))
    walked = replace_shut(NOTHING, 0)._replace(misfits=[0, 1], granted=[1, 2], filled=[2])
    assert told(walked, round_) == {0: MISFIT, 1: OWED_MOST, 2: FILLS}


def test_only_jobs_in_the_order_of_the_picks_are_skipped() -> None:
    """A job that has no place anywhere is not in it: it has a reason of its own."""
    round_ = round_of(job(1, gpus=18, gpus_per_node=9), job(2))
    assert told(replace_shut(NOTHING, 0), round_) == {1: TENANT_SKIPPED}


def test_a_walk_is_made_once() -> None:
    round_ = round_of(job(1), job(2))
    assert round_.walked is round_.walked
    assert replace(round_).walked is not round_.walked
