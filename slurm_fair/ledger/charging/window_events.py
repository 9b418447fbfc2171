"""Events of jobs in a window: as columns for counting, and one by one for readers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from slurm_fair.ledger import formulas
from slurm_fair.ledger.charging.charge import Charged
from slurm_fair.ledger.charging.window import HOLDS, Window
from slurm_fair.model import Event, EventKind, JobState, JobTable, Ledger, Snapshot
from slurm_fair.model.columns import Floats, Ints, any_of, find
from slurm_fair.model.once import once

_OF_USER = ("user", "declared_seconds", "limit_seconds", "state")
_WHEN = itemgetter(0, 1)  # time and key
_UserSays = tuple[str | None, float | None, float | None, str | None]
_NOBODY: _UserSays = (None, None, None, None)  # no look shows the job
_Said = Mapping[str, Sequence[Any]]

GPU_WEIGHT = "gpu_weight"  # of a submission, a start or a stop: what each GPU counts, where that is not 1


@dataclass(frozen=True, slots=True)
class WindowLooks:
    """The looks of one window, and every job that one of them shows, as the last such look shows it."""

    snapshots: Sequence[Snapshot]
    jobs: JobTable

    def first(self, kind: EventKind, keys: Ints) -> tuple[list[int], list[int]]:
        """The look that is the first to show this event of each job, and its row there; -1 where none does."""
        return [0] * keys.size, find(self.jobs.key, keys).tolist()


NO_LOOKS = WindowLooks((), JobTable.none())


class Became(NamedTuple):
    """Events of one kind, one entry a job."""

    kind: EventKind
    look: Sequence[int]  # the number of the one that is the first to show it
    row: Sequence[int]  # of its jobs; -1 = it shows the job no more
    time: Sequence[float]
    key: Sequence[int]
    tenant: Sequence[str]
    gpus: Sequence[int]
    said: _Said  # what else is known; None = not of this one


class Happened:
    """Events that the looks of a window are the first to show; worked out when somebody asks."""

    def __init__(self, ledger: Ledger, looks: WindowLooks, window: Window, result: Charged) -> None:
        self.looks = len(looks.snapshots)
        self._looks, self._window, self._result = looks, window, result
        self._met, self._tenants = ledger.jobs.key.size, ledger.tenants.names

    @once
    def became(self) -> tuple[Became, ...]:
        """Events by kind, in columns. Of two events of a job at one instant, the earlier kind stands first."""
        found = (self._submitted(), self._stopped(), self._started(), self._finished())
        return tuple(some for some in found if some is not None)

    @once
    def events(self) -> list[list[Event]]:
        """The events of each look that shows them first, in the order of time.

        A start names the nodes, where the look shows the run.
        """
        of_look: list[list[Event]] = [[] for _ in range(self.looks)]
        rows = [
            row for some in self.became for row in zip(*some[3:5], *some[1:3], written(some), strict=True)
        ]
        for time, _, look, row, event in sorted(rows, key=_WHEN):
            if event.kind == EventKind.STARTED:
                nodes = _nodes(self._looks.snapshots[look], row, time)
                event = event._replace(detail={"nodes": nodes, **event.detail})
            of_look[look].append(event)
        return of_look

    def _became(
        self,
        kind: EventKind,
        life: Ints,
        time: Floats,
        gpus: Ints,
        said: _Said,
        *,
        of_user: bool = False,
    ) -> Became:
        lives, names = self._window.lives, self._tenants
        key = lives.key[life]
        look, row = self._looks.first(kind, key)
        if of_user:
            said = {**said, **_users(self._looks.snapshots, look, row)}
        tenants = [names[tenant] for tenant in lives.tenant[life].tolist()]
        return Became(kind, look, row, time.tolist(), key.tolist(), tenants, gpus.tolist(), said)

    def _submitted(self) -> Became | None:
        lives = self._window.lives
        if lives.key.size == self._met:
            return None
        life = np.arange(self._met, lives.key.size)
        said = _weighed(lives.gpu_weight[life])
        submit, gpus = lives.submit[life], lives.gpus[life]
        return self._became(EventKind.SUBMITTED, life, submit, gpus, said, of_user=True)

    def _started(self) -> Became | None:
        runs, fresh = self._window.runs, self._window.fresh
        if not fresh.size:
            return None
        said: _Said = {"restarts": runs.restarts[fresh].tolist(), **_weighed(runs.gpu_weight[fresh])}
        life, start, gpus = runs.life[fresh], runs.start[fresh], runs.gpus[fresh]
        return self._became(EventKind.STARTED, life, start, gpus, said)

    def _stopped(self) -> Became | None:
        """Runs that are over while their job lives, or that were not its last one."""
        (lives, runs, _, over, *_), used = self._window, self._result.used
        life = runs.life[over]
        rows = over[~(lives.ended[life] & (runs.incarnation[over] == lives.incarnation[life]))]
        if not rows.size:
            return None
        columns = {"start": runs.start, "had": used, "restarts": runs.restarts}
        said: _Said = {name: column[rows].tolist() for name, column in columns.items()}
        said = {**said, **_weighed(runs.gpu_weight[rows])}
        life, end, gpus = runs.life[rows], runs.end[rows], runs.gpus[rows]
        return self._became(EventKind.STOPPED, life, end, gpus, said)

    def _finished(self) -> Became | None:
        rows, lives, result = self._window.ended, self._window.lives, self._result
        if not rows.size:
            return None
        had, owed, end = result.had[rows], result.owed[rows], lives.active_to[rows]
        columns = {
            "had": had,
            "owed": owed,
            "waited": result.waited[rows],
            "ran": result.ran[rows],
            "rho": formulas.rho_for_reports(had, owed),
            "restarts": lives.restarts[rows],
            "submit": lives.submit[rows],
            "end": end,
        }
        said = {name: column.tolist() for name, column in columns.items()}
        return self._became(EventKind.FINISHED, rows, end, lives.gpus[rows], said, of_user=True)


def _weighed(gpu_weight: Floats) -> _Said:
    """The weight of each GPU, of those where that is not 1."""
    odd = gpu_weight != 1.0
    if not any_of(odd):
        return {}
    return {
        GPU_WEIGHT: [
            weight if is_odd else None
            for weight, is_odd in zip(gpu_weight.tolist(), odd.tolist(), strict=True)
        ]
    }


def _users(snapshots: Sequence[Snapshot], looks: Sequence[int], rows: Sequence[int]) -> _Said:
    """Users, expected run times and ends of these jobs, as far as anybody says."""
    users = [
        _user_says(snapshots[look], row) if row >= 0 else _NOBODY
        for look, row in zip(looks, rows, strict=True)
    ]
    return dict(zip(_OF_USER, zip(*users, strict=True), strict=True))


def _user_says(snapshot: Snapshot, row: int) -> _UserSays:
    jobs, told = snapshot.jobs, snapshot.told
    declared = math.nan if told is None else told.declared_seconds.item(row)
    limit = jobs.time_limit_seconds.item(row)
    return (
        snapshot.users[jobs.user.item(row)],
        declared if math.isfinite(declared) else None,
        limit if math.isfinite(limit) else None,
        snapshot.reasons[row] if jobs.state.item(row) == JobState.DONE else None,
    )


def _nodes(snapshot: Snapshot, row: int, time: float) -> list[str]:
    """The nodes that a run holds which began then; none where it is over."""
    jobs = snapshot.jobs
    if row < 0 or not HOLDS.item(jobs.state.item(row)) or jobs.start.item(row) != time:
        return []
    return [snapshot.nodes.names[node] for node in snapshot.held.nodes_of(row).tolist()]


def written(some: Became) -> Iterator[Event]:
    names = tuple(some.said)
    details = zip(*some.said.values(), strict=True) if names else repeat(())
    for time, key, tenant, gpus, detail in zip(*some[3:7], details, strict=False):
        said = {name: value for name, value in zip(names, detail, strict=True) if value is not None}
        yield Event(time, some.kind, key, tenant, gpus, said)
