"""Accounts of Gavel's rounds: the jobs that share the GPUs, and how much each has received of its share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from slurm_fair.policy import Bools, Floats, Ints, Pools, Shapes, View, absent, find, once, ranks, take_or
from slurm_fair.solve import Table

UNKNOWN_SECONDS = 3600.0  # remaining time where nobody's is known
UNKNOWN = f"are taken to have left the median of the others, or {UNKNOWN_SECONDS:g} s where nobody's is known"
_LEAST_SECONDS = 1.0


@dataclass(frozen=True)
class Crowd:
    """The jobs that share the GPUs now: rows of the snapshot's jobs, and the GPU types that there are."""

    view: View
    rows: Ints
    kept: Mapping[str, Any] = field(default_factory=dict)  # what the policy itself remembers

    @once
    def key(self) -> Ints:
        """Key of each job."""
        return self.view.snapshot.jobs.key[self.rows]

    @once
    def kinds(self) -> Ints:
        """GPU types that have GPUs; columns of all tables here."""
        return self.view.snapshot.nodes.gpus_of_types[0]

    @once
    def capacity(self) -> Floats:
        """GPUs of each of them."""
        return self.view.snapshot.nodes.gpus_of_types[1]

    @once
    def gang(self) -> Floats:
        """GPUs of each job."""
        return self.view.snapshot.jobs.gpus[self.rows].astype(np.float64)

    @once
    def rate(self) -> Table:
        """Speed of each job on each type, 0 where its user does not want it or its gang has no room.

        Where there is one type, room is told by the number of GPUs alone.
        """
        wants = self.view.snapshot.jobs.gpu_type[self.rows]
        may = (wants < 0)[:, None] | (wants[:, None] == self.kinds)
        fits = self._room_for_gangs() if len(self.kinds) > 1 else self.gang[:, None] <= self.capacity
        said = self.view.snapshot.told  # not the view's: joining all that is told costs more than the round
        rate = 1.0 if said is None else said.rate[self.rows[:, None], self.kinds]
        return np.where(may & fits, rate, 0.0)

    def _room_for_gangs(self) -> Bools:
        """True where each gang, laid as it asks, has room on the nodes of each type when they are idle."""
        snapshot, rows = self.view.snapshot, self.rows
        fits = self.gang[:, None] <= self.capacity
        if len(rows):
            pools, free = Pools.of(snapshot), snapshot.nodes.capacity
            for at, kind in enumerate(self.kinds.tolist()):
                shapes = Shapes.of(pools, snapshot, rows, np.full(len(rows), kind))
                fits[:, at] &= shapes.fitting(pools, free)
        return fits

    @once
    def left(self) -> Floats:
        """Seconds still to do on the reference type; where nobody knows, as much as the median of the others."""
        left = self.view.told.left_seconds[self.rows]
        known = np.isfinite(left)
        median = float(np.median(left[known])) if known.any() else UNKNOWN_SECONDS
        return np.maximum(np.where(known, left, median), _LEAST_SECONDS)

    @once
    def age(self) -> Floats:
        """Seconds since each was submitted."""
        return np.maximum(self.view.now - self.view.first_submit[self.rows], 0.0)

    def remembered(self, name: str, default: float) -> Floats:
        """A number that the policy kept for each of these jobs under this name."""
        return self._of_key(name, default)

    def to_remember(self, **numbers: Floats) -> Mapping[str, Any]:
        """Numbers of each job, as plain data."""
        return {"key": self.key.tolist(), **{name: values.tolist() for name, values in numbers.items()}}

    def _of_key(self, name: str, default: float) -> Floats:
        if not self.kept:
            return np.full(len(self.rows), default)
        at = find(np.array(self.kept["key"], dtype=np.int64), self.key)
        return take_or(np.array(self.kept[name], dtype=np.float64), at, default)


@dataclass(frozen=True, slots=True)
class ServiceClock:
    """Seconds that grow while a job runs: of progress on the reference type if it reports, else of running."""

    seconds: Floats
    reports: Bools | None = None  # None = nobody does

    def since(self, before: Floats, rate: Callable[[], Floats]) -> Floats:
        """Seconds of running since it showed `before` (nan = never looked at)."""
        passed = np.maximum(_or_nothing(self.seconds - before), 0.0)
        if self.reports is None:
            return passed
        pace = rate()
        return passed / np.where(self.reports & (pace > 0), pace, 1.0)


@dataclass(frozen=True, slots=True)
class SharesPast:
    """Memory of the last plan that computed shares, as arrays."""

    kinds: list[int]
    members: Ints  # keys of the jobs that were shared out to
    key: Ints
    columns: Table  # of each key: its shares, its deficits, and with one type what its clock showed
    absent: Floats  # what stands there for a job without a key

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> SharesPast:
        """The arrays of what was kept; shares stand for many plans, so they are made once of what we kept."""
        return kept.past if isinstance(kept, KeptShares) else cls.read(kept)

    @classmethod
    def read(cls, kept: Mapping[str, Any]) -> SharesPast:
        """The arrays of what a journal gives back."""
        kinds, key = list(kept["kinds"]), np.array(kept["key"], dtype=np.int64)
        names = ("share", "deficit", "seconds") if len(kinds) == 1 else ("share", "deficit")
        columns = [np.array(kept[name], dtype=np.float64).reshape(len(key), len(kinds)) for name in names]
        absent = np.repeat([np.nan, 0.0, np.nan][: len(names)], len(kinds))
        members = np.array(kept["members"], dtype=np.int64)
        return cls(kinds, members, key, np.hstack(columns), absent)

    def of_keys(self, key: Ints) -> Table:
        """The columns of these jobs."""
        if not len(self.key):
            return np.tile(self.absent, (len(key), 1))
        at = find(self.key, key)
        mine: Table = self.columns.take(at, axis=0, mode="wrap")
        mine[at < 0] = self.absent
        return mine


class KeptShares(dict[str, Any]):
    """Plain data for a plan's memory, which never changes, and its arrays."""

    @once
    def past(self) -> SharesPast:
        """The memory of the last plan, as arrays."""
        return SharesPast.read(self)


class Received:
    """Each job's share (nan = none yet), deficit and seconds received since the shares were computed, by type.

    With one type the clock tells what was received; with several, it is noted at every plan on which type.
    """

    def __init__(self, crowd: Crowd, clock: ServiceClock, kept: Mapping[str, Any]) -> None:
        self._crowd, self._clock = crowd, clock
        shape = (len(crowd.rows), len(crowd.kinds))
        if not kept or shape[1] == 0 or SharesPast.of(kept).kinds != crowd.kinds.tolist():
            self.share: Table = np.full(shape, np.nan)
            self.deficit: Table = np.zeros(shape)
            self.time: Table = np.zeros(shape)
            return
        mine, types = SharesPast.of(kept).of_keys(crowd.key), shape[1]
        self.share, self.deficit = mine[:, :types], mine[:, types : 2 * types]
        if types == 1:
            self.time = clock.since(mine[:, 2], lambda: crowd.rate[:, 0])[:, None]
        else:
            self.time = self._with_last_run(kept, shape)

    def anew(self, share: Table, deficit: Table) -> Received:
        """A table of these shares that counts from now on."""
        fresh = Received(self._crowd, self._clock, {})
        fresh.share, fresh.deficit = share, deficit
        return fresh

    def _with_last_run(self, kept: Mapping[str, Any], shape: tuple[int, int]) -> Table:
        """Time received as noted, with all time since then on the type where the job lies or lay."""
        at = find(np.array(kept["noted"], dtype=np.int64), self._crowd.key)
        time = take_or(np.array(kept["time"], dtype=np.float64).reshape(-1, shape[1]), at, 0.0)
        last_on = take_or(np.array(kept["on"], dtype=np.float64), at, -1.0).astype(np.int64)
        now_on = self._lies_on()
        on = np.where(now_on >= 0, now_on, last_on)
        before = take_or(np.array(kept["seconds"], dtype=np.float64), at, np.nan)
        since = self._clock.since(before, lambda: self._crowd.rate[np.arange(len(on)), np.maximum(on, 0)])
        runs = np.flatnonzero(on >= 0)
        time[runs, on[runs]] += since[runs]
        return time

    def _lies_on(self) -> Ints:
        """Column of the GPU type that each job's lease lies on, -1 = none."""
        view, crowd = self._crowd.view, self._crowd
        column = ranks(len(view.snapshot.gpu_types) + 1, crowd.kinds)
        on = absent(len(view.waiting))
        places = view.lease_places
        on[places.row] = column[view.snapshot.nodes.gpu_type[places.node]]
        return on[crowd.rows]

    def noted(self) -> Mapping[str, Any]:
        """The memory for the next plan."""
        seconds = self._clock.seconds.tolist()
        if len(self._crowd.kinds) == 1:
            return {"seconds": seconds}
        return {
            "noted": self._crowd.key.tolist(),
            "seconds": seconds,
            "time": self.time.ravel().tolist(),
            "on": self._lies_on().tolist(),
        }

    @once
    def priority(self) -> Table:
        """Share over time received, which begins at half a round; 0 without a share."""
        half = self._crowd.view.terms.term / 2.0
        return _or_nothing(self.share) / (half + self.time)


def _or_nothing(numbers: Table) -> Table:
    """Numbers, and 0 where there is none."""
    return np.where(np.isnan(numbers), 0.0, numbers)
