"""Rounds are Gavel's where that is said; what makes no sense beside them is refused."""

from __future__ import annotations

import click
import pytest

from slurm_fair.cli.simulate import scenario_options
from slurm_fair.cli.simulate.given import LeaseOptions
from slurm_fair.cli.simulate.scenario_options import in_rounds
from slurm_fair.errors import InputError


def leases(align: str | None = None, interval: float | str | None = None) -> LeaseOptions:
    return LeaseOptions(interval, align, None, None, None, None, None)


def test_leases_may_roll_and_looks_come_at_any_interval_outside_rounds() -> None:
    assert not in_rounds("conserving", leases("rolling", 5.0))


@pytest.mark.parametrize("align", [None, "aligned"])
def test_rounds_are_gavels_where_leases_end_together(align: str | None) -> None:
    assert in_rounds("gavel", leases(align))


@pytest.mark.parametrize(
    ("given", "cure"),
    [
        (leases("rolling"), "leave --align rolling out"),
        (leases(None, 10.0), "leave --interval out"),
        (leases(None, "auto"), "leave --interval out"),
        (leases("aligned", 0.001), "leave --interval out"),
    ],
)
def test_an_option_that_rounds_leave_no_room_for_is_refused(given: LeaseOptions, cure: str) -> None:
    with pytest.raises(InputError, match=f"--rounds gavel .*{cure}"):
        in_rounds("gavel", given)


def given(*words: str) -> dict[str, object]:
    """The values of a command that takes every option of the module."""

    @click.command()
    def every(**values: object) -> dict[str, object]:
        return values

    groups = ("ROUNDS", "SPEEDS", "TENANTS", "OWED", "END")
    for decorate in [option for name in groups for option in getattr(scenario_options, name)]:
        every = decorate(every)
    found: dict[str, object] = every.main(list(words), standalone_mode=False)
    return found


def test_unless_told_otherwise_speeds_are_known_weights_alike_and_nothing_fails() -> None:
    assert given() == {
        "rounds": "conserving",
        "throughputs": None,
        "throughputs_source": None,
        "speeds": "known",
        "elastic_exponent": 0.9,
        "regimes": None,
        "outages": None,
        "weights": "equal",
        "report_share": "demand",
        "until": None,
    }


@pytest.mark.parametrize(
    "words",
    [
        ("--rounds", "sia"),
        ("--speeds", "guessed"),
        ("--report-share", "all"),
        ("--until", "0"),
        ("--until", "nan"),
        ("--elastic-exponent", "1.1"),
        ("--elastic-exponent", "nan"),
    ],
)
def test_a_value_that_cannot_be_is_refused(words: tuple[str, ...]) -> None:
    with pytest.raises(click.BadParameter):
        given(*words)
