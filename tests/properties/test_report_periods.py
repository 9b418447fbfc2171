"""Reports of parts of a time agree with that of the whole, whatever the cluster did and wherever it is cut."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_fair.model import Event, JobState, Standing, TickRecord
from slurm_fair_accounting import REPORTS, Choice, EventFile, Period
from tests.support.any_scenario import EXAMPLES, Case, cases, play

each_policy = pytest.mark.parametrize(
    "policy", ["astraea", "fair"]
)  # `fair` runs elastic jobs larger or smaller
CUTS = st.lists(st.floats(0.0, 1.0), max_size=5)
PARTS = st.sampled_from((0.3, 0.7, 1.0))
Who = tuple[str, str]


class KeptLooks(EventFile):
    """All that happened until a look, with the ledger as a journal has it, or without one as an export."""

    def __init__(self, events: Iterable[Event], standing: Standing | None = None) -> None:
        super().__init__(events, [])
        self._standing = standing

    def latest(self) -> Standing | None:
        """The standing after the last look."""
        return self._standing

    def last(self) -> float:
        """The newest instant that is known."""
        return max(self.ended() or 0.0, self._standing.ledger.time if self._standing else 0.0)


def kept(case: Case, policy: str, part: float, with_ledger: bool) -> KeptLooks:
    """The first part of a simulation's looks."""
    looks: list[tuple[tuple[Event, ...], Standing]] = []

    def listen(tick: TickRecord, standing: Standing) -> None:
        looks.append((tuple(tick.events), standing))

    play(case, policy, listen)
    some = looks[: max(round(part * len(looks)), 1)]
    return KeptLooks([event for events, _ in some for event in events], some[-1][1] if with_ledger else None)


def cut(source: KeptLooks, cuts: list[float]) -> tuple[Period, list[Period]]:
    """The whole time, and the periods into which it is cut."""
    first, last = source.began() or 0.0, source.last()
    end = math.nextafter(last, math.inf)
    edges = [first, *sorted(first + share * (last - first) for share in cuts), end]
    return Period(first, end), [Period(start, end) for start, end in pairwise(edges) if start < end]


def rows(name: str, source: KeptLooks, *periods: Period) -> list[dict[str, Any]]:
    """The rows of the reports of these periods, sorted."""
    found = [dict(row) for period in periods for row in REPORTS[name](source, period, Choice()).rows]
    return sorted(found, key=repr)


def used(source: KeptLooks, period: Period) -> dict[Who, float]:
    """GPU-seconds by tenant and user."""
    sums: dict[Who, float] = defaultdict(float)
    for row in rows("usage", source, period):
        sums[row["tenant"], row["user"]] += row["gpu_seconds"]
    return sums


@each_policy
@EXAMPLES
@given(case=cases(), part=PARTS, ledger=st.booleans(), cuts=CUTS)
def test_the_usage_of_the_parts_of_a_time_adds_up_to_that_of_the_whole_and_is_never_more_than_there_is(
    policy: str, case: Case, part: float, ledger: bool, cuts: list[float]
) -> None:
    source = kept(case, policy, part, ledger)
    whole, parts = cut(source, cuts)
    pieces = [used(source, period) for period in parts]
    gpus = int(case.scenario.machines.gpus.sum())
    for piece, period in zip(pieces, parts, strict=True):
        assert sum(piece.values()) <= gpus * period.seconds + 1e-2
    in_all = used(source, whole)
    assert {who for piece in pieces for who in piece} == in_all.keys()
    for who, seconds in in_all.items():
        assert math.fsum(piece.get(who, 0.0) for piece in pieces) == pytest.approx(seconds, abs=1e-2)


@each_policy
@EXAMPLES
@given(case=cases())
def test_the_usage_of_a_simulation_is_what_its_runs_held(policy: str, case: Case) -> None:
    events: list[Event] = []
    played = play(case, policy, lambda tick, _: events.extend(tick.events))
    source = KeptLooks(events)
    held = sum(run.gpus * (run.end - run.start) for run in played.over)
    jobs, count = played.simulation.cluster.jobs, played.simulation.cluster.jobs.count
    going = np.flatnonzero(jobs.state[:count] == JobState.RUNNING)  # until the newest thing known
    held += float((jobs.gpus * np.maximum(source.last() - jobs.start, 0.0))[going].sum())
    assert sum(used(source, cut(source, [])[0]).values()) == pytest.approx(held, abs=1e-2)


@each_policy
@EXAMPLES
@given(case=cases(), part=PARTS, ledger=st.booleans(), cuts=CUTS)
def test_a_lease_is_told_alike_by_its_part_of_a_time_and_by_the_whole(
    policy: str, case: Case, part: float, ledger: bool, cuts: list[float]
) -> None:
    source = kept(case, policy, part, ledger)
    whole, parts = cut(source, cuts)
    assert rows("leases", source, *parts) == rows("leases", source, whole)


@each_policy
@EXAMPLES
@given(case=cases(), part=PARTS, ledger=st.booleans(), cuts=CUTS)
def test_a_job_that_ended_is_told_alike_by_its_part_of_a_time_and_by_the_whole(
    policy: str, case: Case, part: float, ledger: bool, cuts: list[float]
) -> None:
    source = kept(case, policy, part, ledger)
    whole, parts = cut(source, cuts)
    pieces = [row for row in rows("jobs", source, *parts) if row["end"] is not None]
    assert pieces == [row for row in rows("jobs", source, whole) if row["end"] is not None]
