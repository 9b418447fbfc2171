"""Spans of time, in seconds."""

DAY_SECONDS = 86_400.0
