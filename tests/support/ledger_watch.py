"""A ledger that looks when it is told to, for tests of single cases of the fold."""

from __future__ import annotations

from slurm_fair.ledger import LedgerSettings, advance
from slurm_fair.model import Event, EventKind, Ledger
from slurm_fair.model.ids import pack
from tests.support.builders import JobSpec, snapshot

BEGAN = 1000.0


class Watch:
    """A ledger that began at 1000 and looks when told to."""

    def __init__(self, gpus: int = 8, **weights: float) -> None:
        self.gpus = gpus
        self.weights = weights
        self.settings = LedgerSettings()
        self.ledger = Ledger.new(BEGAN)
        self.told: list[Event] = []
        self.look(BEGAN)

    def look(self, time: float, *jobs: JobSpec) -> None:
        shown = snapshot(time=time, nodes={"n1": self.gpus}, jobs=jobs, weights=self.weights)
        self.ledger, events = advance(self.ledger, shown, self.settings)
        self.told += events

    def of_job(self, base: int, column: str) -> float:
        row = self.ledger.jobs.key.tolist().index(pack(base))
        return float(getattr(self.ledger.jobs, column)[row])

    def of_tenant(self, name: str, column: str) -> float:
        return float(getattr(self.ledger.tenants, column)[self.ledger.tenants.names.index(name)])

    def kinds(self) -> list[tuple[str, float]]:
        """The kinds of the events of jobs."""
        return [(event.kind, event.time) for event in self.told if event.kind != EventKind.CAPACITY]
