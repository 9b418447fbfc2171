"""Work conservation, asked from outside: would a job that waits fit the GPUs that a plan leaves free?

Every policy promises it that is not in `LESS`, which says what the others promise instead, and why.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from slurm_fair.model import Placement, Plan, Snapshot, Verdict
from slurm_fair.model.columns import Bools, Ints
from slurm_fair.model.sizes import shares
from slurm_fair.policy.orders.offer import MOVES


def left_waiting(
    snapshot: Snapshot, plan: Plan, gpus: Ints, cpus: Ints | None = None, memory_mb: Ints | None = None
) -> list[int]:
    """Rows that the plan leaves waiting though their gangs fit what is free of each node once it is done.

    Tasks of an array with a limit of its own are passed over. What is kept for a job that gives its GPUs back to
    go on elsewhere is not free; where only the policy knows what it keeps, nobody is said to be left waiting.
    """
    if keeps_gpus_unsaid(plan):
        return []
    jobs, nodes = snapshot.jobs, snapshot.nodes
    plenty = np.full(len(nodes), 1 << 40)
    kept = kept_for_movers(snapshot, plan)
    free = gpus - kept[0]
    free[_taken_whole(snapshot, plan)] = 0
    rooms = (
        free,
        plenty if cpus is None else cpus - kept[1],
        plenty if memory_mb is None else memory_mb - kept[2],
    )
    waits = np.flatnonzero((plan.verdict == Verdict.WAIT) & (jobs.array_limit == 0))
    return [row for row in waits.tolist() if fits(snapshot, row, *rooms)]


def kept_for_movers(snapshot: Snapshot, plan: Plan) -> Ints:
    """GPUs, CPUs and memory [what, node] of the places where jobs that still save, or are told to, go on."""
    jobs, at = snapshot.jobs, {name: node for node, name in enumerate(snapshot.nodes.names)}
    row_of = {key: row for row, key in enumerate(jobs.key.tolist())}
    on = Placement.of(
        [(row_of[key], at[name], gpus) for key, sites in plan.memory.get(MOVES, ()) for name, gpus in sites]
    )
    kept = np.zeros((3, len(snapshot.nodes)), dtype=np.int64)
    for what, amounts in enumerate(shares(on, on.row, jobs, snapshot.sizes)):
        np.add.at(kept[what], on.node, amounts)
    return kept


def keeps_gpus_unsaid(plan: Plan) -> bool:
    """True where a job is stopped to go on at a place that no memory tells, though others are not ahead of it."""
    reasons = plan.explanation.reason[plan.verdict == Verdict.REVOKE].tolist()
    moves = any(plan.explanation.reasons[reason].startswith(_MOVES) for reason in reasons)
    return moves and MOVES not in plan.memory


def _taken_whole(snapshot: Snapshot, plan: Plan) -> list[int]:
    """Nodes that a gang takes whole: Slurm may lay it over them in its own way, so the rest is nobody's."""
    jobs = snapshot.jobs
    parts = np.bincount(plan.places.row, minlength=len(jobs))
    spread = (parts > np.maximum(jobs.nodes, 1)) & (jobs.gpus_per_node == 0)
    taken: list[int] = plan.places.node[spread[plan.places.row]].tolist()
    return taken


def fits(snapshot: Snapshot, row: int, gpus: Ints, cpus: Ints, memory_mb: Ints) -> bool:
    """True where a gang could start, consolidated: on as few nodes of one type as its shape allows."""
    jobs, nodes, partitions = snapshot.jobs, snapshot.nodes, snapshot.partitions
    partition, asked = int(jobs.partition[row]), int(jobs.gpu_type[row])
    if not partitions.up[partition]:
        return False
    barred = np.isin(np.arange(len(nodes)), snapshot.barred.nodes_of(row))
    return any(
        _fits_type(
            snapshot,
            row,
            partitions.members[partition] & (nodes.gpu_type == kind),
            ~barred,
            (gpus, cpus, memory_mb),
        )
        for kind in range(len(snapshot.gpu_types))
        if asked in (-1, kind) and (snapshot.told is None or snapshot.told.rate[row, kind] > 0)
    )


def _fits_type(
    snapshot: Snapshot, row: int, members: Bools, allowed: Bools, free: tuple[Ints, Ints, Ints]
) -> bool:
    jobs, nodes = snapshot.jobs, snapshot.nodes
    gang, per_node = int(jobs.gpus[row]), int(jobs.gpus_per_node[row])
    wanted = snapshot.wanted.nodes_of(row)
    least, share = max(int(jobs.nodes[row]), len(wanted), 1), per_node
    most = int(jobs.most_nodes[row]) or gang
    biggest = int(nodes.gpus[members].max(initial=0))
    if per_node:
        least = max(-(-gang // per_node), least)
    else:
        # Which of its nodes gets the greater part is Slurm's choice, so each must have room for it.
        share = -(-gang // least)
    whole = share > biggest > 0 and not per_node
    parts = -(-gang // biggest) if whole else least
    room = members & allowed & nodes.usable
    for have, need in zip(free[1:], (int(jobs.cpus[row]), int(jobs.memory_mb[row])), strict=True):
        room = room & (have >= -(-need // parts))
    if whole:
        idle = room & (free[0] == nodes.gpus) & (free[0] > 0)
        biggest_first = np.sort(nodes.gpus[idle])[::-1][:most]
        return bool(idle[wanted].all()) and parts <= most and int(biggest_first.sum()) >= gang
    room = room & (free[0] >= share)
    return bool(room[wanted].all()) and min(gang, most) >= least and int(room.sum()) >= least


# -- who promises less --------------------------------------------------------------------------------

Narrowed = Callable[[Snapshot, Plan, list[int]], list[int]]
# A job that could never run, or may not because of its own array, is in nobody's way.
_MOVES = ("it goes on elsewhere", "it goes on with")
_OUT_OF_THE_LINE = ("no node of its partition can take its gang", "its array's own limit is reached")


@dataclass(frozen=True, slots=True)
class Less:
    """The GPUs that a policy leaves idle on purpose, and which of the jobs that fit it may not leave waiting."""

    why: str
    still: Narrowed


def head_of_the_line(snapshot: Snapshot, plan: Plan, rows: list[int]) -> list[int]:
    """The first of all that wait."""
    del snapshot
    waits = np.flatnonzero((plan.verdict == Verdict.WAIT) & (plan.explanation.rank >= 0))
    in_line = [
        row
        for row in waits.tolist()
        if plan.explanation.reasons[plan.explanation.reason[row]] not in _OUT_OF_THE_LINE
    ]
    head = min(in_line, key=lambda row: int(plan.explanation.rank[row]), default=-1)
    return [row for row in rows if row == head]


def lines_within_their_quota(snapshot: Snapshot, plan: Plan, rows: list[int]) -> list[int]:
    """Jobs of a tenant whose whole line would fit, and with what it has is within its quota, rounded down."""
    jobs, weight = snapshot.jobs, snapshot.tenants.weight
    has = (plan.verdict == Verdict.GRANT) | (plan.verdict == Verdict.KEEP)
    has[snapshot.held.row] = True
    waits = plan.verdict == Verdict.WAIT
    quota = np.floor(snapshot.total_gpus * weight / max(float(weight.sum()), 1e-9))
    asked = np.bincount(jobs.tenant, jobs.gpus * (has | waits), len(weight))
    idle = np.zeros(len(jobs), dtype=bool)
    idle[rows] = True
    stuck = np.bincount(jobs.tenant, waits & ~idle, len(weight)) > 0
    return [
        row
        for row in rows
        if not stuck[jobs.tenant[row]] and asked[jobs.tenant[row]] <= quota[jobs.tenant[row]]
    ]


def with_no_choice_of_types(snapshot: Snapshot, plan: Plan, rows: list[int]) -> list[int]:
    """All, where there is one GPU type; else those that ask for theirs, or run on one only.

    For the others a plan does not say which type was chosen, so which idle GPUs they leave on purpose is not seen.
    """
    nodes, told = snapshot.nodes, snapshot.told
    kinds = np.unique(nodes.gpu_type[nodes.capacity > 0])
    runs_on = np.full(len(snapshot.jobs), len(kinds))
    if told is not None:
        runs_on = np.count_nonzero(told.rate[:, kinds] > 0, axis=1)
    fixed = (len(kinds) == 1) | (snapshot.jobs.gpu_type >= 0) | (runs_on == 1)
    return [row for row in rows if fixed[row]]


def borrowers_and_all_where_nothing_is_lent(snapshot: Snapshot, plan: Plan, rows: list[int]) -> list[int]:
    """All, where no lease is over that its owner could ask back; else those who can only borrow."""
    if not np.isin(plan.verdict, (Verdict.RENEW, Verdict.REVOKE)).any():
        return rows
    jobs, weight = snapshot.jobs, snapshot.tenants.weight
    biggest = max(int(snapshot.nodes.gpus.max(initial=1)), 1)
    cells = np.array([_cells(gpus, biggest) for gpus in jobs.gpus.tolist()], dtype=np.int64)
    # No virtual cluster is bigger than its tenant's part of the GPUs, rounded up.
    part = np.ceil(snapshot.total_gpus * weight / max(float(weight.sum()), 1e-9) - 1e-9)
    used = np.bincount(jobs.tenant, cells * np.isin(jobs.key, plan.memory["guaranteed"]), len(weight))
    too_much = used[jobs.tenant] + cells > part[jobs.tenant]
    return [row for row in rows if too_much[row]]


def _cells(gpus: int, biggest: int) -> int:
    """GPUs of the cells that a gang takes: a power of two inside a node, or whole nodes."""
    if gpus >= biggest:
        return -(-gpus // biggest) * biggest
    return int(min(1 << (gpus - 1).bit_length(), biggest))


_ITS_TYPE = Less(
    "a job waits for the GPU type on which its share is (Gavel, section 5: shares are of each type)",
    with_no_choice_of_types,
)
LESS = MappingProxyType(
    {
        "allox": Less(
            "a job waits for the GPU that it was matched to (AlloX, section 4.2)", with_no_choice_of_types
        ),
        "gavel": _ITS_TYPE,
        "gavel-ftf": _ITS_TYPE,
        "mst": _ITS_TYPE,
        "ossp": _ITS_TYPE,
        "fifo": Less(
            "nobody overtakes the head of the line (the simulator published with Shockwave)", head_of_the_line
        ),
        "slurm": Less(
            "nobody delays the reservation of one ahead (sched/backfill, by declared times)", head_of_the_line
        ),
        "yarn-cs": Less("what is over the static quota waits (Astraea, section 6)", lines_within_their_quota),
        "hived": Less(
            "a guaranteed gang waits for a lent cell rather than split another node (HiveD, section 4)",
            borrowers_and_all_where_nothing_is_lent,
        ),
    }
)


def broken(policy: str, snapshot: Snapshot, plan: Plan, rows: list[int]) -> list[int]:
    """The rows that would fit and that this policy must not leave waiting."""
    return LESS[policy].still(snapshot, plan, rows) if policy in LESS else rows
