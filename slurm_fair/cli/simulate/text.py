"""The words of `simulate`: its JSON document, and the lines above and below its table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from slurm_fair.cli.simulate.case import Case
from slurm_fair.cli.simulate.one_run import FinishedRun
from slurm_fair.cli.simulate.setups import PolicySetup, makeshift_of, usual_lease
from slurm_fair.cli.table import clean, duration
from slurm_fair.ledger.formulas import rho_for_reports
from slurm_fair.sim.world.speed import notes_on_speeds

_MOST_NAMED = 3


def row_of(setup: PolicySetup, done: FinishedRun) -> dict[str, Any]:
    """One policy's metrics by their JSON keys."""
    terms, result = setup.rules().terms, done.result
    return {
        **result.to_dict(),
        "lease_s": usual_lease(terms.term),
        "interval_s": terms.interval,
        **({"interval_min_s": terms.interval_min} if terms.follows_changes else {}),
        **({} if setup.look_seconds is None else {"look_cost_s": setup.look_seconds}),
        "aligned": terms.aligned,
        **({} if terms.aligned else {"renewal_s": usual_lease(terms.shortest)}),
        "counted": setup.ledger.counted,
        "half_life_s": setup.ledger.half_life_seconds,
        "job_share": setup.ledger.job_share,
        "settings": dict(setup.settings),
        "jobs_not_ended": int((~done.result.outcomes.over).sum()),
        "tenants": _tenants(result.accounts),
    }


def _tenants(accounts: Mapping[str, tuple[float, float]]) -> list[dict[str, Any]]:
    names = sorted(accounts)
    had, owed = (np.array([accounts[name][side] for name in names]) for side in (0, 1))
    return [
        {
            "tenant": name,
            "had_gpu_seconds": h,
            "owed_gpu_seconds": o,
            "rho": rho if math.isfinite(rho) else None,
        }
        for name, h, o, rho in zip(
            names, had.tolist(), owed.tolist(), rho_for_reports(had, owed).tolist(), strict=True
        )
    ]


def document_of(case: Case, seed: int, rows: Sequence[dict[str, Any]], repeat: int = 1) -> dict[str, Any]:
    return {
        "trace": case.trace_document(),
        "cluster": case.cluster_document(),
        "told": case.run_times_document(),
        "options": case.options_document(seed, repeat),
        "results": list(rows),
    }


def lead_of(case: Case) -> list[str]:
    trace, machines = case.trace_document(), case.scenario.machines
    costs = case.scenario.costs
    lines = [
        f"{clean(case.trace_path.name)}: {many(trace['jobs'], 'job')} of {many(trace['tenants'], 'tenant')}, "
        f"{trace['gpu_seconds'] / 3600:.1f} GPU-hours, submitted over {duration(trace['span_s'])}; "
        f"{many(machines.total_gpus, 'GPU')} on {many(len(machines), 'node')}"
    ]
    asked = [
        f"{words} {seconds:g} s"
        for words, seconds in (
            ("a checkpoint costs", costs.checkpoint),
            ("a start costs", costs.start),
            ("a restart costs", costs.restart),
            ("a requeue is delayed by", costs.requeue_delay),
        )
        if seconds
    ]
    return [*lines, *([", ".join(asked)] if asked else [])]


def notes_of(case: Case, dones: Sequence[FinishedRun]) -> list[str]:
    """Caveats for a reader of the numbers of these runs."""
    notes = []
    for done in dones:
        outcomes = done.result.outcomes
        open_ = done.result.trace_row[~outcomes.over].tolist()
        if open_:
            jobs = [str(case.scenario.trace.job_id[row]) for row in open_]
            notes.append(f"{done.result.policy}: {many(len(jobs), 'job')} did not end: {some(jobs)}")
        late = len(case.scenario.trace) - len(outcomes)
        if late:
            notes.append(f"{done.result.policy}: {many(late, 'job')} not submitted by then")
    return notes_on_case(case, [done.result.policy for done in dones]) + _as_notes(notes)


def notes_on_case(case: Case, policies: Sequence[str]) -> list[str]:
    """Caveats for a reader of numbers of any runs of these policies."""
    notes = []
    if case.fractional:
        notes.append(f"{many(case.fractional, 'job')} with a part of a GPU took whole ones (the ceiling)")
    if case.failed:
        notes.append(f"{many(case.failed, 'job')} that did not end well left out (--failed drop)")
    if case.too_large:
        notes.append(
            f"{many(len(case.too_large), 'job')} that the cluster could never run left out: "
            f"{some(case.too_large)}"
        )
    if weights := case.scenario.gpu_weights:
        weighed = ", ".join(f"{kind} {weights.get(kind, 1.0):g}" for kind in case.scenario.machines.gpu_types)
        notes.append(
            f"shares, rho and envy are by the weight of the GPUs: {weighed}; GPU time held and use are not"
        )
    notes += notes_on_speeds(case.scenario.machines, case.scenario.throughputs)
    if case.scenario.plain_jobs.some:
        notes.append(
            f"{many(case.plain, 'job')} cannot save (--plain): each starts only within its tenant's own share, "
            "and nobody asks it to stop"
        )
    if case.scenario.truthfulness.silent:
        notes.append("no job reported its progress (--progress silent)")
    return _as_notes(notes + _declared_notes(case) + _undeclared_notes(case, policies))


def _as_notes(texts: Sequence[str]) -> list[str]:
    return ["note: " + clean(text) for text in texts]


def _wrong_by(case: Case) -> str:
    """The error of declared run times, in words; empty where they are right."""
    error = case.scenario.truthfulness.declared_error
    return "" if error == 1.0 else f"lognormal factors, sigma ln {error:g} (--declared-error {error:g})"


def _declared_notes(case: Case) -> list[str]:
    wrong = _wrong_by(case)
    if not wrong:
        return []
    if case.undeclared < len(case.scenario.trace):
        return [f"declared run times were wrong by {wrong}"]
    if case.scenario.undeclared == "actual":
        return []
    return ["no job has a declared_s: --declared-error changes nothing"]


def _undeclared_notes(case: Case, policies: Sequence[str]) -> list[str]:
    if not case.undeclared:
        return []
    whose = f"{many(case.undeclared, 'job')} without declared_s"
    if case.scenario.undeclared == "actual":
        error = f", made wrong by {wrong}" if (wrong := _wrong_by(case)) else ""
        return [
            f"{whose}: policies were told the true run time{error} (--undeclared unknown tells them nothing)"
        ]
    makeshifts = ((name, makeshift_of(name)) for name in policies)
    return [
        f"{whose}: policies were told nothing of the run time",
        *(f"{name}: jobs of unknown run time {makeshift}" for name, makeshift in makeshifts if makeshift),
    ]


def many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def some(names: Sequence[str], stands_for: Mapping[str, int] | None = None) -> str:
    """The first few names, and how many more there are; a name may stand for several, as that of an array does."""
    left = sum((stands_for or {}).get(name, 1) for name in names[_MOST_NAMED:])
    return ", ".join(names[:_MOST_NAMED]) + (f" and {left} more" if left else "")
