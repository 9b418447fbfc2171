"""A policy for tests: the oldest first, each run of an elastic job with the next of its sizes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slurm_fair.model import Placement, Plan, Verdict
from slurm_fair.model.columns import Ints
from slurm_fair.policy import Draft, View, placed, sizes_of


@dataclass(frozen=True)
class TurningSizes:
    """Every lease that is over ends, so that its job comes back with another size."""

    may_split: bool = True

    def plan(self, view: View) -> Plan:
        """A plan of all that fit, in order of submission; a job is laid evenly over as few nodes as take it."""
        sheet = Draft(view)
        ends = view.over_rows[~view.only_renewable[view.over_rows]]
        sheet.say(ends, Verdict.REVOKE, "it is to run with another size")
        free = view.free_gpus.copy()
        rows, sites = [], []
        for row in view.waiting_rows[
            np.lexsort((view.snapshot.jobs.key[view.waiting_rows], view.first_submit[view.waiting_rows]))
        ]:
            site = self._site(free, self._size(view, int(row)))
            if site:
                rows.append(int(row))
                sites.append(site)
                for node, gpus in site:
                    free[node] -= gpus
        order: list[int] = np.argsort(rows).tolist() if rows else []
        chosen = np.array([rows[at] for at in order], dtype=np.int64)
        sheet.say(chosen, Verdict.GRANT, "it fits")
        places = placed(chosen, [sites[at] for at in order]) if rows else Placement.none()
        return sheet.finish(places)

    def _size(self, view: View, row: int) -> int:
        sizes = sizes_of(view)
        mine: Ints = sizes.gpus[sizes.row == row]
        return mine.item(view.snapshot.jobs.restarts.item(row) % len(mine))

    def _site(self, free: Ints, gpus: int) -> list[tuple[int, int]]:
        for parts in range(1, len(free) + 1 if self.may_split else 2):
            if gpus % parts:
                continue
            nodes = np.flatnonzero(free >= gpus // parts)[:parts].tolist()
            if len(nodes) == parts:
                return [(node, gpus // parts) for node in nodes]
        return []
