"""Philly's log of jobs becomes a trace."""

from __future__ import annotations

from tests.support.trace_samples import converted


def test_philly_jobs_have_the_time_of_all_attempts_and_the_gpus_of_the_last() -> None:
    assert converted("philly") == [
        {"job_id": "application_1_0002", "tenant": "bb22", "submit_s": "0", "gpus": "1", "duration_s": "30",
         "user": "u2", "status": "CANCELLED", "node_count": "1"},
        {"job_id": "application_1_0001", "tenant": "aa11", "submit_s": "1800", "gpus": "4", "duration_s": "3660",
         "user": "u1", "status": "", "node_count": "2"},
        {"job_id": "application_1_0006", "tenant": "bb22", "submit_s": "19800", "gpus": "1", "duration_s": "10",
         "user": "u2", "status": "FAILED", "node_count": "1"},
    ]  # fmt: skip
