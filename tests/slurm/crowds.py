"""A full cluster with jobs that wait behind gates, and the state in which plain Slurm would have it."""

from __future__ import annotations

from tests.slurm.harness import Job, Site

ALL_GPUS = 24
USER = "games"


def crowd(site: Site, *waiting: int) -> tuple[Job, list[Job]]:
    """A job on every GPU, and jobs of these gangs that wait behind gates."""
    running = site.submit(ALL_GPUS, user=USER).runs()
    jobs = [site.submit(gpus, tenant="nlp", user=USER) for gpus in waiting]
    for job in jobs:
        job.waits()
    return running, jobs


def is_plain(site: Site, jobs: list[Job]) -> bool:
    """True if each runs, or waits as plain Slurm has it: no pin, no begin time ahead, no hold of ours."""
    rows = site.rows()
    found = [rows[job.label] for job in jobs]
    return all(row.state in ("RUNNING", "COMPLETING") or row.free for row in found)
