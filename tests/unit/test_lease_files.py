"""lease.py: what a crash of the machine, a reader in between, or a neighbour could make of its files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from slurm_fair import lease
from slurm_fair.lease import Lease, learning_rate_factor, save_snapshot
from tests.support.lease_folder import ask, environment, read


@pytest.fixture(autouse=True)
def _looks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test waits for the file to be looked at again."""
    monkeypatch.setattr(lease, "LOOK_SECONDS", 0.0)


class Disk:
    """The calls to the disk, in order: syncs and renames by name."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done: list[str] = []
        real_sync, real_replace = os.fsync, os.replace

        def sync(descriptor: int) -> None:
            self.done.append("sync " + Path(os.readlink(f"/proc/self/fd/{descriptor}")).name.lstrip("."))
            real_sync(descriptor)

        def rename(source: Any, target: Any, **folders: Any) -> None:
            self.done.append(f"rename {Path(target).name}")
            real_replace(source, target, **folders)

        monkeypatch.setattr(os, "fsync", sync)
        monkeypatch.setattr(os, "replace", rename)


def test_an_answer_is_on_the_disk_before_it_has_its_name_and_its_name_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Lease(environment(tmp_path))
    ask(tmp_path, 1)
    disk = Disk(monkeypatch)
    assert job.acknowledge(1)
    content, name, folder = disk.done
    assert content.startswith("sync ack.json.")
    assert (name, folder) == ("rename ack.json", f"sync {tmp_path.name}")


def test_a_snapshot_is_on_the_disk_before_it_has_its_name_and_its_name_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch)

    def write(path: Path) -> None:
        path.mkdir()
        (path / "weights").write_text("w")

    assert save_snapshot(tmp_path, 3, write, restart=0) is not None
    *contents, name, folder = disk.done
    assert contents[0] == "sync weights"
    assert contents[1].startswith("sync snapshot-r000000-s000000000003.")
    assert (name, folder) == ("rename snapshot-r000000-s000000000003", f"sync {tmp_path.name}")


def test_a_reader_sees_the_old_answer_or_the_new_one_never_a_part(tmp_path: Path) -> None:
    job = Lease(environment(tmp_path))
    ask(tmp_path, 1)
    assert job.acknowledge(1)
    with (tmp_path / "ack.json").open() as old:
        before, inode = old.read(), os.fstat(old.fileno()).st_ino
        ask(tmp_path, 2)
        assert job.acknowledge(2)
        old.seek(0)
        assert old.read() == before, "the file that a reader has open is not written"
    assert (tmp_path / "ack.json").stat().st_ino != inode
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_an_answer_is_for_all_to_read_and_for_nobody_else_to_write(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        job = Lease(environment(tmp_path))
        ask(tmp_path, 1)
        assert job.acknowledge(1)
        assert job.report(step=1)
    finally:
        os.umask(before)
    assert (tmp_path / "ack.json").stat().st_mode & 0o777 == 0o644
    assert (tmp_path / "report.json").stat().st_mode & 0o777 == 0o644


def test_what_lies_where_an_answer_is_written_is_not_written_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    monkeypatch.setattr(lease, "_serial", iter([5, 6]))
    (tmp_path / f".ack.json.{os.getpid()}.5").symlink_to(precious)
    (tmp_path / "ack.json").symlink_to(precious)
    job = Lease(environment(tmp_path))
    ask(tmp_path, 1)
    assert not job.acknowledge(1), "the place is taken"
    assert precious.read_text() == "mine"
    job._answered = 0
    assert job.acknowledge(1)
    assert precious.read_text() == "mine"
    assert not (tmp_path / "ack.json").is_symlink()


@pytest.mark.parametrize("level", ["", ".."])
def test_a_folder_that_others_can_write_is_neither_read_nor_written(tmp_path: Path, level: str) -> None:
    folder = tmp_path / "messages"
    folder.mkdir()
    ask(folder, 1)
    assert Lease(environment(folder)).should_stop()
    (folder / level).chmod(0o777)
    job = Lease(environment(folder))
    assert not job.should_stop()
    assert not job.report(step=1)
    assert [path.name for path in folder.iterdir()] == ["request.json"]


def test_a_folder_that_is_a_link_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "messages").mkdir()
    ask(tmp_path / "messages", 1)
    (tmp_path / "link").symlink_to(tmp_path / "messages")
    assert not Lease(environment(tmp_path / "link")).should_stop()


@pytest.mark.parametrize(
    ("what", "changes"),
    [
        ("another job", {"job": "8"}),
        ("a report", {"what": "report"}),
        ("an answer", {"what": "ack"}),
        ("another run", {"restart": 2}),
    ],
)
def test_a_message_about_something_else_is_no_request(
    tmp_path: Path, what: str, changes: dict[str, Any]
) -> None:
    ask(tmp_path, 1)
    document = read(tmp_path, "request.json") | changes
    (tmp_path / "request.json").write_text(json.dumps(document))
    assert not Lease(environment(tmp_path)).should_stop(), what


ABSURD = ["1e400", "-1e400", "NaN", "[" * 50_000, "9" * 5000, '"x"', "null", "[[]]", "1e18"]


@pytest.mark.parametrize("number", ABSURD)
def test_absurd_numbers_stop_no_training(tmp_path: Path, number: str) -> None:
    head = '"v": 1, "what": "request", "job": "7", "restart": 1'
    for name in ("request.json", "ack.json", "7.json"):
        (tmp_path / name).write_text(f'{{{head.replace("request", name[:-5])}, "request": {number}}}')
    (tmp_path / "7.json").write_text(f'{{"restart": 1, "lease_end": {number}}}')
    job = Lease(environment(tmp_path, SLURM_FAIR_PUBLISH_DIR=str(tmp_path)))
    job.should_stop()
    job.acknowledge(1)
    assert job.status().lease_end in (None, 1e18)


@pytest.mark.parametrize(
    "rule", ["4=0.1-", "4=", "=", "4=0,8=0", "4=1e400,8=1", "x", "4=1,", "4=1e308,8=1e-308", "4=-1,8=1"]
)
def test_a_learning_rate_rule_that_is_none_changes_nothing(rule: str) -> None:
    assert learning_rate_factor(rule, 4, 8) == 1.0
