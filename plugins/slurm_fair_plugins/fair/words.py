"""The reason for each decision of `fair`: the term of a job's worth that decided, with its number.

Numbers are rounded, so that a plan of thousands of jobs has some dozens of reasons.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slurm_fair.model import Explanation, Plan
from slurm_fair.policy import MUST_GO_ON, MUST_START, TOO_LATE, Words
from slurm_fair.policy.draft import STAYS
from slurm_fair_plugins.fair.worth import HOUR, Term, Worth

WORDS = Words(
    granted="a GPU-hour is worth most to it",
    renewed="a GPU-hour is still worth most to it",
    revoked="a job to which they are worth more needs its GPUs",
    moved="it goes on with other GPUs, which are worth more to it",
    waits="GPU-hours are worth more to others",
)
SIBLING_MUST_RUN = "a job of its tenant must run now to make its deadline"
_SOME_GPUS = 0.1  # fewer are not named
WORDS_WITH_TERMS = (WORDS.granted, WORDS.renewed, WORDS.revoked, WORDS.waits, WORDS.misfit)
_STEPS = np.array([10.0, 20, 30, 60, 120, 180, 300, 600, 900, 1200, 1800, 2700, *(HOUR * np.array(
    [1, 1.5, 2, 3, 4, 6, 8, 10, 12, 18, 24, 36, 48, 72, 96, 120, 168, 240, 336, 480, 720,
     1080, 1440, 2160, 4320, 8640, 17280, 43200]))])  # fmt: skip


def in_words(plan: Plan, worth: Worth, price_hours: float) -> Plan:
    """The plan, whose usual reasons name what decided for each job."""
    return replace(plan, why=lambda: _named(plan.explanation, worth, price_hours), ranked=lambda: plan.rank)


def _named(said: Explanation, worth: Worth, price_hours: float) -> Explanation:
    kinds = {text: at for at, text in enumerate(said.reasons)}
    reason, texts = said.reason.copy(), dict(kinds)
    named = WORDS_WITH_TERMS if worth.deadlines is None else (*WORDS_WITH_TERMS, STAYS)
    usual = {kinds[text]: text for text in named if text in kinds}
    for at, row in enumerate(worth.rows.tolist()):
        text = usual.get(int(said.reason[row]))
        if text is not None:
            whole = _sentence(text, worth, at, price_hours)
            reason[row] = texts.setdefault(whole, len(texts))
    used = np.unique(reason)
    every = tuple(texts)
    return replace(
        said, reason=np.searchsorted(used, reason), reasons=tuple(every[at] for at in used.tolist())
    )


def _sentence(text: str, worth: Worth, at: int, price_hours: float) -> str:
    runs, found = text in (WORDS.granted, WORDS.renewed), worth.deadlines
    if found is not None and found.urgent.item(at) and (runs or text == STAYS):
        return MUST_START if text == WORDS.granted else MUST_GO_ON
    if found is not None and found.missed.item(at) and text in (WORDS.waits, WORDS.misfit):
        return TOO_LATE
    if text == STAYS:
        return text
    fact = _fact_beside_siblings(worth, at, text if runs else SIBLING_MUST_RUN)
    fact = fact or fact_of(worth, at, price_hours)
    return fact if runs else f"{text}: {fact}"


def _fact_beside_siblings(worth: Worth, at: int, steps_back: str) -> str:
    """The fact on a job that has changed its place with others of its tenant; nothing where it has not."""
    places = worth.siblings
    if places is not None and places.behind.item(at):
        return steps_back
    return MUST_START if places is not None and places.first.item(at) else ""


def fact_of(worth: Worth, at: int, price_hours: float) -> str:
    """The term that decides the place of one of the jobs, and its number."""
    left, term = _span(worth.left.item(at)), Term(worth.term.item(at))
    if term is Term.CLAIM:
        slack = worth.slack.item(at)
        late = f"it is {_span(-slack)} late" if slack < 0 else f"it must run within {_span(slack)}"
        return f"{late} for its fair finish time"
    if term is Term.MAKESPAN:
        at_best = _span(worth.at_best.item(at))
        return (
            f"with {at_best} left it takes nearly as long as all work that there is ({_span(worth.backlog)})"
        )
    if term is Term.NEARLY_DONE:
        if worth.known.item(at):
            return f"it is nearly done, with {left} left"
        if worth.limited.item(at):
            return f"its time limit leaves it {left} at most"
        ran = worth.ran.item(at)
        has = f"has run for about {_span(ran)}" if ran > 0 else "has not run yet"
        return f"how long it still takes is not known yet: it {has}, and counts as having {left} left"
    repaid = worth.repaid.item(at)
    more = f" and {_gpus(repaid)} that pay back what it lacks" if repaid >= _SOME_GPUS else ""
    of_quota = f"{_gpus(worth.ahead.item(at))} of {_gpus(worth.quota.item(at))} GPUs{more}"
    if term is Term.QUOTA:
        has = "has" if worth.known.item(at) else "counts as having"
        return f"its tenant is within its quota ({of_quota} go before it), and it {has} {left} left"
    if term is Term.DEBT:
        return f"its tenant lacks {_span(HOUR * worth.debt.item(at))} of its quota ({of_quota} go before it)"
    beyond = f"its tenant is beyond its quota ({of_quota} go before it)"
    counts = "that it has left are" if worth.known.item(at) else "that it counts as having left are"
    return f"{beyond}, and the {left} {counts} above the price of {price_hours:g} h"


def _gpus(count: float) -> str:
    return f"{count:.3g}" if count < 1000 else f"{count:.0f}"


def _span(seconds: float) -> str:
    """`30 s`, `15 min`, `4 h`: the nearest of some steps."""
    step = float(_STEPS[np.abs(np.log(_STEPS / min(max(seconds, 1.0), _STEPS[-1]))).argmin()])
    if step < 60:
        return f"{step:.0f} s"
    return (
        f"{step / 60:.0f} min"
        if step < HOUR
        else f"{step / HOUR:g} h"
        if step < 48 * HOUR
        else f"{step / 86400:g} days"
    )
