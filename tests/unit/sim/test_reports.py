"""Reports of virtual jobs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from slurm_fair.sim.truthfulness import Truthfulness
from slurm_fair.trace import read_regimes
from tests.support.told_after import scenario, told_after


def test_as_a_rule_jobs_report_their_true_progress(tmp_path: Path) -> None:
    told = told_after(500, scenario(tmp_path, Truthfulness()))
    assert told.declared_seconds.tolist() == [2000, 2000, 500]
    assert (told.left_seconds.tolist(), told.done_seconds.tolist()) == ([1000, 1000, 500], [500, 500, 0])


def test_silent_jobs_say_what_was_declared_and_nothing_else(tmp_path: Path) -> None:
    told = told_after(500, scenario(tmp_path, Truthfulness(progress="silent")))
    assert told.declared_seconds.tolist() == [2000, 2000, 500]
    for column in (told.left_seconds, told.done_seconds, told.epoch, told.epochs, told.steps_per_second):
        assert np.isnan(column).all()


def test_nobody_hears_of_another_batch_size_of_a_silent_job(tmp_path: Path) -> None:
    regimes = tmp_path / "regimes.jsonl"
    regimes.write_text(
        '{"job_id": "a", "model": "m", "mode": "gns", "gpus": 8, "samples_per_epoch": 1000, '
        '"regimes_epochs_batch_secperepoch": [[4, 16, 100], [6, 32, 100]]}\n'
    )
    known = read_regimes(regimes)
    sizes = [
        told_after(800, replace(scenario(tmp_path, told), regimes=known)).batch_size[0]
        for told in (Truthfulness(), Truthfulness(progress="silent"))
    ]
    assert sizes == [32, 16]


def test_false_progress_begins_with_the_first_run_and_is_that_of_the_liar_alone(tmp_path: Path) -> None:
    told = told_after(500, scenario(tmp_path, Truthfulness(reports_left={"y": 0.1})))
    assert told.declared_seconds.tolist() == [2000, 2000, 500]
    assert told.left_seconds.tolist() == pytest.approx([1000, 100, 500]), "the last one has not run yet"
    assert told.done_seconds.tolist() == pytest.approx([500, 1400, 0])
    longer = told_after(500, scenario(tmp_path, Truthfulness(reports_left={"y": 10})))
    assert longer.left_seconds.tolist() == pytest.approx([1000, 10000, 500])
    assert longer.done_seconds.tolist() == pytest.approx([500, 0, 0])
