"""What is known of speeds: samples of classes of jobs that are alike, and an estimator over them (Hops 3.2-3.6).

Everything here is a function of values: no clock, no disk, no dice. A store keeps `Known`, whose two tables are plain
columns. `learned` folds samples into it, `learned_ends` the run times of jobs that ended.
"""

from slurm_fair.throughput.claims import believed_progress, faded
from slurm_fair.throughput.history import RunTimes, expected_run_times
from slurm_fair.throughput.job_class import Alike, JobClass, JobWords, class_of
from slurm_fair.throughput.known import Keeping, Known
from slurm_fair.throughput.learn import learned, learned_ends
from slurm_fair.throughput.links import Links
from slurm_fair.throughput.samples import ANY_NODE, Ends, Samples
from slurm_fair.throughput.shapes import JobShapes, Predictions, SpeedLayer

__all__ = [
    "ANY_NODE",
    "Alike",
    "Ends",
    "JobClass",
    "JobShapes",
    "JobWords",
    "Keeping",
    "Known",
    "Links",
    "Predictions",
    "RunTimes",
    "Samples",
    "SpeedLayer",
    "believed_progress",
    "class_of",
    "expected_run_times",
    "faded",
    "learned",
    "learned_ends",
]
