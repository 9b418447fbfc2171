"""Findings about what users get: the submit hook, and the folder that they read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from slurm_fair.cli.site_files import hook_text as written_hook
from slurm_fair.config.lease import LeaseSection
from slurm_fair.config.sections import Config, ScopeSection, SlurmSection
from slurm_fair.doctor import Finding, Level, hook, published
from slurm_fair.host.state_folder import Places
from tests.support.site_facts import ERROR, OK, WARNING, facts


@pytest.mark.parametrize(
    ("text", "gate", "level", "words"),
    [
        (None, "begin", OK, "cannot be read"),
        ("function slurm_job_submit() end", "begin", WARNING, "does not call"),
        ('  gate = "begin",\n slurm_fair_gate()', "begin", WARNING, "does not call slurm_fair_keep"),
        ('  gate = "begin",\n slurm_fair_gate() slurm_fair_keep()', "begin", OK, "gates jobs"),
        (
            '  gate = "begin",\n slurm_fair_gate() slurm_fair_keep()',
            "hold",
            WARNING,
            "gate = \"begin\", [slurm] gate is 'hold'",
        ),
    ],
)
def test_the_submit_hook(tmp_path: Path, text: str | None, gate: str, level: Level, words: str) -> None:
    if text is not None:
        (tmp_path / "job_submit.lua").write_text(text)
    seen = replace(
        facts({"JobSubmitPlugins": "lua"}, Config(slurm=SlurmSection(gate=gate))),
        conf=tmp_path / "slurm.conf",
    )
    found = hook.hook(seen)
    assert (found.level, words in found.what) == (level, True)


def test_a_hold_gate_without_a_hook_is_a_warning() -> None:
    assert hook.hook(facts()).level is OK
    assert hook.hook(facts(config=Config(slurm=SlurmSection(gate="hold")))).level is WARNING


HOOK = """
local settings = {
  partitions = {"gpu"},     -- managed partitions
  accounts = {},
  gate = "begin",      -- how
  gate_seconds = 1800, -- two leases
  near_seconds = 20,
  plain = "quota",
}
slurm_fair_gate()
slurm_fair_keep()
"""


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (Config(scope=ScopeSection(partitions=("gpu",))), []),
        (Config(), ["partitions = gpu, [scope] says all"]),
        (
            Config(scope=ScopeSection(partitions=("gpu",), accounts=("a",))),
            ["accounts = all, [scope] says a"],
        ),
        (
            Config(scope=ScopeSection(partitions=("gpu",)), lease=LeaseSection(term=600)),
            ["gate_seconds = 1800, two leases are 1200 s"],
        ),
        (
            Config(scope=ScopeSection(partitions=("gpu",), plain="leave", interactive="gate")),
            [
                "plain = \"quota\", [scope] plain is 'leave'",
                "interactive is not named, [scope] interactive is 'gate'",
            ],
        ),
        (
            Config(scope=ScopeSection(partitions=("gpu",)), lease=LeaseSection(interval=30)),
            ["near_seconds = 20, two intervals are 60 s"],
        ),
    ],
)
def test_a_hook_that_does_not_follow_the_configuration_is_told_of(config: Config, told: list[str]) -> None:
    assert list(hook.differences(HOOK, config)) == told


def test_a_hook_that_would_hold_jobs_while_no_daemon_acts_is_told_of() -> None:
    written = written_hook(Config(slurm=SlurmSection(gate="begin"))).replace(
        'gate = "begin"', 'gate = "hold"'
    )
    (told,) = hook.differences(written, Config(slurm=SlurmSection(gate="hold")))
    assert told == 'health = "", the controller says it in "/run/slurm-fair/health.json"'


@pytest.mark.parametrize(
    "config",
    [
        Config(),
        Config(
            scope=ScopeSection(("g", 'a"b'), ("x",)),
            lease=LeaseSection(term=450.2),
            slurm=SlurmSection(gate="hold"),
        ),
    ],
)
def test_the_hook_that_init_writes_follows_the_configuration(config: Config) -> None:
    assert list(hook.differences(written_hook(config), config)) == []


# -- what is published ----------------------------------------------------------------------------------------


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """One that users can reach, as /tmp/pytest-of-root is not."""
    with TemporaryDirectory(prefix="slurm-fair-", dir="/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def publishing(
    folder: Path, source: Path | None = None, uid: int | None = None, **slurm: str
) -> list[Finding]:
    """The findings about publishing there."""
    config = replace(
        Config(lease=LeaseSection(publish_dir=str(folder))), source=str(source or "built-in defaults")
    )
    seen = facts(slurm, config, uid=os.geteuid() if uid is None else uid)
    return list(published.findings(seen))


def test_a_sound_folder_and_who_learns_what(open_folder: Path) -> None:
    place, audience = publishing(open_folder)
    assert (place.level, "users can read it" in place.what) == (OK, True)
    assert "all jobs with users, tenants and reasons" in audience.what
    (_, audience) = publishing(open_folder, PrivateData="jobs,usage")
    assert "without names of users, tenants and QOS" in audience.what
    assert "hides jobs, usage" in audience.what


@pytest.mark.parametrize(
    ("mode", "level", "words"),
    [
        (0o777, ERROR, "others can change it (mode 0777)"),
        (0o1777, ERROR, "others can change it"),
        (0o775, ERROR, "others can change it"),
        (0o750, WARNING, "users cannot read it"),
        (0o711, WARNING, "users cannot read it"),
    ],
)
def test_a_folder_that_others_change_or_users_cannot_read(
    mode: int, level: Level, words: str, open_folder: Path
) -> None:
    open_folder.chmod(mode)
    found = publishing(open_folder)[0]
    assert (found.level, words in found.what) == (level, True)
    assert str(open_folder) in found.cure


def test_a_folder_that_is_absent_or_somebody_elses_is_told_with_the_line_that_makes_it(
    open_folder: Path,
) -> None:
    absent = publishing(open_folder / "none")[0]
    assert (absent.level, absent.cure) == (WARNING, f"install -d -o ctl -m 0755 {open_folder}/none")
    other = publishing(open_folder, uid=12345)[0]
    assert (other.level, "run this as the daemon's account" in other.cure) == (WARNING, True)


@pytest.mark.parametrize("below", ["", "/below"])
def test_what_is_no_folder_cannot_be_published_to(open_folder: Path, below: str) -> None:
    (open_folder / "file").write_text("")
    found = publishing(Path(f"{open_folder}/file{below}"))[0]
    assert (found.level, "install" in found.cure) == (ERROR, False)
    assert found.what.endswith(f"{open_folder}/file is no folder")


def test_the_folder_of_the_journal_and_the_root_are_no_place_to_publish(open_folder: Path) -> None:
    found = publishing(Path("/"))[0]
    assert (found.level, found.what) == (WARNING, "[lease] publish_dir is / itself")
    config = Config(lease=LeaseSection(publish_dir=str(open_folder)))
    seen = replace(facts({}, config, uid=os.geteuid()), places=Places(open_folder))
    found = next(published.findings(seen))
    assert (found.level, found.what) == (WARNING, "[lease] publish_dir is the folder of the journal")


def test_a_site_that_publishes_nothing_is_told_so() -> None:
    (found,) = published.findings(facts(config=Config(lease=LeaseSection(publish_dir=""))))
    assert (found.level, "nothing is published" in found.what) == (OK, True)


def test_a_configuration_that_users_cannot_read_is_told_of(open_folder: Path) -> None:
    config = open_folder / "slurm-fair.toml"
    config.write_text("")
    config.chmod(0o600)
    found = publishing(open_folder, config)[1]
    assert (found.level, found.cure) == (WARNING, f"chmod o+r {config}")
    config.chmod(0o644)
    assert len(publishing(open_folder, config)) == 2
