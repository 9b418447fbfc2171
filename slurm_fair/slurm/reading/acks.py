"""Acknowledgements: what counts as the answer of a run to our request, in its file or in its comment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slurm_fair.model import Answer
from slurm_fair.slurm.reading.messages import ACK, Wanted

_BEHIND_SECONDS = 2.0  # the clock of a node may be so much behind ours
_AHEAD_SECONDS = 60.0  # or so much ahead of it
_TOKEN = re.compile(
    r"(?:^|(?<=\s))slurm_fair_ack:job=([0-9]{1,10}(?:_[0-9]{1,10})?),restart=([0-9]{1,9}),saved=([01]),"
    r"time=([0-9]{1,11}(?:\.[0-9]{1,9})?)(?:,step=[0-9]{1,18})?(?=\s|$)"
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that a run of a job was sent, and where its answer is looked for."""

    user: str
    work_dir: str
    job: str  # 123, or 123_4
    restarts: int
    time: float  # of the request
    now: float

    @property
    def message(self) -> Wanted:
        """The file that its answer would be in."""
        return Wanted(self.user, self.work_dir, self.job, ACK)


def answer_in(message: Mapping[str, Any], asked: Asked) -> Answer:
    """The answer of this run to our request, which is known by its time."""
    run, when = message.get("restart"), message.get("time")
    if run != asked.restarts or isinstance(run, bool) or not isinstance(when, int | float):
        return Answer.NONE
    return _answer(asked, when, message.get("saved") is True)


def read_comment(comment: str, asked: Asked) -> Answer:
    """The same answer out of the job's own comment, for sites where we do not see its files."""
    answers = [
        _answer(asked, float(when), saved == "1")
        for job, run, saved, when in _TOKEN.findall(comment)
        if job == asked.job and int(run) == asked.restarts
    ]
    return next((answer for answer in reversed(answers) if answer is not Answer.NONE), Answer.NONE)


def _answer(asked: Asked, when: float, saved: bool) -> Answer:
    """An answer to an earlier request does not count, nor one from the future."""
    if not asked.time - _BEHIND_SECONDS <= when <= asked.now + _AHEAD_SECONDS:
        return Answer.NONE
    return Answer.SAVED if saved else Answer.NOT_SAVED
