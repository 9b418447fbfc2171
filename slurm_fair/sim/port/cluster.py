"""The virtual cluster: the Cluster port on virtual time. It carries decisions out and makes none."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from slurm_fair.model import Action, Outcome, Snapshot
from slurm_fair.sim.port.acts import Acts
from slurm_fair.sim.port.clock import VirtualClock
from slurm_fair.sim.port.sight import Sight
from slurm_fair.sim.port.users import UserActions
from slurm_fair.sim.scenario import Costs, Manners, Scenario
from slurm_fair.sim.world.books import Books
from slurm_fair.sim.world.job_ids import Roster
from slurm_fair.sim.world.life import Life
from slurm_fair.sim.world.load import Population, nobody, population
from slurm_fair.trace import Machines


class VirtualCluster:
    """Jobs on the machines of a scenario. Those of its trace wait behind our gate from their submission on.

    `by_hand` is what users and admins may do at any time, `books` its accounting once `keep_books` was called.
    """

    acts = True

    def __init__(
        self,
        scenario: Scenario,
        population: Population,
        clock: VirtualClock,
        term: float,
        manners: Manners | None = None,
    ) -> None:
        self.scenario, self.population, self.clock = scenario, population, clock
        round_seconds = term if scenario.in_gavel_rounds else 0.0
        self.life = Life(scenario, population, manners or Manners(), clock.now(), round_seconds)
        self.jobs, self.floor, self.tally = population.jobs, self.life.floor, self.life.tally
        self._roster = Roster(population.jobs)
        if scenario.whole_seconds:
            population.jobs.submit[:] = np.floor(population.jobs.submit)
        self._sight = Sight(
            self.life, self._roster, term, scenario.unfreed, scenario.truthfulness, scenario.speeds
        )
        self._acts = Acts(self.life, self._roster)
        self.by_hand = UserActions(self.life, self._roster, self._now)
        began = clock.now()
        outages = [(began + each.time_s, each.node, each.event) for each in scenario.outages]
        self._outages = sorted(outages, key=lambda outage: outage[0])  # of one instant: as they are listed

    @classmethod
    def bare(
        cls,
        machines: Machines,
        clock: VirtualClock,
        term: float,
        *,
        manners: Manners | None = None,
        costs: Costs | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> VirtualCluster:
        """One without a trace: every job is submitted by hand."""
        scenario = Scenario(nobody(), machines, costs or Costs(), weights or {})
        return cls(scenario, population(scenario, clock.now()), clock, term, manners)

    # -- the port ---------------------------------------------------------------------------------------------

    def observe(self, asked: Mapping[int, float]) -> Snapshot:
        return self._sight.look(asked, self._now())

    def actuate(self, actions: Sequence[Action]) -> tuple[Outcome, ...]:
        """Do what still applies."""
        now = self._now()
        return tuple([self._acts.do(action, now) for action in actions])

    def requeues_of_answered(self, outcomes: Sequence[Outcome]) -> list[Action]:
        """Requeues of the jobs among these that have answered already, since they have nothing to save."""
        return self._acts.requeues_of_answered(outcomes, self.clock.now())

    # -- time -------------------------------------------------------------------------------------------------

    def _now(self) -> float:
        now = self.clock.now()
        self.catch_up(now)
        return now

    def catch_up(self, now: float) -> None:
        """Everything that happens up to an instant, in order."""
        if self._roster.next_arrival <= now:  # who arrives changes nothing for those who are there
            self._roster.arrive(now)
        agenda, outages = self.life.agenda, self._outages
        ahead = agenda.ahead
        while (ahead and ahead[0][0] <= now) or (outages and outages[0][0] <= now):
            if not outages or (ahead and ahead[0][0] <= outages[0][0]):
                instant = ahead[0][0]
                event = agenda.pop()
                if event is not None:
                    self.life.happen(*event, instant)
            else:
                self.life.befall(*outages.pop(0))

    def next_outage(self) -> float:
        """The instant at which something next befalls a node."""
        return self._outages[0][0] if self._outages else math.inf

    def next_arrival(self) -> float:
        """The instant at which the next job of the trace is submitted."""
        return self._roster.next_arrival

    def next_change(self) -> float:
        """The instant at which something next happens to a job that is there, or to a node."""
        return min(self.life.agenda.next_event(), self.next_outage())

    @property
    def empty(self) -> bool:
        """True if every job has come and gone."""
        return self._roster.exhausted and not len(self._roster.living)

    # -- accounting -------------------------------------------------------------------------------------------

    def keep_books(self) -> Books:
        """Note every run from now on."""
        self.life.books = Books(self.population, self.scenario.machines.names, self.scenario.whole_seconds)
        return self.life.books
