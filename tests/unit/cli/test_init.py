"""`slurm-fair init`: a configuration that cannot drift from the code, and files that are never written over."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from slurm_fair.cli.init import _make_folders
from slurm_fair.cli.site_files import InitChoices, deadman_seconds, files, folders, hook_text, unit
from slurm_fair.config.lease import LeaseSection
from slurm_fair.config.sections import Config, ScopeSection, SlurmSection, StorageSection
from slurm_fair.config.tree import from_tree, load_config
from slurm_fair.config.words import KEYS, SECTIONS, commented_file, explained_policies, keys, policy_keys
from slurm_fair.errors import InputError
from slurm_fair.policy.setting_words import explanation_of
from tests.support.command_line import Said, call

ALL = (
    "etc/slurm/slurm-fair.toml",
    "etc/slurm/slurm_fair_gate.lua",
    "etc/slurm/job_submit.lua",
    "etc/systemd/system/slurm-fair.service",
    "etc/systemd/system/slurm-fair-deadman.service",
    "etc/systemd/system/slurm-fair-deadman.timer",
    "etc/slurm/slurm_fair_wake.sh",
)


@pytest.fixture(autouse=True)
def no_slurm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No Slurm to ask, and none of its files to lie beside."""
    monkeypatch.delenv("SLURM_CONF", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))


def init(root: Path, *arguments: str) -> Said:
    """`slurm-fair init` below a folder."""
    return call("init", "--dir", str(root), *arguments)


def wishes(config: Config | None = None, account: str = "slurm-fair") -> InitChoices:
    return InitChoices(
        config or Config(), Path("/etc/slurm/slurm-fair.toml"), Path("/etc/slurm"), account, {}
    )


def test_every_key_and_section_has_its_words_and_no_word_is_left_over() -> None:
    assert list(KEYS) == [f"{section}.{key}" for section, key, _ in keys()]
    assert list(SECTIONS) == list(dict.fromkeys(section for section, _, _ in keys()))
    assert all(len(text) > 10 and not text.endswith(".") for text in KEYS.values())


def test_every_setting_of_a_policy_that_is_written_out_has_its_words() -> None:
    assert explained_policies() == ["fair", "astraea"]
    for policy in explained_policies():
        words = explanation_of(policy)
        assert words is not None
        assert list(words.of) == [key for key, _ in policy_keys(policy)]
        assert all(len(text) > 10 and not text.endswith(".") for text in words.of.values())


def test_the_written_file_means_the_defaults_also_with_every_default_in_force(tmp_path: Path) -> None:
    text = commented_file({})
    assert from_tree(tomllib.loads(text), "built-in defaults") == Config()
    bare = re.sub(r"(?m)^#(?=\w+ = |\[)", "", text)
    path = tmp_path / "c.toml"
    path.write_text(bare)
    config = load_config(path)
    assert replace(config, source="built-in defaults", policy=Config().policy) == Config()
    assert config.policy.name == Config().policy.name
    assert config.policy.settings["astraea"] == dict(policy_keys("astraea"))
    assert bare.count(" = ") >= len(KEYS) - 1


def test_only_what_was_given_is_in_force_and_partitions_stand_as_an_example() -> None:
    text = commented_file({"slurm.gate": "hold"}, ("gpu", "a100"))
    assert tomllib.loads(text)["slurm"] == {"gate": "hold"}
    assert tomllib.loads(text)["scope"] == {}
    assert '# with GPUs in this cluster: ["gpu", "a100"]' in text


def test_all_files_are_written_once_and_a_second_time_nothing_is_done(tmp_path: Path) -> None:
    first = init(tmp_path)
    assert (first.code, first.err) == (0, "")
    assert sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()) == sorted(
        ALL
    )
    modes = {name: (tmp_path / name).stat().st_mode & 0o777 for name in ALL}
    assert modes == {**dict.fromkeys(ALL, 0o644), "etc/slurm/slurm_fair_wake.sh": 0o755}
    stamps = {name: (tmp_path / name).stat().st_mtime_ns for name in ALL}
    second = init(tmp_path)
    assert (second.code, second.out.splitlines()[-1]) == (0, "everything is there already")
    assert stamps == {name: (tmp_path / name).stat().st_mtime_ns for name in ALL}


def test_a_file_in_the_way_keeps_everything_from_being_written_and_force_replaces_it(tmp_path: Path) -> None:
    mine = tmp_path / ALL[3]
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    said = init(tmp_path)
    assert said.code == 1
    assert str(mine) in said.complaint
    assert "--force" in said.complaint
    assert mine.read_text() == "mine"
    assert not (tmp_path / ALL[0]).exists()
    assert init(tmp_path, "--force").code == 0
    assert "ExecStart=" in mine.read_text()


def test_a_submit_hook_of_the_sites_own_is_not_replaced_even_by_force(tmp_path: Path) -> None:
    own = tmp_path / "etc/slurm/job_submit.lua"
    own.parent.mkdir(parents=True)
    own.write_text("-- ours for ten years\n")
    said = init(tmp_path, "--force")
    assert said.code == 0
    assert own.read_text() == "-- ours for ten years\n"
    assert "your own" in said.out
    assert (tmp_path / "etc/slurm/slurm_fair_gate.lua").exists()


def test_print_writes_nothing_and_one_file_comes_without_a_heading(tmp_path: Path) -> None:
    said = init(tmp_path, "--print")
    assert said.code == 0
    assert [line for line in said.out.splitlines() if line.startswith("==> ")] == [
        f"==> {tmp_path / name} <==" for name in ALL
    ]
    assert list(tmp_path.iterdir()) == []
    alone = init(tmp_path, "--print", "--only", "config", "--gate", "hold")
    assert tomllib.loads(alone.out)["slurm"]["gate"] == "hold"


def test_a_configuration_that_is_there_decides_what_hook_and_units_say(tmp_path: Path) -> None:
    there = tmp_path / "etc/slurm/slurm-fair.toml"
    there.parent.mkdir(parents=True)
    there.write_text(
        '[scope]\npartitions = ["gpu"]\n[lease]\nterm = 120\n'
        '[slurm]\ngate = "hold"\n[storage]\ndir = "/srv/fair"\n'
    )
    said = init(tmp_path, "--only", "plugin", "--only", "units")
    assert said.code == 0
    written = {name: (tmp_path / name).read_text() for name in ALL[1:]}
    assert 'partitions = {"gpu"},' in written[ALL[2]]
    assert 'gate = "hold",' in written[ALL[2]]
    assert "gate_seconds = 240," in written[ALL[2]]
    assert "ReadWritePaths=/srv/fair" in written[ALL[3]]
    assert "OnUnitInactiveSec=12" in written[ALL[5]]


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "etc").write_text("a file")
    said = init(tmp_path)
    assert said.code == 2
    assert str(tmp_path / "etc") in said.complaint


@pytest.mark.parametrize(
    ("config", "lines"),
    [
        (Config(), ["partitions = {},", 'gate = "begin",', "gate_seconds = 1800,"]),
        (Config(scope=ScopeSection(accounts=("a", 'b"c'))), ['accounts = {"a", "b\\"c"},']),
        (
            Config(slurm=SlurmSection(gate="hold"), lease=LeaseSection(term=60)),
            ['gate = "hold",', "gate_seconds = 120,"],
        ),
    ],
)
def test_the_hook_says_what_the_configuration_says(config: Config, lines: list[str]) -> None:
    text = hook_text(config)
    for line in lines:
        assert line in text


@pytest.mark.parametrize(("term", "seconds"), [(900, 60), (60, 6), (4, 1), (86_400, 60)])
def test_the_dead_man_looks_often_enough_to_act_within_a_lease(term: float, seconds: int) -> None:
    assert deadman_seconds(Config(lease=LeaseSection(term=term))) == seconds
    assert 0.75 * term + seconds <= max(term, 4)


def test_the_units_name_account_configuration_and_the_places_that_may_be_written() -> None:
    config = Config(
        storage=StorageSection(dir="/var/lib/fair/x"), lease=LeaseSection(publish_dir="/shared/fair")
    )
    text = unit("slurm-fair.service", wishes(config, "ctl"))
    assert "User=ctl\n" in text
    assert "-I -m slurm_fair.cli --config /etc/slurm/slurm-fair.toml run --no-deadman\n" in text
    assert "StateDirectory=fair/x\nStateDirectoryMode=0750\nReadWritePaths=-/shared/fair\n" in text
    assert "@" not in text.replace("@system-service", "").replace("@privileged @resources", "")
    for line in ("NoNewPrivileges=yes", "ProtectSystem=strict", "ProtectHome=read-only", "WatchdogSec=180"):
        assert line in text


def test_what_users_read_lies_in_a_folder_that_only_the_daemons_unit_makes_and_that_outlives_it() -> None:
    made = "RuntimeDirectory=slurm-fair\nRuntimeDirectoryMode=0755\nRuntimeDirectoryPreserve=yes\n"
    assert made in unit("slurm-fair.service", wishes())
    assert "RuntimeDirectory" not in unit("slurm-fair-deadman.service", wishes())
    without = unit("slurm-fair.service", wishes(Config(lease=LeaseSection(publish_dir=""))))
    assert ("RuntimeDirectory" in without, "ReadWritePaths" in without) == (False, False)


@pytest.mark.parametrize("name", ["slurm-fair.service", "slurm-fair-deadman.service"])
def test_a_unit_names_the_slurm_conf_that_slurm_would_not_find_by_itself(name: str) -> None:
    here = replace(wishes(), slurm_conf=Path('/opt/a "b"%c/slurm.conf'))
    assert 'Environment="SLURM_CONF=/opt/a \\"b\\"%%c/slurm.conf"\n' in unit(name, here)
    assert "SLURM_CONF" not in unit(name, wishes())


def test_a_slurm_that_lies_elsewhere_is_found_by_the_services_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm = tmp_path / "opt"
    (slurm / "bin").mkdir(parents=True)
    (slurm / "slurm.conf").write_text("ClusterName=x\n")
    (slurm / "bin" / "scontrol").write_text("#!/bin/sh\nexit 1\n")
    (slurm / "bin" / "scontrol").chmod(0o755)
    monkeypatch.setenv("SLURM_CONF", str(slurm / "slurm.conf"))
    monkeypatch.setenv("PATH", str(slurm / "bin"))
    root = tmp_path / "root"
    assert init(root).code == 0
    config = load_config(root / ALL[0])
    assert (config.slurm.conf, config.slurm.bin_dir) == (str(slurm / "slurm.conf"), str(slurm / "bin"))
    for name in ("slurm-fair.service", "slurm-fair-deadman.service"):
        text = (root / "etc/systemd/system" / name).read_text()
        assert f'Environment="SLURM_CONF={slurm}/slurm.conf"\n' in text
    again = init(root)
    assert (again.code, again.out.splitlines()[-1]) == (0, "everything is there already")


def test_it_says_who_does_what_next_and_how_the_folders_are_made(tmp_path: Path) -> None:
    said = init(tmp_path, "--account", "ctl").out
    for line in (
        "sacctmgr -i add user ctl account=root adminlevel=operator",
        "install -d -o ctl -m 0750 /var/lib/slurm-fair",
        "install -d -o ctl -m 0755 /run/slurm-fair",
        "sudo -u ctl slurm-fair run --dry-run",
        "slurm-fair init --only plugin --force",
    ):
        assert line in said


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives folders away")
def test_root_makes_the_folders_for_an_account_that_is_there(tmp_path: Path) -> None:
    config = Config(
        storage=StorageSection(dir=f"{tmp_path}/a/storage"),
        lease=LeaseSection(publish_dir=f"{tmp_path}/b/published"),
    )
    before = os.umask(0o077)
    try:
        assert _make_folders(wishes(config, "nobody"), "/") == []
    finally:
        os.umask(before)
    made = [Path(name).stat() for name, _ in folders(config)]
    assert [(found.st_uid, found.st_mode & 0o7777) for found in made] == [(65534, 0o750), (65534, 0o755)]
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in "ab"] == [0o755, 0o755]
    assert _make_folders(wishes(config, "no-such-account"), "/") == []
    absent = replace(config, storage=StorageSection(dir=f"{tmp_path}/c"))
    assert _make_folders(wishes(absent, "no-such-account"), "/") == [
        f"install -d -o no-such-account -m 0750 {tmp_path}/c"
    ]


def test_a_configuration_at_a_relative_path_is_refused() -> None:
    said = call("--config", "/etc/fair.toml", "init", "--print")
    assert "--config /etc/fair.toml is of the other commands" in said.complaint
    assert "`slurm-fair init --config-path /etc/fair.toml`" in said.complaint
    said = call("init", "--print", "--config-path", "fair.toml")
    assert (said.code, said.out) == (2, "")
    assert "--config-path fair.toml must be absolute" in said.complaint


def test_an_account_that_is_no_name_is_refused() -> None:
    with pytest.raises(InputError, match="no name of a Unix account"):
        files(wishes(account="root\nUser=evil"))


ANALYZE = shutil.which("systemd-analyze")


@pytest.mark.skipif(ANALYZE is None, reason="systemd-analyze is not on this machine")
@pytest.mark.parametrize("name", ["slurm-fair.service", "slurm-fair-deadman.service"])
def test_systemd_finds_the_units_well_shut(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(unit(name, wishes()))
    asked = subprocess.run(
        [str(ANALYZE), "security", "--offline=true", "--threshold=25", str(tmp_path / name)],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PATH": "/usr/bin:/bin"},
        check=False,
    )
    if "unrecognized option" in asked.stderr:
        pytest.skip("this systemd-analyze judges no files")
    level = re.search(r"exposure level for \S+: ([0-9.]+)", asked.stdout)
    assert level is not None, asked.stderr
    assert float(level[1]) <= 2.5
