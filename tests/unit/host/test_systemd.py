"""The daemon tells a service manager its state."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from slurm_fair.host import systemd


@pytest.mark.parametrize(
    ("say", "watchdog", "heard"),
    [
        (systemd.ready, None, "READY=1"),
        (systemd.stopping, None, "STOPPING=1"),
        (lambda: systemd.alive(10), None, "WATCHDOG=1"),
        (lambda: systemd.alive(10), "180000000", "WATCHDOG=1"),
        (lambda: systemd.alive(100), "180000000", "WATCHDOG=1\nWATCHDOG_USEC=260000000"),
    ],
)
def test_a_service_manager_hears_the_state(
    say: Callable[[], None], watchdog: str | None, heard: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = str(tmp_path / "n")
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    if watchdog is None:
        monkeypatch.delenv("WATCHDOG_USEC", raising=False)
    else:
        monkeypatch.setenv("WATCHDOG_USEC", watchdog)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        manager.settimeout(5)
        say()
        assert manager.recv(200).decode() == heard


@pytest.mark.parametrize("address", ["", "vsock:2:9", "/nowhere/at/all", "@slurm-fair-nobody-listens"])
def test_without_a_service_manager_nothing_happens(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    assert systemd.ready() is None  # type: ignore[func-returns-value]
