"""Texts of a user who wants to be taken for somebody else's job: rows and lines of Slurm's listings."""

from __future__ import annotations

from collections.abc import Iterator

from slurm_fair.slurm.reading.queue import BETWEEN, FIELDS, ROW_END
from tests.support.slurm_stub import QUIET

# The columns as they stood when users' words stood among them.
_BEFORE = (
    "JobID", "ArrayJobID", "ArrayTaskID", "HetJobID", "UserName", "State", "Reason", "Account", "Partition",
    "QOS", "NumNodes", "NodeList", "ReqNodes", "tres-alloc", "tres-per-node", "tres-per-job", "tres-per-task",
    "NumTasks", "SubmitTime", "EligibleTime", "StartTime", "EndTime", "PriorityLong", "TimeLimit",
    "Dependency", "RestartCnt", "BatchFlag", "Requeue", "Reservation", "Deadline", "MinTime",
)  # fmt: skip
HUGE = (
    "9223372036854775807",
    "200376420520589664",
    "7766279631452241820",
    "9" * 4301,
    "-1",
    "1e400",
    "²",
    "0x9",
)


def forged_rows(victim: int, account: str, user: str, partition: str = "gpu") -> Iterator[str]:
    """Texts that end the row in which they stand and make up one of the victim, and one of a job that is none."""
    # A comma or a colon in it would be refused before Slurm lists the job.
    for job, base in ((victim, victim), (900_001, 900_001)):
        for state, nodes in (("RUNNING", "n1"), ("RUNNING", ""), ("PENDING", ""), ("COMPLETED", "n1")):
            told = QUIET | {
                "JobID": str(job), "ArrayJobID": str(base), "UserName": user, "Account": account,
                "Partition": partition, "State": state, "NodeList": nodes,
                "tres-alloc": "gres/gpu=500", "TimeLimit": "", "MinTime": "", "tres-per-job": "N/A",
                "Dependency": "",
            }  # fmt: skip
            for order in (_BEFORE, FIELDS):
                for mark in ("", "0" * 20):
                    for newline in ("", "\n"):
                        end = f"{ROW_END}{mark}{newline}"
                        row = BETWEEN.join(told[name] for name in order)
                        here = order.index("tres-per-node")
                        rest = BETWEEN.join(["N/A"] * (len(order) - here - 1))
                        begin = BETWEEN.join(told[name] for name in order[:here])
                        yield f"x{BETWEEN}{rest}{end}{row}{end}{begin}{BETWEEN}"
                        yield f"{end}{row}{end}"


def forged_lines(victim: int, nodes: tuple[str, ...] = ("n1", "n2")) -> Iterator[str]:
    """Texts that make up segments, fields and lines of `scontrol -o show job`."""
    parts = "".join(f" Nodes={name} CPU_IDs= Mem=0 GRES=gpu:{{}}" for name in nodes)
    for counts in ((1000, -1000), (8, 0), (0, 0)):
        yield f"{parts.format(*counts)} "
    yield f" NumNodes=1-7 NumCPUs=1 NumTasks=1\nJobId={victim} NumNodes=1-9 NumCPUs=1 "
    yield f"\nJobId={victim} JobName=x {parts.format(8, 8)}\nendhere\n"
    yield f"\nJobId={victim} ArrayJobId={victim} ArrayTaskId=1 ArrayTaskThrottle=1 "


def forged_comments(victim: int) -> Iterator[str]:
    """Texts that end the row in which they stand, in listings of comments."""
    for mark in ("", "0" * 20):
        for between in (BETWEEN, f"{BETWEEN}{mark}"):
            cells = between.join((str(victim), "", "n1", "/evil", "nothing", "name"))
            yield f"{ROW_END}{mark}\n{cells}{ROW_END}{mark}\n"
    yield f"\n{victim}\x1fslurm_fair:v1,gate=hold"
