"""Outcomes of jobs, as columns and as events."""
