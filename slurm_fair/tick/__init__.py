"""One tick of the controller, and its parts."""

from slurm_fair.tick.decision import decide
from slurm_fair.tick.one_tick import Stopwatch, TickDone, conclude, reconcile, tick
from slurm_fair.tick.prepared import Prepared, prepare, unanswered_requests
from slurm_fair.tick.rules import Advance, InThisProcess, Rules, Show

__all__ = [
    "Advance",
    "InThisProcess",
    "Prepared",
    "Rules",
    "Show",
    "Stopwatch",
    "TickDone",
    "conclude",
    "decide",
    "prepare",
    "reconcile",
    "tick",
    "unanswered_requests",
]
