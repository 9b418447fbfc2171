"""The real daemon, `slurm-fair run`, as a process of its own beside the lab: started, watched, ended for good."""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from slurm_fair.demo.scenario import POLICY, DemoScenario
from slurm_fair.errors import LabError
from slurm_fair.host.own_python import FOLDER, our_environment, our_program
from slurm_fair.host.state_folder import Places, last_beat

_FIRST_BEAT_SECONDS = 30.0
_END_SECONDS = 20.0
_COMPLAINTS = (" ERROR ", " CRITICAL ", "Traceback")


def demo_configuration(scenario: DemoScenario, slurm_conf: Path, storage: Path, published: Path) -> str:
    """slurm-fair.toml of the demo; tenants' weights are Slurm's own shares."""
    return "\n".join(
        [
            "[lease]",
            f"term = {scenario.lease_seconds:g}",
            f"interval = {scenario.interval_seconds:g}",
            f"grace = {scenario.grace_seconds:g}",
            'align = "aligned"',
            f'publish_dir = "{published}"',
            "[policy]",
            f'name = "{POLICY}"',
            f"[policy.{POLICY}]",
            *(f"{name} = {value!r}" for name, value in scenario.policy_settings.items()),
            "[slurm]",
            f'conf = "{slurm_conf}"',
            "notice = false",  # nobody else knows this cluster
            "[storage]",
            f'dir = "{storage}"',
            "",
        ]
    )


def complaints_in(path: Path) -> tuple[str, ...]:
    """The warnings and errors of a daemon's log."""
    return tuple(line for line in _lines(path) if any(word in line for word in _COMPLAINTS))


def _lines(path: Path) -> tuple[str, ...]:
    try:
        return tuple(line for line in path.read_text(errors="replace").splitlines() if line.strip())
    except OSError:
        return ()


@dataclass(slots=True)
class Controller:
    """One daemon and the dead-man that it starts."""

    folder: Path
    _process: subprocess.Popen[bytes] | None = None

    @property
    def places(self) -> Places:
        """Its journal and the files beside it."""
        return Places(self.folder / "storage")

    @property
    def board(self) -> Path:
        """The board that it publishes for users."""
        return self.folder / "published" / "board.json"

    @property
    def log(self) -> Path:
        return self.folder / "daemon.log"

    def start(self, text: str) -> None:
        """Write its configuration, start it, wait until it ticks."""
        config = self.folder / "slurm-fair.toml"
        for made in (self.places.directory, self.board.parent):
            made.mkdir(mode=0o755, parents=True)
        self.places.directory.chmod(0o750)
        config.write_text(text)
        with self.log.open("ab") as said:
            self._process = subprocess.Popen(
                our_program("--config", str(config.absolute()), "run"),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env=our_environment(),
                cwd=FOLDER,
                start_new_session=True,  # Ctrl-C is for the demo, which then ends it in good order
            )
        self._await_first_tick()

    def _await_first_tick(self) -> None:
        deadline = time.monotonic() + _FIRST_BEAT_SECONDS
        while not self.board.exists():
            self.check()
            if time.monotonic() > deadline:
                raise LabError(
                    f"the daemon made no tick within {_FIRST_BEAT_SECONDS:g} s: {self._last()} (log: {self.log})"
                )
            time.sleep(0.05)

    def check(self) -> None:
        """LabError when it has ended by itself."""
        if self._process is not None and self._process.poll() is not None:
            code = self._process.returncode
            raise LabError(f"the daemon ended by itself with code {code}: {self._last()} (log: {self.log})")

    def stop(self) -> int:
        """End the daemon and its dead-man; its exit code."""
        code = 0
        if self._process is not None:
            self._process.terminate()
            try:
                code = self._process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                code = self._process.wait()
            self._process = None
        if last_beat(self.places) is not None:
            self.places.heartbeat.unlink(missing_ok=True)  # without a heartbeat the dead-man has no work
            self._await_deadman()
        return code

    def _await_deadman(self) -> None:
        """Wait for the dead-man to end: it holds this lock while it lives."""
        deadline = time.monotonic() + _END_SECONDS
        with contextlib.suppress(FileNotFoundError), self.places.deadman_lock.open("rb") as lock:
            while time.monotonic() < deadline:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return
                except BlockingIOError:
                    time.sleep(0.05)
            raise LabError(f"the dead-man does not end (its log: {self.places.deadman_log}, {os.getpid()=})")

    def complaints(self) -> tuple[str, ...]:
        """The warnings and errors of its log."""
        return complaints_in(self.log)

    def _last(self) -> str:
        """Its last complaint, else its last word."""
        return (self.complaints() or _lines(self.log) or ("it said nothing",))[-1]
