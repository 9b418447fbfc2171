"""Setups of policies: names and settings of the command line, and leases that cannot be."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from slurm_fair.cli.simulate.given import LeaseOptions, RunOptions
from slurm_fair.cli.simulate.setups import (
    PolicySetup,
    check_setup,
    given_settings,
    makeshift_of,
    policies_of,
    setups_of,
    usual_lease,
)
from slurm_fair.errors import InputError
from slurm_fair.ledger.settings import LedgerSettings
from slurm_fair.model import NEVER_ENDS_SECONDS
from slurm_fair.sim.loop.paces import DaemonsLooks

SETUP = PolicySetup("srtf", {}, 600.0, 10.0, False, False, 0.0, 0)
RUN = RunOptions((), 7, 1, None)


def leases(**said: Any) -> LeaseOptions:
    """An interval and what is said beside it."""
    names = ("align", "reserve_after", "renewal", "half_life", "job_share", "counted")
    return LeaseOptions(**{"interval": 10.0, **dict.fromkeys(names), **said})


# -- the words of the command line ----------------------------------------------------------------------------


def test_policies_are_named_one_by_one_in_the_order_given() -> None:
    assert policies_of("las, fifo ,astraea") == ("las", "fifo", "astraea")
    assert policies_of("nosuch") == ("nosuch",), "it shows when it is loaded"


@pytest.mark.parametrize("text", ["", ",", "fifo,", ",fifo", "a, ,b"])
def test_an_empty_name_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="an empty name: write A or A,B"):
        policies_of(text)


def test_a_name_that_is_there_twice_is_refused_though_it_is_written_otherwise() -> None:
    with pytest.raises(InputError, match="'fifo' is there twice: keep one of them"):
        policies_of("fifo,las, fifo")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("0.5", 0.5),
        ("true", True),
        ("[1, 2]", [1, 2]),
        ('"1"', "1"),
        ("relaxed", "relaxed"),
        ("a=b", "a=b"),
        ("", ""),
        ("1\nother = 2", "1\nother = 2"),  # no second setting is smuggled in
        ("[" * 5000, "[" * 5000),
    ],
)
def test_a_value_is_one_of_toml_and_anything_else_a_word(text: str, value: object) -> None:
    found = given_settings([f"fifo.key={text}"], ["fifo"])["fifo"]["key"]
    assert (found, type(found)) == (value, type(value))


def test_settings_go_to_the_policies_that_they_name() -> None:
    found = given_settings(["b.x=1", " a.y = 2", "b.z=3"], ["a", "b", "c"])
    assert [len(found[name]) for name in "abc"] == [1, 2, 0]
    assert found["b"] == {"x": 1, "z": 3}


@pytest.mark.parametrize("text", ["", "x", "a.x", "x=1", "a.=1", ".", "a=1.5"])
def test_what_names_no_setting_is_refused_with_its_form(text: str) -> None:
    with pytest.raises(InputError, match=r"write policy\.key=value"):
        given_settings([text], ["a"])


def test_a_setting_of_a_policy_that_is_not_simulated_names_the_nearest_one() -> None:
    with pytest.raises(InputError, match="'astrea' is not simulated; did you mean 'astraea'"):
        given_settings(["astrea.x=1"], ["fifo", "astraea"])
    with pytest.raises(InputError, match="'' is not simulated"):
        given_settings([".x=1"], ["fifo"])


def test_a_setting_that_is_given_twice_is_refused_though_its_value_is_the_same() -> None:
    with pytest.raises(InputError, match="'x' is set twice: keep one of them"):
        given_settings(["a.x=1", "a.x=1"], ["a"])
    assert given_settings(["a.x=1", "b.x=1"], ["a", "b"]) == {"a": {"x": 1}, "b": {"x": 1}}


# -- setups ---------------------------------------------------------------------------------------------------


def test_each_policy_has_a_setup_with_its_own_settings_and_all_else_alike() -> None:
    ledger = LedgerSettings(half_life_seconds=60.0)
    run = replace(RUN, settings=("srtf.placement=relaxed",))
    given = leases(lease=600.0, reserve_after=30.0, renewal=60.0)
    srtf, las = setups_of(["srtf", "las"], given, run, 5.0, ledger)
    assert (srtf.policy, srtf.settings) == ("srtf", {"placement": "relaxed"})
    assert replace(srtf, policy="las", settings={}) == las
    assert (las.lease, las.interval, las.interval_min, las.reserve_after, las.renewal) == (
        600.0, 10.0, 0.0, 30.0, 60.0,
    )  # fmt: skip
    assert (las.aligned, las.gavel_rounds, las.checkpoint_cost, las.seed, las.ledger) == (
        False, False, 5.0, 7, ledger,
    )  # fmt: skip
    assert (las.look_seconds, las.looks()) == (None, None)


def test_one_policy_that_cannot_be_leaves_no_setup_of_any() -> None:
    with pytest.raises(InputError, match="under srtf"):
        setups_of(["fifo", "srtf"], leases(interval=901.0), RUN, 0.0, LedgerSettings())


def test_leases_end_together_in_rounds_and_have_no_renewal() -> None:
    (setup,) = setups_of(["srtf"], leases(), RUN, 0.0, LedgerSettings(), gavel_rounds=True)
    assert (setup.aligned, setup.renewal, setup.rules().terms.aligned) == (True, None, True)
    (together,) = setups_of(["srtf"], leases(align="aligned"), RUN, 0.0, LedgerSettings())
    assert (together.aligned, together.gavel_rounds) == (True, False)


def test_a_setup_at_the_daemons_pace_has_its_looks() -> None:
    (setup,) = setups_of(["srtf"], leases(pace="daemon"), RUN, 0.0, LedgerSettings())
    assert setup.look_seconds == 0.0
    assert isinstance(setup.looks(), DaemonsLooks)


def test_rules_have_the_length_distances_and_renewal_of_the_setup() -> None:
    terms = replace(SETUP, interval_min=2.0, renewal=60.0, reserve_after=45.0).rules().terms
    assert (terms.term, terms.interval, terms.interval_min, terms.shortest) == (600.0, 10.0, 2.0, 60.0)
    assert terms.reserve_after == 45.0
    assert replace(SETUP, lease=None).rules().terms.term == 900.0


@pytest.mark.parametrize(
    ("setup", "words"),
    [
        (replace(SETUP, interval=601.0), "--interval 601 must not exceed the lease of 600 s under srtf"),
        (replace(SETUP, renewal=601.0), "--renewal 601 must not exceed the lease of 600 s under srtf"),
        (replace(SETUP, look_seconds=601.0), "--look-cost 601 must not exceed the lease of 600 s under srtf"),
        (
            PolicySetup("fifo", {}, None, 10.0, True, True, 0.0, 0),
            "fifo has leases without end: give the length of a round with --lease",
        ),
    ],
)
def test_leases_that_cannot_be_are_refused(setup: PolicySetup, words: str) -> None:
    with pytest.raises(InputError, match=words):
        check_setup(setup)


def test_what_is_just_as_long_as_a_lease_can_be() -> None:
    for setup in (
        replace(SETUP, interval=600.0),
        replace(SETUP, renewal=600.0),
        replace(SETUP, renewal=math.inf),
        replace(SETUP, look_seconds=600.0),
    ):
        check_setup(setup)


def test_leases_without_end_have_no_term_in_documents() -> None:
    assert usual_lease(NEVER_ENDS_SECONDS) is None
    assert usual_lease(NEVER_ENDS_SECONDS - 1) == NEVER_ENDS_SECONDS - 1
    assert usual_lease(900.0) == 900.0


def test_what_accounting_recorded_is_no_policy_and_goes_by_no_run_times() -> None:
    assert makeshift_of("recorded") == ""
    assert makeshift_of("fifo") == ""
    assert makeshift_of("srtf") != ""
