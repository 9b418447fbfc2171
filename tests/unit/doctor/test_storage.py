"""Findings about the storage, the daemon and its dead-man."""

from __future__ import annotations

import fcntl
import os
from dataclasses import replace
from pathlib import Path

import pytest

from slurm_fair.config.sections import Config
from slurm_fair.doctor import storage
from slurm_fair.doctor.facts import Facts
from slurm_fair.host.state_folder import Heartbeat, Places, beat
from slurm_fair.store import open_journal
from tests.support.site_facts import ERROR, OK, WARNING, facts, worst
from tests.support.trees import ROOT


def stored(path: Path) -> Facts:
    """Facts of a site whose storage is here."""
    config = replace(Config(), storage=replace(Config().storage, dir=str(path), max_mb=1.0))
    return replace(facts(config=config, uid=os.geteuid()), places=Places(path))


def test_a_storage_in_order(tmp_path: Path) -> None:
    tmp_path.chmod(0o750)
    assert worst(storage.findings(stored(tmp_path))) is OK
    open_journal(tmp_path / "journal.db").close()
    assert any("the journal opens" in f.what for f in storage.findings(stored(tmp_path)))


def test_a_storage_that_others_may_write_is_an_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    assert storage.owner(tmp_path, stored(tmp_path)).level is ERROR


def test_a_damaged_or_foreign_journal_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "journal.db").write_bytes(b"no database at all" * 100)
    found = storage.journal(stored(tmp_path))
    assert found.level is ERROR
    assert found.cure == (
        "see docs/troubles.md, `When the journal is damaged`; `slurm-fair fail-open --stamped` frees the jobs"
    )
    assert "**When the journal is damaged**" in (ROOT / "docs" / "troubles.md").read_text()


def test_a_journal_that_is_closed_to_the_caller_is_not_called_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "journal.db").write_bytes(b"")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    found = storage.journal(stored(tmp_path))
    assert (found.level, found.cure) == (WARNING, "run this as the daemon's account")


def test_little_room_is_told(tmp_path: Path) -> None:
    assert storage.space(tmp_path, 1.0).level is OK
    assert storage.space(tmp_path, 1e12).level is WARNING


def test_the_file_system_is_that_of_the_innermost_mount(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"a / ext4 rw 0 0\nb {tmp_path} nfs4 rw 0 0\nc {tmp_path}x xfs rw 0 0\n")
    assert storage.file_system(tmp_path / "deep", mounts) == "nfs4"
    assert storage.file_system(Path("/"), mounts) == "ext4"
    assert storage.file_system(Path("/"), tmp_path / "gone") == ""


def test_the_state_of_the_daemon_and_its_dead_man(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    tmp_path.chmod(0o750)
    seen = stored(tmp_path)

    def said(now: float = 1000.0) -> list[str]:
        return [f"{f.level}: {f.what}" for f in storage.daemon(replace(seen, now=now))]

    assert said() == ["ok: the daemon does not run"]
    beat(seen.places, Heartbeat(1, 990.0, 60.0, "begin"))
    assert said() == [
        "warning: the daemon is gone and left jobs of its own: the dead-man frees them within a lease"
    ]
    journal = open_journal(seen.places.journal)
    try:
        assert said()[0] == "ok: the daemon runs (last sign of life 10 s ago)"
        assert said()[1].startswith("warning: no dead-man watches")
        assert said(now=1100.0)[0] == "error: the daemon is silent since 110 s"
        with seen.places.deadman_lock.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            assert said()[1] == "ok: the dead-man watches"
        beat(seen.places, Heartbeat(1, 990.0, 60.0, "begin", 900.0, "squeue hangs"))
        assert said()[1] == "warning: the daemon is blind, so nothing is done: squeue hangs"
        seen.places.paused.write_text("lunch")
        assert said()[0].startswith("warning: paused")
    finally:
        journal.close()
    seen.places.paused.unlink()
    seen.places.heartbeat.unlink()
    assert said() == ["warning: the daemon does not run, though it has run here: nothing is done to any job"]


@pytest.mark.parametrize(
    "place", ["file", "file/below", "dangling", "link", "dangling/below", "/dev/null", "/proc/x"]
)
def test_a_storage_that_the_daemon_could_not_make_is_an_error(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "link").symlink_to(tmp_path)
    (found,) = storage.findings(stored(tmp_path / place))
    assert (found.level, str(tmp_path / place) in found.what) == (ERROR, True)


def test_a_storage_that_is_not_there_yet_is_made(tmp_path: Path) -> None:
    (found,) = storage.findings(stored(tmp_path / "new" / "deep"))
    assert (found.level, found.what.endswith("the daemon makes it")) == (OK, True)


def test_a_storage_in_the_root_is_told() -> None:
    assert any(f.what == "[storage] dir is / itself" for f in storage.findings(stored(Path("/"))))


def test_a_heartbeat_that_cannot_be_read_is_no_shadow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    tmp_path.chmod(0o750)
    seen = stored(tmp_path)
    seen.places.heartbeat.write_text("")  # nothing of it is known, as where it is closed to us
    (found,) = storage.daemon(seen)
    assert (found.level, "whether it left jobs of its own is not known" in found.what) == (WARNING, True)
    with open_journal(seen.places.journal):
        (found,) = storage.daemon(seen)
        assert (found.level, "whether it acts, and well, is not known" in found.what) == (WARNING, True)
        seen.places.heartbeat.unlink()
        assert [f.what for f in storage.daemon(seen)] == [
            "the daemon runs, as a shadow",
            "a shadow needs no dead-man",
        ]
