"""One daemon of the lab: start it, know when it answers, end it, hold it still."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from slurm_fair.errors import LabError

POLL_SECONDS = 0.02


@dataclass(slots=True)
class LabDaemon:
    """A program that runs in the foreground, in a session of its own, so that Ctrl-C does not reach it."""

    name: str
    argv: tuple[str, ...]
    said: Path
    env: Mapping[str, str]
    answers: Callable[[], bool]
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def pid(self) -> int | None:
        """The process while it runs."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def start(self) -> None:
        """Start it unless it runs."""
        if self.pid is not None:
            return
        with self.said.open("ab") as log:
            self._process = subprocess.Popen(
                self.argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=dict(self.env),
                cwd=self.said.parent,
                start_new_session=True,
            )

    def wait_ready(self, timeout_seconds: float) -> None:
        """Wait until it answers; its own last words say why it does not."""
        deadline = time.monotonic() + timeout_seconds
        while not self.answers():
            if self.pid is None:
                raise LabError(f"{self.name} ended at once: {last_words(self.said)} (log: {self.said})")
            if time.monotonic() > deadline:
                raise LabError(
                    f"{self.name} did not answer within {timeout_seconds:g} s: "
                    f"{last_words(self.said)} (log: {self.said})"
                )
            time.sleep(POLL_SECONDS)

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self._signal(signal.SIGKILL)
        self._reap(None)

    def halt(self, timeout_seconds: float = 20.0) -> None:
        """SIGTERM, and wait until it has put its state away; one that does not end is killed."""
        self._signal(signal.SIGTERM)
        self._signal(signal.SIGCONT)
        if not self._reap(timeout_seconds):
            self.kill()

    def freeze(self) -> None:
        """SIGSTOP, and wait until it stands still: it keeps its ports and answers nothing."""
        self._signal(signal.SIGSTOP)
        while self.pid is not None and self._state() not in "Tt":
            time.sleep(POLL_SECONDS)

    def thaw(self) -> None:
        """SIGCONT: it goes on, with everything that was sent to it meanwhile."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    def _reap(self, timeout_seconds: float | None) -> bool:
        """True once the process has ended."""
        if self._process is None:
            return True
        try:
            self._process.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            return False
        self._process = None
        return True

    def _state(self) -> str:
        """The letter of the process's state; one that is gone counts as standing still."""
        try:
            stat = Path(f"/proc/{self.pid}/stat").read_text()
        except OSError:
            return "T"
        return stat.rpartition(")")[2].split()[0]


def last_words(log: Path) -> str:
    """The last two complaints in a log, else its last line: newer releases end with a general one."""
    try:
        lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    except OSError:
        lines = []
    complaints = [line for line in lines if "fatal" in line.lower() or "error" in line.lower()]
    return "; ".join(complaints[-2:] or lines[-1:] or ["it said nothing"])


def socket_answers(path: Path) -> bool:
    """True when something accepts connections on this Unix socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(os.fspath(path))
        except OSError:
            return False
    return True
