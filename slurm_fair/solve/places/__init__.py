"""Exact places for jobs of many possible sizes: Hops' integer program, solved in three ways that can be swapped.

`literal` is the paper's model, `classes` the same optimum by counting servers that look alike, `fast` a plan
within a proven gap in a fraction of a second. `windows.py` says which configurations all three consider.
"""

from slurm_fair.solve.places.classes import classes
from slurm_fair.solve.places.fast import fast
from slurm_fair.solve.places.literal import literal
from slurm_fair.solve.places.problem import PlacesAnswer, PlacesLimits, PlacesProblem, violations
from slurm_fair.solve.places.speed_classes import SpeedClasses, speed_classes

__all__ = [
    "PlacesAnswer",
    "PlacesLimits",
    "PlacesProblem",
    "SpeedClasses",
    "classes",
    "fast",
    "literal",
    "speed_classes",
    "violations",
]
