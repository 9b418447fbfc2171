"""Reports of jobs are one table, whose words are numbers of names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from slurm_fair.lease import PHASES as OF_THE_JOBS_SIDE
from slurm_fair.model import Mode, Reported, Snapshot
from slurm_fair.model.reported import PHASES
from slurm_fair.store import open_journal
from tests.support import journals
from tests.support.builders import job, snapshot
from tests.support.reporting import reports

HOSTILE = 'm\x1b[31m=1\n"\u202e'


def reported(said: dict[int, Any]) -> Reported:
    return reports(seen(len(said)), said)


def seen(count: int) -> Snapshot:
    return snapshot(nodes={"n1": 8}, jobs=[job(number) for number in range(1, count + 1)])


def test_the_phases_of_a_step_are_columns_in_the_order_in_which_a_job_goes_through_them() -> None:
    assert PHASES == OF_THE_JOBS_SIDE
    assert [name for name in Reported.none()._columns if name in PHASES] == list(PHASES)


def test_no_reports_name_no_models() -> None:
    none = Reported.none()
    assert (len(none), none.models) == (0, ())


def test_rows_that_are_taken_keep_the_names_of_all_models() -> None:
    both = reported({1: {"model": "b"}, 2: {"model": HOSTILE}})
    one = both.take(np.array([1]))
    assert one.models == both.models
    assert one.models[one.model.item()] == HOSTILE


def test_what_a_job_did_not_say_is_no_number_and_no_model() -> None:
    one = reported({1: {}})
    numbers = [name for name in one._columns if name not in ("row", "read", "written", "silent_seconds")]
    silent = [name for name in numbers if getattr(one, name).dtype.kind == "f"]
    assert "batch_size" in silent
    assert [name for name in silent if not np.isnan(getattr(one, name)).all()] == []
    assert (one.model.tolist(), one.mode.tolist(), one.pattern.tolist()) == ([-1], [Mode.STATIC], [0])


def test_a_journal_keeps_words_of_users_as_they_were(tmp_path: Path) -> None:
    one = reported({1: {"step": float("inf"), "model": HOSTILE}})
    with open_journal(tmp_path / "journal.db") as journal:
        shown = replace(journals.snapshot(), reported=one)
        journal.append(journals.tick(1, snapshot=shown), journals.standing(1))
        (kept,) = journal.ticks()
    assert journals.same(kept.snapshot.reported, one)


def test_columns_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match="Reported: columns differ in length"):
        reported({1: {}, 2: {}}).with_columns(step=np.zeros(1))
