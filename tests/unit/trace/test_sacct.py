"""Rows of sacct become a trace."""

from __future__ import annotations

from pathlib import Path

from slurm_fair.trace.convert import convert
from tests.support.trace_samples import DATA, converted


def test_sacct_rows_are_jobs_and_array_tasks_with_gpus_from_tres() -> None:
    assert converted("sacct") == [
        {"job_id": "101_1", "tenant": "chem", "submit_s": "0", "gpus": "1", "duration_s": "30", "user": "bob",
         "gpu_type": "", "status": "CANCELLED", "node_count": "1", "declared_s": ""},
        {"job_id": "100", "tenant": "phys", "submit_s": "1800", "gpus": "4", "duration_s": "3600", "user": "ann",
         "gpu_type": "a100", "status": "", "node_count": "1", "declared_s": "7200"},
        {"job_id": "104", "tenant": "chem", "submit_s": "12600", "gpus": "3", "duration_s": "600", "user": "eve",
         "gpu_type": "", "status": "FAILED", "node_count": "2", "declared_s": "3600"},
    ]  # fmt: skip


def test_sacct_rows_need_only_one_of_the_two_columns_with_gpus_and_with_lengths(tmp_path: Path) -> None:
    text = (DATA / "sacct.txt").read_text().replace("AllocTRES", "X").replace("ElapsedRaw", "Elapsed")
    for raw, told in (("|3600|", "|01:00:00|"), ("|30|", "|00:00:30|"), ("|0|", "|00:00:00|")):
        text = text.replace(raw, told)
    path = tmp_path / "sacct.txt"
    path.write_text(text.replace("|600|", "|1-00:10:00|").replace("|500|", "|00:08:20|"))
    trace = convert("sacct", path).trace
    assert (trace.gpus.tolist(), trace.duration_s.tolist()) == ([1, 4, 3], [30, 3600, 87000])
