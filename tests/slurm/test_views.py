"""People are told on a real Slurm who holds the GPUs, who asked, what became of a job, and of a daemon."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.slurm.harness import Site, wait_until
from tests.support.schemas import faults
from tests.support.trees import ROOT

pytestmark = pytest.mark.slurm
ALL_GPUS = 24
SITE = Callable[..., Site]


def document(site: Site, *words: str) -> Any:
    """A command's JSON, which keeps to its schema."""
    found = json.loads(site.cli(*words, "--json").stdout)
    schema = json.loads((ROOT / f"docs/schema/{words[0]}.json").read_text())
    assert faults(found, schema) == []
    return found


def row(site: Site, label: str) -> dict[str, Any]:
    """A job's row of the queue."""
    rows = {job["job"]: job for job in document(site, "queue")["jobs"]}
    found: dict[str, Any] = rows[label]
    return found


def test_who_waits_for_jobs_that_cannot_save_hears_of_them_and_of_their_limit(new_site: SITE) -> None:
    site = new_site().start()
    began = time.time()
    holder = site.submit(ALL_GPUS, "--time=30", tenant="nlp", stamped=False, user="games")
    wait_until(lambda: holder.state == "RUNNING", 20, "the plain job runs")
    waits = site.submit(8, tenant="speech", user="news").waits()
    site.ticks_pass()
    said = site.cli("explain", waits.label).stdout
    assert f"24 of 24 GPUs are held by job {holder.label} (nlp), which cannot save and keeps its GPUs" in said
    assert "because it needs GPUs of jobs that cannot be asked to give way" in said
    assert "others are owed more" not in said
    assert (
        "it cannot save, so it keeps its GPUs until it ends (limit "
        in site.cli("explain", holder.label).stdout
    )
    found = row(site, waits.label)
    expected = found["expected_start"] or found["not_before"]
    assert expected - began > 1500, "the old rule said the next end of a lease, again and again"
    assert document(site, "plan")["jobs"]
    assert document(site, "status")["health"]["word"] == "acting"


def test_a_job_that_gave_way_is_told_for_whom_and_a_finished_one_what_it_had(new_site: SITE) -> None:
    site = new_site().start()
    holder = site.submit(ALL_GPUS, tenant="vision", user="games").runs()
    comes = site.submit(ALL_GPUS, tenant="speech", steps=10, user="news").runs(40)
    story = site.cli("explain", holder.label).stdout
    assert "it was asked to save and to give way" in story
    assert f"for job {comes.label}" in story
    assert "why" not in story, "machine words"
    comes.ends(seconds=40)
    site.ticks_pass()
    ended = site.cli("explain", comes.label).stdout
    assert f"job {comes.label} of news (speech), 24 GPUs: ended" in ended
    assert "it waited " in ended
    assert document(site, "explain", comes.label)["ended"]["user"] == "news"


def test_the_id_of_an_array_is_answered_and_a_dead_daemon_looks_dead_at_once(new_site: SITE) -> None:
    site = new_site().start()
    array = site.sbatch(
        "-A", "vision", "--gpus=8", "--array=1-5", "--comment=slurm_fair:v1,signal=USR2",
        str(site.folder / "count.sh"), "1000000", "0.2", user="games",
    )  # fmt: skip
    wait_until(lambda: len(document(site, "explain", array)["tasks"]) == 5, 20, "all tasks are known")
    said = site.cli("explain", array).stdout
    assert f"job {array} is an array of games (vision)" in said
    assert site.cli("status", "--exit-code").returncode == 0
    site.kill()
    wait_until(lambda: site.cli("status", "--exit-code", check=False).returncode == 3, 15, "silent")
    for words in (["queue"], ["status"], ["explain", array]):
        assert "silent: the daemon does not run" in site.cli(*words).stderr, words
    (site.storage / "paused").write_text("maintenance")
    assert document(site, "status")["health"]["word"] == "silent", "a pause hides no dead daemon"
    (site.storage / "paused").unlink()
    site.start()
    wait_until(lambda: site.cli("status", "--exit-code", check=False).returncode == 0, 15, "it acts again")
    assert site.cli("queue").stderr == ""


def test_tasks_that_their_arrays_limit_keeps_back_stand_in_no_line(new_site: SITE) -> None:
    """GPUs are idle beside them."""
    site = new_site().start()
    array = site.sbatch(
        "-A", "vision", "--gpus=1", "--time=30", "--array=0-5%2", "--comment=slurm_fair:v1,signal=USR2",
        str(site.folder / "count.sh"), "1000000", "0.2", user="games",
    )  # fmt: skip

    def running() -> list[str]:
        return [job["job"] for job in document(site, "queue")["jobs"] if job["state"] == "running"]

    wait_until(lambda: len(running()) == 2, 40, "two tasks run")
    site.ticks_pass()
    assert running() == [f"{array}_0", f"{array}_1"]
    last = row(site, f"{array}_5")
    assert (last["blocked"], last["rank"]) == ("array_limit", -1)
    assert last["reason"] == f"its array's own limit is reached by jobs {array}_0, {array}_1 (vision)"
    said = site.cli("explain", last["job"]).stdout
    assert "next in line" not in said
    assert "gap" not in said


def test_the_daemons_own_notice_is_told_as_what_it_is(new_site: SITE) -> None:
    site = new_site()
    site.config.write_text(site.config.read_text().replace("notice = false", "notice = true"))
    site.start()
    site.ticks_pass()
    (alone,) = document(site, "queue")["left_alone"]
    assert alone["reason"] == "says that a slurm_fair daemon acts here, and never runs"
    assert f"job {alone['job']} of root is left alone: it says" in site.cli("explain", alone["job"]).stdout
    assert "left to plain Slurm: each says that a slurm_fair" in site.cli("check", check=False).stdout
    assert site.stop() == 0


def test_a_slurm_that_hangs_for_longer_than_the_dead_man_waits_makes_the_daemon_blind_and_not_dead(
    new_site: SITE,
) -> None:
    site = new_site(lease={"term": 16})
    site.config.write_text(site.config.read_text().replace("notice = false", "notice = true"))
    site.start()
    held = site.submit(ALL_GPUS, user="games").runs()
    site.ticks_pass()
    site.lab.freeze("slurmctld")
    try:
        frozen = time.time()
        wait_until(lambda: health(site) == "blind", 15, "blind is said")
        while time.time() < frozen + 2 * 0.75 * site.term:  # twice what the dead-man waits
            assert health(site) == "blind"
            time.sleep(0.5)
    finally:
        site.lab.thaw("slurmctld")
    wait_until(lambda: health(site) == "acting", 20, "it sees again")
    assert "must stop" not in site.said()
    assert held.state == "RUNNING"


def health(site: Site) -> str:
    """The word of `status`."""
    return str(document(site, "status")["health"]["word"])
