"""Silent jobs, wrong declarations and tenants that lie, as a simulated controller meets them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from slurm_fair.model.columns import Floats, Ints
from slurm_fair.trace import Trace

MOST_ERROR = 1000.0


@dataclass(frozen=True, slots=True)
class Truthfulness:
    """Users and jobs tell a simulated controller their run times truly, wrongly or not at all.

    A declaration is off by a factor of its own, drawn from a lognormal distribution around 1 whose logarithm has
    the standard deviation ln(declared_error): of 2, two declarations of three are within a factor of 2. The
    factor hangs on the seed and on which jobs there are, not on their order.
    """

    progress: Literal["reported", "silent"] = "reported"  # silent: no job ever reports anything
    declared_error: float = 1.0
    seed: int = 0
    declares: Mapping[str, float] = field(default_factory=dict)  # by tenant: its declarations, times this
    reports_left: Mapping[str, float] = field(default_factory=dict)  # by tenant: what its jobs report as left

    @property
    def silent(self) -> bool:
        return self.progress == "silent"

    def again(self, number: int) -> Truthfulness:
        """The same for another run of the scenario: errors are drawn anew."""
        return replace(self, seed=self.seed + number)

    def declared(self, trace: Trace, seconds: Floats) -> Floats:
        """Run times as they are declared, where true declarations would be these."""
        if self.declared_error != 1.0:
            draws = np.random.default_rng([self.seed, len(trace)]).standard_normal(len(trace))
            factor = np.exp(math.log(self.declared_error) * draws)
            seconds = seconds * factor[trace.ranks_of_ids()]
        if self.declares:
            seconds = seconds * _of_tenants(self.declares, trace.tenants, trace.tenant)
        return seconds

    def left_factor(self, tenants: Sequence[str], tenant: Ints) -> Floats | None:
        """Factor by which each job's report of what is left is off; None = nobody lies."""
        return _of_tenants(self.reports_left, tenants, tenant) if self.reports_left else None


def _of_tenants(factors: Mapping[str, float], tenants: Sequence[str], tenant: Ints) -> Floats:
    each = np.array([factors.get(name, 1.0) for name in tenants], dtype=np.float64)
    found: Floats = each[tenant]
    return found


TRUTHFUL = Truthfulness()
