"""Jobs of a trace that cannot save: no trace says which they are, so a part of the jobs is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from slurm_fair.model.columns import Bools
from slurm_fair.trace import Trace


@dataclass(frozen=True, slots=True)
class PlainJobs:
    """The part of each tenant's jobs that are plain: they cannot save, and nobody takes their GPUs.

    Which jobs of a tenant that are hangs on the seed and on which jobs there are, not on their order.
    """

    part: float = 0.0  # of each tenant's jobs, 0 to 1
    of_tenant: Mapping[str, float] = field(default_factory=dict)  # of those of one tenant, in its place
    seed: int = 0

    def drawn(self, trace: Trace) -> Bools:
        """True for the trace's jobs that are plain."""
        parts = np.array([self.of_tenant.get(name, self.part) for name in trace.tenants], dtype=np.float64)
        draws = np.random.default_rng([self.seed, len(trace)]).random(len(trace))
        by_id = np.argsort(np.argsort(trace.job_id, kind="stable"), kind="stable")
        plain: Bools = draws[by_id] < parts[trace.tenant]
        return plain


NO_PLAIN_JOBS = PlainJobs()
