"""`slurm-fair replay-tick`: plan a past tick again from the journal, and say whether it comes out the same."""

from __future__ import annotations

from dataclasses import replace

import click
import numpy as np

from slurm_fair.cli.base import site_of
from slurm_fair.cli.table import clean
from slurm_fair.dry_run import without_effect
from slurm_fair.errors import ConfigError, InputError, NotHere, SlurmFairError
from slurm_fair.ledger import LedgerSettings
from slurm_fair.looks.wall_clock import WallClock
from slurm_fair.model import Plan, Standing, TickRecord, Verdict, label
from slurm_fair.policy.profiling import Profiling
from slurm_fair.policy.registry import load_recorded
from slurm_fair.store import Reader
from slurm_fair.tick import Rules, conclude, decide, prepare, reconcile


@click.command("replay-tick")
@click.argument("number", type=int, required=False)
@click.pass_context
def replay_tick(context: click.Context, number: int | None) -> None:
    """Compute tick NUMBER (default: the last) again and compare it with what was planned then.

    For bug reports and for trust: a tick's record holds all that its plan came from.
    """
    site = site_of(context)
    with site.reader() as journal:
        span = journal.tick_numbers()
        if span is None:
            raise NotHere("the journal holds no tick yet: let the daemon run first")
        wanted = span[1] if number is None else number
        if not span[0] <= wanted <= span[1]:
            raise InputError(f"tick {wanted} is not in the journal, which holds {span[0]} to {span[1]}")
        again, then = replayed(
            journal, wanted, site.config.tenants.ledger(), site.config.profiler.profiling()
        )
    differing = [
        f"  job {label(int(then.snapshot.jobs.key[row]))}: "
        f"{Verdict(int(then.plan.verdict[row])).name} then, {Verdict(int(again.verdict[row])).name} now"
        for row in np.flatnonzero(again.verdict != then.plan.verdict).tolist()
    ]
    counts = {v.name.lower(): int((again.verdict == v).sum()) for v in Verdict}
    said = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    click.echo(f"tick {wanted}: {said or 'no job was there'}")
    if not same_plan(again, then.plan):
        click.echo("\n".join(differing))
        note = then.plan.note or then.plan.fault
        if note:
            click.echo(f"another plan was carried out than the policy makes: {clean(note)}")
            return
        raise SlurmFairError(f"tick {wanted} comes out differently: was the policy changed since?")
    click.echo("the same plan as then")


def replayed(
    journal: Reader, number: int, settings: LedgerSettings, profiling: Profiling | None = None
) -> tuple[Plan, TickRecord]:
    """The plan computed again, and the record of it."""
    before = journal.standing_before(number)
    start, standing = before if before else (number - 1, None)
    for record in journal.ticks(start + 1, number):
        rules = replace(rules_then(record, settings), profiling=profiling)
        if standing is None:
            standing = Standing.new(record.time)
        standing = standing._replace(
            tick=record.number - 1,
            ledger=record.amended or standing.ledger,
            left_over=standing.left_over if record.left_over is None else record.left_over,
        )
        ready = prepare(standing, record.snapshot, rules)
        if record.number == number:
            return decide(ready.view, rules, WallClock(), fault=ready.fault), record
        leases, _, _ = reconcile(ready, record.plan, rules)
        plan = record.plan
        if record.dry_run:
            leases, plan = without_effect(leases, plan, ready.view)
        standing = conclude(ready, leases, record.outcomes, plan, rules, acted=not record.dry_run)
    raise InputError(f"tick {number} cannot be computed again: what led up to it was pruned")


def rules_then(record: TickRecord, settings: LedgerSettings) -> Rules:
    """The rules that a recorded tick went by."""
    try:
        policy = load_recorded(record.policy, record.settings)
    except ConfigError as problem:
        raise InputError(
            f"tick {record.number} cannot be computed again by this version: {problem}"
        ) from None
    return Rules(
        record.policy,
        policy,
        record.settings,
        record.terms,
        settings,
        seed=record.seed,
    )


def same_plan(one: Plan, other: Plan) -> bool:
    """The same verdicts in the same places."""
    verdicts = np.array_equal(one.verdict, other.verdict)
    places = (
        np.array_equal(getattr(one.places, c), getattr(other.places, c)) for c in ("row", "node", "gpus")
    )
    return verdicts and all(places)
