"""`slurm-fair simulate` as a person meets it: options, tables, documents and complaints."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from slurm_fair.cli.simulate.command import simulate
from slurm_fair.cli.simulate.setups import makeshift_of
from slurm_fair.cli.simulate.table import BEST, GROUPS, lines_of, metrics
from slurm_fair.policy.registry import names
from tests.support import recorded
from tests.support.command_line import call
from tests.support.schemas import faults
from tests.support.simulations import TIMINGS, document, jobs_of, made, only, results, simulated, written

ROOT = Path(__file__).parents[3]
SCHEMA = json.loads((ROOT / "docs" / "schema" / "simulate.json").read_text())
GOLDEN = ROOT / "tests" / "golden" / "simulate"
PROMISED = [
    "makespan_s", "jct_mean_s", "jct_p50_s", "jct_p95_s", "jct_p99_s", "wait_mean_s", "slowdown_mean",
    "slowdown_p95", "utilization", "gpu_seconds", "fragments_mean", "preemptions", "restarts",
    "overhead_fraction", "ftf_themis_worst", "ftf_themis_unfair", "ftf_shockwave_worst",
    "ftf_shockwave_unfair", "ftf_static_worst", "ftf_static_unfair", "ftf_sia_worst", "ftf_sia_unfair",
    "latency_ratio_max", "latency_ratio_mean", "ltgf_job_loss_fraction", "ltgf_tenant_unfair_fraction",
    "jain_tenants", "jobs_completed", "jobs_total", "decision_p50_s", "decision_p95_s", "decision_max_s",
    "wall_s", "peak_rss_mb",
]  # fmt: skip


# -- the document ---------------------------------------------------------------------------------------------


def test_the_document_has_every_promised_key_and_keeps_to_its_schema(tmp_path: Path) -> None:
    found = document(made(tmp_path), "--policy", "astraea,fifo", "--restart-cost", "20", "--seed", "3")
    assert faults(found, SCHEMA) == []
    assert [result["policy"] for result in found["results"]] == ["astraea", "fifo"]
    assert [key for key in PROMISED if key not in found["results"][0]] == []
    assert (found["trace"]["jobs"], found["cluster"]["gpus"], found["options"]["seed"]) == (40, 16, 3)
    astraea, fifo = found["results"]
    assert (astraea["lease_s"], fifo["lease_s"]) == (900.0, None)
    assert (astraea["preemptions"] > 0, fifo["preemptions"]) == (True, 0)
    assert all(result["jobs_completed"] == result["jobs_total"] == 40 for result in found["results"])


def test_accounts_of_tenants_add_up_to_the_gpu_time(tmp_path: Path) -> None:
    for result in results(made(tmp_path), "--policy", "astraea,fifo"):
        had = sum(account["had_gpu_seconds"] for account in result["tenants"])
        assert had == pytest.approx(result["gpu_seconds"])


def test_a_run_says_the_same_again_but_for_the_machines_own_numbers(tmp_path: Path) -> None:
    trace = made(tmp_path)
    one, two = (document(trace, "--policy", "astraea,tiresias") for _ in range(2))
    for found in (one, two):
        for result in found["results"]:
            assert set(result) >= TIMINGS
            for key in TIMINGS:
                del result[key]
    assert json.dumps(one) == json.dumps(two)


# -- options --------------------------------------------------------------------------------------------------


def test_every_option_is_explained() -> None:
    said = call("simulate", "--help").out
    assert [o for p in simulate.params for o in p.opts if o.startswith("--") and o not in said] == []


def test_the_lease_term_and_the_costs_of_changing_hands_matter(tmp_path: Path) -> None:
    trace = made(tmp_path)
    usual, short = only(trace), only(trace, "--lease", "300")
    assert (short["lease_s"], short["preemptions"] > usual["preemptions"]) == (300.0, True)
    assert usual["overhead_fraction"] == 0.0
    assert only(trace, "--restart-cost", "60")["overhead_fraction"] > 0
    started, resumed = (
        only(trace, f"--{which}-cost", "60", "--policy", "fifo") for which in ("start", "restart")
    )
    assert (started["overhead_fraction"] > 0, resumed["overhead_fraction"]) == (True, 0.0), (
        "fifo resumes none"
    )
    assert only(trace, "--checkpoint-cost", "60")["overhead_fraction"] > 0


def test_leases_end_together_or_on_their_own(tmp_path: Path) -> None:
    trace = made(tmp_path)
    usual, aligned = only(trace), only(trace, "--align", "aligned")
    assert (usual["aligned"], aligned["aligned"]) == (False, True)
    assert only(trace, "--align", "rolling") == usual
    assert {**aligned, "aligned": False} != usual


def test_gavels_rounds_leave_the_gpus_of_ended_jobs_idle(tmp_path: Path) -> None:
    trace = written(tmp_path, "a,x,0,16,100", "b,x,0,16,100")
    conserving = only(trace, "--policy", "fifo", "--lease", "360")
    gavel = only(trace, "--policy", "fifo", "--lease", "360", "--rounds", "gavel")
    assert (conserving["makespan_s"], gavel["makespan_s"]) == (pytest.approx(200, abs=10), 460.0)
    assert (gavel["interval_s"], gavel["aligned"]) == (360.0, True)


def test_a_setting_reaches_its_policy(tmp_path: Path) -> None:
    trace = made(tmp_path)
    found = only(trace, "--set", "fair.price_hours=0")
    assert found["settings"] == {"price_hours": 0.0}
    assert {**found, "settings": {}} != only(trace)


def test_fairness_fades_where_that_is_asked_for(tmp_path: Path) -> None:
    rows = ("a,x,0,16,9000", "b,y,6000,8,9000", "c,x,6000,8,9000", "d,y,9000,8,9000", "e,x,9000,8,900")
    trace = written(tmp_path, *rows)
    ever, fades = (
        only(trace, "--policy", "astraea", "--renewal", "900", *how) for how in ((), ("--half-life", "600"))
    )
    assert (ever["half_life_s"], fades["half_life_s"]) == (0.0, 600.0)
    assert {**fades, "half_life_s": 0.0} != ever


def test_weights_by_the_gpus_that_jobs_ask_for(tmp_path: Path) -> None:
    """One tenant asks for many GPUs for a short time, the other for few for a long time."""
    trace = written(tmp_path, "a,x,0,12,600", "b,x,0,6,600", "c,y,0,6,9000")
    (given := tmp_path / "weights.csv").write_text("name,share\nx,18\ny,6\n")
    asked, file, time = (only(trace, "--weights", words) for words in ("requested", str(given), "demand"))
    assert asked["tenants"] == file["tenants"] != time["tenants"]


def test_weights_are_alike_by_demand_or_from_a_file(tmp_path: Path) -> None:
    trace = written(tmp_path, "a,x,0,16,9000", "b,y,0,16,3000", "c,x,0,16,9000", "d,y,0,16,3000")
    given = tmp_path / "weights.csv"
    given.write_text("name,share\nx,6\ny,2\nz,9\n")
    equal, demand, file = (only(trace, "--weights", words) for words in ("equal", "demand", str(given)))
    assert demand["tenants"] == file["tenants"] != equal["tenants"]
    found = {account["tenant"]: account["owed_gpu_seconds"] for account in demand["tenants"]}
    assert found["x"] > found["y"]


def test_a_file_of_weights_must_name_every_tenant_of_the_trace(tmp_path: Path) -> None:
    given = tmp_path / "weights.csv"
    given.write_text("name,share\nx,6\n")
    said = simulated(written(tmp_path, "a,x,0,1,9", "b,y,0,1,9", "c,z,0,1,9"), "--weights", str(given))
    assert said.code == 2
    assert "no share for tenant 'y' and 1 more of the trace" in said.complaint


def test_failed_jobs_are_kept_or_dropped_and_counted(tmp_path: Path) -> None:
    rows = ["a,x,0,1,9,", "b,x,0,1,9,Failed", "c,x,0,1,9,Killed", "d,x,0,1,9,Running"]
    trace = written(tmp_path, *rows, header="job_id,tenant,submit_s,gpus,duration_s,status")
    assert only(trace)["jobs_completed"] == 2  # the others end as the trace says
    found = document(trace, "--failed", "drop")
    assert (found["trace"]["jobs"], found["trace"]["failed_left_out"]) == (2, 2)
    assert "2 jobs that did not end well left out" in simulated(trace, "--failed", "drop").out


def test_jobs_larger_than_the_cluster_are_refused_or_left_out_by_name(tmp_path: Path) -> None:
    trace = written(tmp_path, "a,x,0,1,9", "giant,x,0,17,9")
    said = simulated(trace)
    assert said.code == 2
    assert "1 of 2 jobs" in said.complaint
    assert "giant (17 GPUs)" in said.complaint
    found = document(trace, "--too-large", "drop")
    assert (found["trace"]["jobs"], found["trace"]["too_large_left_out"]) == (1, ["giant"])
    assert "left out: giant" in simulated(trace, "--too-large", "drop").out
    nothing = simulated(written(tmp_path, "giant,x,0,17,9", name="g.csv"), "--too-large", "drop")
    assert (nothing.code, "no job of it fits 16 GPUs" in nothing.complaint) == (2, True)


def test_a_gpu_type_that_the_cluster_does_not_have_is_named_with_those_that_it_has(tmp_path: Path) -> None:
    header = "job_id,tenant,submit_s,gpus,duration_s,gpu_type"
    trace = written(tmp_path, "1,a,0,1,10,a100", "2,a,0,1,10,", "3,a,0,99,10,h100", header=header)
    said = simulated(trace)
    assert said.code == 2
    assert "2 of 3 jobs want the GPU type 'a100' or 1 more, which the cluster does not have" in said.complaint
    assert "; it has 'gpu': name a cluster" in said.complaint
    assert document(trace, "--too-large", "drop")["trace"]["too_large_left_out"] == ["1", "3"]
    nothing = simulated(
        written(tmp_path, "1,a,0,1,10,a100", header=header, name="g.csv"), "--too-large", "drop"
    )
    assert (nothing.code, "want the GPU type 'a100'" in nothing.complaint) == (2, True)


def test_a_part_of_a_gpu_takes_a_whole_one_and_that_is_said(tmp_path: Path) -> None:
    trace = written(tmp_path, "a,x,0,0.5,100", "b,x,0,1.5,100", "c,x,0,1,100")
    assert document(trace)["trace"]["jobs_with_fractional_gpus"] == 2
    assert "note: 2 jobs with a part of a GPU took whole ones (the ceiling)" in simulated(trace).out
    assert only(trace)["gpu_seconds"] == pytest.approx(400)


def test_a_tenants_share_may_be_filled_among_its_jobs(tmp_path: Path) -> None:
    """16 GPUs of one tenant: 12 are asked for beside 2, of 8 each; max-min owes the wide job the 6 left over."""
    trace = written(tmp_path, "wide,x,0,12,1000", "narrow,x,0,2,1000")
    jobs, owed = tmp_path / "jobs.csv", {}
    for share in ("proportional", "max-min"):
        found = only(trace, "--job-share", share, "--jobs-out", str(jobs))
        assert found["job_share"] == share
        owed[share] = {row["job_id"]: float(row["rho_ltgf"]) for row in jobs_of(jobs)}
    assert owed["proportional"] == pytest.approx({"wide": 12 / 7, "narrow": 1.0}, rel=0.02)
    assert owed["max-min"] == pytest.approx({"wide": 1.0, "narrow": 1.0}, rel=0.02)


def test_a_tenant_counts_from_its_first_job_on_or_from_the_beginning(tmp_path: Path) -> None:
    """The first has all 16 GPUs to itself for an hour; the second comes then, and both want all of them."""
    trace = written(tmp_path, "a,x,0,16,7200", "b,y,3600,16,3600")
    usual, everyone = only(trace, "--policy", "fifo"), only(trace, "--policy", "fifo", "--counted", "all")
    assert (usual["counted"], everyone["counted"]) == ("seen", "all")
    owed = [{t["tenant"]: t["owed_gpu_seconds"] / 3600 for t in one["tenants"]} for one in (usual, everyone)]
    assert owed[0] == pytest.approx({"x": 16 + 8, "y": 16.0}, rel=0.01)
    assert owed[1] == pytest.approx({"x": 8 + 8, "y": 16.0}, rel=0.01)
    assert only(trace, "--policy", "fifo", "--counted", "seen") == usual


def test_it_is_said_that_policies_were_told_how_long_jobs_run(tmp_path: Path) -> None:
    header = "job_id,tenant,submit_s,gpus,duration_s,declared_s"
    trace = written(tmp_path, "a,x,0,1,100,", "b,x,0,1,50,60", "c,x,0,1,70,", header=header)
    told = {"undeclared": "actual", "jobs_declared": 1, "jobs_actual": 2, "jobs_unknown": 0}
    assert document(trace)["told"] == told
    said = simulated(trace, "--policy", "sjf").out
    assert "note: 2 jobs without declared_s: policies were told the true run time (--undeclared" in said
    assert "without declared_s" not in simulated(written(tmp_path, "a,x,0,1,100,90", header=header)).out


def test_policies_can_be_told_nothing_of_run_times(tmp_path: Path) -> None:
    """Shortest first, and the one that declared 250 s before those of unknown length, in their order."""
    rows = ("first,x,0,16,100,", "long,x,1,16,300,", "short,x,2,16,50,", "said,x,3,16,200,250")
    trace = written(tmp_path, *rows, header="job_id,tenant,submit_s,gpus,duration_s,declared_s")
    jobs = tmp_path / "jobs.csv"

    def order(*arguments: str) -> list[str]:
        only(trace, "--policy", "sjf", "--jobs-out", str(jobs), *arguments)
        return sorted((row["job_id"] for row in jobs_of(jobs)), key=lambda job: starts()[job])

    def starts() -> dict[str, float]:
        return {row["job_id"]: float(row["start_s"]) for row in jobs_of(jobs)}

    assert order() == ["first", "short", "said", "long"]
    assert order("--undeclared", "unknown") == ["first", "said", "long", "short"]
    said = simulated(trace, "--policy", "sjf,fifo", "--undeclared", "unknown").out
    assert "note: 3 jobs without declared_s: policies were told nothing of the run time\n" in said
    assert "note: sjf: jobs of unknown run time come last, in the order of submission\n" in said
    assert "note: fifo" not in said


MAKESHIFTS = ("allox", "fair", "gavel-ftf", "hops", "optimus", "ossp", "sjf", "slaq", "slurm", "srsf", "srtf")


@pytest.mark.parametrize("policy", names())
def test_a_policy_that_goes_by_run_times_does_without_and_says_how(policy: str, tmp_path: Path) -> None:
    """The results of a policy that says nothing do not depend on what it was told."""
    trace = made(tmp_path, jobs=25)
    told, untold = (only(trace, "--policy", policy, "--undeclared", what) for what in ("actual", "unknown"))
    assert untold["jobs_completed"] == untold["jobs_total"] == 25
    assert bool(makeshift_of(policy)) == (policy in MAKESHIFTS)
    assert told == untold or makeshift_of(policy)


def test_a_run_that_ends_early_names_what_did_not_end(tmp_path: Path) -> None:
    trace = written(tmp_path, "a,x,0,1,50", "long,x,0,1,5000", "later,x,9000,1,50")
    said = simulated(trace, "--until", "1000")
    assert "note: fair: 1 job did not end: long" in said.out
    assert "note: fair: 1 job not submitted by then" in said.out
    found = only(trace, "--until", "1000")
    assert (found["jobs_not_ended"], found["jobs_completed"], found["jobs_total"]) == (1, 1, 2)


def test_nodes_fail_and_come_back(tmp_path: Path) -> None:
    trace = written(tmp_path, "a,x,0,16,1000")
    outages = tmp_path / "outages.csv"
    outages.write_text("time_s,node,event\n500,n1,down\n2000,n1,up\n")
    found = only(trace, "--outages", str(outages))
    assert (found["restarts"], found["makespan_s"]) == (1, pytest.approx(3000, abs=20))
    late = only(trace, "--outages", str(outages), "--requeue-delay", "2000")
    assert late["makespan_s"] == pytest.approx(3500, abs=20)
    drained = tmp_path / "drained.csv"
    drained.write_text("node,event,time_s\nn2,drain,0\n")
    assert only(written(tmp_path, "a,x,10,16,100"), "--outages", str(drained))["jobs_not_ended"] == 1


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("500,n9,down", ":2: node: no node 'n9'; did you mean"),
        ("500,n1,gone", ":2: event: 'gone' is no event: drain, down, up"),
        ("-1,n1,down", ":2: time_s: '-1' must be 0 or more"),
        ("500,n1", ":2: row: has 2 cells, the header 3"),
    ],
)
def test_a_bad_row_of_outages_is_refused(tmp_path: Path, row: str, words: str) -> None:
    outages = tmp_path / "outages.csv"
    outages.write_text(f"time_s,node,event\n{row}\n")
    said = simulated(made(tmp_path), "--outages", str(outages))
    assert (said.code, words in said.complaint) == (2, True)


def test_a_cluster_file_gives_types_and_speeds(tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.toml"
    cluster.write_text(
        '[[nodes]]\nname = "a[1-2]"\ngpus = 4\ntype = "fast"\nspeed = 2.0\nrack = "r1"\n'
        '[[nodes]]\nname = "b1"\ngpus = 4\ntype = "slow"\nrack = "r2"\n'
    )
    header = "job_id,tenant,submit_s,gpus,duration_s,gpu_type"
    trace = written(tmp_path, "a,x,0,4,100,fast", "b,x,0,4,100,slow", header=header)
    said = call("simulate", str(trace), "--cluster", str(cluster), "--json")
    found = json.loads(said.out)
    assert found["cluster"]["types"] == [
        {"type": "fast", "nodes": 2, "gpus": 8},
        {"type": "slow", "nodes": 1, "gpus": 4},
    ]
    assert (found["cluster"]["racks"], found["results"][0]["gpu_seconds"]) == (2, pytest.approx(200 + 400))


def test_throughputs_give_run_times_by_source(tmp_path: Path) -> None:
    rates = tmp_path / "rates.csv"
    rows = ["one,v100,consolidated,LM,10,1,2", "two,v100,consolidated,LM,10,1,4"]
    rates.write_text("\n".join(["source,gpu_type,placement,model,batch_size,gpus,steps_per_s", *rows]) + "\n")
    header = "job_id,tenant,submit_s,gpus,duration_s,model,batch_size,total_steps"
    trace = written(tmp_path, "a,x,0,1,,LM,10,400", header=header)
    assert only(trace, "--throughputs", str(rates))["makespan_s"] == pytest.approx(200)
    second = document(trace, "--throughputs", str(rates), "--throughputs-source", "two")
    assert second["results"][0]["makespan_s"] == pytest.approx(100)
    assert second["options"]["throughputs"] == "two"


def test_regimes_are_those_of_the_trace(tmp_path: Path) -> None:
    regimes = tmp_path / "regimes.jsonl"
    line = {
        "job_id": "a",
        "model": "LM",
        "mode": "gns",
        "gpus": 1,
        "samples_per_epoch": 100,
        "regimes_epochs_batch_secperepoch": [[2, 10, 30.0], [2, 20, 20.0]],
    }
    regimes.write_text(json.dumps(line) + "\n")
    trace = written(tmp_path, "a,x,0,1,100", "b,x,0,1,100")
    assert document(trace, "--regimes", str(regimes))["options"]["jobs_with_regimes"] == 1
    said = simulated(written(tmp_path, "c,x,0,1,100", name="c.csv"), "--regimes", str(regimes))
    assert (said.code, "names no job of the trace" in said.complaint) == (2, True)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"job_id": "z"}, "job 'z' not in the trace"),
        ({"gpus": 2}, "job 'b': its regimes are those of 2 GPUs and the trace says 1"),
        ({"regimes_epochs_batch_secperepoch": [[3, 10, 25.0], [1, 20, 50.0]]}, "take 125 s and the trace's"),
        ({"regimes_epochs_batch_secperepoch": [[5, 10, 20.0]]}, "have 5 epochs and the trace says 4"),
        ({"regimes_epochs_batch_secperepoch": [[-4, 10, 25.0]]}, "regimes.jsonl:2: regimes_epochs"),
    ],
    ids=["a job that is not there", "other GPUs", "another run time", "other epochs", "a negative number"],
)
def test_regimes_that_are_not_those_of_the_trace_are_one_line(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    line = {
        "job_id": "a",
        "model": "LM",
        "mode": "gns",
        "gpus": 1,
        "samples_per_epoch": 100,
        "regimes_epochs_batch_secperepoch": [[4, 10, 25.0]],
    }
    header = "job_id,tenant,submit_s,gpus,duration_s,epochs"
    trace = written(tmp_path, "a,x,0,1,100,4", "b,x,0,1,100,4", header=header)
    regimes = tmp_path / "regimes.jsonl"
    regimes.write_text("".join(json.dumps(each) + "\n" for each in (line, {**line, "job_id": "b", **change})))
    said = simulated(trace, "--regimes", str(regimes))
    assert (said.code, said.out) == (2, "")
    assert words in said.complaint


def test_bad_rows_are_refused_or_skipped_counted_and_listed(tmp_path: Path) -> None:
    trace = written(tmp_path, "a,x,0,1,50", "b,x,0,none,50")
    said = simulated(trace)
    assert (said.code, f"{trace}:3: gpus: 'none' is no number" in said.complaint) == (2, True)
    skipped = simulated(trace, "--skip-bad", "--json")
    assert skipped.complaint.startswith(f"left out: {trace}:3: gpus")
    assert json.loads(skipped.out)["trace"]["bad_rows"] == 1


# -- the table ------------------------------------------------------------------------------------------------


_PARTS = ("_fraction", "_unfair", "utilization", "decision_p50_s", "decision_p95_s")


def _made_up(policy: str, factor: float) -> dict[str, Any]:
    row: dict[str, Any] = {metric.key: (at + 1) * factor for at, metric in enumerate(metrics())}
    row = {key: value / 1e5 if key.endswith(_PARTS) else value for key, value in row.items()}
    return row | {"policy": policy, "jobs_total": 100, "jobs_completed": 100, "placement_score": None}


def test_the_table_reads_as_recorded() -> None:
    rows = [_made_up("astraea", 11.0), _made_up("fifo", 0.37), _made_up("gavel-ftf", 2000.0)]
    text = "\n".join(lines_of(rows)) + "\n"
    recorded.same(GOLDEN / "table.txt", text)


def test_every_metric_of_the_summary_has_its_row() -> None:
    shown = {metric.key for metric in metrics()} | {"decision_max_s", "wall_s"}
    assert [key for key in PROMISED if key not in shown] == []
    assert sum(len(group) for _, group in GROUPS) == len({metric.title for metric in metrics()})


def test_many_policies_follow_below_each_other_within_the_width() -> None:
    rows = [_made_up(f"policy-{number}", 50.0 + number) for number in range(19)]
    lines = list(lines_of(rows, 100))
    assert max(map(len, lines)) <= 100
    assert next(line.split()[0] for line in lines if "policy-" in line) == "policy-0"
    assert sum(line.count("policy-") for line in lines) == 19


def test_the_best_is_marked_only_where_policies_differ() -> None:
    low, high = _made_up("low", 1.0), _made_up("high", 3.0)
    lines = {line[:24].strip(): line for line in lines_of([low, high])}
    assert lines["makespan"].rstrip().endswith("00:00:03")
    assert lines["makespan"].count(BEST) == 1
    assert lines["utilisation"].rstrip().endswith(BEST)
    assert BEST not in lines["jobs completed"] + lines["placement score"] + lines["CPU"]
    assert BEST not in "".join(lines_of([low]))


def test_what_is_not_known_is_a_dash() -> None:
    row = _made_up("fifo", 1.0) | {"jct_mean_s": None, "ftf_sia_worst": math.inf}
    lines = {line[:24].strip(): line.split()[-1] for line in lines_of([row])}
    assert (lines["JCT, mean"], lines["worst FTF, sia"], lines["JCT, median"]) == ("-", "-", "00:00:03")


def test_the_table_goes_through_pipes_plain_and_says_what_was_simulated(tmp_path: Path) -> None:
    said = simulated(made(tmp_path), "--policy", "astraea,fifo", "--restart-cost", "20")
    assert (said.code, said.err, "\x1b" in said.out) == (0, "", False)
    first = said.out.splitlines()
    assert first[0].startswith("trace.csv: 40 jobs of 4 tenants, ")
    assert first[0].endswith("16 GPUs on 2 nodes")
    assert first[1] == "a restart costs 20 s"
    assert first[-2] == "* best of these policies"
    assert first[-1].startswith("note: 40 jobs without declared_s: policies were told the true run time")


def test_policies_are_told_the_speeds_that_were_measured(tmp_path: Path) -> None:
    """The model is slower with more GPUs, so hops keeps one, though the cluster is idle."""
    speeds = tmp_path / "speeds.csv"
    rows = [f"s,v100,consolidated,m,8,{gpus},{rate}" for gpus, rate in ((1, 1), (2, 0.8), (4, 0.5))]
    speeds.write_text("\n".join(["source,gpu_type,placement,model,batch_size,gpus,steps_per_s", *rows, ""]))
    machines = tmp_path / "cluster.toml"
    machines.write_text('[[nodes]]\nname = "n1"\ngpus = 8\ntype = "v100"\n')
    header = "job_id,tenant,submit_s,gpus,duration_s,gpus_choices,model,batch_size"
    trace = written(tmp_path, "a,x,0,1,600,1|2|4,m,8", "b,x,0,1,700,1|2|4,m,8", header=header)
    argv = ["simulate", str(trace), "--cluster", str(machines), "--throughputs", str(speeds), "--json"]
    for policy in ("hops", "sia", "pollux"):
        said = call(*argv, "--policy", policy)
        assert (said.code, said.err) == (0, "")
        assert json.loads(said.out)["results"][0]["makespan_s"] == pytest.approx(700.0, abs=20)


@pytest.mark.parametrize("exponent", ["nan", "1.5", "x"])
def test_an_exponent_that_cannot_be_is_refused(exponent: str, tmp_path: Path) -> None:
    said = call(
        "simulate", str(written(tmp_path, "a,x,0,1,50")), "--gpus", "8", "--elastic-exponent", exponent
    )
    assert said.code == 2
    assert "--elastic-exponent" in said.err
