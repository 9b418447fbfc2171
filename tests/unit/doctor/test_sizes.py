"""Findings about jobs that name sizes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slurm_fair.doctor import sizes
from slurm_fair.doctor.finding import Level
from slurm_fair.model import Sizes
from tests.support.builders import job, snapshot
from tests.support.site_facts import FACTS

SEEN = snapshot(nodes={"n1": 8}, jobs=[job(number, gpus=2) for number in range(1, 9)])


def test_jobs_that_keep_one_size_are_named_with_the_reason() -> None:
    two = Sizes(np.array([0, 0]), np.array([2, 4]), np.array([True, False]))
    why = dict.fromkeys(SEEN.jobs.key.tolist()[1:], "it takes whole nodes")
    told = list(sizes.findings(replace(FACTS, snapshot=replace(SEEN, sizes=two, rigid=why))))
    assert [finding.level for finding in told] == [Level.OK, Level.WARNING]
    assert "several sizes: 1" in told[0].what
    assert "job 2: it takes whole nodes" in told[1].what
    assert told[1].what.endswith("and 2 more)")


def test_where_nobody_names_sizes_nothing_is_said() -> None:
    assert list(sizes.findings(replace(FACTS, snapshot=SEEN))) == []
    assert list(sizes.findings(replace(FACTS, snapshot="Slurm does not answer"))) == []
