"""The output files of `simulate`: each is written whole, and all of them appear together or none does."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import click
import numpy as np

from slurm_fair.cli.base import configuration_read
from slurm_fair.cli.simulate.case import Case
from slurm_fair.cli.simulate.given import FileOptions
from slurm_fair.cli.simulate.one_run import FinishedRun, SimulationOrder
from slurm_fair.cli.simulate.setups import PolicySetup
from slurm_fair.errors import InputError, SlurmFairError
from slurm_fair.ledger.metrics import efficiency
from slurm_fair.ledger.metrics.summary import job_finish_time_ratios, job_latency_ratio
from slurm_fair.model.columns import Floats
from slurm_fair.trace import Trace
from slurm_fair.trace.files import write_with
from slurm_fair.trace.write import columns_of, write_rows
from slurm_fair_accounting.drawing.page_file import put_in_place, refuse_no_file, target_and_beside

JOB_COLUMNS = (
    "start_s", "end_s", "wait_s", "run_s", "preemptions", "nodes", "rho_ltgf",
    "ftf_themis", "ftf_shockwave", "ftf_static", "ftf_sia", "latency_ratio",
)  # fmt: skip


# -- files ----------------------------------------------------------------------------------------------------


class Outputs:
    """Files that are written beside their names and get them only when everything went well.

    None of them may be one of the inputs, or the configuration.
    """

    def __init__(self, inputs: Iterable[Path]) -> None:
        self._inputs = frozenset([*inputs, *configuration_read(click.get_current_context(silent=True))])
        self._beside: dict[Path, Path] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        for beside in self._beside.values():
            with contextlib.suppress(OSError):
                beside.unlink()
        if isinstance(problem, SlurmFairError):
            self._name_targets(problem)

    def _name_targets(self, problem: SlurmFairError) -> None:
        """An error that names a file which is nobody's business is of the file that it was to become."""
        words = str(problem)
        for target, beside in self._beside.items():
            words = words.replace(str(beside), str(target))
        problem.args = (words,)

    def will_write(self, path: Path) -> Path:
        """The temporary file that is to become `path`; refused when that cannot be written."""
        refuse_no_file(path)
        if path.resolve() in self._beside:
            raise InputError(f"{path}: is to be written twice: name another file")
        target, beside = target_and_beside(path, self._inputs)
        self._beside[target] = beside
        return beside

    def will_write_each(self, path: Path, policies: Sequence[str], many: bool) -> dict[str, Path]:
        """A file for each policy; the name that was given is looked at before others follow from it."""
        refuse_no_file(path)
        return {name: self.will_write(of_policy(path, name, many)) for name in policies}

    def commit(self) -> None:
        """All of them get their names."""
        for target, beside in self._beside.items():
            put_in_place(beside, target)


def of_policy(path: Path, policy: str, many: bool) -> Path:
    """The file of one policy: `jobs.csv.gz` is `jobs.astraea.csv.gz` where there are several."""
    if not many:
        return path
    ending = "".join(path.suffixes[-2:] if path.suffix == ".gz" else path.suffixes[-1:])
    return path.with_name(f"{path.name.removesuffix(ending)}.{policy}{ending}")


@dataclass(frozen=True, slots=True)
class ResultFiles:
    """The files to write, and the place of each until it gets its name."""

    jobs: Mapping[str, Path]  # by policy
    events: Mapping[str, Path]
    html: Path | None

    @classmethod
    def checked(cls, outputs: Outputs, wanted: FileOptions, html: Path | None, names: Sequence[str]) -> Self:
        """Make sure of each file: one that cannot be written is refused now rather than after the work."""
        jobs, events, many = wanted.jobs_out, wanted.events_out, len(names) > 1
        if events is not None and events.suffix == ".gz":
            raise InputError(f"{events}: events are written plain: take .gz off its name")
        return cls(
            outputs.will_write_each(jobs, names, many) if jobs is not None else {},
            outputs.will_write_each(events, names, many) if events is not None else {},
            outputs.will_write(html) if html is not None else None,
        )

    def orders(self, case: Case, setups: Sequence[PolicySetup]) -> list[SimulationOrder]:
        """The simulations, which write their events themselves."""
        where = bool(self.jobs) or self.html is not None
        return [
            SimulationOrder(case.scenario, setup, self.events.get(setup.policy), where) for setup in setups
        ]

    def write(
        self, case: Case, dones: Sequence[FinishedRun], rows: Sequence[dict[str, Any]], words: Sequence[str]
    ) -> None:
        """Write the jobs of each policy, and the page."""
        columns = columns_to_write(case.scenario.trace) if self.jobs else {}
        for done in dones:
            path = self.jobs.get(done.result.policy)
            if path is not None:
                write_jobs(path, case.scenario.trace, columns, done)
        if self.html is not None:
            from slurm_fair.cli.simulate.page import page_of  # only who wants a page pays for it

            whole = page_of(case, dones, rows, words)
            write_with(self.html, lambda text: text.writelines([whole]))


# -- jobs -----------------------------------------------------------------------------------------------------


def write_jobs(path: Path, trace: Trace, trace_columns: dict[str, list[str]], done: FinishedRun) -> None:
    """One row a job of the trace, in its order: its own columns and what became of it."""
    columns = list(trace_columns.values()) + _fates(trace, done)
    header = [*trace_columns, *JOB_COLUMNS]
    write_with(path, lambda text: write_rows(text, header, zip(*columns, strict=True)))


def columns_to_write(trace: Trace) -> dict[str, list[str]]:
    """The trace's own columns as text; one that has the name of an outcome gives way to it."""
    return {name: column for name, column in columns_of(trace).items() if name not in JOB_COLUMNS}


def _fates(trace: Trace, done: FinishedRun) -> list[list[str]]:
    """The outcomes' columns as text; nothing for what is not known or did not happen."""
    result, outcomes = done.result, done.result.outcomes
    finish = job_finish_time_ratios(outcomes, result.mean_gpus)
    numbers = [
        _rounded(outcomes.start - result.epoch),
        _rounded(outcomes.end - result.epoch),
        _rounded(efficiency.wait_seconds(outcomes)),
        _rounded(np.where(np.isnan(outcomes.start), np.nan, outcomes.ran)),
        outcomes.preemptions.astype(np.float64),
        outcomes.rho_ltgf,
        *(finish[name] for name in ("themis", "shockwave", "static", "sia")),
        job_latency_ratio(outcomes),
    ]
    last = {grant.key: grant.nodes for grant in done.grants}
    nodes = [""] * len(trace)
    for row, key in zip(result.trace_row.tolist(), outcomes.key.tolist(), strict=True):
        nodes[row] = " ".join(last.get(key, ()))
    texts = [_texts(column, result.trace_row, len(trace)) for column in numbers]
    at = JOB_COLUMNS.index("nodes")
    return [*texts[:at], nodes, *texts[at:]]


def _rounded(seconds: Floats) -> Floats:
    """Instants to the microsecond: since 1970 they are not kept more exactly."""
    return np.round(seconds, 6)


def _texts(column: Floats, rows: Any, count: int) -> list[str]:
    texts = [""] * count
    for row, value in zip(rows.tolist(), column.tolist(), strict=True):
        if math.isfinite(value):
            texts[row] = str(int(value)) if value == int(value) else repr(value)
    return texts
