"""Closed forms for clusters with one GPU type: time is divided by sorting, no solver is asked."""

from __future__ import annotations

import numpy as np

from slurm_fair.model.columns import Bools, Floats

_HALVINGS = 60
_STEPS = 60  # Newton steps; about ten are needed
_CLOSE = 1e-9


def water_filled(gang: Floats, weight: Floats, gpus: float) -> Floats:
    """Fractions of time that give everybody the same GPU-time per weight, or all its time if that is less.

    The level solves sum min(gang, level * weight) = gpus; by sorting, it is the first that fits.
    """
    if gang.sum() <= gpus:
        return np.ones(len(gang))
    full_at = gang / weight
    order = np.argsort(full_at, kind="stable")
    full, rest = np.cumsum(gang[order]) - gang[order], np.cumsum(weight[order][::-1])[::-1]
    levels = (gpus - full) / rest
    level = levels[np.argmax(levels <= full_at[order])]
    fraction: Floats = np.minimum(level * weight / gang, 1.0)
    return fraction


def densest_first(value: Floats, gang: Floats, gpus: float) -> Floats:
    """Fractions of time that make the sum of values largest: best value per GPU first, equal ones share alike."""
    density = value / gang
    levels, level = np.unique(-density, return_inverse=True)
    wanted = np.bincount(level, weights=gang, minlength=len(levels))
    before = np.cumsum(wanted) - wanted
    part = np.clip((gpus - before) / wanted, 0.0, 1.0)
    return np.where(value > 0, part[level], 0.0)


def topped_up(fraction: Floats, gang: Floats, gpus: float) -> Floats:
    """The shares with all that is left given out, in equal parts of GPU-time, to those who can take more."""
    had, most = gang * fraction, float(min(gpus, gang.sum()))
    spare = most - float(had.sum())
    if spare <= _CLOSE * most:
        return fraction
    room = gang - had
    takes = room > 0
    more = np.zeros(len(gang))
    more[takes] = room[takes] * water_filled(room[takes], np.ones(int(takes.sum())), spare)
    return np.minimum((had + more) / gang, 1.0)


def centred(least: Floats, gang: Floats, gpus: float) -> Floats:
    """The analytic centre of `least <= x`, `0 <= x <= 1`, `gang . x <= gpus`: as far from every bound as can be.

    It is what an interior-point method returns when every such x is as good as any other. Newton's method on
    the sum of the logarithms of the slacks; its Hessian is a diagonal and one product of `gang` with itself.
    """
    width = 1.0 - least
    free = width > _CLOSE
    spare = gpus - float((gang * least).sum())
    if spare <= _CLOSE * gpus or not free.any():
        return least
    if len(least) > free.sum():
        inner = centred(least[free], gang[free], gpus - float((gang * least)[~free].sum()))
        whole = least.copy()
        whole[free] = inner
        return whole
    x = least + width * 0.5 * min(1.0, spare / float((gang * width).sum()))
    for _ in range(_STEPS):
        step, decrement = _newton(x, least, gang, gpus)
        x = x + step / (1.0 + decrement)  # damped: it stays inside (self-concordance)
        if decrement < _CLOSE:
            break
    return np.clip(x, least, 1.0)


def _newton(x: Floats, least: Floats, gang: Floats, gpus: float) -> tuple[Floats, float]:
    above, below, slack = 1.0 / (x - least), 1.0 / (1.0 - x), 1.0 / (gpus - float((gang * x).sum()))
    up = 1.0 / x
    slope = above + up - below - gang * slack
    bend = above**2 + up**2 + below**2
    plain, along = slope / bend, gang * slack / bend
    step = plain - along * (float((gang * slack * plain).sum()) / (1.0 + float((gang * slack * along).sum())))
    return step, float(np.sqrt(max((slope * step).sum(), 0.0)))


def lowest_peak(age: Floats, left: Floats, alone: Floats, gang: Floats, gpus: float) -> tuple[float, Floats]:
    """The least peak of (age + left / x) / alone over fractions x, and the x that it needs.

    What a peak needs falls as the peak rises, so the least one is found by halving.
    """
    low = float(((age + left) / alone).max(initial=0.0))  # nobody can have more than all of its time
    if (gang * _needed(low, age, left, alone)).sum() <= gpus:
        return low, np.minimum(_needed(low, age, left, alone), 1.0)
    high = 2.0 * low
    while (gang * _needed(high, age, left, alone)).sum() > gpus:
        low, high = high, 2.0 * high
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        enough = (gang * _needed(middle, age, left, alone)).sum() <= gpus
        low, high = (low, middle) if enough else (middle, high)
    return high, np.minimum(_needed(high, age, left, alone), 1.0)


def _needed(peak: float, age: Floats, left: Floats, alone: Floats) -> Floats:
    time = np.maximum(peak * alone - age, 1e-300)
    return np.where(left > 0, left / time, 0.0)


def floor_of(need: Floats, gang: Floats, gpus: float, can: Bools) -> float:
    """The largest t with t * need <= 1 and gang . (t * need) <= gpus, over those who can run."""
    wants = can & (need > 0)
    if not wants.any():
        return 0.0
    return min(1.0 / float(need[wants].max()), gpus / float((gang * need)[wants].sum()))
