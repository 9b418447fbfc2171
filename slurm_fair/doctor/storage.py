"""The storage directory, the journal in it, the daemon and its dead-man."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

from slurm_fair.doctor.facts import Facts
from slurm_fair.doctor.finding import Finding, error, ok, warning
from slurm_fair.errors import SlurmFairError, StoreBusy, UnsafeStore
from slurm_fair.host.own_python import FOLDER, our_environment
from slurm_fair.host.state_folder import Places, last_beat
from slurm_fair.model.counted import counted
from slurm_fair.slurm.command import SAFE_PATH
from slurm_fair.store import open_reader

_LITTLE_MB = 100.0
_REMOTE = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "lustre", "beegfs", "gpfs", "ceph", "fuse.sshfs", "glusterfs"}
)
_OF_THE_KERNEL = frozenset({"proc", "sysfs", "cgroup", "cgroup2", "devpts", "debugfs", "securityfs"})
TIMER = "slurm-fair-deadman.timer"


def findings(facts: Facts) -> Iterator[Finding]:
    directory = facts.places.directory
    if os.path.islink(directory):
        yield error(
            f"{directory} is a link: the daemon follows none here", "name the folder in [storage] dir"
        )
        return
    if not os.path.isdir(directory):  # unlike Path.is_dir, no error where a parent is closed to us
        yield from would_be_made(directory, facts.account)
        return
    if directory == Path("/"):
        yield warning("[storage] dir is / itself", "give the journal a folder of its own")
    if not os.access(directory, os.X_OK):
        yield warning(f"{directory}: closed to {facts.account}", "run this as the daemon's account")
        return
    yield owner(directory, facts)
    yield space(directory, facts.config.storage.max_mb)
    yield from remote(directory)
    yield journal(facts)
    yield from daemon(facts)


def would_be_made(directory: Path, account: str) -> Iterator[Finding]:
    """No directory yet: whether the daemon could make it."""
    there = next(place for place in (directory, *directory.parents) if os.path.lexists(place))
    if not os.path.isdir(there) or file_system(there, Path("/proc/mounts")) in _OF_THE_KERNEL:
        what = "is no folder" if there == directory else f"cannot be made: {there} is no folder for it"
        yield error(f"{directory} {what}", "set [storage] dir to a folder, or move away what stands there")
    elif os.access(there, os.W_OK):
        yield ok(f"{directory} is not there yet; the daemon makes it")
    else:
        yield warning(
            f"{directory} is not there, and {account} may not make it",
            f"install -d -m 0750 -o {account} {directory}, or set [storage] dir (systemd makes it by itself)",
        )


def owner(directory: Path, facts: Facts) -> Finding:
    """Check whether it is the daemon's alone."""
    found = directory.stat()
    mode = stat.S_IMODE(found.st_mode)
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        return error(f"{directory}: others may write it (mode {mode:04o})", f"chmod 0750 {directory}")
    if found.st_uid != facts.uid:
        return warning(
            f"{directory} belongs to uid {found.st_uid}, not to {facts.account} that runs this",
            "run this as the daemon's account, so that its rights are looked at",
        )
    return ok(f"{directory} belongs to {facts.account}, mode {mode:04o}")


def space(directory: Path, wanted_mb: float) -> Finding:
    """Check whether the journal has room: without it nothing is done to any job."""
    free = shutil.disk_usage(directory).free / 1024**2
    if free < _LITTLE_MB:
        return error(f"{directory}: {free:.0f} MB free", "make room: without it nothing is done to any job")
    if free < wanted_mb:
        return warning(
            f"{directory}: {free:.0f} MB free, the journal may take {wanted_mb:g} MB",
            "make room or lower [storage] max_mb",
        )
    return ok(f"{directory}: {free / 1024:.1f} GB free")


def remote(directory: Path) -> Iterator[Finding]:
    """SQLite's journal wants a local disk."""
    kind = file_system(directory, Path("/proc/mounts"))
    if kind in _REMOTE:
        yield warning(
            f"{directory} lies on {kind}, a network file system", "set [storage] dir to a local disk"
        )


def file_system(directory: Path, mounts: Path) -> str:
    """Type of the file system that a directory lies on; empty when it cannot be told."""
    try:
        lines = [line.split() for line in mounts.read_text(errors="surrogateescape").splitlines()]
    except OSError:
        return ""
    here = str(directory.resolve())
    above = [
        (line[1], line[2])
        for line in lines
        if len(line) > 2 and (here == line[1] or here.startswith(line[1].rstrip("/") + "/"))
    ]
    return max(above, key=lambda mount: len(mount[0]), default=("", ""))[1]


def journal(facts: Facts) -> Finding:
    """Check whether it opens and has this version's tables."""
    path = facts.places.journal
    if not os.path.exists(path):
        return ok("no journal yet: the daemon makes it")
    if not os.access(path, os.R_OK):
        return warning(f"{path}: closed to {facts.account}", "run this as the daemon's account")
    try:
        with open_reader(path) as reader:
            standing = reader.latest()
    except UnsafeStore as problem:
        return error(str(problem), "mend its mode: whoever writes the journal rules the queue")
    except StoreBusy as problem:
        return warning(str(problem), "nothing is done to any job until that is over")
    except SlurmFairError as problem:
        return error(
            str(problem),
            "see docs/troubles.md, `When the journal is damaged`; `slurm-fair fail-open --stamped` frees the jobs",
        )
    return ok(f"the journal opens, {counted(standing.tick if standing else 0, 'tick')}")


def daemon(facts: Facts) -> Iterator[Finding]:
    """Check whether it runs, and whether somebody watches it."""
    if os.path.exists(facts.places.paused):
        yield warning("paused by an admin: nothing is done to any job", "slurm-fair resume")
    beat = last_beat(facts.places)
    runs = lock_is_listed(facts.places.journal.with_name("journal.db.lock"))
    if beat is None and os.path.exists(facts.places.heartbeat):
        yield from unreadable(runs, facts)
        return
    if not runs:
        if beat is not None:
            yield warning(
                "the daemon is gone and left jobs of its own: the dead-man frees them within a lease",
                "start it again, or `slurm-fair fail-open`",
            )
        elif os.path.exists(facts.places.journal):
            yield warning(
                "the daemon does not run, though it has run here: nothing is done to any job",
                "start its service",
            )
        else:
            yield ok("the daemon does not run")
        return
    age = facts.now - beat.time if beat else 0.0
    if beat is not None and age > beat.limit_seconds and not os.path.exists(facts.places.paused):
        yield error(
            f"the daemon is silent since {age:.0f} s",
            "look at its log; `slurm-fair fail-open` frees its jobs",
        )
    elif beat is not None:
        yield ok(f"the daemon runs (last sign of life {age:.0f} s ago)")
        if beat.blind:
            yield warning(f"the daemon is blind, so nothing is done: {beat.blind}", "look at its log")
    else:
        yield ok("the daemon runs, as a shadow")
    if beat is None or somebody_watches(facts.places):
        yield ok("the dead-man watches" if beat else "a shadow needs no dead-man")
    else:
        yield warning(
            "no dead-man watches the daemon: if it dies, pins stay until their gates run out",
            f"systemctl enable --now {TIMER}, or start the daemon without --no-deadman",
        )


def unreadable(runs: bool, facts: Facts) -> Iterator[Finding]:
    """Only a daemon that acts leaves a heartbeat; nobody knows of which start one is that cannot be read."""
    if not runs:
        known = f"the daemon does not run; {facts.account} cannot read its heartbeat, so whether it left jobs"
        yield warning(f"{known} of its own is not known", "run this as the daemon's account")
        return
    yield warning(
        f"the daemon runs; {facts.account} cannot read its heartbeat, so whether it acts, and well, is not known",
        "run this as the daemon's account",
    )
    if somebody_watches(facts.places):
        yield ok("the dead-man watches")


def lock_is_listed(path: Path) -> bool:
    """True if somebody holds its lock; taking it to find out would be in the way."""
    try:
        inode = path.stat().st_ino
        locks = Path("/proc/locks").read_text()
    except OSError:
        return False
    return any(f":{inode} " in line and "FLOCK" in line for line in locks.splitlines())


def somebody_watches(places: Places) -> bool:
    """True if a dead-man watches, or a timer starts one."""
    return lock_is_listed(places.deadman_lock) or _timer_is_on()


def _timer_is_on() -> bool:
    program = shutil.which("systemctl", path=SAFE_PATH)
    if program is None:
        return False
    try:
        asked = subprocess.run(
            [program, "is-active", "--quiet", TIMER],
            capture_output=True,
            timeout=5,
            check=False,
            env=our_environment(),
            cwd=FOLDER,
        )
    except subprocess.TimeoutExpired:
        return False
    return asked.returncode == 0
