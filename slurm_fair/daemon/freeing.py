"""Fail open: every job of ours is plain Slurm's again."""

from __future__ import annotations

import logging
from collections.abc import Callable

from slurm_fair.errors import StoreError
from slurm_fair.host.state_folder import Places, leave_no_daemon
from slurm_fair.slurm.fail_open import Liberated, liberate_patiently, pins_left, unread_left
from slurm_fair.store import SqliteJournal

_TRIES = 15
log = logging.getLogger("slurm_fair")


def free_everybody(
    free_once: Callable[[Liberated], Liberated], journal: SqliteJournal, places: Places
) -> None:
    """Free all jobs; a job that is still completing is waited for a little."""
    freed = liberate_patiently(free_once, _TRIES)
    for left in freed.left:
        log.error("could not free %s", left)
    log.warning("failed open: %d jobs freed; the queue flows as plain Slurm", freed.freed)
    for line in (*pins_left(freed), *unread_left(freed)):
        log.warning("%s", line)
    if not freed.left:
        _leave_nothing(freed, journal, places)


def _leave_nothing(freed: Liberated, journal: SqliteJournal, places: Places) -> None:
    """No marks but of node lists on running jobs and of jobs that cannot be read, and no heartbeat.

    The dead-man ends with it. A look of its timer then frees what comes later.
    """
    marks = [(mark.key, mark.whole_record) for mark in journal.marks() if mark.record not in freed.to_look_at]
    try:
        journal.drop_marks([mark for mark in marks if mark not in freed.pinned])
    except StoreError as problem:  # the jobs are free all the same
        log.error("the marks of the freed jobs stay in the journal: %s", problem)
    if lost := leave_no_daemon(places, freed.read_at, freed.to_look_at):
        log.error("%s", lost)
