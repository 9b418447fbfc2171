"""A Cluster that knows more than its looks show: how fast jobs are, how far, and how long such jobs run."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from slurm_fair.knowing.beliefs import said_progress, still_there, unweighed, weighed
from slurm_fair.knowing.best import PacedRuns, best_paces
from slurm_fair.knowing.classes import Classes, WordsOf, counting_epochs, of_their_kind
from slurm_fair.knowing.ends import ends_of
from slurm_fair.knowing.knowledge import Knowledge
from slurm_fair.knowing.places import types_of
from slurm_fair.knowing.profiles import profiled
from slurm_fair.knowing.samples import due_for_a_sample, measured_rates, samples_of
from slurm_fair.knowing.telling import Learned, told_of, with_place_speeds, with_speeds
from slurm_fair.model import Action, Beliefs, Blind, Event, Outcome, Reported, Snapshot, Standing, Told
from slurm_fair.model.columns import Floats, find, take_or
from slurm_fair.ports import Cluster
from slurm_fair.throughput import Alike, JobClass, Keeping, Known, Links

WRITE_SECONDS = 60.0  # between two writings of what is known
_log = logging.getLogger("slurm_fair")


class Shelf(Protocol):
    """The place where what is known outlives the daemon."""

    def known(self) -> tuple[Known, Beliefs]:
        """Knowledge and beliefs as they were kept last; a damaged row costs that row."""
        ...

    def keep_known(self, known: Known, beliefs: Beliefs) -> None:
        """Replace what was kept, as far as it has changed."""
        ...


@dataclass(frozen=True, slots=True)
class KnowingRules:
    """The choices of a site."""

    learns: bool = True  # else a look shows only what each job says of itself
    alike: Alike = Alike.NAME
    keeping: Keeping = field(default_factory=Keeping)
    links: Links = field(default_factory=Links.unknown)


class Knowing:
    """Looks through another cluster, learns from what running jobs report and ended jobs took, and tells it."""

    def __init__(
        self,
        cluster: Cluster,
        words_of: WordsOf,
        shelf: Shelf,
        rules: KnowingRules,
        standing: Standing | None = None,
    ) -> None:
        self.cluster, self._shelf, self._rules = cluster, shelf, rules
        known, self._beliefs = shelf.known()
        self._knowledge = Knowledge(known, rules.keeping, rules.links)
        self._classes = Classes(words_of, rules.alike)
        self._standing = standing
        self._written = -np.inf

    @property
    def acts(self) -> bool:
        return self.cluster.acts

    def actuate(self, actions: Sequence[Action]) -> tuple[Outcome, ...]:
        """The acts go to the cluster, which does them."""
        return self.cluster.actuate(actions)

    def reconfigure(self, rules: KnowingRules) -> None:
        """Use new settings from the next look on; jobs are put into classes anew."""
        self._rules = rules
        self._knowledge = Knowledge(
            self._knowledge.known, rules.keeping, rules.links, self._knowledge.changed
        )
        self._classes = Classes(self._classes.words_of, rules.alike)

    def observe(self, asked: Mapping[int, float]) -> Snapshot | Blind:
        """The look of the cluster, and what is known of its jobs. What goes wrong there costs no look."""
        seen = self.cluster.observe(asked)
        if isinstance(seen, Blind):
            return seen
        try:
            return self._with_what_is_known(seen)
        except Exception:
            _log.exception("what is known of speeds cannot be told: this look goes without it")
            # That nobody knows what is measured does not mean that all is.
            return replace(seen, profiles=None)

    def hear(self, events: Sequence[Event], standing: Standing, now: float) -> None:
        """After a tick: which jobs ended, and how long jobs have run. Once in a while it is written down."""
        self._standing = standing
        if self._rules.learns:
            self._knowledge.learn_ends(ends_of(events, self._classes.of_job, now), now)
        if not 0 <= now - self._written < WRITE_SECONDS:
            self._knowledge.forget_others(frozenset(standing.ledger.tenants.names))
            self.write(now)

    def write(self, now: float) -> None:
        """Write down what is known, if anything is new."""
        if self._knowledge.changed or len(self._beliefs):
            self._shelf.keep_known(self._knowledge.known, self._beliefs)
        self._knowledge.changed, self._written = False, now

    def _with_what_is_known(self, seen: Snapshot) -> Snapshot:
        classes = self._classes.of(seen)
        self._beliefs = still_there(self._beliefs, seen.jobs)
        if seen.reported is not None:
            seen = replace(seen, reported=self._weigh(seen, seen.reported, classes))
        kinds = self._kinds(seen, classes)
        if seen.profiles is not None and self._rules.learns:
            known = self._knowledge.known.samples
            seen = replace(seen, profiles=profiled(seen, seen.profiles, kinds, known, self._beliefs))
        told = seen.told or Told.nothing(len(seen.jobs), len(seen.gpu_types))
        nothing, ran, now = Knowledge(Known(), self._rules.keeping), self._ran(seen), seen.time
        source = self._knowledge if self._rules.learns else nothing
        speeds = source.speeds(kinds, seen, now)
        told = with_speeds(told, seen, speeds)
        self._beliefs = with_place_speeds(self._beliefs, seen, told.rate, speeds)
        learned = Learned(self._beliefs, source.run_times(classes, ran, now), ran)
        if not (speeds.classes or len(self._beliefs) or learned.says_anything):
            return seen
        return replace(seen, told=told_of(told, seen, learned), speeds=speeds if speeds.classes else None)

    def _weigh(self, seen: Snapshot, reported: Reported, classes: Sequence[JobClass]) -> Reported:
        """The same reports with what is believed of them; new ones are learned from."""
        jobs = seen.jobs
        fresh = unweighed(self._beliefs, jobs, reported)
        new = reported.take(fresh)
        by_epoch, _, _ = said_progress(new)
        kinds = [
            counting_epochs(classes[row]) if epochs else classes[row]
            for row, epochs in zip(new.row.tolist(), by_epoch.tolist(), strict=True)
        ]
        self._beliefs = weighed(self._beliefs, jobs, new, self._best(seen, new, kinds))
        if self._rules.learns:
            self._learn(seen, new, kinds)
        at = find(self._beliefs.key, jobs.key[reported.row])
        return reported.with_columns(
            believed=take_or(self._beliefs.done, at, np.nan),
            clamped=take_or(self._beliefs.clamped, at, False),
        )

    def _best(self, seen: Snapshot, new: Reported, kinds: Sequence[JobClass]) -> Floats:
        """The most progress a second that is believed of each of these runs; nan where nothing is known."""
        if not self._rules.learns:
            return np.full(len(new), np.nan)
        names = tuple(dict.fromkeys(kinds))
        number = {name: at for at, name in enumerate(names)}
        runs = PacedRuns(
            job=seen.jobs.key[new.row],
            job_class=np.array([number[name] for name in kinds], dtype=np.int64),
            gpu_type=types_of(seen, new.row),
            gpus=np.maximum(seen.jobs.gpus[new.row], 1),
            classes=names,
            gpu_types=seen.gpu_types,
        )
        return best_paces(self._knowledge.known.samples, runs)

    def _learn(self, seen: Snapshot, new: Reported, kinds: Sequence[JobClass]) -> None:
        at = find(self._beliefs.key, seen.jobs.key[new.row])
        due = due_for_a_sample(self._beliefs, at, new)
        rate, batch = measured_rates(self._beliefs, at, new)
        due = due[rate[due] > 0]
        chosen = [kinds[row] for row in due.tolist()]
        samples = samples_of(seen, new.take(due), (rate[due], batch[due]), chosen)
        self._knowledge.learn(samples, seen.time)
        sampled = self._beliefs.sampled.copy()
        sampled[at[due]] = new.read[due]
        self._beliefs = self._beliefs.with_columns(sampled=sampled)

    def _kinds(self, seen: Snapshot, classes: Sequence[JobClass]) -> list[JobClass]:
        """The classes by which speeds are asked for: a job that counts epochs has one of its own."""
        at = find(self._beliefs.key, seen.jobs.key)
        return of_their_kind(
            classes, take_or(self._beliefs.counts_epochs, at, False), self._knowledge.measured
        )

    def _ran(self, seen: Snapshot) -> Floats:
        """Seconds that each job has run in all: the ledger's word after the last tick, and the time since then."""
        jobs, standing = seen.jobs, self._standing
        running = jobs.holds_gpus
        if standing is None:
            return np.where(running, np.maximum(seen.time - jobs.start, 0.0), 0.0)
        ledger = standing.ledger
        before = take_or(ledger.jobs.ran, find(ledger.jobs.key, jobs.key), 0.0)
        since = np.maximum(seen.time - np.maximum(jobs.start, ledger.time), 0.0)
        return before + np.where(running, since, 0.0)
