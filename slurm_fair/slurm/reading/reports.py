"""Reports of running jobs: a few are read at each look, in turns, and each number is checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard

import numpy as np

from slurm_fair.model import Mode, Reported, Snapshot, label
from slurm_fair.model.apiece import apiece
from slurm_fair.model.reported import PHASES
from slurm_fair.slurm.reading import report_comments
from slurm_fair.slurm.reading.details import JobDetails
from slurm_fair.slurm.reading.messages import MOST_CHARACTERS, REPORT, Wanted
from slurm_fair.slurm.reading.readers import Readers

EVERY_SECONDS = 10.0  # a job is looked at again
_AT_ONCE = 256  # at one look
_BEGIN_SECONDS = 0.25  # in which the reads of one look may begin
_CLOCKS_SECONDS = 60.0  # the clocks of nodes may differ by so much from ours
_MOST_STEPS, _MOST_RATE, _MOST_SAMPLES, _MOST_SECONDS = 1e15, 1e12, 1e9, 1e6
# Each number by the key of a report: its column, the least and the most that it can be.
_NUMBERS = {
    "step": ("step", 0.0, _MOST_STEPS),
    "steps": ("steps", 0.0, _MOST_STEPS),
    "epoch": ("epoch", 0.0, _MOST_STEPS),
    "epochs": ("epochs", 0.0, _MOST_STEPS),
    "steps_per_s": ("steps_per_second", 0.0, _MOST_RATE),
    "samples_per_s": ("samples_per_second", 0.0, _MOST_RATE),
    "batch_size": ("batch_size", 1.0, _MOST_SAMPLES),
    **{name: (name, 0.0, _MOST_SECONDS) for name in PHASES},
}
_MODES = {mode.name.lower(): int(mode) for mode in Mode}
_NUMBER_COLUMNS = tuple(column for column, _, _ in _NUMBERS.values())

Run = tuple[int, int, float]  # record, restarts and start
Said = Mapping[str, Any]


@dataclass(slots=True)
class _Heard:
    """The newest report of a run, and when it was looked for."""

    run: Run
    said: Said = field(default_factory=dict)
    read: float = 0.0  # when this report was first read
    looked: float = 0.0  # when its file was last read
    tried: float = -math.inf
    by_comment: float = -math.inf  # when its comment was last read


@dataclass
class RunReports:
    """The reports of running jobs that speak the protocol, by job key."""

    details: JobDetails
    readers: Readers
    _heard: dict[int, _Heard] = field(default_factory=dict)
    _comments_at: float = -math.inf

    def of(self, snapshot: Snapshot, reports: str) -> Reported | None:
        """The newest report of each running job; None where nobody has reported.

        Where their files may be out of our sight, those who said nothing there are looked for in their comments.
        """
        rows = self._running(snapshot) if reports != "none" else {}
        self._heard = {key: heard for key, heard in self._heard.items() if key in rows}
        if reports in ("auto", "file"):
            self._read(self._due(rows, snapshot), rows, snapshot)
        if reports in ("auto", "comment"):
            self._read_comments(rows, snapshot)
        return _in_columns({row: self._heard[key] for key, row in rows.items()}, snapshot.time)

    def _running(self, snapshot: Snapshot) -> dict[int, int]:
        """Rows of the jobs that may report, by key; what an earlier run said is forgotten."""
        jobs = snapshot.jobs
        rows = {jobs.key.item(row): row for row in np.flatnonzero(jobs.running & jobs.checkpoints).tolist()}
        for key, row in rows.items():
            run = jobs.record.item(row), jobs.restarts.item(row), jobs.start.item(row)
            if key not in self._heard or self._heard[key].run != run:
                self._heard[key] = _Heard(run)
        return rows

    def _due(self, rows: Mapping[int, int], snapshot: Snapshot) -> list[int]:
        """Keys to read now: those that were not looked at for longest, of each user in turn."""
        tried, now = {key: self._heard[key].tried for key in rows}, snapshot.time
        due = [key for key in rows if not 0 <= now - tried[key] < EVERY_SECONDS]
        due.sort(key=tried.__getitem__)
        users = snapshot.jobs.user
        return apiece(due, lambda key: snapshot.users[users.item(rows[key])], _AT_ONCE)

    def _read(self, due: list[int], rows: Mapping[int, int], snapshot: Snapshot) -> None:
        if not due:
            return
        now, users = snapshot.time, snapshot.jobs.user
        wanted = {
            key: Wanted(
                snapshot.users[users.item(rows[key])],
                self.details.of(*self._heard[key].run[:2]).work_dir,
                label(key),
                REPORT,
            )
            for key in due
        }
        found = self.readers.read(wanted, _BEGIN_SECONDS)
        self.readers.tell_of_hangs()
        hung = set(self.readers.hangs())
        for key in due:
            heard = self._heard[key]
            if key not in found:  # there was no time for it: it comes first at the next look
                heard.tried = now if wanted[key].user in hung else heard.tried
                continue
            heard.tried = heard.looked = now
            said = judged(found[key], heard.run, now)
            if said and said != heard.said:
                heard.said, heard.read = said, now

    def _read_comments(self, rows: Mapping[int, int], snapshot: Snapshot) -> None:
        """Once a minute, in turns, of those that no file tells of in their first minute; one call to Slurm."""
        now, users = snapshot.time, snapshot.jobs.user
        if 0 <= now - self._comments_at < report_comments.EVERY_SECONDS:
            return
        at = {key: self._heard[key].by_comment for key in rows}
        ran = now - snapshot.jobs.start
        ran_enough = [key for key in rows if ran.item(rows[key]) >= report_comments.EVERY_SECONDS]
        silent = [key for key in ran_enough if not self._heard[key].said or at[key] > -math.inf]
        silent.sort(key=at.__getitem__)
        due = apiece(silent, lambda key: snapshot.users[users.item(rows[key])], report_comments.AT_ONCE)
        if not due:
            return
        self._comments_at = now
        jobs = {key: (self._heard[key].run[0], label(key)) for key in due}
        for key, message in report_comments.reports_in_comments(self.details.commands, jobs).items():
            heard = self._heard[key]
            heard.by_comment = now
            said = judged(message, heard.run, now)
            newer = bool(said) and said["written"] > heard.said.get("written", -math.inf)
            if newer:
                heard.said, heard.read = said, now
            heard.looked = max(heard.looked, heard.read, now - report_comments.RENEWED_SECONDS)


def judged(message: Said, run: Run, now: float) -> dict[str, Any]:
    """The numbers of a report that can be, by column; none where it is no report of this run.

    A number that cannot be is left out, and the others stand.
    """
    _, restarts, start = run
    when, count = message.get("time"), message.get("restart")
    if count != restarts or isinstance(count, bool) or not _is_number(when):
        return {}
    if not start - _CLOCKS_SECONDS <= when <= now + _CLOCKS_SECONDS:
        return {}
    said: dict[str, Any] = {"written": float(when)}
    for key, (column, least, most) in _NUMBERS.items():
        value = message.get(key)
        if _is_number(value) and least <= value <= most:
            said[column] = float(value)
    pattern, mode, model = (message.get(key) for key in ("pattern", "mode", "model"))
    if _is_number(pattern) and pattern in (1, 2):
        said["pattern"] = int(pattern)
    if isinstance(mode, str) and mode in _MODES:
        said["mode"] = _MODES[mode]
    if isinstance(model, str) and 0 < len(model) <= MOST_CHARACTERS and model.isprintable():
        said["model"] = model
    return said


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _in_columns(heard: Mapping[int, _Heard], now: float) -> Reported | None:
    """The table of those who have said something."""
    rows = sorted(row for row, each in heard.items() if each.said)
    if not rows:
        return None
    said = [heard[row].said for row in rows]
    models = tuple(sorted({each["model"] for each in said if "model" in each}))
    at = {name: number for number, name in enumerate(models)}
    read = np.array([heard[row].read for row in rows])
    looked = np.array([heard[row].looked for row in rows])

    def column(name: str, lacking: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return np.array([each.get(name, lacking) for each in said], dtype=np.float64)

    return Reported(
        row=np.array(rows, dtype=np.int64),
        read=read,
        written=column("written", now),
        silent_seconds=np.maximum(looked - read, 0.0),
        believed=np.full(len(rows), np.nan),
        clamped=np.zeros(len(rows), dtype=bool),
        pattern=column("pattern", 0).astype(np.int8),
        mode=column("mode", int(Mode.STATIC)).astype(np.int8),
        model=np.array([at.get(each.get("model", ""), -1) for each in said], dtype=np.int64),
        models=models,
        **{name: column(name, np.nan) for name in _NUMBER_COLUMNS},
    )
