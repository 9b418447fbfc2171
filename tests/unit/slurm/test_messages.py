"""Phases of a step have one list of names in each of the files that are run, or copied, by themselves."""

from __future__ import annotations

from dataclasses import fields

from slurm_fair import lease
from slurm_fair.model.reported import PHASES, Reported
from slurm_fair.slurm.reading import messages


def test_files_that_stand_alone_know_the_same_phases_as_the_model() -> None:
    assert PHASES == messages.PHASES == lease.PHASES
    assert set(PHASES) <= {field.name for field in fields(Reported)}
