"""The house policy and deadlines: an urgent job goes before others of its tenant, and before nobody else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from slurm_fair.errors import ConfigError
from slurm_fair.model import Snapshot
from slurm_fair.policy.decided import decided as said_of
from slurm_fair.policy.registry import load
from slurm_fair_plugins.fair import Fair
from tests.support.accounts import reasons, verdicts, view
from tests.support.astraea_views import GRANT, NOW, RENEW, REVOKE, WAIT, cluster, over, running
from tests.support.builders import NodeSpec, job, lease, leases, node
from tests.support.deadline_views import HOUR, TIGHT, with_deadlines

INF = float("inf")
NOW_OR_NEVER = (HOUR, HOUR)


def decided(seen: Snapshot, held: Any = None, **settings: Any) -> dict[str, Any]:
    return verdicts(seen, Fair(**settings).plan(view(seen, held)))


def granted(seen: Snapshot, **settings: Any) -> set[str]:
    return {label for label, verdict in decided(seen, **settings).items() if verdict == GRANT}


CASES: list[tuple[str, str, dict[str, tuple[float, float]], str]] = [
    ("nobody has a deadline", "tight", {}, "1"),
    ("one that would miss its deadline a lease later", "tight", {"j2": TIGHT}, "2"),
    ("one that has to start now", "tight", {"j3": NOW_OR_NEVER}, "3"),
    ("not one that has time", "tight", {"j2": (9 * HOUR, 2 * HOUR)}, "1"),
    ("one that has time, where every deadline counts", "any", {"j2": (9 * HOUR, 2 * HOUR)}, "2"),
    ("not one that is too late", "tight", {"j2": (HOUR, HOUR + 1.0)}, "1"),
    ("not one whose deadline is past", "tight", {"j2": (-1.0, HOUR)}, "1"),
    ("of two the one with less time to spare", "tight", {"j2": TIGHT, "j3": NOW_OR_NEVER}, "3"),
    ("deadlines do not count when switched off", "off", {"j2": TIGHT}, "1"),
]


@pytest.mark.parametrize("solver", ["off", "always"])
@pytest.mark.parametrize(("urgent", "given", "first"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_of_one_tenants_jobs_goes_first(
    urgent: str, given: dict[str, tuple[float, float]], first: str, solver: str
) -> None:
    """Three jobs of which each fills the cluster; the first has least left."""
    seen = cluster(*(job(i, gpus=8, submit=i) for i in (1, 2, 3)))
    left = {"j1": (INF, 600.0), "j2": (INF, 2 * HOUR), "j3": (INF, 3 * HOUR)}
    seen = with_deadlines(seen, **(left | given))
    assert granted(seen, urgent=urgent, solver=solver) == {first}


def test_the_plan_that_stands_in_for_a_late_one_minds_deadlines_too() -> None:
    seen = with_deadlines(cluster(job(1, gpus=8), job(2, gpus=8)), j1=(INF, 600.0), j2=TIGHT)
    assert verdicts(seen, Fair(solver="always").quick_plan(view(seen))) == {"1": WAIT, "2": GRANT}


# Each tenant owns four of eight GPUs; of those of tenant a the first two are shorter than all of tenant b.
def two_tenants(*more: Any, gpus: int = 4) -> Snapshot:
    mine = [job(base, gpus=gpus, tenant="a", submit=base) for base in (1, 2, 3)]
    others = [job(base, gpus=4, tenant="b", submit=base) for base in (5, 6)]
    seen = cluster(*mine, *others, *more)
    left = {"j1": 5.0, "j2": 6.0, "j3": 9.0, "j5": 7.0, "j6": 8.0}
    return with_deadlines(seen, **{name: (INF, HOUR * hours) for name, hours in left.items()})


PLAIN = {"claim_weight": 0.0, "makespan_weight": 0.0}


def test_an_urgent_job_is_served_within_its_tenants_quota_and_others_keep_theirs() -> None:
    seen = two_tenants()
    assert granted(seen, **PLAIN) == {"1", "5"}
    assert granted(with_deadlines(seen, j3=(9 * HOUR, 9 * HOUR)), **PLAIN) == {"3", "5"}


@pytest.mark.parametrize("who", ["j1", "j2", "j3"])
def test_all_of_a_tenants_jobs_have_deadlines_and_win_it_nothing(who: str) -> None:
    seen = two_tenants()
    for name in ("j1", "j2", "j3"):
        seen = with_deadlines(seen, **{name: (9 * HOUR, 9 * HOUR - 600.0 * (name != who))})
    assert granted(seen, **PLAIN) == {who.removeprefix("j"), "5"}


def test_a_gang_that_is_larger_than_what_siblings_have_of_the_quota_waits_its_turn() -> None:
    big = job(4, gpus=8, tenant="a")
    seen = with_deadlines(two_tenants(big), j4=(20 * HOUR, 20 * HOUR))
    assert granted(seen, **PLAIN) == {"1", "5"}
    alone = with_deadlines(cluster(job(1, gpus=4, tenant="a"), big), j1=(INF, HOUR), j4=NOW_OR_NEVER)
    assert granted(alone, **PLAIN) == {"4"}, "its tenant is alone, and all of the cluster is its quota"


def test_what_a_tenant_holds_under_leases_that_go_on_leaves_its_urgent_job_no_quota() -> None:
    """Tenant b gets both GPUs that come free: tenant a has its four."""
    one = running(1, {"n1": 4}, tenant="a")
    other = running(2, {"n1": 2}, tenant="b")
    waits = [job(3, gpus=2, tenant="a"), job(4, gpus=2, tenant="b", submit=50.0)]
    held = leases(lease(1, {"n1": 4}, end=NOW + 500.0), lease(2, {"n1": 2}, end=NOW + 500.0))
    seen = with_deadlines(cluster(one, other, *waits), j3=(9 * HOUR, 9 * HOUR), j4=(INF, 12 * HOUR))
    said = decided(seen, held, **PLAIN)
    assert (said["3"], said["4"]) == (WAIT, GRANT)


def test_an_urgent_job_that_runs_is_not_stopped_for_a_sibling() -> None:
    one = running(1, {"n1": 8})
    plain = with_deadlines(cluster(one, job(2, gpus=8)), j1=(INF, 5 * HOUR), j2=(INF, 60.0))
    assert decided(plain, over(one), **PLAIN) == {"1": REVOKE, "2": GRANT}
    seen = with_deadlines(plain, j1=(5 * HOUR, 5 * HOUR))
    assert decided(seen, over(one), **PLAIN) == {"1": RENEW, "2": WAIT}
    assert decided(seen, over(one), urgent="off", **PLAIN) == {"1": REVOKE, "2": GRANT}


def test_the_deadline_of_a_job_that_waits_and_may_take_any_time_changes_nothing() -> None:
    seen = cluster(*(job(i, gpus=8, submit=i) for i in (1, 2, 3)))
    seen = with_deadlines(seen, j1=(INF, INF), j2=(INF, 2 * HOUR), j3=(INF, 3 * HOUR))
    for who in ("j1", "j2", "j3"):
        one = with_deadlines(seen, **{who: (INF, INF)})
        assert granted(with_deadlines(one, **{who: (720 * HOUR, INF)})) == granted(one)


def test_a_job_that_runs_and_may_take_any_time_gives_way_to_a_sibling_whatever_its_deadline() -> None:
    one = running(1, {"n1": 8})
    seen = with_deadlines(cluster(one, job(2, gpus=8)), j1=(INF, INF), j2=(INF, 60.0))
    without = decided(seen, over(one))
    assert without == {"1": REVOKE, "2": GRANT}
    assert decided(with_deadlines(seen, j1=(720 * HOUR, INF)), over(one)) == without


def test_an_urgent_job_takes_the_gpus_of_a_sibling_whose_lease_is_over() -> None:
    one = running(1, {"n1": 8})
    seen = with_deadlines(cluster(one, job(2, gpus=8)), j1=(INF, HOUR), j2=TIGHT)
    assert decided(seen, over(one)) == {"1": REVOKE, "2": GRANT}


def test_a_sibling_that_is_renewed_in_any_case_lends_its_place_to_nobody() -> None:
    """Job 1 cannot save: beside it an urgent job in its place would be GPUs that tenant b is owed."""
    one = running(1, {"n1": 4}, tenant="a", checkpoints=False)
    two = running(2, {"n1": 4}, tenant="b")
    waits = job(3, gpus=4, tenant="a")
    seen = with_deadlines(cluster(one, two, waits), j1=(INF, HOUR), j2=(INF, 9 * HOUR), j3=TIGHT)
    assert decided(seen, over(one, two)) == {"1": RENEW, "2": RENEW, "3": WAIT}


def test_tasks_that_their_arrays_own_limit_keeps_back_change_no_place() -> None:
    tasks = [job(9, task=task, gpus=4, array_limit=1) for task in (0, 1)]
    seen = cluster(job(1, gpus=4), job(2, gpus=4), *tasks)
    seen = with_deadlines(seen, j1=(INF, 60.0), j2=(INF, 90.0), j9_0=TIGHT, j9_1=TIGHT)
    assert granted(seen) == {"9_0", "1"}


def test_where_jobs_have_a_choice_of_gpu_types_the_solver_serves_the_urgent_one() -> None:
    nodes: dict[str, int | NodeSpec] = {"n1": node(4, gpu_type="x"), "n2": node(4, gpu_type="y")}
    mine = [job(base, gpus=4, tenant="a", submit=base) for base in (1, 2)]
    seen = cluster(*mine, job(3, gpus=4, tenant="b"), gpus=nodes)
    seen = with_deadlines(seen, j1=(INF, 2 * HOUR), j2=(INF, 5 * HOUR), j3=(INF, 4 * HOUR))
    assert granted(seen, **PLAIN, solver_gap=0.0) == {"1", "3"}
    urgent = with_deadlines(seen, j2=(5 * HOUR, 5 * HOUR))
    assert granted(urgent, **PLAIN, solver_gap=0.0) == {"2", "3"}


# --- what is said of it


def told(seen: Snapshot, held: Any = None) -> dict[str, str]:
    return reasons(seen, Fair(**PLAIN).plan(view(seen, held)))  # type: ignore[arg-type]


def test_the_reasons_name_the_deadline() -> None:
    seen = two_tenants()
    said = told(with_deadlines(seen, j2=(HOUR, 2 * HOUR), j3=(9 * HOUR, 9 * HOUR)))
    assert said["3"] == "it must run now to make its deadline"
    assert said["1"].endswith(": a job of its tenant must run now to make its deadline")
    assert said["2"] == "it can no longer make its deadline, so it waits its turn"
    assert said["5"].startswith("its tenant is within its quota (0 of 4 GPUs go before it)")


def test_the_reasons_of_those_who_run_name_it_too() -> None:
    one = running(1, {"n1": 8})
    seen = with_deadlines(cluster(one, job(2, gpus=8)), j1=(5 * HOUR, 5 * HOUR), j2=(INF, 60.0))
    said = told(seen, over(one))
    assert said["1"] == "it must go on to make its deadline"
    assert said["2"].endswith(": a job of its tenant must run now to make its deadline")


def test_an_urgent_job_that_waits_all_the_same_hears_why() -> None:
    seen = two_tenants(job(4, gpus=8, tenant="a"))
    said = told(with_deadlines(seen, j4=(20 * HOUR, 20 * HOUR)))
    assert "its tenant is beyond its quota" in said["4"]


def test_who_asks_is_told_that_deadlines_decide_between_equals() -> None:
    seen = cluster(job(1, gpus=8, submit=1), job(2, gpus=8, submit=2))
    then = "the time of its submission"
    for given, named in (({}, then), ({"j2": TIGHT}, f"its deadline, or {then}")):
        shown = view(with_deadlines(seen, **given))
        assert said_of(Fair(), Fair().plan(shown), shown).then == named


# --- where nobody is urgent


@pytest.mark.parametrize("solver", ["off", "always"])
def test_deadlines_that_are_all_far_off_change_nothing(solver: str) -> None:
    first = running(1, {"n1": 4}, tenant="a")
    seen = cluster(first, *(job(i, gpus=2, tenant="ab"[i % 2], submit=i) for i in range(2, 9)))
    near = with_deadlines(seen, **{f"j{i}": (INF, i * HOUR) for i in range(1, 9)})
    far = with_deadlines(near, **{f"j{i}": (99 * HOUR, i * HOUR) for i in range(1, 9)})
    policy = Fair(solver=solver)  # type: ignore[arg-type]
    plans = [policy.plan(view(each, over(first))) for each in (near, far)]
    np.testing.assert_array_equal(plans[0].verdict, plans[1].verdict)
    for name in ("rank", "score", "reason", "reasons"):
        np.testing.assert_array_equal(*(getattr(plan.explanation, name) for plan in plans))
    assert plans[0].memory == plans[1].memory


def test_a_word_that_is_none_of_its_words_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"policy.fair.urgent = 'soon'"):
        load("fair", {"urgent": "soon"})
    assert replace(Fair(), urgent="any") == load("fair", {"urgent": "any"})
