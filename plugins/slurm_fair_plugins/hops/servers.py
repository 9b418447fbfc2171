"""Servers of one region told apart by how fast the jobs of a plan run on them."""

from __future__ import annotations

import numpy as np

from slurm_fair.policy import Bools, Ints, View
from slurm_fair.solve.places import speed_classes
from slurm_fair_plugins.configurations import Configurations, Shape, shapes_now

MOST_CLASSES = 20  # of servers, in all regions; a region is one at least


def split_by_speed(
    view: View, ways: Configurations, now: Shape, rows: Ints, region: Ints
) -> tuple[Configurations, Shape, Ints]:
    """The ways once for each class of servers of their region, as fast as on these; the shapes now, by class; and
    the class of each node.

    A region stays one where a job of the plan needs several servers, or lies on several: it could lie within one
    class only. Where no server is known to differ from its type, classes are regions.
    """
    speeds = view.snapshot.speeds
    if speeds is None or speeds.nodes is None or not len(rows):
        return ways, now, region
    _, first, like = np.unique(speeds.job_class[rows], return_index=True, return_inverse=True)
    speed = speeds.on_nodes(rows[first], len(region))
    several = np.union1d(ways.on[ways.gpus > ways.biggest], now.on[now.spread])
    apart: Bools = (region >= 0) & ~np.isin(region, several)
    if (speed[apart] == 1.0).all():
        return ways, now, region
    speed[~apart] = 1.0
    inside = np.flatnonzero(region >= 0)
    regions = len(np.unique(region[inside]))
    found = speed_classes(speed[inside], region[inside], max(regions, MOST_CLASSES))
    kind, of = region.copy(), np.zeros(len(found.speed), dtype=np.int64)
    kind[inside], of[found.of_server] = found.of_server, region[inside]
    way, on = np.nonzero(ways.on[:, None] == of)
    faster = found.speed[on, like.reshape(-1)[ways.job[way]]]
    ways = ways.take(way).with_columns(on=on, speed=ways.speed[way] * faster)
    return ways, shapes_now(view, kind, rows), kind
