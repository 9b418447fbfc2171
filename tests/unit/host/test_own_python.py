"""A Python of our own: from its installation alone, with none of our settings."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from slurm_fair.host.own_python import FOLDER, our_environment, our_program
from slurm_fair.slurm.command import SAFE_PATH

HOSTILE = (
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PYTHONHOME",
    "LD_PRELOAD",
    "SLURM_JOB_ID",
    "SQUEUE_FORMAT",
    "BASH_ENV",
)


def test_words_are_handed_on_as_they_are() -> None:
    words = ("--config", "a b=\x1b[31m", "-c", "")
    python, *rest = our_program(*words)
    assert python == sys.executable
    assert rest == ["-I", "-m", "slurm_fair.cli", *words]


def test_the_environment_holds_what_is_needed_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in HOSTILE:
        monkeypatch.setenv(name, "/tmp/evil")
    for name in ("SLURM_CONF", "TZ"):
        monkeypatch.delenv(name, raising=False)
    assert our_environment().keys() == {"PATH", "HOME", "LC_ALL"}
    assert (our_environment()["HOME"], our_environment()["LC_ALL"]) == ("/", "C.UTF-8")


@pytest.mark.parametrize("value", ["/etc/slurm/slurm.conf", "", "a=b"])
def test_the_sites_configuration_and_zone_are_kept_as_they_are(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SLURM_CONF", "TZ"):
        monkeypatch.setenv(name, value)
    assert [our_environment()[name] for name in ("SLURM_CONF", "TZ")] == [value, value]


@pytest.mark.parametrize("path", ["", ".", "bin:..:/opt/bin", ":/opt/bin:", "~/bin:/opt/bin"])
def test_programs_are_looked_for_in_no_folder_that_hangs_on_where_we_are(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", path)
    entries = our_environment()["PATH"].split(":")
    assert [entry for entry in entries if not entry.startswith("/")] == []
    assert ("/opt/bin" in entries) is ("/opt/bin" in path)
    assert entries[-len(SAFE_PATH.split(":")) :] == SAFE_PATH.split(":")


def test_without_a_path_the_usual_places_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PATH")
    assert our_environment()["PATH"] == SAFE_PATH


def test_a_process_of_ours_hears_no_wish_about_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "evil.py").write_text("print('hostile')\n")
    for name in ("PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONWARNINGS", "PYTHONPATH"):
        monkeypatch.setenv(name, str(tmp_path / "evil.py"))
    python, isolated, *_ = our_program()
    asked = (
        "import os, sys; print(sys.flags.isolated, sys.flags.inspect, os.getcwd(), sorted(sys.warnoptions))"
    )
    done = subprocess.run(
        (python, isolated, "-c", asked),
        env=our_environment(),
        cwd=FOLDER,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "1 0 / []\n", "")
