"""Astraea and deadlines (section 5.2.1): who is urgent, what that changes, and what is said of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from slurm_fair.errors import ConfigError
from slurm_fair.policy.registry import load
from slurm_fair_plugins.astraea import Astraea
from tests.support.accounts import Account, reasons, verdicts, view
from tests.support.astraea_views import (
    GRANT,
    NOW,
    RENEW,
    REVOKE,
    WAIT,
    cluster,
    decided,
    granted,
    over,
    running,
)
from tests.support.builders import job, lease, leases
from tests.support.deadline_views import HOUR, TIGHT, with_deadlines

# Leases are long beside what these accounts hold: a running job gives way to a sibling at once.
LAZY, EAGER = Astraea(urgent="off", swap_after=0), Astraea(urgent="any", swap_after=0)
URGENCIES: list[tuple[str, Astraea, dict[str, tuple[float, float]], str]] = [
    ("nobody has a deadline: the neediest", Astraea(), {}, "1"),
    ("one that would miss its deadline a lease later", Astraea(), {"j2": TIGHT}, "2"),
    ("not one that has time", Astraea(), {"j2": (2 * HOUR, 600.0)}, "1"),
    ("one that has time, where every deadline counts", EAGER, {"j2": (2 * HOUR, 600.0)}, "2"),
    ("not one that cannot make it any more", Astraea(), {"j2": (HOUR, HOUR + 1.0)}, "1"),
    ("nor where every deadline counts", EAGER, {"j2": (HOUR, HOUR + 1.0)}, "1"),
    ("one that just makes it", Astraea(), {"j2": (HOUR, HOUR)}, "2"),
    ("not one whose deadline is past", Astraea(), {"j2": (-1.0, float("inf"))}, "1"),
    ("not one of which nobody knows how long it takes", Astraea(), {"j2": (9 * HOUR, float("inf"))}, "1"),
    (
        "of two urgent ones that with less time to spare",
        Astraea(),
        {"j2": TIGHT, "j3": (HOUR, HOUR - 60.0)},
        "3",
    ),
    ("deadlines do not count when switched off", LAZY, {"j2": TIGHT}, "1"),
]


@pytest.mark.parametrize(
    ("policy", "given", "first"), [u[1:] for u in URGENCIES], ids=[u[0] for u in URGENCIES]
)
def test_a_tenant_with_deadlines_offers(
    policy: Astraea, given: dict[str, tuple[float, float]], first: str
) -> None:
    """Three jobs fill the cluster; the first is owed most."""
    seen = cluster(*(job(i, gpus=8, submit=i) for i in (1, 2, 3)))
    accounts = {"1": Account(1, 10), "2": Account(5, 10), "3": Account(9, 10)}
    assert granted(view(with_deadlines(seen, **given), jobs=accounts), policy) == [first]


def test_a_deadline_goes_before_a_first_start_and_before_long_renewed_leases() -> None:
    one = running(1, {"n1": 8})
    seen = with_deadlines(cluster(one, job(2, gpus=8), job(3, gpus=8)), j3=TIGHT)
    held = leases(lease(1, {"n1": 8}, end=NOW, renewals=9))
    accounts = {"1": Account(0, 10), "3": Account(9, 10)}
    now = view(seen, held, jobs=accounts)
    for early in (0.0, 1.0):
        policy = Astraea(keep_long_renewed=5, early_starts=early)
        assert decided(now, policy) == {"1": REVOKE, "2": WAIT, "3": GRANT}
    off = Astraea(keep_long_renewed=5, urgent="off")
    assert decided(now, off) == {"1": REVOKE, "2": GRANT, "3": WAIT}
    assert decided(now, replace(off, new_jobs_first=False)) == {"1": RENEW, "2": WAIT, "3": WAIT}


def test_a_deadline_does_not_buy_another_tenants_turn() -> None:
    seen = with_deadlines(cluster(job(1, gpus=8, tenant="a"), job(2, gpus=8, tenant="b")), j1=TIGHT)
    owed = {"a": Account(20, 10), "b": Account(0, 10)}
    assert decided(view(seen, tenants=owed)) == {"1": WAIT, "2": GRANT}


def test_an_urgent_job_is_not_affected_by_the_end_of_its_lease() -> None:
    one = running(1, {"n1": 8})
    seen = with_deadlines(cluster(one, job(2, gpus=8)), j1=TIGHT)
    accounts = {"1": Account(90, 10), "2": Account(0, 10)}
    plan = Astraea(swap_after=0).plan(view(seen, over(one), jobs=accounts))
    assert verdicts(seen, plan) == {"1": RENEW, "2": WAIT}
    assert reasons(seen, plan)["1"] == "it must go on to make its deadline"
    assert decided(view(seen, over(one), jobs=accounts), LAZY) == {"1": REVOKE, "2": GRANT}


def test_what_is_left_counts_for_a_job_that_runs_and_the_whole_limit_for_one_that_is_to_start() -> None:
    """Slurm starts a job only when its limit fits before its deadline: one that stops here never runs again."""
    one = running(1, {"n1": 8}, time_limit_seconds=4 * HOUR)
    waits = job(2, gpus=8, time_limit_seconds=4 * HOUR)
    seen = with_deadlines(cluster(one, waits), j1=(2 * HOUR, HOUR), j2=(2 * HOUR, HOUR))
    plan = Astraea().plan(view(seen, over(one), jobs={"1": Account(9, 10), "2": Account(0, 10)}))
    assert verdicts(seen, plan) == {"1": RENEW, "2": WAIT}
    assert reasons(seen, plan)["2"] == "it can no longer make its deadline, so it waits its turn"


def test_the_reason_of_an_urgent_grant() -> None:
    seen = with_deadlines(cluster(job(1, gpus=8), job(2, gpus=8)), j2=TIGHT)
    plan = Astraea().plan(view(seen, jobs={"1": Account(0, 10), "2": Account(9, 10)}))
    assert reasons(seen, plan)["2"] == "it must run now to make its deadline"


def test_deadlines_that_are_all_far_off_change_nothing() -> None:
    first = running(1, {"n1": 4}, tenant="a")
    seen = cluster(first, *(job(i, gpus=2, tenant="ab"[i % 2], submit=i) for i in range(2, 9)))
    far = with_deadlines(seen, **{f"j{i}": (99 * HOUR, HOUR) for i in range(1, 9)})
    plans = [Astraea().plan(view(s, over(first))) for s in (seen, far)]
    np.testing.assert_array_equal(plans[0].verdict, plans[1].verdict)
    for name in ("rank", "reason"):
        one, other = (getattr(plan.explanation, name) for plan in plans)
        np.testing.assert_array_equal(one, other)


def test_a_word_that_is_none_of_its_words_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"policy\.astraea.urgent = 'soon': give 'tight' or 'any' or 'off'"):
        Astraea(urgent="soon")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"policy.astraea.urgent = 'soon'"):
        load("astraea", {"urgent": "soon"})
