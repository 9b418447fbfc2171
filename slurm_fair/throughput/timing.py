"""The time of one training step (Hops 3.5, eq. 1, 2 and 4), and what it adds to them: see docs/throughput.md."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slurm_fair.model.columns import Code, Codes, Floats

NOT_OVERLAPPED = 0.2  # of T_c runs after backward propagation in any case (the paper's choice)
CORNER = 0.05  # of a step: the corner of a maximum is rounded by so much, since no two steps are alike


class Pattern(Code):
    """The overlap that a training loop has (Hops 3.5)."""

    NOT_SAID = 0
    DATA_OVERLAPS = 1  # data are loaded during backward propagation and communication
    DATA_FIRST = 2  # backward propagation is over before data are loaded


@dataclass(frozen=True, slots=True)
class StepParts:
    """Seconds of the parts of a step that one GPU does alone; arrays that broadcast to one another."""

    forward: Floats  # T_f
    backward: Floats  # T_b
    update: Floats  # T_u
    hit: Floats  # T_d where the data lie in memory, eq. 3
    miss: Floats  # T_d where they do not
    misses: Floats  # p_load: probability of that
    pattern: Codes | Floats  # Pattern


def step_seconds(parts: StepParts, communication: Floats, waiting: Floats) -> Floats:
    """E(T_iter) = p_cache E(T_iter, hit) + p_load E(T_iter, miss): eq. 4."""
    hit = _iteration(parts, parts.hit, communication, waiting)
    miss = _iteration(parts, parts.miss, communication, waiting)
    expected: Floats = (1 - parts.misses) * hit + parts.misses * miss
    return expected


def _iteration(parts: StepParts, data: Floats, communication: Floats, waiting: Floats) -> Floats:
    """Eq. 1: max(T_d, max(T_b + 0.2 T_c, T_c) + T_u) + T_f + T_w, or the sum in the place of the outer maximum."""
    width = CORNER * (parts.forward + parts.backward + parts.update)
    back = _larger(parts.backward + NOT_OVERLAPPED * communication, communication, width)
    # Exact without communication.
    back = back - (_larger(parts.backward, np.zeros(()), width) - parts.backward)
    work = back + parts.update
    hidden = np.where(data > 0, _larger(data, work, width), work)
    both = np.where(parts.pattern == Pattern.DATA_FIRST, data + work, hidden)
    seconds: Floats = both + parts.forward + waiting
    return seconds


def _larger(one: Floats, other: Floats, width: Floats) -> Floats:
    larger: Floats = width * np.logaddexp(one / width, other / width)
    return larger


def link_factors(gpus: Floats, nodes: Floats, most: Floats) -> Floats:
    """Factors of the links' seconds: T_c = sum of these * (P/B_link, P/B_net, P/B_bus, P/B_host).

    Eq. 2 is P/B_link (N-1)/N on one node and P/B_net on several. Here the ring factor is kept on several, too.
    What the GPUs of a node share grows with their number: without end (bus), or up to a limit (host).
    """
    one = nodes <= 1
    ring = (gpus - 1) / gpus
    factors: Floats = np.stack(
        [np.where(one, ring, 0.0), np.where(one, 0.0, ring), most - 1.0, (most - 1) / most], axis=-1
    )
    return factors


def longest_of(gpus: Floats) -> Floats:
    """The mean of the largest of n standard normal numbers (Blom): T_w is this many spreads of one process.

    The paper takes T_w from a profile; this is how it grows with the processes that wait for the slowest.
    """
    above = 1 - (np.maximum(gpus, 2.0) - 0.375) / (np.maximum(gpus, 2.0) + 0.25)
    t = np.sqrt(-2 * np.log(above))
    tail = (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)))
    mean: Floats = np.where(gpus > 1, t - tail, 0.0)  # normal quantile: Abramowitz and Stegun 26.2.23
    return mean
