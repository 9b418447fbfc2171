"""Reports tell of what really happened as of a simulation of it: `replay --events-out` writes its events too."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from slurm_fair_accounting import REPORTS
from tests.support.command_line import call
from tests.support.pasts import run, saved
from tests.support.schemas import faults

ROOT = Path(__file__).parents[3]
EVENTS = json.loads((ROOT / "docs" / "schema" / "events.json").read_text())
OF_TENANTS = ("ltgf_tenant_unfair_fraction", "jain_tenants", "largest_envy_gpu_seconds")


def rows_of(seed: int) -> list[dict[str, str]]:
    """Some hours of three tenants: jobs that wait, are requeued, fail, still run, and ids that are used again."""
    dice = random.Random(seed)
    rows: list[dict[str, str]] = []
    for job in range(1, 41):
        at, tenant, gpus = dice.randrange(20_000), dice.choice("abc"), dice.choice((1, 2, 4))
        for left in range(dice.choice((0, 0, 1, 3)), -1, -1):
            start = at + dice.randrange(900)
            end = start + dice.randrange(1 if left else 30, 4000)
            last = dice.choice(("COMPLETED", "FAILED", "CANCELLED by 0", "RUNNING"))
            state = "REQUEUED" if left else last
            over = None if state == "RUNNING" else end
            rows.append(
                run(str(job), at, start, over, gpus, tenant, state, NodeList=f"n{dice.randrange(2) + 1}")
            )
            at = end
    again = [run("60", 0, 10, 900, tenant="c"), run("60", 40_000, 40_010, 41_000, tenant="b")]
    return [*rows, *again, run("50", 100, None, 900, state="CANCELLED by 0")]


def replayed(folder: Path, rows: list[dict[str, str]], *more: str) -> tuple[dict[str, Any], Path]:
    """The recorded result, and the file of its events."""
    file = saved(folder / "past.txt", rows)
    arguments = ("--sacct", str(file), "--gpus", "16", "--policy", "fifo", *more)
    said = call("replay", *arguments, "--json", "--events-out", str(folder / "events.jsonl"))
    assert said.code == 0
    assert all(line.startswith("warning: up to ") for line in said.err.splitlines())  # rows drawn at random
    recorded: dict[str, Any] = json.loads(said.out)["results"][0]
    assert recorded["policy"] == "recorded"
    return recorded, folder / "events.recorded.jsonl"


def report(name: str, path: Path, *more: str) -> dict[str, Any]:
    """A report on a file."""
    said = call("report", name, "--from", str(path), "--json", *more)
    found: dict[str, Any] = json.loads(said.out)
    note = "" if found["rows"] else "note: nothing in this period; "
    assert (said.code, said.err.partition("this file")[0]) == (0, note)
    return found


@pytest.mark.parametrize(
    "more",
    [(), ("--weights", "demand"), ("--failed", "drop"), ("--job-share", "max-min")],
    ids=["as it was", "weights", "without failed jobs", "max-min"],
)
@pytest.mark.parametrize("seed", range(3))
def test_the_report_on_the_recorded_events_says_what_the_column_says(
    seed: int, more: tuple[str, ...], tmp_path: Path
) -> None:
    recorded, path = replayed(tmp_path, rows_of(seed), *more)
    total = report("fairness", path)["total"]
    keys = [key for key in total if key in recorded and key.startswith(("ftf_", "latency_", "ltgf_"))]
    assert len(keys) > 12
    wanted = {key: recorded[key] for key in (*keys, *OF_TENANTS)}
    assert {key: total[key] for key in wanted} == pytest.approx(wanted, rel=1e-9)
    tenants = report("tenants", path)["rows"]
    assert {row["tenant"]: (row["had_gpu_seconds"], row["owed_gpu_seconds"]) for row in tenants} == {
        row["tenant"]: pytest.approx((row["had_gpu_seconds"], row["owed_gpu_seconds"]))
        for row in recorded["tenants"]
    }
    assert sum(row["preemptions"] for row in tenants) == recorded["preemptions"] > 0
    used = report("usage", path)["rows"]
    assert sum(row["gpu_seconds"] for row in used) == pytest.approx(recorded["gpu_seconds"])
    jobs = report("jobs", path)["rows"]
    assert len(jobs) == recorded["jobs_total"]
    assert sum(row["restarts"] for row in jobs) == recorded["restarts"]


def test_each_line_keeps_to_the_schema_and_they_are_in_order(tmp_path: Path) -> None:
    _, path = replayed(tmp_path, rows_of(1))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [fault for line in lines for fault in faults(line, EVENTS)] == []
    assert [line["time"] for line in lines] == sorted(line["time"] for line in lines)
    assert {line["kind"] for line in lines} == {
        "account", "capacity", "submitted", "started", "revoked", "stopped", "finished",
    }  # fmt: skip
    assert {node for line in lines if line["kind"] == "started" for node in line["nodes"]} == {"n1", "n2"}


def test_it_is_in_the_form_of_the_policies_beside_it(tmp_path: Path) -> None:
    _, path = replayed(tmp_path, rows_of(2))
    other = tmp_path / "events.fifo.jsonl"
    assert {each.name for each in tmp_path.iterdir()} == {"past.txt", path.name, other.name}
    for name in REPORTS:
        one, two = report(name, path), report(name, other)
        assert set(one) == set(two)
        assert (len(one["rows"]) > 0) is (name != "leases")  # what was recorded had none
    names = {row["tenant"] for row in report("fairness", path)["rows"]}
    assert names == {row["tenant"] for row in report("fairness", other)["rows"]} == {"a", "b", "c"}


def test_a_job_that_had_not_ended_is_told_to_run_and_one_of_a_used_id_lives_twice(tmp_path: Path) -> None:
    rows = [
        run("1", 0, 0, 100),
        run("1", 200, 200, 260),
        run("2", 0, 50, None, state="RUNNING"),
        run("3", 0, 10, 90, state="REQUEUED"),
        run("3", 90, None, None, state="PENDING"),
    ]
    recorded, path = replayed(tmp_path, rows)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    ends = [(line["name"], line.get("state", "")) for line in lines if line["kind"] == "finished"]
    good = [("1", "COMPLETED"), ("1~2", "COMPLETED")]
    assert sorted(ends) == [*good, ("2", "RUNNING"), ("3", "RUNNING")]
    assert [line["kind"] for line in lines if line.get("job") == "3"] == [
        "submitted",
        "started",
        "revoked",
        "stopped",
        "finished",
    ]
    found = report("jobs", path)["rows"]
    assert (len(found), recorded["jobs_completed"]) == (4, 2)


def test_how_jobs_ended_is_told_as_slurm_did_and_a_simulated_one_ends_alike(tmp_path: Path) -> None:
    words = {"1": "COMPLETED", "2": "FAILED", "3": "CANCELLED by 1000", "4": "TIMEOUT"}
    rows = [run(job, 0, 0, 100, state=word) for job, word in words.items()]
    recorded, path = replayed(tmp_path, rows)
    told = {row["job"]: row["state"] for row in report("jobs", path)["rows"]}
    assert told == {"1": "COMPLETED", "2": "FAILED", "3": "CANCELLED", "4": "TIMEOUT"}
    simulated = report("jobs", tmp_path / "events.fifo.jsonl")["rows"]
    assert sorted(row["state"] for row in simulated) == sorted(told.values())
    assert recorded["jobs_completed"] == 1
