"""Traces of Gavel and of Shockwave become traces of ours."""

from __future__ import annotations

from slurm_fair.trace.convert import convert
from slurm_fair.trace.write import columns_of
from tests.support.trace_samples import DATA, converted


def test_shockwave_jobs_have_mode_weight_and_the_run_time_that_was_declared() -> None:
    assert converted("shockwave") == [
        {"job_id": "1", "tenant": "job1", "submit_s": "0", "gpus": "4", "duration_s": "720", "model": "ResNet-18",
         "weight": "2.5", "mode": "", "batch_size": "32", "total_steps": "9000", "declared_s": "720"},
        {"job_id": "0", "tenant": "job0", "submit_s": "20", "gpus": "1", "duration_s": "1500", "model": "LM",
         "weight": "1", "mode": "gns", "batch_size": "10", "total_steps": "100", "declared_s": "1500"},
    ]  # fmt: skip


def test_gavel_jobs_have_the_run_time_that_throughputs_give_them() -> None:
    told = [(row["submit_s"], row["gpus"], row["duration_s"], row["model"]) for row in converted("gavel")]
    assert told == [("0", "2", "300", "ResNet-18"), ("29.5", "1", "200", "A3C")]


def test_gavel_jobs_without_throughputs_wait_for_the_simulation_to_give_them() -> None:
    trace = convert("gavel", DATA / "gavel.trace").trace
    assert columns_of(trace)["duration_s"] == ["", ""]
