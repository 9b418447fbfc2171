"""A look whose jobs are known."""

from __future__ import annotations

import pytest

from tests.support.reporting import Looks, MemoryShelf, known_rate, running, told, waiting


def test_without_learning_a_job_is_told_by_its_own_reports_alone() -> None:
    looks = Looks(learns=False)
    seen = looks.trains([running(1)], 5.0, 120)
    assert told(seen, "steps_per_second", 1) == pytest.approx(5.0)
    assert looks.look(150, [running(1), waiting(2)]).speeds is None


def test_what_is_known_outlives_the_daemon() -> None:
    shelf = MemoryShelf()
    looks, job = Looks(shelf), running(1, start=10)
    looks.trains([job], 5.0, 120, since=10)
    looks.knowing.write(130)
    again = Looks(shelf)
    seen = again.look(160, [job, waiting(2)], {1: {"step": 90_000, "steps": 1e5}})
    assert known_rate(seen, 2, "a100", 1) == pytest.approx(5.0, rel=0.05)
    assert seen.reported is not None
    assert seen.reported.believed.item() < 1000, "progress is believed from where it stood"


def test_it_is_written_down_once_a_minute_and_only_where_something_is_known() -> None:
    looks = Looks()
    for time in range(0, 300, 10):
        looks.look(time, [running(1)])
        looks.knowing.hear([], looks.standing(time), time)
    assert looks.shelf.writings == 0
    for time in range(300, 600, 10):
        looks.look(time, [running(1)], {1: {"step": time, "steps": 1000}})
        looks.knowing.hear([], looks.standing(time), time)
    assert 4 <= looks.shelf.writings <= 6


def test_what_goes_wrong_costs_no_look(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    looks = Looks()
    looks.profiled = True
    monkeypatch.setattr("slurm_fair.knowing.cluster.with_speeds", lambda *_: 1 / 0)
    seen = looks.look(10, [running(1)])
    assert (seen.told, seen.profiles) == (None, None)
    assert "this look goes without it" in caplog.text
