"""One tick of the controller, and its parts."""

from slurm_fair.tick.decision import decide
from slurm_fair.tick.one_tick import Stopwatch, TickDone, conclude, reconcile, tick
from slurm_fair.tick.prepared import Prepared, open_requests, prepare
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
    "open_requests",
    "prepare",
    "reconcile",
    "tick",
]
