"""One policy over one scenario, in this process."""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from slurm_fair.cli.simulate.setups import PolicySetup
from slurm_fair.cli.stopping import stop_if_asked
from slurm_fair.model import EventKind, JobState, Standing, TickRecord
from slurm_fair.policy.registry import prints_aside
from slurm_fair.ports import EVERYTHING, Want
from slurm_fair.sim.loop.drive import Simulation
from slurm_fair.sim.port.clock import epoch_for
from slurm_fair.sim.result import SimulationResult
from slurm_fair.sim.run import simulate
from slurm_fair.sim.scenario import Scenario

if TYPE_CHECKING:
    from slurm_fair.cli.simulate.events import EventsOut

# Of a policy: jobs that ended, and seconds of virtual time.
Beat = Callable[[str, int, float], None]
_BEAT_SECONDS = 0.2
_YOUNG = 50_000  # values that may have come since the last time that cycles were looked for


@dataclass(frozen=True, slots=True)
class Grant:
    """A lease as it was granted: whose, when, and on which nodes."""

    key: int
    time: float
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """The result of one policy, and the place of each of its leases if somebody asked."""

    result: SimulationResult
    grants: tuple[Grant, ...]


@dataclass(frozen=True, slots=True)
class SimulationOrder:
    """Everything that one simulation needs to know; it travels to a process as it is."""

    scenario: Scenario
    setup: PolicySetup
    events_to: Path | None = None
    keeps_grants: bool = False  # only a chart and a list of jobs say where leases lay
    label: str = ""  # what it is called while it runs; its policy where nothing is said

    @property
    def name(self) -> str:
        """The name of the run in progress lines and errors."""
        return self.label or self.setup.policy


class _Ear:
    """Is given every tick: keeps the nodes of leases, and writes events to a file."""

    def __init__(self, keeps_grants: bool, events: EventsOut | None) -> None:
        self.grants: list[Grant] = []
        self._keeps_grants, self._events = keeps_grants, events

    def __call__(self, tick: TickRecord, standing: Standing) -> None:
        if self._keeps_grants:
            for event in tick.events:
                if event.kind == EventKind.GRANTED:
                    self.grants.append(Grant(event.key, event.time, tuple(event.detail["nodes"])))
        if self._events is not None:
            self._events.take(tick, standing)


class _Pulse:
    """Called at every look; says now and then how far it is."""

    def __init__(self, policy: str, beat: Beat) -> None:
        self._policy, self._beat, self._last = policy, beat, 0.0

    def __call__(self, simulation: Simulation) -> None:
        stop_if_asked()
        now = time.perf_counter()
        if now - self._last < _BEAT_SECONDS:
            return
        self._last = now
        jobs = simulation.cluster.jobs
        ended = int(np.count_nonzero(jobs.state[: jobs.count] == JobState.DONE))
        self._beat(self._policy, ended, simulation.clock.now() - simulation.epoch)


def run_one(order: SimulationOrder, beat: Beat) -> FinishedRun:
    """One policy, in this process."""
    with _cycles_looked_for_seldom(), prints_aside():
        if order.events_to is None:
            return _run(order, beat, None)
        # Only who wants the events waits for the journal's code.
        from slurm_fair.cli.simulate.events import EventsOut

        epoch = epoch_for(order.setup.rules().terms.term)
        with EventsOut(order.events_to, order.scenario, epoch) as events:
            return _run(order, beat, events)


@contextlib.contextmanager
def _cycles_looked_for_seldom() -> Iterator[None]:
    """A simulation makes hardly any, and to look for them as often as usual takes 3 % of its time."""
    usual = gc.get_threshold()
    gc.set_threshold(_YOUNG, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)


def _run(order: SimulationOrder, beat: Beat, events: EventsOut | None) -> FinishedRun:
    rules = order.setup.rules()
    ear = _Ear(order.keeps_grants, events)
    wants = EVERYTHING if events is not None else {Want.LEASE_EVENTS} if order.keeps_grants else ()
    listen = ear if wants else None
    pulse, looks = _Pulse(order.name, beat), order.setup.looks()
    result = simulate(order.scenario, rules, after_look=pulse, listen=listen, wants=wants, looks=looks)
    return FinishedRun(result, tuple(ear.grants))
