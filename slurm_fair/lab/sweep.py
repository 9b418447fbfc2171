"""Find and end every process of one lab, whoever started it.

slurmd leaves its slurmstepd behind (slurm-facts: stepd-stays).

Run as `python -m slurm_fair.lab.sweep FOLDER remove|keep` it is the lab's last guard: it waits on standard
input and cleans up when the process that brought the lab up is gone without having stopped it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time
from pathlib import Path

# Debian's binaries carry "-wlm" behind these names.
PROGRAMS = frozenset({"munged", "mariadbd", "slurmdbd", "slurmctld", "slurmd", "slurmstepd"})
STOPPED = b"stopped\n"


def lab_processes(folder: Path) -> tuple[int, ...]:
    """The daemons and jobs whose environment, arguments or working folder say that they are this lab's."""
    own = os.getpid()
    return tuple(
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and int(entry.name) != own and _belongs(entry, folder)
    )


def _belongs(entry: Path, folder: Path) -> bool:
    """A shell with this SLURM_CONF does not belong to the lab; a daemon or a job with it does."""
    try:
        program = (
            os.readlink(entry / "exe").removesuffix(" (deleted)").removesuffix("-wlm").rpartition("/")[2]
        )
        environment = (entry / "environ").read_bytes().split(b"\0")
        if f"SLURM_CONF={folder}/slurm.conf".encode() in environment:
            return program in PROGRAMS or any(item.startswith(b"SLURM_JOB_ID=") for item in environment)
        if program not in PROGRAMS:
            return False
        arguments = (entry / "cmdline").read_bytes().split(b"\0")
        inside = f"{folder}/"
        return f"{os.readlink(entry / 'cwd')}/".startswith(inside) or any(
            inside.encode() in argument for argument in arguments
        )
    except OSError:
        return False  # ended meanwhile, or another user's


def kill_leftovers(folder: Path, timeout_seconds: float = 10.0) -> tuple[int, ...]:
    """Kill the lab's processes until none is left; returns those that would not die."""
    deadline = time.monotonic() + timeout_seconds
    while True:
        found = lab_processes(folder)
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.02)


def guard(folder: Path, remove: bool) -> None:
    """Wait until the owner says that it stopped the lab, or is gone; then do what it did not."""
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    if sys.stdin.buffer.read() == STOPPED:
        return
    kill_leftovers(folder)
    if remove:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    guard(Path(sys.argv[1]), remove=sys.argv[2] == "remove")
