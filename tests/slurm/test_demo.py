"""The demo itself, in small, as a newcomer runs it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from slurm_fair.lab import available

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(available() is not None, reason=str(available())),
]
DEMO = (sys.executable, "-m", "slurm_fair.cli", "demo")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A temporary folder for the demo's own: short, and open to all, as munged wants it."""
    with tempfile.TemporaryDirectory(prefix="demo-", dir="/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@contextmanager
def running(folder: Path, *more: str) -> Iterator[subprocess.Popen[str]]:
    """The command, with its own temporary folder; one that a failed test leaves is asked to end."""
    with subprocess.Popen(
        (*DEMO, *more),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder), "NO_COLOR": "1"},
        start_new_session=True,
    ) as demo:
        try:
            yield demo
        finally:
            demo.terminate()


def processes_of(folder: Path) -> list[str]:
    """Command lines that speak of the folder: daemon, dead-man, the lab's own."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if str(folder) in words:
                found.append(words)
    return found


@pytest.mark.timeout(150)
def test_the_quick_demo_proves_itself_compares_itself_and_leaves_nothing(folder: Path) -> None:
    with running(folder, "--quick", "--full") as demo:
        said, complained = demo.communicate(timeout=140)
    assert demo.returncode == 0, said[-3000:] + complained
    for words in (
        "\nProof\n",
        "fair share  FIFO",
        "Beside FIFO",
        "Tenant",
        "13 of 13 jobs",
        "The daemon made",
    ):
        assert words in said
    assert "FAILED" not in said
    assert "\x1b" not in said
    assert processes_of(folder) == []
    assert list(folder.iterdir()) == []


@pytest.mark.timeout(120)
def test_ctrl_c_in_the_middle_ends_daemon_dead_man_and_lab(folder: Path) -> None:
    with running(folder, "--quick", "--no-fifo") as demo:
        deadline = time.monotonic() + 60
        while not list(folder.glob("slurm-fair-demo-*/slurm_fair/jobs/*/steps.log")):
            assert demo.poll() is None, demo.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.1)
        os.killpg(demo.pid, signal.SIGINT)  # as a terminal does: to the whole group
        _, complained = demo.communicate(timeout=40)
    assert demo.returncode == 130
    assert complained.splitlines()[-1] == "slurm-fair: stopped"
    assert processes_of(folder) == []
    assert list(folder.iterdir()) == []


def test_a_lease_that_cannot_be_is_one_line_and_exit_code_two(folder: Path) -> None:
    with running(folder, "--lease", "1") as demo:
        _, complained = demo.communicate(timeout=60)
    assert demo.returncode == 2
    assert complained.count("\n") == 1
    assert "--lease" in complained
    assert list(folder.iterdir()) == []
