"""`slurm-fair plan`: what the next tick would do, and why."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace

import click

from slurm_fair.board.board import draw
from slurm_fair.board.row import has_verdict
from slurm_fair.cli.base import site_of
from slurm_fair.cli.status import JSON, PARSABLE, two_digits
from slurm_fair.cli.table import TextColumn, clean, print_table
from slurm_fair.daemon.parts import commands_of, planner_of, rules_of
from slurm_fair.errors import SlurmUnreachable, StoreError
from slurm_fair.forecast import forecast
from slurm_fair.looks.wall_clock import WallClock
from slurm_fair.model import Blind, Standing, TickRecord, Verdict, label, labels
from slurm_fair.policy.packing.audit import left_out
from slurm_fair.slurm.cluster import SlurmCluster
from slurm_fair.slurm.fail_open import NoIntents
from slurm_fair.slurm.ownership.marks import MarksInHand
from slurm_fair.tick import decide, open_requests, prepare, reconcile
from slurm_fair_accounting.forms import one_form

_WITHOUT_PAST = (
    "no journal is read ({why}), so this is what a daemon without a past would do, not what yours will"
)

_UNCHANGED = (Verdict.KEEP, Verdict.LEAVE, Verdict.WAIT)


@click.command()
@click.option("--all", "everything", is_flag=True, help="Also the jobs for which nothing changes.")
@JSON
@PARSABLE
@click.pass_context
def plan(context: click.Context, everything: bool, as_json: bool, parsable2: bool) -> None:
    """Look at the cluster now and show what the next tick would do; nothing is done."""
    one_form({"--json": as_json, "-P": parsable2})
    site = site_of(context)
    past, clock, rules = "", WallClock(), rules_of(site.config)
    try:
        with site.reader() as journal:
            standing, marks = journal.latest(), journal.marks()
    except StoreError as problem:
        standing, marks, past = None, (), _WITHOUT_PAST.format(why=problem)
    standing = standing or Standing.new(clock.now())
    commands = commands_of(site.config, site.places)
    cluster = SlurmCluster(commands, site.config.cluster, clock.now, MarksInHand(marks), NoIntents())
    snapshot = cluster.observe(open_requests(standing))
    if isinstance(snapshot, Blind):
        raise SlurmUnreachable(f"the cluster cannot be seen: {snapshot.reason}")
    planner = planner_of(site.config, rules)
    rules = replace(rules, planner=planner)
    ready = prepare(standing, snapshot, rules)
    try:
        chosen = decide(ready.view, rules, clock)
    finally:
        if planner is not None:
            planner.close()
    leases, actions, _ = reconcile(ready, chosen, rules)
    after = ready.standing._replace(leases=leases)
    record = TickRecord(
        after.tick, snapshot.time, rules.policy_name, rules.settings, rules.terms, rules.seed, ready.snapshot,
        chosen, (), (), {}, dry_run=True,
    )  # fmt: skip
    counts = rules.ledger.counts_seconds
    board = draw(record, after, forecast(record, after, rules), policy=rules.policy, counts_seconds=counts)
    rows = [job for job in board.jobs if everything or not has_verdict(job, *_UNCHANGED)]
    acts = [{"act": a.verb.value, "job": label(a.key), "nodes": list(a.nodes), "why": a.why} for a in actions]
    fit = labels(ready.snapshot.jobs.key[left_out(chosen, ready.view)])
    notes = [note for note in (board.note, past) if note]
    if as_json:
        document = {"time": time.time(), "note": "; ".join(notes), "jobs": list(board.jobs), "acts": acts}
        click.echo(json.dumps({**document, "could_be_added": fit}))
        return
    for note in notes:
        click.echo(f"note: {clean(note)}", err=True)
    print_table(_PLAN, rows, parsable=parsable2)
    if not parsable2:
        click.echo(f"\n{len(board.jobs)} jobs; acts: {_counted([act.verb.value for act in actions])}")
        click.echo(f"Waiting jobs that would fit the GPUs left over: {', '.join(fit) or 'none'}")


def _counted(acts: Sequence[str]) -> str:
    """The number of acts of each kind, as words."""
    kinds = ("open", "close", "ask", "requeue", *(("free",) if "free" in acts else ()))
    return ", ".join(f"{acts.count(kind)} {kind}" for kind in kinds)


_PLAN: Sequence[TextColumn] = (
    TextColumn("JobID", "job", is_name=True),
    TextColumn("Tenant", "tenant", is_name=True),
    TextColumn("GPUs", "gpus", str),
    TextColumn("State", "state"),
    TextColumn("Verdict", "verdict"),
    TextColumn("rho", "rho", two_digits),
    TextColumn("Why", "why"),
)
