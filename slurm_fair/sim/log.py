"""The memory of a simulation: what the metrics need, and nothing that grows with the number of looks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain

from slurm_fair.errors import SlurmFairError, StoreError
from slurm_fair.ledger.efficiency import mean_fragments
from slurm_fair.ledger.heard import Heard
from slurm_fair.model import (
    Events,
    LeasePhase,
    Leases,
    Plan,
    Snapshot,
    Standing,
    TickRecord,
    Verdict,
)
from slurm_fair.model.columns import any_of, code

Listener = Callable[[TickRecord, Standing], None]
# So many looks, and rows of their jobs in all, are kept until their events are asked for together.
_MOST_LOOKS, _MOST_ROWS = 64, 65_536
_WAIT, _REVOKING = code(Verdict.WAIT), code(LeasePhase.REVOKING)


def _failure(tick: TickRecord, second: float) -> str:
    """In one line, where and when a policy failed, and with what: the end of the note's traceback."""
    first, *more = tick.plan.note.strip().splitlines()
    place, colon, rest = first.partition(": ")
    what = more[-1].strip() if more else rest or first
    return f"{place if colon else ''}{colon}policy {tick.policy} failed at second {second:g} of the trace: {what}"


class Log:
    """A Journal that keeps of events what outcomes are made of; `listen` hears of every tick."""

    def __init__(self, epoch: float, listen: Listener | None = None) -> None:
        self._epoch = epoch
        self._heard = Heard()
        self._untold: list[Events] = []  # of the last looks: what the ledger has not been asked for
        self._rows = 0  # of the jobs at these looks
        # Looks at which somebody waited, by the GPUs that the plan left idle.
        self._idle: Counter[int] = Counter()
        self._listen = listen
        self._remembered = False  # whether some plan had a memory

    @property
    def keeps_all(self) -> bool:
        """It asks for some events, later."""
        return False

    def append(self, tick: TickRecord, standing: Standing) -> None:
        """Take from one tick what is needed; a policy that fails is an error here, not a reason to stand still."""
        if tick.plan.note:
            raise SlurmFairError(_failure(tick, tick.time - self._epoch))
        if tick.plan.memory and not self._remembered:
            self._remembered = True
            self._refuse_memory(tick)
        events = tick.events if isinstance(tick.events, Events) else Events(tick.events)
        self._untold.append(events.at_hand)
        self._rows += len(tick.snapshot.jobs)
        if len(self._untold) >= _MOST_LOOKS or self._rows >= _MOST_ROWS:
            self._ask()
        self._note_idle(tick.plan, tick.snapshot, standing.leases)
        if self._listen is not None:
            self._listen(tick, standing)

    def _refuse_memory(self, tick: TickRecord) -> None:
        """One line for a memory that a daemon's journal could not keep; looked at once, for it costs something."""
        from slurm_fair.store.codec import Encoder  # only a policy that remembers waits for it

        try:
            Encoder().tree(tick.plan.memory)
        except StoreError as problem:
            second = tick.time - self._epoch
            raise SlurmFairError(
                f"policy {tick.policy} failed at second {second:g} of the trace: its plan's memory: {problem}"
            ) from None

    @property
    def heard(self) -> Heard:
        """What outcomes are made of."""
        self._ask()
        return self._heard

    def _ask(self) -> None:
        # The ledger finds out about all looks before the last one with it.
        told = [events.told for events in reversed(self._untold)]
        self._heard.take_all(chain.from_iterable(reversed(told)))
        self._untold, self._rows = [], 0

    def _note_idle(self, plan: Plan, snapshot: Snapshot, leases: Leases) -> None:
        """GPUs that the round left idle; while jobs change hands its last plan is still to come."""
        if any_of(plan.verdict == _WAIT) and not any_of(leases.phase == _REVOKING):
            self._idle[max(snapshot.total_gpus - int(leases.places.gpus.sum()), 0)] += 1

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
