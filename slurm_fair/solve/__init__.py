"""Optimisation problems as functions of data: the only place that knows a solver.

Each takes arrays and a limit of wall clock and says how its answer came about.
"""

from slurm_fair.solve.answer import LIMIT_SECONDS, How, Matching, Shares, Table
from slurm_fair.solve.filling import centred, topped_up
from slurm_fair.solve.matching import assignment, first_in_line, shortest_line, whole_makespan
from slurm_fair.solve.shares import equal_rate, finish_time, least_makespan, max_min, max_sum

__all__ = [
    "LIMIT_SECONDS",
    "How",
    "Matching",
    "Shares",
    "Table",
    "assignment",
    "centred",
    "equal_rate",
    "finish_time",
    "first_in_line",
    "least_makespan",
    "max_min",
    "max_sum",
    "shortest_line",
    "topped_up",
    "whole_makespan",
]
