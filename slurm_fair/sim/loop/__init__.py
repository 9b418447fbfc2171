"""Tricks that make the loop of a simulation fast; each has the same result as the daemon's plain way."""
