"""Several policies over one scenario: one after another here, or each in a process of its own."""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

from slurm_fair.cli.simulate.case import PolicyTurn
from slurm_fair.errors import InputError
from slurm_fair.model import EventKind, JobState, Standing, TickRecord
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
_MUCH_OF_A_LEASE = 0.5
_YOUNG = 50_000  # values that may have come since the last time that cycles were looked for


@dataclass(frozen=True, slots=True)
class Grant:
    """A lease as it was granted: whose, when, and on which nodes."""

    key: int
    time: float
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """What one policy came to, and where each of its leases lay if somebody asked."""

    result: SimulationResult
    grants: tuple[Grant, ...]


@dataclass(frozen=True, slots=True)
class SimulationOrder:
    """Everything that one simulation needs to know; it travels to a process as it is."""

    scenario: Scenario
    turn: PolicyTurn
    events_to: Path | None = None
    keeps_grants: bool = False  # only a chart and a list of jobs say where leases lay
    label: str = ""  # what it is called while it runs; its policy where nothing is said

    @property
    def name(self) -> str:
        """How beats and errors speak of it."""
        return self.label or self.turn.policy


class _Ear:
    """Hears of every tick: keeps the nodes of leases, and writes events to a file."""

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
        now = time.perf_counter()
        if now - self._last < _BEAT_SECONDS:
            return
        self._last = now
        jobs = simulation.cluster.jobs
        ended = int(np.count_nonzero(jobs.state[: jobs.count] == JobState.DONE))
        self._beat(self._policy, ended, simulation.clock.now() - simulation.epoch)


def run_one(order: SimulationOrder, beat: Beat) -> FinishedRun:
    """One policy, in this process."""
    with _cycles_looked_for_seldom():
        if order.events_to is None:
            return _run(order, beat, None)
        # Only who wants the events waits for the journal's code.
        from slurm_fair.cli.simulate.events import EventsOut

        epoch = epoch_for(order.turn.rules().terms.term)
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
    rules = order.turn.rules()
    ear = _Ear(order.keeps_grants, events)
    wants = EVERYTHING if events is not None else {Want.LEASE_EVENTS} if order.keeps_grants else ()
    listen = ear if wants else None
    result = simulate(order.scenario, rules, watch=_Pulse(order.name, beat), listen=listen, wants=wants)
    return FinishedRun(result, tuple(ear.grants))


def run_all(orders: Sequence[SimulationOrder], workers: int, beat: Beat) -> list[FinishedRun]:
    """All of them, in the order given, whoever is ready first."""
    for order in orders:
        _check_time_to_work(order)
    if workers <= 1 or len(orders) == 1:
        return [run_one(order, beat) for order in orders]
    from slurm_fair.cli.simulate.crew import Crew  # one policy needs no processes, nor their library

    return Crew(orders, workers, beat).run()


def warn_of_costs(orders: Sequence[SimulationOrder]) -> None:
    """On standard error: simulations in which a change of hands takes most of a lease take long."""
    part_of: dict[tuple[float, float], list[str]] = {}
    for order in orders:
        change, term = order.scenario.costs.of_one_change, order.turn.rules().terms.term
        if _MUCH_OF_A_LEASE < change / term < 1:
            part_of.setdefault((change, term), []).append(order.turn.policy)
    for (change, term), names in part_of.items():
        click.echo(
            f"warning: a change of hands costs {change:g} s (checkpoint and restart), "
            f"{100 * change / term:.3g} % of a lease of {term:g} s under {', '.join(names)}: "
            "jobs that take turns get little done, and this takes long",
            err=True,
        )


def _check_time_to_work(order: SimulationOrder) -> None:
    """Refuse leases in which nobody would get anywhere: under some policies such a simulation never ends."""
    change, term = order.scenario.costs.of_one_change, order.turn.rules().terms.term
    if change >= term:
        raise InputError(
            f"a change of hands costs {change:g} s (checkpoint and restart), all of a lease of {term:g} s "
            f"under {order.turn.policy}: give a longer --lease"
        )
