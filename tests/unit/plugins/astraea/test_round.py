"""The parts of one round: candidates, each tenant's own order, the picks, and what is worked out on demand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from slurm_fair.model import LeasePhase, Leases, LeaseTerms, Verdict
from slurm_fair.model.ids import labels
from slurm_fair.policy import Draft, View
from slurm_fair_plugins.astraea.round import Round
from slurm_fair_plugins.astraea.settings import AstraeaSettings
from tests.support.accounts import Account, view
from tests.support.astraea_views import NOW, cluster, over, running
from tests.support.builders import JobSpec, job, lease, leases

Accounts = Mapping[str, Account]


def seen(
    *jobs: JobSpec, held: Leases | None = None, tenants: Accounts | None = None, alone: Accounts | None = None,
    gpus: int = 8, **weights: float,
) -> View:  # fmt: skip
    """A view of one node; `alone` are the accounts of jobs."""
    return view(cluster(*jobs, gpus=gpus, **weights), held, tenants, alone)


def round_of(shown: View, **settings: Any) -> Round:
    return Round(AstraeaSettings(**settings), shown)


def named(round_: Round, numbers: Any) -> list[str]:
    """The labels of some candidates."""
    rows = round_.candidates.rows[numbers]
    return labels(round_.view.snapshot.jobs.key[rows])


# --- candidates


def test_candidates_wait_or_run_under_a_lease_that_is_over() -> None:
    ended, goes_on = running(1, {"n1": 2}), running(2, {"n1": 2})
    stays = running(4, {"n1": 1}, checkpoints=False)
    held = leases(
        lease(1, {"n1": 2}, end=NOW), lease(2, {"n1": 2}, end=NOW + 1), lease(4, {"n1": 1}, end=NOW)
    )
    round_ = round_of(seen(ended, goes_on, job(3), stays, held=held))
    assert round_.candidates.rows.tolist() == [0, 2]
    assert round_.running.tolist() == [True, False]
    assert round_.candidates.asking.tolist() == [-1, 0]
    assert round_.uncontested.tolist() == [3], "it would lose its work"


def test_where_nobody_runs_those_who_wait_are_all_and_nobody_is_renewed_for_sure() -> None:
    round_ = round_of(seen(job(1), job(2)))
    assert (round_.candidates.rows.tolist(), round_.running.any()) == ([0, 1], np.False_)
    assert (round_.uncontested.size, round_.expected.tolist()) == (0, [False, False])


def test_a_gang_that_no_node_could_take_is_in_no_order() -> None:
    round_ = round_of(seen(job(1, gpus=18, gpus_per_node=9), job(2)))
    assert round_.nowhere.tolist() == [True, False]
    assert named(round_, round_.order) == ["2"]
    assert round_.rank.tolist() == [-1, 0]


# --- a tenant's own order


def test_a_tenant_prefers_first_starts_then_what_was_long_renewed_then_the_neediest() -> None:
    kept = running(1, {"n1": 2})
    held = leases(lease(1, {"n1": 2}, end=NOW, renewals=5))
    accounts = {"1": Account(9, 10), "2": Account(1, 10), "3": Account(0, 10, ran=0.0), "4": Account(2, 10)}
    shown = seen(kept, job(4), job(2), job(3), held=held, alone=accounts)
    settings = {"keep_long_renewed": 5, "swap_after": 0.0}
    assert named(*ordered(shown, **settings)) == ["3", "1", "2", "4"]
    assert named(*ordered(shown, **{**settings, "keep_long_renewed": 6})) == ["3", "2", "4", "1"]
    assert named(*ordered(shown, **settings, new_jobs_first=False)) == ["1", "3", "2", "4"]


def ordered(shown: View, **settings: Any) -> tuple[Round, Any]:
    """The round and its picks."""
    round_ = round_of(shown, **settings)
    return round_, round_.order


@pytest.mark.parametrize(("renewals", "first"), [(7, "2"), (8, "1")])
def test_renewals_of_a_quarter_of_a_term_count_as_quarters(renewals: int, first: str) -> None:
    held = leases(lease(1, {"n1": 2}, end=NOW, renewals=renewals))
    accounts = {"1": Account(9, 10), "2": Account(1, 10)}
    shown = seen(running(1, {"n1": 2}), job(2), held=held, alone=accounts)
    short = replace(shown, terms=LeaseTerms(term=900.0, renewal=225.0, aligned=False))
    assert named(*ordered(short, keep_long_renewed=2, swap_after=0.0))[0] == first


def test_who_runs_is_forgiven_leases_of_its_gang_against_siblings_alone() -> None:
    """Four leases of 2 GPUs are 7200 GPU seconds: with these it would be behind."""
    accounts = {"1": Account(7300.0, 10_000.0), "2": Account(200.0, 10_000.0)}
    shown = seen(running(1, {"n1": 2}), job(2), held=over(running(1, {"n1": 2})), alone=accounts)
    assert named(*ordered(shown)) == ["1", "2"]
    assert named(*ordered(shown, swap_after=3.0)) == ["2", "1"]
    assert round_of(shown).rho.tolist() == pytest.approx([0.73, 0.02]), "its score stays"


def test_of_equals_the_one_submitted_first_comes_first() -> None:
    jobs = [job(base, submit=100.0 - base) for base in range(1, 40)]
    assert named(*ordered(seen(*jobs))) == [str(base) for base in range(39, 0, -1)]


# --- the picks


def test_each_pick_is_charged_a_lease_of_its_gang_before_the_next() -> None:
    """Each tenant is owed 9000; a lease of one GPU is a tenth of that, and b begins half a one behind."""
    jobs = [*(job(base, tenant="a") for base in (1, 2, 3)), *(job(base, tenant="b") for base in (4, 5, 6))]
    owed = {"a": Account(450, 9000), "b": Account(0, 9000)}
    assert named(*ordered(seen(*jobs, tenants=owed))) == ["4", "1", "5", "2", "6", "3"]


def test_what_is_renewed_for_sure_is_charged_before_the_first_pick() -> None:
    stays = running(1, {"n1": 4}, tenant="a", checkpoints=False)
    owed = {"a": Account(0, 9000), "b": Account(3000, 9000)}
    shown = seen(stays, job(2, tenant="a"), job(3, tenant="b"), held=over(stays), tenants=owed)
    assert named(*ordered(shown)) == ["3", "2"]


def test_places_in_the_order_are_by_row_and_others_have_none() -> None:
    ended = running(1, {"n1": 4}, tenant="a")
    goes_on = running(2, {"n1": 2}, tenant="a")
    held = leases(lease(1, {"n1": 4}, end=NOW), lease(2, {"n1": 2}, end=NOW + 9))
    owed = {"a": Account(90, 10), "b": Account(0, 10)}
    round_ = round_of(seen(ended, goes_on, job(3, tenant="b"), held=held, tenants=owed))
    assert round_.rank.tolist() == [1, -1, 0]


def test_scores_are_those_of_candidates_and_of_who_is_renewed_for_sure() -> None:
    stays, goes_on = running(1, {"n1": 2}, checkpoints=False), running(2, {"n1": 2})
    held = leases(lease(1, {"n1": 2}, end=NOW), lease(2, {"n1": 2}, end=NOW + 9))
    accounts = {"1": Account(4, 10), "2": Account(7, 10), "3": Account(5, 20)}
    score = round_of(seen(stays, goes_on, job(3), held=held, alone=accounts)).score
    assert np.array_equal(score, [0.4, np.nan, 0.25], equal_nan=True)


# --- early starts


def test_early_starts_go_first_as_far_as_the_quota_of_their_tenant_reaches() -> None:
    """Each of two tenants has four of eight GPUs; a is owed nothing more."""
    jobs = [*(job(base, gpus=2, tenant="a") for base in (1, 2, 3)), job(4, gpus=2, tenant="b")]
    owed, ran = {"a": Account(90, 10), "b": Account(0, 10)}, {"4": Account(0, 10)}
    shown = seen(*jobs, tenants=owed, alone=ran)
    for part, early in ((1.0, ["1", "2"]), (0.5, ["1"]), (0.0, [])):
        round_ = round_of(shown, early_starts=part)
        assert named(round_, round_.early) == early
        assert named(round_, round_.order) == ["4", "1", "2", "3"], "the picks stay"
        rest = [name for name in ("4", "1", "2", "3") if name not in early]
        assert named(round_, round_.walk_order) == [*early, *rest]


# --- what is worked out, and when


def test_the_only_job_that_waits_is_placed_without_an_order() -> None:
    shown = seen(job(1, gpus=4))
    round_, sheet = round_of(shown), Draft(shown)
    places = round_.say(sheet)
    assert places.sites == {0: [(0, 4)]}
    assert not {"order", "walked", "accounts"} & vars(round_).keys()
    assert sheet.finish(places).verdict.tolist() == [Verdict.GRANT]


def test_where_no_gang_could_be_placed_nothing_is_walked() -> None:
    goes_on = running(1, {"n1": 6})
    shown = seen(goes_on, job(2, gpus=4), job(3, gpus=4), held=leases(lease(1, {"n1": 6}, end=NOW + 9)))
    round_, sheet = round_of(shown), Draft(shown)
    assert len(round_.say(sheet)) == 0
    assert "walked" not in vars(round_)


def test_where_nobody_waits_nothing_is_walked_at_all() -> None:
    ended = running(1, {"n1": 6})
    assert round_of(seen(ended, held=over(ended))).walked is None


def test_what_is_left_over_is_picked_anew_after_what_the_round_has_cost() -> None:
    """Job 1 gets 4 of 6 GPUs, and job 2 does not fit. a was first by 100 GPU seconds and has had a lease since."""
    jobs = [
        job(1, gpus=4, tenant="a"),
        job(2, gpus=4, tenant="a", submit=1),
        job(3, gpus=2, tenant="a", submit=2),
        job(4, gpus=4, tenant="b"),
        job(5, gpus=2, tenant="b", submit=1),
    ]
    owed = {"a": Account(0, 9000), "b": Account(100, 9000)}
    walked = round_of(seen(*jobs, gpus=6, tenants=owed)).walked
    assert walked is not None
    assert (walked.granted, walked.filled) == ([0, 4], [4])


def test_whose_gpus_were_promised_to_others_is_stopped_and_told_so() -> None:
    ended = running(1, {"n1": 8}, tenant="a")
    held = leases(lease(1, {"n1": 8}, end=NOW), lease(2, {"n1": 8}, phase=LeasePhase.GRANTED, end=NOW + 900))
    walked = round_of(seen(ended, job(2, gpus=8, tenant="b"), held=held)).walked
    assert walked is not None
    assert (walked.promised, walked.evicted, walked.granted) == ([0], [0], [])


def test_thousands_of_jobs_of_two_tenants_take_turns() -> None:
    jobs = [job(base, tenant="ab"[base % 2]) for base in range(1, 3001)]
    owed = {"a": Account(0, 9e6), "b": Account(0, 9e6)}
    round_ = round_of(seen(*jobs, tenants=owed))
    tenants = round_.candidates.tenant[round_.order]
    assert (tenants[0::2] == tenants[0]).all()
    assert (tenants[1::2] != tenants[0]).all()
    assert round_.walked is not None
    assert len(round_.walked.granted) == 8
