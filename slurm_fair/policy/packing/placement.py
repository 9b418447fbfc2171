"""Placers: how a gang is laid over free nodes; a site may name another one than ours.

`consolidated` takes as few nodes as can be, and of as few nodes those in the fewest racks, else none. `relaxed` is
asked for more ways: those that spread a gang over whatever is free come after all that do not, so it spreads only
what would have to wait.

A placer is a pure function of a room and a gang that returns all of the gang's sites or None. One that finds
nothing must find nothing in any room with less in it: the walk asks only once for the same shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from slurm_fair.errors import ConfigError
from slurm_fair.model.columns import Ints
from slurm_fair.model.placement import slurm_fill
from slurm_fair.policy.packing.gang import Gang, Pools, Sites
from slurm_fair.policy.packing.racks import gathered
from slurm_fair.policy.packing.room import Loss, Room
from slurm_fair.suggest import did_you_mean

GROUP = "slurm_fair.placements"
CONSOLIDATED, RELAXED = "consolidated", "relaxed"
Placer: TypeAlias = Callable[[Room, Gang], Sites | None]


def consolidated(room: Room, gang: Gang) -> Sites | None:
    """A place on as few nodes and racks as possible, each the fullest that still fits (Astraea, section 5)."""
    if gang.wanted or gang.barred or room.loss is not None:
        return _searched(room, gang)
    nodes = room.whole(gang) if gang.whole else room.fullest(gang)
    if nodes is None:
        return None
    if len(nodes) == 1 and not gang.whole:
        return [(nodes[0], gang.gpus)]
    if not nodes or not all(room.carries(node, gang.share, gang.cpus, gang.memory_mb) for node in nodes):
        return _searched(room, gang)
    if _apart(room.pools, nodes):
        return _searched(room, gang)
    return _allowed(gang, gang.laid_over(sorted(nodes), room.pools.size))


def _apart(pools: Pools, nodes: list[int]) -> bool:
    """True if these lie in several racks."""
    return pools.racks is not None and len({pools.racks.item(node) for node in nodes}) > 1


def _allowed(gang: Gang, sites: Sites) -> Sites | None:
    """None where these are more nodes than the job takes."""
    return sites if not gang.most or len(sites) <= gang.most else None


def relaxed(room: Room, gang: Gang) -> Sites | None:
    """A place on as few nodes as possible; spread over whatever is free where the gang asks for that."""
    return _spread(room, gang) if gang.spread else consolidated(room, gang)


def _spread(room: Room, gang: Gang) -> Sites | None:
    """A place on as few nodes with something free as will do: those asked for by name, then the freest."""
    fits = room.fitting(gang)
    if gang.wanted and not fits[list(gang.wanted)].all():
        return None
    nodes = np.flatnonzero(fits)
    # What others would lose least comes first among those that have as much.
    rank = nodes if room.loss is None else -room.loss.rank[nodes]
    nodes = nodes[np.lexsort((rank, -room.gpus[nodes], ~np.isin(nodes, gang.wanted)))]
    enough = int(np.searchsorted(np.cumsum(room.gpus[nodes]), gang.gpus)) + 1
    count = max(enough, gang.nodes, len(gang.wanted))
    if count > min(len(nodes), gang.most or gang.gpus):
        return None
    chosen = np.sort(nodes[:count])
    return slurm_fill(chosen.tolist(), room.gpus[chosen].tolist(), gang.gpus)


def _searched(room: Room, gang: Gang) -> Sites | None:
    """The same rule over every node, for what the room's stacks do not know: names, CPUs, memory, loss."""
    fits = room.fitting(gang)
    if gang.wanted:
        named = list(gang.wanted)
        if not fits[named].all():
            return None
    nodes = np.flatnonzero(fits)
    if len(nodes) == 0 or (len(nodes) < gang.nodes and not gang.whole):
        return None
    costs = _costs(room, gang, nodes)
    chosen = _best(nodes, costs, gang.nodes, gang.whole)
    if gang.whole:
        enough = int(np.searchsorted(np.cumsum(room.gpus[chosen]), gang.gpus)) + 1
        if enough > len(chosen):
            return None
        chosen = _needed(chosen[:enough], room.gpus[chosen[:enough]], gang.gpus)
    if _apart(room.pools, chosen.tolist()):
        chosen = _together(room, gang, nodes[np.argsort(costs, kind="stable")], chosen)
    return _allowed(gang, gang.laid_over(np.sort(chosen).tolist(), room.pools.size))


def _together(room: Room, gang: Gang, nodes: Ints, chosen: Ints) -> Ints:
    """The same number of nodes in fewer racks, if others of `nodes`, best first, make that possible.

    Nodes asked for by name stay, and nobody loses more for it.
    """
    racks = room.pools.racks
    if racks is None:
        return chosen
    above = np.zeros(len(nodes), dtype=np.int64)
    if room.loss is not None:
        lost, harm = _harm(room.loss, gang, nodes)
        above = np.where(lost > 0, harm, 0)
    if gang.wanted:
        above += (int(above.max()) + 1) * ~np.isin(nodes, gang.wanted)
    taken = np.isin(nodes, chosen)
    worst = int(above[taken].max())
    must = nodes[taken & (above < worst)]
    worth = room.gpus if gang.whole else np.ones(len(room.gpus), dtype=np.int64)
    count = len(chosen) - len(must)
    least = gang.gpus - int(worth[must].sum()) if gang.whole else count
    return gathered(racks, must, nodes[above == worst], worth, count, least)


def _needed(nodes: Ints, free: Ints, gpus: int) -> Ints:
    """The nodes that the gang needs: a small node that came first may not be needed in the end."""
    spare, kept = int(free.sum()) - gpus, []
    for node, here in zip(reversed(nodes.tolist()), reversed(free.tolist()), strict=True):
        if here <= spare:
            spare -= here
        else:
            kept.append(node)
    return np.array(kept, dtype=np.int64)


def _harm(loss: Loss, gang: Gang, nodes: Ints) -> tuple[Ints, Ints]:
    """GPUs that others lose on each node, and the cost of that; equal losses of those owed least cost least."""
    lost, rank = np.maximum(gang.share - loss.spared[nodes], 0), loss.rank[nodes]
    last = int(rank.max())
    return lost, lost * (last + 1) + last - rank


def _costs(room: Room, gang: Gang, nodes: Ints) -> Ints:
    """Asked for by name, then least loss to those owed least, then fullest (or, of whole nodes, biggest)."""
    free = room.gpus[nodes]
    most = int(room.pools.size.max()) + 1
    cost = most - free if gang.whole else free
    if room.loss is not None:
        cost = cost + most * _harm(room.loss, gang, nodes)[1]
    if gang.wanted:
        cost = cost + (int(cost.max()) + 1) * ~np.isin(nodes, gang.wanted)
    return cost


def _best(nodes: Ints, costs: Ints, count: int, all_of_them: bool) -> Ints:
    """The cheapest nodes, the first of equals first."""
    if count == 1 and not all_of_them:
        return nodes[[int(np.argmin(costs))]]
    order = np.argsort(costs, kind="stable")
    return nodes[order if all_of_them else order[:count]]


PLACERS: Mapping[str, Placer] = MappingProxyType({CONSOLIDATED: consolidated, RELAXED: relaxed})


@lru_cache(maxsize=32)
def placer(name: str) -> Placer:
    """The placer of this name: ours, or one of the entry points `slurm_fair.placements`."""
    if name in PLACERS:
        return PLACERS[name]
    found = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name not in found:
        raise ConfigError(f"unknown placement '{name}': {did_you_mean(name, sorted([*PLACERS, *found]))}")
    loaded: Placer = found[name].load()
    return loaded


def spreads(place: str | Placer) -> bool:
    """True if this placer is to be asked for places on more nodes than a gang needs."""
    return (placer(place) if isinstance(place, str) else place) is relaxed
