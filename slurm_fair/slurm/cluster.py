"""Slurm behind the Cluster port."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from slurm_fair.config.sections import ClusterSettings
from slurm_fair.errors import SlurmError, SlurmTextError
from slurm_fair.model import Action, Blind, JobState, Outcome, Snapshot, Verb
from slurm_fair.model.apiece import apiece
from slurm_fair.model.columns import find
from slurm_fair.model.gpu_weight import named as named_type
from slurm_fair.ports import IntentLog
from slurm_fair.slurm.acting.actuator import Actuator
from slurm_fair.slurm.command import Commands
from slurm_fair.slurm.notice import with_notices
from slurm_fair.slurm.observe import build_snapshot
from slurm_fair.slurm.ownership.doubt import Lists, ListsInHand, may_be_ours, said_of_doubts, unexplained
from slurm_fair.slurm.ownership.kept_back import any_came_back
from slurm_fair.slurm.ownership.mark_expiry import (
    Absences,
    with_gates_unset,
    without_lifted_holds,
    without_taken_lists,
)
from slurm_fair.slurm.ownership.marks import Marks, MarkSink
from slurm_fair.slurm.ownership.new_begins import begins_without_mark
from slurm_fair.slurm.ownership.out_of_scope import StrayRetries, strays
from slurm_fair.slurm.ownership.remit import Remit
from slurm_fair.slurm.ownership.submitted import maybe_held_since
from slurm_fair.slurm.reading.accounts import WeightReader
from slurm_fair.slurm.reading.answers import Answers
from slurm_fair.slurm.reading.bearers import Bearers
from slurm_fair.slurm.reading.billing import BillingReader
from slurm_fair.slurm.reading.details import JobDetails
from slurm_fair.slurm.reading.gpu_layout import GpuLayouts
from slurm_fair.slurm.reading.made_up import MadeUp
from slurm_fair.slurm.reading.node_limits import NodeLimits
from slurm_fair.slurm.reading.nodes import NodeListing, Reservation, read_nodes, read_reservations
from slurm_fair.slurm.reading.queue import Closing, Queue, begins_later, may_take_gpus
from slurm_fair.slurm.reading.readers import Readers
from slurm_fair.slurm.reading.reports import RunReports
from slurm_fair.slurm.reading.slurmctld import configured, started_at
from slurm_fair.slurm.reading.spacing import AskedAgain
from slurm_fair.slurm.scope import Territory, in_scope
from slurm_fair.slurm.sighting import Sighting
from slurm_fair.throughput import JobWords

_RESERVATIONS_EVERY_SECONDS = 10.0
_BOOT_EVERY_SECONDS = 5.0
_TELLS_BEFORE = 25  # releases
_SAID_AT_ONCE = 20  # rows that the log names at one look
_STRAYS_NAMED = 2048  # more than a tick frees: the journal keeps what each look names
_log = logging.getLogger(__name__)


class SlurmCluster:
    """Observes by explicit formats, acts through the Actuator."""

    acts = True

    def __init__(
        self,
        commands: Commands,
        settings: ClusterSettings,
        now: Callable[[], float],
        sink: MarkSink,
        intents: IntentLog,
        readers: Readers | None = None,
    ) -> None:
        self._commands, self._settings, self._now = commands, settings, now
        self.marks = Marks(sink)
        self._queue = Queue(commands)
        self._details, self._bearers, self._again = JobDetails(commands), Bearers(), AskedAgain()
        self._layouts = GpuLayouts(commands)
        self._spans = NodeLimits(commands)
        self._absences = Absences()
        readers = readers or Readers()
        self._answers = Answers(commands, self._details, readers)
        self._reports = RunReports(self._details, readers)
        self._weights, self._made_up = WeightReader(commands), MadeUp()
        self._billing = BillingReader(commands)
        self._reservations: tuple[float, tuple[Reservation, ...]] = (-np.inf, ())
        self._cluster_name = ""
        self._said: frozenset[str] = frozenset()
        self._stray_retries = StrayRetries()
        self.lists: Lists = ListsInHand({})
        self.notices: set[int] = set()  # jobs by which daemons say that they act here
        self._at_first: Mapping[int, str] | None = None  # node lists that this journal never explained
        self._doubts_said = False
        self.unwatched = True  # since the last look nobody of ours acted, so others may have freed jobs
        self._looked_at = -np.inf
        self._booted: tuple[float, float] = (-np.inf, 0.0)  # when slurmctld started
        self._tells_exclusive = False
        self._actuator = Actuator(
            commands,
            self._queue,
            self.marks,
            self._details,
            intents,
            now,
            settings.requeue_delay,
        )

    def fence(self, may_act: Callable[[], None]) -> None:
        """Set the question before each batch of acts; it raises when we may not act."""
        self._actuator.fence = may_act

    def reconfigure(self, settings: ClusterSettings) -> None:
        """Use new settings from the next look on."""
        self._settings = settings
        self._actuator.ours.requeue_delay = settings.requeue_delay

    def observe(self, asked: Mapping[int, float]) -> Snapshot | Blind:
        """One look at everything; a single answer that is not valid makes the whole look blind."""
        self._actuator.rounds.tick_began = self._now()
        try:
            seen = self._observe(asked)
        except (SlurmTextError, SlurmError) as wrong:
            seen = Blind(self._now(), str(wrong))
        if isinstance(seen, Blind):  # slurmctld may start again before it answers
            self._booted = (-np.inf, self._booted[1])
        return seen

    def _observe(self, asked: Mapping[int, float]) -> Snapshot | Blind:
        machines = read_nodes(self._commands)
        if isinstance(machines, str):
            return Blind(self._now(), machines)
        self._queue.forget_if_grown()
        rows = self._queue.read()
        if isinstance(rows, str):
            return Blind(self._now(), rows)
        self._say_what_cannot_be_read(machines)
        complaint = self._learn_of_slurmctld(rows)
        believed = Closing.SOME_RELEASES if self._tells_exclusive else Closing.ALL_RELEASES
        rows["exclusive"] = rows["closes"] >= believed
        complaint = complaint or self._learn(rows) or self._learn_of_gpus(machines)
        if complaint:
            return Blind(self._now(), complaint)
        return self._build(rows, machines, asked)

    def _say_what_cannot_be_read(self, machines: NodeListing) -> None:
        """Each row once, for as long as it stays so."""
        wrong = {
            f"job {bad.label} of {bad.user or 'nobody known'} is left alone: {bad.why}": bad.user
            for bad in self._queue.unreadable
        }
        wrong |= {f"sinfo: a node is left out: {why}": "" for why in machines.unreadable}
        for line in apiece(sorted(wrong.keys() - self._said), wrong.__getitem__, _SAID_AT_ONCE):
            _log.warning("%s", line)
        self._said = frozenset(wrong)

    def actuate(self, actions: Sequence[Action]) -> tuple[Outcome, ...]:
        """Act, with intents written first; what is not managed is freed when the other acts are done."""
        outcomes = self._actuator.actuate(actions)
        freed = [outcome for outcome in outcomes if outcome.action.verb is Verb.FREE]
        for line in self._stray_retries.heed(freed, self._now()):
            _log.warning("%s", line)
        return outcomes

    def _build(self, rows: NDArray[np.void], machines: NodeListing, asked: Mapping[int, float]) -> Snapshot:
        sighting = Sighting(
            time=self._now(),
            cluster=self._name(),
            rows=rows,
            machines=machines,
            reservations=self._reservations[1],
            weights=self._weights.weights,
            made_up=self._made_up,
            queue=self._queue,
            details=self._details,
            layouts=self._layouts,
            spans=self._spans,
            marks=self.marks,
            settings=self._settings,
            gpu_weights=self._billing.billing.weights,
            booted_at=self._booted[1],
            lists_at_first=self._lists_at_first(rows, machines),
        )
        self._note_unwatched_moves(rows)
        self.marks.set(without_lifted_holds(self.marks, rows, self._queue))
        self.marks.set(without_taken_lists(self.marks, rows, self._queue, self._booted[1], self._now()))
        snapshot = build_snapshot(sighting)
        snapshot = replace(snapshot, left_alone=with_notices(snapshot.left_alone, self.notices))
        if snapshot.in_doubt and not self._doubts_said:
            _log.warning("%s", said_of_doubts(snapshot.in_doubt))
        self._doubts_said = True
        scope = self._settings.scope
        self._actuator.remit = Remit.of(rows, Territory.of(machines, scope), scope)
        self._actuator.ours.booted_at = self._booted[1]
        found = strays(rows, snapshot.jobs.key, sighting.keepers)
        free = self._stray_retries.without(found, self._now())[:_STRAYS_NAMED]
        self.marks.drop(self._absences.spent(self.marks.all(), rows, self._queue))
        snapshot = self._with_answers(replace(snapshot, to_free=free), asked)
        return replace(snapshot, reported=self._reports.of(snapshot, self._settings.reports))

    def _note_unwatched_moves(self, rows: NDArray[np.void]) -> None:
        """Blame nobody for a gate that went while others may have freed jobs; a dead-man takes most of a term."""
        now, seen, self._looked_at = self._now(), self._looked_at, self._now()
        if self.unwatched or not 0 <= now - seen <= self._settings.term / 2:
            self.marks.set(with_gates_unset(self.marks, rows, self._queue))
        self.unwatched = False

    def words_of(self, record: int, restarts: int) -> JobWords:
        """The name that its user gave to a job of the last look, and the hash of its script; empty = not known."""
        details = self._details.of(record, restarts)
        return JobWords(details.name, details.gate_stamp.script)

    def _lists_at_first(self, rows: NDArray[np.void], machines: NodeListing) -> Mapping[int, str]:
        """The node lists that stood, unexplained, when the journal began; noted at its first look."""
        if self._at_first is None:
            self._at_first = self.lists.lists_at_first()
        if self._at_first is None:
            scope = self._settings.scope
            territory = Territory.of(machines, scope)
            inside = in_scope(rows, self._queue, territory, scope)
            ours = may_be_ours(rows, inside, self._queue, self._details, territory.nodes)
            self._at_first = unexplained(ours, self._queue, self.marks)
            self.lists.keep_lists_at_first(self._at_first)
        return self._at_first

    def _learn(self, rows: NDArray[np.void]) -> str:
        """Ask for rarer news: details of new and of changed jobs, shares, reservations."""
        alive = rows[rows["state"] != JobState.DONE]
        takes = may_take_gpus(alive)
        living, asked = alive[takes], alive[takes | begins_later(alive)]
        ids = zip(asked["record"].tolist(), asked["restarts"].tolist(), strict=True)
        submits = dict(zip(ids, asked["submit"].tolist(), strict=True))
        if other := self._bearers.changed(submits):
            for memory in (self._details, self._layouts, self._spans):
                memory.forget(other)
        began = self._now()
        again = self._again.among(living, began)
        begins = begins_without_mark(living, self._queue, self.marks, began)
        complaint = self._details.learn(submits, begins, again)
        self._again.note(again, began, self._now(), answered=not complaint)
        complaint = complaint or self._details.scheduled.learn(
            maybe_held_since(living, self._queue, self._details, self.marks)
        )
        if complaint:
            return complaint
        accounts = [self._queue.accounts.texts[number] for number in np.unique(living["account"]).tolist()]
        self._weights.learn(accounts, self._settings.weights, self._now())
        # A clock that was set back keeps nothing from being asked again.
        if not 0 <= self._now() - self._reservations[0] <= _RESERVATIONS_EVERY_SECONDS:
            reservations = read_reservations(self._commands)
            if isinstance(reservations, str):
                return reservations
            self._reservations = (self._now(), reservations)
        return ""

    def _learn_of_gpus(self, machines: NodeListing) -> str:
        """Learn the weights of GPU types; a complaint where they are not known, or all GPUs count nothing."""
        territory = Territory.of(machines, self._settings.scope)
        types = [machines.nodes[name].gpu_type for name in territory.nodes]
        given = self._settings.gpu_weights
        complaint = self._billing.learn(given, territory.partitions, types, self._now())
        weights = self._billing.billing.weights
        if complaint or not types or any(weights.get(named_type(kind), 1.0) for kind in types):
            return complaint
        return "[tenants] gpu_weights: all GPUs would count 0"

    def _learn_of_slurmctld(self, rows: NDArray[np.void]) -> str:
        """Read slurmctld's start and release; the old answer stands where it does not say.

        A complaint where it does not say and a list is the user's own or ours by its start.
        """
        doubt = any_came_back(rows, self._queue, self.marks, self._booted[1])
        if not doubt and 0 <= self._now() - self._booted[0] <= _BOOT_EVERY_SECONDS:
            return ""
        said = configured(self._commands)
        self._booted = (self._now(), started_at(said, self._booted[1]))
        if "SLURM_VERSION" in said:
            self._tells_exclusive = tells_exclusive(said["SLURM_VERSION"])
        return "scontrol show config: no answer, and a node list is in doubt" if doubt and not said else ""

    def _name(self) -> str:
        if not self._cluster_name:
            self._cluster_name = configured(self._commands).get("ClusterName", "")
        return self._cluster_name

    def _with_answers(self, snapshot: Snapshot, asked: Mapping[int, float]) -> Snapshot:
        """The acknowledgements of jobs that were asked."""
        wanted = np.array(list(asked), dtype=np.int64)
        found = find(snapshot.jobs.key, wanted).tolist()
        rows = {row: asked[key] for key, row in zip(asked, found, strict=True) if row >= 0}
        if not rows:
            return snapshot
        answers = snapshot.jobs.acknowledged.copy()
        for row, answer in self._answers.of(snapshot, rows, self._settings.reports).items():
            answers[row] = answer
        return replace(snapshot, jobs=snapshot.jobs.with_columns(acknowledged=answers))


def tells_exclusive(version: str) -> bool:
    """True where OverSubscribe=NO means whole nodes; later all jobs have it (slurm-facts: exclusive-is-told)."""
    parts = version.split(".")
    return len(parts) >= 2 and parts[0].isdecimal() and int(parts[0][:4]) < _TELLS_BEFORE
