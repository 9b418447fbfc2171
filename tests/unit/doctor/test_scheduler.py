"""Findings about the settings of Slurm's own scheduler."""

from __future__ import annotations

import pytest

from slurm_fair.config.lease import LeaseSection
from slurm_fair.config.sections import Config
from slurm_fair.doctor import Level, scheduler
from tests.support.site_facts import ERROR, OK, WARNING, facts, worst

QUICK = LeaseSection(term=60, interval=5, grace=10)


@pytest.mark.parametrize(
    ("lease", "parameters", "level"),
    [
        (LeaseSection(), "(null)", OK),
        (LeaseSection(), "sched_interval=1", OK),
        (LeaseSection(), "defer", WARNING),
        (LeaseSection(), "sched_interval=600,bf_interval=600", WARNING),
        (LeaseSection(start_timeout=900), "sched_interval=-1,bf_interval=300", WARNING),
        (LeaseSection(), "sched_interval=1800,bf_interval=900", ERROR),
        (QUICK, "(null)", WARNING),
        (QUICK, "sched_interval=2,bf_interval=30", OK),
    ],
)
def test_how_late_slurm_may_start_a_job(lease: LeaseSection, parameters: str, level: Level) -> None:
    assert (
        scheduler.start_delay(facts({"SchedulerParameters": parameters}, Config(lease=lease))).level is level
    )


@pytest.mark.parametrize(
    ("slurm", "level", "words"),
    [
        ({}, OK, "preempts nobody"),
        ({"JobRequeue": "0"}, WARNING, "JobRequeue=0"),
        ({"PreemptType": "preempt/qos", "PreemptMode": "REQUEUE"}, WARNING, "preempt/qos"),
        ({"PreemptMode": "GANG,SUSPEND"}, ERROR, "GANG"),
        ({"PriorityFlags": "ACCRUE_ALWAYS"}, OK, "gather age"),
        ({"SelectType": "select/linear"}, ERROR, "select/linear"),
        ({"AccountingStorageTRES": "cpu,mem"}, ERROR, "does not count GPUs"),
        ({"AccountingStorageEnforce": "(null)"}, WARNING, "any tenant's name"),
        ({"MinJobAge": "5 sec"}, WARNING, "MinJobAge"),
    ],
)
def test_slurms_settings(slurm: dict[str, str], level: Level, words: str) -> None:
    found = list(scheduler.findings(facts(slurm)))
    assert worst(found) is level
    assert any(words in f.what for f in found)
