"""The files of a site say what its configuration says, whatever letters its paths have."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from slurm_fair.cli import site_files
from slurm_fair.cli.site_files import (
    InitChoices,
    deadman_seconds,
    files,
    folders,
    hook_text,
    source,
    unit,
    wake_script,
)
from slurm_fair.config.lease import LeaseSection
from slurm_fair.config.sections import Config, ScopeSection, SlurmSection, StorageSection
from slurm_fair.errors import InputError


def _choices(
    config: Config | None = None, account: str = "slurm-fair", at: str = "/etc/slurm"
) -> InitChoices:
    return InitChoices(config or Config(), Path(at) / "slurm-fair.toml", Path(at), account, {})


def _published(folder: str) -> Config:
    return Config(lease=LeaseSection(publish_dir=folder))


def test_each_file_has_its_kind_place_and_mode() -> None:
    made = {file.path.name: file for file in files(_choices(at="/opt/etc"))}
    assert {name: (file.kind, str(file.path.parent)) for name, file in made.items()} == {
        "slurm-fair.toml": ("config", "/opt/etc"),
        "slurm_fair_gate.lua": ("plugin", "/opt/etc"),
        "job_submit.lua": ("plugin", "/opt/etc"),
        "slurm_fair_wake.sh": ("plugin", "/opt/etc"),
        "slurm-fair.service": ("units", "/etc/systemd/system"),
        "slurm-fair-deadman.service": ("units", "/etc/systemd/system"),
        "slurm-fair-deadman.timer": ("units", "/etc/systemd/system"),
    }
    assert {file.mode for file in made.values() if file.path.suffix != ".sh"} == {0o644}
    assert made["slurm_fair_wake.sh"].mode == 0o755
    assert made["slurm_fair_gate.lua"].text == source("slurm_fair_gate.lua")


@pytest.mark.parametrize("account", ["a", "_slurm", "slurm-fair", "a" * 32])
def test_a_name_of_an_account_is_taken(account: str) -> None:
    unit_file = next(file for file in files(_choices(account=account)) if file.path.suffix == ".service")
    assert f"\nUser={account}\n" in unit_file.text


@pytest.mark.parametrize(
    "account", ["", "a" * 33, "0a", "-a", "Slurm", "a b", "a\n", "a\nUser=root", "a%i", "é", "a.b"]
)
def test_what_is_no_name_of_an_account_is_refused(account: str) -> None:
    with pytest.raises(InputError, match="is no name of a Unix account"):
        files(_choices(account=account))


@pytest.mark.parametrize(
    ("term", "seconds"), [(1.0, 1), (9.9, 1), (19.9, 1), (20.0, 2), (599.0, 59), (600.0, 60), (1e12, 60)]
)
def test_the_dead_man_looks_ten_times_in_a_lease_and_once_a_minute_at_least(
    term: float, seconds: int
) -> None:
    config = Config(lease=LeaseSection(term=term))
    assert deadman_seconds(config) == seconds
    text = unit("slurm-fair-deadman.timer", _choices(config))
    assert f"OnUnitInactiveSec={seconds}\n" in text
    assert f"every {seconds} s" in text


def test_the_hook_has_every_setting_of_the_site() -> None:
    scope = ScopeSection(
        partitions=("gpu", 'a"b', "c\\d"),
        accounts=("é",),
        qos=("high",),
        plain="own",
        interactive="gate",
        unplanned="refuse",
    )
    config = Config(scope=scope, lease=LeaseSection(term=100.3, interval=7.0, publish_dir='/run/a "b"'))
    text = hook_text(config)
    for line in (
        'partitions = {"gpu", "a\\"b", "c\\\\d"},',
        'accounts = {"é"},',
        'qos = {"high"},',
        'gate = "begin",',
        "gate_seconds = 201,",
        "near_seconds = 14,",
        'plain = "own",',
        'interactive = "gate",',
        'unplanned = "refuse",',
        'health = "",',
        'wake = "/run/a \\"b\\"/wake-up",',
    ):
        assert line in text, line


def test_only_a_hook_that_holds_jobs_looks_whether_the_daemon_acts() -> None:
    held = Config(slurm=SlurmSection(gate="hold"))
    assert 'health = "/run/slurm-fair/health.json",' in hook_text(held)
    nowhere = Config(slurm=SlurmSection(gate="hold"), lease=LeaseSection(publish_dir=""))
    assert 'health = "",' in hook_text(nowhere)
    assert 'wake = "",' in hook_text(nowhere)


HOSTILE = (
    "/run/fair",
    "/run/a b",
    "/run/$HOME",
    "/run/`id`",
    '/run/a"b',
    "/run/a\\b",
    "/run/a'b",
    "/run/$(id);#é",
)


@pytest.mark.parametrize("folder", HOSTILE)
def test_a_shell_reads_the_place_of_the_bell_back(folder: str) -> None:
    text = wake_script(_published(folder))
    assignment = next(line for line in text.splitlines() if line.startswith("bell="))
    said = subprocess.run(
        [shutil.which("sh") or "/bin/sh", "-c", f'{assignment}\nprintf "%s" "$bell"'],
        capture_output=True, text=True, timeout=20, check=True,
    ).stdout  # fmt: skip
    assert said == f"{folder}/wake-up"


def test_without_a_folder_there_is_no_bell() -> None:
    assert '\nbell=""\n' in wake_script(_published(""))


@pytest.mark.parametrize(
    ("storage", "lines"),
    [
        ("/var/lib/fair", "StateDirectory=fair\nStateDirectoryMode=0750\n"),
        ("/var/lib/a/b", "StateDirectory=a/b\nStateDirectoryMode=0750\n"),
        ("/var/lib", "ReadWritePaths=/var/lib\n"),
        ("/var/library/x", "ReadWritePaths=/var/library/x\n"),
        ("/data/my fair", 'ReadWritePaths="/data/my fair"\n'),
        ("/var/lib/my fair", 'StateDirectory="my fair"\nStateDirectoryMode=0750\n'),
        ("/data/50%h", "ReadWritePaths=/data/50%%h\n"),
        ('/a"b\\c/@CONFIG@', 'ReadWritePaths="/a\\"b\\\\c/@CONFIG@"\n'),
    ],
)
def test_the_daemon_and_its_dead_man_may_write_the_journals_folder(storage: str, lines: str) -> None:
    config = Config(storage=StorageSection(dir=storage))
    for name in ("slurm-fair.service", "slurm-fair-deadman.service"):
        assert f"\n{lines}" in unit(name, _choices(config))


@pytest.mark.parametrize(
    ("published", "line"),
    [
        ("/run/a/b", "RuntimeDirectory=a/b\n"),
        ("/run", "ReadWritePaths=-/run\n"),
        ("/running/x", "ReadWritePaths=-/running/x\n"),
        ("/shared/my fair", 'ReadWritePaths="-/shared/my fair"\n'),
        ("/run/my fair", 'RuntimeDirectory="my fair"\n'),
    ],
)
def test_what_users_read_may_be_written_by_the_daemon_alone(published: str, line: str) -> None:
    choices = _choices(_published(published))
    assert f"\n{line}" in unit("slurm-fair.service", choices)
    assert line not in unit("slurm-fair-deadman.service", choices)


def test_a_configuration_with_blanks_in_its_path_is_one_word() -> None:
    text = unit("slurm-fair.service", _choices(at="/etc/my slurm"))
    assert ' --config "/etc/my slurm/slurm-fair.toml" run --no-deadman\n' in text


def test_systemd_replaces_nothing_in_a_path() -> None:
    """It would take % for a word of its own, and $ for a variable of the command; nor do we fill in a path."""
    text = unit("slurm-fair.service", _choices(at="/etc/@STATE@/100%d/$HOME"))
    assert ' --config "/etc/@STATE@/100%%d/$$HOME/slurm-fair.toml" run --no-deadman\n' in text


def test_folders_have_their_own_modes_and_one_that_is_not_wanted_is_not_made() -> None:
    assert folders(Config()) == (("/var/lib/slurm-fair", "0750"), ("/run/slurm-fair", "0755"))
    assert folders(_published("")) == (("/var/lib/slurm-fair", "0750"),)


def test_a_file_that_lost_a_setting_is_not_written_half_filled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(site_files.SOURCES, tmp_path / "files")
    monkeypatch.setattr(site_files, "SOURCES", tmp_path / "files")
    hook = tmp_path / "files" / "job_submit.lua"
    assert hook_text(Config())
    hook.write_text(hook.read_text().replace("near_seconds = 20,", "near_seconds = 21,"))
    with pytest.raises(InputError, match=r"has no near_seconds = 20,: install slurm_fair again"):
        hook_text(Config())


def test_names_are_written_as_they_are_read() -> None:
    """A list of names reads as what it was made of."""
    names = ("gpu", 'a"b', "c\\d", "é")
    text = hook_text(Config(scope=ScopeSection(accounts=names)))
    line = next(line for line in text.splitlines() if line.strip().startswith("accounts = {"))
    inside = line[line.index("{") + 1 : line.rindex("}")]
    assert tuple(json.loads(f"[{inside}]")) == names
