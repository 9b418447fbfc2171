"""The classes of the jobs of a look: by the words of their users, as the site has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from slurm_fair.model import Snapshot
from slurm_fair.model.columns import Bools
from slurm_fair.throughput import Alike, JobClass, JobWords, class_of

# The words of a user about a job, by its record and restarts; empty where they are not known.
WordsOf = Callable[[int, int], JobWords]
NO_CLASS = JobClass("", "")
_BY_EPOCHS = " by=epochs"  # jobs that count epochs have a pace of another kind

Who = tuple[int, int, str]  # record, restarts and the model that it names


def counting_epochs(job_class: JobClass) -> JobClass:
    """The class beside it of the jobs that count epochs and no steps."""
    return JobClass(job_class.tenant, job_class.key + _BY_EPOCHS)


@dataclass
class Classes:
    """The class of each job, worked out once for each run; an ended job keeps the class that it had."""

    words_of: WordsOf
    alike: Alike
    _known: dict[int, tuple[Who, JobClass]] = field(default_factory=dict)
    _before: dict[int, tuple[Who, JobClass]] = field(default_factory=dict)  # at the look before

    def of(self, snapshot: Snapshot) -> list[JobClass]:
        """Classes by row of the snapshot's jobs; NO_CLASS where nobody knows a word of a job."""
        jobs, tenants = snapshot.jobs, snapshot.tenants.names
        self._before, known = self._known, self._known
        columns = (jobs.record.tolist(), jobs.restarts.tolist(), _models_of(snapshot))
        self._known, classes = {}, []
        rows = zip(jobs.key.tolist(), jobs.tenant.tolist(), jobs.done.tolist(), *columns, strict=True)
        for key, tenant, done, record, restarts, model in rows:
            last = known.get(key)
            if last is not None and not model and last[0][0] == record:
                model = last[0][2]  # while it waits, or has not reported again, it is what it was
            who = record, restarts, model
            if last is None or not (done or last[0] == who) or last[1].tenant not in ("", tenants[tenant]):
                last = who, self._class_of(tenants[tenant], who)
            self._known[key] = last
            classes.append(last[1])
        return classes

    def of_job(self, key: int) -> JobClass:
        """The class of a job of this look or the last one."""
        return (self._known.get(key) or self._before.get(key) or ((0, 0, ""), NO_CLASS))[1]

    def _class_of(self, tenant: str, who: Who) -> JobClass:
        record, restarts, model = who
        words = self.words_of(record, restarts)._replace(model=model)
        return class_of(tenant, words, self.alike) if any(words) else NO_CLASS


def _models_of(snapshot: Snapshot) -> list[str]:
    """The model that each job names in its report."""
    models = [""] * len(snapshot.jobs)
    reported = snapshot.reported
    if reported is not None:
        for row, model in zip(reported.row.tolist(), reported.model.tolist(), strict=True):
            models[row] = reported.models[model] if model >= 0 else ""
    return models


def of_their_kind(
    classes: Sequence[JobClass], by_epoch: Bools, measured: frozenset[JobClass]
) -> list[JobClass]:
    """The same, with the class beside it of jobs that count epochs, or where only that one was measured."""
    beside = {one: counting_epochs(one) for one in set(classes)}
    usual = {one: one if one in measured or other not in measured else other for one, other in beside.items()}
    chosen = [usual[one] for one in classes]
    for row in np.flatnonzero(by_epoch).tolist():
        chosen[row] = beside[classes[row]]
    return chosen
