"""SLAQ: GPUs where the loss falls most (Themis, NSDI 2020, section 6.1: the greedy highest decrease first)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from slurm_fair_plugins.slaq import Slaq, decrease_per_gpu
from tests.support.builders import job
from tests.support.told_play import ToldPlay


def test_the_decrease_is_that_of_one_over_the_epoch() -> None:
    """10 epochs of 900 s: after the third, one lease of 900 s brings 1/4 - 1/5; over two GPUs, half of it each."""
    play = ToldPlay(
        [job(1), job(2, gpus=2)], {"n1": 4}, left=dict.fromkeys("12", 9e3), epochs=dict.fromkeys("12", 10.0)
    )
    play.ran = {"1": 2700.0, "2": 2700.0}
    seen = play.seen()
    assert decrease_per_gpu(seen, np.arange(2)) == pytest.approx([1 / 4 - 1 / 5, (1 / 4 - 1 / 5) / 2])


def test_young_jobs_go_before_old_ones() -> None:
    jobs = [job(1), job(2, submit=5_000)]
    play = ToldPlay(jobs, {"n1": 1}, left=dict.fromkeys("12", 9e4), epochs=dict.fromkeys("12", 100.0))
    runs = play.play(Slaq(), 16)
    assert runs[:5] == [{"1"}] * 5
    assert runs[5:10] == [{"2"}] * 5  # until it has lost as much loss as the first
    late = [len([ran for ran in runs[10:] if label in ran]) for label in "12"]
    assert abs(late[0] - late[1]) <= 1


def test_no_more_than_what_is_left_counts() -> None:
    jobs = [job(1), job(2)]
    left, epochs = {"1": 90.0, "2": 9e4}, {"1": 1.0, "2": 100.0}
    play = ToldPlay(jobs, {"n1": 1}, left=left, epochs=epochs)
    assert decrease_per_gpu(play.seen(), np.arange(2)) == pytest.approx([0.5, 0.5])


def test_a_job_that_tells_no_epochs_counts_as_a_hundred() -> None:
    play = ToldPlay([job(1), job(2)], {"n1": 1}, left=dict.fromkeys("12", 9e4), epochs={"1": 100.0})
    play.ran = {"1": 9e3, "2": 9e3}
    told, untold = decrease_per_gpu(play.seen(), np.arange(2))
    assert told == pytest.approx(untold)


def test_the_highest_decrease_of_loss_goes_first() -> None:
    """Themis 6.1, worked out with one epoch a lease and the loss 1 / (e + 1).

    1 has done 9 of its epochs and gains 1/10 - 1/11; 2 has done none and gains 1 - 1/2, over 4 GPUs 1/8;
    3 has done one and gains 1/2 - 1/3 = 1/6, over one GPU.
    """
    jobs = [job(1), job(2, gpus=4), job(3)]
    left = {"1": 9e4, "2": 9e4, "3": 9e4}
    play = ToldPlay(jobs, {"n1": 5}, left=left, epochs=dict.fromkeys("123", 100.0))
    play.ran = {"1": 8100.0, "2": 0.0, "3": 900.0}
    assert decrease_per_gpu(play.seen(), np.arange(3)) == pytest.approx([1 / 110, 1 / 8, 1 / 6])
    assert play.round(Slaq()) == {"2", "3"}


def test_a_job_of_unknown_length_goes_at_the_pace_it_had() -> None:
    """1 tells epochs: 3 of them in 2,700 s; 2 tells nothing and has run as long: one epoch a lease of 900 s."""
    play = ToldPlay([job(1), job(2)], {"n1": 2}, left={"1": 9e4}, epochs={"1": 100.0})
    play.ran = {"1": 2700.0, "2": 2700.0}
    seen = play.seen()
    assert seen.snapshot.told is not None
    unknown = seen.snapshot.told.with_columns(
        left_seconds=np.full(2, np.nan), declared_seconds=np.full(2, np.nan)
    )
    seen = replace(seen, snapshot=replace(seen.snapshot, told=unknown))
    assert decrease_per_gpu(seen, np.arange(2)) == pytest.approx([1 / 4 - 1 / 5] * 2)
