"""Findings about this machine: Python, commands, pyslurm, policy, template."""

from __future__ import annotations

import stat
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from slurm_fair.config.sections import Config, PolicySection, SlurmSection
from slurm_fair.doctor import host
from tests.support.site_facts import ERROR, FACTS, OK, WARNING, facts, worst


@pytest.mark.parametrize(
    ("release", "good", "words"),
    [
        ((3, 11, 0, "final", 0), True, "Python 3.11.0"),
        ((3, 10, 99, "final", 0), False, "Python 3.10.99 is too old"),
        ((3, 9, 1), False, "Python 3.9.1 is too old"),
        ((4, 0, 0), True, "Python 4.0.0"),
    ],
)
def test_an_old_python_is_an_error(
    release: tuple[object, ...], good: bool, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slurm_fair.doctor.host.sys.version_info", release)
    found = host.python()
    assert (found.level, found.what) == (OK if good else ERROR, words)


def test_commands_that_are_missing_are_named_with_the_place_where_they_were_looked_for() -> None:
    found = host.commands(replace(FACTS, missing=("sacct", "sshare")))
    assert (found.level, found.what) == (ERROR, "not in the PATH: sacct, sshare")
    elsewhere = replace(FACTS, config=Config(slurm=SlurmSection(bin_dir="/opt/slurm/bin")))
    assert host.commands(elsewhere).what == "Slurm's commands are in /opt/slurm/bin"
    assert host.commands(replace(elsewhere, missing=("sacct",))).what == "not in /opt/slurm/bin: sacct"


@pytest.mark.parametrize(
    ("installed", "client", "level"),
    [
        ("25.11.1", "25.11.2", OK),
        ("22.5.0", "22.05.8", OK),
        ("25.5.0", "25.11.2", WARNING),
        ("24.11.0", "25.11.2", WARNING),
        ("24.11.0", "", OK),
        ("no version", "25.11.2", WARNING),
    ],
)
def test_pyslurm_fits_by_its_release(
    installed: str, client: str, level: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "version", lambda name: installed if name == "pyslurm" else "")
    found = host.pyslurm(replace(FACTS, client=client))
    assert found.level is level
    assert f"pyslurm {installed}" in found.what


def test_pyslurm_may_be_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(host, "version", absent)
    assert host.pyslurm(FACTS).level is OK


@pytest.mark.parametrize(
    ("section", "level", "words"),
    [
        (PolicySection(), OK, "policy fair loads"),
        (PolicySection(name="fifo"), OK, "policy fifo loads"),
        (PolicySection(name="no such policy"), ERROR, "policy no such policy: "),
        (PolicySection(name="fair", settings={"fair": {"no_such_key": 1}}), ERROR, "policy fair: "),
        (PolicySection(name="fifo", settings={"fair": {"no_such_key": 1}}), OK, "policy fifo loads"),
    ],
)
def test_a_policy_that_does_not_load_is_an_error(section: PolicySection, level: object, words: str) -> None:
    found = host.policy(facts(config=Config(policy=section)))
    assert found.level is level
    assert found.what.startswith(words)


def test_settings_of_policies_that_are_not_in_force_are_looked_at_too() -> None:
    settings = {"fair": {"no_such_key": 1}, "fifo": {}, "sjf": {}}
    seen = facts(config=Config(policy=PolicySection(name="fifo", settings=settings)))
    (found,) = host.other_policies(seen)
    assert (found.level, found.cure) == (ERROR, "mend or remove [policy.fair]")
    assert found.what.startswith("policy fair, which is not in force: ")


@pytest.mark.parametrize(("layer", "level"), [(None, OK), ("{% block x %}", ERROR)])
def test_a_layer_of_the_template_that_is_broken_is_an_error(
    layer: str | None, level: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    own = tmp_path / "slurm-fair" / "templates"
    own.mkdir(parents=True)
    if layer is not None:
        (own / "generic.sbatch.j2").write_text(layer)
        (own / "generic.sbatch.j2").chmod(stat.S_IRUSR | stat.S_IWUSR)
    assert host.template().level is level


def test_everything_is_looked_at_once() -> None:
    found = list(host.findings(FACTS))
    assert len(found) == 5
    assert worst(found[:2]) is OK
    assert "Python" in found[0].what
    assert "policy" in found[3].what
