"""Estimates are kept as they were first said, and judged by the starts that came."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from slurm_fair.board.estimates import Estimates
from slurm_fair.model import Event, EventKind
from slurm_fair.model.spans import DAY_SECONDS

NOW = 1_700_000_000.0


def _event(key: int, time: float, kind: str = EventKind.STARTED) -> Event:
    return Event(time, kind, key, "a", 1)


def _judged(*late: float, at: float = NOW) -> Estimates:
    """One job for each error, in seconds late."""
    kept = Estimates()
    kept.note({key: at - seconds for key, seconds in enumerate(late)})
    kept.hear(_event(key, at) for key in range(len(late)))
    return kept


def test_nothing_is_said_before_a_start() -> None:
    kept = Estimates()
    kept.note({1: NOW})
    kept.hear([_event(2, NOW), _event(1, NOW, EventKind.OPENED)])
    assert kept.summary(NOW) == {}


def test_the_first_estimate_counts_and_is_used_once() -> None:
    kept = Estimates()
    kept.note({1: NOW})
    kept.note({1: NOW + 500})
    kept.hear([_event(1, NOW + 600), _event(1, NOW + 900)])
    assert kept.summary(NOW + 900) == {
        "n": 1,
        "median_seconds": 600.0,
        "p90_seconds": 600.0,
        "late_seconds": 600.0,
    }
    kept.note({1: NOW + 1000})
    kept.hear([_event(1, NOW + 1000)])
    assert kept.summary(NOW + 1000)["n"] == 2


def test_early_and_late_starts_are_both_off_but_have_their_sign() -> None:
    said = _judged(-100.0, -100.0, -100.0, 20.0, 0.0).summary(NOW)
    assert (said["n"], said["median_seconds"], said["late_seconds"]) == (5, 100.0, -100.0)
    assert said["p90_seconds"] == 100.0
    said = _judged(*range(11)).summary(NOW)
    assert (said["median_seconds"], said["p90_seconds"]) == (5.0, 9.0)


def test_a_job_that_ended_has_no_estimate_any_more() -> None:
    kept = Estimates()
    kept.note({1: NOW, 2: NOW})
    kept.hear([_event(1, NOW, EventKind.FINISHED), _event(1, NOW + 9), _event(2, NOW + 5)])
    assert (kept.summary(NOW)["n"], kept.summary(NOW)["median_seconds"]) == (1, 5.0)


def test_only_the_last_day_counts() -> None:
    kept = _judged(3.0)
    assert kept.summary(NOW + DAY_SECONDS)["n"] == 1
    assert kept.summary(NOW + DAY_SECONDS + 1) == {}


def test_a_user_whose_errors_are_many_loses_his_oldest_and_nobody_elses() -> None:
    kept = Estimates()
    kept.note({0: NOW - 7}, {0: "games"})
    kept.hear([_event(0, NOW)])
    for key in range(1, 602):
        kept.note({key: NOW - key}, {key: "news"})
        kept.hear([_event(key, NOW)])
    errors = json.loads(kept.text())["errors"]
    assert errors[0] == [NOW, 7.0, "games"]
    assert [late for _, late, user in errors if user == "news"] == list(range(102, 602))


def test_the_errors_of_many_users_have_a_bound() -> None:
    kept = Estimates()
    for key in range(5005):
        kept.note({key: NOW - key}, {key: f"u{key % 50}"})
        kept.hear([_event(key, NOW)])
    errors = json.loads(kept.text())["errors"]
    assert (len(errors), errors[0][1], errors[-1][1]) == (5000, 5.0, 5004.0)


def test_the_estimates_of_a_user_have_a_bound_and_room_comes_back() -> None:
    kept = Estimates()
    whose = dict.fromkeys(range(3000), "news")
    kept.note(dict.fromkeys(range(3000), NOW), whose)
    kept.note({5000: NOW}, {5000: "games"})
    kept.hear([_event(2500, NOW, EventKind.FINISHED), _event(7, NOW)])
    assert len(json.loads(kept.text())["open"]) == 2000
    kept.note({2999: NOW}, whose)
    assert [2999, NOW, "news"] in json.loads(kept.text())["open"]


def test_what_was_kept_is_read_as_it_was(tmp_path: Path) -> None:
    kept = _judged(5.0, -2.0)
    kept.note({2**60: NOW + 1}, {2**60: 'o"b\n\u2028\U0001f600'})
    (tmp_path / "e.json").write_text(kept.text())
    read = Estimates.read(tmp_path / "e.json")
    assert read.text() == kept.text()
    assert read.summary(NOW) == kept.summary(NOW)


def test_what_an_earlier_release_kept_named_no_users(tmp_path: Path) -> None:
    document = {"v": 1, "open": [[1, NOW]], "errors": [[NOW, 4.0]]}
    (tmp_path / "e.json").write_text(json.dumps(document))
    read = Estimates.read(tmp_path / "e.json")
    assert json.loads(read.text()) == {"v": 1, "open": [[1, NOW, ""]], "errors": [[NOW, 4.0, ""]]}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "7",
        "null",
        '{"v": 2, "open": [], "errors": [[1.0, 1.0, ""]]}',
        '{"v": 1, "errors": [[1.0, 1.0, ""]]}',
        '{"v": 1, "open": [[1]], "errors": [[1.0, 1.0, ""]]}',
        '{"v": 1, "open": [["x", 2.0]], "errors": [[1.0, 1.0, ""]]}',
        '{"v": 1, "open": [], "errors": [[1.0, NaN, ""]]}',
        '{"v": 1, "open": [], "errors": [[1.0, 1e999, ""]]}',
        '{"v": 1, "open": [], "errors": [[1.0, 1.0, ""], 7]}',
        '{"v": 1, "open": [[Infinity, 1.0]], "errors": [[1.0, 1.0, ""]]}',
        "[" * 200_000,
        "é\xff",
    ],
)
def test_a_file_that_cannot_be_read_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "e.json").write_bytes(text.encode("latin-1"))
    read = Estimates.read(tmp_path / "e.json")
    assert read.text() == Estimates().text()
    assert read.summary(1.0) == {}


def test_no_file_and_a_folder_are_none(tmp_path: Path) -> None:
    for path in (tmp_path / "absent", tmp_path):
        assert Estimates.read(path).text() == Estimates().text()
