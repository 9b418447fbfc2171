"""The job's side of a lease, for training scripts; needs only the standard library, so it may be copied.

To be copied it must be one file, which is why it is longer than the others here.

    from slurm_fair import lease

    newest = lease.latest("snapshots")                      # None on the very first run
    for step in range(newest.step if newest else 0, steps):
        train(step)
        lease.report(step=step + 1, steps=steps)
        if lease.should_stop():                             # the controller wants the GPUs back
            lease.save_snapshot("snapshots", step + 1, save)
            lease.acknowledge(step + 1)
            lease.wait_for_requeue()                        # returns only if nobody took the GPUs after all

Where a step may take longer than the grace, `keep` after each does all of that, and amid the next step too.
Outside Slurm, and in jobs that are not managed, every call does nothing and costs next to nothing.
"""

from __future__ import annotations

import _thread
import argparse
import contextlib
import errno
import itertools
import json
import math
import os
import re
import shutil
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Union

PROTOCOL_VERSION = 1
LOOK_SECONDS = 0.5  # how often the request file is looked at
REPORT_SECONDS = 5.0  # how often a report is written
REPORT_BYTES_MAX = 64 * 1024  # the controller reads no longer file
GRACE_SECONDS = 120.0
READ_BY_CONTROLLER = ("ack", "report")
DATA_LEAST = 0.05  # of a step: below that it does not matter when data are loaded
PHASES = ("data", "forward", "backward", "update", "sync")
SNAPSHOT = re.compile(r"^snapshot-r(\d+)-s(\d+)$")
HALF_SNAPSHOT = re.compile(r"^\.snapshot-r(\d+)-s\d+\.")

PathLike = Union[str, "os.PathLike[str]"]
_serial = itertools.count()
_placing = threading.Lock()  # held to put a snapshot in its place: the training and `keep`'s thread may both


@dataclass(frozen=True)
class Status:
    """The lease of this run: GPUs and lease end change from run to run."""

    restart: int
    gpus: int
    lease_end: float | None
    learning_rate_factor: float
    nodes: int = 1


@dataclass(frozen=True, order=True)
class SavedState:
    """A saved state; the later restart is the newer one, whatever its step (a dead node may live on)."""

    restart: int
    step: int
    path: Path


class Lease:
    """One run of one job: what was asked of it, and what it answered."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        """Read who we are; touches no file and no signal yet."""
        self._environ = environ
        self._managed = environ.get("SLURM_FAIR_MANAGED") == "1"
        folder = environ.get("SLURM_FAIR_DIR", "")
        self._folder = Path(folder) if self._managed and folder else None
        self._job = job_name(environ)
        # It tells runs of one job apart, which may live at the same time (slurm-facts: two-runs-at-once).
        self.restart = _whole(environ.get("SLURM_RESTART_COUNT"), 0)
        self.grace_seconds = float(_whole(environ.get("SLURM_FAIR_GRACE"), int(GRACE_SECONDS)))
        self._watching = False
        self._signals = self._signals_looked_at = self._request_in_file = 0
        self._looked_at = self._reported_at = -math.inf
        self._answered: int | None = None
        self._noticed_at = 0.0
        self._report: dict[str, Any] = {}
        self._found = 0  # the pattern that its own times show; 0 = none does
        self._phases: dict[str, tuple[float, int]] = {}
        self._whole = (0.0, 0)  # seconds and number of the steps that `step` timed since the last report
        self._timing = threading.Lock()  # data may be loaded, and timed, by another thread
        self._kept: tuple[int, Callable[[], Path | None]] = (-1, lambda: None)  # a step, and what writes it
        self._tried: object = None  # which of these was written, or failed
        self._stored: tuple[int | None, Path | None] = (None, None)
        self._storing, self._kept_at = threading.Lock(), time.monotonic()
        self._kept_by = self._thread_of = 0  # processes

    def should_stop(self) -> bool:
        """True if a request for the GPUs waits for an answer; cheap enough for every step."""
        if not self._managed:
            return False
        self._watch()
        self._look()
        if self._request() <= self._answered_so_far():
            return False
        self._noticed_at = self._noticed_at or time.monotonic()
        return True

    def acknowledge(self, step: int | None, path: PathLike | None = None, saved: bool = True) -> bool:
        """Answer the request, the state being on disk (rank 0 for all); False if nobody asked."""
        if not self.should_stop():
            return False
        began, self._answered, self._noticed_at = self._noticed_at, self._request(), 0.0
        return not self._is_leader() or self._answer(self._answered, step, path, saved, began)

    def wait_for_requeue(self, timeout_seconds: float | None = None) -> None:
        """Make no more progress until Slurm ends this run; go on when the grace is over and it did not."""
        if not self._managed:
            return
        deadline = time.monotonic() + (self.grace_seconds if timeout_seconds is None else timeout_seconds)
        while not self.should_stop() and (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, LOOK_SECONDS))

    def on_checkpoint(self, save: Callable[[], int | None]) -> bool:
        """Save once asked to stop (`save` returns the step), acknowledge and wait; True if all that happened."""
        if not self.should_stop():
            return False
        if self.acknowledge(save()):
            self.wait_for_requeue()
        return True

    def keep(
        self, directory: PathLike, step: int, state: Any, write: Callable[[Any, Path], object], keep: int = 2
    ) -> bool:
        """Keep the state after a step; when asked, rank 0 saves it by `write(state, path)`, even amid a step.

        If that step ends before the requeue, its state is saved too, and the training waits: only then True.
        `state` must not change any more. (The "last store" of Astraea, TPDS 2022, 5.1.1.)
        """
        asked, now = self.should_stop(), time.monotonic()
        if not self._managed:
            return False
        if self._is_leader():
            save = partial(save_snapshot, directory, step, partial(write, state), keep, self.restart)
            self._kept, self._kept_by = (step, save), os.getpid()
        # A step that long may be one call into a library, which no handler interrupts: do not wait for the signal.
        if now - self._kept_at > self.grace_seconds / 2:
            self._start_thread()
        self._kept_at = now
        if asked:
            with self._storing:
                self._store()
                self.acknowledge(*self._stored, saved=self._stored[1] is not None)
            self.wait_for_requeue()
        return asked

    def _store(self) -> bool:
        """Save what is kept, unless that was tried; a failure leaves what was stored before, and the job alive."""
        step, save = kept = self._kept
        if self._tried is not kept:
            self._tried = kept
            try:
                path = save()
                self._stored = self._stored if path is None else (step, path)
            except Exception:  # of the caller's `write`
                traceback.print_exc()
        return self._stored[0] == step

    def _start_thread(self) -> None:
        """Start the thread once. A forked process has its parent's handler and an old state: it starts none."""
        if self._kept_by == os.getpid() != self._thread_of:
            self._thread_of = os.getpid()
            _thread.start_new_thread(self._store_when_asked, ())  # `threading` takes locks: not for handlers

    def _store_when_asked(self) -> None:
        """The thread: answer each request with what is kept, though the training may answer with more later."""
        done = 0
        while True:
            self._look()
            request, began = self._request(), time.monotonic()
            if request > max(done, self._answered_so_far()):
                with self._storing:
                    if self._store() and self._answered_so_far() < request:
                        self._answer(request, *self._stored, True, began)
                done = request
            time.sleep(LOOK_SECONDS)

    def report(self, **keys: Any) -> bool:
        """Tell the controller how far the training is; written at most every few seconds, True if it was."""
        if self._folder is None or not self._is_leader():
            return False
        self._report.update({key: value for key, value in keys.items() if _is_plain(value)})
        now = time.monotonic()
        if now - self._reported_at < REPORT_SECONDS:
            return False
        self._reported_at = now
        with self._timing:
            phases, whole = self._phases, self._whole
            self._phases, self._whole = {}, (0.0, 0)
        if phases:
            each = {name: s / (whole[1] or n) for name, (s, n) in phases.items()}
            self._report["phases"] = {name: round(seconds, 6) for name, seconds in each.items()}
            self._found = pattern_of(each, whole[0] / whole[1]) if whole[1] else self._found
        found = {"pattern": self._found} if self._found else {}
        return self._write("report", {**found, **self._report}, durable=False)

    @contextlib.contextmanager
    def step(self, done: int, **keys: Any) -> Iterator[None]:
        """Time one whole step, of which `profile` times the phases, and report that so many steps are done."""
        began = time.perf_counter()
        yield
        with self._timing:
            seconds, count = self._whole
            self._whole = (seconds + time.perf_counter() - began, count + 1)
        self.report(step=done, **keys)

    @contextlib.contextmanager
    def profile(self, phase: str, sync: Callable[[], object] | None = None) -> Iterator[None]:
        """Time one phase of a step (data, forward, ...); `sync` waits for the GPU, which works on its own."""
        if phase not in PHASES:
            raise ValueError(f"phase {phase!r} is none of {', '.join(PHASES)}")
        began = time.perf_counter()
        try:
            yield
        finally:
            if sync is not None:
                sync()
            with self._timing:
                seconds, count = self._phases.get(phase, (0.0, 0))
                self._phases[phase] = (seconds + time.perf_counter() - began, count + 1)

    def status(self) -> Status:
        """The lease of this run as it is now."""
        env = self._environ
        nodes = _whole(env.get("SLURM_JOB_NUM_NODES"), 1)
        gpus = _whole(env.get("SLURM_FAIR_GPUS"), _whole(env.get("SLURM_GPUS_ON_NODE"), 0) * nodes)
        factor = learning_rate_factor(env.get("SLURM_FAIR_LR_RULE", ""), gpus, self._reference_gpus(gpus))
        return Status(self.restart, gpus, self._lease_end(), factor, nodes)

    def _reference_gpus(self, gpus: int) -> int:
        """The GPUs that the learning rate was chosen for: declared, else the first choice, else today's."""
        choices = re.split(r"[,|]", self._environ.get("SLURM_FAIR_GPUS_CHOICES", ""))
        return _whole(self._environ.get("SLURM_FAIR_GPUS_REFERENCE"), _whole(choices[0], gpus))

    def _lease_end(self) -> float | None:
        """The end of the lease where the site publishes it, and it speaks of this very run."""
        folder = self._environ.get("SLURM_FAIR_PUBLISH_DIR")
        if not (self._managed and folder and self._job):
            return None
        published = _read_json(Path(folder) / f"{self._job}.json")
        end = published.get("lease_end")
        same_run = published.get("restart", self.restart) == self.restart
        return _number(end) if same_run else None

    def _request(self) -> int:
        """The number of the newest request: by the runtime's file, or by the signals where there is none."""
        return max(self._request_in_file, self._signals)

    def _answered_so_far(self) -> int:
        """The newest request that this run answered, maybe by an earlier process of it."""
        if self._answered is None:
            self._answered = self._number_in("ack.json", "ack")
        return self._answered

    def _number_in(self, name: str, what: str) -> int:
        """The number of the request that a message of this run is about; 0 for any other file."""
        said = self._read(name)
        ours = (said.get("what"), said.get("job"), said.get("restart")) == (what, self._job, self.restart)
        return _whole(said.get("request"), 0) if ours else 0

    def _answer(
        self, request: int, step: int | None, path: PathLike | None, saved: bool, began: float
    ) -> bool:
        """Write the answer, in the place of an earlier one; all may read it, so the path is in the report."""
        if path is not None:
            self._report["path"] = os.fspath(path)
        seconds = round(time.monotonic() - began, 3)
        answer = {"request": request, "saved": saved, "step": step, "save_s": seconds}
        return self._write("ack", answer, durable=True)

    def _look(self) -> None:
        """Read the request file now and then, and at once after a signal.

        The signal may be lost (no handler yet while modules load, a rank on another node); the file is not.
        """
        now = time.monotonic()
        if self._signals == self._signals_looked_at and now - self._looked_at < LOOK_SECONDS:
            return
        self._looked_at, self._signals_looked_at = now, self._signals
        self._request_in_file = max(self._request_in_file, self._number_in("request.json", "request"))

    def _watch(self) -> None:
        """Count the request signals too, after whoever handled that signal before us."""
        if self._watching or threading.current_thread() is not threading.main_thread():
            return
        self._watching = True
        number = getattr(signal, "SIG" + self._environ.get("SLURM_FAIR_SIGNAL", "USR2"), None)
        if number is None or number == signal.SIGTERM:  # TERM must go on ending the process
            return
        previous = signal.getsignal(number)

        def count(signum: int, frame: Any) -> None:
            self._signals += 1
            self._start_thread()
            if callable(previous):
                previous(signum, frame)

        signal.signal(number, count)

    def _is_leader(self) -> bool:
        """One process speaks for the job: rank 0."""
        rank = self._environ.get("RANK", self._environ.get("SLURM_PROCID"))
        return _whole(rank, 0) == 0

    def _read(self, name: str) -> dict[str, Any]:
        """One of our files, or nothing."""
        try:
            with self._own_folder() as folder:
                return _object(_content(name, folder))
        except (OSError, ValueError):
            return {}

    @contextlib.contextmanager
    def _own_folder(self) -> Iterator[int]:
        """A descriptor of the folder of this job, as long as it and the one around it are its user's alone."""
        if self._folder is None:
            raise FileNotFoundError(errno.ENOENT, "this job has no folder")
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self._folder, flags)
        try:
            for facts in (os.fstat(descriptor), os.stat("..", dir_fd=descriptor)):
                if facts.st_uid != os.geteuid() or facts.st_mode & 0o022:
                    raise PermissionError(errno.EPERM, "others may write here", str(self._folder))
            yield descriptor
        finally:
            os.close(descriptor)

    def _write(self, what: str, document: Mapping[str, Any], durable: bool) -> bool:
        """Replace one of our files, unless a later run of this job wrote it; a full disk stops nobody."""
        name = f"{what}.json"
        if self._folder is None or _whole(self._read(name).get("restart"), 0) > self.restart:
            return False
        head = {"v": PROTOCOL_VERSION, "what": what, "job": self._job, "restart": self.restart}
        text = json.dumps({**head, **document, **head, "time": round(time.time(), 3)}) + "\n"
        if len(text) > REPORT_BYTES_MAX:
            return False
        try:
            with self._own_folder() as folder:
                _replace(name, text.encode(), folder, 0o644 if what in READ_BY_CONTROLLER else 0o600, durable)
        except OSError:
            return False
        return True


def pattern_of(phases: Mapping[str, float], whole: float) -> int:
    """The pattern that the seconds of a step show (Hops 3.5): 1 = data are loaded beside the rest, 2 = before it.

    Data count as loaded beside the rest where more than half of their time is missing in the whole step.
    Communication is left out, because it may run beside backward propagation in both. 0 = data take no time to
    speak of, or nobody timed them or the rest.
    """
    data, rest = (
        phases.get("data", 0.0),
        sum(phases.get(name, 0.0) for name in ("forward", "backward", "update")),
    )
    if not (rest > 0 and data > DATA_LEAST * whole > 0):
        return 0
    return 1 if data + rest - whole > data / 2 else 2


def learning_rate_factor(rule: str, gpus: int, reference: int) -> float:
    """The factor for the learning rate, with another number of GPUs than it was chosen for."""
    if gpus <= 0 or reference <= 0:
        return 1.0
    if rule in ("linear", "sqrt"):
        return gpus / reference if rule == "linear" else math.sqrt(gpus / reference)
    try:
        rates = {int(n): float(r) for n, r in (pair.split("=") for pair in rule.split(","))}
        factor = rates[gpus] / rates[reference]
    except (ValueError, KeyError, ZeroDivisionError):  # a rule that is none, or says nothing of these numbers
        return 1.0
    return factor if 0 < factor < math.inf else 1.0


def job_name(environ: Mapping[str, str]) -> str:
    """The job as its directory is called: <JobId>, or <ArrayJobId>_<Task>."""
    if environ.get("SLURM_ARRAY_JOB_ID"):
        return f"{environ['SLURM_ARRAY_JOB_ID']}_{environ.get('SLURM_ARRAY_TASK_ID', '0')}"
    return environ.get("SLURM_JOB_ID", "")


def replace(path: Path, content: bytes, durable: bool = True) -> None:
    """Replace a file, whole or not at all."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _replace(path.name, content, folder, 0o600, durable)
    finally:
        os.close(folder)


def _replace(name: str, content: bytes, folder: int, mode: int, durable: bool) -> None:
    """Write beside and rename, so that a reader sees the old file or the new one, never a part."""
    beside = f".{name}.{os.getpid()}.{next(_serial)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(beside, flags, mode, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode)  # whatever the umask
            file.write(content)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        os.replace(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        os.unlink(beside, dir_fd=folder)
        raise
    if durable:
        os.fsync(folder)


def _content(name: str, folder: int) -> bytes:
    """The content of a file of ours; no link is followed and no pipe waited for."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, dir_fd=folder), "rb") as file:
        return file.read(REPORT_BYTES_MAX)


def snapshots(directory: PathLike) -> list[SavedState]:
    """All whole snapshots, the newest first; half-written ones carry another name."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        found = ((SNAPSHOT.match(entry.name), Path(entry.path)) for entry in os.scandir(directory))
        return sorted((SavedState(int(m[1]), int(m[2]), path) for m, path in found if m), reverse=True)
    return []


def latest(directory: PathLike, valid: Callable[[Path], bool] | None = None) -> SavedState | None:
    """The newest snapshot that is not empty and passes the caller's own check, to resume from."""
    whole = (snapshot for snapshot in snapshots(directory) if _has_content(snapshot.path))
    return next((snapshot for snapshot in whole if valid is None or valid(snapshot.path)), None)


def may_write(directory: PathLike, restart: int | None = None) -> bool:
    """The fence: no, if a later run of this job has saved there (after a node failure two may be alive)."""
    own = CURRENT.restart if restart is None else restart
    return all(snapshot.restart <= own for snapshot in snapshots(directory))


def save_snapshot(
    directory: PathLike, step: int, write: Callable[[Path], object], keep: int = 2, restart: int | None = None
) -> Path | None:
    """Keep what `write(path)` makes, a file or folder, whole or not at all; None if the fence forbids it."""
    own = CURRENT.restart if restart is None else restart
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    if not may_write(folder, own):
        return None
    final = folder / f"snapshot-r{own:06d}-s{step:012d}"
    beside = folder / f".{final.name}.{os.getpid()}.{next(_serial)}"
    try:
        write(beside)
        for each in (*beside.rglob("*"), beside):
            _sync(each)
        with _placing:
            if beside.is_dir() and final.exists():
                shutil.rmtree(final)  # the same step of the same run, saved again
            os.replace(beside, final)
    finally:
        _remove(beside)
    _sync(folder)
    for old in snapshots(folder)[max(keep, 1) :]:
        _remove(old.path)
    for entry in os.scandir(folder):  # what earlier runs were writing when they were ended
        if (half := HALF_SNAPSHOT.match(entry.name)) and int(half[1]) < own:
            _remove(Path(entry.path))
    return final


def _whole(text: Any, default: int) -> int:
    """A whole number from text that Slurm or a file gave, or the default."""
    try:
        number = int(text)
    except (TypeError, ValueError, OverflowError):
        return default
    return number if abs(number) < 2**63 else default


def _number(value: Any) -> float | None:
    """A finite number that a file gave, or None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    with contextlib.suppress(OverflowError):
        return float(value) if math.isfinite(value) else None
    return None


def _is_plain(value: Any) -> bool:
    """True if JSON can carry the value (it has no NaN)."""
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    return math.isfinite(value) if isinstance(value, float) else isinstance(value, (str, int))


def _read_json(path: Path) -> dict[str, Any]:
    """The object in a file, or an empty one where there is none."""
    try:
        return _object(path.read_bytes())
    except OSError:
        return {}


def _object(text: bytes) -> dict[str, Any]:
    """The JSON object that a text is, or an empty one."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _has_content(path: Path) -> bool:
    """True if anything is in the file or folder (a crash of the file system leaves empty ones)."""
    with contextlib.suppress(OSError):
        return any(path.iterdir()) if path.is_dir() else path.stat().st_size > 0
    return False


def _sync(path: Path) -> None:
    """Have the disk keep one file or folder entry."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    """Take a file or folder away, if it is there."""
    with contextlib.suppress(OSError):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


CURRENT = Lease(os.environ)  # the run that this process belongs to
should_stop = CURRENT.should_stop
acknowledge = CURRENT.acknowledge
wait_for_requeue = CURRENT.wait_for_requeue
on_checkpoint = CURRENT.on_checkpoint
keep = CURRENT.keep
report = CURRENT.report
step = CURRENT.step
profile = CURRENT.profile
status = CURRENT.status


def main(arguments: list[str] | None = None) -> int:
    """The same calls for shell scripts: should-stop and ack exit 0 for yes, 1 for no."""
    parser = argparse.ArgumentParser("lease.py", description="The job's side of a lease, in shell scripts.")
    parser.add_argument("verb", choices=("should-stop", "ack", "wait", "status", "report"))
    parser.add_argument("keys", nargs="*", default=[], metavar="KEY=NUMBER", help="for report")
    parser.add_argument("--step", type=int, help="for ack: the step that is saved")
    parser.add_argument("--path", help="for ack: where it is saved")
    parser.add_argument("--not-saved", action="store_true", help="for ack: nothing could be saved")
    given = parser.parse_args(arguments)
    if given.keys and given.verb != "report":
        parser.error(
            f"{given.verb} takes no '{given.keys[0]}'" + (": write --step N" if given.verb == "ack" else "")
        )
    if given.verb == "wait":
        wait_for_requeue()
    elif given.verb == "status":
        print(json.dumps(asdict(status())))
    elif given.verb == "report":
        with contextlib.suppress(ValueError):
            report(**{key: float(value) for key, _, value in (pair.partition("=") for pair in given.keys)})
    elif given.verb == "ack":
        return 0 if acknowledge(given.step, given.path, not given.not_saved) else 1
    return 0 if given.verb != "should-stop" or should_stop() else 1


if __name__ == "__main__":
    sys.exit(main())
