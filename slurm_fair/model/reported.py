"""Reports of running jobs about their own work, as they came and as far as they are believed."""

from __future__ import annotations

from dataclasses import dataclass

from slurm_fair.model.columns import Bools, Codes, Columns, Floats, Ints

# Of one step, in the order in which a job goes through them.
PHASES = ("data", "forward", "backward", "update", "sync")


@dataclass(frozen=True)
class Reported(Columns):
    """One row per job whose present run has reported, by its row in the snapshot; nan = it did not say."""

    row: Ints  # of the snapshot's jobs
    read: Floats  # when the newest report was first read
    written: Floats  # when it was written, as the job says
    silent_seconds: Floats  # from `read` to the last time that nothing newer was found
    step: Floats  # done
    steps: Floats  # in all
    epoch: Floats  # done
    epochs: Floats  # in all
    steps_per_second: Floats
    samples_per_second: Floats
    batch_size: Floats  # samples of one step of the whole run
    data: Floats  # seconds of one step: loading data
    forward: Floats
    backward: Floats
    update: Floats
    sync: Floats  # waiting for the other processes
    pattern: Codes  # of its communication, as the job says; 0 = not said
    mode: Codes  # Mode
    model: Ints  # index into `models`, -1 = not said
    believed: Floats  # of `step` (of `epoch` where it counts no steps); nan before anybody weighed it
    clamped: Bools  # less is believed than it says
    models: tuple[str, ...] = ()
