"""The doctor at a real Slurm: as root, an Operator, or somebody who may do nothing, and with parts of it gone."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from slurm_fair.config.tree import load_config
from slurm_fair.doctor.facts import gather
from slurm_fair.doctor.scheduler import start_delay
from slurm_fair.host.state_folder import Places
from slurm_fair.lab import Lab, LabSpec, available
from tests.slurm.listing import wait_until

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(available() is not None, reason=str(available())),
]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may act as another user")

# Python may lie where other users cannot read it, so everything is loaded before the rights are given away.
AS_USER = """
import json, os, pwd, sys, time
from pathlib import Path
from slurm_fair.config.tree import load_config
from slurm_fair.doctor import examine
from slurm_fair.host.state_folder import Places
from slurm_fair.policy.registry import names
import slurm_fair_plugins.astraea
config = load_config(Path(sys.argv[1]))
names()
entry = pwd.getpwnam(sys.argv[2])
if os.geteuid() != entry.pw_uid:
    os.setgroups([]); os.setgid(entry.pw_gid); os.setuid(entry.pw_uid)
found = examine(config, Places(Path(config.storage.dir)), time.time()).findings
print(json.dumps([[area, f.level, f.what, f.cure] for area, f in found]))
"""


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """Two nodes, a database, an operator and a plain user."""
    users = {"games": ("nlp",)} if os.geteuid() == 0 else {}
    spec = LabSpec(nodes=2, users=users, operators=("daemon",) if users else (), settings={"KillWait": "30"})
    with Lab(spec=spec) as running:
        yield running


@pytest.fixture
def config(lab: Lab) -> Path:
    """A site at this lab, in a folder that users can reach, as pytest's own is not."""
    folder = Path(mkdtemp(dir=lab.folder))
    folder.chmod(0o755)
    storage = folder / "storage"
    storage.mkdir(mode=0o750)
    published = folder / "published"
    published.mkdir(mode=0o755)
    path = folder / "slurm-fair.toml"
    path.write_text(
        f'[slurm]\nconf = "{lab.conf}"\n[storage]\ndir = "{storage}"\nmax_mb = 1\n'
        f'[lease]\npublish_dir = "{published}"\n'
    )
    path.chmod(0o644)
    return path


def check(lab: Lab, config: Path) -> tuple[int, dict[str, Any]]:
    """`slurm-fair check --json` in a process of its own."""
    done = lab.run(
        sys.executable, "-m", "slurm_fair.cli", "--config", str(config), "check", "--json", check=False
    )
    return done.returncode, json.loads(done.stdout)


def as_user(lab: Lab, config: Path, user: str) -> dict[str, tuple[str, str]]:
    """The doctor's answer to another account: what -> (level, cure), for rights alone."""
    done = subprocess.run(
        [sys.executable, "-c", AS_USER, str(config), user],
        env=lab.env, capture_output=True, text=True, timeout=60, check=False, cwd="/",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return {what: (level, cure) for area, level, what, cure in json.loads(done.stdout) if area == "rights"}


@needs_root
def test_root_passes_without_an_error_or_a_warning(lab: Lab, config: Path) -> None:
    code, found = check(lab, config)
    assert [f for f in found["findings"] if f["level"] != "ok"] == []
    assert (code, found["sound"]) == (0, True)
    told = " ".join(f["what"] for f in found["findings"])
    for words in ("cluster lab", "16 a100", "accounting answers", "clock agrees", "for 121 s"):
        assert words in told


def test_the_machine_starts_jobs_as_soon_as_the_doctor_says(lab: Lab, config: Path) -> None:
    seen = gather(load_config(config), Places(config.parent / "storage"), 0.0)
    assert "about 1 s after its gate opens, 1 s at worst" in start_delay(seen).what


@needs_root
def test_an_operator_is_told_that_it_may_act_and_a_plain_user_that_it_may_not(lab: Lab, config: Path) -> None:
    operator = as_user(lab, config, "daemon")
    assert [level for level, _ in operator.values()] == ["ok"]
    (what, (level, cure)) = next(iter(as_user(lab, config, "games").items()))
    assert level == "warning"
    assert "games may not act on others' jobs" in what
    assert "adminlevel=operator" in cure


@needs_root
def test_an_account_that_accounting_does_not_know_is_told_so(lab: Lab, config: Path) -> None:
    assert pwd.getpwnam("nobody").pw_uid != 0
    (what, (level, _)) = next(iter(as_user(lab, config, "nobody").items()))
    assert (level, "accounting does not know it" in what) == ("warning", True)


def test_jobs_left_alone_are_counted_with_their_reason(lab: Lab, config: Path) -> None:
    job = lab.run("sbatch", "--parsable", "-A", "nlp", "--wrap", "sleep 60").stdout.strip()
    try:
        found = check(lab, config)[1]["findings"]
        assert any("left to plain Slurm: each asks for no GPU" in f["what"] for f in found)
    finally:
        lab.run("scancel", job)


@needs_root
def test_the_way_to_a_jobs_answer_is_tried_and_not_guessed(lab: Lab, config: Path) -> None:
    work = config.parent / "work"
    work.mkdir()
    shutil.chown(work, "games")
    stamp = "--comment=slurm_fair:v1,signal=USR2"
    body = "mkdir -p -m 711 .slurm-fair/$SLURM_JOB_ID; sleep 60"
    words = (
        "sbatch",
        "--parsable",
        "--requeue",
        "-A",
        "nlp",
        "--gpus=1",
        "-o",
        "/dev/null",
        stamp,
        "--wrap",
        body,
    )
    job = lab.run(*words, user="games", cwd=work).stdout.strip()
    try:
        folder = work / ".slurm-fair" / job
        wait_until(folder.is_dir, 20, "the job has made its folder")
        folder.parent.chmod(0o711)
        folder.chmod(0o711)
        assert any(
            "hears the answers of running jobs (1 looked at)" in what for what in told(lab, config, "ok")
        )
        folder.parent.chmod(0o777)
        (warned,) = [what for what in told(lab, config, "warning") if "answers" in what]
        assert f"job {job}: {folder.parent} is not its user's alone" in warned
    finally:
        lab.run("scancel", job)


def told(lab: Lab, config: Path, level: str) -> list[str]:
    """The findings of one level."""
    return [f["what"] for f in check(lab, config)[1]["findings"] if f["level"] == level]


def test_without_slurmdbd_it_warns_and_without_slurmctld_it_fails_and_says_so(lab: Lab, config: Path) -> None:
    lab.halt("slurmdbd")
    try:
        code, found = check(lab, config)
        warned = [f["what"] for f in found["findings"] if f["level"] == "warning"]
        assert code == 0
        assert any(what.startswith("accounting does not answer") for what in warned)
        lab.halt("slurmctld")
        code, found = check(lab, config)
        failed = [f["what"] for f in found["findings"] if f["level"] == "error"]
        assert code == 1
        assert [what.split(" (")[0] for what in failed] == ["Slurm does not answer"]
    finally:
        lab.revive("slurmdbd")
        lab.revive("slurmctld")
        lab.wait_idle_nodes()
