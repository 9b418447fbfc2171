"""A fake Slurm with nodes of ours and one that is not."""

from __future__ import annotations

from typing import Any

from slurm_fair.config.tree import from_tree
from slurm_fair.model import Snapshot
from slurm_fair.slurm.cluster import SlurmCluster
from slurm_fair.slurm.fail_open import NoIntents
from slurm_fair.slurm.ownership.marks import MarksInHand
from tests.support.fake_commands import FakeCommands
from tests.support.fake_jobs import Machine
from tests.support.fake_slurm import PushedClock, World


class Site:
    """A fake Slurm with two nodes of ours and one that is not, and the looks at it."""

    def __init__(self, gpus: int = 4, **scope: Any) -> None:
        self.world = World(PushedClock(), {"n1": gpus, "n2": gpus})
        self.world.machines["x1"] = Machine("x1", 4, partition="other")
        tree = {"scope": {"partitions": ["gpu"], **scope}, "lease": {"term": 300, "interval": 10}}
        self.cluster = SlurmCluster(
            FakeCommands(self.world),
            from_tree(tree, "t").cluster,
            self.world.clock.now,
            MarksInHand(),
            NoIntents(),
        )

    def look(self) -> Snapshot:
        found = self.cluster.observe({})
        assert isinstance(found, Snapshot), found
        return found

    def runs(self, gpus: int, tenant: str, raw: dict[str, str] | None = None, **how: Any) -> int:
        """A job that runs; of a srun, a part of a heterogeneous job and such tell `raw` columns."""
        job = self.world.submit(gpus, tenant, **how)
        self.world.records[job].raw = raw or {}
        self.world.clock.advance(2)
        self.world.catch_up()
        assert self.world.records[job].state == "RUNNING"
        return job
