"""Slurm's command line over a World: the same argv in, the same text out, and an error for anything else."""

from __future__ import annotations

import math
import os
import pwd
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from slurm_fair.model.ids import NO_TASK
from slurm_fair.slurm.command import CommandResult, Commands
from tests.support.fake_slurm import ADMIN, COMPLETING, PENDING, RUNNING, Machine, Record, World

NO_CONTROLLER = "Unable to contact slurm controller (connect failure)"
LOST = "Unexpected message received"
_SIZE = ("numnodes", "numtasks", "numcpus", "trespernode", "tresperjob")
_ID = re.compile(r"([0-9]+)(?:_(?:([0-9]+)|\[([0-9,\-]+)\]))?")
ME = pwd.getpwuid(os.geteuid()).pw_name  # the jobs' user, who wrote their acknowledgements
_O_FIELD = re.compile(r"([A-Za-z\-_]+):([^,A-Za-z]*)")


@dataclass(slots=True)
class Trouble:
    """A fault of the connection just now."""

    dead: bool = False  # the controller does not answer; nothing is done
    lose_replies: int = 0  # so many acts are done, and their answers get lost
    late_replies: int = 0  # so many acts time out and are done a little later
    late_by: float = 5.0
    garbled: str = ""  # the next listing is this text instead


class FakeCommands(Commands):
    """Commands that reach a World; `watch` hears of each act before and after it is done."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world, self.trouble = world, Trouble()
        self.watch: Callable[[str, tuple[str, ...]], None] = lambda when, argv: None
        self.said: list[str] = []  # every act, as a line
        self.work = "/nonexistent"  # the working folders of its jobs
        self.look_seconds = 0.001  # of slurmctld's time, for each call

    def run(
        self, *argv: str, stdin: str | None = None, timeout_seconds: float | None = None
    ) -> CommandResult:
        self._begins()
        self.world.catch_up()
        if argv == ("scontrol", "-d", "-o") and stdin is not None and not self.trouble.dead:
            return self._shown(argv, stdin)
        if argv[0] == "scancel" or (argv == ("scontrol",) and stdin is not None):
            return self._act(argv, stdin or "")
        if self.trouble.dead:
            return CommandResult(argv, 1, "", f"slurm_load_jobs error: {NO_CONTROLLER}", 2.0)
        if self.trouble.garbled:
            text, self.trouble.garbled = self.trouble.garbled, ""
            return CommandResult(argv, 0, text, "", 0.01)
        return self._listing(argv)

    def run_until(self, enough: Callable[[str], bool], *argv: str, timeout_seconds: float) -> CommandResult:
        """scancel for tasks of an array that has waiting ones: sent, and an answer that seems to deny it."""
        if argv[:3] != ("scancel", "-v", "--batch"):
            raise NotImplementedError(" ".join(argv))
        answer = self.run("scancel", *argv[2:])
        if answer.code or answer.timed_out:
            return answer
        waiting = [self._waits_in_array(job) for job in argv[4:]]
        heard = "scancel: Job is in transitional state, retrying\n" * sum(tasks > 1 for tasks in waiting)
        if not heard:
            return CommandResult(argv, 0, "", "", 0.01)
        if enough(heard):
            return CommandResult(argv, -9, "", heard, 0.01)
        self.world.clock.advance(timeout_seconds)
        return CommandResult(argv, -9, "", heard, timeout_seconds, timed_out=True)

    def _waits_in_array(self, job: str) -> int:
        """The number of tasks of its array that wait in one record; of the last one Slurm says nothing."""
        base = int(job.partition("_")[0])
        return max((len(r.tasks) for r in self.world.records.values() if r.base == base), default=0)

    def path(self, program: str) -> str:
        """The fake has no programs, and never reaches for the machine's own."""
        raise NotImplementedError(program)

    # -- acts ---------------------------------------------------------------------------------------------

    def _act(self, argv: tuple[str, ...], stdin: str) -> CommandResult:
        lines = [line for line in stdin.split("\n") if line and line != "exit"]
        said = tuple(lines) or (" ".join(argv),)
        self.said += said
        self.watch("before", said)
        answer = self._answer_act(argv, lines)
        self.world.catch_up()
        self.watch("after", said)
        return answer

    def _answer_act(self, argv: tuple[str, ...], lines: list[str]) -> CommandResult:
        trouble = self.trouble
        ids = [_id_of(line) for line in lines] or [word for word in argv[1:] if word[0].isdigit()]
        if trouble.dead:
            text = "\n".join(f"{LOST} for job {job}" for job in ids)
            return CommandResult(argv, 8 if argv[0] == "scancel" else 1, "", text, 2.0)
        if trouble.late_replies:
            trouble.late_replies -= 1
            self.world.later.append(
                (self.world.time + trouble.late_by, lambda: self._do_quietly(argv, lines))
            )
            return CommandResult(argv, -1, "", "", self.timeout_seconds, timed_out=True)
        errors = self._do(argv, lines)
        if trouble.lose_replies:
            trouble.lose_replies -= 1
            text = "\n".join(f"{LOST} for job {job}" for job in ids)
            return CommandResult(argv, 1, "", text, 3.0)
        return CommandResult(argv, 1 if errors else 0, "", "\n".join(errors), 0.01)

    def _do_quietly(self, argv: tuple[str, ...], lines: list[str]) -> None:
        self._do(argv, lines)

    def _do(self, argv: tuple[str, ...], lines: list[str]) -> list[str]:
        if argv[0] == "scancel":
            return self._signal(argv[1:])
        return [error for line in lines for error in self._line(line)]

    def _signal(self, words: Sequence[str]) -> list[str]:
        if words[0] != "--batch" or words[1] not in ("--signal=USR1", "--signal=USR2", "--signal=TERM"):
            raise NotImplementedError(f"scancel {' '.join(words)}")
        errors = []
        for job in words[2:]:
            records = self._records(job)
            error = self.world.signal(records[0]) if records else "Invalid job id specified"
            errors += [f"scancel: error: Kill job error on job id {job}: {error}"] if error else []
        return errors

    def _line(self, line: str) -> list[str]:
        """Error texts of one line of scontrol's standard input; none when it was done."""
        verb, *words = line.split(" ")
        act = {"update": self._update, "hold": self._hold, "release": self._release}.get(verb)
        if verb in ("requeue", "requeuehold"):
            if len(words) != 2 or words[0] != "incomplete":
                raise NotImplementedError(f"a requeue that would restart a finished job: {line}")
            return self._each(words[1], lambda r: self.world.requeue(r, verb == "requeuehold"))
        if act is None:
            raise NotImplementedError(f"scontrol {line}")
        return act(words)

    def _each(self, job: str, act: Callable[[Record], str]) -> list[str]:
        records = self._records(job)
        errors = [act(record) for record in records] or ["Invalid job id specified"]
        return [f"{error} for job {job}" for error in dict.fromkeys(errors) if error]

    def _update(self, words: list[str]) -> list[str]:
        pairs = dict(word.split("=", 1) for word in words)
        job = pairs.pop("jobid")
        wanted = pairs.pop("reqnodelist", None)
        times = [self._time(pairs.pop(name)) for name in ("starttime", "eligibletime") if name in pairs]
        size = {name: pairs.pop(name) for name in _SIZE if name in pairs}
        if pairs or not _ID.fullmatch(job):
            raise NotImplementedError(f"scontrol update {' '.join(words)}")
        nodes = None if wanted is None else tuple(name for name in wanted.split(",") if name)
        when = times[0] if times else None
        return self._each(job, lambda r: self.world.update(r, nodes, when, _sized(r, size) if size else None))

    def _time(self, text: str) -> float:
        if text.startswith("uts"):
            return float(int(text[3:]))
        now, _, more = text.partition("+")
        if now != "now":
            raise NotImplementedError(f"time {text}")
        return float(int(self.world.time)) + float(more or 0)

    def _hold(self, words: list[str]) -> list[str]:
        def hold(record: Record) -> str:
            if not record.alive:
                return "Job has already finished"
            record.hold(ADMIN, self.world.time)
            return ""

        return self._each(words[0], hold)

    def _release(self, words: list[str]) -> list[str]:
        def release(record: Record) -> str:
            record.held, record.eligible = "", max(record.eligible, record.submit)
            self.world.wake()
            return "" if record.alive else "Job has already finished"

        return self._each(words[0], release)

    def _records(self, job: str) -> list[Record]:
        """The records that an id means; tasks of an unsplit array are split off when not all are meant."""
        match = _ID.fullmatch(job)
        if match is None:
            raise NotImplementedError(f"job id {job}")
        base, one, several = int(match[1]), match[2], match[3]
        mine = [r for r in self.world.records.values() if base in (r.base, r.number)]
        if one is None and several is None:
            apart = [r for r in mine if r.number == base and r.task == NO_TASK and not r.tasks]
            return apart or [r for r in mine if r.base == base and r.alive] or mine[:1]
        tasks = {int(one)} if one else set(_numbers(several))
        whole = next((r for r in mine if r.tasks), None)
        found = [r for r in mine if not r.tasks and r.task in tasks]
        if whole is not None and tasks >= set(whole.tasks):
            return [whole, *found]
        inside = [task for task in whole.tasks if task in tasks] if whole else []
        return found + [self.world.split(whole, task) for task in inside if whole]

    # -- listings -----------------------------------------------------------------------------------------

    def _listing(self, argv: tuple[str, ...]) -> CommandResult:
        if argv[0] == "squeue":
            return self._squeue(argv)
        if argv[0] == "sinfo" and argv[1:5] == ("-h", "-N", "-a", "-O"):
            fields = _O_FIELD.findall(argv[5])
            rows = [_machine_row(m, self._used(m)) for m in self.world.machines.values()]
            return CommandResult(argv, 0, _table(rows, fields), "", 0.01)
        if argv[0] == "sshare":
            lines = [f" {name}||{weight:g}" for name, weight in sorted(self.world.weights.items())]
            return CommandResult(argv, 0, "\n".join(["root||", *lines, ""]), "", 0.01)
        if argv[:3] == ("sprio", "-h", "-j"):  # nobody has fixed a priority
            return CommandResult(argv, 0, "", "", 0.01)
        if argv == ("scontrol", "-o", "show", "reservation"):
            return CommandResult(argv, 0, _reservations(self.world.reserved), "", 0.01)
        if argv == ("scontrol", "ping"):
            return CommandResult(argv, 0, "Slurmctld(primary) at fake is UP\n", "", 0.01)
        if argv == ("scontrol", "show", "config"):
            return CommandResult(
                argv, 0, "ClusterName             = fake\nSLURM_VERSION           = 22.05.8\n", "", 0.01
            )
        if argv == ("sdiag",):
            return self._counters(argv)
        raise NotImplementedError(" ".join(argv))

    def _counters(self, argv: tuple[str, ...]) -> CommandResult:
        """The counters of slurmctld; each listing took it a millisecond, or what a test says."""
        records = self.world.records.values()
        over = sum(not record.alive for record in records)
        jobs = {"submitted": len(records), "started": len(self.world.starts), "completed": over}
        rows = {
            "REQUEST_UPDATE_JOB": (len(self.said), 0),
            "MESSAGE_EPILOG_COMPLETE": (over, 0),
            "REQUEST_JOB_INFO": (self.calls, int(self.calls * self.look_seconds * 1e6)),
        }
        lines = [f"Jobs {name}: {count}" for name, count in (jobs | {"canceled": 0, "failed": 0}).items()]
        lines += ["", "Remote Procedure Call statistics by message type"]
        lines += [
            f"\t{name:40}( 1000) count:{count:<6} ave_time:0      total_time:{took}"
            for name, (count, took) in rows.items()
        ]
        lines += [
            "",
            "Remote Procedure Call statistics by user",
            "\troot (  0) count:7 ave_time:1 total_time:7",
            "",
        ]
        return CommandResult(argv, 0, "\n".join(lines), "", 0.004)

    def _shown(self, argv: tuple[str, ...], stdin: str) -> CommandResult:
        """scontrol repeats each command that it reads, and answers it."""
        said = []
        for line in stdin.splitlines():
            what, _, which = line.removeprefix("show ").partition(" ")
            told = {"job": lambda name: _layout(self.world.records[int(name)]), "hostnames": "{}\n".format}
            said.append(f"scontrol: {line}\n" + (told[what](which) if line != "exit" else ""))
        return CommandResult(argv, 0, "".join(said), "", 0.01)

    def _squeue(self, argv: tuple[str, ...]) -> CommandResult:
        if argv[1:6] != ("-h", "-a", "-t", "all", "--array-unique"):
            raise NotImplementedError(" ".join(argv))
        records, words = self.world.listed(), argv[6:]
        if words[0] == "-j":
            asked = {int(text) for text in words[1].split(",")}
            records = [r for r in records if r.base in asked or r.number in asked]
            if not records:
                return CommandResult(argv, 1, "", "slurm_load_jobs error: Invalid job id specified", 0.01)
            words = words[2:]
        rows = [self._job_row(record) for record in records]
        if words[0] == "-O":
            return CommandResult(argv, 0, _table(rows, _O_FIELD.findall(words[1])), "", 0.01)
        letters = [(f"%{letter}", between) for letter, between in re.findall(r"%([A-Za-z])([^%]*)", words[1])]
        return CommandResult(argv, 0, _table(rows, letters), "", 0.01)

    def _job_row(self, r: Record) -> dict[str, str]:
        tasks = ",".join(map(str, r.tasks)) + (f"%{r.array_limit}" if r.array_limit else "")
        running = r.state in (RUNNING, COMPLETING)
        held = bool(r.held)
        return {
            "JobID": str(r.number), "ArrayJobID": str(r.base), "HetJobID": "N/A", "UserName": ME,
            "ArrayTaskID": tasks if r.tasks else "N/A" if r.task < 0 else str(r.task),
            "State": r.state, "Reason": self.world.reason(r), "Account": r.tenant, "Partition": r.partition,
            "QOS": "normal", "NumNodes": str(len(r.on) or r.nodes), "NodeList": ",".join(r.on) if running else "",
            "ReqNodes": ",".join(r.wanted), "NumTasks": str(r.nodes),
            "Dependency": f"afterok:{r.after.number}" if r.after and r.depends else "(null)",
            "Reservation": "(null)",
            "tres-alloc": f"cpu={r.nodes},mem={r.nodes}G,node={r.nodes},billing=1,gres/gpu={r.gpus}",
            "tres-per-node": f"gres:gpu:{r.gpus_per_node}" if r.gpus_per_node else "N/A",
            "tres-per-job": "N/A" if r.gpus_per_node else f"gres:gpu:{r.gpus}", "tres-per-task": "N/A",
            "SubmitTime": f"{r.submit:.0f}", "EligibleTime": f"{r.eligible:.0f}",
            "LastSchedEval": f"{r.scheduled:.0f}",
            "StartTime": f"{r.start or r.eligible:.0f}", "EndTime": f"{r.end:.0f}" if r.end else "NONE",
            "PriorityLong": "0" if held else "1", "TimeLimit": _duration(r.time_limit),
            "Deadline": f"{r.deadline:.0f}" if r.deadline else "N/A", "MinTime": "0:00",
            "OverSubscribe": "OK", "NTPerNode": "0", "cpus-per-tres": "N/A", "mem-per-tres": "N/A",
            "RestartCnt": str(r.restarts), "BatchFlag": "0" if r.interactive else "1",
            "Requeue": str(int(r.requeue)), "Nice": "0",
            "%A": str(r.number), "%f": r.constraint or "(null)", "%x": ",".join(r.excluded),
            "%Z": f"{self.work}/{r.base}", "%k": r.comment or "(null)", "%j": "wrap",
            **r.raw,
        }  # fmt: skip

    def _used(self, machine: Machine) -> int:
        return machine.others + sum(record.on.get(machine.name, 0) for record in self.world.records.values())


def _sized(record: Record, pairs: Mapping[str, str]) -> tuple[int, int, int]:
    """GPUs in all, those of each node, and nodes after an update."""
    nodes = int(pairs["numnodes"].partition("-")[0]) if "numnodes" in pairs else record.nodes
    (count,) = [int(text.rpartition(":")[2]) for name, text in pairs.items() if name.startswith("tresper")]
    if "trespernode" in pairs:
        return count * nodes, count, nodes
    return count, 0, nodes


def _reservations(reserved: Mapping[str, tuple[float, float]]) -> str:
    lines = [
        f"ReservationName=of-{node} StartTime={start:.0f} EndTime={end:.0f} Nodes={node} NodeCnt=1\n"
        for node, (start, end) in reserved.items()
    ]
    return "".join(lines) or "No reservations in the system\n"


def _machine_row(m: Machine, used: int) -> dict[str, str]:
    state = {"idle": "mixed" if used else "idle", "drained": "idle+drain", "down": "down"}[m.state]
    return {
        "NodeList": m.name, "PartitionName": m.partition, "Available": "up", "Gres": f"gpu:a100:{m.gpus}",
        "GresUsed": f"gpu:a100:{used}(IDX:N/A)", "StateComplete": state, "CPUsState": f"0/{m.cpus}/0/{m.cpus}",
        "Memory": str(m.memory_mb), "AllocMem": "0", "features_act": ",".join(m.features) or "(null)",
    }  # fmt: skip


def _table(rows: Iterable[dict[str, str]], fields: Sequence[tuple[str, str]]) -> str:
    """Rows as Slurm prints them; a field that nobody taught the fake is a KeyError."""
    return "".join("".join(f"{row[name]}{between}" for name, between in fields) + "\n" for row in rows)


def _layout(record: Record) -> str:
    parts = [f" Nodes={name} CPU_IDs=0 Mem=1 GRES=gpu:a100:{n}(IDX:0)" for name, n in record.on.items()]
    name, work_dir = record.raw.get("%j", "wrap"), record.raw.get("%Z", "/work")
    more = f"JobState={record.state}{''.join(parts)} WorkDir={work_dir} Comment={record.raw.get('%k', '')}"
    return f"JobId={record.number} JobName={name} {more}\n"


def _numbers(text: str) -> list[int]:
    spans = (piece.partition("-") for piece in text.split(","))
    return [number for first, _, last in spans for number in range(int(first), int(last or first) + 1)]


def _duration(seconds: float) -> str:
    return "UNLIMITED" if math.isinf(seconds) else f"{seconds // 60:.0f}:{seconds % 60:02.0f}"


def _id_of(line: str) -> str:
    words = line.split(" ")
    return words[1].removeprefix("jobid=") if words[0] == "update" else words[-1]


__all__ = ["PENDING", "FakeCommands", "Trouble"]
