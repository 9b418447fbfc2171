"""Findings on another daemon that acts on this cluster."""

from __future__ import annotations

from collections.abc import Iterator

from slurm_fair.doctor.facts import Facts
from slurm_fair.doctor.finding import Finding, error, ok, warning
from slurm_fair.slurm.notice import identity_of


def findings(facts: Facts) -> Iterator[Finding]:
    """Findings from the notices in the queue."""
    if not facts.reachable:
        return
    if isinstance(facts.notices, str):
        yield warning(facts.notices, "look at what squeue says")
        return
    ours = identity_of(facts.places.directory)
    alive = [notice for notice in facts.notices if notice.until > facts.now]
    others = [notice for notice in alive if notice.identity != ours]
    for notice in others:
        yield error(
            f"another daemon acts on this cluster: {notice.in_words()}",
            "stop one of the two: a daemon that is started here is refused",
        )
    if not others:
        own = "this storage's own daemon has marked it" if alive else "no daemon has marked it"
        yield ok(f"no other daemon acts on this cluster ({own})")
    if not facts.config.slurm.notice:
        yield warning(
            "[slurm] notice is off: a second daemon with another storage would not be noticed",
            "set it to true",
        )
