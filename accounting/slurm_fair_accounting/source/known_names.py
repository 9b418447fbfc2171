"""The names that a source knows: an unknown name is refused, not answered with an empty report."""

from __future__ import annotations

import math

from slurm_fair.errors import InputError
from slurm_fair_accounting.source.source import JournalReader

_MOST_NAMED = 40


def refuse_unknown(source: JournalReader, tenant: str | None, user: str | None) -> None:
    """Refuse a name that the source has never heard of; a name without a row in a period is no mistake."""
    if tenant:
        refuse_name("tenant", tenant, tenants_of(source))
    if user:
        refuse_name("user", user, users_of(source))


def refuse_name(kind: str, name: str, known: set[str]) -> None:
    """Refuse a name that is not known; a source that names nobody knows nothing of anybody."""
    if known and name not in known:
        more = f" and {len(known) - _MOST_NAMED} more" if len(known) > _MOST_NAMED else ""
        raise InputError(f"no {kind} {name}; there are {', '.join(sorted(known)[:_MOST_NAMED])}{more}")


def tenants_of(source: JournalReader) -> set[str]:
    """All tenants with an account in the ledger, or all that an export names."""
    standing = source.latest()
    if standing is not None:
        return set(standing.ledger.tenants.names)
    named = {event.tenant for event in source.events() if event.tenant}
    return named | {moment.tenant for moment in source.moments(-math.inf, math.inf)}


def users_of(source: JournalReader) -> set[str]:
    """All users that an event names; a ledger has no users."""
    return {str(event.detail["user"]) for event in source.events() if event.detail.get("user")}
