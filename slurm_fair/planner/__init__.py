"""Plans from a process of its own, which can be killed: for policies that call a solver."""

from slurm_fair.planner.isolated import IsolatedPlanner, PlannerLimits

__all__ = ["IsolatedPlanner", "PlannerLimits"]
