"""A trace: what jobs a cluster was given, as columns in order of submission."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from slurm_fair.model import Mode
from slurm_fair.model.columns import Bools, Codes, Columns, Floats, Ints, Texts, ranks

__all__ = ["OPTIONAL", "REQUIRED", "Mode", "Trace"]
REQUIRED = ("job_id", "tenant", "submit_s", "gpus", "duration_s")
OPTIONAL = (
    "user", "gpu_type", "model", "status", "weight", "gpus_choices", "app", "mode", "batch_size", "epochs",
    "samples", "total_steps", "sensitivity", "node_count", "declared_s", "epoch_seconds",
)  # fmt: skip


@dataclass(frozen=True)
class Trace(Columns):
    """One row per job, in order of submission; a number that is not given is NaN, or 0 in whole numbers."""

    job_id: Texts
    submit_s: Floats
    gpus: Floats  # asked for; may be a fraction of one
    duration_s: Floats  # with the asked-for GPUs, well placed, on the reference type; NaN = not known
    tenant: Ints  # index into tenants
    user: Ints  # index into users
    gpu_type: Ints  # index into gpu_types, -1 = any
    model: Ints  # index into models, -1 = not given
    app: Ints  # index into apps, -1 = an app of its own
    choice_set: Ints  # index into choice_sets, -1 = only the asked-for GPUs
    status: Codes  # End
    mode: Codes  # Mode
    weight: Floats
    batch_size: Ints
    epochs: Ints
    samples: Ints  # of one epoch
    total_steps: Ints
    node_count: Ints
    sensitivity: Floats
    declared_s: Floats  # what its user declared, where that differs from duration_s
    epoch_seconds: Floats
    tenants: tuple[str, ...]  # all names are sorted
    users: tuple[str, ...]
    gpu_types: tuple[str, ...]
    models: tuple[str, ...]
    apps: tuple[str, ...]
    choice_sets: tuple[tuple[int, ...], ...]
    further: Mapping[str, Texts] = field(default_factory=dict)  # columns that we do not know, as text

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_further()

    def _check_further(self) -> None:
        wrong = [name for name, column in self.further.items() if len(column) != len(self)]
        if wrong:
            raise ValueError(f"Trace: further columns differ in length: {', '.join(wrong)}")

    def with_columns(self, **columns: Any) -> Self:
        """The same rows with some columns, or other fields, replaced."""
        changed = super().with_columns(**columns)
        changed._check_further()
        return changed

    def ranks_of_ids(self) -> Ints:
        """The place of each job when they are sorted by id: it does not hang on the order of the rows."""
        return ranks(len(self), self.job_id.argsort(kind="stable"))

    def take(self, rows: NDArray[Any]) -> Self:
        """The rows asked for, further columns too."""
        picked = {name: column[rows] for name, column in self.further.items()}
        arrays = {name: column[rows] for name, column in self._arrays().items()}
        return self.with_columns(**arrays, further=picked)

    @property
    def whole_gpus(self) -> Ints:
        """GPUs that a policy gives that places whole ones: the ceiling."""
        return np.ceil(self.gpus).astype(np.int64)

    @property
    def fractional(self) -> Bools:
        """Jobs that ask for a part of a GPU."""
        parts: Bools = self.gpus != np.floor(self.gpus)
        return parts

    @property
    def gpu_seconds(self) -> Floats:
        """GPU-seconds of each job; NaN where its run time is not known."""
        return self.gpus * self.duration_s
