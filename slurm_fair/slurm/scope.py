"""Sort the rows of the queue: managed or left alone and why, and what blocks a managed one."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slurm_fair.config.sections import ScopeSection
from slurm_fair.model import Blocked, JobState, LeftAlone
from slurm_fair.model.apiece import apiece, rows_apiece
from slurm_fair.model.columns import Bools, Codes
from slurm_fair.slurm.reading import values
from slurm_fair.slurm.reading.details import JobDetails
from slurm_fair.slurm.reading.made_up import OF_A_USER
from slurm_fair.slurm.reading.nodes import NodeListing
from slurm_fair.slurm.reading.queue import Names, Queue
from slurm_fair.slurm.reading.task_lists import OF_A_USER as MOST_OF_A_USER
from slurm_fair.slurm_text import hostlist

_LISTED = 2000  # left-alone jobs that a snapshot names; more would only fill the journal


@dataclass(frozen=True, slots=True)
class Territory:
    """The managed partitions and their GPU nodes."""

    partitions: frozenset[str]
    nodes: tuple[str, ...]
    all_gpus: frozenset[str] = frozenset()  # those of the partitions whose nodes all have GPUs

    @classmethod
    def of(cls, machines: NodeListing, scope: ScopeSection) -> Territory:
        """All partitions of the scope (or all at all) that have GPU nodes."""
        with_gpus = {
            name
            for name, members in machines.partitions.items()
            if any(machines.nodes[node].gpus for node in members)
        }
        managed = with_gpus & set(scope.partitions) if scope.partitions else with_gpus
        nodes = {node for name in managed for node in machines.partitions[name] if machines.nodes[node].gpus}
        whole = {name for name in managed if nodes.issuperset(machines.partitions[name])}
        return cls(
            frozenset(managed), tuple(node for node in machines.nodes if node in nodes), frozenset(whole)
        )

    def covers(self, partition: str) -> bool:
        """True if a job's partition, or one of its comma list, is managed."""
        return any(name in self.partitions for name in partition.split(","))


def by_name(names: Names, test: Callable[[str], bool], column: NDArray[np.int64]) -> Bools:
    """A test of names, done once per distinct name and spread over the rows."""
    verdicts = np.array([test(text) for text in names.texts] or [False])
    return verdicts[column]


def in_scope(rows: NDArray[np.void], queue: Queue, territory: Territory, scope: ScopeSection) -> Bools:
    """Rows of managed partitions, accounts and QOS."""
    inside = by_name(queue.partitions, territory.covers, rows["partition"])
    if scope.accounts:
        inside &= by_name(queue.accounts, set(scope.accounts).__contains__, rows["account"])
    if scope.qos:
        inside &= by_name(queue.qos, set(scope.qos).__contains__, rows["qos"])
    return inside


def refused(rows: NDArray[np.void], queue: Queue) -> Bools:
    """Submissions that Slurm refused: it lists them as jobs that failed at once and nowhere."""
    at_once = (rows["state"] == JobState.DONE) & (rows["end"] == rows["submit"]) & (rows["restarts"] == 0)
    failed = by_name(queue.reasons, "FAILED".__eq__, rows["reason"])  # of a job that is over, its state
    nowhere = by_name(queue.node_lists, values.is_nothing, rows["node_list"])
    found: Bools = at_once & failed & nowhere
    return found


INTERACTIVE = "is interactive (srun or salloc): it cannot be requeued"
HETEROGENEOUS = "is one part of a heterogeneous job"
SEVERAL_TYPES = "asks for several GPU types at once"
_UNLISTED_ACCOUNT = (
    "has an account that neither Slurm nor the configuration lists, "
    f"and its user has {OF_A_USER} such already"
)
_TOO_MANY_TASKS = (
    f"is an array beyond the {MOST_OF_A_USER:,} waiting tasks of one user that are looked at one by one"
)


def left_alone(
    rows: NDArray[np.void],
    queue: Queue,
    details: JobDetails,
    territory: Territory,
    scope: ScopeSection,
    beyond: Bools | None = None,
) -> tuple[Bools, list[LeftAlone]]:
    """Rows of the scope that we never touch, and the reason in words for those that live.

    `beyond` are those with an account too many of their user.
    """
    in_reservation = ~by_name(queue.reservations, values.is_nothing, rows["reservation"])
    several = by_name(queue.gpu_types, "+".__eq__, rows["gpu_type"]) & (rows["gpu_type"] >= 0)
    asked = [details.of(*who) for who in zip(rows["record"].tolist(), rows["restarts"].tolist(), strict=True)]
    saves = np.array([each.gate_stamp.checkpoints for each in asked], dtype=bool)
    nobody = np.zeros(len(rows), dtype=bool)
    tests: dict[str, Bools] = {
        "asks for no GPU": (rows["gpus"] == 0) & ~takes_whole_nodes(rows, queue, territory),
        HETEROGENEOUS: rows["het"],
        INTERACTIVE: ~rows["batch"] & (scope.interactive != "gate"),
        "runs in a reservation": in_reservation,
        SEVERAL_TYPES: several,
        "names a node in its --nodelist that is not managed": wants_others(rows, queue, territory.nodes),
        _UNLISTED_ACCOUNT: nobody if beyond is None else beyond,
        "does not say that it can save: such jobs are left to Slurm here": (
            rows["batch"] & ~saves & (scope.plain == "leave")
        ),
        _TOO_MANY_TASKS: rows["beyond"],
    }
    reasons = tuple(tests)
    which = np.select(list(tests.values()), list(range(len(tests))), default=-1)
    lives = np.flatnonzero((which >= 0) & (rows["state"] != JobState.DONE))
    lives = lives[rows_apiece(rows["user"][lives], _LISTED)]
    named = [
        LeftAlone(_name(rows[row]), reasons[which[row]], queue.users.texts[rows["user"][row]])
        for row in lives.tolist()
    ]
    return which >= 0, named


def takes_whole_nodes(rows: NDArray[np.void], queue: Queue, territory: Territory) -> Bools:
    """Rows that wait for whole nodes where each node has GPUs: they take GPUs without asking for them."""

    def there(partition: str) -> bool:
        return all(name in territory.all_gpus for name in partition.split(","))

    waits: Bools = rows["exclusive"] & (rows["state"] == JobState.WAITING)
    return waits & by_name(queue.partitions, there, rows["partition"]) if waits.any() else waits


def wants_others(rows: NDArray[np.void], queue: Queue, nodes: Collection[str]) -> Bools:
    """Rows with a node list that reaches beyond these nodes: a list of ours never does."""
    lists, row = np.unique(rows["req_nodes"], return_inverse=True)
    managed = frozenset(nodes)
    beyond = [not managed.issuperset(hostlist.expand(queue.node_lists.texts[n])) for n in lists.tolist()]
    return np.array(beyond, dtype=bool)[row]


def not_read(queue: Queue, territory: Territory) -> list[LeftAlone]:
    """Living jobs of the scope's partitions whose row could not be read at the last look."""
    here = [bad for bad in queue.unreadable if not bad.over and territory.covers(bad.partition)]
    return [
        LeftAlone(bad.label, bad.why, bad.user, unreadable=True)
        for bad in apiece(here, lambda bad: bad.user, _LISTED)
    ]


def _name(row: np.void) -> str:
    return str(row["base"]) if row["task"] < 0 else f"{row['base']}_{row['task']}"


# Words of Slurm that mean: held. Which of them are our own holds, the marks tell.
USER_HOLD = frozenset({"JobHeldUser"})
OTHERS_HOLD = frozenset({"JobHeldAdmin", "job requeued in held state", "job_requeued_in_held_state"})


def blocked_codes(
    rows: NDArray[np.void], queue: Queue, machines: NodeListing, ours: Bools, own_begin: Bools
) -> Codes:
    """The obstacle of each waiting row; `ours` = held by us, `own_begin` = waits for its user's time.

    A hold goes before a dependency, which Slurm does not look at meanwhile (slurm-facts: held-dependency).
    """
    waiting = rows["state"] == JobState.WAITING
    held = waiting & (rows["priority"] == 0) & ~ours
    by_user = by_name(queue.reasons, USER_HOLD.__contains__, rows["reason"])
    by_admin = by_name(queue.reasons, OTHERS_HOLD.__contains__, rows["reason"])
    down = by_name(queue.partitions, lambda text: _is_down(text, machines), rows["partition"])
    codes = np.select(
        [
            held & by_user,
            held & by_admin,
            held,
            waiting & rows["dependency"],
            waiting & own_begin,
            waiting & down,
        ],
        [
            Blocked.USER_HOLD,
            Blocked.ADMIN_HOLD,
            Blocked.SLURM_HOLD,
            Blocked.DEPENDENCY,
            Blocked.OWN_BEGIN,
            Blocked.PARTITION,
        ],
        default=Blocked.NOT_BLOCKED,
    )
    return codes.astype(np.int8)


def _is_down(partitions: str, machines: NodeListing) -> bool:
    return not any(machines.up.get(name, False) for name in partitions.split(","))
