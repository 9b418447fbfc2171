"""Tells systemd that we are up, alive or stopping; does nothing where no service manager listens."""

from __future__ import annotations

import os
import socket
from contextlib import suppress


def ready() -> None:
    """The daemon is up."""
    _tell("READY=1")


def alive(next_seconds: float) -> None:
    """The daemon lives and speaks again in about `next_seconds`; a watchdog that is shorter is stretched."""
    wanted = 2 * next_seconds + 60.0
    given = os.environ.get("WATCHDOG_USEC", "")
    stretch = f"\nWATCHDOG_USEC={wanted * 1e6:.0f}" if given.isdigit() and int(given) < wanted * 1e6 else ""
    _tell(f"WATCHDOG=1{stretch}")


def stopping() -> None:
    """The daemon is about to end, because it was told to."""
    _tell("STOPPING=1")


def _tell(message: str) -> None:
    """One datagram; a service manager that went away is no reason to fail."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
        sender.setblocking(False)
        sender.sendto(message.encode(), address)
