"""Findings about other daemons tell one that acts from one that is gone, and both from this storage's own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from slurm_fair.config.sections import Config, SlurmSection
from slurm_fair.doctor import Finding
from slurm_fair.doctor.rivals import findings
from slurm_fair.host.state_folder import Places
from slurm_fair.slurm.notice import Notice, identity_of
from tests.support.site_facts import ERROR, FACTS, OK, WARNING, worst


def _notice(job: int = 5, identity: str = "0123456789abcdef", until: float = FACTS.now + 1) -> Notice:
    return Notice(job, identity, until, "other", "77", "/var/lib/other")


def _found(tmp_path: Path, *notices: Notice, silence: str = "", notice: bool = True) -> list[Finding]:
    config = Config(slurm=SlurmSection(notice=notice))
    seen = replace(FACTS, places=Places(tmp_path), notices=notices, silence=silence, config=config)
    return list(findings(seen))


def test_another_daemon_that_acts_is_an_error_and_named(tmp_path: Path) -> None:
    found = _found(tmp_path, _notice(5), _notice(6, "f" * 16))
    assert [finding.level for finding in found] == [ERROR, ERROR]
    assert "pid 77 on other with /var/lib/other (job 5 in the queue says so)" in found[0].what
    assert "job 6" in found[1].what


@pytest.mark.parametrize(("late", "level"), [(0.0, OK), (-5.0, OK), (0.1, ERROR)])
def test_a_notice_that_has_run_out_counts_no_more(tmp_path: Path, late: float, level: object) -> None:
    found = _found(tmp_path, _notice(until=FACTS.now + late))
    assert worst(found) is level
    if level is OK:
        assert found[0].what == "no other daemon acts on this cluster (no daemon has marked it)"


def test_the_daemon_of_this_storage_is_no_rival(tmp_path: Path) -> None:
    ours = _notice(identity=identity_of(tmp_path))
    (found,) = _found(tmp_path, ours)
    assert found.what.endswith("(this storage's own daemon has marked it)")
    assert [f.level for f in _found(tmp_path, ours, _notice(6))] == [ERROR]
    elsewhere = _found(tmp_path / "elsewhere", ours)
    assert [f.level for f in elsewhere] == [ERROR]


def test_nobody_at_all_is_fine(tmp_path: Path) -> None:
    (found,) = _found(tmp_path)
    assert (found.level, "no daemon has marked it" in found.what) == (OK, True)


def test_a_site_without_notices_is_warned(tmp_path: Path) -> None:
    assert [finding.level for finding in _found(tmp_path, notice=False)] == [OK, WARNING]
    assert [finding.level for finding in _found(tmp_path, _notice(), notice=False)] == [ERROR, WARNING]


def test_where_notices_cannot_be_seen_nothing_is_claimed(tmp_path: Path) -> None:
    seen = replace(FACTS, places=Places(tmp_path), notices="whether another daemon acts cannot be seen: no")
    (found,) = findings(seen)
    assert (found.level, found.what) == (WARNING, "whether another daemon acts cannot be seen: no")
    assert _found(tmp_path, _notice(), silence="no answer") == []
