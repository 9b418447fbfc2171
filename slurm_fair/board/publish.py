"""The published files: a small one for each job that runs or is asked to give way, and the board.

The folder is the daemon's own, and only the daemon writes in it: a job believes what it reads there.
"""

from __future__ import annotations

import json
import logging
import math
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from slurm_fair.board.board import Board, draw
from slurm_fair.board.health import NAME as HEALTH
from slurm_fair.board.health import Health
from slurm_fair.board.nameless import nameless
from slurm_fair.board.recent import Recent
from slurm_fair.errors import SlurmFairError
from slurm_fair.model import Event, Leases, Standing, TickRecord, label
from slurm_fair.model.columns import Floats, Ints, find
from slurm_fair.output import BESIDE, Folder, leads_to
from slurm_fair.reconcile.for_whom import requests

log = logging.getLogger("slurm_fair")
BOARD = "board.json"
_EVERYBODY = 0o644
_OF_A_JOB = re.compile(r"[0-9]+(_[0-9]+)?\.json")
_MOST_SECONDS = 0.5  # of a tick for the files of jobs; the rest is written in the next one
_PART_OF_TIME = 20  # the board is drawn so seldom that it takes a twentieth of the time
_ASK_AGAIN_SECONDS = 600.0
Document = Mapping[str, Any]


class _Published(NamedTuple):
    """The jobs' files in columns sorted by key; the end is 0 for a job that is asked to give way."""

    key: Ints
    restarts: Ints
    end: Floats
    asked: Mapping[int, Document]

    @classmethod
    def nothing(cls) -> Self:
        return cls(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0), {})

    @classmethod
    def of(cls, leases: Leases, asked: Mapping[int, Document]) -> Self:
        """The files of leases that run, and of jobs that are asked; a promised lease has no end yet."""
        runs = leases.running
        rows = runs | np.isin(leases.key, np.fromiter(asked, dtype=np.int64, count=len(asked)))
        return cls(leases.key[rows], leases.restarts[rows], np.where(runs, leases.end, 0.0)[rows], asked)

    def text(self, key: int) -> str:
        """The file of one job."""
        at = int(find(self.key, np.array([key]))[0])
        document: dict[str, Any] = {"v": 1, "restart": self.restarts.item(at)}
        end = self.end.item(at)
        if end and math.isfinite(end):
            document["lease_end"] = end
        return json.dumps(document | ({"asked": self.asked[key]} if key in self.asked else {}))

    def changed(self, before: _Published) -> list[int]:
        """Keys of the jobs whose file is not what it was, those that are asked first."""
        if self.asked == before.asked and all(map(np.array_equal, self[:3], before[:3])):
            return []
        old = find(before.key, self.key)
        new = old < 0
        if len(before.key):
            new |= (before.restarts[old] != self.restarts) | (before.end[old] != self.end)
        asked = [key for key, request in self.asked.items() if before.asked.get(key) != request]
        return list(dict.fromkeys([*asked, *self.key[new].tolist()]))


class Publisher:
    """Writes what changed, and takes away what is over; a folder that cannot be used costs one warning."""

    def __init__(
        self,
        directory: str,
        hides_names: Callable[[], bool],
        ended: Iterable[Event] = (),
        draws: Callable[[TickRecord, Standing], Board] = draw,
    ) -> None:
        self._directory = Path(directory) if directory else None
        self._hides_names, self._draws = hides_names, draws
        self._nameless, self._ask_at = True, 0.0
        self._published, self._due = _Published.nothing(), dict[int, None]()
        self._folder = (0, 0)  # which one was published in: one that was made anew is filled anew
        self._next_board = 0.0
        self._recent = Recent(ended)
        self._complaint = ""

    def direct(self, directory: str) -> None:
        """Publish there from now on; empty: nowhere."""
        self._directory = Path(directory) if directory else None

    def publish(self, record: TickRecord, standing: Standing) -> None:
        """Bring the folder up to this tick."""
        self._recent.hear(record.events)
        self._in_the_folder(lambda folder: self._publish(folder, record, standing))

    def publish_health(self, health: Health) -> None:
        """Publish that the daemon lives, and if it sees and acts."""
        text = (replace(health, why="") if self._nameless else health).text()
        self._in_the_folder(lambda folder: folder.put(HEALTH, text, _EVERYBODY, durable=False))

    def _in_the_folder(self, act: Callable[[Folder], None]) -> None:
        if self._directory is None:
            return
        try:
            with Folder(leads_to(self._directory)) as folder:
                self._take(folder)
                act(folder)
        except OSError as problem:
            self._complain(f"{self._directory}: {problem.strerror}")
            return
        except SlurmFairError as problem:
            self._complain(str(problem))
            return
        if self._complaint:
            log.info("published again in %s", self._directory)
        self._complaint = ""

    def _publish(self, folder: Folder, record: TickRecord, standing: Standing) -> None:
        self._look_at_privacy()
        self._publish_jobs(folder, record, standing)
        self._publish_board(folder, record, standing)

    def _complain(self, why: str) -> None:
        """Warn once for each reason, not at each look."""
        if why != self._complaint:
            log.warning("nothing is published for users: %s; `slurm-fair check` says how to mend it", why)
        self._complaint = why

    def _take(self, folder: Folder) -> None:
        """The folder must be ours alone; in one that we have not seen, what was left of an earlier run goes."""
        found = folder.facts()
        wrong = what_is_wrong(found)
        if wrong:
            raise SlurmFairError(f"{folder.path}: {wrong}")
        if (found.st_dev, found.st_ino) != self._folder:
            for name in folder.names():
                if _OF_A_JOB.fullmatch(name) or name.startswith(BESIDE):
                    folder.remove(name)
            self._forget()
            self._folder = (found.st_dev, found.st_ino)

    def _forget(self) -> None:
        self._published, self._next_board = _Published.nothing(), 0.0
        self._due.clear()

    def _look_at_privacy(self) -> None:
        if time.monotonic() < self._ask_at:
            return
        before, self._nameless = self._nameless, self._hides_names()
        self._ask_at = time.monotonic() + _ASK_AGAIN_SECONDS
        if before != self._nameless:
            self._forget()

    def _publish_jobs(self, folder: Folder, record: TickRecord, standing: Standing) -> None:
        asked = requests(standing, record.snapshot)
        shown = {key: _shown(request) for key, request in asked.items()} if self._nameless else asked
        now = _Published.of(standing.leases, shown)
        gone = self._published.key[find(now.key, self._published.key) < 0].tolist()
        self._due = dict.fromkeys([*now.changed(self._published), *self._due, *gone])
        self._published = now
        until = time.monotonic() + _MOST_SECONDS
        here = set(now.key.tolist()) if self._due else set()
        for key in list(self._due):
            name = f"{label(key)}.json"
            if key in here:
                folder.put(name, now.text(key), _EVERYBODY, durable=False)
            else:
                folder.remove(name)
            del self._due[key]
            if time.monotonic() > until:
                break

    def _publish_board(self, folder: Folder, record: TickRecord, standing: Standing) -> None:
        """Publish the queue, as far as users may see it."""
        began = time.monotonic()
        if began < self._next_board:
            return
        board = replace(self._draws(record, standing), finished=self._recent.rows(record.time))
        document = board.document()
        folder.put(BOARD, json.dumps(nameless(document) if self._nameless else document), _EVERYBODY)
        self._next_board = time.monotonic() + _PART_OF_TIME * (time.monotonic() - began)


def _shown(request: Document) -> Document:
    """A request as a job sees it that may not know of others."""
    return {"time": request["time"], "why": request["why"], "for": []}


def what_is_wrong(found: os.stat_result) -> str:
    """The reason why nothing may be published in a folder; empty when it may."""
    if found.st_uid != os.geteuid():
        return f"belongs to uid {found.st_uid}, not to uid {os.geteuid()} that publishes"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"others can change it (mode {stat.S_IMODE(found.st_mode):04o})"
    return ""
