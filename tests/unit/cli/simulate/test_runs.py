"""Several policies over one scenario: their order, and what a change of hands may cost of a lease."""

from __future__ import annotations

from dataclasses import replace

import pytest

from slurm_fair.cli.simulate.one_run import SimulationOrder
from slurm_fair.cli.simulate.runs import check_time_to_work, run_all, warn_of_costs
from slurm_fair.cli.simulate.setups import PolicySetup
from slurm_fair.errors import InputError, PolicyError
from slurm_fair.sim.scenario import Costs, Scenario
from slurm_fair.trace import uniform
from tests.support.simulated import arrival, trace

SETUP = PolicySetup("srtf", {}, 100.0, 10.0, False, False, 0.0, 0)
LONG = replace(SETUP, policy="las", lease=1000.0)


def order(setup: PolicySetup, costs: Costs | None = None, label: str = "") -> SimulationOrder:
    """Two short jobs on two GPUs."""
    jobs = trace([arrival(0, seconds=50), arrival(5, seconds=20)])
    return SimulationOrder(Scenario(jobs, uniform(2, 2), costs or Costs()), setup, label=label)


def quiet(policy: str, ended: int, seconds: float) -> None:
    """Nobody looks at the progress."""


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_results_come_in_the_order_given_with_any_number_of_processes(workers: int) -> None:
    done = run_all([order(SETUP), order(LONG), order(replace(SETUP, policy="fifo"))], workers, quiet)
    assert [each.result.policy for each in done] == ["srtf", "las", "fifo"]
    assert [float(each.result.outcomes.end.max() - each.result.epoch) for each in done] == [50.0] * 3


def test_no_order_has_no_result() -> None:
    assert run_all([], 4, quiet) == []


@pytest.mark.parametrize("workers", [1, 2])
def test_leases_in_which_nobody_gets_anywhere_are_refused_before_anything_is_simulated(workers: int) -> None:
    beats: list[str] = []
    with pytest.raises(InputError, match="under srtf"):
        run_all(
            [order(LONG), order(SETUP, Costs(restart=100.0))],
            workers,
            lambda policy, ended, seconds: beats.append(policy),
        )
    assert beats == []


def test_the_first_that_fails_ends_all_with_its_own_error() -> None:
    with pytest.raises(PolicyError, match="nosuch"):
        run_all([order(SETUP), order(replace(SETUP, policy="nosuch"))], 1, quiet)


def test_each_part_of_a_change_of_hands_counts_and_the_delay_of_a_requeue_does_not() -> None:
    check_time_to_work(Costs(checkpoint=30, restart=40, start=29.9, requeue_delay=1e6), SETUP)
    with pytest.raises(InputError) as caught:
        check_time_to_work(Costs(checkpoint=30, restart=40, start=30), SETUP)
    for words in ("costs 100 s", "all of a lease of 100 s under srtf", "longer --lease", "--start-cost"):
        assert words in str(caught.value)
    check_time_to_work(Costs(restart=100), LONG)


@pytest.mark.parametrize(("seconds", "warned"), [(50.0, False), (51.0, True), (99.0, True), (100.0, False)])
def test_a_warning_is_for_costs_above_half_of_a_lease(
    seconds: float, warned: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    warn_of_costs([order(SETUP, Costs(restart=seconds))])
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", int(warned))
    assert (f"costs {seconds:g} s" in err) is warned


def test_policies_of_one_part_share_a_warning_and_others_have_their_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    costs = Costs(checkpoint=30, start=30)
    setups = (SETUP, replace(SETUP, policy="las"), replace(SETUP, policy="gavel", lease=80.0), LONG)
    warn_of_costs([order(setup, costs) for setup in setups])
    first, second = capsys.readouterr().err.splitlines()
    assert "60 % of a lease of 100 s under srtf, las:" in first
    assert "75 % of a lease of 80 s under gavel:" in second
