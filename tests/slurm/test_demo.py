"""The demo itself, in small, as a newcomer runs it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from slurm_fair.lab import available

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(available() is not None, reason=str(available())),
]
DEMO = (sys.executable, "-m", "slurm_fair.cli", "demo", "--quick")


def start(tmp_path: Path, *more: str) -> subprocess.Popen[str]:
    """The command, with a temporary folder of its own; short, since it holds Unix sockets."""
    return subprocess.Popen(
        (*DEMO, *more),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path), "NO_COLOR": "1"},
        start_new_session=True,
    )


def processes_of(tmp_path: Path) -> list[str]:
    """Command lines that speak of the folder: daemon, dead-man, the lab's own."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if str(tmp_path) in words:
                found.append(words)
    return found


@pytest.mark.timeout(150)
def test_the_quick_demo_proves_itself_compares_itself_and_leaves_nothing(tmp_path: Path) -> None:
    demo = start(tmp_path)
    said, complained = demo.communicate(timeout=140)
    assert demo.returncode == 0, said[-3000:] + complained
    for words in ("\nProof\n", "plain Slurm FIFO", "Tenant", "13 of 13 jobs", "The daemon made"):
        assert words in said
    assert "FAILED" not in said
    assert "\x1b" not in said
    assert processes_of(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.timeout(120)
def test_ctrl_c_in_the_middle_ends_daemon_dead_man_and_lab(tmp_path: Path) -> None:
    demo = start(tmp_path, "--no-fifo")
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("slurm-fair-demo-*/slurm_fair/jobs/*/steps.log")):
        assert demo.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)
    os.killpg(demo.pid, signal.SIGINT)  # as a terminal does: to the whole group
    _, complained = demo.communicate(timeout=40)
    assert demo.returncode == 130
    assert complained.splitlines()[-1] == "slurm-fair: stopped"
    assert processes_of(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_a_lease_that_cannot_be_is_one_line_and_exit_code_two(tmp_path: Path) -> None:
    demo = subprocess.run(
        (*DEMO[:-1], "--lease", "1"), capture_output=True, text=True, timeout=60, env={**os.environ}
    )
    assert demo.returncode == 2
    assert demo.stderr.count("\n") == 1
    assert "--lease" in demo.stderr
    assert list(tmp_path.iterdir()) == []
