"""Nobody gains by staying out: what is left alone is charged live."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.slurm.harness import Site, wait_until

pytestmark = pytest.mark.slurm


@contextmanager
def srun(site: Site, *options: str) -> Iterator[None]:
    """An interactive job for as long as the test looks."""
    argv = ["srun", "-Q", "-n1", *options, "sleep", "600"]
    process = subprocess.Popen(argv, env=site.lab.env, stdin=subprocess.DEVNULL, cwd="/")
    try:
        yield
    finally:
        process.kill()
        process.wait(10)


def tenant(site: Site, name: str) -> dict[str, Any]:
    """What `status` says of a tenant; nothing before anything is known of it."""
    table = json.loads(site.cli("status", "--json").stdout)["tenants"]
    return next((row for row in table if row["tenant"] == name), {})


WAYS = {
    "interactive": ("-p", "gpu", "--gpus=4"),
    "in a partition that is not managed": ("-p", "other", "-w", "n3", "--gpus=4"),
}


@pytest.mark.parametrize("options", WAYS.values(), ids=WAYS)
def test_what_is_left_alone_is_charged_while_it_runs(
    new_site: Callable[..., Site], options: tuple[str, ...]
) -> None:
    site = new_site("begin").start()
    before = site.had().get("nlp", 0.0)
    with srun(site, "-A", "nlp", *options):
        wait_until(lambda: tenant(site, "nlp").get("gpus") == 4, 15, "its GPUs are nlp's")
        assert tenant(site, "nlp")["demand_gpus"] == 4
        wait_until(lambda: site.had().get("nlp", 0.0) - before > 8, 15, "it is charged live")
        first = site.had()["nlp"]
        site.ticks_pass(4)
        gained, gpus = site.had()["nlp"] - first, json.loads(site.cli("status", "--json").stdout)["gpus"]
        assert gained == pytest.approx(16, abs=8)
        assert gpus["others"] == 4
        assert sum(gpus.values()) == 24
