"""Optimisation problems as functions of data: the only place that knows a solver."""
