"""The memory of a simulation: what the metrics need, and nothing that grows with the number of looks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np

from slurm_fair.errors import SlurmFairError, StoreError
from slurm_fair.ledger.charging.window_events import Happened
from slurm_fair.ledger.metrics.efficiency import mean_fragments
from slurm_fair.ledger.outcomes.event_columns import Heard
from slurm_fair.model import Standing, TickRecord, Verdict
from slurm_fair.model.columns import any_of, find
from slurm_fair.ports import EVERYTHING, Want
from slurm_fair.sim.loop.ledger_batches import LedgerBatches
from slurm_fair.sim.loop.pending_looks import shown_by

Listener = Callable[[TickRecord, Standing], None]


def _failure(tick: TickRecord, second: float) -> str:
    """One line on a failure of the policy, or of the profiler: place, instant and error.

    The error is the end of the note's traceback.
    """
    plan = tick.plan
    first, *more = (plan.note or plan.fault).strip().splitlines()
    place, colon, rest = first.partition(": ")
    what = more[-1].strip() if more else rest or first
    who = "the profiler" if plan.is_own else f"policy {tick.policy}"
    return f"{place if colon else ''}{colon}{who} failed at second {second:g} of the trace: {what}"


def is_final(tick: TickRecord, standing: Standing) -> bool:
    """True where a plan decides what stays idle: it may grant, and no job is about to give its GPUs back."""
    return tick.terms.grants_at(tick.time) and not any_of(standing.leases.revoking)


def left_idle(tick: TickRecord, standing: Standing) -> int:
    """GPUs that nobody has or is promised after a plan."""
    snapshot, leases = tick.snapshot, standing.leases
    has = np.zeros(len(snapshot.jobs) + 1, dtype=bool)  # a lease whose job is not listed goes to the end
    has[find(snapshot.jobs.key, leases.key[~leases.promised])] = True
    held = snapshot.held
    taken = int(held.gpus[has[held.row]].sum() + leases.promises.gpus.sum())
    return max(snapshot.total_gpus - taken, 0)


class Log:
    """A Journal that keeps only what outcomes are made of; `listen` is given of every tick what it wants."""

    def __init__(
        self,
        epoch: float,
        listen: Listener | None = None,
        wants: Collection[Want] = EVERYTHING,
        place: str = "",
    ) -> None:
        self._epoch, self._place = epoch, place  # file and line of the policy's plan
        self.heard = Heard()  # what outcomes are made of
        # Plans that might grant and left somebody waiting, by the GPUs that they left idle.
        self._idle: Counter[int] = Counter()
        self._listen = listen
        self.wants: Collection[Want] = () if listen is None else wants
        self._remembered = False  # whether some plan had a memory

    def append(self, tick: TickRecord, standing: Standing) -> None:
        """Take from one tick what is needed; a failure of the policy or the profiler is an error here."""
        if tick.plan.fault or not tick.plan.is_own:
            raise SlurmFairError(_failure(tick, tick.time - self._epoch))
        if tick.plan.memory and not self._remembered:
            self._remembered = True
            self._refuse_memory(tick)
        for event in tick.events:
            self.heard.take(event)
        if any_of(tick.plan.verdict == Verdict.WAIT.code) and is_final(tick, standing):
            self._idle[left_idle(tick, standing)] += 1
        if self._listen is not None:
            self._listen(tick, standing)

    def _refuse_memory(self, tick: TickRecord) -> None:
        """One line for a memory that a daemon's journal could not keep; looked at once, for it costs something."""
        from slurm_fair.store.codec import Encoder  # only a policy that remembers waits for it

        try:
            Encoder().tree(tick.plan.memory)
        except StoreError as problem:
            second, at = tick.time - self._epoch, f"{self._place}: " if self._place else ""
            raise SlurmFairError(
                f"{at}policy {tick.policy} failed at second {second:g} of the trace: its plan's memory: {problem}"
            ) from None

    def batches(self) -> LedgerBatches | None:
        """The ledger that folds many looks at a time; None where whoever listens wants events of jobs."""
        return None if Want.JOB_EVENTS in self.wants else LedgerBatches(self._hear)

    def _hear(self, happened: Happened, looks: Sequence[int]) -> None:
        for some in shown_by(happened, looks):
            self.heard.take_columns(some)

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
