"""A visit of the doctor: every area is asked, in its order, and Slurm's silence ends it early."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from slurm_fair.config.sections import Config, SlurmSection
from slurm_fair.doctor import Diagnosis, Finding, Level, examine
from slurm_fair.doctor.examine import AREAS, diagnose
from slurm_fair.doctor.facts import Facts
from slurm_fair.host.state_folder import Places
from tests.support.site_facts import ERROR, FACTS, OK, WARNING, facts

NAMES = [name for name, _ in AREAS]


def diagnosis(*levels: Level) -> Diagnosis:
    cures = {OK: "", WARNING: "do this", ERROR: "do this"}
    return Diagnosis(tuple(("here", Finding(level, "found", cures[level])) for level in levels))


def site(folder: Path, *programs: str) -> Config:
    """A site with these programs of Slurm, which all fail."""
    folder.mkdir()
    for name in programs:
        (folder / name).write_text("#!/bin/sh\necho 'Unable to contact slurm controller' >&2\nexit 1\n")
        (folder / name).chmod(0o755)
    return Config(slurm=SlurmSection(bin_dir=str(folder)))


# -- what was found -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("levels", "sound"),
    [((), True), ((OK, WARNING), True), ((OK, WARNING, ERROR), False), ((ERROR, ERROR), False)],
)
def test_a_site_is_sound_where_no_error_was_found(levels: tuple[Level, ...], sound: bool) -> None:
    assert diagnosis(*levels).sound is sound


def test_findings_are_counted_by_level() -> None:
    found = diagnosis(OK, WARNING, OK, ERROR, OK)
    assert [found.count(level) for level in (OK, WARNING, ERROR)] == [3, 1, 1]
    assert diagnosis().count(OK) == 0


# -- areas ----------------------------------------------------------------------------------------------------


def test_each_area_has_a_name_of_its_own_that_fits_the_table() -> None:
    assert len(set(NAMES)) == len(NAMES)
    assert max(map(len, NAMES)) <= 10


def test_findings_come_area_by_area(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Facts] = []

    def one(given: Facts) -> Iterable[Finding]:
        seen.append(given)
        return iter([Finding(OK, "a"), Finding(OK, "b")])

    def nothing(given: Facts) -> Iterable[Finding]:
        seen.append(given)
        return ()

    module = sys.modules["slurm_fair.doctor.examine"]  # its package has a function of that name
    monkeypatch.setattr(module, "AREAS", (("x", one), ("y", nothing), ("z", one)))
    found = diagnose(FACTS)
    assert [(area, finding.what) for area, finding in found.findings] == [
        ("x", "a"), ("x", "b"), ("z", "a"), ("z", "b"),
    ]  # fmt: skip
    assert seen == [FACTS] * 3


def test_a_sound_site_is_looked_at_in_all_areas_that_slurm_can_tell_of() -> None:
    areas = [area for area, _ in diagnose(facts()).findings]
    assert sorted(set(areas), key=areas.index) == [name for name in NAMES if name in areas]
    assert {"here", "Slurm", "rights", "settings", "scheduler", "hook", "storage"} <= set(areas)


def test_every_finding_is_one_line_with_its_cure() -> None:
    for area, finding in diagnose(facts({"SelectType": "select/linear", "JobRequeue": "0"})).findings:
        assert area in NAMES
        assert "\n" not in finding.what
        assert bool(finding.cure) is (finding.level is not OK)


# -- a whole visit --------------------------------------------------------------------------------------------


def test_without_slurms_commands_the_visit_ends_with_that_error_and_what_is_here(tmp_path: Path) -> None:
    found = examine(site(tmp_path / "bin"), Places(tmp_path / "state"), 1000.0)
    assert not found.sound
    here = [finding for area, finding in found.findings if area == "here" and finding.level is ERROR]
    assert [f"not in {tmp_path}/bin: " in finding.what for finding in here] == [True]
    assert "hook" not in {area for area, _ in found.findings}


def test_a_controller_that_does_not_answer_is_an_error_in_one_line(tmp_path: Path) -> None:
    programs = ("scontrol", "squeue", "sinfo", "scancel", "sacct", "sacctmgr", "sshare")
    found = examine(site(tmp_path / "bin", *programs), Places(tmp_path / "state"), 1000.0)
    said = [finding.what for area, finding in found.findings if area == "Slurm" and finding.level is ERROR]
    assert len(said) == 1
    assert "Unable to contact slurm controller" in said[0]
    assert "scheduler" not in {area for area, _ in found.findings}


def test_a_visit_changes_nothing(tmp_path: Path) -> None:
    config = site(tmp_path / "bin", "scontrol")
    examine(config, Places(tmp_path / "state"), 1000.0)
    assert sorted(os.listdir(tmp_path)) == ["bin"]
    assert os.listdir(tmp_path / "bin") == ["scontrol"]
