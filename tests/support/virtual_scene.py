"""A virtual cluster for tests: jobs submitted by hand, time in seconds since its beginning."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from slurm_fair.model import Action, Outcome, Result, Snapshot, Verb
from slurm_fair.model.ids import pack
from slurm_fair.sim import Books, Costs, Manners, Submission, VirtualClock, VirtualCluster
from slurm_fair.trace import Machines, uniform

T0 = 1_000_000.0


@dataclass
class Scene:
    """A cluster without a trace, and time in seconds since its beginning."""

    machines: Machines = field(default_factory=lambda: uniform(16, 8))
    costs: Costs = field(default_factory=Costs)
    manners: Manners = field(default_factory=Manners)

    def __post_init__(self) -> None:
        self.clock = VirtualClock(T0)
        self.cluster = VirtualCluster.bare(
            self.machines, self.clock, 600.0, manners=self.manners, costs=self.costs
        )
        self.books: Books = self.cluster.keep_books()
        self.hands, self.asked = self.cluster.by_hand, dict[int, float]()

    def at(self, seconds: float) -> Scene:
        """Let time come to that second."""
        self.clock.sleep_until(T0 + seconds)
        self.cluster.catch_up(T0 + seconds)
        return self

    def submit(self, gpus: int = 8, seconds: float = 100.0, **more: Any) -> int:
        """The key of a new job."""
        return pack(self.hands.submit(Submission(gpus=gpus, seconds=seconds, **more)))

    def look(self) -> Snapshot:
        """A look of a controller that waits for the answers of all whom it asked."""
        return self.cluster.observe(self.asked)

    def job(self, key: int) -> dict[str, Any]:
        jobs = self.look().jobs
        row = jobs.key.tolist().index(key)
        return {name: column[row].item() for name, column in jobs._arrays().items()}

    def act(self, verb: Verb, key: int, *nodes: str, until: float = math.inf) -> Outcome:
        """Do it to the job as it is."""
        if verb is Verb.ASK:
            self.asked[key] = self.cluster.clock.now()
        (outcome,) = self.cluster.actuate([self.action(verb, key, *nodes, until=until)])
        return outcome

    def action(self, verb: Verb, key: int, *nodes: str, until: float = math.inf) -> Action:
        """An act on the job as it is."""
        seen = self.job(key)
        return Action(verb, key, seen["record"], seen["submit"], seen["restarts"], nodes, until)

    def runs(self, gpus: int = 8, seconds: float = 100.0, node: str = "n1", **more: Any) -> int:
        """A job that was opened at once."""
        key = self.submit(gpus, seconds, **more)
        assert self.act(Verb.OPEN, key, node).result is Result.DONE
        return key

    def ended(self, key: int) -> float:
        """The second at which a job's last run ended; -1 while it has not."""
        runs = list(self.books.of(key))
        return round(runs[-1].end - T0, 6) if runs and runs[-1].word == "COMPLETED" else -1.0

    @property
    def lost(self) -> float:
        """GPU-seconds held without progress."""
        return self.cluster.tally.lost_gpu_seconds
