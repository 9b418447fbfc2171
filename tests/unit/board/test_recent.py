"""Jobs that ended are told of for a day, newest first, and one user's many hide nobody else's."""

from __future__ import annotations

from typing import Any

from slurm_fair.board.recent import MOST_JOBS, MOST_OF_A_USER, Recent, finished_row
from slurm_fair.model import Event, EventKind
from slurm_fair.model.ids import pack
from slurm_fair.model.spans import DAY_SECONDS

NOW = 1_700_000_000.0


def _ended(job: int, user: str = "ann", end: float = NOW, **said: Any) -> Event:
    return Event(NOW, EventKind.FINISHED, pack(job), "vision", 4, {"user": user, "end": end, **said})


def _jobs(recent: Recent, now: float = NOW) -> list[str]:
    return [row["job"] for row in recent.rows(now)]


def test_a_row_tells_what_the_event_said() -> None:
    said: dict[str, Any] = {
        "state": "FAILED", "submit": NOW - 90, "had": 40.0, "owed": 20.0, "waited": 50.0, "ran": 10.0, "rho": 2.0,
        "restarts": 3,
    }  # fmt: skip
    event = _ended(7, end=NOW - 5, **said)._replace(key=pack(7, 0))
    assert finished_row(event) == {
        "job": "7_0", "tenant": "vision", "user": "ann", "gpus": 4, "slurm_state": "FAILED", "submit": NOW - 90,
        "end": NOW - 5, "had_gpu_seconds": 40.0, "owed_gpu_seconds": 20.0, "waited_seconds": 50.0,
        "ran_seconds": 10.0, "rho": 2.0, "restarts": 3,
    }  # fmt: skip


def test_an_event_that_says_nothing_is_a_row_all_the_same() -> None:
    row = finished_row(Event(NOW, EventKind.FINISHED, pack(7), "vision", 4, {"user": None, "state": None}))
    assert (row["user"], row["slurm_state"], row["submit"], row["rho"]) == ("", "", None, None)
    assert (row["end"], row["had_gpu_seconds"], row["restarts"]) == (NOW, 0.0, 0)


def test_the_newest_is_told_first_and_what_did_not_end_is_not() -> None:
    recent = Recent([_ended(1), _ended(2)._replace(kind=EventKind.STOPPED)])
    recent.hear(iter([_ended(3), _ended(4)._replace(kind="unheard of")]))
    recent.hear([])
    assert _jobs(recent) == ["3", "1"]


def test_a_job_is_told_of_for_just_one_day() -> None:
    recent = Recent([_ended(1, end=NOW), _ended(2, end=NOW - 1)])
    assert _jobs(recent, NOW + DAY_SECONDS) == ["1"]
    assert _jobs(recent, NOW) == ["1"], "what was forgotten does not come back"
    assert _jobs(recent, NOW + DAY_SECONDS + 1) == []


def test_a_user_has_so_many_rows_and_the_newest_of_them() -> None:
    recent = Recent([_ended(0, "games")] + [_ended(job, "news") for job in range(1, MOST_OF_A_USER + 3)])
    shown = _jobs(recent)
    assert shown == [str(job) for job in range(MOST_OF_A_USER + 2, 2, -1)] + ["0"]
    recent.hear([_ended(900, "news")])
    assert _jobs(recent)[:2] == ["900", str(MOST_OF_A_USER + 2)]
    assert len(_jobs(recent)) == MOST_OF_A_USER + 1


def test_all_users_together_have_a_bound_of_the_newest_rows() -> None:
    recent = Recent(_ended(job, f"u{job % 20}") for job in range(MOST_JOBS + 5))
    shown = _jobs(recent)
    assert (len(shown), shown[0], shown[-1]) == (MOST_JOBS, str(MOST_JOBS + 4), "5")


def test_rows_without_a_user_count_as_one_users() -> None:
    recent = Recent(_ended(job, "") for job in range(MOST_OF_A_USER + 1))
    assert len(_jobs(recent)) == MOST_OF_A_USER
