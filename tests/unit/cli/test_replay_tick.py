"""`replay-tick` of a tick whose plan is not the one that the policy makes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from click.testing import CliRunner, Result

from slurm_fair.cli.main import cli
from slurm_fair.errors import SlurmFairError
from slurm_fair.store import open_journal
from tests.support.board_scene import recorded


def replayed(tmp_path: Path, note: str) -> Result:
    storage = tmp_path / "storage"
    storage.mkdir(mode=0o750)
    record, standing = recorded()
    with open_journal(storage / "journal.db") as journal:
        journal.append(
            record._replace(number=1, plan=replace(record.plan, note=note)), standing._replace(tick=1)
        )
    config = tmp_path / "fair.toml"
    config.write_text(f'[storage]\ndir = "{storage}"\n[lease]\npublish_dir = ""\n')
    return CliRunner().invoke(cli, ["--config", str(config), "replay-tick"])


def test_a_plan_that_stood_in_for_another_is_told_as_such(tmp_path: Path) -> None:
    done = replayed(tmp_path, "the plan was not there after 30.0 s; its quick plan stands in")
    assert done.exit_code == 0
    said = "another plan was carried out than the policy makes: the plan was not there after 30.0 s"
    assert said in done.output


def test_any_other_that_comes_out_differently_is_a_failure(tmp_path: Path) -> None:
    done = replayed(tmp_path, "")
    assert isinstance(done.exception, SlurmFairError)
    assert "comes out differently" in str(done.exception)
