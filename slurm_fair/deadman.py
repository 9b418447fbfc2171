"""The dead-man: when the daemon is silent, or blind under `gate = "hold"`, it frees what we keep back."""

from __future__ import annotations

import fcntl
import logging
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum

from slurm_fair.config.sections import Config
from slurm_fair.daemon.log import Trouble
from slurm_fair.daemon.parts import commands_of, heartbeat_limit
from slurm_fair.errors import StoreBusy, StoreError
from slurm_fair.host.freed_meanwhile import FreedMeanwhile
from slurm_fair.host.state_folder import (
    Heartbeat,
    Places,
    all_free_until,
    last_beat,
    leave_all_free,
    leave_no_daemon,
    not_yet_free,
    paused_since,
)
from slurm_fair.model import Gate
from slurm_fair.model.mark import Mark
from slurm_fair.output import open_kept
from slurm_fair.ports import Clock
from slurm_fair.slurm.fail_open import NOTHING_FREED, Liberated, liberate, pins_left, unread_left
from slurm_fair.slurm.notice import identity_of, read_notices, withdraw
from slurm_fair.store import fence, is_owned, open_reader

_RETRY_SECONDS = 2.0
_FIRST_BEAT_SECONDS = 60.0
_LOCKED_TRIES = 6  # of five seconds each: an admin's shell on the journal
_STEP_SECONDS = 5.0  # between two looks: more, and the clock was set, or nobody on this machine ran meanwhile
log = logging.getLogger("slurm_fair")


class Silence(Enum):
    """The daemon's state, as its heartbeat tells it."""

    NONE = "it lives and sees"
    GONE = "no daemon was ever here, or it stopped with nothing of ours left"
    DEAD = "it is silent"
    PAUSED = "an admin has paused it"
    BLIND = "it is blind, and what it holds would never start"


def silence_of(places: Places, now: float) -> Silence:
    """A begin gate opens by itself, so a blind daemon is no harm there; a hold is lifted by nobody else.

    A pause of a time to come is old: the clock was set back since.
    """
    beat = last_beat(places)
    if beat is None:
        return Silence.GONE
    if now - beat.time > beat.limit_seconds:
        return Silence.DEAD
    since = paused_since(places)
    if since is not None and not -_STEP_SECONDS <= now - since <= beat.limit_seconds:
        return Silence.PAUSED
    unseen = bool(beat.blind) and now - beat.seen > beat.limit_seconds
    return Silence.BLIND if unseen and beat.gate == Gate.HOLD else Silence.NONE


def overdue(places: Places, now: float) -> bool:
    """True if the daemon has been silent for too long. A daemon that never lived is not missed."""
    return silence_of(places, now) is Silence.DEAD


def watch(config: Config, places: Places, clock: Clock, once: bool = False) -> int:
    """Watch until the daemon is silent, then free everything of ours and end; the number of jobs freed.

    While the daemon is paused or blind its jobs are freed too, and it is watched on. `once` looks a single time,
    for a timer of the service manager.
    """
    try:
        lock = open_kept(places.deadman_lock)
    except OSError as problem:
        raise StoreError(
            f"{places.deadman_lock}: cannot be opened, so nobody watches the daemon: {problem.strerror}: "
            "remove it; the next dead-man makes it anew"
        ) from None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            log.info("another dead-man watches already")
            return 0
        if not once:
            _await_first_beat(config, places, clock)
        return _Watch(config, places, clock).run(once)
    finally:
        os.close(lock)


def _await_first_beat(config: Config, places: Places, clock: Clock) -> None:
    deadline = clock.now() + max(_FIRST_BEAT_SECONDS, 2 * config.lease.longest_interval)
    while last_beat(places) is None and clock.now() < deadline:
        clock.sleep_until(clock.now() + 0.1)


class _Watch:
    """One dead-man at its post."""

    def __init__(self, config: Config, places: Places, clock: Clock) -> None:
        self._config, self._places, self._clock = config, places, clock
        self._trouble = Trouble("cannot free jobs yet, trying again")
        self._meanwhile = FreedMeanwhile(places)
        self._looked = -math.inf  # when we looked last
        self._doubted: float | None = None  # since when a silence may be a step of the clock
        self._ahead: tuple[Heartbeat, float] | None = None  # a heartbeat of a time to come, and since when

    def run(self, once: bool) -> int:
        """Watch until there is nobody to watch; returns the number of jobs freed."""
        freed = 0
        while (silence := self._silence()) is not Silence.GONE:
            if silence is Silence.DEAD and self._is_sure():
                freed += take_over(self._config, self._places, self._clock)
                self._doubted = None
            elif silence in (Silence.PAUSED, Silence.BLIND):
                freed += self._free_meanwhile(silence)
            if once and self._doubted is None and self._ahead is None:
                break
            self._sleep(min(heartbeat_limit(self._config) / 10, 1.0))
        return freed + self._free_latecomers() if once else freed

    def _silence(self) -> Silence:
        """The daemon's silence. A heartbeat from the future counts as of our first sight of it."""
        now, beat = self._clock.now(), last_beat(self._places)
        silence = silence_of(self._places, now)
        if silence is not Silence.DEAD:
            self._doubted = None
        elif not 0 <= now - self._looked <= _STEP_SECONDS:
            self._doubted = now
        self._looked = now
        if beat is None or beat.time <= now + _STEP_SECONDS:
            self._ahead = None
            return silence
        if self._ahead is None or self._ahead[0] != beat or self._ahead[1] > now:
            self._ahead = beat, now
        return Silence.DEAD if now - self._ahead[1] > beat.limit_seconds else silence

    def _is_sure(self) -> bool:
        """True if a daemon that lives would have left a heartbeat since the clock may have been set."""
        if self._doubted is None:
            return True
        lease = self._config.lease
        return self._clock.now() - self._doubted > min(2 * lease.longest_interval + 1.0, lease.term / 4)

    def _free_meanwhile(self, silence: Silence) -> int:
        """Free what a daemon that lives and does nothing keeps back, once a lease: jobs come that are held too."""
        if 0 <= self._clock.now() - _freed_at(self._places) < heartbeat_limit(self._config):
            return 0
        if silence is Silence.BLIND and not self._sees_more():
            return 0
        try:
            with freeing(self._places):
                if silence_of(self._places, self._clock.now()) is not silence:
                    return 0  # from now on it acts again, and finds this lock if we are not done
                done = free_all(self._config, self._places, self._clock, self._meanwhile.so_far())
                self._meanwhile.keep(done)
        except Exception as problem:
            self._trouble.stands(self._clock.now(), str(problem))
            return 0
        self._trouble.ended(self._clock.now(), "jobs can be freed again")
        with suppress(OSError):
            os.utime(self._places.freeing, (self._clock.now(), self._clock.now()))
        if done.freed:
            log.warning("%d jobs freed, because of the daemon: %s", done.freed, silence.value)
        for left in done.left:
            log.warning("could not free %s", left)
        for line in unread_left(done):
            log.warning("%s", line)
        return done.freed

    def _free_latecomers(self) -> int:
        """Free jobs that came after all was freed: templates and hooks may still gate them, and nobody opens that.

        A job that was submitted before is looked at again only if it could not be freed: a hold that another has
        now is somebody's own.
        """
        places, now = self._places, self._clock.now()
        since, left = all_free_until(places), not_yet_free(places)
        if since is None or is_owned(places.journal):
            return 0
        try:
            with freeing(places):
                if (
                    last_beat(places) is not None
                    or self._another_acts(now)
                    or not leave_all_free(places, since, left)  # who cannot note it frees nobody twice
                ):
                    return 0
                done = self._freed_since(math.floor(min(since, now)), left)
                leave_all_free(places, now, done.to_look_at)  # last: a look that is killed is made again
        except Exception as problem:
            log.warning("jobs that came since all was freed cannot be freed yet: %s", problem)
            return 0
        for why in done.left:
            log.warning("could not free %s; the next look tries again", why)
        for line in unread_left(done) if set(done.to_look_at) != set(left) else ():
            log.warning("%s", line)
        if done.freed:
            log.warning("%d jobs freed that came while no daemon runs", done.freed)
        return done.freed

    def _freed_since(self, since: float, again: tuple[int, ...]) -> Liberated:
        marks, _ = _marks(self._places)
        commands = commands_of(self._config, self._places)
        return liberate(commands, marks, self._clock.now, since=since, again=again)

    def _another_acts(self, now: float) -> bool:
        """True if a daemon with another storage says in the queue that it acts here."""
        ours = identity_of(self._places.directory)
        notices = read_notices(commands_of(self._config, self._places))
        return any(notice.identity != ours and notice.until > now for notice in notices)

    def _sees_more(self) -> bool:
        """True if the daemon sees again. It gets the time of two more looks in which Slurm answers."""
        lease = self._config.lease
        patience = min(2 * lease.longest_interval + 1.0, lease.term / 4)
        commands = commands_of(self._config, self._places)
        since = self._clock.now()
        while self._clock.now() - since < patience:
            if silence_of(self._places, self._clock.now()) is not Silence.BLIND:
                return False
            if "is UP" not in commands.run("scontrol", "ping").out:
                since = self._clock.now()
            self._sleep(min(1.0, patience / 4))
        return True

    def _sleep(self, seconds: float) -> None:
        self._clock.sleep_until(self._clock.now() + seconds)


def take_over(config: Config, places: Places, clock: Clock) -> int:
    """Fence the old daemon, so that a hung one that wakes up acts no more, and free what it marked.

    A new daemon that lives before all is free goes on from there: then nothing more is freed.
    """
    old = last_beat(places)
    silent = max(clock.now() - old.time, 0.0) if old else 0.0
    log.warning("the daemon (pid %s) is silent since %.0f s: freeing its jobs", old and old.pid, silent)
    _fence(places, old)
    freed, trouble, said = 0, Trouble("cannot free jobs yet, trying again"), frozenset[str]()
    done = FreedMeanwhile(places).so_far()  # it may have been blind or paused before
    while True:
        try:
            with freeing(places):
                if lives_again(places, old):
                    log.warning("a daemon lives again: what is left is its own to free")
                    return freed
                done = free_all(config, places, clock, done)
        except Exception as problem:
            trouble.stands(clock.now(), str(problem))
        else:
            freed += done.freed
            for left in sorted(set(done.left) - said):
                log.warning("could not free %s; trying again", left)
            said = frozenset(done.left)
            if not done.left:
                for line in (*pins_left(done), *unread_left(done)):
                    log.warning("%s", line)
                break
        clock.sleep_until(clock.now() + _RETRY_SECONDS)
    log.warning("%d jobs freed; the queue flows as plain Slurm", freed)
    if config.slurm.notice and not lives_again(places, old):
        withdraw(commands_of(config, places), places.directory)
    if not lives_again(places, old):
        _leave_no_wish(places, done)
    return freed


def _leave_no_wish(places: Places, done: Liberated) -> None:
    """The wish of a daemon that failed open and ended with jobs left is done, and is not the next daemon's.

    Without a heartbeat the next look does not find the same silence again, and frees what came since.
    """
    if lost := leave_no_daemon(places, done.read_at, done.to_look_at):
        log.error("%s", lost)


def _fence(places: Places, silent: Heartbeat | None) -> None:
    """Write a new epoch, so that the silent daemon does nothing when it wakes.

    Where no epoch can be written, the daemon can write no act either. A daemon that opened the journal since, a
    shadow perhaps, is not silent.
    """
    try:
        fence(places.journal, by="the dead-man", owner=silent.epoch if silent else 0)
    except StoreError as problem:
        log.error("the silent daemon cannot be fenced: %s", problem)


def lives_again(places: Places, old: Heartbeat | None) -> bool:
    """True if the heartbeat is a later one than that of the daemon that was silent."""
    beat = last_beat(places)
    return beat is not None and (old is None or beat.time > old.time or beat.epoch > old.epoch)


def free_all(config: Config, places: Places, clock: Clock, before: Liberated = NOTHING_FREED) -> Liberated:
    """One try to free every job of ours that was not clear `before`."""
    marks, lost = _marks(places)
    return liberate(commands_of(config, places), marks, clock.now, lost=lost, before=before)


def _marks(places: Places) -> tuple[tuple[Mark, ...], bool]:
    """The daemon's marks, and True if the journal is lost, so that only stamps can tell what is ours."""
    for tries in range(_LOCKED_TRIES):
        try:
            with open_reader(places.journal) as journal:
                journal.check()
                return journal.marks(), False
        except StoreBusy as problem:
            if not tries:
                log.warning("%s", problem)
        except StoreError as problem:
            log.error("the journal cannot be read, so jobs are known by their stamps only: %s", problem)
            return (), True
    log.error("the journal stays locked, so jobs are known by their stamps only")
    return (), True


@contextmanager
def freeing(places: Places) -> Iterator[None]:
    """A daemon that lives does nothing inside this block; one that can make no file does nothing anyway."""
    try:
        handle = open_kept(places.freeing)
    except OSError as problem:
        log.error("%s: cannot be made: %s", places.freeing, problem.strerror)
        yield
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _freed_at(places: Places) -> float:
    try:
        return places.freeing.stat().st_mtime
    except OSError:
        return 0.0
