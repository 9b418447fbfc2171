"""Helios' log of jobs becomes a trace."""

from __future__ import annotations

from tests.support.trace_samples import converted


def test_helios_jobs_are_told_by_virtual_cluster_and_user() -> None:
    assert converted("helios") == [
        {"job_id": "502", "tenant": "vcTwo", "submit_s": "0", "gpus": "16", "duration_s": "300", "user": "uBBBB",
         "status": "FAILED", "node_count": "2"},
        {"job_id": "501", "tenant": "vcOne", "submit_s": "60", "gpus": "1", "duration_s": "3600", "user": "uAAAA",
         "status": "", "node_count": "1"},
        {"job_id": "505", "tenant": "vcTwo", "submit_s": "240", "gpus": "8", "duration_s": "86400",
         "user": "uCCCC", "status": "TIMEOUT", "node_count": "1"},
    ]  # fmt: skip
