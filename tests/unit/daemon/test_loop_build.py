"""A daemon is put together: a shadow can neither act nor leave marks, and fail-open takes only ours for ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from slurm_fair.config.tree import from_tree
from slurm_fair.daemon.loop import Daemon
from slurm_fair.host.state_folder import Places
from slurm_fair.looks.wall_clock import WallClock
from slurm_fair.model import Action, Result, Verb
from slurm_fair.model.ids import pack
from slurm_fair.model.mark import Mark
from slurm_fair.slurm.cluster import SlurmCluster
from slurm_fair.slurm.ownership.ours import kept_by_us
from slurm_fair.slurm.reading.stamp import Stamp
from slurm_fair.store import open_journal


@pytest.mark.parametrize("dry_run", [True, False])
def test_only_a_daemon_that_is_no_shadow_acts_and_leaves_marks(tmp_path: Path, dry_run: bool) -> None:
    storage, bin_dir = tmp_path / "storage", tmp_path / "bin"
    storage.mkdir(mode=0o750)
    bin_dir.mkdir()
    for name in ("squeue", "scontrol"):
        (bin_dir / name).write_text(f'#!/bin/sh\necho {name} >>"{tmp_path}/called"\nexit 1\n')
        (bin_dir / name).chmod(0o755)
    tree = {
        "storage": {"dir": str(storage)},
        "lease": {"publish_dir": ""},
        "slurm": {"bin_dir": str(bin_dir)},
    }
    with open_journal(storage / "journal.db") as journal:
        daemon = Daemon.build(from_tree(tree, "here"), Places(storage), WallClock(), journal, dry_run)
        outcomes = daemon.cluster.actuate(
            [Action(Verb.REQUEUE, pack(7), 7, 100.0, 0, why="its lease is over")]
        )
        assert [outcome.result for outcome in outcomes] != [Result.DONE]
        assert (tmp_path / "called").exists() is not dry_run, "a shadow does not even look before an act"
        real = daemon.adapter
        assert isinstance(real, SlurmCluster)
        real.marks.set([Mark(pack(7), 7, False, 100.0, 0, 200.0, False, 0.0)])
        assert bool(journal.marks()) is not dry_run


@pytest.mark.parametrize(("restarts", "ours"), [(0, True), (1, False)])
def test_a_hold_on_a_job_that_has_run_is_not_freed_as_ours(restarts: int, ours: bool) -> None:
    row: Any = {"restarts": restarts, "eligible": 0.0, "submit": 100.0, "priority": 0}
    assert kept_by_us(row, Stamp(1, gate="hold"), "JobHeldUser", lost=False, scheduled=100.0) is ours
