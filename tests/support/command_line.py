"""Runs a command in this process, as the entry points do, and gives back what a person would see."""

from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Iterator
from dataclasses import dataclass

from slurm_fair.cli.base import ended_in_one_line
from slurm_fair.cli.main import cli


@dataclass(frozen=True, slots=True)
class Said:
    """Exit code and both outputs."""

    code: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """The one line on standard error."""
        lines = self.err.splitlines()
        assert len(lines) == 1, f"not one line: {self.err!r}"
        assert "Traceback" not in self.err
        return lines[0]


def call(*arguments: str) -> Said:
    """The outcome of `slurm-fair ARGUMENTS`."""
    out, err = io.StringIO(), io.StringIO()
    with own_log(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = ended_in_one_line(
            lambda: cli.main(list(arguments), prog_name="slurm-fair", standalone_mode=False)
        )
    return Said(code, out.getvalue(), err.getvalue())


@contextlib.contextmanager
def own_log() -> Iterator[logging.Logger]:
    """Everything that is set up in the log inside this block ends with it."""
    log = logging.getLogger("slurm_fair")
    handlers, propagate, level = log.handlers[:], log.propagate, log.level
    try:
        yield log
    finally:
        log.handlers[:], log.propagate = handlers, propagate
        log.setLevel(level)


@contextlib.contextmanager
def heard() -> Iterator[None]:
    """Inside this block pytest hears what the daemon says."""
    with own_log() as log:
        log.handlers[:], log.propagate = [], True
        yield
