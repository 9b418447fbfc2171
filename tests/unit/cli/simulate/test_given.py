"""Options as a command gets them: what is not said, what makes no sense beside others, what is a cost."""

from __future__ import annotations

import math
from typing import Any

import pytest

from slurm_fair.cli.simulate.given import CostOptions, FileOptions, LeaseOptions, RunOptions, part
from slurm_fair.errors import InputError
from slurm_fair.ledger.settings import LedgerSettings
from slurm_fair.sim.scenario import Costs

UNSAID = LeaseOptions(None, None, None, None, None, None, None)


def leases(**said: Any) -> LeaseOptions:
    """The options of a command line on which only these stand."""
    names = ("interval", "align", "reserve_after", "renewal", "half_life", "job_share", "counted")
    return LeaseOptions(**{**dict.fromkeys(names), **said})


@pytest.mark.parametrize(
    ("renewal", "seconds"), [(None, None), ("auto", None), ("term", math.inf), (60.0, 60.0)]
)
def test_a_renewal_is_a_part_of_a_lease_or_a_whole_one_or_so_many_seconds(
    renewal: float | str | None, seconds: float | None
) -> None:
    assert leases(renewal=renewal).renewal_seconds == seconds


def test_a_look_takes_time_at_the_daemons_pace_alone() -> None:
    assert UNSAID.look_seconds(gavel_rounds=False) is None
    assert UNSAID.look_seconds(gavel_rounds=True) is None
    assert leases(pace="daemon").look_seconds(gavel_rounds=False) == 0.0
    assert leases(pace="daemon", look_cost=2.5).look_seconds(gavel_rounds=False) == 2.5


@pytest.mark.parametrize("cost", [0.0, 2.5])
def test_a_cost_of_looks_at_the_pace_of_events_is_refused(cost: float) -> None:
    with pytest.raises(InputError, match="only at the daemon's pace: add --pace daemon"):
        leases(look_cost=cost).look_seconds(gavel_rounds=False)


def test_a_pace_beside_rounds_that_look_only_where_they_end_is_refused() -> None:
    with pytest.raises(InputError, match="leave --pace out"):
        leases(pace="daemon").look_seconds(gavel_rounds=True)


@pytest.mark.parametrize(
    ("said", "option"),
    [
        ({"renewal": 60.0}, "--renewal"),
        ({"renewal": "term"}, "--renewal"),
        ({"reserve_after": 0.0}, "--reserve-after"),
        ({"reserve_after": math.inf}, "--reserve-after"),
    ],
)
def test_options_of_leases_that_roll_are_refused_where_leases_end_together(
    said: dict[str, Any], option: str
) -> None:
    with pytest.raises(InputError, match=f"{option} is of leases that roll: leave it out"):
        leases(align="aligned", **said).refuse_idle(gavel_rounds=False)
    with pytest.raises(InputError, match=f"{option} is of leases that roll: leave it out, or --rounds gavel"):
        leases(**said).refuse_idle(gavel_rounds=True)
    leases(align="rolling", **said).refuse_idle(gavel_rounds=False)
    leases(**said).refuse_idle(gavel_rounds=False)


def test_the_usual_renewal_says_nothing_and_is_not_refused() -> None:
    leases(align="aligned", renewal="auto").refuse_idle(gavel_rounds=True)
    leases(align="aligned").refuse_idle(gavel_rounds=True)


def test_a_ledger_is_the_sites_own_but_for_what_is_said() -> None:
    site = LedgerSettings(
        half_life_seconds=7200.0, everyone_counts=True, water_filled=True, tenant_memory_seconds=5.0
    )
    assert UNSAID.ledger(site) == site
    assert UNSAID.ledger() == LedgerSettings()
    said = leases(half_life=0.0, counted="seen", job_share="proportional").ledger(site)
    assert (said.half_life_seconds, said.everyone_counts, said.water_filled) == (0.0, False, False)
    assert said.tenant_memory_seconds == 5.0


def test_a_ledger_without_a_site_is_as_the_options_say() -> None:
    said = leases(half_life=60.0, counted="all", job_share="max-min").ledger()
    assert (said.half_life_seconds, said.everyone_counts, said.water_filled) == (60.0, True, True)


def test_each_cost_is_the_one_that_was_given_and_the_others_are_nothing() -> None:
    assert CostOptions(None, None, None).costs() == Costs()
    assert CostOptions(1.0, 2.0, 3.0, 4.0).costs() == Costs(
        checkpoint=1.0, restart=2.0, requeue_delay=3.0, start=4.0
    )
    assert CostOptions(None, 2.0, None).costs() == Costs(restart=2.0)


def test_a_part_of_the_options_takes_its_own_and_leaves_the_usual_where_one_is_not_there() -> None:
    options = {"settings": ("a.b=1",), "seed": 3, "workers": 2, "html": None, "jobs_out": None, "other": 9}
    assert part(RunOptions, options) == RunOptions(("a.b=1",), 3, 2, None, 1)
    assert part(FileOptions, {**options, "events_out": None}) == FileOptions(None, None)
