"""Jobs that are left alone and hold GPUs of managed nodes: what they hold is charged to their tenants."""

from __future__ import annotations

from dataclasses import dataclass

from slurm_fair.model.job import JobTable
from slurm_fair.model.placement import Placement


@dataclass(frozen=True, slots=True)
class Aside:
    """Rows of these jobs, sorted by key; no key is that of a managed job, and no policy plans them."""

    jobs: JobTable  # tenant and user as the snapshot numbers them; `gpus` are those on managed nodes
    held: Placement  # by row of `jobs`
    reasons: tuple[str, ...]  # as the snapshot's, per row of `jobs`

    @property
    def total_gpus(self) -> int:
        """GPUs that they hold now."""
        return int(self.held.gpus.sum())
