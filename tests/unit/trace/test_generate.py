"""Made-up traces keep to the papers' classes, the wished arrivals and tenants."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from slurm_fair.errors import InputError
from slurm_fair.trace import WORKLOADS, Reading, TraceWish, describe, write_trace
from tests.support.trace_samples import made


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
