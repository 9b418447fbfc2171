"""Whose names a source knows: a report on nobody is a wrong name, not an empty report."""

from __future__ import annotations

import math

from slurm_fair.errors import InputError
from slurm_fair_accounting.source import JournalReader

_MOST_NAMED = 40


def refuse_unknown(tenant: str, source: JournalReader) -> None:
    """Refuse a tenant that the source has never heard of; one without a row in a period is another matter."""
    known = tenants_of(source)
    if known and tenant not in known:
        more = f" and {len(known) - _MOST_NAMED} more" if len(known) > _MOST_NAMED else ""
        raise InputError(f"no tenant {tenant}; there are {', '.join(sorted(known)[:_MOST_NAMED])}{more}")


def tenants_of(source: JournalReader) -> set[str]:
    """Everybody whom the ledger has an account of; of an export, whoever is named in it."""
    standing = source.latest()
    if standing is not None:
        return set(standing.ledger.tenants.names)
    named = {event.tenant for event in source.events() if event.tenant}
    return named | {moment.tenant for moment in source.moments(-math.inf, math.inf)}
