"""What the doctor makes of facts: one row per sight, with the level it must have."""

from __future__ import annotations

import fcntl
import os
from dataclasses import replace
from pathlib import Path

import pytest

from slurm_fair.config import Config, LeaseSection, SlurmSection, TenantsSection
from slurm_fair.doctor import Finding, Level, scheduler, storage, terms, versions
from slurm_fair.doctor.facts import Facts, _ahead
from slurm_fair.doctor.machines import nodes
from slurm_fair.doctor.rights import sight, verbs
from slurm_fair.slurm.reading.nodes import NodeListing, RawNode
from slurm_fair.state_folder import Heartbeat, Places, beat
from slurm_fair.store import open_journal
from tests.support.builders import snapshot
from tests.support.site_facts import ERROR, FACTS, OK, WARNING, facts, worst


@pytest.mark.parametrize(
    ("found", "level"),
    [
        (versions.client_version("22.05.8"), OK),
        (versions.client_version("26.05.1"), OK),
        (versions.client_version("20.11.9"), ERROR),
        (versions.client_version(""), ERROR),
        (versions.client_version("26.11.0"), WARNING),
        (versions.controller_version(facts()), OK),
        (versions.controller_version(facts({"SLURM_VERSION": "26.05.0"})), OK),
        (versions.controller_version(facts({"SLURM_VERSION": "25.05.3"})), WARNING),
        (versions.controller_version(facts({"SLURM_VERSION": ""})), ERROR),
        (versions.clock(replace(FACTS, clock_ahead=1.0)), OK),
        (versions.clock(replace(FACTS, clock_ahead=-5.0)), WARNING),
        (versions.clock(replace(FACTS, clock_ahead=120.0)), ERROR),
        (versions.latency(replace(FACTS, seconds={"a whole look": 0.1})), OK),
        (versions.latency(replace(FACTS, seconds={"a whole look": 6.0})), WARNING),
        (versions.latency(replace(FACTS, seconds={"queue (squeue)": 2.5, "a whole look": 3.0})), WARNING),
        (versions.accounting(facts({"AccountingStorageType": "accounting_storage/none"})), WARNING),
        (versions.accounting(replace(FACTS, history="sacct: refused")), WARNING),
    ],
)
def test_slurm_itself(found: Finding, level: Level) -> None:
    assert found.level is level


def test_the_shares_of_the_tenants_are_told_in_per_cent_the_greatest_first() -> None:
    seen = snapshot(nodes={"n1": 8}, weights={"nlp": 0.25, "vision": 0.5, "speech": 0.25})
    (told,) = terms.shares(replace(FACTS, snapshot=seen))
    assert told.level is OK
    assert told.what.endswith(": vision 50 %, nlp 25 %, speech 25 %")


def listing(*kinds: str) -> NodeListing:
    """A managed node of each of these GPU types."""
    found = {f"n{at}": RawNode(f"n{at}", 4, kind, 0, 8, 0, 1000, 0, "idle") for at, kind in enumerate(kinds)}
    return NodeListing(found, {"gpu": tuple(found)}, {"gpu": True})


def with_weights(weights: dict[str, float], *kinds: str) -> list[Finding]:
    config = Config(tenants=TenantsSection(gpu_weights=weights))
    return list(terms.gpu_weights(replace(FACTS, config=config, machines=listing(*kinds))))


def test_what_a_gpu_counts_by_its_type_is_told() -> None:
    (told,) = with_weights({"v100": 0.5}, "a100", "v100", "")
    assert (told.level, told.what) == (OK, "a GPU counts by its type: a100 1, gpu 1, v100 0.5")
    assert with_weights({}, "a100") == []


def test_weights_of_gpus_that_are_not_there_or_of_nothing_are_errors() -> None:
    (strange,) = with_weights({"v10": 0.5}, "a100", "v100")
    assert strange.level is ERROR
    assert "there are no GPUs of type 'v10'; did you mean 'v100'?" in strange.what
    (nothing,) = with_weights({"a100": 0.0}, "a100")
    assert nothing.level is ERROR


def test_of_many_tenants_the_greatest_are_told() -> None:
    seen = snapshot(nodes={"n1": 8}, weights={f"t{number}": 1.0 for number in range(30)})
    (told,) = terms.shares(replace(FACTS, snapshot=seen))
    assert told.what.endswith(", 10 more")
    assert list(terms.shares(FACTS)) == []


@pytest.mark.parametrize(
    ("as_of", "took", "answered", "ahead"),
    [
        (100.0, 0.1, 100.9, 0.0),  # within the second
        (100.0, 0.1, 101.05, 0.0),  # said just before the second turned
        (105.0, 0.1, 100.9, pytest.approx(4.1)),
        (95.0, 0.1, 100.9, pytest.approx(-4.8)),
        (95.0, 9.0, 100.9, 0.0),  # a slow answer proves nothing
    ],
)
def test_the_clocks_are_compared_no_finer_than_the_answer_allows(
    as_of: float, took: float, answered: float, ahead: float
) -> None:
    assert _ahead(as_of, took, answered) == ahead


@pytest.mark.parametrize(
    ("uid", "level", "expected", "words"),
    [
        (0, "", OK, "an Operator could as well"),
        (500, "", OK, "an Operator could as well"),
        (1000, "Operator", OK, "Operator"),
        (1000, "Administrator", OK, "Administrator"),
        (1000, "None", WARNING, "no operator"),
        (1000, "", WARNING, "does not know it"),
    ],
)
def test_rights(uid: int, level: str, expected: Level, words: str) -> None:
    found = verbs(facts(uid=uid, level=level))
    assert (found.level, words in found.what) == (expected, True)


def test_hidden_jobs_matter_only_to_who_may_not_see_them() -> None:
    assert worst(sight(facts({"PrivateData": "jobs,usage"}, level="None"))) is ERROR
    assert worst(sight(facts({"PrivateData": "jobs,usage"}))) is OK
    assert list(sight(facts())) == []


@pytest.mark.parametrize(
    ("lease", "level", "words"),
    [
        (LeaseSection(), OK, "lease 900 s"),
        (LeaseSection(interval=400), WARNING, "more than a third"),
        (LeaseSection(grace=900), WARNING, "not shorter than the term"),
        (LeaseSection(term=100, interval=5, grace=10), WARNING, "shorter than Slurm's requeue delay"),
        (LeaseSection(min_runtime=2000, align="aligned"), WARNING, "min_runtime"),
    ],
)
def test_lengths_that_do_not_go_together(lease: LeaseSection, level: Level, words: str) -> None:
    found = list(terms.lengths(facts(config=Config(lease=lease))))
    assert worst(found) is level
    assert any(words in f.what for f in found)


@pytest.mark.parametrize(
    ("ours", "slurm", "level"),
    [
        (121, {}, OK),
        (121, {"AuthInfo": "socket=/run/munge,cred_expire=120"}, OK),
        (121, {"AuthInfo": "cred_expire=600"}, ERROR),
        (121, {"AuthInfo": "cred_expire=60"}, WARNING),
        (121, {"SchedulerParameters": "bf_continue,requeue_delay=300"}, ERROR),
        (301, {"SchedulerParameters": "requeue_delay=300"}, OK),
    ],
)
def test_slurms_delay_after_a_requeue(ours: float, slurm: dict[str, str], level: Level) -> None:
    assert terms.requeue_delay(facts(slurm, Config(slurm=SlurmSection(requeue_delay=ours)))).level is level


@pytest.mark.parametrize(
    ("lease", "wait", "level"),
    [
        (LeaseSection(), "30 sec", OK),
        (LeaseSection(), "5 sec", WARNING),
        (LeaseSection(term=180, grace=100), "90 sec", WARNING),
    ],
)
def test_kill_wait(lease: LeaseSection, wait: str, level: Level) -> None:
    assert terms.kill_wait(facts({"KillWait": wait}, Config(lease=lease))).level is level


@pytest.mark.parametrize(
    ("parameters", "uid", "bears"),
    [
        ("(null)", 1000, "rl_enable is off"),
        ("rl_enable", 0, "does not hold for this account"),
        ("rl_enable", 500, "does not hold for this account"),
        ("rl_enable", 1000, "bears about 360 gated jobs"),
        ("idle_on_node_suspend,rl_enable,rl_refill_rate=10", 1000, "bears about 7560 gated jobs"),
        ("rl_enable,rl_refill_rate=1,rl_refill_period=10", 1000, "bears about 0 gated jobs"),
    ],
)
def test_the_rate_limit_is_told_in_gated_jobs(parameters: str, uid: int, bears: str) -> None:
    assert bears in terms.rate_limit(facts({"SlurmctldParameters": parameters}, uid=uid)).what


def test_more_waiting_jobs_than_the_rate_limit_bears_are_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terms, "waiting_jobs", lambda seen: 2000)
    assert terms.rate_limit(facts({"SlurmctldParameters": "rl_enable"})).level is WARNING
    assert terms.rate_limit(facts({"SlurmctldParameters": "rl_enable,rl_refill_rate=20"})).level is OK


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
    assert scheduler.starts(facts({"SchedulerParameters": parameters}, Config(lease=lease))).level is level


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


def node(name: str, gpus: int = 8, kind: str = "a100", state: str = "idle") -> RawNode:
    """A node with quiet defaults."""
    return RawNode(name, gpus, kind, 0, 64, 0, 512_000, 0, state)


@pytest.mark.parametrize(
    ("listed", "level", "words"),
    [
        ([node("n1"), node("n2", kind="v100")], OK, "2 nodes with GPUs in gpu: 8 a100, 8 v100"),
        ([node("n1", kind="")], OK, "8 untyped"),
        ([node("n1"), node("n2", kind="+")], WARNING, "several GPU types on one node"),
        ([node("n1", state="drained"), node("n2")], WARNING, "1 of 2 nodes take no work: n1 (drained)"),
        ([node("n1", gpus=0, kind="")], ERROR, "no managed partition has a GPU"),
    ],
)
def test_the_nodes(listed: list[RawNode], level: Level, words: str) -> None:
    by_name = {each.name: each for each in listed}
    found = list(nodes(NodeListing(by_name, {"gpu": tuple(by_name)}, {"gpu": True}), FACTS))
    assert worst(found) is level
    assert any(words in f.what for f in found), found


def stored(path: Path) -> Facts:
    """Facts of a site whose storage is here."""
    config = replace(Config(), storage=replace(Config().storage, dir=str(path), max_mb=1.0))
    return replace(facts(config=config, uid=os.geteuid()), places=Places(path))


def test_a_storage_in_order(tmp_path: Path) -> None:
    tmp_path.chmod(0o750)
    assert worst(storage.findings(stored(tmp_path))) is OK
    open_journal(tmp_path / "journal.db").close()
    assert any("the journal opens" in f.what for f in storage.findings(stored(tmp_path)))


def test_a_storage_that_others_may_write_is_an_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    assert storage.owner(tmp_path, stored(tmp_path)).level is ERROR


def test_a_damaged_or_foreign_journal_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "journal.db").write_bytes(b"no database at all" * 100)
    assert storage.journal(stored(tmp_path)).level is ERROR


def test_little_room_is_told(tmp_path: Path) -> None:
    assert storage.space(tmp_path, 1.0).level is OK
    assert storage.space(tmp_path, 1e12).level is WARNING


def test_the_file_system_is_that_of_the_innermost_mount(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"a / ext4 rw 0 0\nb {tmp_path} nfs4 rw 0 0\nc {tmp_path}x xfs rw 0 0\n")
    assert storage.file_system(tmp_path / "deep", mounts) == "nfs4"
    assert storage.file_system(Path("/"), mounts) == "ext4"
    assert storage.file_system(Path("/"), tmp_path / "gone") == ""


def test_the_state_of_the_daemon_and_its_dead_man(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    tmp_path.chmod(0o750)
    seen = stored(tmp_path)

    def said(now: float = 1000.0) -> list[str]:
        return [f"{f.level}: {f.what}" for f in storage.daemon(replace(seen, now=now))]

    assert said() == ["ok: the daemon does not run"]
    beat(seen.places, Heartbeat(1, 990.0, 60.0, "begin"))
    assert said() == [
        "warning: the daemon is gone and left jobs of its own: the dead-man frees them within a lease"
    ]
    journal = open_journal(seen.places.journal)
    try:
        assert said()[0] == "ok: the daemon runs (last sign of life 10 s ago)"
        assert said()[1].startswith("warning: no dead-man watches")
        assert said(now=1100.0)[0] == "error: the daemon is silent since 110 s"
        with seen.places.deadman_lock.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            assert said()[1] == "ok: the dead-man watches"
        beat(seen.places, Heartbeat(1, 990.0, 60.0, "begin", 900.0, "squeue hangs"))
        assert said()[1] == "warning: the daemon is blind, so nothing is done: squeue hangs"
        seen.places.paused.write_text("lunch")
        assert said()[0].startswith("warning: paused")
    finally:
        journal.close()
    seen.places.paused.unlink()
    seen.places.heartbeat.unlink()
    assert said() == ["warning: the daemon does not run, though it has run here: nothing is done to any job"]


@pytest.mark.parametrize(("level", "cure"), [(OK, "do this"), (WARNING, ""), (ERROR, "")])
def test_a_complaint_comes_with_a_cure_and_praise_without(level: Level, cure: str) -> None:
    with pytest.raises(ValueError, match="do not go together"):
        Finding(level, "something", cure)
