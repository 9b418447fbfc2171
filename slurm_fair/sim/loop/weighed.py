"""The plans of a simulation that were weighed: how near they are to the best, and what a solver added to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slurm_fair.policy.plan_value import SOLVED, PlanValue

NEAR = 0.01  # a gap up to which a plan counts as proven


@dataclass(slots=True)
class PlansWeighed:
    """Counts over all looks; a policy that does not weigh its plans leaves them at nothing."""

    weighed: int = 0
    proven: int = 0  # without a solver, to be within `NEAR` of the best
    solved: int = 0  # plans for which a solver was called
    improved: int = 0  # plans of which its own was the better one
    gap: float = 0.0  # summed
    solved_seconds: float = 0.0  # of the plans for which a solver was called

    def add(self, memory: Mapping[str, Any], now: float, seconds: float) -> None:
        """Count the plan of a look, if it was weighed then."""
        value = PlanValue.of_memory(memory)
        if value is None or value.at != now:
            return
        self.weighed += 1
        self.gap += value.gap
        self.proven += not value.asked and value.gap <= NEAR
        if value.asked:
            self.solved += 1
            self.improved += value.how == SOLVED
            self.solved_seconds += seconds

    def to_dict(self) -> dict[str, float | None]:
        """The JSON keys of one policy's result."""
        return {
            "plans_weighed": self.weighed,
            "plans_proven": self.proven,
            "plans_solved": self.solved,
            "plans_improved": self.improved,
            "plans_gap_mean": self.gap / self.weighed if self.weighed else None,
            "plans_solved_s": self.solved_seconds,
        }
