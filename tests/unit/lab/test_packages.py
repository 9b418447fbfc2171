"""Programs that a lab lacks, and the care with which they are installed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from slurm_fair.errors import LabError
from slurm_fair.lab import packages
from slurm_fair.lab.packages import available, ensure_packages, missing_programs


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine with no programs at all; the folder is its search path."""
    monkeypatch.setattr(packages, "path_with_system_folders", lambda: str(tmp_path))
    return tmp_path


def _install(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)


def test_a_bare_machine_is_told_what_to_install_in_one_line(bare: Path) -> None:
    reason = available()
    assert reason is not None
    assert "munged, slurmctld" in reason
    assert "sudo apt-get install --no-install-recommends munge slurmctld slurmd slurm-client" in reason
    assert "\n" not in reason


def test_a_lab_without_database_needs_no_mariadb(bare: Path) -> None:
    _install(bare, *packages.SLURM_PROGRAMS)
    assert available(database=False) is None
    assert missing_programs() == packages.DATABASE_PROGRAMS


def test_nothing_is_installed_where_nothing_is_missing(bare: Path) -> None:
    _install(bare, *packages.SLURM_PROGRAMS, *packages.DATABASE_PROGRAMS)
    said: list[str] = []
    ensure_packages(said.append)
    assert said == []


def test_who_may_not_install_gets_the_reason(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    said: list[str] = []
    with pytest.raises(LabError, match="a lab needs munged"):
        ensure_packages(said.append)
    assert said == []


def test_root_says_so_first_and_installs_with_services_held_back(
    bare: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    policy = tmp_path / "policy-rc.d"
    events: list[str] = []

    def apt_get(*arguments: str) -> None:
        events.append(f"{arguments[0]} while {policy.read_text().splitlines()[-1]!r}")
        _install(bare, *packages.SLURM_PROGRAMS, *packages.DATABASE_PROGRAMS)

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(packages, "APT_GET", Path("/bin/sh"))
    monkeypatch.setattr(packages, "POLICY", policy)
    monkeypatch.setattr(packages, "_apt_get", apt_get)
    monkeypatch.setattr(packages, "_disable", lambda services: events.append("disable"))
    ensure_packages(lambda line: events.append(line.partition(" with")[0]))
    assert events == [
        f"lab: installing {' '.join(packages.PACKAGES)}",
        "update while 'exit 101'",
        "install while 'exit 101'",
        "disable",
    ]
    assert not policy.exists()


def test_the_machines_own_policy_returns_after_a_failed_installation(
    bare: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    policy = tmp_path / "policy-rc.d"
    policy.write_text("the machine's own")

    def apt_get(*arguments: str) -> None:
        raise LabError("apt-get update failed: no network")

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(packages, "APT_GET", Path("/bin/sh"))
    monkeypatch.setattr(packages, "POLICY", policy)
    monkeypatch.setattr(packages, "_apt_get", apt_get)
    with pytest.raises(LabError, match="no network"):
        ensure_packages(lambda line: None)
    assert policy.read_text() == "the machine's own"
    assert [entry.name for entry in tmp_path.iterdir()] == ["policy-rc.d"]
