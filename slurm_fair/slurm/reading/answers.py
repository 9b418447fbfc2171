"""Answers of jobs to our requests: a file in the job's own folder, else a token in its comment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from slurm_fair.model import Answer, Snapshot, label
from slurm_fair.slurm.command import Commands
from slurm_fair.slurm.reading import acks
from slurm_fair.slurm.reading.acks import Asked
from slurm_fair.slurm.reading.details import JobDetails
from slurm_fair.slurm.reading.readers import Readers
from slurm_fair.slurm.reading.user_text import ask_text

_COMMENTS_EVERY_SECONDS = 1.0  # where the file is the usual way: one more call to Slurm


@dataclass
class Answers:
    """The answers of jobs that were asked, by their rows in a snapshot."""

    commands: Commands
    details: JobDetails
    readers: Readers
    _comments_at: float = float("-inf")

    def of(self, snapshot: Snapshot, requests: Mapping[int, float], reports: str) -> dict[int, Answer]:
        """Answers by row; `requests` are the times of the requests, by row too."""
        asked = {row: self._asked(snapshot, row, when) for row, when in requests.items()}
        found = self._in_files(asked) if reports in ("auto", "file") else {}
        unheard = {row: one for row, one in asked.items() if row not in found}
        if reports == "comment" or (reports == "auto" and unheard and self._comments_are_due(snapshot.time)):
            found |= self._in_comments(snapshot, unheard)
        return found

    def _asked(self, snapshot: Snapshot, row: int, when: float) -> Asked:
        jobs = snapshot.jobs
        restarts = int(jobs.restarts[row])
        work_dir = self.details.of(int(jobs.record[row]), restarts).work_dir
        job, user = label(int(jobs.key[row])), snapshot.users[jobs.user[row]]
        return Asked(user, work_dir, job, restarts, when, snapshot.time)

    def _in_files(self, asked: Mapping[int, Asked]) -> dict[int, Answer]:
        """Answers out of the jobs' own folders."""
        messages = self.readers.read({row: one.message for row, one in asked.items()})
        self.readers.tell_of_hangs()
        answers = {row: acks.answer_in(message, asked[row]) for row, message in messages.items()}
        return {row: answer for row, answer in answers.items() if answer is not Answer.NONE}

    def _comments_are_due(self, now: float) -> bool:
        due = not 0 <= now - self._comments_at < _COMMENTS_EVERY_SECONDS
        self._comments_at = now if due else self._comments_at
        return due

    def _in_comments(self, snapshot: Snapshot, asked: Mapping[int, Asked]) -> dict[int, Answer]:
        """Answers out of the jobs' comments; none where Slurm does not answer: asked again next time."""
        records = {row: int(snapshot.jobs.record[row]) for row in asked}
        comments = ask_text(self.commands, sorted(set(records.values())), "k")
        if isinstance(comments, str):
            return {}
        answers = {
            row: acks.read_comment(comments[record][0], asked[row])
            for row, record in records.items()
            if record in comments
        }
        return {row: answer for row, answer in answers.items() if answer is not Answer.NONE}
