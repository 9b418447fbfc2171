"""The inputs of `simulate`: what is read, what is left out, and what the documents say of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from slurm_fair.cli.simulate.case import (
    Case,
    CaseOptions,
    gpu_weights_for,
    jobs_wanted,
    machines_of,
    read_case,
    read_outages,
    weights_of,
)
from slurm_fair.errors import InputError
from slurm_fair.sim.plain_jobs import NO_PLAIN_JOBS, PlainJobs
from slurm_fair.sim.scenario import Costs, NodeEvent, Outage, Scenario
from slurm_fair.sim.truthfulness import Truthfulness
from slurm_fair.trace import End, Machines, Trace, uniform
from tests.support.simulated import Arrival, arrival, trace
from tests.support.simulations import written

TWO = uniform(8, 4)  # n1 and n2


def jobs(*ends: End) -> Trace:
    """A job for each of these ends."""
    made = trace([arrival(at) for at in range(len(ends))])
    return made.with_columns(status=np.array([list(End).index(end) for end in ends], dtype=np.int8))


def sized(*gpus: float) -> Trace:
    made = trace([arrival(at, job_id=f"j{at}") for at in range(len(gpus))])
    return made.with_columns(gpus=np.array(gpus))


# -- options --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [None, "equal", "shares", "demand", "requested"])
def test_words_that_say_how_tenants_are_weighed_are_no_files(weights: str | None) -> None:
    assert CaseOptions(weights=weights).files == ()


def test_every_file_that_is_read_is_named() -> None:
    names = ("w.csv", "c.toml", "t.json", "r.json", "o.csv")
    weights, cluster, throughputs, regimes, outages = map(Path, names)
    given = CaseOptions(
        weights="w.csv", cluster=cluster, throughputs=throughputs, regimes=regimes, outages=outages
    )
    assert given.files == (weights, cluster, throughputs, regimes, outages)


def test_the_seed_draws_errors_of_declarations_and_plain_jobs() -> None:
    given = CaseOptions(progress="silent", declared_error=2.0, plain="0.5,a=1", seed=7)
    assert given.truthfulness == Truthfulness("silent", 2.0, 7)
    assert given.plain_jobs(trace([arrival(tenant="a")])) == PlainJobs(0.5, {"a": 1.0}, 7)
    assert CaseOptions(plain="a=1", seed=7).plain_jobs(trace([arrival(tenant="a")])).part == 0.0
    assert CaseOptions(seed=7).plain_jobs(trace([arrival()])) is NO_PLAIN_JOBS


def test_a_tenant_that_the_trace_does_not_have_is_told_with_the_nearest() -> None:
    here = trace([arrival(tenant="vision"), arrival(tenant="speech")])
    with pytest.raises(InputError, match="--plain: the trace has no tenant 'vison'; did you mean 'vision'"):
        CaseOptions(plain="vision=1,vison=1").plain_jobs(here)


# -- machines -------------------------------------------------------------------------------------------------


def test_nodes_have_eight_gpus_each_unless_told_otherwise() -> None:
    assert machines_of(20, None, None).gpus.tolist() == [8, 8, 4]
    assert machines_of(20, 10, None).gpus.tolist() == [10, 10]


@pytest.mark.parametrize(
    ("gpus", "per_node", "option"), [(8, None, "--gpus and"), (None, 4, "--gpus-per-node and")]
)
def test_a_cluster_is_said_in_one_way(gpus: int | None, per_node: int | None, option: str) -> None:
    with pytest.raises(InputError, match=f"^{option} --cluster both say what the cluster is: give one"):
        machines_of(gpus, per_node, Path("c.toml"))


@pytest.mark.parametrize("per_node", [None, 4])
def test_without_a_number_or_a_file_there_is_no_cluster(per_node: int | None) -> None:
    with pytest.raises(InputError, match="no cluster: give --gpus N"):
        machines_of(None, per_node, None)


def test_weights_of_gpus_that_do_not_fit_the_cluster_are_refused() -> None:
    assert gpu_weights_for(None, TWO) == {}
    assert gpu_weights_for({"gpu": 0.5}, TWO) == {"gpu": 0.5}
    with pytest.raises(InputError, match="--gpu-weights: there are no GPUs of type 'a100'"):
        gpu_weights_for({"a100": 0.5}, TWO)


def outages(folder: Path, *rows: str) -> tuple[Outage, ...]:
    return read_outages(written(folder, *rows, header="time_s,node,event", name="outages.csv"), TWO)


def test_outages_come_in_order_of_time_and_those_of_one_instant_as_listed(tmp_path: Path) -> None:
    assert outages(tmp_path, "50,n2,UP", "0,n1,Down", "50,n1,drain", "50,n2,down") == (
        Outage(0.0, "n1", NodeEvent.DOWN),
        Outage(50.0, "n2", NodeEvent.UP),
        Outage(50.0, "n1", NodeEvent.DRAIN),
        Outage(50.0, "n2", NodeEvent.DOWN),
    )
    assert outages(tmp_path) == ()


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("1,n3,down", "outages.csv:3: node: no node 'n3'; did you mean 'n"),
        ("1,,down", "outages.csv:3: node: no node ''"),
        ("1,n1,dead", "outages.csv:3: event: 'dead' is no event: drain, down, up"),
        ("-1,n1,down", "outages.csv:3: time_s: '-1' must be 0 or more"),
        ("nan,n1,down", "outages.csv:3: time_s: 'nan' is no number"),
        ("inf,n1,down", "outages.csv:3: time_s: 'inf' is no number"),
        ("1e11,n1,down", "outages.csv:3: time_s: '1e11' is more than a hundred years"),
        ("1,n1", "outages.csv:3: "),
    ],
)
def test_a_wrong_outage_is_told_by_line_column_and_value(tmp_path: Path, row: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        outages(tmp_path, "0,n1,down", row, "2,n1,up")
    assert words in str(caught.value)
    assert "every row must be right" in str(caught.value)


# -- jobs -----------------------------------------------------------------------------------------------------


def test_jobs_that_did_not_end_well_are_kept_unless_they_are_to_go() -> None:
    every = jobs(*End)
    kept, failed, large = jobs_wanted(every, TWO, CaseOptions())
    assert (kept is every, failed, large) == (True, 0, ())
    kept, failed, _ = jobs_wanted(every, TWO, CaseOptions(failed="drop"))
    assert failed + len(kept) == len(every)
    assert failed > 0
    assert End.COMPLETED in {list(End)[status] for status in kept.status.tolist()}
    well = jobs(End.COMPLETED)
    assert jobs_wanted(well, TWO, CaseOptions(failed="drop"))[0] is well


def test_a_trace_of_which_nothing_is_left_says_which_option_keeps_it() -> None:
    with pytest.raises(InputError, match=r"nothing of the trace is left: .* use --failed keep"):
        jobs_wanted(jobs(End.FAILED), TWO, CaseOptions(failed="drop"))
    with pytest.raises(InputError, match="no job of it fits 8 GPUs: give more"):
        jobs_wanted(sized(9, 10), TWO, CaseOptions(too_large="drop"))


def test_jobs_that_no_such_cluster_could_run_are_left_out_by_name() -> None:
    kept, failed, large = jobs_wanted(sized(8, 9, 7.5, 8.5), TWO, CaseOptions(too_large="drop"))
    assert (kept.job_id.tolist(), failed, large) == (["j0", "j2"], 0, ("j1", "j3"))
    with pytest.raises(InputError, match="2 of 4 jobs want more GPUs"):
        jobs_wanted(sized(8, 9, 7.5, 8.5), TWO, CaseOptions())


def test_a_failed_job_that_is_too_large_as_well_counts_once() -> None:
    every = sized(9, 1).with_columns(status=jobs(End.FAILED, End.COMPLETED).status)
    kept, failed, large = jobs_wanted(every, TWO, CaseOptions(failed="drop", too_large="drop"))
    assert (len(kept), failed, large) == (1, 1, ())


# -- tenants --------------------------------------------------------------------------------------------------

THREE = [
    arrival(gpus=2, seconds=100, tenant="a"),
    arrival(gpus=1, seconds=50, tenant="b"),
    arrival(gpus=4, seconds=10, tenant="b"),
    arrival(gpus=1, seconds=1, tenant="c"),
]


def test_tenants_are_alike_or_weigh_as_much_as_their_jobs_ask_for() -> None:
    made = trace(THREE)
    assert weights_of("equal", made) == {}
    assert weights_of("demand", made) == {"a": 200.0, "b": 90.0, "c": 1.0}
    assert weights_of("requested", made) == {"a": 2.0, "b": 5.0, "c": 1.0}


def test_a_tenant_whose_jobs_were_left_out_asks_for_nothing() -> None:
    made = trace(THREE).take(np.array([0, 1]))
    assert made.tenants == ("a", "b", "c")
    assert weights_of("demand", made) == {"a": 200.0, "b": 50.0}


def test_a_file_of_weights_names_every_tenant_with_a_job(tmp_path: Path) -> None:
    file = written(tmp_path, "b,2", "other,9", header="name,share", name="w.csv")
    with pytest.raises(
        InputError, match=r"w\.csv: no share for tenant 'a' and 1 more of the trace: add a row"
    ):
        weights_of(str(file), trace(THREE))
    only_b = trace(THREE).take(np.array([1, 2]))
    assert weights_of(str(file), only_b) == {"b": 2.0, "other": 9.0}


# -- the whole case -------------------------------------------------------------------------------------------

ROWS = ("j1,a,10,2,100", "j2,b,40,0.5,50", "j3,a,70,9,50")


def read(folder: Path, *rows: str, **given: Any) -> Case:
    path = written(folder, *rows)
    case, _ = read_case(path, Costs(), CaseOptions(**{"gpus": 8, "gpus_per_node": 4, **given}))
    return case


def test_a_source_of_speeds_without_their_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match="--throughputs-source names a source of --throughputs: give that too"
    ):
        read(tmp_path, *ROWS[:2], throughputs_source="simulated")


def test_documents_tell_of_what_is_simulated_and_of_what_was_left_out(tmp_path: Path) -> None:
    case = read(tmp_path, *ROWS, "j4,a,80,x,50", too_large="drop", skip_bad=True)
    assert case.trace_document() == {
        "path": str(tmp_path / "trace.csv"),
        "jobs": 2,
        "tenants": 2,
        "users": 2,
        "gpu_seconds": 225.0,
        "span_s": 30.0,
        "max_gpus": 2.0,
        "jobs_with_fractional_gpus": 1,
        "bad_rows": 1,
        "failed_left_out": 0,
        "too_large_left_out": ["j3"],
    }
    assert case.cluster_document() == {
        "gpus": 8, "nodes": 2, "racks": 1, "types": [{"type": "gpu", "nodes": 2, "gpus": 8}],
    }  # fmt: skip


def case_of(machines: Machines, *arrivals: Arrival, **options: Any) -> Case:
    return Case(Scenario(trace(arrivals), machines, **options), Path("t.csv"), 0, 0, (), "equal")


def test_a_cluster_of_several_types_counts_the_nodes_and_gpus_of_each() -> None:
    mixed = replace(
        uniform(20, 8), gpu_type=np.array([1, 0, 1]), gpu_types=("a100", "v100"), racks=("r1", "r2")
    )
    assert case_of(mixed, arrival()).cluster_document() == {
        "gpus": 20,
        "nodes": 3,
        "racks": 2,
        "types": [{"type": "a100", "nodes": 1, "gpus": 8}, {"type": "v100", "nodes": 2, "gpus": 12}],
    }


def test_jobs_whose_run_time_nobody_declared_are_told_as_known_or_unknown() -> None:
    arrivals = (arrival(declared=60.0), arrival(), arrival())
    assert case_of(TWO, *arrivals).run_times_document() == {
        "undeclared": "actual", "jobs_declared": 1, "jobs_actual": 2, "jobs_unknown": 0,
    }  # fmt: skip
    assert case_of(TWO, *arrivals, undeclared="unknown").run_times_document() == {
        "undeclared": "unknown", "jobs_declared": 1, "jobs_actual": 0, "jobs_unknown": 2,
    }  # fmt: skip


def test_other_options_tell_costs_as_they_are_given_and_nothing_of_what_is_usual() -> None:
    usual = case_of(TWO, arrival()).options_document(3)
    assert (usual["until_s"], usual["weights"], usual["seed"], usual["repeat"]) == (None, "equal", 3, 1)
    assert {"gpu_weights", "speeds", "jobs_plain"} & usual.keys() == set()
    said = case_of(
        TWO,
        arrival(choices=(1, 2)),
        arrival(choices=(1, 2)),
        arrival(),
        costs=Costs(checkpoint=1.0, restart=2.0, requeue_delay=3.0, start=4.0, opening=5.0),
        until_s=60.0,
        gpu_weights={"gpu": 0.5},
        speeds="learned",
        plain_jobs=PlainJobs(1.0),
    ).options_document(0, repeat=4)
    assert [said[f"{name}_s"] for name in ("checkpoint_cost", "restart_cost", "requeue_delay")] == [1, 2, 3]
    assert (said["start_cost_s"], said["until_s"], said["repeat"]) == (9.0, 60.0, 4)
    assert (said["gpu_weights"], said["speeds"]) == ({"gpu": 0.5}, "learned")
    assert (said["jobs_plain"], said["jobs_elastic"]) == (3, 0), "who cannot save never changes its size"
    elastic = case_of(TWO, arrival(choices=(1, 2)), arrival()).options_document(0)
    assert elastic["jobs_elastic"] == 1
