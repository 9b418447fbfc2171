"""The snapshot that a controller is shown of a virtual cluster."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import TypeVar

import numpy as np

from slurm_fair.model import Answer, JobState, JobTable, NodeTable, Placement, Snapshot, TenantTable, Told
from slurm_fair.model.columns import Bools, Ints, any_of
from slurm_fair.sim.port.learned import LearnedSpeeds
from slurm_fair.sim.port.reports import Reports
from slurm_fair.sim.scenario import Speeds, Unfreed
from slurm_fair.sim.truthfulness import TRUTHFUL, Truthfulness
from slurm_fair.sim.world.job_ids import Roster
from slurm_fair.sim.world.life import Life

CLUSTER = "virtual"
_NOTHING = Placement.none()
_Size = TypeVar("_Size", int, float)
_SAID_BY_JOBS = ("declared_seconds", "left_seconds", "done_seconds", "epoch", "epochs", "steps_per_second")


class Sight:
    """Builds the Snapshot that a controller is shown of the virtual cluster."""

    def __init__(
        self,
        life: Life,
        roster: Roster,
        term: float,
        unfreed: Unfreed | None = None,
        truthfulness: Truthfulness = TRUTHFUL,
        speeds: Speeds = "known",
    ) -> None:
        self._life, self._roster, self._population, self._jobs = life, roster, life.population, life.jobs
        self._term, self._looked, self._unfreed = term, -np.inf, unfreed
        self._tenants = TenantTable(self._population.tenants, self._population.weights)
        self._reports = Reports(self._population, truthfulness)
        self._learned = LearnedSpeeds(self._population, speeds) if speeds != "known" else None

    def look(self, asked: Mapping[int, float], now: float) -> Snapshot:
        """The cluster now; jobs that ended are shown for as long as its manners say."""
        shown, population, life = self._roster.living, self._population, self._life
        floor = life.floor
        if self._tenants.names is not population.tenants:
            self._tenants = TenantTable(population.tenants, population.weights)
        states = self._seen(shown, asked, now)
        told = self._reports.at(shown, states, now)
        held = self._held(shown)
        reasons, resized = self._reasons(shown), self._since_last(life.resized)
        weighed = population.gpu_weights is not None
        by_weight = self._since_last(life.resized_by_weight) if weighed else ()
        self._looked = now
        if life.over:
            self._forget(shown, states, now)
        seen = Snapshot(
            time=now,
            cluster=CLUSTER,
            nodes=self._nodes(now),
            partitions=floor.partitions,
            tenants=self._tenants,
            users=population.users,
            gpu_types=population.gpu_types,
            jobs=states,
            held=held,
            wanted=_NOTHING,
            barred=_NOTHING,
            reasons=reasons,
            told=self._without_the_silent(told, shown) if life.odd.silent else told,
            racks=floor.racks,
            resized=resized,
            resized_by_weight=by_weight,
            gpu_weights=population.gpu_weights,
            sizes=population.elastic.shown(shown, states.usual_gpus),
            speeds=population.elastic.known(shown, len(population.gpu_types)),
        )
        return self._learned.without_unmeasured(seen, shown) if self._learned else seen

    def _nodes(self, now: float) -> NodeTable:
        """The nodes, with the GPUs that this look does not see free yet."""
        floor, left = self._life.floor, self._unfreed(now) if self._unfreed else None
        if not left:
            return floor.nodes
        others = floor.nodes.gpus_others.copy()
        for node, gpus in left.items():
            others[node] += min(gpus, floor.free[node])
        return floor.nodes.with_columns(gpus_others=others)

    def _held(self, shown: Ints) -> Placement:
        """The GPUs that each shown job holds."""
        floor = self._life.floor
        job, node, gpus = floor.holders()
        return Placement.counted(shown.searchsorted(job), node, gpus, floor.taken())

    def _reasons(self, shown: Ints) -> tuple[str, ...]:
        """Slurm's word for the end of each shown job that is over."""
        over = self._life.over
        if not over:
            return ("",) * len(shown)
        reasons = [""] * len(shown)
        for row, how in zip(shown.searchsorted(list(over)).tolist(), over.values(), strict=True):
            reasons[row] = how
        return tuple(reasons)

    def _since_last(self, changes: Sequence[tuple[float, _Size]]) -> tuple[tuple[float, _Size], ...]:
        """The sizes of the cluster since the last look."""
        if changes[-1][0] < self._looked:
            return ()
        return tuple(changes[bisect_left(changes, self._looked, key=itemgetter(0)) :])

    def _seen(self, shown: Ints, asked: Mapping[int, float], now: float) -> JobTable:
        seen = self._jobs.seen(shown)
        # Only those answers are told of that somebody waits for.
        if self._life.answered and any_of(seen.acknowledged != Answer.NONE):
            answers = [self._roster.row(key) for key, when in asked.items() if self._answered(key, when)]
            heard = np.where(np.isin(shown, answers), seen.acknowledged, Answer.NONE.code)
            seen = seen.with_columns(acknowledged=heard)
        if self._life.odd.dated:
            return seen.with_columns(requeueable=seen.requeueable & ~self._out_of_time(shown, now))
        return seen

    def _answered(self, key: int, when: float) -> bool:
        return self._life.answered.get(self._roster.row(key), -np.inf) >= when

    def _out_of_time(self, shown: Ints, now: float) -> Bools:
        """Jobs that could not be started again in time for their deadlines, if another had their lease."""
        limit, state = self._jobs.time_limit_seconds[shown], self._jobs.state[shown]
        begins = np.where(state == JobState.WAITING, now + self._term, self._jobs.start[shown])
        fits = np.where(np.isfinite(limit), limit, 0.0)
        again = np.maximum(np.where(fits > 0, begins + fits, now), now) + self._term + fits
        late: Bools = (state != JobState.DONE) & (again > self._jobs.deadline[shown])
        return late

    def _forget(self, shown: Ints, states: JobTable, now: float) -> None:
        """Jobs that were over long enough."""
        life, listed = self._life, self._life.manners.lists_ended_seconds
        lives = ~states.done
        if listed:
            lives |= now - states.end < listed
        self._roster.living = left = shown[lives]
        life.over = {job: life.over[job] for job in left.tolist() if job in life.over} if listed else {}

    def _without_the_silent(self, told: Told, rows: Ints) -> Told | None:
        """The declarations without those of silent jobs: as in Slurm's own records, a deadline alone is left."""
        silent = np.isin(rows, list(self._life.odd.silent))
        if silent.all() and np.isinf(told.deadline).all():
            return None
        hushed = {name: np.where(silent, np.nan, getattr(told, name)) for name in _SAID_BY_JOBS}
        return told.with_columns(**hushed)
