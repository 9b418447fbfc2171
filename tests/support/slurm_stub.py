"""Slurm's programs as scripts that write down what they are asked and answer from a table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from slurm_fair.slurm.command import Commands
from slurm_fair.slurm.reading.queue import BETWEEN, FIELDS, ROW_END, Queue

PROGRAMS = ("squeue", "scontrol", "scancel", "sinfo", "sshare", "sacct", "sprio")
# A layout comes beside argv and is written down as if it stood there. The n-th call gets the n-th answer, later
# ones the last; sacct has the separator that it was asked for. `exec sleep` so that a time limit ends it.
SCRIPT = """#!/bin/sh
name=${0##*/} dir=${0%/*}/..
exec 9>>$dir/$name.lock; flock 9
n=0; [ ! -e $dir/$name.count ] || read n < $dir/$name.count
n=$((n + 1)); echo $n > $dir/$name.count
[ -z "$SQUEUE_FORMAT2" ] || set -- "$@" -O "$SQUEUE_FORMAT2"
[ -z "$SQUEUE_FORMAT" ] || set -- "$@" -o "$SQUEUE_FORMAT"
printf '%s\\000' "$name" $# "$@" >> $dir/log; exec 9>&-
cat > $dir/$name.$n.stdin
while [ $n -gt 0 ] && [ ! -e $dir/$name.$n.code ]; do n=$((n - 1)); done
answer=$dir/$name.$n
[ $n -gt 0 ] || { echo "$name: nothing was foreseen" >&2; exit 99; }
[ ! -e $answer.hangs ] || exec sleep 60
between='|'; for word; do case $word in --delimiter=*) between=${word#*=};; esac; done
sed "s/|/$between/g" $answer.out; cat $answer.err >&2
read code < $answer.code; exit $code
"""
QUIET = {
    "JobID": "7", "ArrayJobID": "7", "ArrayTaskID": "N/A", "HetJobID": "N/A", "UserName": "alice",
    "State": "PENDING", "Reason": "BeginTime", "Account": "vision", "Partition": "gpu", "QOS": "normal",
    "NumNodes": "1", "NodeList": "", "ReqNodes": "", "tres-alloc": "cpu=1,mem=8000M,node=1,gres/gpu=1",
    "tres-per-node": "N/A", "tres-per-job": "gres:gpu:1", "tres-per-task": "N/A", "NumTasks": "1",
    "SubmitTime": "1795000000", "EligibleTime": "1795009000", "StartTime": "N/A", "EndTime": "N/A",
    "PriorityLong": "100", "TimeLimit": "1:00:00", "Dependency": "(null)", "RestartCnt": "0", "BatchFlag": "1",
    "Requeue": "1", "Reservation": "(null)", "Deadline": "N/A", "MinTime": "0:00",
    "OverSubscribe": "OK", "NTPerNode": "0", "cpus-per-tres": "N/A", "mem-per-tres": "N/A",
}  # fmt: skip


def row(**fields: object) -> str:
    """One row of squeue as our format asks for it; `tres_alloc=` stands for the column tres-alloc."""
    given = {
        name.replace("_", "-") if name.startswith(("tres", "cpus", "mem")) else name: value
        for name, value in fields.items()
    }
    assert given.keys() <= set(FIELDS), given
    if "JobID" in given:
        given.setdefault("ArrayJobID", given["JobID"])
    return BETWEEN.join(str((QUIET | given)[name]) for name in FIELDS) + f"{ROW_END}\n"


@dataclass
class Stub:
    """The programs in a folder, their answers, and what they were asked."""

    folder: Path

    def __post_init__(self) -> None:
        programs = self.folder / "bin"
        programs.mkdir(parents=True)
        for name in PROGRAMS:
            (programs / name).write_text(SCRIPT)
            (programs / name).chmod(0o755)

    def commands(self, timeout_seconds: float = 5.0) -> Commands:
        """The commands as the adapter takes them."""
        return Commands(timeout_seconds=timeout_seconds, bin_dir=self.folder / "bin", draw=lambda: "")

    def answers(self, program: str, *answers: str | tuple[int, str, str], hangs: bool = False) -> None:
        """Standard output, or (code, standard output, standard error), of one call after another."""
        for number, answer in enumerate(answers or ("",), 1):
            code, out, err = answer if isinstance(answer, tuple) else (0, answer, "")
            start = self.folder / f"{program}.{number}"
            for suffix, text in (("out", out), ("err", err), ("code", f"{code}\n")):
                Path(f"{start}.{suffix}").write_text(text)
            if hangs:
                Path(f"{start}.hangs").touch()

    @property
    def calls(self) -> list[list[str]]:
        """Every argv, in order."""
        log = self.folder / "log"
        words = log.read_text().split("\0")[:-1] if log.exists() else []
        calls: list[list[str]] = []
        while words:
            count = int(words[1])
            calls.append([words[0], *words[2 : 2 + count]])
            words = words[2 + count :]
        return calls

    def ran(self, program: str) -> list[list[str]]:
        """The arguments of each call of one program."""
        return [call[1:] for call in self.calls if call[0] == program]

    def fed(self, program: str) -> list[list[str]]:
        """The lines on standard input of each call of one program."""
        count = len(self.ran(program))
        texts = [(self.folder / f"{program}.{n}.stdin").read_text() for n in range(1, count + 1)]
        return [text.splitlines() for text in texts]


def queue(stub: Stub, *answers: str | tuple[int, str, str]) -> Queue:
    """A queue that gets these answers."""
    stub.answers("squeue", *answers)
    return Queue(stub.commands())
