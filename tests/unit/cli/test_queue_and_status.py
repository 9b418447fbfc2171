"""`queue` and `status` out of a journal, and out of a board that names nobody."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from slurm_fair.board.board import draw
from slurm_fair.board.health import NAME, DaemonState, Health
from slurm_fair.board.nameless import nameless
from slurm_fair.cli.main import cli
from slurm_fair.errors import InputError
from slurm_fair.model import Event
from slurm_fair.model.ids import pack
from slurm_fair.model.snapshot import LeftAlone
from slurm_fair.slurm import notice
from slurm_fair.store import open_journal
from tests.support.board_scene import NOW, recorded


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A storage with one tick, in which a job of sue ended, and expected starts that were off."""
    storage = tmp_path / "storage"
    storage.mkdir(mode=0o750)
    ended = Event(NOW - 50, "finished", pack(77), "speech", 8, {"user": "sue", "end": NOW - 50, "had": 5.0})
    with open_journal(storage / "journal.db") as journal:
        journal.append(*recorded(events=(ended,)))
    said = {"v": 1, "open": [], "errors": [[NOW - 60, 90.0]]}
    (storage / "estimates.json").write_text(json.dumps(said))
    config = tmp_path / "fair.toml"
    config.write_text(f'[storage]\ndir = "{storage}"\n[lease]\npublish_dir = ""\n')
    return config


def said_by(config: Path, *words: str) -> str:
    """The output of a command."""
    done = CliRunner().invoke(cli, ["--config", str(config), *words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_status_fits_a_terminal_of_80_columns_and_tells_how_far_off_estimates_were(site: Path) -> None:
    said = said_by(site, "status")
    table = [line for line in said.splitlines() if line.startswith(("Tenant", "vision", "speech", "nlp"))]
    assert len(table) == 4
    assert max(map(len, table)) <= 80
    assert "Expected starts of the last day were off by 1.5 min" in said
    assert "looks at least every" not in said, "a daemon that is silent does not look"


@pytest.mark.parametrize("option", ["--tenant", "--user"])
def test_a_queue_of_an_empty_name_is_refused(option: str, site: Path) -> None:
    with pytest.raises(InputError, match=f"{option} is empty: give a value, or leave it out"):
        said_by(site, "queue", option, "")


WHY = """/opt/fair/solver.py:31: the policy raised: Traceback (most recent call last):
  File "/opt/fair/solver.py", line 31, in plan
    return 1 / 0
ZeroDivisionError: division by zero; its quick plan stands in"""


def tallied(site: Path, **fields: object) -> None:
    """The daemon's file of plans, as it keeps it."""
    said = {"v": 1, "since": NOW - 5000, "made": 240, "failed": 7, "why": WHY, "failed_at": NOW - 60}
    (site.parent / "storage" / "plans.json").write_text(json.dumps(said | fields))


def test_status_tells_how_many_plans_failed_and_why_the_last_did(site: Path, utc: None) -> None:
    tallied(site)
    (line,) = (line for line in said_by(site, "status").splitlines() if "plans since" in line)
    assert line.startswith("7 of 240 plans since ")
    gist = "ZeroDivisionError: division by zero; its quick plan stands in"
    assert line.endswith(f": /opt/fair/solver.py:31: the policy raised: {gist}")
    assert json.loads(said_by(site, "status", "--json"))["plans"]["failed"] == 7


@pytest.mark.parametrize(
    "fields",
    [{"failed": 0, "why": ""}, {"v": 2}, {"made": "many"}, {"since": None}, {"why": 7}, {"failed_at": 1e400}],
)
def test_status_says_nothing_of_plans_where_none_failed_or_nobody_knows(
    site: Path, fields: dict[str, object]
) -> None:
    tallied(site, **fields)
    assert "plans since" not in said_by(site, "status")


def test_status_of_a_daemon_that_looks_says_how_often(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (site.parent / "storage" / "paused").write_text("maintenance")
    monkeypatch.setattr(time, "time", lambda: NOW + 1)
    assert "1 s ago, looks at least every 10 s" in said_by(site, "status")


def test_who_reads_the_journal_finds_the_finished_jobs_of_a_user_too(site: Path) -> None:
    assert "job 77 ended" in said_by(site, "queue", "--user", "sue")
    assert "job 77" not in said_by(site, "queue", "--user", "ned")


def test_where_the_board_names_nobody_slurm_says_which_jobs_are_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    public, bin_dir = tmp_path / "public", tmp_path / "bin"
    public.mkdir()
    bin_dir.mkdir()
    (public / "board.json").write_text(json.dumps(nameless(draw(*recorded()).document())))
    squeue = bin_dir / "squeue"
    squeue.write_text('#!/bin/sh\ncase "$*" in *--me*) echo 10; echo 20_2; echo 555;; *) exit 1;; esac\n')
    squeue.chmod(0o755)
    config = tmp_path / "fair.toml"
    config.write_text(
        f'[storage]\ndir = "{tmp_path / "closed"}"\n[lease]\npublish_dir = "{public}"\n'
        f'[slurm]\nbin_dir = "{bin_dir}"\n'
    )
    rows = json.loads(said_by(config, "queue", "--me", "--json"))["jobs"]
    assert sorted(row["job"] for row in rows) == ["10", "20_2"]
    assert {row["decided"] for row in rows} == {None}, "it is a number of tenants"
    squeue.write_text("#!/bin/sh\necho slurm_load_jobs error >&2; exit 1\n")
    done = CliRunner().invoke(cli, ["--config", str(config), "queue", "--me"])
    assert "Slurm does not say which jobs are yours" in done.stderr
    assert "PrivateData" in done.stdout


def test_a_daemon_that_lives_without_its_journal_is_blind_for_admins_as_for_users(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A journal that was replaced takes the daemon's lock and its heartbeat with it."""
    site.write_text(site.read_text().replace('publish_dir = ""', f'publish_dir = "{tmp_path}"'))
    monkeypatch.setattr(time, "time", lambda: NOW + 70)
    (tmp_path / NAME).write_text(
        Health(NOW + 69, 10.0, NOW, DaemonState.BLIND, "the journal was removed").text()
    )
    assert said_by(site, "status").startswith(
        "slurm_fair: blind: the journal was removed (no good look for 70"
    )
    monkeypatch.setattr(time, "time", lambda: NOW + 130)
    (tmp_path / NAME).write_text(
        Health(NOW + 10, 10.0, NOW, DaemonState.BLIND, "the journal was removed").text()
    )
    assert said_by(site, "status").startswith("slurm_fair: silent: ")


def test_of_the_daemons_own_notice_it_is_not_said_that_slurm_schedules_it(site: Path, tmp_path: Path) -> None:
    seen = recorded()[0].snapshot
    alone = (LeftAlone("97", notice.REASON, "slurm-fair"), *seen.left_alone)
    (tmp_path / "other").mkdir(mode=0o750)
    with open_journal(tmp_path / "other" / "journal.db") as journal:
        journal.append(*recorded(snapshot=replace(seen, left_alone=alone)))
    site.write_text(site.read_text().replace("/storage", "/other"))
    assert said_by(site, "explain", "97") == f"job 97 of slurm-fair is left alone: it {notice.REASON}\n"
    assert said_by(site, "explain", "99").endswith("it asks for no GPU; plain Slurm schedules it\n")
