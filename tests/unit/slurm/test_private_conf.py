"""A private copy of slurm.conf with a short MessageTimeout."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from slurm_fair.slurm import private_conf
from slurm_fair.slurm.private_conf import short_timeout_copy, site_conf


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    path = tmp_path / "slurm.conf"
    path.write_text("ClusterName=c\n  messagetimeout = 100 # long\nSlurmctldHost=h\n")
    return path


def test_the_copy_differs_in_the_timeout_alone(conf: Path, tmp_path: Path) -> None:
    copy = short_timeout_copy(conf, tmp_path / "copy.conf", 3)
    assert copy == tmp_path / "copy.conf"
    assert copy.read_text() == "ClusterName=c\n\nSlurmctldHost=h\nMessageTimeout=3\n"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600


def test_a_copy_is_written_again_only_where_it_differs(conf: Path, tmp_path: Path) -> None:
    copy = short_timeout_copy(conf, tmp_path / "copy.conf", 3)
    written = copy.stat().st_ino
    assert short_timeout_copy(conf, copy, 3).stat().st_ino == written
    assert "MessageTimeout=4" in short_timeout_copy(conf, copy, 4).read_text()


def test_a_file_that_includes_others_is_used_itself(conf: Path, tmp_path: Path) -> None:
    conf.write_text(conf.read_text() + "Include gres.conf\n")
    assert short_timeout_copy(conf, tmp_path / "copy.conf", 3) == conf
    assert not (tmp_path / "copy.conf").exists()


def test_where_no_copy_can_be_made_the_file_itself_is_used(conf: Path, tmp_path: Path) -> None:
    assert short_timeout_copy(conf, tmp_path / "none" / "copy.conf", 3) == conf
    assert short_timeout_copy(tmp_path / "none", tmp_path / "copy.conf", 3) == tmp_path / "none"


def test_the_sites_file_is_the_configured_one_else_slurms_own(
    conf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SLURM_CONF", raising=False)
    monkeypatch.setattr(private_conf, "_USUAL", (tmp_path / "none", conf))
    assert site_conf("") == conf
    assert site_conf(str(tmp_path / "none")) is None
    other = tmp_path / "other.conf"
    other.touch()
    monkeypatch.setenv("SLURM_CONF", str(other))
    assert site_conf("") == other
    assert site_conf(str(conf)) == conf
