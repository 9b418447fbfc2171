"""A past as jobs to replay, and what really happened, measured as a simulation is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_fair.errors import SlurmTextError
from slurm_fair.model import EventKind, Standing, TickRecord
from slurm_fair.sim import SimulationResult
from slurm_fair.sim.past import NO_TENANT, Jobs, jobs_of, less_costs, recorded_result
from slurm_fair.sim.run import rules_for, simulate
from slurm_fair.sim.scenario import Costs, Scenario
from slurm_fair.slurm.past import HET, NO_GPUS, STEPS
from slurm_fair.trace import uniform
from tests.support.pasts import BEGAN, past, run
from tests.support.simulated import Arrival, arrivals
from tests.support.simulated import trace as trace_of

NOW = 10_000


def jobs(*rows: dict[str, str], now: int = NOW) -> Jobs:
    """The jobs of a past that has some."""
    found = jobs_of(past(rows), BEGAN + now)
    assert found is not None
    return found


def test_a_requeued_job_is_one_job_with_all_its_run_time() -> None:
    found = jobs(
        run("7", 0, 10, 110, gpus=2, state="REQUEUED"),
        run("7", 110, 200, 250, gpus=2, state="NODE_FAIL"),
        run("7", 250, 300, 400, gpus=2),
    )
    assert found.trace.job_id.tolist() == ["7"]
    assert (found.trace.submit_s.tolist(), found.trace.duration_s.tolist()) == ([0.0], [250.0])
    outcomes = found.outcomes
    assert (outcomes.end - outcomes.submit).tolist() == [400.0]
    assert (outcomes.restarts.tolist(), outcomes.preemptions.tolist()) == ([2], [2])


def test_array_tasks_are_jobs_of_their_own() -> None:
    found = jobs(run("9_0", 5, 10, 20), run("9_1", 5, 10, 30))
    assert found.trace.job_id.tolist() == ["9_0", "9_1"]
    assert found.trace.duration_s.tolist() == [10.0, 20.0]


def test_an_id_that_is_used_again_names_two_jobs() -> None:
    found = jobs(run("3", 0, 0, 100), run("3", 500, 500, 700))
    assert found.trace.job_id.tolist() == ["3", "3~2"]
    assert found.trace.duration_s.tolist() == [100.0, 200.0]


@pytest.mark.parametrize("word", ["NODE_FAIL", "PREEMPTED"])
def test_a_job_that_lost_its_node_and_never_came_back_is_over(word: str) -> None:
    found = jobs(run("3", 0, 0, 100, state=word))
    assert (found.cut, found.outcomes.end.tolist()) == ((), [BEGAN + 100.0])


def test_jobs_that_never_ran_are_named_and_left_out() -> None:
    found = jobs(
        run("1", 0, 10, 20),
        run("2", 0, None, None, state="PENDING"),
        run("3", 0, None, 50, state="CANCELLED by 0"),
        run("4", 0, 60, 60, state="FAILED"),
        run("5_[0-2,7%2]", 0, None, None, state="PENDING"),
    )
    assert found.trace.job_id.tolist() == ["1"]
    assert (found.never_ran, found.never_count) == (("2", "3", "4", "5_[0-2,7%2]"), 7)


def test_a_job_that_still_runs_ends_when_accounting_was_asked_with_the_work_done_by_then() -> None:
    found = jobs(run("1", 0, 10, 20), run("2", 0, 1000, None, state="RUNNING"), now=1600)
    assert found.cut == ("2",)
    assert found.trace.duration_s.tolist() == [10.0, 600.0]
    assert found.outcomes.end.tolist() == [BEGAN + 20.0, BEGAN + 1600.0]
    assert found.outcomes.completed.tolist() == [True, False]


def test_a_requeued_job_that_waits_again_is_not_over_either() -> None:
    rows = [run("1", 0, 10, 110, state="REQUEUED"), run("1", 110, None, None, state="PENDING")]
    found = jobs(*rows, now=500)
    assert (found.cut, found.trace.duration_s.tolist()) == (("1",), [100.0])
    assert found.outcomes.end.tolist() == [BEGAN + 500.0]


def test_a_past_in_which_nothing_ran_is_no_past() -> None:
    assert jobs_of(past([run("2", 0, None, None, state="PENDING")]), BEGAN + NOW) is None
    assert jobs_of(past([]), BEGAN + NOW) is None


def test_rows_that_are_no_run_of_one_gpu_job_are_counted() -> None:
    told = past([run("1.batch", 0, 1, 2), run("1+0", 0, 1, 2), run("2", 0, 1, 2, gpus=0), run("3", 0, 1, 2)])
    assert told.left_out == {STEPS: 1, HET: 1, NO_GPUS: 1}
    assert len(told.runs) == 1


@pytest.mark.parametrize(
    ("cells", "what"),
    [
        ({"JobID": "x7"}, "no job id"),
        ({"End": "soon"}, "no time"),
        ({"ReqTRES": "gres/gpu=many", "AllocTRES": ""}, "no whole number"),
        ({"JobID": "7_[a-b]"}, "no list of array tasks"),
    ],
)
def test_a_row_that_cannot_be_read_says_why(cells: dict[str, str], what: str) -> None:
    with pytest.raises(SlurmTextError, match=what):
        past([run("7", 0, 1, 2) | {"AllocTRES": ""} | cells])


def test_what_a_job_asked_for_is_kept_and_what_it_merely_got_is_not() -> None:
    got = "cpu=1,gres/gpu:h100=4,gres/gpu=4,node=2"
    found = jobs(
        run("1", 0, 1, 9, AllocTRES=got, ReqTRES="cpu=1,gres/gpu=4,node=1", TimelimitRaw="UNLIMITED"),
        run("2", 0, 1, 9, AllocTRES=got, ReqTRES="gres/gpu:h100=4,node=2", NodeList="n[1-2]"),
    )
    trace = found.trace
    assert [trace.gpu_types[kind] if kind >= 0 else "" for kind in trace.gpu_type.tolist()] == ["", "h100"]
    assert (trace.node_count.tolist(), trace.gpus.tolist()) == ([1, 2], [4.0, 4.0])
    assert np.isnan(trace.declared_s[0])
    assert trace.declared_s[1] == 3600.0
    assert found.nodes == (("n1",), ("n1", "n2"))


def test_jobs_without_an_account_are_of_one_tenant() -> None:
    assert jobs(run("1", 0, 1, 9, tenant="")).trace.tenants == (NO_TENANT,)


def result(*rows: dict[str, str], gpus: int, weights: dict[str, float] | None = None) -> dict[str, object]:
    """The recorded metrics on so many GPUs."""
    found = jobs(*rows)
    return recorded_result(found, Scenario(found.trace, uniform(gpus), weights=weights or {})).to_dict()


def test_recorded_times_are_those_of_accounting() -> None:
    row = result(run("1", 0, 100, 200), run("2", 50, 200, 400, gpus=2), gpus=2)
    assert (row["policy"], row["makespan_s"]) == ("recorded", 400.0)
    assert row["jct_mean_s"] == (200 + 350) / 2
    assert row["wait_mean_s"] == (100 + 150) / 2
    assert row["gpu_seconds"] == 100 + 400
    assert row["utilization"] == 500 / (2 * 400)
    assert (row["fragments_mean"], row["overhead_fraction"], row["placement_score"]) == (None, None, None)


def test_recorded_fairness_follows_from_the_definitions() -> None:
    """Two tenants, one GPU, both there for 200 s: each is owed half, the first had its whole run at once."""
    row = result(run("1", 0, 0, 200), run("2", 0, 200, 400, tenant="b"), gpus=1)
    # Job 1: had 200, owed 100. Job 2: owed half of the first 200 s and of the next too (a is remembered).
    assert row["ltgf_job_loss_fraction"] == 0.0
    late = result(run("1", 0, 0, 300), run("2", 0, 300, 320, tenant="b"), gpus=1)
    assert late["ltgf_job_loss_fraction"] == 0.5


def test_weights_decide_what_was_owed() -> None:
    rows = [run("1", 0, 0, 300), run("2", 0, 300, 360, tenant="b")]
    fair = result(*rows, gpus=1, weights={"a": 9.0, "b": 1.0})
    assert fair["ltgf_job_loss_fraction"] == 0.0


def test_what_was_recorded_under_fifo_is_what_a_simulation_of_fifo_says() -> None:
    """A cluster that serves in order of submission, whose ends fall on the looks of the simulation."""
    rows = [
        run("1", 0, 0, 1000, gpus=8),
        run("2", 100, 1000, 1500, gpus=4, tenant="b"),
        run("3", 200, 1000, 4000, gpus=4),
        run("4", 300, 1500, 4500, gpus=4, tenant="b"),
    ]
    found = jobs(*rows)
    scenario = Scenario(found.trace, uniform(8))
    really, simulated = recorded_result(found, scenario), simulate(scenario, rules_for("fifo", {}))
    one, other = really.summary, simulated.summary
    for name in (
        "makespan_s", "jct_mean_s", "jct_p95_s", "wait_mean_s", "slowdown_mean", "utilization", "gpu_seconds",
        "ftf_themis_worst", "ftf_shockwave_worst", "ftf_static_worst", "ftf_sia_worst", "latency_ratio_max",
        "ltgf_job_loss_fraction", "ltgf_tenant_unfair_fraction", "jain_tenants",
    ):  # fmt: skip
        assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-9), name
    assert np.allclose(really.outcomes.owed, simulated.outcomes.owed)


def test_only_the_jobs_of_the_scenario_are_measured() -> None:
    found = jobs(run("1", 0, 0, 100), run("2", 0, 0, 100, tenant="b"), run("3", 0, 0, 100, tenant="c"))
    trace = found.trace.take(np.array([0, 2]))
    really = recorded_result(found, Scenario(trace, uniform(8)))
    assert really.outcomes.tenants == ("a", "c")
    assert (len(really.outcomes), len(really.runs)) == (2, 2)
    assert trace.job_id[really.trace_row].tolist() == ["1", "3"]


# -- what starts and saves took -----------------------------------------------------------------------------------


def test_what_starts_and_saves_took_is_no_work() -> None:
    found = jobs(
        run("1", 0, 0, 100),
        run("2", 0, 100, 300, state="REQUEUED"),
        run("2", 300, 400, 500, state="REQUEUED"),
        run("2", 500, 600, 610),
        run("3", 0, 700, 702),
    )
    left = less_costs(found, Costs(checkpoint=10.0, restart=35.0, start=4.0))
    # The third run of job 2 was over before it made progress, as the only one of job 3 was.
    assert left.trace.duration_s.tolist() == [100 - 4, 200 - 4 - 10 + 100 - 4 - 35 - 10, 1.0]
    assert found.trace.duration_s.tolist() == [100.0, 310.0, 2.0]
    assert less_costs(found, Costs()).trace.duration_s.tolist() == found.trace.duration_s.tolist()


@given(
    arrivals(2000, (100, 3000)),
    st.builds(
        Costs,
        *(st.integers(0, most).map(float) for most in (20, 60)),
        st.just(0.0),
        st.integers(0, 30).map(float),
        opening=st.integers(0, 5).map(float),
    ),
    st.booleans(),
)
def test_a_past_that_was_simulated_is_replayed_with_the_work_that_its_jobs_had(
    arrived: list[Arrival], costs: Costs, aligned: bool
) -> None:
    """But for a job that saved and then went on after all: accounting does not tell of it.

    What passes before a run starts is no part of it.
    """
    trace, went_on = trace_of(arrived), set[int]()
    rules = rules_for("astraea", {}, lease=300.0, aligned=aligned, checkpoint_cost=costs.checkpoint)

    def listen(tick: TickRecord, standing: Standing) -> None:
        went_on.update(event.key for event in tick.events if event.kind == EventKind.STAYS)

    result = simulate(Scenario(trace, uniform(8), costs), rules, listen=listen)
    left = less_costs(jobs(*rows_of(result), now=10**7), costs).trace
    worked = dict(zip(left.job_id.tolist(), left.duration_s.tolist(), strict=True))
    for job, row in enumerate(result.trace_row.tolist()):
        if int(result.outcomes.key[job]) not in went_on:
            assert worked[str(job)] == pytest.approx(trace.duration_s[row], abs=1e-6)


def rows_of(result: SimulationResult) -> list[dict[str, str]]:
    """The runs of a simulation as accounting would have them; a job's number is its row."""
    rows, runs, gpus = list[dict[str, str]](), result.runs, result.outcomes.gpus.tolist()
    submit = (result.outcomes.submit - result.epoch).tolist()
    last = np.append(runs.job[1:] != runs.job[:-1], True).tolist()
    times = ((column - result.epoch).tolist() for column in (runs.start, runs.end))
    for job, start, end, over in zip(runs.job.tolist(), *times, last, strict=True):
        word = "COMPLETED" if over else "REQUEUED"
        rows.append(run(str(job), int(submit[job]), int(start), int(end), gpus[job], state=word))
        submit[job] = end
    return rows
