"""Node lists that may be ours or a user's: the journal that knew it is gone."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from slurm_fair.model import JobState, ListInDoubt, label
from slurm_fair.model.apiece import apiece
from slurm_fair.model.columns import Bools
from slurm_fair.model.counted import first_sayings
from slurm_fair.slurm.ownership.marks import Marks
from slurm_fair.slurm.ownership.ours import is_our_list
from slurm_fair.slurm.ownership.ours_afresh import free_action
from slurm_fair.slurm.reading.details import JobDetails
from slurm_fair.slurm.reading.queue import Queue, may_take_gpus
from slurm_fair.slurm.scope import wants_others


class Lists(Protocol):
    """A store for node lists that nothing explained at the journal's first look; it outlives the daemon."""

    def lists_at_first(self) -> Mapping[int, str] | None:
        """The node lists of the first look, by record; None before that look."""
        ...

    def keep_lists_at_first(self, lists: Mapping[int, str]) -> None:
        """Keep the lists of the first look, once for each journal."""
        ...


@dataclass(frozen=True, slots=True)
class ListsInHand:
    """Lists kept in memory: those that were read, or {} in a dry run, which sets no list."""

    lists: Mapping[int, str] | None

    def lists_at_first(self) -> Mapping[int, str] | None:
        return self.lists

    def keep_lists_at_first(self, lists: Mapping[int, str]) -> None: ...


_NAMED = 20  # jobs in one line of the log


def may_be_ours(
    rows: NDArray[np.void], inside: Bools, queue: Queue, details: JobDetails, nodes: Collection[str]
) -> NDArray[np.void]:
    """Rows whose node list we may have set: in the scope, or left it with our stamp; ours names managed nodes."""
    listed = _listed(rows, queue)
    some, inside = rows[listed], inside[listed]
    runs = zip(some["record"].tolist(), some["restarts"].tolist(), strict=True)
    stamped = np.array([details.of(*run).stamp is not None for run in runs], dtype=bool)
    ours: NDArray[np.void] = some[(inside | stamped) & ~wants_others(some, queue, nodes)]
    return ours


def unexplained(rows: NDArray[np.void], queue: Queue, marks: Marks) -> dict[int, str]:
    """Node lists of living jobs that may take GPUs, and that no mark tells of, by record."""
    found = {}
    for row in rows[_listed(rows, queue)]:
        action = free_action(row)
        if marks.covering(action.key, action.whole_record, action.submit, action.restarts) is None:
            found[int(row["record"])] = queue.node_lists.texts[int(row["req_nodes"])]
    return found


def in_doubt(
    rows: NDArray[np.void], queue: Queue, marks: Marks, at_first: Mapping[int, str], booted_at: float
) -> tuple[ListInDoubt, ...]:
    """Jobs that still carry the unexplained list that they had at the first look of the journal."""
    found = []
    for row in rows[_listed(rows, queue)] if at_first else ():
        text = queue.node_lists.texts[int(row["req_nodes"])]
        action = free_action(row)
        mark = marks.covering(action.key, action.whole_record, action.submit, action.restarts)
        known = mark is not None and is_our_list(mark, text, booted_at)
        if at_first.get(action.record) == text and not known:
            user = queue.users.texts[int(row["user"])]
            found.append(ListInDoubt(label(action.key), text, user))
    return tuple(found)


def _listed(rows: NDArray[np.void], queue: Queue) -> Bools:
    lives = (rows["state"] != JobState.DONE) & may_take_gpus(rows) & rows["batch"]
    found: Bools = lives & (rows["req_nodes"] != queue.node_lists.known(""))
    return found


def said_of_doubts(doubts: tuple[ListInDoubt, ...]) -> str:
    """One line for the log."""
    some = apiece(doubts, lambda each: each.user, _NAMED)
    said = [f"job {each.label} of {each.user}: {each.nodes}" for each in some]
    named = first_sayings(said, _NAMED, of=len(doubts))
    return (
        f"the journal began after these jobs had got node lists ({named}). Whether their users asked for "
        "these nodes or an earlier daemon set them cannot be told, so they stay. "
        "If a user did not ask for them: scontrol update JobId=N ReqNodeList="
    )
