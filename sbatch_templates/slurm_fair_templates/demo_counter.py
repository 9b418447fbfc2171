"""A stand-in for training, whose result proves that every step counted exactly once.

Each step hashes the state before it: h = sha256(h || step). The hash at the end is right only if the final run
stands on snapshots that hold every step once, in order, however often the job was stopped, killed or moved.
    python demo_counter.py --steps 600 --step-seconds 0.1 --directory out
Files: steps.log (a line for each step executed, also those lost and run again), starts.log (a line for each
start: restart, node, epoch, step resumed from), snapshots/, result.json.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import socket
import sys
import time
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

FENCED_EXIT = 3
START_HASH = b"\0" * 32


def step_hash(before: bytes, step: int) -> bytes:
    """One link of the chain."""
    return hashlib.sha256(before + step.to_bytes(8, "big")).digest()


def chain(steps: int) -> str:
    """The hash after so many steps, each counted once."""
    state = START_HASH
    for step in range(1, steps + 1):
        state = step_hash(state, step)
    return state.hex()


def verify(result: dict[str, Any], steps: int) -> bool:
    """True if a result.json is that of exactly these steps."""
    return result.get("steps") == steps and result.get("hash") == chain(steps)


def find_lease() -> ModuleType:
    """The job's side of the lease: the file named in the environment, the installed one, or one beside us."""
    named = os.environ.get("SLURM_FAIR_LEASE_PY", "")
    if named and Path(named).is_file():
        spec = importlib.util.spec_from_file_location("slurm_fair_lease", named)
        if spec is not None and spec.loader is not None:
            module = importlib.util.module_from_spec(spec)
            sys.modules[spec.name] = module  # dataclasses look their module up
            spec.loader.exec_module(module)
            return module
    for name in ("slurm_fair.lease", "lease"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    sys.exit("demo_counter: no lease.py: set SLURM_FAIR_LEASE_PY to its path")


class Counter:
    """The training: a step number and a hash, saved together."""

    def __init__(self, directory: Path, checkpoint_bytes: int, lease: ModuleType) -> None:
        """Resume from the newest whole snapshot, else begin."""
        self.directory = directory
        self.snapshots = directory / "snapshots"
        self.checkpoint_bytes = checkpoint_bytes
        self.lease = lease
        self.step, self.state = 0, START_HASH
        newest = lease.latest(self.snapshots, is_whole)
        if newest is not None:
            saved = read_snapshot(newest.path)
            self.step, self.state = saved["step"], bytes.fromhex(saved["hash"])

    def advance(self) -> None:
        """Execute one step, and note that it was executed."""
        self.step += 1
        self.state = step_hash(self.state, self.step)
        append(self.directory / "steps.log", f"{self.lease.CURRENT.restart} {self.step}")

    def save(self) -> int:
        """Write a snapshot; a run that a later one has overtaken must end here, silently harmless."""
        write = partial(self.write, (self.step, self.state))
        if self.lease.save_snapshot(self.snapshots, self.step, write) is None:
            print("demo_counter: a later run of this job has saved already; this one ends", file=sys.stderr)
            sys.exit(FENCED_EXIT)
        return self.step

    def keep(self) -> bool:
        """Have this state stored when the GPUs are wanted back, also while the next step runs."""
        waited: bool = self.lease.keep(self.snapshots, self.step, (self.step, self.state), self.write)
        return waited

    def write(self, state: tuple[int, bytes], path: Path) -> None:
        """A line of JSON, then as many bytes as a model has."""
        head = json.dumps({"step": state[0], "hash": state[1].hex(), "bytes": self.checkpoint_bytes})
        with path.open("wb") as file:
            file.write(head.encode() + b"\n")
            for at in range(0, self.checkpoint_bytes, 1 << 20):
                file.write(b"\0" * min(1 << 20, self.checkpoint_bytes - at))


def read_snapshot(path: Path) -> dict[str, Any]:
    """The line of JSON of a snapshot."""
    with path.open("rb") as file:
        document = json.loads(file.readline())
    return document if isinstance(document, dict) else {}


def is_whole(path: Path) -> bool:
    """True if all bytes of a snapshot are there."""
    try:
        with path.open("rb") as file:
            head = file.readline()
        return path.stat().st_size == len(head) + int(json.loads(head)["bytes"])
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return False


def append(path: Path, line: str) -> None:
    """Add a line in one write, so that lines of two runs never mix."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        os.write(descriptor, line.encode() + b"\n")
    finally:
        os.close(descriptor)


def count_up(
    counter: Counter, steps: int, step_seconds: float, checkpoint_every: int, last_store: bool = False
) -> None:
    """Advance to the last step, saving now and then and whenever the GPUs are wanted back."""
    while counter.step < steps:
        time.sleep(step_seconds)
        counter.advance()
        counter.lease.report(
            step=counter.step, steps=steps, samples_per_s=round(1 / max(step_seconds, 1e-6), 3)
        )
        if counter.keep() if last_store else counter.lease.on_checkpoint(counter.save):
            continue
        if checkpoint_every and counter.step % checkpoint_every == 0:
            counter.save()


def write_result(counter: Counter) -> None:
    """Write the count, and how many steps were executed for it."""
    executed = len((counter.directory / "steps.log").read_text(encoding="ascii").splitlines())
    result = {
        "v": 1,
        "steps": counter.step,
        "hash": counter.state.hex(),
        "restarts": counter.lease.CURRENT.restart,
        "executed_steps": executed,
        "lost_steps": executed - counter.step,
    }
    counter.lease.replace(counter.directory / "result.json", json.dumps(result).encode() + b"\n")


def main() -> int:
    parser = argparse.ArgumentParser(
        "demo_counter.py", description="A stand-in for training that proves itself."
    )
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--step-seconds", type=float, default=1.0)
    parser.add_argument("--checkpoint-bytes", type=int, default=1 << 20)
    parser.add_argument("--checkpoint-every", type=int, default=0, help="steps; 0: only when asked")
    parser.add_argument(
        "--last-store", action="store_true", help="keep each step's state, to store it amid a long step"
    )
    parser.add_argument("--directory", type=Path, help="default: counter-<job>")
    given = parser.parse_args()
    lease = find_lease()
    directory: Path = given.directory or Path(f"counter-{lease.job_name(os.environ) or 'local'}")
    directory.mkdir(parents=True, exist_ok=True)
    lease.should_stop()  # the handler stands before the first long load
    counter = Counter(directory, given.checkpoint_bytes, lease)
    where = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
    append(directory / "starts.log", f"{lease.CURRENT.restart} {where} {time.time():.3f} {counter.step}")
    (directory / "steps.log").touch()
    count_up(counter, given.steps, given.step_seconds, given.checkpoint_every, given.last_store)
    write_result(counter)
    return 0


if __name__ == "__main__":
    sys.exit(main())
