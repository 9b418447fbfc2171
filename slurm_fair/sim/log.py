"""The memory of a simulation: what the metrics need, and nothing that grows with the number of looks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator

import numpy as np

from slurm_fair.errors import SlurmFairError
from slurm_fair.ledger.efficiency import mean_fragments
from slurm_fair.ledger.heard import Heard
from slurm_fair.model import Leases, Plan, Snapshot, Standing, TickRecord, Verdict
from slurm_fair.model.columns import any_of, find
from slurm_fair.ports import EVERYTHING, Want
from slurm_fair.sim.loop.ledger_batches import LedgerBatches

Listener = Callable[[TickRecord, Standing], None]


class Log:
    """A Journal that keeps of events what outcomes are made of; `listen` hears of every tick what it wants."""

    def __init__(
        self, epoch: float, listen: Listener | None = None, wants: Collection[Want] = EVERYTHING
    ) -> None:
        self._epoch = epoch
        self.heard = Heard()  # what outcomes are made of
        # Looks at which somebody waited, by the GPUs that the plan left idle.
        self._idle: Counter[int] = Counter()
        self._listen = listen
        self.wants: Collection[Want] = () if listen is None else wants

    def append(self, tick: TickRecord, standing: Standing) -> None:
        """Take from one tick what is needed; a policy that fails is an error here, not a reason to stand still."""
        if tick.plan.note:
            gist = tick.plan.note.strip().splitlines()[-1].strip()  # of a traceback: what was wrong
            second = tick.time - self._epoch
            raise SlurmFairError(f"policy {tick.policy} failed at second {second:g} of the trace: {gist}")
        for event in tick.events:
            self.heard.take(event)
        self._note_idle(tick.plan, tick.snapshot, standing.leases)
        if self._listen is not None:
            self._listen(tick, standing)

    def _note_idle(self, plan: Plan, snapshot: Snapshot, leases: Leases) -> None:
        """GPUs that the round left idle; while jobs change hands its last plan is still to come."""
        if any_of(plan.verdict == Verdict.WAIT) and not any_of(leases.revoking):
            has = np.zeros(
                len(snapshot.jobs) + 1, dtype=bool
            )  # a lease whose job is not listed goes to the end
            has[find(snapshot.jobs.key, leases.key[~leases.promised])] = True
            held = snapshot.held
            taken = int(held.gpus[has[held.row]].sum() + leases.promises.gpus.sum())
            self._idle[max(snapshot.total_gpus - taken, 0)] += 1

    def batches(self) -> LedgerBatches | None:
        """What folds the ledger many looks at a time; nothing where whoever listens wants events of jobs."""
        return None if Want.JOB_EVENTS in self.wants else LedgerBatches(self.heard.take_columns)

    def latest(self) -> Standing | None:
        """A simulation begins with nothing."""
        return None

    def ticks(self, first: int = 0, last: int | None = None) -> Iterator[TickRecord]:
        """Ticks are not kept."""
        return iter(())

    @property
    def fragments_mean(self) -> float:
        """GPUs left idle while jobs waited."""
        return mean_fragments(self._idle)
