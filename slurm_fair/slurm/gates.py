"""The two gates as scontrol lines: `begin` (a begin time that Slurm lets pass by itself) and `hold`.

Lines go to one scontrol's standard input, which splits on blanks and knows no quotes: only tokens that match
strict patterns get in.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from slurm_fair.errors import SlurmTextError
from slurm_fair.model import label
from slurm_fair.slurm import hostlist

_ID = re.compile(r"[1-9]\d{0,9}(?:_\d{1,7})?")
_TIME = re.compile(r"uts\d{9,11}|now(?:\+[1-9]\d?)?")


def job_id(key: int) -> str:
    """The id of a job or array task for a command line."""
    text = label(key)
    if not _ID.fullmatch(text):
        raise SlurmTextError(f"'{text}' is no job id")
    return text


def update(key: int, *, start: str = "", eligible: str = "", nodes: str | None = None) -> str:
    """One update line; `nodes` = "" takes the list away."""
    parts = [f"update jobid={job_id(key)}"]
    if nodes is not None:
        parts.append(f"reqnodelist={hostlist.join(hostlist.expand(nodes))}")
    for name, value in (("starttime", start), ("eligibletime", eligible)):
        if value and not _TIME.fullmatch(value):
            raise SlurmTextError(f"'{value}' is no time for {name}")
        parts += [f"{name}={value}"] if value else []
    return " ".join(parts)


def uts(instant: float) -> str:
    """An epoch second as scontrol reads it, independent of time zones."""
    return f"uts{int(instant)}"


@dataclass(frozen=True, slots=True)
class Lines:
    """What to send: `pin` first, and `open` only for jobs whose pin was seen to hold."""

    pin: tuple[str, ...] = ()
    then: tuple[str, ...] = ()


def close_lines(key: int, until: float, clear_nodes: str | None, hold: bool) -> Lines:
    """Keep a job waiting."""
    if hold:
        clear = (update(key, nodes=clear_nodes),) if clear_nodes is not None else ()
        return Lines(then=(*clear, f"hold {job_id(key)}"))
    return Lines(then=(update(key, start=uts(until), nodes=clear_nodes),))


def open_lines(key: int, nodes: str, next_second: bool, held: bool) -> Lines:
    """Let a job start on these nodes; in the next second when it left a node in this one (fact 1)."""
    when = "now+1" if next_second else "now"
    pin = (update(key, nodes=nodes),)
    if held:
        return Lines(pin, (update(key, eligible="now+1"), f"release {job_id(key)}"))
    return Lines(pin, (update(key, start=when),))


def requeue_lines(key: int, hold: bool) -> Lines:
    """Take a running job off its GPUs; `incomplete` leaves a job that has ended as it is."""
    return Lines(then=(f"{'requeuehold' if hold else 'requeue'} incomplete {job_id(key)}",))


def free_lines(key: int, clear_nodes: str | None, held: bool, next_second: bool) -> Lines:
    """Undo everything of ours."""
    when = "now+1" if next_second else "now"
    lines = (update(key, start=when, nodes=clear_nodes),)
    return Lines(then=(*lines, f"release {job_id(key)}") if held else lines)
