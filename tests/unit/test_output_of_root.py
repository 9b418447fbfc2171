"""Root's commands in a storage folder of the daemon's account shut that account out of nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurm_fair.config.sections import Config
from slurm_fair.config.tree import load_config
from slurm_fair.daemon.parts import commands_of
from slurm_fair.deadman import freeing
from slurm_fair.host.state_folder import Heartbeat, Places, beat
from slurm_fair.output import open_kept
from slurm_fair.store import fence
from tests.support.command_line import Said, call

DAEMON = 65534
by_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has other accounts' folders open to it")


@pytest.fixture
def config(tmp_path: Path) -> Config:
    storage = tmp_path / "s"
    storage.mkdir(mode=0o750)
    (tmp_path / "slurm.conf").write_text("ClusterName=x\nMessageTimeout=10\n")
    path = tmp_path / "fair.toml"
    path.write_text(f'[storage]\ndir = "{storage}"\n[slurm]\nconf = "{tmp_path}/slurm.conf"\n')
    return load_config(path)


@pytest.fixture
def places(config: Config) -> Iterator[Places]:
    """The storage of another account, with the umask of a careful root."""
    os.chown(config.storage.dir, DAEMON, 0)
    before = os.umask(0o077)
    yield Places(Path(config.storage.dir))
    os.umask(before)


def said(places: Places, *words: str) -> Said:
    return call("--config", str(places.directory.parent / "fair.toml"), *words)


@by_root
def test_what_root_leaves_in_the_storage_shuts_the_daemons_account_out_of_nothing(places: Places) -> None:
    assert said(places, "pause", "--why", "the storage is upgraded").code == 0
    assert said(places, "deadman", "--once").code == 0
    with freeing(places):
        pass
    fence(places.journal, by="root")
    found = {file.name: file.stat() for file in places.directory.iterdir()}
    assert {"paused", "deadman.lock", "freeing.lock", "journal.db.epoch"} <= found.keys()
    closed = {name for name, facts in found.items() if facts.st_uid != DAEMON and not facts.st_mode & 0o004}
    assert closed == set()
    assert {name for name, facts in found.items() if facts.st_uid != DAEMON} <= {"paused"}


@by_root
def test_root_neither_makes_nor_believes_the_daemons_copy_of_slurm_conf(
    config: Config, places: Places
) -> None:
    commands_of(config, places)
    assert not places.slurm_conf.exists()
    places.slurm_conf.write_text("ClusterName=x\nPluginDir=/home/mallory\n")
    assert commands_of(config, places).conf == Path(config.slurm.conf)
    assert places.slurm_conf.read_text().endswith("mallory\n")
    os.chown(places.directory, 0, 0)
    assert commands_of(config, places).conf == places.slurm_conf
    assert places.slurm_conf.read_text() == "ClusterName=x\nMessageTimeout=3\n"


@by_root
def test_a_file_that_was_there_before_keeps_its_owner(places: Places) -> None:
    known = places.directory / "deadman.lock"
    known.write_text("")
    os.close(open_kept(known))
    assert known.stat().st_uid == 0


def test_a_lock_that_the_dead_man_cannot_open_is_one_line_with_the_cure(config: Config) -> None:
    places = Places(Path(config.storage.dir))
    beat(places, Heartbeat(7, 1000.0, 60.0, "begin"))
    places.deadman_lock.symlink_to("elsewhere")
    done = said(places, "deadman", "--once")
    assert done.code == 1
    assert "deadman.lock: cannot be opened, so nobody watches the daemon" in done.err
    assert done.err.count("\n") == 1
