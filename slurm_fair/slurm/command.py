"""The one place that runs a Slurm command: argv, own time limit, fixed environment."""

from __future__ import annotations

import os
import secrets
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from slurm_fair.errors import SlurmError

# Nothing of our own environment reaches a command: SLURM_*, SQUEUE_*... change formats and defaults, a PATH, HOME
# or LD_LIBRARY_PATH what is run.
SAFE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_FIXED = {
    "PATH": SAFE_PATH,
    "HOME": "/",
    "LC_ALL": "C",
    "TZ": "UTC",
    "SLURM_TIME_FORMAT": "%s",  # epoch seconds, in every version from 22.05 to 26.05
    "SLURM_BITSTR_LEN": "0",  # task lists of arrays in full
}

# Else squeue folds the waiting tasks of an array into one row, whatever their restarts, nodes and begin times
# (slurm-facts: squeue-folds).
# Newer releases have only the second: it lists each task of an array by itself.
BY_RECORD, BY_TASK = "--array-unique", "--array"

# A layout holds the digits that end rows. Every user of the machine can read argv, so it travels beside it.
_LAYOUTS = {"-O": "SQUEUE_FORMAT2", "-o": "SQUEUE_FORMAT"}


def draw_row_end() -> str:
    """Digits that end each row, and that nobody can know before: no text that a user wrote holds them."""
    return f"{secrets.randbelow(10**20):020d}"


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The answer of one command."""

    argv: tuple[str, ...]
    code: int
    out: str
    err: str
    seconds: float
    timed_out: bool = False

    @property
    def whole(self) -> bool:
        """Exit 0 and a silent standard error: anything else is not a valid answer.

        JSON is not asked for, because its exit code hides failure (slurm-facts: json-hides-failure).
        """
        return self.code == 0 and not self.err.strip()

    @property
    def complaint(self) -> str:
        """The error, in one line."""
        if self.timed_out:
            return f"{Path(self.argv[0]).name} did not answer within {self.seconds:.0f} s"
        words = " ".join(self.err.split()) or f"exit code {self.code} without a word"
        return f"{Path(self.argv[0]).name}: {words[:300]}"


@dataclass(slots=True)
class Commands:
    """Runs Slurm's programs against one cluster."""

    conf: Path | None = None
    timeout_seconds: float = 20.0
    bin_dir: Path | None = None
    calls: int = 0
    unfold: str = BY_RECORD
    draw: Callable[[], str] = draw_row_end  # for each listing
    before: Callable[[], None] = lambda: None  # called before each command
    _paths: dict[str, str] = field(default_factory=dict)
    _running: set[subprocess.Popen[Any]] = field(default_factory=set, repr=False)  # acts run side by side
    _given_up: bool = False

    def environment(self) -> dict[str, str]:
        """The environment of every command."""
        return _FIXED | ({"SLURM_CONF": str(self.conf)} if self.conf else {})

    def path(self, program: str) -> str:
        """Absolute path of a Slurm program."""
        if program not in self._paths:
            found = shutil.which(program, path=str(self.bin_dir) if self.bin_dir else search_path())
            if found is None:
                raise SlurmError(
                    f"{program} not found: install Slurm's client commands or set [slurm] bin_dir"
                )
            self._paths[program] = found
        return self._paths[program]

    def look_in(self, bin_dir: Path | None) -> None:
        """Take programs from this folder from now on; none = from the search path."""
        if bin_dir != self.bin_dir:
            self.bin_dir = bin_dir
            self._paths.clear()

    def run(
        self,
        *argv: str,
        stdin: str | None = None,
        timeout_seconds: float | None = None,
    ) -> CommandResult:
        """Run one command; a time-out is returned and not raised, since an act may have been done."""
        shown, layout = _apart(argv)
        full = (self.path(argv[0]), *shown[1:])
        limit = timeout_seconds or self.timeout_seconds
        self._begins()
        began = time.monotonic()
        try:
            with self._started(full, subprocess.PIPE, subprocess.PIPE, layout) as process:
                try:
                    out, err = process.communicate((stdin or "").encode(), limit)
                except subprocess.TimeoutExpired:
                    _kill(process)
                    return CommandResult(full, -1, "", "", time.monotonic() - began, timed_out=True)
        except OSError as problem:  # no memory or process to spare, or Slurm is being replaced under us
            return _not_run(full, problem, began)
        seconds = time.monotonic() - began
        if self._given_up and process.returncode:
            return CommandResult(full, process.returncode, "", "ended because the daemon ends", seconds)
        return CommandResult(full, process.returncode, _text(out), _text(err), seconds)

    def _begins(self) -> None:
        self.calls += 1
        self.before()

    @contextmanager
    def _started(
        self, full: tuple[str, ...], stdin: int, stdout: int, more: Mapping[str, str]
    ) -> Iterator[subprocess.Popen[bytes]]:
        """A program under way, which `give_up` ends; in a group of its own, so that Ctrl-C does not."""
        with subprocess.Popen(
            full,
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            env={**self.environment(), **more},
            cwd="/",
            process_group=0,
        ) as process:
            self._running.add(process)
            try:
                if self._given_up:
                    _kill(process)
                yield process
            except BaseException:
                _kill(process)
                raise
            finally:
                self._running.discard(process)

    def give_up(self) -> None:
        """End the commands that are under way and each later one at once: we must end, and they may hang."""
        self._given_up = True
        for process in tuple(self._running):
            _kill(process)

    def squeue(self, *argv: str) -> CommandResult:
        """Every job in every state, nothing folded: `unfold` says how arrays are listed in the answer."""
        answer = self.run("squeue", "-h", "-a", "-t", "all", self.unfold, *argv)
        if self.unfold == BY_RECORD and answer.code and f"unrecognized option '{BY_RECORD}'" in answer.err:
            self.unfold = BY_TASK
            return self.squeue(*argv)
        return answer

    def run_until(self, enough: Callable[[str], bool], *argv: str, timeout_seconds: float) -> CommandResult:
        """Run a command that would repeat itself, and end it when its standard error says enough."""
        full = (self.path(argv[0]), *argv[1:])
        self._begins()
        began = time.monotonic()
        try:
            with self._started(full, subprocess.DEVNULL, subprocess.DEVNULL, {}) as process:
                heard = _hear(process, enough, began + timeout_seconds)
                cut_short = process.poll() is None and not enough(heard)
                _kill(process)
        except OSError as problem:
            return _not_run(full, problem, began)
        return CommandResult(
            full, process.returncode, "", heard, time.monotonic() - began, timed_out=cut_short
        )


def _not_run(full: tuple[str, ...], problem: OSError, began: float) -> CommandResult:
    return CommandResult(full, -1, "", f"cannot be run: {problem.strerror}", time.monotonic() - began)


def search_path() -> str:
    """The search path for Slurm's commands: our own PATH without its relative entries, then the usual places."""
    given = [entry for entry in os.environ.get("PATH", "").split(":") if entry.startswith("/")]
    return ":".join([*given, SAFE_PATH])


def _kill(process: subprocess.Popen[bytes]) -> None:
    """The program and whatever it has started."""
    if process.returncode is None:
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)


def _text(said: bytes) -> str:
    return said.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")


def _apart(argv: tuple[str, ...]) -> tuple[tuple[str, ...], dict[str, str]]:
    """The words of a squeue without its layout, and the layout as a variable of its environment."""
    if len(argv) < 3 or argv[0] != "squeue" or argv[-2] not in _LAYOUTS:
        return argv, {}
    return argv[:-2], {_LAYOUTS[argv[-2]]: argv[-1]}


def _hear(process: subprocess.Popen[bytes], enough: Callable[[str], bool], deadline: float) -> str:
    """The standard error of a process until it is enough, it ends, or time is up."""
    heard, pipe = b"", process.stderr
    assert pipe is not None
    while not enough(heard.decode(errors="replace")):
        if not select.select([pipe], [], [], max(deadline - time.monotonic(), 0.0))[0]:
            break
        more = os.read(pipe.fileno(), 65536)
        if not more:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(deadline - time.monotonic(), 0.1))
            break
        heard += more
    return heard.decode(errors="replace")


def only_ids(ids: Sequence[str]) -> str:
    """A comma list of ids; an empty one would mean every job to some commands."""
    if not ids:
        raise ValueError("an empty id list reaches every job")
    return ",".join(ids)
