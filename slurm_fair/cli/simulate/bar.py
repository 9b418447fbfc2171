"""The progress bar of simulations, on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from slurm_fair.cli.table import duration, on_terminal

Beat = Callable[[str, int, float], None]


@contextmanager
def progress_bar(policies: Sequence[str], jobs: int) -> Iterator[Beat]:
    """A bar a policy on standard error: the jobs that ended, and the virtual time; nothing where nobody looks."""
    if not on_terminal(sys.stderr):
        yield lambda policy, ended, seconds: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f} of {task.total:.0f} jobs"),
        TextColumn("at {task.fields[virtual]}"),
    )
    # Without a thread of its own: it is drawn when there is news.
    with Progress(*columns, console=Console(stderr=True), auto_refresh=False, transient=True) as bars:
        tasks = {name: bars.add_task(name, total=jobs, virtual=duration(0.0)) for name in policies}

        def beat(policy: str, ended: int, seconds: float) -> None:
            bars.update(tasks[policy], completed=ended, virtual=duration(seconds), refresh=True)

        yield beat
