"""Several policies over one scenario: one after another here, or each in a process of its own."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

import click

from slurm_fair.cli.simulate.one_run import Beat, FinishedRun, SimulationOrder, run_one
from slurm_fair.cli.simulate.setups import PolicySetup
from slurm_fair.errors import InputError, SlurmFairError
from slurm_fair.sim.scenario import Costs

_MUCH_OF_A_LEASE = 0.5


def run_all(orders: Sequence[SimulationOrder], workers: int, beat: Beat) -> list[FinishedRun]:
    """All of them, in the order given, whoever is ready first."""
    for order in orders:
        check_time_to_work(order.scenario.costs, order.setup)
    if workers <= 1 or len(orders) == 1:
        return [run_one(order, beat) for order in orders]
    from slurm_fair.cli.simulate.crew import Crew  # one policy needs no processes, nor their library

    done: dict[int, FinishedRun] = {}
    with closing(Crew(orders, workers, run_one, beat, "--workers").ends()) as ends:
        for end in ends:
            if end.result is None:
                raise end.problem or SlurmFairError("a simulation ended without a result")
            done[end.at] = end.result
    return [done[at] for at in sorted(done)]


def warn_of_costs(orders: Sequence[SimulationOrder]) -> None:
    """On standard error: simulations in which a change of hands takes most of a lease take long."""
    part_of: dict[tuple[float, float], list[str]] = {}
    for order in orders:
        change, term = order.scenario.costs.of_one_change, order.setup.rules().terms.term
        if _MUCH_OF_A_LEASE < change / term < 1:
            part_of.setdefault((change, term), []).append(order.setup.policy)
    for (change, term), names in part_of.items():
        click.echo(
            f"warning: a change of hands costs {change:g} s (checkpoint, start and restart), "
            f"{100 * change / term:.3g} % of a lease of {term:g} s under {', '.join(names)}: "
            "jobs that take turns get little done, and this takes long",
            err=True,
        )


def check_time_to_work(costs: Costs, setup: PolicySetup) -> None:
    """Refuse leases in which nobody would get anywhere: under some policies such a simulation never ends."""
    change, term = costs.of_one_change, setup.rules().terms.term
    if change >= term:
        raise InputError(
            f"a change of hands costs {change:g} s (checkpoint, start and restart), all of a lease of {term:g} s "
            f"under {setup.policy}: give a longer --lease, or what it costs your jobs (--checkpoint-cost, "
            "--start-cost, --restart-cost)"
        )
