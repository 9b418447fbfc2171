"""One process at a time may write a journal, and who lost that right is told so before he writes."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurm_fair.errors import NotHere, NotTheOwner, StoreError
from slurm_fair.store.ownership import Ownership, epoch_of, fence, is_owned, who


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


@pytest.fixture
def owner(path: Path) -> Iterator[Ownership]:
    made = Ownership(path)
    yield made
    made.release()


def _epoch_file(path: Path) -> Path:
    return path.with_name("journal.db.epoch")


def test_each_owner_has_a_higher_epoch(path: Path) -> None:
    assert (epoch_of(path), is_owned(path)) == (0, False)
    for number in (1, 2, 3):
        one = Ownership(path)
        assert (one.epoch, epoch_of(path), is_owned(path)) == (number, number, True)
        with one.writing():
            pass
        one.release()
        assert (epoch_of(path), is_owned(path)) == (number, False)


def test_a_second_owner_is_kept_out_and_told_who_holds_it(path: Path, owner: Ownership) -> None:
    with pytest.raises(NotTheOwner, match=f"another daemon owns the journal \\(pid {os.getpid()} on "):
        Ownership(path)
    owner.check()
    assert epoch_of(path) == owner.epoch == 1


def test_an_owner_that_is_just_starting_has_no_name_yet(path: Path) -> None:
    lock = os.open(path.with_name("journal.db.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(NotTheOwner, match="it is just starting"):
            Ownership(path)
    finally:
        os.close(lock)
    Ownership(path).release()


def test_who_was_fenced_writes_no_more_and_is_told_by_whom(path: Path, owner: Ownership) -> None:
    assert fence(path, "the dead-man\n") == 2
    with pytest.raises(NotTheOwner, match="we own epoch 1, and the dead-man has opened epoch 2"):
        owner.check()
    with pytest.raises(NotTheOwner), owner.writing():
        raise AssertionError("it wrote")
    assert fence(path) == 3
    with pytest.raises(NotTheOwner, match=f"and {who()} has opened epoch 3"):
        owner.check()


@pytest.mark.parametrize(("meant", "after"), [(0, 6), (4, 5), (5, 6), (6, 6)])
def test_only_the_owner_that_is_meant_is_fenced(path: Path, meant: float, after: int) -> None:
    for _ in range(5):
        Ownership(path).release()
    assert fence(path, owner=meant) == after == epoch_of(path)


def test_nobody_is_fenced_inside_a_write_but_one_that_stands_still(path: Path, owner: Ownership) -> None:
    began = time.monotonic()
    with owner.writing():
        assert fence(path, wait_seconds=0.3) == 2
        assert time.monotonic() - began >= 0.3
        with pytest.raises(NotTheOwner):
            owner.check()
    began = time.monotonic()
    assert fence(path, wait_seconds=30.0) == 3
    assert time.monotonic() - began < 10


def test_a_name_as_long_as_it_likes_leaves_the_epoch_readable(path: Path) -> None:
    assert fence(path, "ü\n" * 500) == 1
    assert _epoch_file(path).stat().st_size == 128
    assert (fence(path, "x"), epoch_of(path)) == (2, 2)
    assert b"\n" not in _epoch_file(path).read_bytes()[:-1]


def test_an_owner_without_its_epoch_stops(path: Path, owner: Ownership) -> None:
    _epoch_file(path).unlink()
    with pytest.raises(NotTheOwner, match="was removed, so nobody can tell who owns the journal"):
        owner.check()
    assert fence(path) == 1
    with pytest.raises(NotTheOwner), owner.writing():
        raise AssertionError("it wrote")


@pytest.mark.parametrize("text", ["five by me", "-1 by me", "\0\0\0", " 7 by me", "1e3 x"])
def test_an_epoch_that_is_none_is_refused_with_the_cure(path: Path, text: str) -> None:
    _epoch_file(path).write_text(text)
    _epoch_file(path).chmod(0o600)
    for ask in (epoch_of, fence, Ownership):
        with pytest.raises(StoreError, match="write a number higher than any used before"):
            ask(path)


def test_an_epoch_that_an_admin_wrote_is_counted_on_from(path: Path) -> None:
    _epoch_file(path).write_text("41 by hand")
    _epoch_file(path).chmod(0o600)
    assert epoch_of(path) == 41
    assert fence(path) == 42


def test_an_epoch_behind_a_link_is_not_read(path: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("7 x")
    _epoch_file(path).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError):
        epoch_of(path)


def test_there_is_nobody_to_fence_where_no_daemon_has_been(tmp_path: Path) -> None:
    with pytest.raises(NotHere, match=r"check \[storage\]"):
        fence(tmp_path / "absent" / "journal.db")
    assert not (tmp_path / "absent").exists()


def test_who_gave_the_journal_back_writes_no_more(path: Path) -> None:
    one = Ownership(path)
    one.release()
    one.release()
    for use in (one.check, lambda: one.writing().__enter__()):
        with pytest.raises(StoreError, match="the journal was closed"):
            use()
    Ownership(path).release()


def test_a_child_of_the_owner_neither_writes_nor_keeps_others_out(path: Path, owner: Ownership) -> None:
    heard, told = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            owner.check()
        except NotTheOwner as refusal:
            os.write(told, str(refusal).encode())
        os.close(told)
        time.sleep(5)
        os._exit(0)
    os.close(told)
    try:
        assert b"a child process may not write" in os.read(heard, 4096)
        owner.check()
        owner.release()
        Ownership(path).release()
    finally:
        os.close(heard)
        os.kill(child, 9)
        os.waitpid(child, 0)
