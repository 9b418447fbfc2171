"""A real Slurm, the controller beside it as its own process, and jobs: the stage of the scenario tests."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from slurm_fair.errors import StoreError
from slurm_fair.lab import Lab
from slurm_fair.model import Event, Ledger
from slurm_fair.model.ids import parse_label
from slurm_fair.store import Reader, open_reader
from tests.slurm.counting import PLAIN_SCRIPT, SCRIPT, Diary, Start, hash_after
from tests.slurm.listing import Row, expand, listed, stays, wait_until

__all__ = [
    "REPOSITORY", "SHORT_LEASE", "Job", "Row", "Site", "expand", "playing", "stays",
    "wait_until",
]  # fmt: skip

REPOSITORY = Path(__file__).parents[2]
# Leases that end together make it plain at which instant jobs change hands.
SHORT_LEASE: Mapping[str, Any] = {
    "term": 8,
    "interval": 1,
    "grace": 4,
    "start_timeout": 8,
    "align": "aligned",
}
_numbers = count(1)


@dataclass(slots=True)
class Job:
    site: Site
    label: str
    diary: Diary
    nice: int | None
    total_steps: int | None

    @property
    def key(self) -> int:
        """The job as the journal names it."""
        return parse_label(self.label)

    def row(self) -> Row | None:
        """The job's row in squeue now; None where it has none."""
        return self.site.rows().get(self.label)

    def now(self) -> Row:
        """The row in squeue now of a job that must be listed."""
        row = self.row()
        assert row is not None, f"job {self.label} is not listed"
        return row

    @property
    def state(self) -> str:
        """Slurm's word, GONE when it is no longer listed."""
        row = self.row()
        return row.state if row else "GONE"

    def starts(self) -> list[Start]:
        """The starts that the job itself noted."""
        return self.diary.starts()

    def runs(self, seconds: float = 20) -> Job:
        """Wait until it runs and its script has said so."""
        wait_until(lambda: self._is_up(), seconds, f"job {self.label} runs")
        return self

    def _is_up(self) -> bool:
        row = self.row()
        return row is not None and row.state == "RUNNING" and len(self.starts()) > row.restarts

    def waits(self, seconds: float = 20) -> Job:
        """Wait until it waits behind our gate."""
        wait_until(lambda: self.is_gated(), seconds, f"job {self.label} waits behind a gate")
        return self

    def is_gated(self) -> bool:
        """Waits, kept back until a time ahead or by a hold."""
        row = self.row()
        return row is not None and row.state == "PENDING" and not row.free

    def ends(self, state: str = "COMPLETED", seconds: float = 40) -> Job:
        """Wait for its end."""
        wait_until(lambda: self.state == state, seconds, f"job {self.label} is {state}")
        return self

    def scontrol(self, *words: str, user: str | None = None) -> str:
        """`scontrol WORDS ID`, as somebody."""
        return self.site.lab.run("scontrol", *words, self.label, user=user).stdout

    def update(self, *pairs: str, user: str | None = None) -> None:
        """`scontrol update`, as somebody."""
        self.site.lab.run("scontrol", "update", f"jobid={self.label}", *pairs, user=user)

    def cancel(self, user: str | None = None) -> None:
        self.site.lab.run("scancel", self.label, user=user)


# Leases are seconds here, so that jobs have to change places after each: `fair` would weigh what a restart costs.
TURNS = '[policy]\nname = "astraea"\n[policy.astraea]\nswap_after = 1\n'


class Site:
    """A lab, a configuration, the daemon's process, and the jobs that were submitted."""

    def __init__(
        self,
        lab: Lab,
        gate: str = "begin",
        lease: Mapping[str, Any] = SHORT_LEASE,
        account: str | None = None,
        extra: str = "",
    ) -> None:
        self.lab, self.gate, self.lease = lab, gate, {**SHORT_LEASE, **lease}
        self.folder = lab.folder / f"site{next(_numbers)}"
        self.storage = self.folder / "s"
        self.config = self.folder / "c.toml"
        self.log = self.folder / "daemon.log"
        self.account, self.extra = account, extra  # the Unix user that runs the daemon, more configuration
        self.jobs: list[Job] = []
        self.process: subprocess.Popen[bytes] | None = None
        self._make_folders()
        self.write_config()

    @property
    def term(self) -> float:
        """Seconds of a lease."""
        return float(self.lease["term"])

    def _make_folders(self) -> None:
        for folder, mode in ((self.folder, 0o755), (self.storage, 0o750)):
            folder.mkdir()
            folder.chmod(mode)
            if self.account:
                shutil.chown(folder, self.account)
        for name, script in (("count.sh", SCRIPT), ("plain.sh", PLAIN_SCRIPT)):
            (self.folder / name).write_text(script)

    def write_config(self, more: str = "") -> None:
        """The configuration, with more lines at its end."""
        lease = "\n".join(f"{key} = {value!r}" for key, value in self.lease.items())
        scope = "" if "[scope]" in more else '[scope]\npartitions = ["gpu"]\n'
        policy = "" if "[policy" in self.extra + more else TURNS
        self.config.write_text(
            f"{scope}{policy}[lease]\n{lease}\n"
            f'[slurm]\nconf = "{self.lab.conf}"\ngate = "{self.gate}"\nnotice = false\n'
            f'[storage]\ndir = "{self.storage}"\n'
            f"{self.extra}\n{more}\n"
        )

    # -- the daemon ---------------------------------------------------------------------------------------

    def start(self, *options: str, wait: bool = True) -> Site:
        """Start the daemon; return after its first whole tick."""
        before = self.last_tick()
        program = [
            *(_as_account(self.account) if self.account else ()),
            sys.executable,
            "-m",
            "slurm_fair.cli",
        ]
        argv = [*program, "--config", str(self.config), "run", "-v", *options]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                argv, cwd=REPOSITORY, env=self.lab.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        if wait:
            wait_until(lambda: self._lives() and self.last_tick() > before, 20, "the daemon's first tick")
        return self

    def _lives(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, f"the daemon ended: {self.said()[-2000:]}"
        return True

    def signal(self, number: signal.Signals) -> None:
        """Send the daemon a signal."""
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        """kill -9, and wait until it is gone."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(10)

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        self.signal(signal.SIGTERM)
        assert self.process is not None
        return self.process.wait(20)

    def deadmen(self) -> list[int]:
        """Processes of this site's dead-man."""
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                argv = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if str(self.config).encode() in argv and b"deadman" in argv:
                found.append(int(entry.name))
        return found

    def end(self) -> None:
        """Close it, and print what it said: that is shown when the test failed."""
        print(self.said()[-4000:])
        self.close()

    def close(self) -> None:
        """End the daemon, its dead-man and every job, whatever state they are in."""
        self.kill()
        for pid in self.deadmen():
            os.kill(pid, signal.SIGKILL)
        self.empty_queue()

    def empty_queue(self) -> None:
        """No job of anybody."""
        self.lab.run("scancel", "--state=PENDING", "-p", "gpu", check=False)
        self.lab.run("scancel", *(f"--user={name}" for name in self._users()), check=False)
        wait_until(lambda: not self._alive(), 30, "the queue is empty")

    def _users(self) -> list[str]:
        return sorted({row.user for row in self.rows().values()}) or ["root"]

    def _alive(self) -> list[str]:
        done = ("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "DEADLINE")
        left = [row.label for row in self.rows().values() if row.state not in done]
        if left:
            self.lab.run("scancel", *left, check=False)
        return left

    def said(self) -> str:
        return self.log.read_text() if self.log.exists() else ""

    def cli(self, *words: str, check: bool = True, timeout: float = 60) -> subprocess.CompletedProcess[str]:
        """A slurm-fair command on this site."""
        argv = [sys.executable, "-m", "slurm_fair.cli", "--config", str(self.config), *words]
        done = subprocess.run(
            argv, cwd=REPOSITORY, env=self.lab.env, capture_output=True, text=True, timeout=timeout
        )
        assert done.returncode == 0 or not check, f"slurm-fair {' '.join(words)}: {done.stderr}"
        return done

    # -- its journal --------------------------------------------------------------------------------------

    def reader(self) -> Reader:
        """The journal, to read."""
        return open_reader(self.storage / "journal.db")

    def last_tick(self) -> int:
        """Number of the last tick; 0 before the first."""
        try:
            with self.reader() as journal:
                numbers = journal.tick_numbers()
        except StoreError:  # it is being made just now
            return 0
        return numbers[1] if numbers else 0

    def ticks_pass(self, number: int = 2, seconds: float = 15) -> None:
        """Wait for so many more ticks."""
        until = self.last_tick() + number
        wait_until(lambda: self.last_tick() >= until, seconds, f"{number} more ticks")

    def ledger(self) -> Ledger:
        """The ledger after the last tick."""
        with self.reader() as journal:
            standing = journal.latest()
        assert standing is not None
        return standing.ledger

    def had(self) -> dict[str, float]:
        """GPU-seconds that each tenant had, by the ledger."""
        tenants = self.ledger().tenants
        return dict(zip(tenants.names, tenants.had.tolist(), strict=True))

    def events(self, *kinds: str, job: Job | None = None) -> list[Event]:
        """Events of the journal, oldest first."""
        with self.reader() as journal:
            return list(journal.events(kinds=kinds, keys=None if job is None else [job.key]))

    def acts(self, job: Job | None = None, since: float = 0.0) -> list[str]:
        """Acts written down, as `verb result`, oldest first."""
        with self.reader() as journal:
            intents = journal.intents(since)
        return [
            f"{intent.action.verb.value} {intent.result.value if intent.result else 'open'}"
            for intent in intents
            if job is None or intent.action.key == job.key
        ]

    def planned(self, job: Job) -> list[tuple[str, ...]]:
        """The nodes of each grant of a job, oldest first."""
        return [tuple(event.detail["nodes"]) for event in self.events("granted", job=job)]

    # -- jobs ---------------------------------------------------------------------------------------------

    def rows(self) -> dict[str, Row]:
        """The whole queue, one row per job and array task."""
        return listed(self.lab)

    def submit(
        self,
        gpus: int | str = 1,
        *options: str,
        tenant: str = "vision",
        steps: int | None = None,
        pause: float = 0.2,
        gated: bool = True,
        stamped: bool = True,
        user: str | None = None,
        code: int = 0,
        manner: str = "",
        choices: tuple[int, ...] = (),
    ) -> Job:
        """A counting job as the templates submit one; `gpus` may be the option itself (--gres=...)."""
        wanted = f"--gpus={gpus}" if isinstance(gpus, int) else gpus
        script = "count.sh" if stamped else "plain.sh"
        gate, stamp = self._gate() if gated and stamped else ((), "")
        stamp += f",gpus={'+'.join(map(str, choices))}" if choices else ""
        comment = (f"--comment=slurm_fair:v1,signal=USR2{stamp}",) if stamped else ()
        asked = [*([wanted] if wanted else []), *gate, *comment, *options]
        lasts = [str(steps or 1_000_000), str(pause), str(code), manner] if stamped else []
        words = ["-A", tenant, *asked, str(self.folder / script), *lasts]
        label = self.sbatch(*words, user=user)
        nice = next((int(o.removeprefix("--nice=")) for o in options if o.startswith("--nice=")), 0)
        return self._known(Job(self, label, Diary(self.work(user), label), nice, steps))

    def sbatch(self, *words: str, user: str | None = None) -> str:
        """sbatch in somebody's folder; the job's id."""
        usual = ("--parsable", "--requeue", "--open-mode=append", "-o", "out.log")
        return self.lab.run("sbatch", *usual, *words, user=user, cwd=self.work(user)).stdout.strip()

    def job(self, label: str, user: str | None = None) -> Job:
        """A job, or an array task, that was submitted otherwise."""
        return self._known(Job(self, label, Diary(self.work(user), label), None, None))

    def _known(self, job: Job) -> Job:
        self.jobs.append(job)
        return job

    def work(self, user: str | None = None) -> Path:
        folder = self.folder / (user or "root")
        if not folder.exists():
            folder.mkdir()
            folder.chmod(0o755)
            if user:
                shutil.chown(folder, user)
        return folder

    def _gate(self) -> tuple[tuple[str, ...], str]:
        """The options with which a template of this site keeps a job back from the beginning."""
        return (("-H",), ",gate=hold") if self.gate == "hold" else (("--begin=now+600",), ",gate=+600")

    def billed(self) -> dict[str, float]:
        """GPU-seconds of each tenant by sacct, over all runs of this site's jobs."""
        env = ("env", "SLURM_TIME_FORMAT=%s")
        ids = ",".join(sorted({job.label.split("_")[0] for job in self.jobs}))
        fields = "JobID,Account,AllocTRES,Start,End,State"
        out = self.lab.run(*env, "sacct", "-n", "-P", "-X", "-D", "-a", "-j", ids, "-o", fields).stdout
        total: dict[str, float] = {}
        for line in out.splitlines():
            _, account, tres, start, end, _ = line.split("|")
            gpus = dict(pair.split("=") for pair in tres.split(",") if pair).get("gres/gpu", "0")
            if start.isdigit() and end.isdigit():
                total[account] = total.get(account, 0.0) + int(gpus) * max(int(end) - int(start), 0)
        return total

    # -- what must always hold ----------------------------------------------------------------------------

    def assert_clean(self) -> None:
        """Nothing poisoned, nothing of somebody else's changed, nothing run twice, no bug in the log."""
        rows = self.rows()
        poisoned = [row.label for row in rows.values() if row.state == "RUNNING" and row.priority == 0]
        assert not poisoned, f"running jobs that are held: {poisoned}"
        for job in self.jobs:
            row = rows.get(job.label)
            if row is not None and job.nice is not None:
                assert row.nice == job.nice, f"nice of job {job.label} was changed to {row.nice}"
            self._assert_ran_once(job, row)
        assert "is a bug" not in self.said(), self.said()[-4000:]

    def _assert_ran_once(self, job: Job, row: Row | None) -> None:
        restarts = [start.restart for start in job.starts()]
        assert restarts == sorted(set(restarts)), f"job {job.label} started twice: {job.starts()}"
        if row is not None and restarts:
            most = row.restarts + (row.state != "PENDING")
            assert len(restarts) <= most, f"job {job.label}: {len(restarts)} starts, {row.restarts} restarts"
            running = row.state in ("RUNNING", "COMPLETED")
            if running:
                assert len(restarts) == row.restarts + 1, f"job {job.label}: {restarts}, {row}"
        runs = [run for run, _ in job.diary.steps()]
        assert runs == sorted(runs), f"two runs of job {job.label} counted at once"
        result = job.diary.result()
        if result is not None and job.total_steps is not None:
            assert result == (job.total_steps, hash_after(job.total_steps)), f"job {job.label} counted wrong"


def _as_account(account: str) -> tuple[str, ...]:
    """Run what follows as this Unix user; Slurm sees nobody else.

    It may read what root can, because Python and the checkout of a developer often lie where only root can read.
    """
    may_read = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")
    return ("setpriv", f"--reuid={account}", f"--regid={account}", "--clear-groups", *may_read)


@contextmanager
def playing(site: Site) -> Iterator[Site]:
    """The site with its daemon running; nothing of it is left, and what must always hold is looked at before."""
    try:
        yield site.start()
        site.assert_clean()
    finally:
        site.end()
