"""Batch scripts run as slurmstepd runs them, but by the test: what stands in for Slurm is a signal."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from slurm_fair_templates import Options, wrap

BASH = shutil.which("bash") or "/bin/bash"
NOWHERE = (Path("/nonexistent/user"), Path("/nonexistent/site"))


class Run:
    """One run of a batch script."""

    def __init__(
        self, folder: Path, script: str, options: Options, arguments: tuple[str, ...], env: dict[str, str]
    ) -> None:
        self.folder = folder
        self.output = folder / "output"
        (folder / "batch").write_text(wrap(script, arguments, options, NOWHERE))
        with self.output.open("ab") as file:
            self.process = subprocess.Popen(
                [BASH, folder / "batch"],
                cwd=folder,
                env={"PATH": os.environ["PATH"], "SLURM_JOB_ID": "7", **env},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def messages(self) -> Path:
        """The folder in which the controller looks."""
        return self.folder / ".slurm-fair" / "7"

    def read(self, name: str) -> dict[str, Any]:
        """One message, or nothing yet."""
        path = self.messages / name
        document: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        return document

    def text(self) -> str:
        """The output of the job."""
        return self.output.read_text()

    def until(self, true: Callable[[], bool], seconds: float = 20) -> None:
        deadline = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < deadline, f"not within {seconds} s; printed: {self.text()!r}"
            time.sleep(0.02)

    def says(self, text: str) -> None:
        """Wait for a text in the output."""
        self.until(lambda: text in self.text())

    def ask(self, signum: int = signal.SIGUSR2) -> None:
        """A signal as scancel --batch --signal sends it."""
        self.process.send_signal(signum)

    def requeue(self) -> None:
        """End a run as slurmstepd does: SIGTERM for all its processes, SIGKILL for what outlives the script."""
        self._signal(signal.SIGTERM)
        self.process.wait(20)
        self._signal(signal.SIGKILL)

    def kill(self) -> None:
        """The end without notice, of all its processes."""
        self._signal(signal.SIGKILL)
        self.process.wait(20)

    def _signal(self, signum: int) -> None:
        argv = ["ps", "-o", "pid=", "-s", str(self.process.pid)]
        family = subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False)
        for pid in family.stdout.split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signum)

    def ends(self, seconds: float = 20) -> int:
        """The exit code of the job."""
        return self.process.wait(seconds)


@contextlib.contextmanager
def starting(folder: Path) -> Iterator[Callable[..., Run]]:
    """A function that starts runs in a folder; what is left of them ends with the test."""
    runs: list[Run] = []

    def begin(script: str, *arguments: str, options: Options | None = None, **env: str) -> Run:
        runs.append(Run(folder, script, options or Options(), arguments, env))
        return runs[-1]

    try:
        yield begin
    finally:
        for run in runs:
            run.kill()
