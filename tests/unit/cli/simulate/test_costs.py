"""The cost of a change of hands: what a journal measured, and the line that says where each cost is from."""

from __future__ import annotations

from pathlib import Path

import pytest

from slurm_fair.cli.base import Site
from slurm_fair.cli.simulate.costs import KnownCosts, MeasuredCosts, known_costs, measured_at, measured_costs
from slurm_fair.cli.simulate.given import CostOptions
from slurm_fair.config.sections import Config
from slurm_fair.host.state_folder import Places
from slurm_fair.model import Event, EventKind
from slurm_fair_accounting.source.period import Period

NOTHING = CostOptions(None, None, None)


def event(time: float, kind: EventKind, key: int = 1) -> Event:
    return Event(time, kind, key, "a", 1)


def test_a_journal_without_events_measured_nothing() -> None:
    assert measured_costs([]) == MeasuredCosts()


def test_events_may_come_in_any_order() -> None:
    events = [
        event(140, EventKind.STARTED),
        event(104, EventKind.REQUEUED),
        event(130, EventKind.OPENED),
        event(100, EventKind.ASKED),
    ]
    assert measured_costs(events) == MeasuredCosts((4.0,), (10.0,))


def test_a_request_that_is_repeated_counts_from_the_first_time() -> None:
    asked = [event(at, EventKind.ASKED) for at in (100, 110, 120)]
    assert measured_costs([*asked, event(125, EventKind.REQUEUED)]).saves == (25.0,)


def test_a_request_to_which_the_job_stayed_is_no_measurement() -> None:
    """Slurm would not stop it: it went on, and was asked again later."""
    stayed = [event(100, EventKind.ASKED), event(130, EventKind.STAYS)]
    again = [event(5000, EventKind.ASKED), event(5004, EventKind.REQUEUED)]
    assert measured_costs([*stayed, *again]).saves == (4.0,)


def test_a_run_that_starts_anew_forgets_the_request_to_the_one_before() -> None:
    """The first run ended by itself before it was requeued."""
    events = [
        event(100, EventKind.ASKED),
        event(200, EventKind.OPENED),
        event(201, EventKind.STARTED),
        event(900, EventKind.REQUEUED),
    ]
    assert measured_costs(events) == MeasuredCosts((), (1.0,))


def test_a_gate_that_is_opened_again_counts_from_the_last_time_and_once() -> None:
    events = [
        event(100, EventKind.OPENED),
        event(160, EventKind.OPENED),
        event(165, EventKind.STARTED),
        event(300, EventKind.STARTED),
    ]
    assert measured_costs(events).starts == (5.0,)


def test_jobs_are_measured_apart() -> None:
    events = [
        event(100, EventKind.ASKED, 1),
        event(101, EventKind.ASKED, 2),
        event(103, EventKind.REQUEUED, 2),
        event(109, EventKind.REQUEUED, 1),
        event(110, EventKind.OPENED, 1),
        event(112, EventKind.STARTED, 2),
    ]
    assert measured_costs(events) == MeasuredCosts((2.0, 9.0), ())


def test_a_site_without_a_journal_knows_of_no_costs(tmp_path: Path) -> None:
    site = Site(Config(), Places(tmp_path / "absent"))
    assert measured_at(site, Period(0.0, 1e9)) == MeasuredCosts()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            NOTHING,
            "saving costs 10 s (assumed), coming back 35 s more (assumed); "
            "set --checkpoint-cost and --restart-cost to your jobs' own",
        ),
        (CostOptions(0.0, 0.0, 0.0), "saving costs 0 s (given), coming back 0 s more (given)"),
        (
            CostOptions(1.5, None, 120.0, 3.0),
            "saving costs 1.5 s (given), a start 3 s (given), coming back 35 s more (assumed), "
            "a requeue is delayed by 120 s; set --restart-cost to your jobs' own",
        ),
    ],
)
def test_one_line_says_each_cost_and_where_it_is_from(given: CostOptions, words: str) -> None:
    assert known_costs(given).words == words


@pytest.mark.parametrize(
    ("saves", "seconds", "source"),
    [
        ((7.0, 7.0), 10.0, "assumed"),
        ((1.0, 8.0, 900.0), 8.0, "measured"),
        ((1.0, 2.0, 3.0, 900.0), 2.5, "measured"),
        ((1.00049, 1.00049, 1.00049), 1.0, "measured"),  # milliseconds are enough
        ((0.0, 0.0, 0.0), 0.0, "measured"),
    ],
)
def test_the_median_of_three_cases_or_more_is_a_measurement(
    saves: tuple[float, ...], seconds: float, source: str
) -> None:
    found = known_costs(NOTHING, MeasuredCosts(saves))
    assert (found.costs.checkpoint, found.checkpoint_from) == (seconds, source)


def test_a_cost_of_nothing_that_was_given_goes_before_what_was_measured() -> None:
    measured = MeasuredCosts((9.0,) * 3, (9.0,) * 3)
    found = known_costs(CostOptions(0.0, 0.0, None, 0.0), measured)
    assert found.costs.of_one_change == 0.0
    assert "assumed" not in found.words


def test_a_document_tells_a_start_whether_gpus_are_held_meanwhile_or_not() -> None:
    def document(known: KnownCosts) -> tuple[object, ...]:
        told = known.document()
        return told["start_s"], told["start_from"], told["requeue_delay_s"]

    measured = MeasuredCosts((), (4.0, 4.0, 4.0))
    assert document(known_costs(NOTHING, measured)) == (4.0, "measured", 0.0)
    assert document(known_costs(CostOptions(None, None, 5.0, 2.0), measured)) == (2.0, "given", 5.0)
    assert document(known_costs(NOTHING)) == (0.0, "unknown", 0.0)
