"""Speeds: samples of classes of jobs, and an estimator over them (Hops 3.2-3.6).

Everything here is a function of values: no clock, no disk, no dice. A store keeps `Known`, whose two tables are
plain columns. `learned` folds samples into it, `learned_ends` run times of jobs that ended. `estimator` works
out all layers once; `predicted` and `speeds_for` ask it.
"""

from slurm_fair.throughput.calibration import links_of
from slurm_fair.throughput.claims import believed_progress, faded
from slurm_fair.throughput.estimator import Estimator, estimator, predicted
from slurm_fair.throughput.history import RunTimes, expected_run_times
from slurm_fair.throughput.job_class import Alike, JobClass, JobWords, class_of
from slurm_fair.throughput.known import Keeping, Known
from slurm_fair.throughput.known_speeds import speeds_for
from slurm_fair.throughput.learn import learned, learned_ends
from slurm_fair.throughput.links import Links, fault_in_links
from slurm_fair.throughput.samples import ANY_NODE, Ends, Samples
from slurm_fair.throughput.shapes import JobShapes, Predictions, SpeedLayer
from slurm_fair.throughput.timing import Pattern

__all__ = [
    "ANY_NODE",
    "Alike",
    "Ends",
    "Estimator",
    "JobClass",
    "JobShapes",
    "JobWords",
    "Keeping",
    "Known",
    "Links",
    "Pattern",
    "Predictions",
    "RunTimes",
    "Samples",
    "SpeedLayer",
    "believed_progress",
    "class_of",
    "estimator",
    "expected_run_times",
    "faded",
    "fault_in_links",
    "learned",
    "learned_ends",
    "links_of",
    "predicted",
    "speeds_for",
]
