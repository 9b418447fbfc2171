"""Priorities that an admin has fixed: a hold would take them away for ever."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from slurm_fair.slurm.command import Commands, only_ids

# Priority, its factors (site, age, association, fair share, job size, partition, QOS, TRES), nice.
_FORMAT = "%i|%Y|%S|%A|%B|%F|%J|%P|%Q|%T|%N"


def fixed(commands: Commands, records: Sequence[int]) -> frozenset[int]:
    """Records, among these, whose priority is not made of factors. Slurm lists only jobs that may start now."""
    ids = only_ids([str(record) for record in records])
    answer = commands.run("sprio", "-h", "-j", ids, "-o", _FORMAT)
    return fixed_in(answer.out.splitlines()) if answer.whole else frozenset()


def fixed_in(lines: Iterable[str]) -> frozenset[int]:
    """A priority above the least one without any factor behind it was set by hand."""
    found = set()
    for line in lines:
        record, *numbers = line.split("|")
        priority, *factors = numbers or ["0"]
        by_hand = priority.isdecimal() and int(priority) > 1 and all(n.strip() in ("", "0") for n in factors)
        if record.isdecimal() and by_hand:
            found.add(int(record))
    return frozenset(found)
