"""The ledger charges a job alike, whether it is managed or left alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings

from slurm_fair.ledger import advance, with_those_left_alone
from slurm_fair.model import Aside, JobState, Ledger, Placement, Snapshot
from slurm_fair.policy import View
from tests.support.any_view import views


def left_alone(snapshot: Snapshot, every: int) -> Snapshot:
    """The same cluster with each so-and-so-many-th job that runs left alone."""
    jobs, held = snapshot.jobs, snapshot.held
    runs = (jobs.holds_gpus & (np.bincount(held.row, minlength=len(jobs)) > 0)).nonzero()[0]
    out = np.zeros(len(jobs), dtype=bool)
    out[runs[::every]] = True
    number = np.where(out, -1, np.cumsum(~out) - 1)
    other = np.where(out, np.cumsum(out) - 1, -1)
    theirs = held.renumber(other)
    taken = theirs.per_node(len(snapshot.nodes))
    nodes = snapshot.nodes.with_columns(gpus_others=snapshot.nodes.gpus_others + taken)
    reasons = np.array(snapshot.reasons, dtype=object)
    return replace(
        snapshot,
        nodes=nodes,
        jobs=jobs.take(~out),
        held=held.renumber(number),
        wanted=Placement.none(),
        barred=Placement.none(),
        reasons=tuple(reasons[~out]),
        told=None if snapshot.told is None else snapshot.told.take(~out),
        aside=Aside(jobs.take(out), theirs, tuple(reasons[out])),
    )


@settings(max_examples=100, deadline=None)
@given(seen=views())
def test_a_job_is_charged_alike_whether_it_is_left_alone_or_not(seen: View) -> None:
    first = replace(seen.snapshot, wanted=Placement.none(), barred=Placement.none())
    later = replace(first, time=first.time + 700.0)
    one, _ = advance(Ledger.new(first.time), first)
    one, _ = advance(one, later)
    for every in (1, 2):
        two, _ = advance(Ledger.new(first.time), left_alone(first, every))
        two, events = advance(two, left_alone(later, every))
        np.testing.assert_allclose(two.tenants.had, one.tenants.had)
        np.testing.assert_array_equal(two.jobs.key, one.jobs.key)
        np.testing.assert_allclose(two.jobs.had, one.jobs.had)
        assert not any(event.kind == "finished" for event in events)


@settings(max_examples=100, deadline=None)
@given(seen=views())
def test_for_the_ledger_they_stand_in_one_table_with_what_they_hold(seen: View) -> None:
    apart = left_alone(seen.snapshot, 2)
    joined = with_those_left_alone(apart)
    np.testing.assert_array_equal(joined.jobs.key, seen.snapshot.jobs.key)
    assert joined.held.sites == seen.snapshot.held.sites
    assert (joined.jobs.state == JobState.RUNNING).sum() == (
        seen.snapshot.jobs.state == JobState.RUNNING
    ).sum()
