"""A simulation's events and tenants' accounts as JSON lines: the form that a journal is exported in."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from slurm_fair.errors import SlurmFairError
from slurm_fair.model import Event, EventKind, Standing, TickRecord
from slurm_fair.model.ids import TASK_BITS
from slurm_fair.model.tenant_moment import TenantMoment
from slurm_fair.output import open_anew, write_text
from slurm_fair.sim.result import truth_of
from slurm_fair.sim.scenario import Scenario
from slurm_fair.sim.world.load import population
from slurm_fair.store.tenant_moments import moments_of
from slurm_fair.trace.status import BAD_ENDS, End
from slurm_fair_accounting.source.export import account_line, event_line

_HOUR = 3600.0
_NAMED = (EventKind.SUBMITTED, EventKind.FINISHED)


class EventsOut:
    """Writes lines while the simulation goes on; accounts at its beginning, each full hour, and its end."""

    def __init__(self, path: Path, scenario: Scenario, epoch: float) -> None:
        self._path, self._trace = path, scenario.trace
        truth = truth_of(population(scenario, epoch), scenario)
        self._truth = {name: column.tolist() for name, column in truth.items()}
        self._began, self._hour, self._last_time, self._in_order = epoch, epoch + _HOUR, epoch, True
        self._last: tuple[TickRecord, Standing] | None = None
        with self._named_errors():
            self._file = open_anew(path)
            for tenant in sorted(set(self._trace.tenant.tolist())):
                name = self._trace.tenants[tenant]
                nothing = TenantMoment(epoch, name, scenario.weights.get(name, 1.0), 0.0, 0.0, 0.0, 0.0, 0.0)
                self._file.write(account_line(nothing))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._finish()
        except BaseException:
            self._drop()
            raise
        if kind is not None:
            self._drop()
            return
        with self._named_errors():
            self._file.close()
            if not self._in_order:
                self._put_in_order()

    def take(self, tick: TickRecord, standing: Standing) -> None:
        """Write the events of one tick."""
        lines = [(event.time, event_line(self._named(event))) for event in tick.events]
        if tick.time >= self._hour:
            lines = self._accounts(tick, standing) + lines
        else:
            self._last = (tick, standing)
        self._write(lines)

    def _accounts(self, tick: TickRecord, standing: Standing) -> list[tuple[float, str]]:
        self._hour = math.floor(tick.time / _HOUR) * _HOUR + _HOUR
        self._last = None
        return [(moment.time, account_line(moment)) for moment in moments_of(tick.snapshot, standing)]

    def _finish(self) -> None:
        if self._last is not None and self._last[0].time > self._began:  # one account of one instant
            self._write(self._accounts(*self._last))

    def _write(self, lines: list[tuple[float, str]]) -> None:
        lines.sort(key=lambda line: line[0])
        if lines:
            # The end of a job that keeps its GPUs until a round is over is told only then.
            self._in_order = self._in_order and lines[0][0] >= self._last_time
            self._last_time = lines[-1][0]
        with self._named_errors():
            self._file.writelines(line for _, line in lines)

    def _drop(self) -> None:
        """Close a file that nobody will read."""
        with contextlib.suppress(OSError):
            self._file.close()

    @contextlib.contextmanager
    def _named_errors(self) -> Iterator[None]:
        """A full disk is told with the file that did not go on to it."""
        try:
            yield
        except OSError as problem:
            raise SlurmFairError(f"{self._path}: cannot be written: {problem.strerror}") from None

    def _named(self, event: Event) -> Event:
        """A job's name and app in the trace beside its number, its place there, and at its end what it is."""
        if event.kind not in _NAMED:
            return event
        row = (event.key >> TASK_BITS) - 1
        more: dict[str, Any] = {"name": str(self._trace.job_id[row])}
        if self._trace.app[row] >= 0:  # from its submission on: an app lives as long as one of its jobs
            more["app"] = self._trace.apps[self._trace.app[row]]
        if event.kind == EventKind.FINISHED:
            if (
                self._trace.status[row] in BAD_ENDS
                and event.detail.get("state", End.COMPLETED.name) == End.COMPLETED.name
            ):
                more["state"] = End(int(self._trace.status[row])).name
            known = ((name, column[row]) for name, column in self._truth.items())
            more |= {name: seconds for name, seconds in known if math.isfinite(seconds)}
        return event._replace(detail={**event.detail, **more})

    def _put_in_order(self) -> None:
        lines = self._path.read_text(encoding="utf-8").splitlines(keepends=True)
        lines.sort(key=lambda line: json.loads(line)["time"])
        write_text(self._path, "".join(lines))
