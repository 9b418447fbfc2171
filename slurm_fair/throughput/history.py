"""Run times of ended jobs: an estimate where nobody declared anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from slurm_fair.model.columns import Floats
from slurm_fair.throughput.ages import weights
from slurm_fair.throughput.groups import pairs
from slurm_fair.throughput.job_class import JobClass
from slurm_fair.throughput.known import Keeping, Known
from slurm_fair.throughput.names import places_in
from slurm_fair.throughput.robust import robust_means, weighted_medians


@dataclass(frozen=True, slots=True)
class RunTimes:
    """One entry per job asked for; nan where no job of its class has ended."""

    seconds: Floats  # run time of the whole job: the median
    deviation: Floats  # standard deviation of the logarithm of one run time: 0.7 = twice or half is usual
    count: Floats  # ended jobs behind it, each as much as its age leaves of it


def expected_run_times(
    known: Known, classes: Sequence[JobClass], ran: Floats, now: float, keeping: Keeping
) -> RunTimes:
    """Run times that jobs of these classes can be expected to have, which have run for so long already.

    Ended jobs that were shorter than that tell nothing of such a job. Where it has outlived all of them, it is
    expected to run for as long again.
    """
    ends = known.ends
    row_class = places_in(classes, ends.classes)[: len(classes)]
    asked, end = pairs(row_class, ends.job_class)
    longer = ends.seconds[end] > ran[asked]
    asked, end = asked[longer], end[longer]
    weight = weights(ends.job_class, ends.time, now, keeping)[end]
    logs = np.log(ends.seconds[end])
    means = robust_means(asked, logs, weight, len(classes))
    median = np.exp(weighted_medians(asked, logs, weight, len(classes)))
    outlived = np.isnan(median) & np.isin(row_class, ends.job_class)
    return RunTimes(
        np.where(outlived, 2 * ran, median), np.where(outlived, np.log(2.0), means.deviation), means.weight
    )
