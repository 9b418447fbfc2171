"""The rule of urgency: who must run now to make a deadline, and who is too late for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from slurm_fair.policy import Deadlines, Urgency
from tests.support.accounts import view
from tests.support.astraea_views import cluster, over, running
from tests.support.builders import job
from tests.support.deadline_views import HOUR, TIGHT, with_deadlines

INF = float("inf")
SOON = 900.0 + 60.0 + 10.0  # a lease, the grace and the time between looks


def found(said: tuple[float, float], urgent: Urgency = "tight", limit: float = INF) -> Deadlines | None:
    seen = cluster(job(1, gpus=8, time_limit_seconds=limit))
    return Deadlines.of(view(with_deadlines(seen, j1=said)), np.array([0]), urgent)


CASES: list[tuple[str, tuple[float, float], Urgency, float, bool, bool]] = [
    ("it must start within ten minutes", TIGHT, "tight", INF, True, False),
    ("it has time for a lease of another", (HOUR + SOON, HOUR), "tight", INF, False, False),
    ("it has a second less", (HOUR + SOON - 1.0, HOUR), "tight", INF, True, False),
    ("it has time, and every deadline counts", (9 * HOUR, HOUR), "any", INF, True, False),
    ("it just makes it", (HOUR, HOUR), "tight", INF, True, False),
    ("it does not", (HOUR, HOUR + 1.0), "tight", INF, False, True),
    ("it does not, and every deadline counts", (HOUR, HOUR + 1.0), "any", INF, False, True),
    ("its deadline is past", (-1.0, INF), "tight", INF, False, True),
    ("nobody knows how long it takes", (9 * HOUR, INF), "tight", INF, False, False),
    ("nobody knows how long it takes, to the last", (1.0, INF), "tight", INF, False, False),
    ("nobody knows how long it takes, and every deadline counts", (9 * HOUR, INF), "any", INF, True, False),
    ("its limit alone says how long it takes", (9 * HOUR, INF), "tight", 9 * HOUR, True, False),
    ("its whole limit must fit, though less is left", (HOUR, 60.0), "tight", 2 * HOUR, False, True),
    ("its whole limit just fits", (2 * HOUR, 60.0), "tight", 2 * HOUR, True, False),
]


@pytest.mark.parametrize(
    ("said", "setting", "limit", "urgent", "missed"), [each[1:] for each in CASES], ids=[e[0] for e in CASES]
)
def test_a_job_is_urgent_where_a_start_a_lease_later_is_too_late(
    said: tuple[float, float], setting: Urgency, limit: float, urgent: bool, missed: bool
) -> None:
    deadlines = found(said, setting, limit)
    assert deadlines is not None
    assert (deadlines.urgent.tolist(), deadlines.missed.tolist()) == ([urgent], [missed])


def test_a_job_that_runs_is_too_late_only_once_what_it_has_left_does_not_fit() -> None:
    one = running(1, {"n1": 8}, time_limit_seconds=2 * HOUR)
    seen = with_deadlines(cluster(one), j1=(HOUR, 60.0))
    deadlines = Deadlines.of(view(seen, over(one)), np.array([0]), "tight")
    assert deadlines is not None
    assert (deadlines.urgent.tolist(), deadlines.missed.tolist()) == ([True], [False])


def test_a_job_that_runs_and_may_take_any_time_is_not_urgent_either() -> None:
    """Its siblings would wait from its start to its deadline."""
    one = running(1, {"n1": 8})
    seen = with_deadlines(cluster(one, job(2, gpus=8)), j1=(720 * HOUR, INF), j2=TIGHT)
    deadlines = Deadlines.of(view(seen, over(one)), np.array([0, 1]), "tight")
    assert deadlines is not None
    assert deadlines.urgent.tolist() == [False, True]
    assert deadlines.spare.tolist() == [INF, 600.0]


@pytest.mark.parametrize(
    ("ahead", "left", "urgent", "missed"),
    [
        (HOUR, INF, False, False),
        (900.0, INF, True, False),  # Slurm starts it, and cuts its limit
        (300.0, INF, True, False),
        (299.0, INF, False, True),
        (900.0, 600.0, True, False),
        (599.0, 600.0, False, True),
        (200.0, 60.0, False, True),
    ],
)
def test_a_job_with_a_least_time_is_late_when_that_does_not_fit(
    ahead: float, left: float, urgent: bool, missed: bool
) -> None:
    """It asks for 20 minutes and takes five; what it reports of itself counts where that is more."""
    seen = with_deadlines(cluster(job(1, gpus=8, time_limit_seconds=1200.0)), j1=(ahead, left))
    assert seen.told is not None
    seen = replace(seen, told=seen.told.with_columns(must_fit_seconds=np.array([300.0])))
    deadlines = Deadlines.of(view(seen), np.array([0]), "tight")
    assert deadlines is not None
    assert (deadlines.urgent.tolist(), deadlines.missed.tolist()) == ([urgent], [missed])


@pytest.mark.parametrize("name", ["nobody is told anything", "a deadline, and nobody minds"])
def test_nothing_is_worked_out_where_nothing_could_come_of_it(name: str) -> None:
    plain = cluster(job(1))
    urgent: Urgency = "tight" if "told" in name else "off"
    seen = plain if "told" in name else with_deadlines(plain, j1=TIGHT)
    assert Deadlines.of(view(seen), np.array([0]), urgent) is None
