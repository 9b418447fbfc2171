"""A user brings few accounts that nobody lists, the oldest first."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from slurm_fair.slurm.reading.made_up import OF_A_USER, MadeUp
from slurm_fair.slurm.reading.queue import Queue
from tests.support.slurm_stub import Stub, row


class _Looks:
    """One queue over several looks, and what was too many at each."""

    def __init__(
        self, folder: Path, *looks: Iterable[tuple[int, str, str]], gpus: int = 1, shares: str = "OK"
    ) -> None:
        stub = Stub(folder)
        texts = (
            "".join(
                row(JobID=job, UserName=user, Account=account, tres_alloc=f"cpu=1,node=1,gres/gpu={gpus}",
                    tres_per_job="N/A", OverSubscribe=shares)
                for job, user, account in look
            )
            for look in looks
        )  # fmt: skip
        stub.answers("squeue", *texts)
        self.queue, self.made_up = Queue(stub.commands()), MadeUp()

    def beyond(self, listed: Collection[str] = ()) -> list[int]:
        """The jobs with an account too many."""
        rows = self.queue.read()
        assert not isinstance(rows, str), rows
        found = self.made_up.beyond(rows, self.queue, listed)
        assert len(found) == len(rows)
        return sorted(rows["record"][found].tolist())


def _new(first: int, last: int, user: str = "news") -> list[tuple[int, str, str]]:
    """A job for each number, with an account that bears the number too."""
    return [(job, user, f"new{job}") for job in range(first, last + 1)]


def test_just_so_many_accounts_are_taken(tmp_path: Path) -> None:
    assert _Looks(tmp_path / "a", _new(1, OF_A_USER)).beyond() == []
    assert _Looks(tmp_path / "b", _new(1, OF_A_USER + 2)).beyond() == [OF_A_USER + 1, OF_A_USER + 2]


def test_the_accounts_of_the_oldest_jobs_are_taken_however_the_queue_is_sorted(tmp_path: Path) -> None:
    rows = _new(1, OF_A_USER + 1)
    assert _Looks(tmp_path, reversed(rows)).beyond() == [OF_A_USER + 1]


def test_all_jobs_of_an_account_share_its_fate_whenever_they_came(tmp_path: Path) -> None:
    last = OF_A_USER + 1
    again = [(200, "news", "new1"), (201, "news", f"new{last}"), (202, "news", "new1")]
    assert _Looks(tmp_path, [*again, *_new(1, last)]).beyond() == [last, 201]


def test_an_account_counts_by_its_oldest_job(tmp_path: Path) -> None:
    """The name that sorts first belongs to the newest job, and an early job of it comes late in the queue."""
    rows = [*_new(10, 9 + OF_A_USER), (300, "news", "aaa"), (5, "news", "zzz")]
    assert _Looks(tmp_path, rows).beyond() == [9 + OF_A_USER, 300]


def test_accounts_that_are_listed_cost_nobody_a_place(tmp_path: Path) -> None:
    rows = [*_new(1, OF_A_USER + 2)]
    assert _Looks(tmp_path, rows).beyond({"new1", "new2"}) == []


def test_an_account_that_another_user_brought_is_free(tmp_path: Path) -> None:
    shared = [(job, "games", f"new{job - 100}") for job in range(101, 101 + OF_A_USER)]
    looks = _Looks(tmp_path, [*_new(1, OF_A_USER), *shared, (500, "games", "mine"), (501, "news", "mine")])
    assert looks.beyond() == []


def test_a_user_without_room_may_use_what_another_brings_later(tmp_path: Path) -> None:
    rows = [*_new(1, OF_A_USER), (50, "news", "late")]
    looks = _Looks(tmp_path, rows, [*rows, (60, "games", "late")], rows)
    assert [looks.beyond(), looks.beyond()] == [[50], [50]]
    assert looks.beyond() == []


def test_what_was_brought_counts_after_its_jobs_are_gone(tmp_path: Path) -> None:
    looks = _Looks(tmp_path, _new(1, OF_A_USER), [(90, "news", "new90"), (91, "news", "new3")])
    assert looks.beyond() == []
    assert looks.beyond() == [90]


def test_jobs_without_gpus_bring_no_accounts_and_are_never_too_many(tmp_path: Path) -> None:
    looks = _Looks(tmp_path, _new(1, OF_A_USER + 5), gpus=0)
    assert looks.beyond() == []
    assert looks.made_up._brought == {}


def test_an_empty_queue_has_no_account_too_many(tmp_path: Path) -> None:
    assert _Looks(tmp_path, []).beyond() == []


def test_jobs_that_take_whole_nodes_count_as_those_that_ask_for_gpus(tmp_path: Path) -> None:
    looks = _Looks(tmp_path, _new(1, OF_A_USER + 1), gpus=0, shares="NO")
    assert looks.beyond() == [OF_A_USER + 1]
