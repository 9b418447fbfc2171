"""`slurm-fair init --force`, and places that cannot be: nothing that the site wrote is lost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.command_line import Said, call

CONFIG = "etc/slurm/slurm-fair.toml"
HOOK = "etc/slurm/job_submit.lua"


@pytest.fixture(autouse=True)
def no_slurm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No Slurm to ask, and none of its files to lie beside."""
    monkeypatch.delenv("SLURM_CONF", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))


def init(root: Path, *arguments: str) -> Said:
    """`slurm-fair init` below a folder."""
    return call("init", "--dir", str(root), *arguments)


def with_rule(path: Path, rule: str) -> str:
    """A file as the site has changed it."""
    text = path.read_text() + rule
    path.write_text(text)
    return text


@pytest.mark.parametrize("name", [CONFIG, HOOK, "etc/systemd/system/slurm-fair.service"])
def test_what_force_replaces_is_kept_beside_it_and_the_line_says_where(tmp_path: Path, name: str) -> None:
    init(tmp_path)
    path = tmp_path / name
    ours, theirs = path.read_text(), with_rule(path, "\n#-- my own rule\n")
    path.chmod(0o640)
    said = init(tmp_path, "--force")
    assert said.code == 0
    assert f"replaced  {path}, which is kept as {path}.old" in said.out.splitlines()
    assert (path.read_text(), path.stat().st_mode & 0o777) == (ours, 0o644)
    kept = Path(f"{path}.old")
    assert (kept.read_text(), kept.stat().st_mode & 0o777) == (theirs, 0o640)


def test_each_text_of_a_file_is_kept_once(tmp_path: Path) -> None:
    init(tmp_path)
    hook = tmp_path / HOOK
    ours = hook.read_text()
    for rule in ("-- one\n", "-- two\n", "-- one\n"):
        hook.write_text(ours + rule)
        assert init(tmp_path, "--only", "plugin", "--force").code == 0
    kept = {path.name: path.read_text() for path in hook.parent.glob("*.old*")}
    assert kept == {"job_submit.lua.old": f"{ours}-- one\n", "job_submit.lua.old-2": f"{ours}-- two\n"}


def test_a_copys_name_that_is_taken_by_anything_else_is_left_alone(tmp_path: Path) -> None:
    init(tmp_path)
    hook = tmp_path / HOOK
    with_rule(hook, "-- mine\n")
    hook.with_name("job_submit.lua.old").mkdir()
    hook.with_name("job_submit.lua.old-2").symlink_to("nowhere")
    assert f"kept as {hook}.old-3" in init(tmp_path, "--force").out


def test_a_hook_that_is_a_link_is_replaced_and_kept_where_it_leads(tmp_path: Path) -> None:
    init(tmp_path)
    hook, real = tmp_path / HOOK, tmp_path / "real.lua"
    hook.rename(real)
    hook.symlink_to(real)
    theirs = with_rule(real, "-- mine\n")
    assert f"kept as {real}.old" in init(tmp_path, "--force").out
    assert (hook.is_symlink(), Path(f"{real}.old").read_text()) == (True, theirs)


def test_without_force_nothing_is_replaced_and_no_copy_is_made(tmp_path: Path) -> None:
    init(tmp_path)
    theirs = with_rule(tmp_path / HOOK, "-- mine\n")
    said = init(tmp_path)
    assert (said.code, (tmp_path / HOOK).read_text()) == (1, theirs)
    assert "--force, which keeps a copy beside it" in said.complaint
    assert not list(tmp_path.rglob("*.old*"))


def test_a_hook_beside_a_configuration_that_is_replaced_says_the_new_one(tmp_path: Path) -> None:
    init(tmp_path)
    (tmp_path / CONFIG).write_text('[slurm]\ngate = "hold"\n[lease]\nterm = 60\n')
    init(tmp_path, "--only", "plugin", "--force")
    assert 'gate = "hold",' in (tmp_path / HOOK).read_text()
    init(tmp_path, "--force")
    assert 'gate = "begin",' in (tmp_path / HOOK).read_text()
    assert init(tmp_path).out.splitlines()[-1] == "everything is there already"


def test_a_link_to_nowhere_is_one_clear_line(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "gone")
    said = init(link)
    assert (said.code, said.out) == (2, "")
    assert f"{link} is a link to {tmp_path / 'gone'}, which is no folder" in said.complaint
    assert not os.path.lexists(tmp_path / "gone")


def test_a_slurm_conf_of_the_environment_that_is_not_there_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_CONF", "/nope/slurm.conf")
    said = init(tmp_path / "root")
    assert (said.code, said.out) == (2, "")
    assert "SLURM_CONF=/nope/slurm.conf is no file" in said.complaint
    assert not (tmp_path / "root").exists()
