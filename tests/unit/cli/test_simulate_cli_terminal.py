"""`slurm-fair simulate` and `slurm-fair sweep` on a terminal."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
from pathlib import Path

from tests.support.simulations import made


def _on_terminals(
    trace: Path, *arguments: str, environment: dict[str, str], command: str = "simulate"
) -> tuple[str, str]:
    """The texts that a terminal on each of both outputs was given."""
    ours, theirs = zip(pty.openpty(), pty.openpty(), strict=True)
    words = [sys.executable, "-m", "slurm_fair.cli", command, str(trace), "--gpus", "16", *arguments]
    process = subprocess.Popen(
        words, stdout=theirs[0], stderr=theirs[1], env={**os.environ, "TERM": "xterm", **environment}
    )
    for end in theirs:
        os.close(end)
    heard = dict.fromkeys(ours, b"")
    open_ = set(ours)
    while open_:
        for end in select.select(list(open_), [], [], 60)[0]:
            piece = _read(end)
            heard[end] += piece
            if not piece:
                open_.remove(end)
                os.close(end)
    assert process.wait(timeout=60) == 0
    return heard[ours[0]].decode(), heard[ours[1]].decode()


def _read(end: int) -> bytes:
    try:
        return os.read(end, 65536)
    except OSError:  # nobody holds the other end any more
        return b""


def test_a_terminal_sees_a_bar_and_emphasis_unless_it_wants_none(tmp_path: Path) -> None:
    trace = made(tmp_path)
    out, err = _on_terminals(trace, "--policy", "fifo,srtf", "--workers", "2", environment={})
    assert ("of 40 jobs" in err, "srtf" in err, "\x1b[1m" in out) == (True, True, True)
    out, err = _on_terminals(trace, "--policy", "fifo,srtf", environment={"NO_COLOR": "1"})
    assert ("of 40 jobs" in err, "\x1b" in out) == (True, False)


def test_a_sweep_on_a_terminal_shows_how_many_runs_are_over(tmp_path: Path) -> None:
    file = str(tmp_path / "sweep.db")
    out, err = _on_terminals(
        made(tmp_path, jobs=6), "--policy", "fifo", "--seed", "0-1", "--out", file,
        environment={}, command="sweep",
    )  # fmt: skip
    assert ("2 of 2" in err, "\x1b[1m" in out, "fifo" in out) == (True, True, True)
