"""Jobs of a trace that cannot save: no trace says which they are, so a part of the jobs is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from slurm_fair.model.columns import Bools
from slurm_fair.trace import Trace

_DRAWS = 1  # a stream of chance of their own: errors of declarations are drawn by the same seed


@dataclass(frozen=True, slots=True)
class PlainJobs:
    """The part of each tenant's jobs that are plain: they cannot save, and nobody takes their GPUs.

    Which jobs of a tenant that are hangs on the seed and on which jobs there are, not on their order.
    """

    part: float = 0.0  # of each tenant's jobs, 0 to 1
    of_tenant: Mapping[str, float] = field(default_factory=dict)  # of those of one tenant, in its place
    seed: int = 0

    @property
    def some(self) -> bool:
        """True if some part of some tenant's jobs is plain."""
        return bool(self.part) or any(self.of_tenant.values())

    def drawn(self, trace: Trace) -> Bools:
        """True for the trace's jobs that are plain: of each tenant's so many as its part comes to, rounded."""
        plain = np.zeros(len(trace), dtype=bool)
        if not self.some:
            return plain
        draws = np.random.default_rng([self.seed, len(trace), _DRAWS]).random(len(trace))
        draw = draws[trace.ranks_of_ids()]
        for number, name in enumerate(trace.tenants):
            mine = np.flatnonzero(trace.tenant == number)
            count = round(self.of_tenant.get(name, self.part) * len(mine))
            plain[mine[draw[mine].argsort()[:count]]] = True
        return plain


NO_PLAIN_JOBS = PlainJobs()
