"""Urgent jobs change places with others of their tenants; the places of other tenants stay."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from slurm_fair_plugins.fair.siblings import Asking, SiblingPlaces, changed_places


def changed(
    gpus: Sequence[float],
    urgent: Sequence[int],
    priced: int = 99,
    tenant: str = "",
    spare: Sequence[float] = (),
    fixed: Sequence[int] = (),
) -> SiblingPlaces:
    """Jobs in the order of worth, the first so many of which have the price; all of one tenant, or as named."""
    jobs = len(gpus)
    asking = Asking(
        np.array([ord(name) - ord("a") for name in tenant or "a" * jobs], dtype=np.int64),
        np.array(gpus, dtype=np.float64),
        np.arange(jobs) < priced,
        np.isin(np.arange(jobs), urgent),
        np.array(spare or [0.0] * jobs, dtype=np.float64),
    )
    return changed_places(asking, np.arange(jobs), ~np.isin(np.arange(jobs), fixed))


def test_among_equal_gangs_the_urgent_one_is_first_and_those_before_it_step_back_by_one() -> None:
    found = changed([2, 2, 2, 2], urgent=[2])
    assert found.order.tolist() == [2, 0, 1, 3]
    assert found.taken.tolist() == [1, 2, 0, 3]
    assert found.first.tolist() == [False, False, True, False]
    assert found.behind.tolist() == [True, True, False, False]
    assert found.last.all()


def test_of_two_urgent_ones_that_with_less_time_to_spare_is_first() -> None:
    assert changed([1, 1, 1], urgent=[1, 2], spare=[0, 9, 5]).order.tolist() == [2, 1, 0]


def test_the_places_of_other_tenants_stay() -> None:
    found = changed([1] * 6, urgent=[4, 5], tenant="abcabc")
    assert found.order.tolist() == [0, 4, 5, 3, 1, 2]
    assert found.taken.tolist() == [0, 4, 5, 3, 1, 2]


def test_a_larger_gang_waits_for_as_many_gpus_as_its_siblings_had() -> None:
    """Four small ones of tenant a, with one of b between the third and the fourth."""
    found = changed([1, 1, 1, 1, 1, 4], urgent=[5], tenant="aaabaa")
    assert found.order.tolist() == [3, 5, 0, 1, 2, 4]
    assert found.taken[5] == 4


def test_a_smaller_gang_takes_the_place_of_a_larger_one_which_waits_where_it_was() -> None:
    found = changed([8, 1, 1], urgent=[2], tenant="aba")
    assert found.order.tolist() == [2, 1, 0]


def test_it_has_the_price_only_where_its_whole_gang_finds_room_in_places_with_it() -> None:
    assert changed([2, 2, 2, 3], urgent=[3], priced=2).order.tolist() == [3, 0, 1, 2]
    found = changed([2, 2, 2, 5], urgent=[3], priced=2)
    assert found.order.tolist() == [0, 1, 3, 2], "before those without the price alone"
    assert found.first.tolist() == [False] * 4


def test_a_gang_that_finds_no_room_is_not_in_the_way_of_a_smaller_urgent_one() -> None:
    found = changed([2, 2, 5, 2], urgent=[2, 3], priced=2, spare=[0, 0, 0, 9])
    assert found.order.tolist() == [3, 0, 1, 2]


def test_one_that_has_the_price_goes_before_its_siblings_whatever_their_gangs() -> None:
    found = changed([1, 8, 1], urgent=[1])
    assert found.order.tolist() == [1, 0, 2]
    assert found.taken.tolist() == [1, 1, 2], "who was before it shares its place"
    assert found.last.tolist() == [True, False, True]


def test_who_takes_no_part_keeps_his_place_and_lends_it_to_nobody() -> None:
    found = changed([8, 8, 8], urgent=[2], fixed=[0])
    assert found.order.tolist() == [0, 2, 1]


@pytest.mark.parametrize("urgent", [[], [0], [0, 1, 2, 3]])
def test_where_the_urgent_ones_are_first_already_nothing_changes(urgent: list[int]) -> None:
    found = changed([3, 1, 2, 5], urgent=urgent)
    assert found.order.tolist() == found.taken.tolist() == [0, 1, 2, 3]
    assert not found.behind.any()


def test_gpus_that_weigh_nothing_stay_with_their_tenant() -> None:
    found = changed([1, 0, 0], urgent=[2], tenant="abb")
    assert found.order.tolist() == [0, 2, 1]


def test_jobs_that_weigh_nothing_stay_where_only_another_tenant_is_urgent() -> None:
    found = changed([1e6, 2, 0, 0, 1], urgent=[4], tenant="ababb")
    assert found.taken.tolist()[::2][:2] == [0, 2]
    assert found.last[[0, 2]].all()
    assert changed([1e6, 2, 0, 0], urgent=[], tenant="abab").order.tolist() == [0, 1, 2, 3]
