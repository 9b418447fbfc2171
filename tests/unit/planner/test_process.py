"""A planning process: it ends with its parent, hears no signal of its, and has nothing of its but two pipes."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.planning import comes_true, files_of, lives, planner_of, shown
from tests.support.solving_policies import Solving

ROOT = Path(__file__).parents[3]
_PARENT = """
import sys
sys.path.insert(0, {root!r})
from slurm_fair.planner import IsolatedPlanner
from tests.support.planning import shown
from tests.support.solving_policies import Solving
planner = IsolatedPlanner(Solving({does!r}, every=100))
planner.plan(shown(1010.0), 60.0)
print(planner.process.number, flush=True)
{then}
"""


@pytest.mark.parametrize("does", ["plans", "hangs"])
def test_it_ends_with_its_parent_also_while_it_hangs(does: str) -> None:
    code = _PARENT.format(root=str(ROOT), does=does, then="planner.plan(shown(1000.0), 600.0); input()")
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        time.sleep(0.3)
        assert lives(child)
        parent.kill()
        assert comes_true(lambda: not lives(child))


def test_a_parent_that_ends_leaves_none_behind() -> None:
    code = _PARENT.format(root=str(ROOT), does="plans", then="")
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert comes_true(lambda: not lives(int(done.stdout)))


def test_signals_to_its_parent_are_nothing_to_it() -> None:
    with planner_of(Solving()) as planner:
        planner.plan(shown(), 20.0)
        assert planner.process is not None
        child = planner.process.number
        assert os.getsid(child) == child, "a terminal's signals go to another session"
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            os.kill(child, number)
        time.sleep(0.2)
        assert planner.plan(shown(), 20.0).note == ""
        assert planner.process.number == child


def test_it_has_no_file_of_its_parent_and_stands_behind_it(tmp_path: Path) -> None:
    lock = (tmp_path / "lock").open("w")
    os.set_inheritable(lock.fileno(), True)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with planner_of(Solving()) as planner:
        planner.plan(shown(), 20.0)
        assert planner.process is not None
        child = planner.process.number
        open_files = files_of(child)
        assert not [name for name in open_files if str(tmp_path) in name]
        assert (
            sum(name.startswith("pipe:") for name in open_files) <= 4
        )  # two of its own, and perhaps its log
        lock.close()
        with (tmp_path / "lock").open() as again:
            fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)
        stat = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
        assert int(stat[16]) == min(os.getpriority(os.PRIO_PROCESS, 0) + 5, 19)
        assert os.readlink(f"/proc/{child}/cwd") == "/"
