"""A policy that solves, on a real Slurm: its process is stopped, killed and left alone, and jobs change places."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurm_fair.lab import Lab, LabSpec, available
from tests.slurm.harness import Site, wait_until
from tests.support.planning import comes_true, lives

pytestmark = pytest.mark.slurm
POLICY = '[policy]\nname = "gavel"\nplan_limit = 3\n'
LEASE = {"term": 6.0, "interval": 1, "grace": 3.0, "align": "aligned"}


@pytest.fixture(scope="module")
def one_node() -> Iterator[Lab]:
    """A node of four GPUs."""
    if (reason := available()) is not None:
        pytest.skip(reason)
    with Lab(spec=LabSpec(nodes=1, gpus_per_node=4)) as lab:
        yield lab


@pytest.fixture
def site(one_node: Lab) -> Iterator[Site]:
    made = Site(one_node, lease=LEASE, extra=POLICY)
    try:
        yield made.start()
    finally:
        made.close()


def planning(site: Site) -> int:
    """The planning process of the site's daemon; 0 = there is none."""
    assert site.process is not None
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and lives(int(entry.name)):
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"slurm_fair.planner" in words and str(site.process.pid).encode() in words:
                return int(entry.name)
    return 0


def test_jobs_change_places_while_the_process_is_stopped_and_killed(site: Site) -> None:
    jobs = [site.submit(4, tenant=tenant) for tenant in ("vision", "nlp")]
    wait_until(lambda: any(job.now().state == "RUNNING" for job in jobs), 30, "a job runs")
    first = planning(site)
    assert first
    os.kill(first, signal.SIGSTOP)
    wait_until(lambda: planning(site) not in (0, first), 30, "one that does not answer is replaced")
    os.kill(planning(site), signal.SIGKILL)
    wait_until(lambda: all(job.starts() for job in jobs), 60, "both have had a turn")
    plans = json.loads(site.cli("status", "--json").stdout)["plans"]
    assert 0 < plans["failed"] < plans["made"]
    assert "the plan was not there after 3" in plans["why"] or "the planning process" in plans["why"]
    assert "plans since" in site.cli("status").stdout
    site.assert_clean()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_it_ends_with_its_daemon_also_while_a_plan_is_waited_for(site: Site, number: signal.Signals) -> None:
    child = planning(site)
    os.kill(child, signal.SIGSTOP)
    time.sleep(2.0)  # a plan is waited for
    began = time.monotonic()
    site.signal(number)
    assert site.process is not None
    site.process.wait(20)
    assert time.monotonic() - began < 5.0
    assert comes_true(lambda: not lives(child))


def test_a_new_configuration_takes_its_policy_along(site: Site) -> None:
    child = planning(site)
    assert child
    site.extra = ""
    site.write_config()
    site.signal(signal.SIGHUP)
    assert comes_true(lambda: not lives(child), 20.0)
    site.ticks_pass()
    assert planning(site) == 0
