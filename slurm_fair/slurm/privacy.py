"""Slurm's PrivateData: it may hide from users what the daemon could publish."""

from __future__ import annotations

import re

from slurm_fair.slurm.command import Commands

_LINE = re.compile(r"(?m)^PrivateData[ \t]*=[ \t]*(.*)$")
_HIDING = frozenset({"accounts", "all", "jobs", "nodes", "usage", "users"})


def hidden(private_data: str) -> frozenset[str]:
    """The words of PrivateData that speak of jobs, people, their use, or nodes."""
    return frozenset(private_data.lower().replace(",", " ").split()) & _HIDING


def names_are_hidden(commands: Commands) -> bool:
    """True if names must not be published; also when Slurm does not say."""
    answer = commands.run("scontrol", "show", "config")
    found = _LINE.search(answer.out) if answer.whole else None
    return found is None or bool(hidden(found[1]))
