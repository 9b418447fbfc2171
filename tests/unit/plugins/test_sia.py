"""Sia: the size and the GPU type that speed a job up most."""

from __future__ import annotations

import pytest

from slurm_fair.errors import ConfigError
from slurm_fair_plugins.sia import Sia
from tests.support.builders import job
from tests.support.sized_views import TYPES, granted, sight


def test_sia_gives_each_job_the_type_that_speeds_it_up_most() -> None:
    seen = sight([job(1, gpus=4), job(2, gpus=4)], TYPES, rates=[[1.0, 1.1], [1.0, 4.0]])
    assert granted("sia", seen) == {"1": {"n1": 4}, "2": {"n2": 4}}


def test_a_higher_penalty_of_jobs_without_gpus_serves_more_of_them() -> None:
    """The first job gains much with four GPUs; with one GPU each neither job gains anything."""
    seen = sight([job(1, gpus=4), job(2, gpus=1)], {"n1": 4}, elastic={0: (1, 4)}, scaling=4.0)
    assert granted("sia", seen).keys() == {"1"}
    assert granted("sia", seen, penalty=100.0).keys() == {"1", "2"}
    assert Sia(penalty=7.0).without == 7.0


def test_a_setting_that_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigError, match="penalty"):
        Sia(penalty=0.5)
