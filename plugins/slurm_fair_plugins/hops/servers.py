"""Servers of one region told apart by how fast the jobs of a plan run on them."""

from __future__ import annotations

import numpy as np

from slurm_fair.policy import Floats, Ints, View
from slurm_fair.solve.places import SpeedClasses, speed_classes
from slurm_fair_plugins.configurations import Configurations, Shape, shapes_now

MOST_CLASSES = 20  # of servers, in all regions; a region is one at least


def split_by_speed(
    view: View, ways: Configurations, now: Shape, rows: Ints, region: Ints
) -> tuple[Configurations, Shape, Ints]:
    """The ways once for each class of servers of their region, as fast as on these; the shapes now, by class; and
    the class of each node.

    A region stays one where no class of it could hold a job of the plan that needs several servers, or where one
    lies on servers of several classes. Where no server is known to differ from its type, classes are regions.
    """
    speeds = view.snapshot.speeds
    if speeds is None or speeds.nodes is None or not len(rows):
        return ways, now, region
    _, first, like = np.unique(speeds.job_class[rows], return_index=True, return_inverse=True)
    speed = speeds.on_nodes(rows[first], len(region))
    if (speed[region >= 0] == 1.0).all():
        return ways, now, region
    classes, kind = _classes(view, ways, rows, region, speed)
    of = np.zeros(len(classes.speed), dtype=np.int64)
    of[kind[region >= 0]] = region[region >= 0]
    way, on = np.nonzero(ways.on[:, None] == of)
    faster = classes.speed[on, like.reshape(-1)[ways.job[way]]]
    ways = ways.take(way).with_columns(on=on, speed=ways.speed[way] * faster)
    return ways, shapes_now(view, kind, rows), kind


def _classes(
    view: View, ways: Configurations, rows: Ints, region: Ints, speed: Floats
) -> tuple[SpeedClasses, Ints]:
    """Classes of like servers, and that of each node; regions that cannot be divided are one class."""
    inside, speed, kind = np.flatnonzero(region >= 0), speed.copy(), region.copy()
    most = max(len(np.unique(region[inside])), MOST_CLASSES)
    while True:
        found = speed_classes(speed[inside], region[inside], most)
        kind[inside] = found.of_server
        whole = np.isin(
            region, np.union1d(_torn(view, rows, region, kind), _too_small(view, ways, region, kind))
        )
        if (speed[whole] == 1.0).all():
            return found, kind
        speed[whole] = 1.0  # which may leave more classes to the others


def _torn(view: View, rows: Ints, region: Ints, kind: Ints) -> Ints:
    """Regions in which one of these jobs lies on servers of several classes."""
    places = view.lease_places
    mine = np.isin(places.row, rows)
    row, kind_there = places.row[mine], kind[places.node[mine]]
    of_job = np.zeros(len(view.waiting), dtype=np.int64)
    of_job[row] = kind_there
    regions: Ints = np.unique(region[places.node[mine][kind_there != of_job[row]]])
    return regions


def _too_small(view: View, ways: Configurations, region: Ints, kind: Ints) -> Ints:
    """Regions in which no class has the GPUs of a way that needs several servers."""
    nodes, inside = view.snapshot.nodes, np.flatnonzero(region >= 0)
    capacity = np.where(nodes.usable, nodes.capacity, 0)
    of_class = np.bincount(kind[inside], capacity[inside])
    largest = np.zeros(1 + int(region.max()))
    np.maximum.at(largest, region[inside], of_class[kind[inside]])
    several = ways.gpus > ways.biggest
    regions: Ints = np.unique(ways.on[several & (ways.gpus > largest[ways.on])])
    return regions
