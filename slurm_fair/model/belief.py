"""Progress of jobs as far as it is believed, kept over their runs."""

from __future__ import annotations

from dataclasses import dataclass

from slurm_fair.model.columns import Bools, Columns, Floats, Ints


@dataclass(frozen=True)
class Beliefs(Columns):
    """One row per living job that has reported, sorted by key; nan = not known.

    Progress counts steps, or epochs where a job counts no steps. Beside what is believed stand the instant and the
    progress at which the present run began, and those at which the pace is being measured.
    """

    key: Ints
    submit: Floats  # SubmitTime of the present incarnation
    start: Floats  # of the run that reported last
    counts_epochs: Bools
    done: Floats  # believed
    total: Floats  # as the job says
    read: Floats  # the newest report that was weighed
    run_base: Floats  # believed when this run began
    run_began: Floats
    pace_base: Floats  # said when the measuring of the pace began
    pace_written: Floats  # by the job's clock
    pace_read: Floats  # by ours
    pace: Floats  # progress a second, as measured, else as the job says
    speed: Floats  # of the place where the pace was measured, against the reference type
    sampled: Floats  # when a sample was taken of it last; nan = its pace is still that of another run
    clamped: Bools  # less is believed than it said last
