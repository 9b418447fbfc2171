"""The parts of one look at Slurm, before they become a Snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from slurm_fair.config.sections import ClusterSettings
from slurm_fair.model.gpu_weight import GpuWeights
from slurm_fair.slurm.ownership.kept_back import Keepers
from slurm_fair.slurm.ownership.marks import Marks
from slurm_fair.slurm.reading.accounts import Weights
from slurm_fair.slurm.reading.details import JobDetails
from slurm_fair.slurm.reading.gpu_layout import GpuLayouts
from slurm_fair.slurm.reading.made_up import MadeUp
from slurm_fair.slurm.reading.node_limits import NodeLimits
from slurm_fair.slurm.reading.nodes import NodeListing, Reservation
from slurm_fair.slurm.reading.queue import Queue
from slurm_fair.slurm.scope import Territory


@dataclass(frozen=True, slots=True)
class Sighting:
    """All answers of one look, and the marks that explain them."""

    time: float
    cluster: str
    rows: NDArray[np.void]
    machines: NodeListing
    reservations: tuple[Reservation, ...]
    weights: Weights
    made_up: MadeUp
    queue: Queue
    details: JobDetails
    layouts: GpuLayouts
    spans: NodeLimits
    marks: Marks
    settings: ClusterSettings
    gpu_weights: GpuWeights = field(default_factory=dict)  # by type, as they are in force
    booted_at: float = 0.0  # when slurmctld started
    # By record: node lists in doubt, see doubt.py.
    lists_at_first: Mapping[int, str] = field(default_factory=dict)

    @property
    def territory(self) -> Territory:
        """The managed part of the cluster."""
        return Territory.of(self.machines, self.settings.scope)

    @property
    def keepers(self) -> Keepers:
        """The rules that say whose a gate is."""
        delay = self.settings.requeue_delay
        return Keepers(self.queue, self.details, self.marks, self.time, delay, self.booted_at)
