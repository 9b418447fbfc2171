"""`slurm-fair replay` and `tune-lease --history` over slurmdbd: what was recorded is what sacct itself says."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from typing import Any

import pytest

from slurm_fair.lab import available
from tests.slurm.harness import Job, Site, wait_until

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(available(database=True) is not None, reason=str(available(database=True))),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may act as another user"),
]
PERIOD = ("--start", "now-1hours")


def told(site: Site, *words: str) -> dict[str, Any]:
    """The output of --json; the period ends a moment after now, so that the last second is in it."""
    found: dict[str, Any] = json.loads(site.cli(*words, *PERIOD, "--json", timeout=120).stdout)
    return found


def rows_of_sacct(site: Site) -> list[list[str]]:
    """Id, submission, start, end and state of every run that sacct lists, requeued ones too."""
    argv = (
        "env",
        "SLURM_TIME_FORMAT=%s",
        "sacct",
        "-n",
        "-P",
        "-X",
        "-D",
        "-a",
        "-r",
        "gpu",
        "-S",
        "now-1hours",
    )
    out = site.lab.run(*argv, "-o", "JobID,Submit,Start,End,State").stdout
    return [line.split("|") for line in out.splitlines()]


def lives(rows: list[list[str]]) -> dict[str, tuple[int, int, int]]:
    """First submission, last end and total run time of every job that ran and ended, by sacct's own numbers."""
    found: dict[str, tuple[int, int, int]] = {}
    for job, submit, start, end, _ in sorted(rows, key=lambda row: (row[0], int(row[1]))):
        if not (start.isdigit() and end.isdigit()):
            continue
        first, _, ran = found.get(job, (int(submit), 0, 0))
        found[job] = (first, int(end), ran + int(end) - int(start))
    return {job: life for job, life in found.items() if life[2] > 0}


def started_before_submission(site: Site) -> list[str]:
    """Jobs of which a run began before its own submission; a requeued one must be among the rows."""
    rows = rows_of_sacct(site)
    assert "REQUEUED" in {state for *_, state in rows}
    return [job for job, submit, start, *_ in rows if start.isdigit() and int(start) < int(submit)]


def settled(site: Site, *jobs: Job) -> None:
    """Wait until slurmdbd knows the end of each job."""

    def known() -> bool:
        ended = {row[0] for row in rows_of_sacct(site) if row[4] == "COMPLETED" and row[3].isdigit()}
        return ended >= {job.label for job in jobs}

    wait_until(known, 30, "slurmdbd knows the ends")


def test_what_was_recorded_has_the_numbers_of_sacct(new_site: Callable[..., Site]) -> None:
    site = new_site()
    jobs = [
        site.submit(8, "-w", "n1", steps=40, pause=0.3, gated=False),
        site.submit(4, "-w", "n2", steps=6, pause=0.3, gated=False, tenant="nlp"),
        site.submit(8, "-w", "n1", steps=6, pause=0.3, gated=False, tenant="speech"),
    ]
    jobs[1].runs()
    time.sleep(2)  # Slurm counts whole seconds, and a run of none costs nothing
    jobs[1].scontrol("requeue")
    waiting = site.submit(8, "-w", "n1", stamped=False, gated=False)
    wait_until(lambda: waiting.now().reason in ("Resources", "Priority"), 20, "it waits")
    waiting.cancel()
    wait_until(lambda: jobs[1].now().state == "PENDING", 20, "the job is back in the queue")
    jobs[1].update("StartTime=now+5")  # a job that starts again in the second of its requeue is lost
    for job in jobs:
        job.ends()
    settled(site, *jobs)
    sure = lives(rows_of_sacct(site))
    assert set(sure) >= {job.label for job in jobs}
    assert started_before_submission(site) == []  # such files are refused
    found = told(site, "replay", "--policy", "astraea,fifo")
    recorded, astraea, fifo = found["results"]
    assert (recorded["policy"], found["source"]["kind"]) == ("recorded", "slurmdbd")
    assert recorded["jobs_total"] == len(sure)
    jct = [end - submit for submit, end, _ in sure.values()]
    assert recorded["jct_mean_s"] == pytest.approx(sum(jct) / len(jct))
    first, last = min(life[0] for life in sure.values()), max(life[1] for life in sure.values())
    assert recorded["makespan_s"] == last - first
    assert recorded["restarts"] == 1
    assert recorded["decision_p50_s"] is None
    assert waiting.label in found["source"]["never_ran"]
    assert astraea["jobs_completed"] == fifo["jobs_completed"] == recorded["jobs_total"]
    # The managed nodes of the cluster as they are, and Slurm's shares (1, 1 and 2 of 4).
    assert (found["cluster"]["nodes"], found["cluster"]["gpus"], found["options"]["weights"]) == (
        3,
        24,
        "shares",
    )
    nothing = [word for name in ("checkpoint", "start", "restart") for word in (f"--{name}-cost", "0")]
    assert told(site, "replay", *nothing)["trace"]["gpu_seconds"] == recorded["gpu_seconds"]
    assert found["trace"]["gpu_seconds"] < recorded["gpu_seconds"], "the run that was requeued only saved"


def test_the_costs_of_a_site_come_out_of_its_journal(new_site: Callable[..., Site]) -> None:
    """Four jobs take turns on one node: each lease's end asks one to save and lets another one through."""
    site = new_site(lease={"term": 4, "interval": 1, "grace": 3})
    site.start()
    jobs = [site.submit(8, "-w", "n1", tenant=tenant) for tenant in ("vision", "nlp", "speech")]
    wait_until(lambda: len(site.events("requeued")) >= 5, 90, "the jobs take turns")
    wait_until(
        lambda: sum(e.detail["restarts"] > 0 for e in site.events("started")) >= 3, 60, "they come back"
    )
    site.stop()
    for job in jobs:
        job.cancel()
    wait_until(
        lambda: all(job.state not in ("RUNNING", "COMPLETING") for job in jobs), 30, "the jobs are gone"
    )
    found = told(site, "tune-lease", "--history", "--terms", "60,600")
    costs = found["options"]["costs"]
    assert costs["checkpoint_from"] == "measured"
    assert 0 <= costs["checkpoint_s"] <= 4  # a job that counts saves at once, and is asked at a look
    assert costs["start_from"] == "measured"
    assert 0 <= costs["start_s"] <= 5  # what Slurm takes to start it
    assert (costs["restart_s"], costs["restart_from"]) == (35, "assumed")  # the time to load
    assert [row["lease_s"] for row in found["terms"]] == [60.0, 600.0]
    assert found["recommended"]["lease_s"] in (60.0, 600.0)
    words = site.cli("tune-lease", "--history", "--terms", "60,600", *PERIOD, timeout=120).stdout
    assert "measured: median of" in words
    assert "Recommended: " in words
    replayed = told(site, "replay", "--lease", "30", "--weights", "equal")["options"]["costs"]
    assert (replayed["start_from"], replayed["restart_s"]) == ("measured", 0), "loading counts as work"
