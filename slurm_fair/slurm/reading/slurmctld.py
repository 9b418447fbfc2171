"""Slurmctld's own configuration, and the instant at which it started."""

from __future__ import annotations

from collections.abc import Mapping

from slurm_fair.slurm.command import Commands


def configured(commands: Commands) -> Mapping[str, str]:
    """Slurmctld's configuration; empty when it does not say."""
    lines = commands.run("scontrol", "show", "config").out.splitlines()
    pairs = (line.partition("=") for line in reversed(lines))  # of two lines the first counts
    return {key.strip(): value.strip() for key, _, value in pairs}


def started_at(said: Mapping[str, str], before: float) -> float:
    """The instant at which it started; as known `before` where it does not say."""
    booted = said.get("BOOT_TIME", "")
    return float(booted) if booted.isdecimal() else before
