"""The worth of a GPU-hour in numbers: each term, who is in quota, what a tenant lacks, and the extremes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from slurm_fair.model.sizes import Sizes
from slurm_fair.policy import View, contenders
from slurm_fair_plugins.fair.worth import Objective, Term, Worth, has_shapes
from tests.support.builders import JobSpec, NodeSpec, job, node
from tests.support.fair_plays import HOUR, four, lacking
from tests.support.told_play import ToldPlay

INF = float("inf")
PLAIN = Objective(
    price_hours=1.0, debt_hours=4.0, repay_leases=0.0, unknown_beyond=2.0, claim=0.0, stretch=1.0,
    margin_seconds=0.0, makespan=0.0, makespan_part=0.95, restart_seconds=0.0, inertia=0.0, growing_part=1.0,
)  # fmt: skip


def floats(*numbers: float) -> Any:
    return np.array(numbers, dtype=np.float64)


def played(jobs: list[JobSpec], hours: Mapping[int, float], gpus: int = 8, **more: Any) -> ToldPlay:
    """Jobs on one node, which say how many hours they have left."""
    return ToldPlay(jobs, {"n1": gpus}, left={str(base): HOUR * left for base, left in hours.items()}, **more)


def worth(seen: View, aims: Objective = PLAIN, crowd: int = 1, **settings: float) -> Worth:
    return Worth.of(seen, contenders(seen), crowd, replace(aims, **settings))


def terms(found: Worth) -> list[Term]:
    return [Term(number) for number in found.term.tolist()]


# --- the settings of the objective


@pytest.mark.parametrize(("hours", "price"), [(1.0, 1.0), (2.0, 0.5), (0.5, 2.0), (0.0, 1e4), (1e-9, 1e4)])
def test_the_price_of_quota_is_one_over_its_hours_and_has_an_end(hours: float, price: float) -> None:
    assert replace(PLAIN, price_hours=hours).price == pytest.approx(price)


def test_who_runs_has_less_left_and_who_waits_has_a_restart_before_it() -> None:
    aims = replace(PLAIN, inertia=0.25, restart_seconds=60.0)
    left = aims.counted_left(floats(400.0, 400.0, 1.0), np.array([True, False, False]))
    assert left.tolist() == [300.0, 460.0, 61.0]


@pytest.mark.parametrize(("leases", "part"), [(1.0, 8.0), (4.0, 2.0), (0.0, 0.0)])
def test_a_quota_grows_so_that_what_is_lacking_is_back_after_so_many_leases(
    leases: float, part: float
) -> None:
    """Two hours are eight leases of 900 s."""
    aims = replace(PLAIN, repay_leases=leases)
    assert aims.growth(floats(2.0, 0.0), 900.0).tolist() == pytest.approx([part, 0.0])


def test_a_quota_that_grows_at_once_grows_by_a_number() -> None:
    assert np.isfinite(replace(PLAIN, repay_leases=1e-320).growth(floats(1e9), 900.0)).all()


@pytest.mark.parametrize(
    ("hours", "lacks", "price"),
    [
        (1.0, 0.0, 1.0),
        (1.0, 4.0, 1.0),  # as much as it may lack
        (1.0, 4.5, 51.0),
        (2.0, 4.5, 50.5),
        (0.5, 4.5, 202.0),  # 100 / X^2 below an hour
        (1.0, 4.0 + 36.0, 3601.0),
        (1.0, 1e9, 3601.0),  # no more than a job with a second left is worth
        (0.0, 1e9, 13600.0),
    ],
)
def test_the_price_of_a_tenants_quota_grows_with_what_it_lacks(
    hours: float, lacks: float, price: float
) -> None:
    assert replace(PLAIN, price_hours=hours).own_price(floats(lacks)).tolist() == pytest.approx([price])


# --- quota, and who is nearly done


def test_shorter_jobs_of_a_tenant_fill_its_quota_first_and_only_those_in_it_have_the_price() -> None:
    """Each tenant has four of eight GPUs."""
    found = worth(played([*four("a", 1, 2), *four("b", 3)], {1: 2.0, 2: 0.5, 3: 8.0}).seen())
    assert found.ahead.tolist() == [4.0, 0.0, 0.0]
    assert found.total.tolist() == pytest.approx([0.5, 2.0 + 1.0, 0.125 + 1.0])
    assert terms(found) == [Term.PRICE, Term.NEARLY_DONE, Term.QUOTA]
    assert found.own.tolist() == pytest.approx([0.5, 3.0, 0.125]), "the price may go to others of its tenant"
    assert found.payers.tenant.tolist() == [0, -1, 1]
    assert found.payers.quotas.gpus.tolist() == [0.0, 4.0]
    assert found.payers.quotas.price.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(("hours", "total", "term"), [(1.0, 2.0, Term.NEARLY_DONE), (1.25, 0.8, Term.PRICE)])
def test_beyond_the_quota_a_job_has_the_price_once_no_more_than_that_is_left(
    hours: float, total: float, term: Term
) -> None:
    found = worth(played(four("a", 1, 2), {1: 0.5, 2: hours}, gpus=4).seen())
    assert found.total[1] == pytest.approx(total)
    assert terms(found)[1] is term


def test_the_job_that_crosses_the_quota_is_in_it_and_brings_room_for_the_rest_of_its_gang() -> None:
    jobs = [job(base, gpus=3, submit=float(base)) for base in (1, 2, 3)]
    found = worth(played(jobs, {1: 5.0, 2: 5.0, 3: 5.0}, gpus=4).seen())
    assert found.ahead.tolist() == [0.0, 3.0, 6.0]
    assert found.total.tolist() == pytest.approx([1.2, 1.2, 0.2])
    assert found.payers.beyond.tolist() == pytest.approx([0.0, 2.0, 0.0])
    assert found.payers.quotas.gpus.tolist() == pytest.approx([4.0])


def test_between_equals_the_one_submitted_first_goes_first() -> None:
    jobs = [job(base, gpus=4, submit=100.0 - base) for base in (1, 2, 3)]
    seen = played(jobs, {1: 5.0, 2: 5.0, 3: 5.0}, gpus=4).seen()
    found = worth(seen)
    assert found.order(seen).tolist() == [2, 1, 0]
    assert found.ahead.tolist() == [8.0, 4.0, 0.0]


def test_a_column_by_row_has_a_number_for_each_of_its_jobs_and_for_no_other() -> None:
    seen = played(four("a", 1, 2, 3), {}).seen()
    some = Worth.of(seen, np.array([2, 0]), 1, PLAIN)
    by_row = some.by_row(3, floats(7.0, 9.0))
    assert np.array_equal(by_row, [9.0, math.nan, 7.0], equal_nan=True)


def test_what_a_tenant_holds_under_leases_that_go_on_counts_against_its_quota() -> None:
    play = played(four("a", 1, 2), {1: 9.0, 2: 9.0}, gpus=4)
    play.on, play.since, play.settled = {"1": {"n1": 4}}, {"1": 1.0}, {"1"}
    found = worth(play.seen())
    assert (found.ahead.tolist(), terms(found)) == ([4.0], [Term.PRICE])


def test_thousands_of_jobs_alike_share_one_quota() -> None:
    jobs = [job(base, submit=float(base)) for base in range(1, 2001)]
    found = worth(played(jobs, {}, gpus=8, now=5000.0).seen(), unknown_beyond=1.0)
    assert terms(found).count(Term.NEARLY_DONE) == 2000, "who never ran counts as having 225 s left"
    assert int((found.ahead < 8.0).sum()) == 8
    assert len(np.unique(found.total)) == 1


@pytest.mark.parametrize("nodes", [{}, {"n1": node(8, usable=False)}], ids=["no node", "none that works"])
def test_where_there_are_no_gpus_all_numbers_are_numbers(nodes: dict[str, NodeSpec]) -> None:
    seen = ToldPlay(four("a", 1, 2), nodes, left={"1": HOUR}).seen()
    found = worth(seen, claim=1e4, makespan=1e3, repay_leases=1.0)
    assert np.isfinite(found.total).all()
    assert np.isfinite(found.own).all()
    assert math.isfinite(found.backlog)


# --- work of unknown length


def test_what_a_job_of_unknown_length_ran_counts_as_left_and_twice_beyond_the_quota() -> None:
    play = played(
        [*four("a", 1, 2), *four("b", 3)], {}, gpus=8, ran={"1": HOUR, "2": 2 * HOUR, "3": 3 * HOUR}
    )
    found = worth(play.seen())
    assert found.left.tolist() == pytest.approx([HOUR, 4 * HOUR, 3 * HOUR])
    assert found.run_left.tolist() == pytest.approx([HOUR, 2 * HOUR, 3 * HOUR])
    assert not found.known.any()
    assert found.backlog == 0.0, "nobody knows of any"
    assert (found.slack == INF).all()


def test_a_time_limit_that_leaves_less_than_a_job_ran_is_what_it_has_left() -> None:
    limited = job(1, gpus=4, time_limit_seconds=2.5 * HOUR)
    free = job(2, gpus=4, tenant="b")
    found = worth(played([limited, free], {}, ran={"1": 2 * HOUR, "2": 2 * HOUR}).seen())
    assert found.limited.tolist() == [True, False]
    assert found.left.tolist() == pytest.approx([0.5 * HOUR, 2 * HOUR])


def test_work_that_was_said_is_not_limited() -> None:
    found = worth(played([job(1, time_limit_seconds=60.0)], {1: 5.0}).seen())
    assert (found.known.tolist(), found.limited.tolist()) == ([True], [False])


# --- claims and the makespan


@pytest.mark.parametrize(
    ("now", "slack", "claim"),
    [
        (900.0, HOUR - 900.0, 0.0),
        (HOUR, 0.0, 0.0),  # it must start now, and is not late
        (2 * HOUR, -HOUR, 2e4),  # an hour late
    ],
)
def test_a_claim_begins_when_a_job_must_start_and_grows_with_each_hour(
    now: float, slack: float, claim: float
) -> None:
    """Sixteen jobs share eight GPUs: an hour of work is due two hours after its submission."""
    found = worth(played([job(1, gpus=8)], {1: 1.0}, now=now).seen(), claim=1e4, crowd=16)
    assert found.slack.tolist() == pytest.approx([slack])
    assert found.total.tolist() == pytest.approx([2.0 + claim])
    assert (terms(found) == [Term.CLAIM]) == (claim > 0)


def test_the_margin_is_added_to_how_late_a_job_is() -> None:
    seen = played([job(1, gpus=8)], {1: 1.0}, now=HOUR).seen()
    found = worth(seen, claim=1e4, margin_seconds=1800.0, crowd=16)
    assert found.total.tolist() == pytest.approx([2.0 + 1.5e4])


def test_where_there_is_a_gpu_for_everybody_nobody_has_a_claim() -> None:
    seen = played([job(1, gpus=8)], {1: 1.0}, now=9 * HOUR).seen()
    assert worth(seen, claim=1e4, crowd=8).slack.tolist() == [INF]
    assert worth(seen, claim=1e4, crowd=9).slack[0] < 0.0
    assert worth(seen, claim=0.0, crowd=9).slack.tolist() == [INF]


def test_a_job_as_long_as_all_work_is_worth_more_by_its_part_of_the_backlog() -> None:
    """Forty hours of four GPUs are twenty of eight."""
    jobs = [*four("a", 1), *four("b", 2)]
    found = worth(played(jobs, {1: 20.0, 2: 20.0}).seen(), makespan=1e3)
    assert found.backlog == pytest.approx(20 * HOUR)
    assert found.total.tolist() == pytest.approx([1.05 + 2e3] * 2)
    assert terms(found) == [Term.MAKESPAN] * 2


def test_the_guard_looks_two_leases_ahead() -> None:
    """The backlog is the longest job; the others are guarded down to 0.95 of it less half an hour."""
    jobs = [job(base, tenant=f"t{base}") for base in (1, 2, 3)]
    found = worth(played(jobs, {1: 40.0, 2: 37.51, 3: 37.49}).seen(), makespan=1e3)
    assert found.backlog == pytest.approx(40 * HOUR)
    assert [term is Term.MAKESPAN for term in terms(found)] == [True, True, False]


def test_the_longest_job_counts_before_what_its_tenant_holds() -> None:
    play = played(four("a", 1, 2), {1: 1.0, 2: 30.0}, gpus=4)
    play.on, play.since, play.settled = {"1": {"n1": 4}}, {"1": 1.0}, {"1"}
    found = worth(play.seen(), makespan=1e3)
    assert (found.ahead.tolist(), terms(found)) == ([0.0], [Term.MAKESPAN])


def test_neither_claim_nor_guard_counts_beyond_the_quota() -> None:
    """Job 1 fills the quota; both are hours late, and each is as long as all work there is."""
    seen = played(four("a", 1, 2), {1: 20.0, 2: 20.0}, gpus=4, now=90 * HOUR).seen()
    found = worth(seen, claim=1e4, makespan=1e3, crowd=16)
    assert found.total[0] > 1e4
    assert found.total[1] == pytest.approx(0.05)
    assert terms(found) == [Term.CLAIM, Term.PRICE]


# --- what a tenant lacks


def test_an_hour_more_than_a_tenant_may_lack_adds_a_hundred_to_its_price() -> None:
    play = played([*four("a", 1), *four("b", 2)], {1: 2.0, 2: 2.0})
    found = worth(lacking(play, 5.0))
    assert found.total.tolist() == pytest.approx([1.5, 101.5])
    assert terms(found) == [Term.QUOTA, Term.DEBT]
    assert found.debt.tolist() == pytest.approx([0.0, 5.0])
    assert found.payers.quotas.price.tolist() == pytest.approx([1.0, 101.0])


def test_as_much_as_a_tenant_may_lack_is_no_debt() -> None:
    found = worth(lacking(played(four("b", 1), {1: 2.0}), 4.0))
    assert (found.debt.tolist(), terms(found)) == ([0.0], [Term.QUOTA])


def test_what_a_tenant_lacks_pays_it_back_beyond_its_quota() -> None:
    """A quarter of an hour of four GPUs is back after a lease of four GPUs more."""
    play = played([*four("a", 1), *four("b", 2, 3, 4)], dict.fromkeys(range(1, 5), 5.0))
    found = worth(lacking(play, 0.25), repay_leases=1.0)
    assert found.quota.tolist() == [4.0] * 4
    assert found.repaid.tolist() == pytest.approx([0.0, 4.0, 4.0, 4.0])
    assert terms(found) == [Term.QUOTA, Term.QUOTA, Term.QUOTA, Term.PRICE]


@pytest.mark.parametrize(("term", "least"), [(900.0, 225.0), (9000.0, 240.0)])
def test_while_a_tenant_lacks_too_much_a_job_beyond_a_quota_has_minutes_left_at_least(
    term: float, least: float
) -> None:
    jobs = [*four("a", 1, 2), *four("b", 3)]
    play = played(jobs, {1: 1.0 / HOUR, 2: 1.5 / HOUR, 3: 9.0}, term=term)
    assert worth(lacking(play, 4.0)).total[1] == pytest.approx(HOUR / 1.5 + 1.0)
    found = worth(lacking(play, 4.1))
    assert found.total[:2].tolist() == pytest.approx([HOUR + 1.0, HOUR / least + 1.0])


# --- shapes


def test_jobs_could_run_in_other_shapes_where_types_or_sizes_differ() -> None:
    one = played([job(1, gpus=4)], {}).seen().snapshot
    assert not has_shapes(one)
    nowhere = np.zeros(0, dtype=np.int64)
    assert not has_shapes(replace(one, sizes=Sizes(nowhere, nowhere, nowhere.astype(bool))))
    sizes = Sizes(np.zeros(2, dtype=np.int64), np.array([2, 4]), np.array([False, True]))
    assert has_shapes(replace(one, sizes=sizes))
    both = {"n1": node(4, gpu_type="x"), "n2": node(4, gpu_type="y")}
    assert has_shapes(ToldPlay([job(1)], both).seen().snapshot)


def test_at_best_is_the_time_on_the_fastest_type() -> None:
    both = {"n1": node(4, gpu_type="x"), "n2": node(4, gpu_type="y")}
    rates = {"1": (1.0, 4.0), "2": (0.0, 0.0)}
    found = worth(ToldPlay([job(1), job(2)], both, left={"1": HOUR, "2": HOUR}, rates=rates).seen())
    assert found.at_best.tolist() == pytest.approx([HOUR / 4.0, HOUR]), "as usual where it has no way now"


@pytest.mark.parametrize("left", [math.inf, 1e300])
def test_no_warning_comes_of_work_without_an_end_and_weights_that_are_next_to_nothing(left: float) -> None:
    """Warnings are errors in tests."""
    jobs = [job(1, gpus=4, tenant="a"), job(2, gpus=4, tenant="b"), job(3, gpus=4, tenant="b")]
    seen = played(jobs, {1: 1.0, 2: 1.0}, weights={"a": 1e-300, "b": 1e12}).seen()
    assert seen.snapshot.told is not None
    told = seen.snapshot.told.with_columns(left_seconds=floats(left, HOUR, np.nan))
    endless = replace(seen, snapshot=replace(seen.snapshot, told=told))
    assert np.isfinite(worth(endless, claim=1e4, makespan=1e3, crowd=16).total).all()
    owed = seen.ledger.tenants.with_columns(had=np.zeros(2), owed_demand=np.full(2, 1e300))
    lacks = replace(endless, ledger=replace(seen.ledger, tenants=owed))
    assert np.isfinite(worth(lacks, repay_leases=1.0).total).all()
