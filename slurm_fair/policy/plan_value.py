"""The value of a plan beside the most that any could have had, as a policy that reckons both keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

PERIOD = "period"  # in memory: the last value, its bound, and how it came about
GREEDY, SOLVED = "walk", "solver"


@dataclass(frozen=True, slots=True)
class PlanValue:
    """The value of a plan in worth x GPUs, and its proven bound."""

    value: float
    bound: float
    how: str
    asked: bool = False  # whether a solver was called
    at: float = 0.0  # the time of the plan

    @property
    def gap(self) -> float:
        """The part of the bound that the plan may be short of; 0 where nothing was to be had."""
        return max(1.0 - self.value / self.bound, 0.0) if self.bound > 0 else 0.0

    def kept(self, memory: Mapping[str, Any]) -> Mapping[str, Any]:
        """The memory with these numbers: the journal has them for every period."""
        numbers = {
            "value": self.value,
            "bound": self.bound,
            "how": self.how,
            "asked": self.asked,
            "at": self.at,
        }
        return {**memory, PERIOD: numbers}

    @classmethod
    def of_memory(cls, memory: Mapping[str, Any]) -> Self | None:
        """The last plan that was weighed."""
        kept = memory.get(PERIOD)
        if kept is None:
            return None
        asked, at = bool(kept.get("asked", False)), float(kept.get("at", 0.0))
        return cls(float(kept["value"]), float(kept["bound"]), str(kept["how"]), asked, at)

    def said_at(self, now: float) -> str:
        """A sentence; it says so where a later plan, in which there was nothing to give, was not weighed."""
        which = "the plan" if now <= self.at or not self.at else f"the plan of {now - self.at:.0f} s ago"
        how = {GREEDY: "by the walk", SOLVED: "by the solver"}.get(self.how, self.how)
        no_better = "; the solver found no better one" if self.asked and self.how == GREEDY else ""
        of_most = f"{self.value:.4g} of at most {self.bound:.4g} (gap {self.gap:.1%})"
        return f"{which} is worth {of_most}, found {how}{no_better}"
