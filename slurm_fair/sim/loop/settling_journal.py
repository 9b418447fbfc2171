"""Facts of runs that looks cannot show, taken from the simulator's books: unseen runs, their nodes, why they
ended.

A run that begins and is lost between two looks leaves a restart behind and nothing else. A live controller learns
of it when it settles its ledger with accounting; a simulated one settles at every look, before it remembers it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from slurm_fair.ledger import settle
from slurm_fair.ledger.charging.window_events import GPU_WEIGHT
from slurm_fair.model import Event, EventKind, Snapshot, Standing, TickRecord
from slurm_fair.model.columns import find
from slurm_fair.model.end_words import NODE_FAIL
from slurm_fair.ports import Journal, Want
from slurm_fair.sim.loop.ledger_batches import LedgerBatches, plain_ledger
from slurm_fair.sim.world.books import Books, Run

_RunsByStart = Mapping[tuple[int, float], Run]


class SettlingJournal:
    """A Journal before another one; `standing` is what goes on from the last look.

    Where the ledger is folded in batches, ticks do not tell what became of jobs. This journal then asks the
    batches for a look, where the books tell more of a run than its nodes.
    """

    def __init__(self, books: Books, journal: Journal, batches: LedgerBatches | None) -> None:
        self._books, self._journal, self._batches = books, journal, batches
        # Runs that no look has shown to be over, and of which there is more to tell.
        self._ended: list[Run] = []
        self.standing: Standing | None = None
        # What became of leases between the last look and the next one, which tells of it.
        self.meanwhile: tuple[Event, ...] = ()

    @property
    def wants(self) -> Collection[Want]:
        """The wishes of the journal behind."""
        return self._journal.wants

    def append(self, tick: TickRecord, standing: Standing) -> None:
        """Mend the look's events and the ledger, and pass both on."""
        self._ended += self._books.hand_over(tick.time)
        events, self.meanwhile = self.meanwhile + tick.events, ()
        shown = self._shown(tick.snapshot) if self._ended else ()
        lived_on = any(run.lived_on for run in shown)
        if lived_on and self._batches is not None:
            events = (*self._batches.events(), *events)
        if lived_on or (shown and self._batches is None):
            events, unseen = _mended(events, {(run.key, run.start): run for run in shown})
            if unseen:
                ledger = plain_ledger(standing.ledger)
                weights = np.array([run.gpu_weight for run in unseen])
                settled, _ = settle(ledger, self._books.table(unseen), ledger.time, weights)
                standing = standing._replace(ledger=settled)
        tick = tick._replace(events=events)
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
        """The latest tick of the journal behind."""
        return self._journal.latest()

    def ticks(self, first: int = 0, last: int | None = None) -> Iterator[TickRecord]:
        """The ticks of the journal behind."""
        return self._journal.ticks(first, last)


def _mended(events: Sequence[Event], runs: _RunsByStart) -> tuple[tuple[Event, ...], list[Run]]:
    """The events with what the books say of these runs, those of runs that nobody saw too; and these runs."""
    stopped = {(e.key, e.detail["start"]) for e in events if e.kind == EventKind.STOPPED}
    unseen = [run for at, run in runs.items() if run.lived_on and at not in stopped]
    more = [event for run in unseen for event in _events_of(run)]
    return (*more, *(_with_books(event, runs) for event in events)), unseen


def _with_books(event: Event, runs: _RunsByStart) -> Event:
    """The event with the nodes of a start that no look showed, or the end of a run lost with its nodes."""
    more: dict[str, object] = {}
    if event.kind == EventKind.STARTED and not event.detail["nodes"]:
        run = runs.get((event.key, event.time))
        more = {"nodes": list(run.nodes)} if run else more
    elif event.kind == EventKind.STOPPED:
        run = runs.get((event.key, event.detail["start"]))
        more = {"state": NODE_FAIL} if run and run.word == NODE_FAIL else more
    return event._replace(detail={**event.detail, **more}) if more else event


def _events_of(run: Run) -> list[Event]:
    weight = {GPU_WEIGHT: run.gpu_weight} if run.gpu_weight != 1.0 else {}
    begun = {"nodes": list(run.nodes), "restarts": run.restarts, **weight}
    had = run.gpus * (run.end - run.start) * run.gpu_weight
    over = {"start": run.start, "had": had, "restarts": run.restarts, **weight}
    return [
        Event(run.start, EventKind.STARTED, run.key, run.tenant, run.gpus, begun),
        Event(run.end, EventKind.STOPPED, run.key, run.tenant, run.gpus, {**over, "state": run.word}),
    ]
