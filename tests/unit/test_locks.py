"""A lock is seen from outside without being taken or made."""

from __future__ import annotations

import fcntl
from pathlib import Path

from slurm_fair.locks import is_locked


def test_a_lock_is_seen_while_somebody_holds_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.touch()
    assert not is_locked(path)
    with path.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert is_locked(path)
        assert is_locked(path)
    assert not is_locked(path)


def test_the_question_keeps_nobody_from_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.touch()
    is_locked(path)
    with path.open() as own:
        fcntl.flock(own, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_no_file_is_made_and_no_link_followed(tmp_path: Path) -> None:
    assert not is_locked(tmp_path / "none")
    assert not (tmp_path / "none").exists()
    path, link = tmp_path / "lock", tmp_path / "link"
    path.touch()
    link.symlink_to(path)
    with path.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert not is_locked(link)
