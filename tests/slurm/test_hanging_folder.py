"""A user's folder that hangs, under a daemon on a real Slurm."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable

import pytest

from slurm_fair.lab import available
from tests.slurm.harness import Site, wait_until
from tests.support.hanging import hanging

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(available() is not None, reason=str(available())),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount"),
]
GRACE = 15
END_SECONDS = 5


def test_the_daemon_goes_on_looking_and_ends_at_once_while_a_folder_hangs(
    new_site: Callable[..., Site],
) -> None:
    site = new_site(lease={"grace": GRACE})
    site.start()
    job = site.submit("--gpus-per-node=8", "-N3", tenant="speech", user="news", manner="deaf").runs()
    folder = site.work("news") / ".slurm-fair"
    folder.mkdir(exist_ok=True)
    shutil.chown(folder, "news")
    with hanging(folder):
        site.submit(8, tenant="nlp")
        wait_until(lambda: "ask done" in site.acts(job), 40, "the job is asked")
        wait_until(lambda: "a folder of 'news' does not answer" in site.said(), 10, "the log names its user")
        before, began = site.last_tick(), time.monotonic()
        site.ticks_pass(5, seconds=10)
        print(f"{site.last_tick() - before} ticks in {time.monotonic() - began:.1f} s")
        assert "requeue done" not in site.acts(job), "the folder hung for longer than the grace"
        began = time.monotonic()
        assert site.stop() == 0
        assert time.monotonic() - began < END_SECONDS
