"""The progress of a sweep: a bar on a terminal, else a line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

import click

from slurm_fair.cli.table import clean, on_terminal

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

LINE_SECONDS = 60.0


class SweepProgress(Protocol):
    """Hears what happens to the runs of a sweep."""

    def beat(self, name: str, ended: int, seconds: float) -> None:
        """So many jobs of a run have ended."""

    def ended(self, name: str, problem: str | None) -> None:
        """A run is over; `problem` says why it has no result."""


class _Lines:
    """Tells of each failure at once, and of all other runs about once a minute."""

    def __init__(self, runs: int) -> None:
        self._runs, self._ended, self._said = runs, 0, time.monotonic()

    def beat(self, name: str, ended: int, seconds: float) -> None:
        """Lines tell of whole runs alone."""

    def ended(self, name: str, problem: str | None) -> None:
        """Count the run, and say what there is to say."""
        self._ended += 1
        if problem is not None:
            click.echo(failure(name, problem), err=True)
        now = time.monotonic()
        if now - self._said >= LINE_SECONDS:
            self._said = now
            click.echo(f"{self._ended} of {self._runs} runs ended", err=True)


class _Bar:
    """Draws whole runs and the parts of those under way that are done."""

    def __init__(self, bars: Bars, task: TaskID, jobs: int) -> None:
        self._bars, self._task, self._jobs = bars, task, jobs
        self._whole, self._parts = 0, dict[str, float]()

    def beat(self, name: str, ended: int, seconds: float) -> None:
        """Draw the part of a run that is done."""
        self._parts[name] = ended / self._jobs
        self._draw()

    def ended(self, name: str, problem: str | None) -> None:
        """Draw one more whole run, below a line if it failed."""
        self._parts.pop(name, None)
        self._whole += 1
        if problem is not None:
            self._bars.console.print(failure(name, problem), markup=False, highlight=False)
        self._draw()

    def _draw(self) -> None:
        done = self._whole + sum(self._parts.values())
        self._bars.update(self._task, completed=done, whole=self._whole, refresh=True)


def failure(name: str, problem: str) -> str:
    """The line that tells of a run without result."""
    return f"failed: {clean(name)}: {clean(' '.join(problem.split()))}"


@contextmanager
def progress(runs: int, jobs: int) -> Iterator[SweepProgress]:
    """Tell on standard error how far the runs are, each of so many jobs."""
    if not on_terminal(sys.stderr):
        yield _Lines(runs)
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("runs"),
        BarColumn(),
        TextColumn("{task.fields[whole]} of {task.total:.0f}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    # Without a thread of its own: it is drawn when there is news.
    with Bars(*columns, console=Console(stderr=True), auto_refresh=False, transient=True) as bars:
        yield _Bar(bars, bars.add_task("runs", total=runs, whole=0), jobs)
