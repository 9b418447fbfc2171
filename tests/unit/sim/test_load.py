"""From a trace to the jobs of a virtual cluster: who may run where, what they are called, what they go through."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from slurm_fair.errors import InputError
from slurm_fair.model.ids import pack
from slurm_fair.sim import Scenario, population
from slurm_fair.sim.plain_jobs import PlainJobs
from slurm_fair.sim.world.load import (
    Population,
    asked_weights,
    gpu_types_of,
    impossible,
    missing_types,
    nobody,
    refuse_impossible,
)
from slurm_fair.trace import JobRegimes, Machines, Mode, Regime, Throughputs, uniform
from tests.support.any_scenario import FAST, SLOW, machines
from tests.support.simulated import Arrival, arrival, trace

FLOOR = machines((4, 4, 2), "ffs")  # n1 and n2 of 4 fast GPUs, n3 of 2 slow ones
EPOCH = 5000.0


def peopled(*jobs: Arrival, floor: Machines = FLOOR, **more: Any) -> Population:
    return population(Scenario(trace(jobs), floor, **more), EPOCH)


def never(*jobs: Arrival, floor: Machines = FLOOR, measured: Throughputs | None = None) -> list[int]:
    """Places of the jobs that these machines could never run."""
    rows: list[int] = impossible(trace(jobs), floor, measured).tolist()
    return rows


def measured(model: str, **rates: float) -> Throughputs:
    """Steps a second of a model with one and two GPUs on the types; on more nodes than it needs, half."""
    by = {}
    for kind, rate in rates.items():
        for gpus in (1, 2):
            by[kind, "consolidated", model, 16, gpus] = rate * gpus
            by[kind, "unconsolidated", model, 16, gpus] = rate * gpus / 2
    return Throughputs("made", ("made",), SLOW, by)


# -- who may run ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("job", "could"),
    [
        (arrival(gpus=8), True),
        (arrival(gpus=9), False),  # no gang lies on several types
        (arrival(gpus=2, gpu_type=SLOW), True),
        (arrival(gpus=3, gpu_type=SLOW), False),
        (arrival(gpus=1, gpu_type="h100"), False),
        (arrival(gpus=8, nodes=1), True),  # a record of one node does not tell that one was asked for
        (arrival(gpus=7, nodes=2), True),
        (arrival(gpus=2, nodes=2, gpu_type=SLOW), False),
        (arrival(gpus=2, nodes=3), False),
        (arrival(gpus=1, nodes=2), False),
        (arrival(gpus=8, nodes=2), True),
    ],
)
def test_a_gang_fits_the_nodes_of_one_type_or_never_runs(job: Arrival, could: bool) -> None:
    assert never(arrival(), job) == ([] if could else [1])


def test_a_gang_of_several_nodes_needs_the_larger_part_on_each_of_them() -> None:
    uneven = machines((4, 3, 1), "sss")
    assert never(arrival(gpus=7, nodes=2), arrival(gpus=6, nodes=2), floor=uneven) == [0]


def test_a_part_of_a_gpu_takes_a_whole_one() -> None:
    part = trace([arrival()]).with_columns(gpus=np.array([8.5]))
    assert impossible(part, FLOOR).tolist() == [0]
    assert impossible(part.with_columns(gpus=np.array([7.5])), FLOOR).tolist() == []


def test_a_job_does_not_run_on_a_type_on_which_it_was_measured_not_to() -> None:
    job = arrival(gpus=2, model="m", batch_size=16)
    slow_alone = machines((2,), "s")
    assert never(job, floor=slow_alone, measured=measured("m", **{SLOW: 1.0, FAST: 2.0})) == []
    assert never(job, floor=machines((2,), "f"), measured=measured("m", **{SLOW: 1.0, FAST: 0.0})) == [0]
    assert never(job, measured=measured("m", **{SLOW: 1.0, FAST: 0.0})) == [], "n3 is slow"
    assert never(replace(job, gpu_type=FAST), measured=measured("m", **{SLOW: 1.0, FAST: 0.0})) == [0]


def test_of_very_many_jobs_alike_each_is_told() -> None:
    assert never(*(arrival(gpus=1 if at % 2 else 9) for at in range(2000))) == list(range(0, 2000, 2))
    assert never(arrival(gpus=3, gpu_type=FAST), arrival(gpus=1, gpu_type="h100")) == [1]
    assert impossible(nobody(), FLOOR).tolist() == []


def test_jobs_that_are_too_large_are_named_three_at_most() -> None:
    jobs = trace([arrival(), *(arrival(gpus=9 + at, job_id=f"big{at}") for at in range(5))])
    with pytest.raises(InputError) as caught:
        refuse_impossible(jobs, FLOOR)
    words = str(caught.value)
    assert (
        "5 of 6 jobs want more GPUs of one type, or more nodes, than the cluster's 10 GPUs on 3 nodes"
        in words
    )
    assert "big0 (9 GPUs)" in words
    assert "big2 (11 GPUs)" in words
    assert "big3" not in words
    assert "measured" not in words
    assert words.endswith("give more, or leave them out with --too-large drop")
    refuse_impossible(jobs.take(np.array([0])), FLOOR)


def test_types_that_the_cluster_lacks_are_told_first_with_those_that_it_has() -> None:
    jobs = trace(
        [arrival(gpu_type="h100"), arrival(gpu_type="h100"), arrival(gpu_type="b200"), arrival(gpus=99)]
    )
    assert missing_types(jobs, FLOOR) == (
        "3 of 4 jobs want the GPU type 'b200' or 1 more, which the cluster does not have; it has 'a100', 'v100'"
    )
    with pytest.raises(InputError, match="name a cluster that has it with --cluster, or leave the jobs out"):
        refuse_impossible(jobs, FLOOR)


def test_a_type_that_no_job_of_the_trace_asks_for_any_more_is_not_missing() -> None:
    jobs = trace([arrival(gpu_type="h100"), arrival()]).take(np.array([1]))
    assert jobs.gpu_types == ("h100",)
    assert missing_types(jobs, FLOOR) == ""
    assert gpu_types_of(jobs, FLOOR) == (FAST, "h100", SLOW)


def test_of_many_types_a_few_are_named() -> None:
    kinds = tuple(f"t{at}" for at in range(7))
    many = replace(uniform(7, 1), gpu_type=np.arange(7), gpu_types=kinds)
    words = missing_types(trace([arrival(gpu_type="h100")]), many)
    assert words.endswith(", ...")
    assert ("t4" in words, "t5" in words, "more, which" in words) == (True, False, False)


# -- the jobs -------------------------------------------------------------------------------------------------


def test_jobs_are_numbered_from_one_and_their_instants_count_from_the_epoch() -> None:
    people = peopled(arrival(10, gpus=2, seconds=60, weight=3.0), arrival(70))
    jobs = people.jobs
    assert jobs.key[:2].tolist() == [pack(1), pack(2)]
    assert jobs.submit[:2].tolist() == [EPOCH + 10, EPOCH + 70]
    assert (jobs.gpus[0], jobs.usual_gpus[0], jobs.work[0], jobs.weight[0]) == (2, 2, 60.0, 3.0)
    assert jobs.gated[:2].all()
    assert jobs.checkpoints[:2].all()


@pytest.mark.parametrize(
    ("gpus", "nodes", "shape"),
    [
        (4, 0, (1, 0, 0)),
        (4, 1, (1, 0, 0)),
        (4, 2, (2, 2, 2)),
        (5, 2, (2, 2, 0)),  # any split
    ],
)
def test_nodes_are_kept_to_where_a_job_had_several(gpus: int, nodes: int, shape: tuple[int, ...]) -> None:
    """Nodes that it wants at least and at most (0 = any), and GPUs on each (0 = any split)."""
    jobs = peopled(arrival(gpus=gpus, nodes=nodes)).jobs
    assert (jobs.nodes[0], jobs.most_nodes[0], jobs.gpus_per_node[0]) == shape
    assert jobs.at_home[0] == nodes, "its run time was recorded there"


def test_tenants_whose_jobs_were_left_out_do_not_count() -> None:
    jobs = trace([arrival(tenant=name) for name in "abc"]).take(np.array([0, 2]))
    people = population(Scenario(jobs, FLOOR, weights={"c": 5.0, "b": 9.0}), EPOCH)
    assert (people.tenants, people.weights.tolist()) == (("a", "c"), [1.0, 5.0])
    assert people.jobs.tenant[:2].tolist() == [0, 1]


def test_a_new_tenant_is_sorted_in_and_the_jobs_of_the_others_follow() -> None:
    people = peopled(arrival(tenant="b"), arrival(tenant="d"), weights={"c": 4.0, "d": 2.0})
    assert people.tenant("d") == 1
    assert people.tenant("c") == 1
    assert (people.tenants, people.weights.tolist()) == (("b", "c", "d"), [1.0, 4.0, 2.0])
    assert people.jobs.tenant[:2].tolist() == [0, 2]
    assert people.tenant("a") == 0
    assert people.jobs.tenant[:2].tolist() == [1, 3]
    assert (people.user("new"), people.user("b"), people.user("new")) == (2, 0, 2)


def test_a_trace_without_jobs_is_an_empty_cluster() -> None:
    people = population(Scenario(nobody(), FLOOR), EPOCH)
    assert (people.jobs.count, people.tenants, len(people.regimes)) == (0, (), 0)
    assert people.tenant("a") == 0
    rows = people.add(2, 30.0)
    assert (rows, people.regimes.begin.tolist()) == (slice(0, 2), [0.0, 30.0])


def test_jobs_that_are_added_go_as_fast_as_the_machines_and_have_a_regime_each() -> None:
    people = peopled(arrival(seconds=100))
    rows = people.add(2, 40.0)
    assert people.rates[rows].tolist() == [[2.0, 1.0]] * 2
    assert people.spread_rates[rows].tolist() == [[1.0, 1.0]] * 2
    assert people.jobs.first_regime[rows].tolist() == people.jobs.last_regime[rows].tolist() == [1, 2]
    assert people.regimes.seconds.tolist() == [100.0, 40.0, 40.0]
    assert people.regimes.begin.tolist() == [0.0, 100.0, 140.0]
    assert np.isnan(people.regimes.epochs_total[1:]).all()


def test_jobs_that_cannot_save_say_so_and_keep_their_size() -> None:
    jobs = (arrival(gpus=2, choices=(1, 2), tenant="a"), arrival(gpus=2, choices=(1, 2), tenant="b"))
    people = peopled(*jobs, plain_jobs=PlainJobs(0.0, {"b": 1.0}))
    assert people.jobs.checkpoints[:2].tolist() == [True, False]
    assert people.elastic.slowest(len(people.gpu_types)).keys() <= {0}


def test_run_times_that_nobody_declared_are_told_or_not() -> None:
    jobs = (arrival(seconds=60, declared=90.0), arrival(seconds=60))
    assert peopled(*jobs).jobs.declared[:2].tolist() == [90.0, 60.0]
    unknown = peopled(*jobs, undeclared="unknown").jobs.declared[:2]
    assert unknown[0] == 90.0
    assert np.isnan(unknown[1])


# -- weights of GPUs ------------------------------------------------------------------------------------------


def test_a_gpu_of_any_type_counts_as_those_of_the_machines_on_average() -> None:
    jobs = trace([arrival()])
    types = gpu_types_of(jobs, FLOOR)
    assert asked_weights(Scenario(jobs, FLOOR), types).tolist() == [1.0, 1.0, 1.0]
    weighed = Scenario(jobs, FLOOR, gpu_weights={FAST: 3.0, SLOW: 0.5})
    assert asked_weights(weighed, types).tolist() == [3.0, 0.5, (8 * 3.0 + 2 * 0.5) / 10]
    people = peopled(arrival(), arrival(gpu_type=SLOW), gpu_weights={FAST: 3.0, SLOW: 0.5})
    assert people.jobs.gpu_weight[:2].tolist() == [2.5, 0.5]


# -- regimes and layout ---------------------------------------------------------------------------------------


def test_a_job_has_the_regimes_of_the_file_and_any_other_just_one() -> None:
    """Two epochs of 20 s with a batch of 16, then three of 10 s with one of 64; 160 samples an epoch."""
    given = JobRegimes("x", "m", Mode.GNS, 1, 160, (Regime(2, 16, 20.0), Regime(3, 64, 10.0)))
    people = peopled(
        arrival(0, seconds=30, epochs=3, batch_size=8, job_id="w"),
        arrival(1, seconds=70, job_id="x"),
        regimes={"x": given, "gone": given},
    )
    regimes, jobs = people.regimes, people.jobs
    assert (jobs.first_regime[:2].tolist(), jobs.last_regime[:2].tolist()) == ([0, 1], [0, 2])
    assert (regimes.begin.tolist(), regimes.seconds.tolist()) == ([0.0, 30.0, 70.0], [30.0, 40.0, 30.0])
    assert (regimes.epochs_before.tolist(), regimes.epochs_total.tolist()) == ([0, 0, 2], [3, 5, 5])
    assert regimes.epoch_seconds.tolist() == [10.0, 20.0, 10.0]
    assert regimes.steps_per_second[1:].tolist() == [160 / 16 / 20, 160 / 64 / 10]
    assert (regimes.batch_size.tolist(), regimes.adapts.tolist()) == ([8, 16, 64], [False, True, True])
    assert jobs.mode[:2].tolist() == [0, Mode.GNS]


def test_a_gang_that_was_measured_not_to_run_spread_lies_on_the_fewest_nodes_that_take_it() -> None:
    apart = measured("m", **{SLOW: 1.0})
    rates = {key: 0.0 if key[1] == "unconsolidated" else rate for key, rate in apart.rates.items()}
    together = replace(apart, rates=rates)
    floor = machines((1, 1, 1), "sss")
    jobs = (arrival(gpus=2, model="m", batch_size=16), arrival(gpus=2))
    assert peopled(*jobs, floor=floor, throughputs=together).jobs.most_nodes[:2].tolist() == [2, 0]
    assert peopled(*jobs, floor=floor, throughputs=apart).jobs.most_nodes[:2].tolist() == [0, 0]


def test_a_run_time_that_follows_from_measured_speeds_is_that_of_a_well_placed_gang() -> None:
    speeds = measured("m", **{SLOW: 1.0})
    jobs = trace([arrival(gpus=2, nodes=2, seconds=50, model="m", batch_size=16) for _ in range(2)])
    made = jobs.with_columns(total_steps=np.array([100, 90]))  # two steps a second
    people = population(Scenario(made, machines((1, 1), "ss"), throughputs=speeds), EPOCH)
    assert people.jobs.at_home[:2].tolist() == [0, 2]
