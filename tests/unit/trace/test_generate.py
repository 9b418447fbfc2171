"""Made-up traces keep to the papers' classes, the wished arrivals and tenants; a description adds up."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from slurm_fair.errors import InputError
from slurm_fair.trace import WORKLOADS, Reading, Trace, TraceWish, describe, generate, read_trace, write_trace
from tests.support.schemas import faults

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data" / "traces"
SCHEMA = json.loads((ROOT / "docs" / "schema" / "trace-describe.json").read_text())


def made(wish: TraceWish, seed: int = 1) -> Trace:
    return generate(wish, np.random.default_rng(seed))


@pytest.mark.parametrize("name", sorted(WORKLOADS))
def test_job_sizes_fall_into_the_classes_as_often_as_the_paper_says(name: str) -> None:
    trace = made(TraceWish(jobs=20_000, workload=WORKLOADS[name]))
    hours = trace.gpu_seconds / 3600
    for group in WORKLOADS[name].classes:
        inside = trace.further["size_class"] == group.name
        # Four standard deviations of a share among 20,000.
        room = 4 * math.sqrt(group.part * (1 - group.part) / len(trace))
        assert inside.mean() == pytest.approx(group.part, abs=room)
        assert hours[inside].min() >= group.least_gpu_hours * 0.999
        assert hours[inside].max() <= group.most_gpu_hours * 1.001


def test_jobs_of_shockwave_run_between_12_minutes_and_5_hours_where_8_gpus_allow_that() -> None:
    trace = made(TraceWish(jobs=5_000))
    assert set(trace.gpus.tolist()) == {1, 2, 4, 8}
    assert trace.duration_s.min() >= 0.2 * 3600 * 0.999
    longer = trace.duration_s > 5 * 3600 * 1.001
    assert bool((trace.gpus[longer] == 8).all())
    assert bool((trace.gpu_seconds[longer] > 8 * 5 * 3600).all())


def test_jobs_of_hops_name_up_to_8_numbers_of_gpus_and_ask_for_their_median() -> None:
    trace = made(TraceWish(jobs=2_000, workload=WORKLOADS["hops"]))
    counts = set()
    for gpus, code in zip(trace.gpus.tolist(), trace.choice_set.tolist(), strict=True):
        sizes = trace.choice_sets[code] if code >= 0 else (int(gpus),)
        counts.add(len(sizes))
        assert set(sizes) <= set(range(1, 17))
        assert sizes[(len(sizes) - 1) // 2] == gpus
    largest = np.array(
        [
            max(trace.choice_sets[c]) if c >= 0 else g
            for c, g in zip(trace.choice_set.tolist(), trace.gpus.tolist(), strict=True)
        ]
    )
    assert (trace.gpu_seconds / largest).max() <= 10 * 3600 * 1.001
    assert counts == set(range(1, 9))


def test_arrivals_are_a_poisson_process_of_the_wished_rate() -> None:
    waits = np.diff(made(TraceWish(jobs=20_000, rate_per_hour=120)).submit_s)
    assert waits.mean() == pytest.approx(30, rel=0.03)
    assert waits.std() == pytest.approx(30, rel=0.05)  # exponential: as much spread as mean
    assert (waits > 30).mean() == pytest.approx(math.exp(-1), abs=0.02)


@pytest.mark.parametrize("load", [0.5, 2.0])
def test_arrivals_put_the_wished_load_on_so_many_gpus(load: float) -> None:
    trace = made(TraceWish(jobs=5_000, load=load, gpus=64))
    told = describe(Reading(trace), 64)
    assert told.load == pytest.approx(load, rel=0.06)


def test_tenants_have_uneven_appetites_after_zipf() -> None:
    trace = made(TraceWish(jobs=30_000, tenants=4, zipf=1.0))
    parts = np.bincount(trace.tenant) / len(trace)
    whole = 1 + 1 / 2 + 1 / 3 + 1 / 4
    assert trace.tenants == ("t1", "t2", "t3", "t4")
    assert parts.tolist() == pytest.approx(
        [1 / whole, 1 / 2 / whole, 1 / 3 / whole, 1 / 4 / whole], abs=0.012
    )


def test_without_zipf_tenants_are_alike() -> None:
    trace = made(TraceWish(jobs=30_000, tenants=12, zipf=0))
    assert trace.tenants[0] == "t01"
    assert (np.bincount(trace.tenant) / len(trace)).tolist() == pytest.approx([1 / 12] * 12, abs=0.008)


@pytest.mark.parametrize("name", sorted(WORKLOADS))
def test_the_same_dice_make_the_same_bytes_and_others_do_not(tmp_path: Path, name: str) -> None:
    for file, seed in (("a", 3), ("b", 3), ("c", 4)):
        write_trace(made(TraceWish(jobs=200, workload=WORKLOADS[name]), seed), tmp_path / f"{file}.csv.gz")
    one, again, other = ((tmp_path / f"{file}.csv.gz").read_bytes() for file in "abc")
    assert one == again
    assert one != other


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({"jobs": 0}, "jobs and tenants"),
        ({"jobs": 10**9}, "jobs and tenants"),
        ({"tenants": 0}, "jobs and tenants"),
        ({"gpus": 0}, "gpus must be above 0"),
        ({"zipf": -1.0}, "zipf 0 to 100"),
        ({"zipf": math.nan}, "zipf 0 to 100"),
        ({"load": 0.0}, "load must be a number from 1e-6 to 1e9"),
        ({"rate_per_hour": 1e300}, r"rate must be a number from 1e-6 to 1e9, not 1e\+300"),
        ({"rate_per_hour": math.nan}, "rate must be"),
        ({"rate_per_hour": 1.0, "load": 1.0}, "cannot both be given"),
    ],
)
def test_a_wish_that_cannot_be_met_is_refused(wish: dict[str, float], words: str) -> None:
    with pytest.raises(InputError, match=words):
        TraceWish(**wish)  # type: ignore[arg-type]


def test_one_job_is_a_trace_too() -> None:
    trace = made(TraceWish(jobs=1))
    assert (len(trace), trace.submit_s.tolist()) == (1, [0.0])


# What a trace holds


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
