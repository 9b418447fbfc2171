"""The page of `make fidelity`: docs/fidelity.md."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from benchmarks.fidelity_compare import SAME_RUN, Compared, Numbers, apart, deviation, near
from benchmarks.fidelity_recording import Measured
from benchmarks.fidelity_stage import Way

HEAD = """# How well simulations foretell a real Slurm

Written by `make fidelity`. Do not edit: run it again.

The same {jobs} jobs ran under the daemon on a private Slurm (`slurm_fair.lab`) of {nodes} nodes with 8
pretend GPUs each, and in simulations. Three tenants with weights 1:1:2; gangs of 1 to {gpus} GPUs;
submitted over {over:g} s, in which they want {load:g} times the GPU time that there is; leases of {term:g}
s, `interval = {interval:g}`, gate `begin`. Jobs save at once when they are asked. Their own clocks tell
completion times, `sacct` GPU-hours, the journal pre-emptions and rho.

Goal: means of makespan, JCT and GPU-hours within 2 %, of pre-emptions and rho within 5 %. A mean that
misses it may still lie between the least and the greatest of the real runs: `in the real spread`.
"""
MEANS = """
## {name}: `{policy}`, {align} leases

{runs} real runs, while others used the machine too (load {load} on {cores} cores), and {simulations}
simulations. Mean and standard deviation.

| | real | simulated | difference | goal | met | plain simulation |
| --- | --- | --- | --- | --- | --- | --- |
"""
FOLLOWED = """
## Each real run, followed

Single runs are chaotic: who is in one look together decides who starts first, and that decides the next
places. So each real run was simulated once more with all that chance decided in it: the instants of its
looks and submissions, and how long each step of each job took there. What is left is the simulator's own.
Goal: each number within 1 % of that run's.

| run | alike until second | makespan | mean JCT | pre-emptions | GPU-hours {tenants} | rho {tenants} | met |
| --- | --- | --- | --- | --- | --- | --- | --- |
"""
PARTED = """
Where grants part, something happened that the simulator does not know; from there on it is one more chaotic run.
One such thing is known: a look in the midst of a requeue shows the job completing with a new start, and until
the next look the daemon charges a run that accounting will never have.
"""
COSTS = """
## What starts and stops took

Mean seconds over the real runs. `simulated` has looks as the daemon has them (one interval after the last
one, at ends of leases, and often while jobs change places) and these steps. `plain simulation` has looks on
the grid of the interval and only the options of `slurm-fair simulate`: `--interval {interval:g}`,
`--start-cost` opening + starting, `--checkpoint-cost` from the request until the job is back in the queue,
`--repeat`. It holds GPUs from the opening on, and so counts too many GPU-hours.

"""


TOOK = (
    "opening", "starting", "hearing", "request to requeue", "requeue until back", "leaving", "a look", "a tick",
    "one with acts", "each act",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Followed:
    """One real run, and the simulation that follows it."""

    name: str
    real: Numbers
    simulated: Numbers
    parted: float  # the second from which grants differ; inf = never

    @property
    def within(self) -> bool:
        """All numbers within the goal."""
        return all(abs(apart(self.simulated[name], self.real[name])) <= SAME_RUN for name in self.real)


@dataclass(frozen=True, slots=True)
class WayResult:
    """All that is known of one way of sharing."""

    way: Way
    means: Sequence[Compared]
    plain: Sequence[Compared]
    followed: Sequence[Followed]
    measured: Measured
    loads: Sequence[float]  # of the machine, on average over each real run


def page(facts: Mapping[str, float], results: Sequence[WayResult], tenants: Sequence[str]) -> str:
    """The text of docs/fidelity.md, without its last line."""
    way = results[0].way
    text = HEAD.format(term=way.term, interval=way.interval, **facts)
    text += "".join(_means(result) for result in results)
    text += FOLLOWED.format(tenants=" / ".join(tenants))
    text += "".join(_followed(one, tenants) for result in results for one in result.followed)
    text += PARTED
    text += COSTS.format(interval=way.interval)
    text += f"| | {' | '.join(TOOK)} |\n|{' --- |' * (1 + len(TOOK))}\n"
    return text + "".join(_costs(result) for result in results)


def _means(result: WayResult) -> str:
    first = result.means[0]
    head = MEANS.format(
        name=result.way.name.capitalize(), policy=result.way.policy, align=result.way.align,
        runs=len(first.real), load=_listed(result.loads), cores=os.cpu_count(), simulations=len(first.simulated),
    )  # fmt: skip
    return head + "".join(_row(one, plain) for one, plain in zip(result.means, result.plain, strict=True))


def _listed(loads: Sequence[float]) -> str:
    return ", ".join(f"{load:.0f}" for load in loads)


def _row(one: Compared, plain: Compared) -> str:
    digits = 3 if one.name.startswith(("GPU", "rho")) else 1
    cells = (
        _named(one.name), _mean(one.real, digits), _mean(one.simulated, digits), percent(one.difference),
        f"{100 * near(one.name):g} %", one.goal.value, percent(plain.difference),
    )  # fmt: skip
    return f"| {' | '.join(cells)} |\n"


def _named(name: str) -> str:
    return f"{name}, s" if name in ("makespan", "mean JCT") else name


def _mean(values: Sequence[float], digits: int) -> str:
    return f"{fmean(values):.{digits}f} ± {deviation(values):.{digits}f}"


def percent(part: float) -> str:
    """A part as per cent, with its sign."""
    return f"{100 * part:+.1f} %"


def _followed(one: Followed, tenants: Sequence[str]) -> str:
    def differs(*names: str) -> str:
        return " / ".join(f"{100 * apart(one.simulated[name], one.real[name]):+.2f}" for name in names) + " %"

    cells = (
        one.name, "its end" if one.parted == float("inf") else f"{one.parted:.0f}",
        differs("makespan"), differs("mean JCT"), differs("pre-emptions"),
        differs(*(f"GPU-hours {name}" for name in tenants)), differs(*(f"rho {name}" for name in tenants)),
        "yes" if one.within else "no",
    )  # fmt: skip
    return f"| {' | '.join(cells)} |\n"


def _costs(result: WayResult) -> str:
    m = result.measured
    seconds = (
        m.opening, m.starting, m.hearing, m.requeue, m.returning, m.leaving, m.look, m.tick, m.acting, m.act,
    )  # fmt: skip
    return (
        f"| {result.way.name} | " + " | ".join(f"{value:.2f}" if value else "-" for value in seconds) + " |\n"
    )
