"""Acts as scontrol lines: a node list, a size, a begin time, a release, a requeue.

Lines go to one scontrol's standard input, which splits on blanks and knows no quotes: only tokens that match
strict patterns get in (slurm-facts: scontrol-has-no-quotes).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from slurm_fair.errors import SlurmTextError
from slurm_fair.model import Action, label
from slurm_fair.slurm_text import hostlist

MOST_TASK_TEXT = 1000  # scontrol's line has an end
_ID = re.compile(r"[1-9][0-9]{0,9}(?:_(?:[0-9]{1,7}|\[[0-9,-]{1,1000}\]))?")
_SIZE = re.compile(
    r"tresper(?:node|job)=gres[:/]gpu(?::[A-Za-z][A-Za-z0-9_.-]{0,39})?:[1-9][0-9]{0,4}"
    r"|numnodes=([1-9][0-9]{0,5})-\1|num(?:tasks|cpus)=[1-9][0-9]{0,7}"
)
_TIME = re.compile(r"uts[0-9]{9,11}|now(?:\+[1-9][0-9]?)?")


def job_id(key: int) -> str:
    """The id of a job or array task for a command line."""
    return _checked(label(key))


def ids(action: Action) -> tuple[str, str]:
    """The names by which an error of Slurm may call the job: the id that we gave, or its record's number."""
    return job_id(action.key), str(action.record)


def tasks_id(key: int, tasks: str) -> str:
    """The id of an array's waiting tasks. Its plain id would mean the running tasks too, and hold them.

    (slurm-facts: base-reaches-split)
    """
    return _checked(f"{label(key)}_[{tasks}]")


def _checked(text: str) -> str:
    if not _ID.fullmatch(text):
        raise SlurmTextError(f"'{text[:60]}' is no job id")
    return text


def update(job: str, *, start: str = "", eligible: str = "", nodes: str | None = None) -> str:
    """One update line, for one job (slurm-facts: one-id-a-node-list); `nodes` = "" takes the list away."""
    parts = [f"update jobid={_checked(job)}"]
    if nodes is not None:
        parts.append(f"reqnodelist={hostlist.join(hostlist.expand(nodes))}")
    for name, value in (("starttime", start), ("eligibletime", eligible)):
        if value and not _TIME.fullmatch(value):
            raise SlurmTextError(f"'{value}' is no time for {name}")
        parts += [f"{name}={value}"] if value else []
    return " ".join(parts)


def resize(job: str, words: Sequence[str]) -> tuple[str, ...]:
    """One update that changes how many GPUs a waiting job asks for, and what goes with them; none for no words."""
    for word in words:
        if not _SIZE.fullmatch(word):
            raise SlurmTextError(f"'{word[:60]}' is no size of a job")
    return (" ".join((f"update jobid={_checked(job)}", *words)),) if words else ()


def uts(instant: float) -> str:
    """An epoch second as scontrol reads it, independent of time zones."""
    if not math.isfinite(instant):
        raise SlurmTextError(f"{instant} is no instant")
    return f"uts{int(instant)}"


@dataclass(frozen=True, slots=True)
class ScontrolLines:
    """Lines for scontrol: `pin` first; `then` once nodes and size were seen to hold, or without a pin at once."""

    pin: tuple[str, ...] = ()
    then: tuple[str, ...] = ()
    request: str = ""  # what the job must ask for once it is pinned; "" = it stays as it is


def close_lines(job: str, until: float, users_list: str | None, held: bool) -> ScontrolLines:
    """Keep a job waiting. `held` = it still has the hold of its submission: a begin time takes the place of that.

    `users_list` is the node list that its user gave it: "" = none, None = the list stays as it is. We set no hold
    (slurm-facts: hold-costs-priority), and close no running job (slurm-facts: begin-time-refused).
    """
    begin = update(job, start=uts(until), nodes=users_list)
    return ScontrolLines(then=(begin, f"release {_checked(job)}") if held else (begin,))


def open_lines(job: str, nodes: Sequence[str], next_second: bool, held: bool) -> ScontrolLines:
    """Let a job start on these nodes, once Slurm shows them as its list (slurm-facts: bad-node-refuses-all).

    `next_second` = it left a node in this second (slurm-facts: same-second).
    """
    when = "now+1" if next_second else "now"
    pin = (update(job, nodes=hostlist.join(nodes)),)
    if held:
        return ScontrolLines(pin, (update(job, eligible="now+1"), f"release {_checked(job)}"))
    return ScontrolLines(pin, (update(job, start=when),))


def requeue_lines(job: str) -> ScontrolLines:
    """Take a running job off its GPUs; a job that has ended stays so (slurm-facts: requeue-incomplete)."""
    return ScontrolLines(then=(f"requeue incomplete {_checked(job)}",))


def free_lines(
    job: str, users_list: str | None, gated: bool, held: bool, next_second: bool, begin: float = 0.0
) -> ScontrolLines:
    """Undo everything of ours, and only that: `gated`, `held` = the begin time, the hold are ours.

    `begin` = the begin time of its user's own that is given back; 0 = none that lies ahead.
    """
    at_once = "now+1" if next_second else "now"
    when = (uts(begin) if begin else at_once) if gated else ""
    update_line = (update(job, start=when, nodes=users_list),) if when or users_list is not None else ()
    return ScontrolLines(then=(*update_line, f"release {_checked(job)}") if held else update_line)
