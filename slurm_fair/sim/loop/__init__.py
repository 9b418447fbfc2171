"""Tricks that make the loop of a simulation fast; each comes to what the plain way of the daemon comes to."""
