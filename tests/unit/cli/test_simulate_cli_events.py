"""Events of a simulation are those of a journal: every report reads them and says what the simulation says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from slurm_fair.ledger.metrics.evenness import jain
from slurm_fair.ledger.metrics.windows import edges_of, windows_of_moments
from slurm_fair.ledger.outcomes.outcomes import outcomes_of
from slurm_fair_accounting import read_events
from tests.support.command_line import call
from tests.support.schemas import faults
from tests.support.simulations import COSTS, HEADER, jobs_of, made, only, written

ROOT = Path(__file__).parents[3]
EVENTS = json.loads((ROOT / "docs" / "schema" / "events.json").read_text())
Told = tuple[dict[str, Any], Path, Path]


def report(name: str, events: Path, *arguments: str) -> list[dict[str, Any]]:
    """The rows of a report on a file of events."""
    said = call("report", name, "--from", str(events), "--json", *arguments)
    assert (said.code, said.err) == (0, "")
    rows: list[dict[str, Any]] = json.loads(said.out)["rows"]
    return rows


@pytest.fixture(scope="module")
def told_run(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """A run with everything in it: result, events, jobs."""
    folder = tmp_path_factory.mktemp("told")
    events, jobs = folder / "events.jsonl", folder / "jobs.csv"
    found = only(made(folder), *COSTS, "--events-out", str(events), "--jobs-out", str(jobs))
    return found, events, jobs


def test_every_line_keeps_to_the_schema_and_time_goes_on(told_run: Told) -> None:
    _, events, _ = told_run
    lines = [json.loads(line) for line in events.read_text().splitlines()]
    assert [fault for line in lines for fault in faults(line, EVENTS)] == []
    times = [line["time"] for line in lines]
    assert times == sorted(times)
    assert {line["kind"] for line in lines} >= {"submitted", "granted", "renewed", "revoked", "account"}


def test_jobs_go_by_their_place_in_the_trace_and_keep_their_name(told_run: Told) -> None:
    _, events, jobs = told_run
    lines = [json.loads(line) for line in events.read_text().splitlines()]
    names = {line["job"]: line["name"] for line in lines if line["kind"] == "finished"}
    assert names == {str(at): row["job_id"] for at, row in enumerate(jobs_of(jobs), start=1)}


def test_the_report_on_tenants_agrees_with_the_result(told_run: Told) -> None:
    found, events, _ = told_run
    rows = report("tenants", events)
    assert len(rows) == 4
    for row, account in zip(rows, found["tenants"], strict=True):
        assert row["tenant"] == account["tenant"]
        assert row["had_gpu_seconds"] == pytest.approx(account["had_gpu_seconds"])
        assert row["owed_gpu_seconds"] == pytest.approx(account["owed_gpu_seconds"])
    assert sum(row["jobs"] for row in rows) == found["jobs_total"]
    assert sum(row["preemptions"] for row in rows) == found["preemptions"] > 0
    assert jain(np.array([row["rho"] for row in rows])) == pytest.approx(found["jain_tenants"])


def test_the_report_on_jobs_agrees_with_the_rows_of_jobs(told_run: Told) -> None:
    found, events, jobs = told_run
    rows = {row["job"]: row for row in report("jobs", events)}
    for at, job in enumerate(jobs_of(jobs), start=1):
        row = rows[str(at)]
        assert row["rho"] == pytest.approx(float(job["rho_ltgf"]))
        assert row["run_seconds"] == pytest.approx(float(job["run_s"]), abs=1e-3)
        assert row["wait_seconds"] == pytest.approx(float(job["wait_s"]), abs=1e-3)
        assert row["end"] - row["submit"] == pytest.approx(
            float(job["end_s"]) - float(job["submit_s"]), abs=1e-3
        )
    assert sum(row["restarts"] for row in rows.values()) == found["restarts"]


def test_the_reports_on_usage_waits_and_leases_agree_with_the_result(told_run: Told) -> None:
    found, events, jobs = told_run
    assert sum(row["gpu_seconds"] for row in report("usage", events)) == pytest.approx(found["gpu_seconds"])
    waits = report("waits", events)
    mean = sum(row["wait_mean_seconds"] * row["jobs"] for row in waits) / sum(row["jobs"] for row in waits)
    assert mean == pytest.approx(found["wait_mean_s"])
    leases = report("leases", events)
    assert sum(row["ended_by"] == "revoked" for row in leases) == found["preemptions"]
    last = {row["job"]: row["nodes"] for row in leases}
    assert {job: nodes.split(",") for job, nodes in last.items()} == {
        str(at): row["nodes"].split() for at, row in enumerate(jobs_of(jobs), start=1)
    }


@pytest.mark.usefixtures("utc")
def test_a_part_of_the_time_and_one_tenant_can_be_asked_for(told_run: Told) -> None:
    _, events, _ = told_run
    rows = report("tenants", events, "-S", "1997-05-19T01:00", "-E", "1997-05-19T03:00")
    assert 0 < sum(row["had_gpu_seconds"] for row in rows) <= 2 * 3600 * 16
    assert len(report("jobs", events, "--tenant", rows[0]["tenant"])) == len(
        [row for row in report("jobs", events) if row["tenant"] == rows[0]["tenant"]]
    )


def test_accounts_stand_at_the_beginning_each_full_hour_and_the_end(told_run: Told) -> None:
    _, events, _ = told_run
    source = read_events(events)
    moments = list(source.moments(-np.inf, np.inf))
    times = sorted({moment.time for moment in moments})
    began, ended = source.began(), source.ended()
    assert began is not None
    assert ended is not None
    assert (times[0], times[-1]) == (began, ended)
    hours = {int((time - began) // 3600) for time in times}
    assert hours == set(range(int((ended - began) // 3600) + 1))
    _, windows = windows_of_moments(moments, edges_of(began, ended), 1200.0)
    assert windows.had.sum() > 0


def test_outcomes_of_the_file_are_those_of_the_simulation(told_run: Told) -> None:
    found, events, _ = told_run
    outcomes, runs = outcomes_of(read_events(events).events())
    assert (len(outcomes), int(outcomes.preemptions.sum())) == (found["jobs_total"], found["preemptions"])
    assert float(((runs.end - runs.start) * runs.gpus).sum()) == pytest.approx(found["gpu_seconds"])


def test_events_of_gavels_rounds_are_in_order_though_ends_are_told_late(tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    found = only(
        made(tmp_path),
        "--rounds",
        "gavel",
        "--lease",
        "120",
        "--restart-cost",
        "20",
        "--events-out",
        str(events),
    )
    times = [json.loads(line)["time"] for line in events.read_text().splitlines()]
    assert times == sorted(times)
    assert sum(row["jobs"] for row in report("tenants", events)) == found["jobs_total"]


@pytest.mark.parametrize("more", [(), ("--until", "5000")])
def test_a_lease_without_a_term_has_no_end_and_a_report_ends_where_the_run_ended(
    tmp_path: Path, more: tuple[str, ...]
) -> None:
    path = tmp_path / "events.jsonl"
    only(made(tmp_path), "--policy", "fifo", "--events-out", str(path), *more)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    granted = [line for line in lines if line["kind"] == "granted"]
    assert granted
    assert {line["until"] for line in granted} == {None}
    assert [fault for line in granted for fault in faults(line, EVENTS)] == []
    said = call("report", "tenants", "--from", str(path), "--json")
    period = json.loads(said.out)["period"]
    assert period["start"] == lines[0]["time"]
    assert period["end"] == pytest.approx(max(line["time"] for line in lines), abs=1.0)
    if more:
        assert period["end"] - period["start"] == pytest.approx(5000.0, abs=1.0)


@pytest.mark.parametrize("until", ["7205", "50"])
def test_usage_of_jobs_that_still_run_counts_to_the_last_instant(tmp_path: Path, until: str) -> None:
    """The last full hour, or the beginning, is so near to the end that the instants must be told apart."""
    path, trace = tmp_path / "events.jsonl", written(tmp_path, "a,x,0,4,50000", "b,y,10,4,50000")
    options = ("--policy", "astraea", "--lease", "3600", "--until", until)
    found = only(trace, *options, "--events-out", str(path))
    assert found["gpu_seconds"] == 8 * float(until) - 40
    assert sum(row["gpu_seconds"] for row in report("usage", path)) == found["gpu_seconds"]


def test_an_app_of_which_a_job_still_lives_is_one_app_in_reports(tmp_path: Path) -> None:
    path, header = tmp_path / "events.jsonl", f"{HEADER},app"
    trace = written(tmp_path, "a,x,0,8,100,A", "b,x,0,8,5000,A", "c,y,0,8,100,", header=header)
    found = only(trace, "--lease", "600", "--until", "2000", "--events-out", str(path))
    of_app, alone = (row["ftf_themis_worst"] for row in report("fairness", path))
    assert (of_app, alone) == (None, found["ftf_themis_worst"])
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    apps = {line["name"]: line.get("app") for line in lines if line["kind"] == "submitted"}
    assert apps == {"a": "A", "b": "A", "c": None}
    assert [fault for line in lines for fault in faults(line, EVENTS)] == []


def test_events_of_jobs_that_end_at_once_can_be_reported_on(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    only(written(tmp_path, "a,x,0,1,1e-9", "b,x,0,1,1e-9"), "--events-out", str(path))
    assert len(report("jobs", path)) == 2


def test_reports_count_no_pre_emption_where_a_node_failed_while_the_job_saved(tmp_path: Path) -> None:
    """Saving takes so long, and nodes fail so often, that some fail in between."""
    rows = [f"{900 * at + 120 + 10 * (at % 7)},n{1 + at % 2},down" for at in range(1, 40)]
    rows += [f"{900 * at + 420},n{1 + at % 2},up" for at in range(1, 40)]
    outages = tmp_path / "outages.csv"
    outages.write_text("\n".join(["time_s,node,event", *rows]) + "\n")
    path, trace = tmp_path / "events.jsonl", made(tmp_path)
    options = ("--policy", "astraea", "--checkpoint-cost", "200", "--outages", str(outages), "--lease", "900")
    found = only(trace, *options, "--events-out", str(path))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [fault for line in lines for fault in faults(line, EVENTS)] == []
    lost = [line for line in lines if line["kind"] == "stopped" and line.get("state") == "NODE_FAIL"]
    requeued = [line for line in lines if line["kind"] == "requeued"]
    revoked = [line for line in lines if line["kind"] == "revoked"]
    assert lost
    assert len(revoked) > len(requeued) == found["preemptions"] > 0
    assert found["restarts"] == len(lost) + len(requeued)
    assert sum(row["preemptions"] for row in report("tenants", path)) == found["preemptions"]
    assert sum(row["ended_by"] == "revoked" for row in report("leases", path)) == found["preemptions"]
    assert sum(row["gpu_seconds"] for row in report("usage", path)) == pytest.approx(found["gpu_seconds"])
    had = sum(row["had_gpu_seconds"] for row in report("tenants", path))
    assert had == pytest.approx(found["gpu_seconds"])


def test_weights_as_far_apart_as_they_may_be_are_simulated_and_reported(tmp_path: Path) -> None:
    trace = written(tmp_path, "a,x,0,16,900", "b,y,0,16,900", "c,x,0,16,1000")
    weights, events = tmp_path / "weights.csv", tmp_path / "events.jsonl"
    weights.write_text("name,share\nx,1e-12\ny,1e12\n")
    found = only(trace, "--weights", str(weights), "--events-out", str(events))
    assert found["jobs_completed"] == 3
    assert len(report("tenants", events)) == 2
    assert len(report("fairness", events)) >= 2


def test_shares_that_are_too_small_are_refused_where_they_stand(tmp_path: Path) -> None:
    trace, weights = written(tmp_path, "a,x,0,4,900", "b,y,0,4,900"), tmp_path / "weights.csv"
    weights.write_text("name,share\nx,1e-300\ny,1\n")
    said = call("simulate", str(trace), "--gpus", "4", "--weights", str(weights))
    assert (said.code, said.out) == (2, "")
    assert "weights.csv:2: share: '1e-300' is too small: give a number from 1e-12" in said.complaint
