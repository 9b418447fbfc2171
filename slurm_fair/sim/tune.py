"""Recommend a lease term (Astraea, sections 5.1.3 and 6.2).

Shorter leases let the controller right wrongs sooner; longer ones disturb jobs less. So of the terms that are
about as fair and as fast as can be had at a bearable cost, the one that disturbs jobs least is taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

from slurm_fair.errors import InputError

DEFAULT_TERMS = (60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0)
_GOOD = 1.0 + 1e-9  # tolerances; a rounding error is no lag
_NO_DIFFERENCE = 0.1  # tolerances
_SHOWN = 0.0005  # a smaller lag reads as 0.0
USUAL_TERM = 900.0  # Astraea's, and what a site has that has chosen nothing; where nothing speaks for another


@dataclass(frozen=True, slots=True)
class Tolerances:
    """Differences too small to care about, and costs too high to pay; each a part, 0 to 1.

    Judgements, not measurements: one job in a hundred, one tenant's hour in a hundred and a twentieth of the mean
    JCT are too little to change a term for. A twentieth of the GPU time is what the usual term costs at most where
    a change of hands takes 45 s, as Themis measured it: 45 / 900.
    """

    jobs: float = 0.01
    tenant_hours: float = 0.01
    jct: float = 0.05
    overhead: float = 0.05

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not 0.0 <= value <= 1.0:
                raise InputError(f"tolerance of {field.name} {value:g}: give a number from 0 to 1")


@dataclass(frozen=True, slots=True)
class TrialDeviations:
    """Standard deviations of a trial's numbers over its runs; nothing where there was one."""

    job_loss: float = 0.0
    tenant_unfair: float = 0.0
    jct_mean_seconds: float = 0.0
    preemptions: float = 0.0


_ONE_RUN = TrialDeviations()


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of one lease term, or the mean of several runs of it; nan = not known."""

    lease_seconds: float
    job_loss: float  # part of the jobs with sharing loss
    tenant_unfair: float  # part of the tenants' hours that were unfair
    jct_mean_seconds: float
    overhead: float = math.nan  # part of the GPU time held that checkpoints and restarts cost
    preemptions: float = 0
    finished: bool = True  # every job ended that can start at all
    deviations: TrialDeviations = _ONE_RUN


@dataclass(frozen=True, slots=True)
class Behind:
    """The distance of a term from the best of the bearable terms, in each kind by itself; nan = not known."""

    job_loss: float
    tenant_unfair: float
    jct: float  # as a part of the least mean JCT
    regret: float  # the greatest of them in tolerances: at most 1 is good
    bearable: bool  # its overhead is within the limit, or as small as there is


@dataclass(frozen=True, slots=True)
class Advice:
    """The term to take, why, and how each term stands (None = not among those to choose from)."""

    lease_seconds: float
    reason: str
    behind: tuple[Behind | None, ...]


def advise(trials: Sequence[Trial], tolerances: Tolerances | None = None) -> Advice:
    """The term that disturbs jobs least among those that are good, in four steps.

    1. Terms under which jobs do not end are out. 2. So are those that cost more GPU time than the limit; if all
    do, all but the cheapest are. 3. A term is good if in each of sharing loss, unfair tenant hours and mean JCT it
    lies no further behind the best of these terms than the tolerance; if none is good, those are taken whose
    greatest lag, in tolerances, is least. 4. Of these the one with the fewest pre-emptions; of equals the nearest
    to the usual term, for nothing speaks for another. Kinds are never added up: no weights are needed, and no gain
    in one makes up for a loss in another.
    """
    limits = tolerances or Tolerances()
    sound = [trial for trial in trials if trial.finished and math.isfinite(trial.jct_mean_seconds)]
    if not sound:
        raise InputError("under no term did every job end: give longer --terms, or lower costs")
    bearable = _bearable(sound, limits.overhead)
    behind = {trial.lease_seconds: _behind(trial, bearable, limits) for trial in sound}
    good = [trial for trial in bearable if behind[trial.lease_seconds].regret <= _GOOD]
    least = min(behind[trial.lease_seconds].regret for trial in bearable)
    ties = good or [trial for trial in bearable if behind[trial.lease_seconds].regret <= least]
    chosen = _least_disturbing(ties)
    return Advice(
        lease_seconds=chosen.lease_seconds,
        reason=f"{chosen.lease_seconds:g} s, because {_reason(chosen, sound, ties, behind, limits)}",
        behind=tuple(behind.get(trial.lease_seconds) for trial in trials),
    )


def _least_disturbing(ties: Sequence[Trial]) -> Trial:
    """The trial with the fewest pre-emptions; chance apart, the nearest to the usual."""
    fewest = min(ties, key=lambda trial: (trial.preemptions, _from_usual(trial)))
    near = [trial for trial in ties if not _differs(trial, fewest, "preemptions")]
    return min(near, key=_from_usual)


def _from_usual(trial: Trial) -> float:
    return abs(math.log(trial.lease_seconds / USUAL_TERM))


def _differs(one: Trial, other: Trial, name: str) -> bool:
    """True if two trials lie further apart than the runs of either; a difference within that is called none."""
    apart = abs(getattr(one, name) - getattr(other, name))
    return bool(apart > 0 and apart >= max(getattr(trial.deviations, name) for trial in (one, other)))


def _bearable(trials: Sequence[Trial], limit: float) -> list[Trial]:
    """The trials that cost no more than the limit, else the cheapest; an unknown cost counts as none."""
    costs = [trial.overhead if math.isfinite(trial.overhead) else 0.0 for trial in trials]
    most = max(limit, min(costs))
    return [trial for trial, cost in zip(trials, costs, strict=True) if cost <= most]


def _behind(trial: Trial, bearable: Sequence[Trial], limits: Tolerances) -> Behind:
    best_jct = _least(other.jct_mean_seconds for other in bearable)
    lags = (
        _lag(trial, bearable, "job_loss"),
        _lag(trial, bearable, "tenant_unfair"),
        _lag(trial, bearable, "jct_mean_seconds") / best_jct if best_jct > 0 else 0.0,
    )
    pairs = zip(lags, (limits.jobs, limits.tenant_hours, limits.jct), strict=True)
    regret = max(_in_tolerances(lag, tolerance) for lag, tolerance in pairs)
    return Behind(*lags, regret, trial in bearable)


def _lag(trial: Trial, bearable: Sequence[Trial], name: str) -> float:
    """The distance of a term behind the best one; nothing where that is less than the spread of their runs."""
    least = _least(getattr(other, name) for other in bearable)
    lag: float = getattr(trial, name) - least
    if not lag > 0:
        return lag
    best = min(bearable, key=lambda other: getattr(other, name))
    return lag if _differs(trial, best, name) else 0.0


def _least(values: Iterable[float]) -> float:
    """nan where it is not known of every term."""
    known = list(values)
    return min(known) if all(map(math.isfinite, known)) else math.nan


def _in_tolerances(lag: float, tolerance: float) -> float:
    """A lag of next to nothing is none; what is not known of every term does not count."""
    if not math.isfinite(lag) or lag <= 1e-12:
        return 0.0
    return lag / tolerance if tolerance > 0 else math.inf


def _reason(
    chosen: Trial,
    sound: Sequence[Trial],
    ties: Sequence[Trial],
    behind: Mapping[float, Behind],
    limits: Tolerances,
) -> str:
    """The part of a sentence that follows `because`."""
    if len(sound) == 1:
        return "no other term can be chosen"
    lag, others = behind[chosen.lease_seconds], [trial for trial in ties if trial is not chosen]
    fewer = any(trial.preemptions > chosen.preemptions for trial in others)
    alike = len(ties) == len(sound) and not fewer
    if alike and all(one.regret < _NO_DIFFERENCE for one in behind.values()):
        return f"the term makes no difference here and it is the nearest to the usual {USUAL_TERM:g} s"
    everywhere = _behind(chosen, sound, limits)
    within = chosen.overhead <= limits.overhead  # the sentence then begins with the terms that it compares
    text = _cost(chosen, limits) + _lags(lag if within else everywhere)
    if lag.regret > _GOOD:
        none = (
            "no term"
            if within or all(one.bearable for one in behind.values())
            else "none that costs as little"
        )
        text += f": {none} is good in every respect, and this one lies least far behind in its worst"
    text += _dearer(lag, everywhere)
    if not others:
        return text
    terms = ", ".join(f"{term:g}" for term in sorted(trial.lease_seconds for trial in others))
    least = all(trial.preemptions > chosen.preemptions for trial in others)
    why = "pre-empts least" if least else f"pre-empts least and is the nearest to the usual {USUAL_TERM:g} s"
    return f"{text}; of the terms as good (also {terms} s) it {why}"


def _lags(lag: Behind) -> str:
    kinds = [
        (lag.job_loss, "points of jobs with sharing loss"),
        (lag.tenant_unfair, "points of unfair tenant hours"),
        (lag.jct, "% of mean JCT"),
    ]
    real = [f"{100 * part:.1f} {noun}" for part, noun in kinds if part >= _SHOWN]
    if not real:
        return "none is fairer or faster"
    listed = real[0] if len(real) == 1 else f"{', '.join(real[:-1])} and {real[-1]}"
    return (
        f"it is only {listed} behind the best" if lag.regret <= _GOOD else f"it is {listed} behind the best"
    )


def _dearer(lag: Behind, everywhere: Behind) -> str:
    """The sentence that the limit keeps better terms out: nobody is to think that there are none."""
    gains = {
        "fairer": max(everywhere.job_loss - lag.job_loss, everywhere.tenant_unfair - lag.tenant_unfair),
        "faster": everywhere.jct - lag.jct,
    }
    better = [word for word, gain in gains.items() if gain >= _SHOWN]
    return f"; there are {' or '.join(better)} terms that cost more" if better else ""


def _cost(chosen: Trial, limits: Tolerances) -> str:
    if not math.isfinite(chosen.overhead):
        return ""
    cost, limit = f"{100 * chosen.overhead:.1f} %", f"{100 * limits.overhead:g} %"
    if chosen.overhead > limits.overhead:
        return f"every term costs more than {limit} of the GPU time, this one least ({cost}), and "
    return f"of the terms that cost at most {limit} of the GPU time (this one {cost}) "
