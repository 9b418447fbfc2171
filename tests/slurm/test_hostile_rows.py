"""One user writes what he can into his jobs; nothing of anybody else's moves, and the look is never blind.

Both are ordinary Unix users. Everything is read through the real Slurm.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from slurm_fair.lab import Lab, LabSpec
from slurm_fair.model import Blind, JobState, parse_label
from slurm_fair.slurm.history import SlurmHistory
from slurm_fair.slurm.reading.queue import Queue
from slurm_fair.slurm.reading.user_text import ask_text
from tests.slurm.attacks import HONEST, HOSTILE, attack, of_user
from tests.slurm.harness import Site, stays, wait_until
from tests.support.adapter_on_slurm import Adapter
from tests.support.hostile import forged_comments, forged_lines, forged_rows
from tests.support.on_slurm import Slurm

pytestmark = pytest.mark.slurm
# Accepted, and pending for ever, or refused and listed as FAILED for a while.
ABSURD = (
    ("-N100", "--gres=gpu:999999999999999999"),
    ("--gres=gpu:9223372036854775807",),
    ("-N3", "--gres=gpu:200376420520589664"),
    ("--gpus-per-task=999999999", "-n4", "-N100"),
    ("--gpus=1", "-n", "999999999"),
    ("--gpus=1", "--begin=uts999999999999"),
    ("--gpus=1", "--deadline=2999-01-01"),
    ("--gres=gpu:a\x1fb:1",),
)


@pytest.fixture
def adapter(slurm: Slurm) -> Adapter:
    """The adapter with which the daemon sees it."""
    return Adapter(slurm, "begin")


def test_refused_submissions_with_forged_rows_make_up_no_job_and_blind_nobody(
    slurm: Slurm, adapter: Adapter
) -> None:
    waits = adapter.submit(user=HONEST)
    slurm.sbatch_running("--gpus=2", user=HONEST)
    elsewhere = slurm.sbatch("-p", "other", "--begin=now+3600", user=HONEST)
    before = adapter.observe()
    mine = of_user(before, HONEST)
    texts = [*forged_rows(int(waits), "vision", HONEST), *forged_rows(int(elsewhere), "vision", HONEST)]
    for text in texts:
        attack(slurm, f"--gres=gpu:{text}:1")
    assert not attack(slurm, "--gpus=100"), "Slurm refuses it, and lists it as a job that failed"
    after = adapter.observe()
    assert len(slurm.lab.run("squeue", "-h", "-t", "FAILED", "-u", HOSTILE, "-o", "%A").stdout.split()) > 20
    assert of_user(after, HONEST) == mine
    assert after.jobs.key.tolist() == before.jobs.key.tolist()
    assert (after.total_gpus, after.tenants.names) == (before.total_gpus, before.tenants.names)
    assert not [alone for alone in after.left_alone if alone.user != HOSTILE]
    for number in range(5):
        attack(slurm, f"--gres=gpu:new{number}:1")
    assert adapter.observe().gpu_types == before.gpu_types, "each type costs every policy"


def test_absurd_demands_cost_only_their_own_job_which_is_named(slurm: Slurm, adapter: Adapter) -> None:
    adapter.submit(user=HONEST)
    before = adapter.observe()
    accepted = [job for options in ABSURD if (job := attack(slurm, *options))]
    assert len(accepted) > 2
    after = adapter.observe()
    assert of_user(after, HONEST) == of_user(before, HONEST)
    named = {alone.label: alone for alone in after.left_alone if alone.unreadable}
    assert named.keys() <= set(accepted)
    assert accepted[0] in named
    assert {alone.user for alone in named.values()} == {HOSTILE}
    assert int(after.jobs.gpus.sum()) < 100


def test_absurd_demands_stay_out_of_accounting_and_stop_it_for_nobody(slurm: Slurm, adapter: Adapter) -> None:
    slurm.sbatch_running("--gpus=2", user=HONEST)
    absurd = attack(slurm, "-N100", "--gres=gpu:999999999999999999")
    assert absurd
    slurm.do("scancel", absurd)
    history = SlurmHistory(adapter.commands)
    now = time.time()

    def told() -> str:
        argv = ("sacct", "-n", "-X", "-P", "-j", absurd, "-o", "JobID,ReqTRES")
        return slurm.do(*argv).stdout

    wait_until(lambda: "gres/gpu=7" in told(), 30, "accounting has the absurd row")
    runs = history.runs(now - 600, now + 60, ["gpu"])
    assert not isinstance(runs, Blind), runs.reason
    assert parse_label(absurd) not in runs.key
    assert HONEST in {runs.users[user] for user in runs.user}


def test_names_move_no_gpu(slurm: Slurm, adapter: Adapter) -> None:
    honest = slurm.sbatch_running("-N2", "--gpus=3", user=HONEST)
    before = adapter.observe()
    for name in forged_lines(int(honest)):
        job = attack(slurm, "-N2", "--gpus=3", "-J", name)
        slurm.wait_state(job, "RUNNING")
        after = adapter.observe()
        assert of_user(after, HONEST) == of_user(before, HONEST)
        nodes = after.nodes
        held = after.held.per_node(len(nodes.names))
        assert (after.held.gpus >= 0).all()
        assert (held <= nodes.gpus).all()
        theirs = after.jobs.key.tolist().index(parse_label(job))
        assert int(after.held.gpus[after.held.row == theirs].sum()) == 3
        slurm.do("scancel", job)
        slurm.wait_state(job, "CANCELLED")


def test_hostile_comments_and_names_speak_for_nobody_and_cost_no_call(
    slurm: Slurm, adapter: Adapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = adapter.submit(user=HONEST)
    first = Adapter(slurm, "begin")
    mine = of_user(first.observe(), HONEST)
    calls = first.commands.calls
    jobs = []
    for comment in (*forged_comments(int(victim)), *forged_rows(int(victim), "vision", HONEST)):
        text = ("--gpus=1", f"--comment={comment}", f"--job-name={comment}", "--begin=now+600")
        jobs.append(attack(slurm, *text))
    fresh = Adapter(slurm, "begin")
    assert of_user(fresh.observe(), HONEST) == mine
    assert fresh.commands.calls == calls
    records = [int(job) for job in (*jobs, victim) if job]
    found = ask_text(fresh.commands, records, "k")
    assert not isinstance(found, str)
    assert found.keys() == set(records)
    assert found[int(victim)][0].startswith("slurm_fair:v1")
    monkeypatch.setattr("slurm_fair.slurm.reading.user_text._MOST_IDS", 0)
    assert ask_text(fresh.commands, records, "k") == found, "so does a listing of every job"


def test_the_controller_goes_on_and_touches_nothing_that_is_not_its_own(
    new_site: Callable[..., Site],
) -> None:
    site = new_site("begin").start()
    slurm = Slurm(site.lab)
    managed = site.submit(1, tenant="nlp", user=HONEST).runs()
    runs = site.submit(1, "-p", "other", gated=False, user=HONEST)
    wait_until(lambda: runs.state == "RUNNING", 15, "it runs elsewhere")
    since = time.time() - 15
    waits = site.submit(1, "-p", "other", "--begin=now+3600", gated=False, user=HONEST)
    eligible = waits.now().eligible
    texts = [
        text for victim in (runs, waits, managed) for text in forged_rows(int(victim.label), "vision", HONEST)
    ]
    began = time.time()
    for number, text in enumerate(texts):
        attack(slurm, f"--gres=gpu:{text}:1")
        if number % 24 == 0:
            attack(slurm, *ABSURD[number // 24 % len(ABSURD)])
            site.ticks_pass(1)
    site.ticks_pass(4)
    assert (runs.now().restarts, waits.now().eligible) == (0, eligible)
    assert managed.state == "RUNNING"
    # Its one job elsewhere lies on a managed node, so vision is charged for that GPU, and for nothing else.
    assert site.had().get("vision", 0.0) <= time.time() - since
    assert site.had()["nlp"] <= time.time() - began + 60
    absurd = next(a for a in site.cli("queue", "--json", check=False).stdout.splitlines() if a)
    assert HOSTILE in site.said()
    assert absurd
    stays(lambda: site.process is not None and site.process.poll() is None, 1, "the daemon lives")
    site.lab.run("scancel", "-u", HOSTILE, check=False)


def test_a_row_that_its_user_spoils_takes_nobodys_turn_and_keeps_no_gpu(
    new_site: Callable[..., Site],
) -> None:
    spoils = "TresPerNode=gpu:8,x\x1fy:0"  # Slurm takes it: nothing is asked for of what it does not know
    site = new_site("begin", {"term": 12}).start()
    honest = [site.submit(8, tenant="vision", user=HONEST) for _ in range(2)]
    phantom = site.submit(8, tenant="speech", user=HOSTILE)
    for job in (*honest, phantom):
        job.runs()
    # Held until they are spoiled: as they were submitted they would have a turn of their own.
    ghosts = [site.submit(8, "--hold", tenant="speech", user=HOSTILE) for _ in range(3)]
    site.ticks_pass(1)
    for ghost in ghosts:
        ghost.update(spoils, user=HOSTILE)
        ghost.scontrol("release", user=HOSTILE)
    phantom.scontrol("requeue", user=HOSTILE)
    phantom.update(spoils, user=HOSTILE)
    third = site.submit(8, tenant="vision", user=HONEST).runs(15)
    stays(lambda: [job.now().restarts for job in (*honest, third)] == [0, 0, 0], 2.5 * site.term)
    assert {event.key for event in site.events("asked")} <= {phantom.key}
    for job in (*ghosts, phantom):
        job.cancel(user=HOSTILE)


def test_without_enforced_accounts_a_name_makes_up_no_row(tmp_path: object) -> None:
    spec = LabSpec(nodes=2, database=False, users={HONEST: (), HOSTILE: ()})
    with Lab(spec=spec) as lab:
        slurm = Slurm(lab)
        adapter = Adapter(slurm, "begin")
        victim = slurm.sbatch_running("--gpus=2", user=HONEST)
        slurm.sbatch_running("--gpus=3", "-N2", user=HONEST)
        before = adapter.observe()
        for account in ("a\x1fb\x1ec", "a\x1b[2J", "x" * 400, *forged_rows(int(victim), "vision", HONEST)):
            attack(slurm, "--gpus=1", account=account)
        after = adapter.observe()
        assert of_user(after, HONEST) == of_user(before, HONEST)
        assert set(after.tenants.names) <= {*before.tenants.names, "x", "gpu:x"}
        named = [alone for alone in after.left_alone if alone.unreadable]
        assert len(named) >= 3
        assert {alone.user for alone in named} == {HOSTILE}
        rows = Queue(adapter.commands).read()
        assert not isinstance(rows, str)
        assert (rows["state"] == JobState.RUNNING).any()
