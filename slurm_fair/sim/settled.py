"""Facts of runs that looks cannot show, taken from the simulator's books: unseen runs, their nodes, why they
ended.

A run that begins and is lost between two looks leaves a restart behind and nothing else. A live controller learns
of it when it settles its ledger with accounting; a simulated one settles at every look, before it remembers it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

import numpy as np

from slurm_fair.ledger import settle
from slurm_fair.ledger.happened import Share
from slurm_fair.ledger.outcomes import NODE_FAIL
from slurm_fair.model import Event, EventKind, Events, Snapshot, Standing, TickRecord
from slurm_fair.model.columns import find
from slurm_fair.ports import Journal
from slurm_fair.sim.books import Books, Run

_Told = Mapping[tuple[int, float], Run]


class Settled:
    """A Journal before another one; `standing` is what goes on from the last look."""

    def __init__(self, books: Books, journal: Journal) -> None:
        self._books, self._journal = books, journal
        # Runs that no look has shown to be over, and of which there is more to tell.
        self._ended: list[Run] = []
        self.standing: Standing | None = None
        # What became of leases between the last look and the next one, which tells of it.
        self.meanwhile: Events | None = None

    @property
    def keeps_all(self) -> bool:
        """As the journal behind."""
        return self._journal.keeps_all

    def append(self, tick: TickRecord, standing: Standing) -> None:
        """Mend the look's events and the ledger, and pass both on."""
        self._ended += self._books.hand_over(tick.time)
        if self.meanwhile is not None:
            tick, self.meanwhile = tick._replace(events=self.meanwhile + _parts(tick.events)), None
        if self._ended:
            shown = self._shown(tick.snapshot)
            if shown:
                events, unseen = _mended(tick.events, {(run.key, run.start): run for run in shown})
                tick = tick._replace(events=events)
                if unseen:
                    settled, _ = settle(standing.ledger, self._books.table(unseen), standing.ledger.time)
                    standing = standing._replace(ledger=settled)
        self.standing = standing
        self._journal.append(tick, standing)

    def _shown(self, snapshot: Snapshot) -> list[Run]:
        """Ended runs that this look shows to be over; the others were stopped after it."""
        if not any(run.lived_on for run in self._ended):
            shown, self._ended = self._ended, []
            return shown
        jobs = snapshot.jobs
        rows = find(jobs.key, np.array([run.key for run in self._ended], dtype=np.int64)).tolist()
        shown, self._ended, later = [], [], self._ended
        for run, row in zip(later, rows, strict=True):
            if row < 0 or not run.lived_on or jobs.restarts.item(row) > run.restarts:
                shown.append(run)
            elif run.word == NODE_FAIL or jobs.start.item(row) != run.start:
                self._ended.append(run)  # else the look shows that it runs: there is no more to tell
        return shown

    def latest(self) -> Standing | None:
        """Of the journal behind."""
        return self._journal.latest()

    def ticks(self, first: int = 0, last: int | None = None) -> Iterator[TickRecord]:
        """Of the journal behind."""
        return self._journal.ticks(first, last)


def _mended(events: Sequence[Event], runs: _Told) -> tuple[Events, list[Run]]:
    """The events with what the books say of these runs, those of runs that nobody saw too; and these runs."""
    parts = _parts(events)
    changed = parts.changed(lambda some: _with_books(some, runs))
    lived_on = [(at, run) for at, run in runs.items() if run.lived_on]
    if not lived_on:
        return changed, []
    stopped = {(e.key, e.detail["start"]) for e in parts.at_hand if e.kind == EventKind.STOPPED}
    unseen = [run for at, run in lived_on if at not in stopped]
    return Events([event for run in unseen for event in _events_of(run)]) + changed, unseen


def _parts(events: Sequence[Event]) -> Events:
    return events if isinstance(events, Events) else Events(events)


def _with_books(events: Sequence[Event], runs: _Told) -> Sequence[Event]:
    if isinstance(events, Share):
        events = events.with_nodes({at: run.nodes for at, run in runs.items()})
    lost = {at for at, run in runs.items() if run.word == NODE_FAIL}
    return [_lost(event, lost) for event in events] if lost else events


def _lost(event: Event, lost: Set[tuple[int, float]]) -> Event:
    """Some runs were lost with their nodes."""
    if event.kind != EventKind.STOPPED or (event.key, event.detail["start"]) not in lost:
        return event
    return event._replace(detail={**event.detail, "state": NODE_FAIL})


def _events_of(run: Run) -> list[Event]:
    begun = {"nodes": list(run.nodes), "restarts": run.restarts}
    over = {"start": run.start, "had": run.gpus * (run.end - run.start), "restarts": run.restarts}
    return [
        Event(run.start, EventKind.STARTED, run.key, run.tenant, run.gpus, begun),
        Event(run.end, EventKind.STOPPED, run.key, run.tenant, run.gpus, {**over, "state": run.word}),
    ]
