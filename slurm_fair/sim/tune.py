"""Which lease term to recommend (Astraea, sections 5.1.3 and 6.2): fairness weighed against completion time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from slurm_fair.errors import InputError

DEFAULT_TERMS = (60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0)
# Job fairness, tenant fairness and completion time weigh the same.
FAIRNESS_WEIGHT = 2 / 3
# Terms whose scores differ by less are equally good; of them the longest asks least of jobs and scheduler.
TOLERANCE = 0.01
_NO_DIFFERENCE = 0.001


@dataclass(frozen=True, slots=True)
class Trial:
    """What one lease term came to; nan = not known."""

    lease_seconds: float
    job_loss: float  # part of the jobs with sharing loss
    tenant_unfair: float  # part of the tenants' hours that were unfair
    jct_mean_seconds: float
    finished: bool = True  # every job ended that can start at all


@dataclass(frozen=True, slots=True)
class Score:
    """How far a term lies behind the best of each kind; `total` weighs both, and less is better."""

    unfairness: float  # in parts of jobs and tenants' hours, above the least of all terms
    slowness: float  # mean JCT above the least of all terms, as a part of that
    total: float


@dataclass(frozen=True, slots=True)
class Advice:
    """The term to take, why, and every term's score (None = not among those to choose from)."""

    lease_seconds: float
    reason: str
    scores: tuple[Score | None, ...]
    fastest: float  # the terms with the least mean JCT and the least unfairness
    fairest: float


def advise(
    trials: Sequence[Trial], fairness_weight: float = FAIRNESS_WEIGHT, tolerance: float = TOLERANCE
) -> Advice:
    """Score = W * unfairness + (1 - W) * slowness; of the terms within the tolerance of the least, the longest.

    Unfairness is the mean of sharing loss and tenant unfairness, less that of the fairest term; slowness is the
    mean JCT over that of the fastest term, less 1. So with the usual weight one more job in a hundred with sharing
    loss, one more unfair hour in a hundred and jobs that take 1 % longer are equally bad. Differences are not
    blown up to a scale from best to worst: where all terms are nearly alike, so are their scores. A term under
    which jobs do not end is never recommended.
    """
    if not 0.0 <= fairness_weight <= 1.0:
        raise InputError(f"fairness weight {fairness_weight:g}: give a number from 0 to 1")
    sound = [trial for trial in trials if trial.finished and math.isfinite(trial.jct_mean_seconds)]
    if not sound:
        raise InputError("under no term did every job end: give longer --terms, or lower costs")
    unfairness = {trial.lease_seconds: _unfairness(trial, sound) for trial in sound}
    least_unfair = min(unfairness.values())
    least_jct = min(trial.jct_mean_seconds for trial in sound)
    scores: dict[float, Score] = {}
    for trial in sound:
        behind = unfairness[trial.lease_seconds] - least_unfair
        slower = trial.jct_mean_seconds / least_jct - 1.0 if least_jct > 0 else 0.0
        total = fairness_weight * behind + (1.0 - fairness_weight) * slower
        scores[trial.lease_seconds] = Score(behind, slower, total)
    best = min(score.total for score in scores.values())
    alike = sorted(term for term, score in scores.items() if score.total <= best + tolerance + 1e-12)
    fastest = max(t.lease_seconds for t in sound if t.jct_mean_seconds <= least_jct)
    fairest = max(term for term, value in unfairness.items() if value <= least_unfair)
    return Advice(
        lease_seconds=alike[-1],
        reason=_reason(sound, scores, alike, fastest, fairest, fairness_weight),
        scores=tuple(scores.get(trial.lease_seconds) for trial in trials),
        fastest=fastest,
        fairest=fairest,
    )


def _unfairness(trial: Trial, all_: Sequence[Trial]) -> float:
    """The mean of what is known of every term."""
    kinds = [
        getattr(trial, name)
        for name in ("job_loss", "tenant_unfair")
        if all(math.isfinite(getattr(other, name)) for other in all_)
    ]
    return sum(kinds) / len(kinds) if kinds else 0.0


def _reason(
    sound: Sequence[Trial],
    scores: dict[float, Score],
    alike: Sequence[float],
    fastest: float,
    fairest: float,
    fairness_weight: float,
) -> str:
    """One sentence."""
    term, score = alike[-1], scores[alike[-1]]
    if len(sound) == 1:
        return f"{term:g} s, because no other term can be chosen"
    totals = [other.total for other in scores.values()]
    if max(totals) <= min(totals) + _NO_DIFFERENCE:
        return f"{term:g} s, because the term makes no difference and the longest asks least of jobs and scheduler"
    jct = "jobs end soonest" if term == fastest else _slower(score.slowness, fastest)
    fair = "it is the fairest" if term == fairest else _less_fair(score.unfairness, fairest)
    text = f"{term:g} s, because {jct} and {fair}: the best balance at a fairness weight of {fairness_weight:.3g}"
    if len(alike) > 1:
        shorter = ", ".join(f"{other:g}" for other in alike[:-1])
        text += f" (as good within the tolerance, but shorter: {shorter} s)"
    return text


def _slower(part: float, fastest: float) -> str:
    return f"the mean JCT is {100 * part:.1f} % above that of the fastest term ({fastest:g} s)"


def _less_fair(part: float, fairest: float) -> str:
    return f"unfairness is {100 * part:.1f} points above that of the fairest term ({fairest:g} s)"
