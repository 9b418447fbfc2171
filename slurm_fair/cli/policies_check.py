"""`slurm-fair policies check NAME`: a policy tried on simulated clusters, rule by rule."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

import click

from slurm_fair.cli.base import site_of
from slurm_fair.cli.status import JSON
from slurm_fair.cli.table import clean, takes_style
from slurm_fair.errors import SlurmFairError
from slurm_fair.model.counted import counted
from slurm_fair.policy.registry import load, prints_aside
from slurm_fair.policy.trial import RULES, PolicyTrial

_VIEWS = 24  # of each simulation
_COLOURS = {"ok": "green", "error": "red", "left out": "yellow"}


@click.command("check")
@click.argument("name", metavar="NAME")
@click.option("--set", "settings", multiple=True, metavar="NAME.KEY=VALUE", help="Set one of its settings.")
@JSON
@click.pass_context
def check_command(context: click.Context, name: str, settings: tuple[str, ...], as_json: bool) -> None:
    """Try a policy on simulated clusters against the rules that hold for every policy.

    Its settings are those of the site, and those given here. Each rule that it breaks is told with the file and
    the line, and how to mend it. Takes some seconds.
    Exit code 0 when no rule is broken, 1 when one is, 2 when the policy cannot be loaded.
    """
    from slurm_fair.cli.simulate.setups import given_settings

    given = {
        **site_of(context).config.policy.settings.get(name, {}),
        **given_settings(settings, (name,))[name],
    }
    trial, views = _tried(name, given)
    rows = _rows(trial)
    if as_json:
        kept = not trial.faults
        click.echo(
            json.dumps({"policy": name, "sound": kept, "views": views, "plans": trial.plans, "rules": rows})
        )
    else:
        _print(rows)
        click.echo(f"\n{counted(trial.plans, 'plan')} of {counted(views, 'view')} on two simulated clusters")
    if trial.faults:
        broken = ", ".join(fault.rule for fault in trial.faults)
        raise SlurmFairError(
            f"policy {name} breaks {len(trial.faults)} of {len(RULES)} rules ({broken}): mend these first"
        )


def _tried(name: str, settings: dict[str, object]) -> tuple[PolicyTrial, int]:
    """Try a policy on every view of every stage."""
    from slurm_fair.sim.trial import simulated_views, stages

    load(name, settings)  # refused in one line before anything is simulated
    trial = PolicyTrial(lambda: load(name, settings), _kept)
    with prints_aside():
        seen = [simulated_views(name, settings, stage, _VIEWS) for stage in stages()]
        for each in seen:
            if each.error is not None and each.of_policy:
                trial.met(each.error)
        views = [view for each in seen for view in each.views]
        trial.on(views)
        for each in seen:
            if each.error is not None and not trial.faults:  # else a rule has told of it
                trial.met(each.error)
    return trial, len(views)


def _kept(memory: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """A memory as the journal keeps it, and as it reads it back."""
    from slurm_fair.store.codec import Encoder, decode

    encoder = Encoder()
    text = json.dumps(encoder.tree(memory))
    return text, decode(json.loads(text), encoder.blobs.__getitem__)


def _rows(trial: PolicyTrial) -> list[dict[str, Any]]:
    rows = []
    for rule, about in RULES.items():
        fault = trial.found.get(rule)
        level = "error" if fault else "left out" if rule in trial.left_out else "ok"
        rows.append(
            {
                "rule": rule,
                "about": about,
                "level": level,
                "what": fault.what if fault else trial.left_out.get(rule, ""),
                "place": fault.place if fault else "",
            }
        )
    return rows


def _print(rows: list[dict[str, Any]]) -> None:
    colour = takes_style(sys.stdout)
    for row in rows:
        level = f"{row['level']:<8}"
        head = click.style(level, fg=_COLOURS[row["level"]]) if colour else level
        click.echo(f"{head} {row['rule']:<7} {clean(row['about'])}")
        if row["what"]:
            where = f"{row['place']}: " if row["place"] else ""
            click.echo(f"{'':16} {clean(where + row['what'])}")
