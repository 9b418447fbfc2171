"""The dead-man: when the heartbeat stops for a lease, it frees what we keep back, and ends."""

from __future__ import annotations

import fcntl
import logging
import os
import time
from collections.abc import Callable

from slurm_fair.config import Config
from slurm_fair.daemon import commands_of, heartbeat_limit
from slurm_fair.errors import SlurmFairError, StoreError
from slurm_fair.model.mark import Mark
from slurm_fair.places import Places, last_beat
from slurm_fair.slurm.liberate import liberate, pins_left
from slurm_fair.store import fence, open_reader

_RETRY_SECONDS = 2.0
_FIRST_BEAT_SECONDS = 60.0
log = logging.getLogger("slurm_fair")


def watch(config: Config, places: Places, now: Callable[[], float], once: bool = False) -> int:
    """Watch until the heartbeat is too old, then free everything of ours; the number of jobs freed.

    `once` looks a single time, for a timer of the service manager.
    """
    lock = os.open(places.deadman_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            log.info("another dead-man watches already")
            return 0
        freed = _watch_once(config, places, now, once)
        while places.paused.exists() and not once:
            # What a paused daemon kept back is free now; when it acts again it must be watched again.
            _await_resume(places)
            freed += _watch_once(config, places, now, once)
        return freed
    finally:
        os.close(lock)


def _watch_once(config: Config, places: Places, now: Callable[[], float], once: bool) -> int:
    """Until one silence has been dealt with, or there is nobody to watch."""
    if not once:
        _await_first_beat(config, places)
    while not overdue(config, places, now()):
        if once or last_beat(places) is None:
            return 0  # it never lived, or stopped for good with nothing of ours left
        time.sleep(min(heartbeat_limit(config) / 10, 1.0))
    return take_over(config, places, now)


def _await_resume(places: Places) -> None:
    while places.paused.exists():
        time.sleep(_RETRY_SECONDS / 4)


def _await_first_beat(config: Config, places: Places) -> None:
    deadline = time.monotonic() + max(_FIRST_BEAT_SECONDS, 2 * config.lease.interval)
    while last_beat(places) is None and time.monotonic() < deadline:
        time.sleep(0.1)


def overdue(config: Config, places: Places, now: float) -> bool:
    """Whether the daemon has been silent for too long; one that never lived is not missed."""
    beat = last_beat(places)
    return beat is not None and now - beat.time > beat.limit_seconds


def take_over(config: Config, places: Places, now: Callable[[], float]) -> int:
    """Fence the old daemon, so that a hung one that wakes up acts no more, and free what it marked."""
    beat = last_beat(places)
    log.warning(
        "the daemon (pid %s) is silent since %.0f s: freeing its jobs", beat and beat.pid, _age(places, now())
    )
    if not places.paused.exists():  # a paused daemon lives, and keeps its journal
        fence(places.journal, by="the dead-man")
    freed = 0
    while True:
        try:
            marks, lost = _marks(places)
            done = liberate(commands_of(config, places), marks, now, lost=lost)
        except SlurmFairError as problem:
            log.error("cannot free jobs yet, trying again: %s", problem)
            time.sleep(_RETRY_SECONDS)
            continue
        freed += done.freed
        for line in pins_left(done) if not done.left else ():
            log.warning("%s", line)
        for left in done.left:
            log.warning("could not free %s", left)
        if not done.left:
            break
        time.sleep(_RETRY_SECONDS)
    log.warning("%d jobs freed; the queue flows as plain Slurm", freed)
    _forget_heartbeat(places)
    return freed


def _marks(places: Places) -> tuple[tuple[Mark, ...], bool]:
    """What the daemon noted, and whether the journal is lost, so that only stamps can tell what is ours."""
    try:
        with open_reader(places.journal) as journal:
            journal.check()
            return journal.marks(), False
    except StoreError as problem:
        log.error("the journal cannot be read, so jobs are known by their stamps only: %s", problem)
        return (), True


def _age(places: Places, now: float) -> float:
    beat = last_beat(places)
    return now - beat.time if beat else 0.0


def _forget_heartbeat(places: Places) -> None:
    """So that the next look does not find the same silence again."""
    places.heartbeat.unlink(missing_ok=True)
