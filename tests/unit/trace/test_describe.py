"""A trace described in numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from slurm_fair.trace import Reading, TraceWish, describe, read_trace
from tests.support.schemas import faults
from tests.support.trace_samples import made

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data" / "traces"
SCHEMA = json.loads((ROOT / "docs" / "schema" / "trace-describe.json").read_text())


def test_a_description_counts_jobs_sizes_tenants_and_ends() -> None:
    told = describe(read_trace(DATA / "trace.csv"), 4)
    assert (told.jobs, told.tenants, told.users, told.models) == (2, 2, 2, 1)
    assert (told.span_s, told.arrivals_per_hour, told.gpu_seconds) == (30.0, 120.0, 1230.125)
    assert (told.jobs_with_fractional_gpus, told.jobs_without_duration, told.max_gpus) == (1, 0, 2.0)
    assert (told.duration_min_s, told.duration_max_s) == (60.25, 600.0)
    assert told.load == 1230.125 / (4 * 30)
    assert told.statuses == {"COMPLETED": 1, "CANCELLED": 1}
    assert [(size.gpus, size.jobs, size.gpu_seconds) for size in told.sizes] == [
        (1, 1, 30.125),
        (2, 1, 1200.0),
    ]
    assert [(part.tenant, part.jobs) for part in told.per_tenant] == [("phys", 1), ("chem", 1)]
    assert told.per_tenant[0].share == 1200 / 1230.125


def test_what_cannot_be_said_is_null(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("job_id,tenant,submit_s,gpus,duration_s,model\na,x,5,1,,LM\n")
    told = describe(read_trace(tmp_path / "t.csv", need_durations=False), 8)
    assert (told.arrivals_per_hour, told.load, told.duration_p50_s) == (None, None, None)
    assert (told.jobs_without_duration, told.gpu_seconds, told.per_tenant[0].share) == (1, 0.0, 0.0)


def test_shares_and_sizes_add_up_to_the_whole() -> None:
    told = describe(Reading(made(TraceWish(jobs=300))))
    assert sum(part.share for part in told.per_tenant) == pytest.approx(1)
    assert sum(part.jobs for part in told.per_tenant) == sum(size.jobs for size in told.sizes) == 300
    assert sum(size.gpu_seconds for size in told.sizes) == pytest.approx(told.gpu_seconds)


@pytest.mark.parametrize("gpus", [None, 32.0])
def test_the_document_keeps_to_its_schema(gpus: float | None) -> None:
    document = {"trace": "t.csv", **describe(Reading(made(TraceWish(jobs=50))), gpus).document()}
    assert faults(json.loads(json.dumps(document)), SCHEMA) == []
