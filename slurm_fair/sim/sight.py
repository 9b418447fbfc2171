"""What a controller sees of a virtual cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slurm_fair.model import JobTable, Placement, Snapshot, TenantTable, Told
from slurm_fair.model.columns import Bools, Floats, Ints
from slurm_fair.sim.life import DONE, NO_ANSWER, RUNNING, Life
from slurm_fair.sim.roster import Roster
from slurm_fair.sim.work import progress

CLUSTER = "virtual"
_NOTHING = Placement.none()
_SAID_BY_JOBS = ("declared_seconds", "left_seconds", "done_seconds", "epoch", "epochs", "steps_per_second")


class Sight:
    """Looks."""

    def __init__(self, life: Life, roster: Roster, term: float) -> None:
        self._life, self._roster, self._people, self._jobs = life, roster, life.people, life.jobs
        self._term, self._looked = term, -np.inf
        self._tenants = TenantTable(self._people.tenants, self._people.weights)

    def look(self, asked: Mapping[int, float], now: float) -> Snapshot:
        """The cluster now; jobs that ended are shown for as long as its manners say."""
        shown, people, floor = self._roster.living, self._people, self._life.floor
        if self._tenants.names is not people.tenants:
            self._tenants = TenantTable(people.tenants, people.weights)
        states = JobTable(**self._seen(shown, asked, now))
        over = self._life.over
        reasons = [""] * len(shown)
        if over:
            for row, how in zip(shown.searchsorted(list(over)).tolist(), over.values(), strict=True):
                reasons[row] = how
            self._forget(shown, states, now)
        job, node, gpus = floor.holders()
        resized, self._looked = [size for size in self._life.resized if size[0] >= self._looked], now
        return Snapshot(
            time=now,
            cluster=CLUSTER,
            nodes=floor.nodes,
            partitions=floor.partitions,
            tenants=self._tenants,
            users=people.users,
            gpu_types=people.gpu_types,
            jobs=states,
            held=Placement(shown.searchsorted(job), node, gpus),
            wanted=_NOTHING,
            barred=_NOTHING,
            reasons=tuple(reasons),
            told=self._told(shown, now),
            racks=floor.racks,
            resized=tuple(resized),
        )

    def _seen(self, shown: Ints, asked: Mapping[int, float], now: float) -> dict[str, NDArray[Any]]:
        seen = self._jobs.seen(shown)
        if asked:  # an answer to an earlier request is none
            late = [self._roster.row(key) for key, when in asked.items() if not self._answered(key, when)]
            seen["acknowledged"][np.isin(shown, late)] = NO_ANSWER
        if self._life.odd.dated:
            seen["requeueable"] &= ~self._out_of_time(shown, now)
        return seen

    def _answered(self, key: int, when: float) -> bool:
        return self._life.answered.get(self._roster.row(key), -np.inf) >= when

    def _out_of_time(self, shown: Ints, now: float) -> Bools:
        """Running jobs that could not be started again in time for their deadlines once another had its lease."""
        limit = self._jobs.time_limit_seconds[shown]
        again = now + self._term + np.where(np.isfinite(limit), limit, 0.0)
        late: Bools = (self._jobs.state[shown] == RUNNING) & (again > self._jobs.deadline[shown])
        return late

    def _forget(self, shown: Ints, states: JobTable, now: float) -> None:
        """Jobs that were over long enough."""
        life = self._life
        listed = life.manners.lists_ended_seconds
        gone = states.state == DONE
        if listed:
            gone &= now - states.end >= listed
        self._roster.living = shown[~gone]
        life.over = (
            {job: life.over[job] for job in shown[~gone].tolist() if job in life.over} if listed else {}
        )

    # -- what users declared and the jobs' own reports say ----------------------------------------------------

    def _told(self, rows: Ints, now: float) -> Told | None:
        hidden, ints = self._jobs.hidden.of(rows), self._jobs.hidden_ints.of(rows)
        done = _done(hidden, self._jobs.state[rows] == RUNNING, now)
        said = progress(
            self._people.regimes,
            ints["first_regime"],
            ints["last_regime"],
            done,
            hidden["work"],
            hidden["declared"],
        )
        told = Told(
            declared_seconds=hidden["declared"],
            left_seconds=said.left_seconds,
            done_seconds=done,
            epoch=said.epoch,
            epochs=said.epochs,
            deadline=hidden["deadline"],
            steps_per_second=said.steps_per_second,
            rate=self._people.rates[rows],
            spread_rate=hidden["spread_rate"],
            model=ints["model"],
            batch_size=said.batch_size,
            models=self._people.models,
        )
        return self._without_the_silent(told, rows) if self._life.odd.silent else told

    def _without_the_silent(self, told: Told, rows: Ints) -> Told | None:
        """As in Slurm's own records: nothing but a deadline, where one was given."""
        silent = np.isin(rows, list(self._life.odd.silent))
        if silent.all() and np.isinf(told.deadline).all():
            return None
        hushed = {name: np.where(silent, np.nan, getattr(told, name)) for name in _SAID_BY_JOBS}
        return told.with_columns(**hushed)


def _done(hidden: Mapping[str, Floats], runs: Bools, now: float) -> Floats:
    more = np.maximum(now - hidden["progress_from"], 0.0) * hidden["rate"]
    done: Floats = np.minimum(hidden["done"] + np.where(runs, more, 0.0), hidden["work"])
    return done
