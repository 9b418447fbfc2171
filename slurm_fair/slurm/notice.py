"""One daemon on a cluster: a notice that slurmctld keeps, so that daemons with two storages, or two hosts, meet.

The notice is a held job without GPUs, submitted by the daemon's own account (an Operator may not write the comment
of a node or of a reservation everywhere; slurm-facts: operators-comments). Its comment says who acts and until
when; it is renewed three times in a lease, and what a daemon that died left behind counts for no longer than a
lease. Only notices of accounts that may act on jobs count: root, SlurmUser, Operators, Administrators, our own.
"""

from __future__ import annotations

import hashlib
import logging
import math
import os
import pwd
import re
import socket
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from slurm_fair.errors import NotTheOwner, SlurmUnreachable
from slurm_fair.model import LeftAlone
from slurm_fair.slurm.command import CommandResult, Commands

NAME = "slurm_fair"
REASON = "says that a slurm_fair daemon acts here, and never runs"
_PREFIX = "slurm_fair:notice,v=1,"
_TEXT = re.compile(
    r"id=([0-9a-f]{16}),until=([0-9]{1,11}),host=([A-Za-z0-9_./-]{1,64}),pid=([0-9]{1,10}),"
    r"dir=([A-Za-z0-9_./-]{1,200})"
)
_OPERATOR = re.compile(r"UserName=(\S+)\([0-9]+\) .* AdminLevel=(?:Operator|Administrator)")
_JOB = re.compile(r"[1-9][0-9]{0,9}")
_ODD = re.compile(r"[^A-Za-z0-9_./-]")
_SUBMIT = (
    "--parsable", "-H", "-J", NAME, "-n", "1", "-t", "1", "-o", "/dev/null", "-D", "/", "--export=NONE",
    "--no-requeue", "--wrap=exit 0",
)  # fmt: skip
log = logging.getLogger("slurm_fair")


class AnotherDaemon(NotTheOwner):
    """Another daemon, with another storage, acts on this cluster."""


@dataclass(frozen=True, slots=True)
class Notice:
    """The words of one daemon about itself."""

    job: int
    identity: str
    until: float
    host: str
    pid: str
    directory: str

    def in_words(self) -> str:
        return f"pid {self.pid} on {self.host} with {self.directory} (job {self.job} in the queue says so)"


def identity_of(directory: Path) -> str:
    """The same for every start with one storage folder on one host, and no other's."""
    try:
        found = directory.stat()
        place = f"{found.st_dev}:{found.st_ino}"
    except OSError:
        place = ""
    said = f"{socket.gethostname()}|{directory.absolute()}|{place}"
    return hashlib.sha256(said.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def read_notices(commands: Commands) -> tuple[Notice, ...]:
    """The notices in the queue, by job; SlurmUnreachable when they cannot be read."""
    users = ",".join(map(str, sorted(_trusted(commands))))
    answer = commands.run("squeue", "-h", "-a", "-t", "PD", "-n", NAME, "-u", users, "-o", "%i|%k")
    if not answer.whole:
        raise SlurmUnreachable(f"whether another daemon acts cannot be seen: {answer.complaint}")
    found = (_notice(line) for line in answer.out.splitlines())
    return tuple(sorted((notice for notice in found if notice), key=lambda notice: notice.job))


def _notice(line: str) -> Notice | None:
    job, _, comment = line.partition("|")
    said = _TEXT.fullmatch(comment.removeprefix(_PREFIX)) if comment.startswith(_PREFIX) else None
    if said is None or not _JOB.fullmatch(job):
        return None
    return Notice(int(job), said[1], float(said[2]), said[3], said[4], said[5])


def _trusted(commands: Commands) -> set[int]:
    """Accounts whose notices count; what another user writes into a job of this name is nothing."""
    acting = _operators(commands)
    slurm_user = (
        line for line in _words(commands, "scontrol", "show", "config") if line.startswith("SlurmUser ")
    )
    acting += [line.partition("=")[2].strip().partition("(")[0] for line in slurm_user]
    return {0, os.geteuid()} | set(_uids(acting))


def _operators(commands: Commands) -> list[str]:
    """The Operators and Administrators; slurmctld keeps them too, where slurmdbd does not answer."""
    answer = commands.run("sacctmgr", "-nP", "show", "user", "format=user,adminlevel")
    if answer.whole:
        names = (line.partition("|") for line in answer.out.splitlines())
        return [name for name, _, level in names if level not in ("", "None")]
    kept = map(_OPERATOR.fullmatch, _words(commands, "scontrol", "show", "assoc_mgr", "flags=users"))
    return [found[1] for found in kept if found]


def _words(commands: Commands, *argv: str) -> list[str]:
    answer = commands.run(*argv)
    return answer.out.splitlines() if answer.whole else []


def _uids(names: Iterable[str]) -> Iterable[int]:
    for name in names:
        with suppress(KeyError, ValueError):  # no user has such a name
            yield pwd.getpwnam(name).pw_uid


def withdraw(commands: Commands, directory: Path) -> None:
    """Take away the notices of a storage whose daemon is gone."""
    identity = identity_of(directory)
    with suppress(SlurmUnreachable):
        _cancel(commands, [notice for notice in read_notices(commands) if notice.identity == identity])


def _cancel(commands: Commands, notices: Iterable[Notice]) -> None:
    for notice in notices:
        commands.run("scancel", "-n", NAME, str(notice.job))


def with_notices(alone: tuple[LeftAlone, ...], notices: Collection[int]) -> tuple[LeftAlone, ...]:
    """Jobs that are left alone, the notices among them with what they are."""
    labels = frozenset(map(str, notices))
    if labels.isdisjoint(job.label for job in alone):
        return alone
    return tuple(replace(job, reason=REASON) if job.label in labels else job for job in alone)


@dataclass(slots=True)
class OurNotice:
    """Our own notice; `hold` is asked before each look."""

    commands: Commands
    directory: Path
    lease_seconds: float
    jobs: set[int] = field(default_factory=set)  # those that say who acts here
    _until: float = 0.0  # when our notice runs out
    _asked: float = -1e12
    _complaint: str = ""
    _identity: str = ""

    def hold(self, now: float) -> None:
        """Set our notice, or renew it; AnotherDaemon when somebody else's counts."""
        if 0 <= now - self._asked < self.lease_seconds / 3:
            return
        self._identity = self._identity or identity_of(self.directory)
        ours, others = self._look(now)
        held = any(notice.until > now for notice in ours)
        self._give_way(ours, others, held)
        if held:
            self._renew(ours, now)
        else:  # a new one, never an old one renewed: who came first is told by the numbers of the jobs
            _cancel(self.commands, ours)
            self._wrote(self.commands.run("sbatch", *_SUBMIT, f"--comment={self._text(now)}"), now)
            self._give_way(*self._look(now), held=True)
        self._asked = now

    def give_back(self) -> None:
        """Take our notice away, so that the next daemon need not wait."""
        if self._until:
            withdraw(self.commands, self.directory)
        self._until, self._asked = 0.0, -1e12

    def _look(self, now: float) -> tuple[list[Notice], list[Notice]]:
        notices = read_notices(self.commands)
        self.jobs.clear()
        self.jobs.update(notice.job for notice in notices)
        ours = [notice for notice in notices if notice.identity == self._identity]
        return ours, [
            notice for notice in notices if notice.identity != self._identity and notice.until > now
        ]

    def _give_way(self, ours: list[Notice], others: list[Notice], held: bool) -> None:
        """Give way to an older notice: of those that count, the one that was set first wins."""
        first = min((notice.job for notice in ours), default=math.inf) if held else math.inf
        rival = next((notice for notice in others if notice.job < first), None)
        if rival is None:
            return
        _cancel(self.commands, ours)
        self._until = 0.0
        raise AnotherDaemon(
            f"another daemon acts on this cluster: {rival.in_words()}: stop that one first; "
            f"if it is dead, wait {self.lease_seconds:.0f} s, or scancel that job"
        )

    def _renew(self, ours: list[Notice], now: float) -> None:
        words = ("scontrol", "update", f"jobid={ours[0].job}", f"comment={self._text(now)}")
        self._wrote(self.commands.run(*words), now)
        _cancel(self.commands, ours[1:])

    def _text(self, now: float) -> str:
        host = _ODD.sub("_", socket.gethostname())[:64] or "_"
        place = _ODD.sub("_", str(self.directory.absolute()))[:200]
        until = int(now + self.lease_seconds) + 1
        return f"{_PREFIX}id={self._identity},until={until},host={host},pid={os.getpid()},dir={place}"

    def _wrote(self, answer: CommandResult, now: float) -> None:
        """A site that lets us leave no notice is told so once; nothing else depends on it."""
        if not answer.code:
            self._until, self._complaint = now + self.lease_seconds, ""
            return
        if answer.complaint != self._complaint:
            log.warning(
                "no notice can be left, so a second daemon would not be noticed: %s", answer.complaint
            )
        self._complaint = answer.complaint
