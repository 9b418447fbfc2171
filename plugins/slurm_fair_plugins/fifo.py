"""First come, first served, as Slurm's `sched/builtin` and the papers' baselines have it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from slurm_fair.model import NEVER_ENDS_SECONDS, Plan
from slurm_fair.policy import (
    YEARS,
    Order,
    PlacerName,
    View,
    Within,
    Words,
    age,
    check_settings,
    oldest_first,
    ordered,
    with_again,
)

WORDS = Words(granted="it came first", waits="others came before it")
CHOSEN = "chosen"  # in memory: when jobs were last chosen, and which jobs there were


@dataclass(frozen=True, slots=True)
class Fifo:
    """Order of arrival (FIFO): nobody is stopped, and nobody overtakes the first that does not fit.

    Reading: the simulator published with Shockwave (github.com/uw-mad-dash/shockwave, scheduler/policies/fifo.py,
    from Gavel's) stops at the first job that does not fit; a job that was requeued keeps its place. That simulator
    chooses jobs only when some came or went, and not more often than every 1,000 s, so that freed GPUs wait:
    `reset_seconds = 1000` does the same, 0 chooses at every look.
    """

    score_is: ClassVar[Order] = Order(
        "the seconds since it was submitted", highest_first=True, then="its number"
    )
    lease_seconds: ClassVar[float] = NEVER_ENDS_SECONDS

    reset_seconds: Annotated[float, Within(0, YEARS, "0 = at every look")] = 0.0
    placement: PlacerName = "consolidated"

    def __post_init__(self) -> None:
        check_settings(self, "fifo")

    def plan(self, view: View) -> Plan:
        """Free GPUs to those who came first."""
        waits = view.waiting_rows
        memory, again = view.memory, math.inf
        if self.reset_seconds and len(waits):
            memory, again = self._chosen(view)
            waits = waits if memory is not view.memory else waits[:0]
        memory = with_again(memory, again)
        order = oldest_first(view, waits)
        return ordered(
            view,
            order,
            preempt=False,
            blocking=True,
            place=self.placement,
            score=lambda: age(view),
            memory=memory,
            words=WORDS,
        )

    def _chosen(self, view: View) -> tuple[Mapping[str, Any], float]:
        """The memory as it was when it is not time to choose, and when it will be; the very first time does not
        count."""
        last = view.memory.get(CHOSEN)
        members = view.snapshot.jobs.key[view.snapshot.jobs.active].tolist()
        if last is not None:
            due = last["first"] or view.now - last["at"] >= self.reset_seconds
            if last["members"] == members or not due:
                same = last["members"] == members
                return view.memory, math.inf if same else last["at"] + self.reset_seconds
        return {CHOSEN: {"at": view.now, "first": last is None, "members": members}}, math.inf
