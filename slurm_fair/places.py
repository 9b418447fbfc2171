"""The files that daemon, dead-man and commands share in the storage directory."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from slurm_fair.errors import StoreError


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The daemon lives and acts; its age is the age of the file."""

    pid: int
    time: float
    limit_seconds: float
    gate: str


@dataclass(frozen=True, slots=True)
class Places:
    """Names of files under one directory."""

    directory: Path

    @property
    def journal(self) -> Path:
        """The SQLite journal."""
        return self.directory / "journal.db"

    @property
    def heartbeat(self) -> Path:
        """Touched in every tick that may act."""
        return self.directory / "heartbeat.json"

    @property
    def paused(self) -> Path:
        """While it exists nothing is done to any job."""
        return self.directory / "paused"

    @property
    def fail_open(self) -> Path:
        """Asks the daemon to free everything and stop."""
        return self.directory / "fail-open"

    @property
    def deadman_lock(self) -> Path:
        """Held by the one dead-man that watches."""
        return self.directory / "deadman.lock"

    @property
    def deadman_log(self) -> Path:
        """What the dead-man did."""
        return self.directory / "deadman.log"

    @property
    def slurm_conf(self) -> Path:
        """Our copy of slurm.conf with a short MessageTimeout."""
        return self.directory / "slurm.conf"


def write_whole(path: Path, text: str, mode: int = 0o600) -> None:
    """Write beside, sync, rename: readers see the old file or the new one."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
        with os.fdopen(handle, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as problem:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise StoreError(f"{path}: cannot be written: {problem.strerror}") from None


def beat(places: Places, heartbeat: Heartbeat) -> None:
    """Leave a heartbeat; not synced, because it means nothing after a crash of the machine."""
    beside = places.heartbeat.with_name(f".heartbeat.{os.getpid()}")
    try:
        beside.write_text(json.dumps(asdict(heartbeat)))
        beside.replace(places.heartbeat)
    except OSError as problem:
        raise StoreError(f"{places.heartbeat}: cannot be written: {problem.strerror}") from None


def last_beat(places: Places) -> Heartbeat | None:
    """The last heartbeat; None when there never was one."""
    try:
        return Heartbeat(**json.loads(places.heartbeat.read_text()))
    except (OSError, ValueError, TypeError):
        return None
