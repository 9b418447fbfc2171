"""The words of `tune-lease`: the trade-off between terms, the recommended term, and why."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click
import numpy as np

from slurm_fair.cli.simulate.one_run import FinishedRun
from slurm_fair.cli.simulate.repeats import deviation_of, mean_of, repeat_note
from slurm_fair.cli.simulate.table import count_text
from slurm_fair.cli.simulate.text import document_of, lead_of, notes_of
from slurm_fair.cli.table import TextColumn, clean, duration, print_table
from slurm_fair.cli.tune.sources import Ground
from slurm_fair.model.columns import Bools
from slurm_fair.sim.tune import Advice, Tolerances, Trial, TrialDeviations

MARK = "*"
_JUDGED = ("ltgf_job_loss_fraction", "ltgf_tenant_unfair_fraction", "jct_mean_s", "preemptions")
# Keys of a term in JSON, and where they stand.
_BEHIND = {
    "job_loss_behind": "job_loss",
    "tenant_unfair_behind": "tenant_unfair",
    "jct_behind": "jct",
    "regret": "regret",
    "bearable": "bearable",
}


def trials_of(runs: Sequence[Sequence[FinishedRun]], rows: Sequence[dict[str, Any]]) -> list[Trial]:
    """The metrics that count of each term. Jobs that start under no term at all say nothing about terms."""
    # Runs of one number have the same trace under every term.
    hopeless = [
        frozenset.intersection(*(_rows(done, np.isnan(done.result.outcomes.start)) for done in same))
        for same in zip(*runs, strict=True)
    ]
    return [
        Trial(
            lease_seconds=row["lease_s"],
            job_loss=_known(mean_of(row, "ltgf_job_loss_fraction")),
            tenant_unfair=_known(mean_of(row, "ltgf_tenant_unfair_fraction")),
            jct_mean_seconds=_known(mean_of(row, "jct_mean_s")),
            overhead=_known(mean_of(row, "overhead_fraction")),
            preemptions=_known(mean_of(row, "preemptions")),
            finished=all(
                _rows(done, ~done.result.outcomes.over) <= never
                for done, never in zip(some, hopeless, strict=True)
            ),
            deviations=TrialDeviations(*(deviation_of(row, key) for key in _JUDGED)),
        )
        for some, row in zip(runs, rows, strict=True)
    ]


def _rows(done: FinishedRun, which: Bools) -> frozenset[int]:
    """Rows of the trace whose jobs are chosen."""
    return frozenset(done.result.trace_row[which].tolist())


def _finite(value: float | None) -> float | None:
    """The value, or null where JSON has no number for it."""
    return value if value is not None and math.isfinite(value) else None


def _known(value: float | None) -> float:
    return math.nan if value is None else value


@dataclass(frozen=True, slots=True)
class TuneAnswer:
    """Everything that a run of the command came to."""

    ground: Ground
    dones: Sequence[FinishedRun]
    rows: Sequence[dict[str, Any]]  # one a term, by the keys of simulate --json
    trials: Sequence[Trial]
    advice: Advice
    short: Sequence[float]  # terms that were not tried
    tolerances: Tolerances
    seed: int
    repeat: int = 1

    def document(self) -> dict[str, Any]:
        """The comparison as JSON holds it."""
        document = document_of(self.ground.case, self.seed, (), self.repeat)
        del document["results"]
        document["options"] |= {
            "until_s": None,
            "policy": str(self.rows[0]["policy"]),
            "costs": self.ground.known.document(),
            "job_tolerance": self.tolerances.jobs,
            "tenant_tolerance": self.tolerances.tenant_hours,
            "jct_tolerance": self.tolerances.jct,
            "overhead_limit": self.tolerances.overhead,
        }
        terms = [
            {**row, **{name: _finite(getattr(behind, at, None)) for name, at in _BEHIND.items()}}
            for row, behind in zip(self.rows, self.advice.behind, strict=True)
        ]
        return {
            "source": self.ground.source,
            **document,
            "terms": terms,
            "terms_left_out": list(self.short),
            "recommended": {"lease_s": self.advice.lease_seconds, "reason": self.advice.reason},
        }

    def lead(self) -> list[str]:
        """Sentences about the jobs, the machines and the policy."""
        policy = self.rows[0]["policy"]
        return [f"{lead_of(self.ground.case)[0]}; policy {clean(policy)}", self.ground.known.words]

    def recommendation(self) -> str:
        return f"Recommended: {self.advice.reason}."

    def notes(self) -> list[str]:
        """Caveats for a reader."""
        notes = [*repeat_note(self.repeat), *self.ground.notes]
        if self.short:
            terms = ", ".join(f"{term:g}" for term in self.short)
            notes.append(
                f"note: {terms} s left out: a lease must be longer than what a change of hands costs"
            )
        stuck = [trial.lease_seconds for trial in self.trials if not trial.finished]
        if stuck:
            terms = ", ".join(f"{term:g}" for term in stuck)
            notes.append(f"note: {terms} s: jobs make so little progress that not all ended")
        terms_tried = [row["lease_s"] for row in self.rows]
        ended = any(row["preemptions"] for row in self.rows)  # where no lease is, no other term is better
        if len(terms_tried) > 1 and ended and self.advice.lease_seconds in (terms_tried[0], terms_tried[-1]):
            end = "shortest" if self.advice.lease_seconds == terms_tried[0] else "longest"
            notes.append(f"note: it is the {end} term tried: others may be better still (--terms)")
        sound = [done for done, trial in zip(self.dones, self.trials, strict=True) if trial.finished]
        return [*notes, *notes_of(self.ground.case, sound[:1])]

    def show(self) -> None:
        click.echo("\n".join(self.lead()) + "\n")
        print_table(self.columns(), self.table())
        click.echo(f"\n{self.recommendation()}")
        for note in self.notes():
            click.echo(note)

    def columns(self) -> tuple[TextColumn, ...]:
        """The columns, each with the spread over the runs of a term beside it."""
        if self.repeat == 1:
            return COLUMNS
        return tuple(each for column in COLUMNS for each in (column, *DEVIATIONS.get(column.key, ())))

    def table(self) -> list[dict[str, Any]]:
        """One row for each term; means where there are several runs."""
        return [
            {
                **row,
                **{key: mean_of(row, key) for key in (*DEVIATIONS, "overhead_fraction")},
                **{
                    f"{key}_spread": deviation_of(row, key) if self.repeat > 1 else None for key in DEVIATIONS
                },
                "regret": _finite(behind.regret) if behind and behind.bearable else None,
                "mark": MARK if row["lease_s"] == self.advice.lease_seconds else "",
            }
            for row, behind in zip(self.rows, self.advice.behind, strict=True)
        ]


def _part(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"


COLUMNS = (
    TextColumn("Lease s", "lease_s", lambda seconds: f"{seconds:.12g}"),
    TextColumn("", "mark"),
    TextColumn("Sharing loss %", "ltgf_job_loss_fraction", _part),
    TextColumn("Unfair tenant hours %", "ltgf_tenant_unfair_fraction", _part),
    TextColumn("JCT mean", "jct_mean_s", duration),
    TextColumn("JCT p95", "jct_p95_s", duration),
    TextColumn("Lost GPU time %", "overhead_fraction", _part),
    TextColumn("Pre-emptions", "preemptions", count_text),
    TextColumn("Regret", "regret", lambda value: "-" if value is None else f"{value:.1f}"),
)
# Columns that stand beside these where each term is simulated several times.
DEVIATIONS = {
    "ltgf_job_loss_fraction": (TextColumn("+-", "ltgf_job_loss_fraction_spread", _part),),
    "ltgf_tenant_unfair_fraction": (TextColumn("+-", "ltgf_tenant_unfair_fraction_spread", _part),),
    "jct_mean_s": (TextColumn("+-", "jct_mean_s_spread", duration),),
    "jct_p95_s": (TextColumn("+-", "jct_p95_s_spread", duration),),
    "preemptions": (TextColumn("+-", "preemptions_spread", count_text),),
}
