"""Simulations in which speeds on GPU types are known, learned where jobs run, or measured by the profiler."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from slurm_fair.model import Standing, TickRecord
from slurm_fair.sim.scenario import Speeds
from slurm_fair.trace import Throughputs
from tests.support.any_scenario import FAST, SLOW, machines
from tests.support.simulated import Arrival, Rounds, arrival, simulated

# Steps a second of two GPUs on the slow type, which is the reference, and on the fast one.
MODELS = {"m0": (10.0, 40.0), "m1": (10.0, 6.0), "m2": (10.0, 30.0), "m3": (10.0, 8.0)}
RATES = {
    (kind, "consolidated", model, 16, 2): rate
    for model, kinds in MODELS.items()
    for kind, rate in zip((SLOW, FAST), kinds, strict=True)
}
SPEEDS = Throughputs("made", ("made",), SLOW, RATES)
TWO_TYPES = machines((4, 4), "fs")


def jobs() -> list[Arrival]:
    """Six jobs of each model, of two tenants."""
    return [
        arrival(
            30.0 * number,
            gpus=2,
            seconds=1800.0,
            model=f"m{number % 4}",
            batch_size=16,
            tenant="ab"[number % 2],
        )
        for number in range(24)
    ]


class Known:
    """The part of what policies could know of speeds that they were told, by look."""

    def __init__(self) -> None:
        self.looks: list[tuple[float, float]] = []
        self.turns: set[tuple[Any, ...]] = set()

    def __call__(self, tick: TickRecord, standing: Standing) -> None:
        told, types = tick.snapshot.told, tick.snapshot.gpu_types
        assert told is not None
        model = [told.models[at] for at in told.model.tolist()]
        real = np.array([MODELS[name][1] / MODELS[name][0] for name in model])
        self.looks.append((tick.time, float((told.rate[:, types.index(FAST)] == real).mean())))
        self.turns |= {tuple(turn[:3]) for turn in standing.memory.get("profiler", {}).get("turns", ())}

    @property
    def until(self) -> float:
        """Seconds after the first look at which something was last unknown; 0 = nothing ever was."""
        return max((time - self.looks[0][0] for time, part in self.looks if part < 1.0), default=0.0)


def played(policy: str, speeds: Speeds) -> tuple[Known, float]:
    """The known speeds, and the mean completion time."""
    known = Known()
    done = simulated(
        jobs(),
        policy,
        machines=TWO_TYPES,
        throughputs=SPEEDS,
        speeds=speeds,
        listen=known,
        how=Rounds(aligned=False, lease=600.0, renewal=math.inf),
    )
    assert done.outcomes.completed.all()
    return known, done.summary.jct_mean_s


@pytest.mark.parametrize("policy", ["gavel", "hops"])
def test_with_the_profiler_a_policy_gets_to_know_the_speeds_on_every_type_soon(policy: str) -> None:
    of = {speeds: played(policy, speeds) for speeds in ("known", "learned", "profiled")}
    all_told, learned, profiled = (of[name][0].until for name in of)
    assert all_told == 0.0 < profiled < learned
    assert of["known"][1] < of["profiled"][1] < of["learned"][1], "jobs are done sooner the more is known"
    assert not of["learned"][0].turns
    assert {gpu_type for _, gpu_type, _ in of["profiled"][0].turns} == {SLOW, FAST}
