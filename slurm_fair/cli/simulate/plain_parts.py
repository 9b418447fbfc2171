"""The value of `--plain`: parts of the jobs of all tenants and of some."""

from __future__ import annotations

import math

import click

from slurm_fair.trace.faults import shown

_SUCH_AS = "write such as 0.2,vision=1"


def plain_parts(text: str) -> dict[str, float]:
    """Parts of the jobs of each tenant (under "") and of some, as `0.2,vision=1`."""
    found: dict[str, float] = {}
    for piece in text.split(","):
        tenant, equals, number = (word.strip() for word in piece.rpartition("="))
        if equals and not tenant:
            raise click.BadParameter(f"{shown(piece)} names no tenant: {_SUCH_AS}")
        if tenant in found:
            raise click.BadParameter(f"{shown(piece)} is there twice: {_SUCH_AS}")
        try:
            found[tenant] = float(number)
        except ValueError:
            found[tenant] = math.nan
        if not 0.0 <= found[tenant] <= 1.0:
            raise click.BadParameter(f"{shown(piece)} is no part from 0 to 1: {_SUCH_AS}")
    return found


def in_one_way(text: str) -> str:
    """The same parts as everybody writes them: a sweep compares them with those of its file."""
    parts = [(tenant, _shortest(part)) for tenant, part in sorted(plain_parts(text).items())]
    return ",".join(f"{tenant}={part}" if tenant else part for tenant, part in parts)


def _shortest(part: float) -> str:
    """The number in as few digits as tell it from all others; 0 has no sign."""
    return repr(part + 0.0).removesuffix(".0")
