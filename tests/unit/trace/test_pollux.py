"""A workload of Pollux and the list of Sia become traces."""

from __future__ import annotations

from tests.support.trace_samples import converted


def test_a_workload_of_pollux_is_one_tenant_whose_run_times_are_open() -> None:
    assert converted("pollux") == [
        {"job_id": "0", "tenant": "workload-3", "submit_s": "0", "gpus": "4", "duration_s": "",
         "model": "cifar10", "batch_size": "512", "name": "cifar10-0"},
        {"job_id": "1", "tenant": "workload-3", "submit_s": "27.5", "gpus": "1", "duration_s": "",
         "model": "bert", "batch_size": "12", "name": "bert-1"},
    ]  # fmt: skip


def test_the_list_of_philly_jobs_is_told_by_virtual_cluster() -> None:
    assert converted("sia") == [
        {"job_id": "1", "tenant": "bb22", "submit_s": "0", "gpus": "8", "duration_s": "30"},
        {"job_id": "0", "tenant": "aa11", "submit_s": "3600", "gpus": "1", "duration_s": "66"},
    ]
