"""The end of each job's act, from the output of a command that named many jobs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from slurm_fair.model import Result, Untried
from slurm_fair.slurm.acting.refusals import Class, classify
from slurm_fair.slurm.command import CommandResult

_PASSING = (Class.LATER, Class.BROKEN)

# `... for job 7`, `... on job id 7`, `7_2: ...`, `7_1,3-4: ...`: the line is about that job and no other.
_NAMED = re.compile(r"\bjob(?: id)? ([0-9]\S*)|^(?:scontrol: error: )?([0-9]+(?:_\S+)?):")


class ActEnd(NamedTuple):
    """The result of one act, and why."""

    result: Result
    detail: str = ""
    later: bool = False  # it may pass: nothing was tried, or Slurm asked to wait, or took us for nobody
    untried: Untried | None = None


def refused_or_unknown(answer: CommandResult, ids: Sequence[str], otherwise: str) -> ActEnd:
    """The result of an act without a visible effect; an error text about other jobs says nothing of it."""
    if answer.timed_out:
        return ActEnd(Result.UNKNOWN, answer.complaint)
    line = line_about(answer.err, ids)
    known = classify(line) if line else Class.UNKNOWN
    result = Result.UNKNOWN if known is Class.UNKNOWN else Result.REFUSED
    return ActEnd(result, line[:200] or otherwise, later=known in _PASSING)


def signalled(answer: CommandResult, ids: Sequence[str]) -> ActEnd:
    """The result of a signal, whose effect cannot be seen: sent unless the command says otherwise."""
    lines = _lines(answer.err)
    about_others = bool(lines) and all(_named(line) and not _is_about(line, ids) for line in lines)
    if not answer.timed_out and (answer.code == 0 or (answer.code == 1 and about_others)):
        return ActEnd(Result.DONE)
    return refused_or_unknown(answer, ids, "the signal may not have arrived")


def line_about(text: str, ids: Sequence[str]) -> str:
    """The error line that names the job by one of its ids, else one that names no job at all."""
    lines = _lines(text)
    named = [line for line in lines if _is_about(line, ids)]
    return next(iter(named or [line for line in lines if not _named(line)]), "")


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _named(line: str) -> str:
    match = _NAMED.search(line)
    return (match[1] or match[2]).rstrip(":,.") if match else ""


def _is_about(line: str, ids: Sequence[str]) -> bool:
    return any(_covers(_named(line), job) for job in ids)


def _covers(named: str, job: str) -> bool:
    """True if `7_1,3-4` means `7_3`; plain ids mean themselves."""
    if named == job:
        return True
    base, _, tasks = named.partition("_")
    own, _, task = job.partition("_")
    if base != own or not task.isdigit():
        return False
    spans = re.findall(r"([0-9]{1,8})(?:-([0-9]{1,8}))?", tasks)
    return any(int(first) <= int(task) <= int(last or first) for first, last in spans)
