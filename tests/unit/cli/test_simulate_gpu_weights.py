"""`--gpu-weights`: what a simulation, its files and reports of them say where GPUs count by their type."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import call
from tests.support.simulations import TIMINGS, written

HEADER = "job_id,tenant,submit_s,gpus,duration_s,gpu_type"
CLUSTER = """\
[[nodes]]
name = "f1"
gpus = 4
type = "fast"
[[nodes]]
name = "s1"
gpus = 4
type = "slow"
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """Two tenants, each with a type of its own for two hours."""
    cluster = tmp_path / "c.toml"
    cluster.write_text(CLUSTER)
    trace = written(tmp_path, "1,a,0,4,7200,fast", "2,b,0,4,7200,slow", header=HEADER)
    return str(trace), str(cluster)


def told(files: tuple[str, str], *options: str) -> dict[str, Any]:
    trace, cluster = files
    said = call("simulate", trace, "--cluster", cluster, "--json", *options)
    assert (said.code, said.err) == (0, "")
    document: dict[str, Any] = json.loads(said.out)
    return document


def figures(document: dict[str, Any]) -> dict[str, Any]:
    (result,) = document["results"]
    return {name: value for name, value in result.items() if name not in TIMINGS}


def test_gpu_time_held_and_use_are_not_weighed_and_envy_is(files: tuple[str, str]) -> None:
    plain, weighed = told(files), told(files, "--gpu-weights", "slow=0.5")
    assert "gpu_weights" not in plain["options"]
    assert weighed["options"]["gpu_weights"] == {"slow": 0.5}
    one, other = figures(plain), figures(weighed)
    assert other["gpu_seconds"] == one["gpu_seconds"] == 8 * 7200
    assert other["utilization"] == one["utilization"]
    assert one["largest_envy_gpu_seconds"] == pytest.approx(0.0, abs=1e-6)
    assert other["largest_envy_gpu_seconds"] == pytest.approx(4 * 7200 * 0.5)


def test_a_weight_of_one_is_no_weight(files: tuple[str, str]) -> None:
    assert figures(told(files)) == figures(told(files, "--gpu-weights", "slow=1,fast=1"))


def test_the_page_below_the_table_says_what_is_weighed(files: tuple[str, str]) -> None:
    trace, cluster = files
    said = call("simulate", trace, "--cluster", cluster, "--gpu-weights", "slow=0.5")
    assert "note: shares, rho and envy are by the weight of the GPUs: fast 1, slow 0.5" in said.out


def test_reports_of_its_events_are_by_weight_and_say_so(files: tuple[str, str], tmp_path: Path) -> None:
    events = tmp_path / "e.jsonl"
    result = figures(told(files, "--gpu-weights", "slow=0.5", "--events-out", str(events)))
    period = ("--from", str(events), "--start", "1970-01-01", "--json")
    tenants = json.loads(call("report", "tenants", *period).out)
    assert tenants["note"].endswith("GPU-hours are by weight: one is an hour of a GPU that counts 1")
    assert {row["tenant"]: row["had_gpu_seconds"] for row in tenants["rows"]} == pytest.approx(
        {"a": 4 * 7200, "b": 2 * 7200}
    )
    fairness = json.loads(call("report", "fairness", *period).out)["total"]
    for name in ("ltgf_job_loss_fraction", "ltgf_tenant_unfair_fraction", "jain_tenants"):
        assert fairness[name] == pytest.approx(result[name])
    usage = call("report", "usage", "--from", str(events), "--start", "1970-01-01").out
    assert "by weight" not in usage
    assert (
        sum(row["gpu_seconds"] for row in json.loads(call("report", "usage", *period).out)["rows"])
        == 8 * 7200
    )
    table = call("report", "tenants", "--from", str(events), "--start", "1970-01-01").out
    assert "Had(wGPUh)" in table
