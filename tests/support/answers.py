"""Answers of jobs as the daemon's readers and its judge take them, without a process between."""

from __future__ import annotations

from slurm_fair.model import Answer
from slurm_fair.slurm.reading.acks import Asked, answer_in
from slurm_fair.slurm.reading.messages import Wanted, read_message, why_unreadable


def read_acknowledgement(asked: Asked) -> Answer:
    """The answer in the folder of a job to a request."""
    return answer_in(read_message(asked.message), asked)


def why_unheard(work_dir: str, job: str, user: str) -> str:
    """The reason why no answer could be read there."""
    return why_unreadable(Wanted(user, work_dir, job))
