"""Free TCP ports for a lab, so that labs that start at the same moment never collide.

A lock is held by listening names in Linux's abstract socket space: they need no file, belong to the same
network namespace as the ports that they stand for, and vanish with the process that holds them.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass, field
from pathlib import Path

from slurm_fair.errors import LabError

BLOCK = 16
FIRST_PORT = 12_000
LOOPBACK = "127.0.0.1"
EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")


@dataclass(slots=True)
class PortLock:
    """Consecutive ports that no other lab gets while this lock is open."""

    ports: tuple[int, ...]
    _holders: list[socket.socket] = field(repr=False)

    def release(self) -> None:
        """Let others have the ports; safe to call twice."""
        while self._holders:
            self._holders.pop().close()


def name_is_loopback() -> bool:
    """True when this machine's name means 127.0.0.1.

    Debian's 127.0.1.1 does not do: srun would listen there, while the kernel sends its requests, and therefore
    the answers, from and to 127.0.0.1.
    """
    try:
        found = socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET, socket.SOCK_STREAM)
    except OSError:
        return False
    return found[0][4][0] == LOOPBACK


def port_ceiling() -> int:
    """The first port that the kernel may hand to outgoing connections; a lab stays below it."""
    try:
        lowest = int(EPHEMERAL.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        lowest = 32_768
    return lowest if lowest > FIRST_PORT + 4 * BLOCK else 65_536


def lock_ports(count: int, *, start_hint: int | None = None) -> PortLock:
    """Lock `count` consecutive free ports; start_hint spreads the search."""
    blocks = (port_ceiling() - FIRST_PORT) // BLOCK
    needed = -(-count // BLOCK)
    hint = os.getpid() if start_hint is None else start_hint
    for offset in range(blocks):
        first = (hint + offset) % blocks
        if first + needed > blocks:
            continue
        lock = _locked(first, needed, count)
        if lock is not None:
            return lock
    raise LabError(
        f"no {count} free ports in a row between {FIRST_PORT} and {port_ceiling() - 1}: "
        "stop other labs or services, or ask for fewer nodes"
    )


def _locked(first_block: int, needed: int, count: int) -> PortLock | None:
    """Hold the blocks, then see whether strangers use any of the ports."""
    start = FIRST_PORT + first_block * BLOCK
    lock = PortLock(tuple(range(start, start + count)), [])
    for block in range(first_block, first_block + needed):
        holder = _hold(f"\0slurm-fair-lab-ports/{block}")
        if holder is None:
            lock.release()
            return None
        lock._holders.append(holder)
    if all(port_is_free(port) for port in lock.ports):
        return lock
    lock.release()
    return None


def _hold(name: str) -> socket.socket | None:
    """Bind an abstract name, or None where another process has it."""
    holder = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        holder.bind(name)
    except OSError:
        holder.close()
        return None
    return holder


def port_is_free(port: int) -> bool:
    """True when a daemon could listen on this port, whatever the address."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("0.0.0.0", port))
        except OSError:
            return False
    return True


def port_answers(port: int) -> bool:
    """True when something accepts connections on this port of the loopback interface."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((LOOPBACK, port)) == 0
