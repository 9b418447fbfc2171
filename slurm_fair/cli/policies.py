"""`slurm-fair policies`: the list of policies, one of them explained, and its check against the rules."""

from __future__ import annotations

import inspect
import json
from dataclasses import MISSING, Field, fields
from typing import Any

import click

from slurm_fair.cli.base import OneLineErrors, Site, site_of
from slurm_fair.cli.policies_check import check_command
from slurm_fair.cli.status import JSON, PARSABLE
from slurm_fair.cli.table import TextColumn, clean, print_table
from slurm_fair.errors import SlurmFairError
from slurm_fair.model import NEVER_ENDS_SECONDS
from slurm_fair.policy.decided import Order
from slurm_fair.policy.error_place import beginning
from slurm_fair.policy.registry import entry_of, kind_of, load, names, settings_of
from slurm_fair.policy.settings import allowed
from slurm_fair_accounting.forms import one_form

_WIDTH = 100
_LIST = (
    TextColumn("Policy", "policy"),
    TextColumn("Chosen", "chosen", lambda chosen: "*" if chosen else ""),
    TextColumn("Leases", "leases"),
    TextColumn("Run times", "run_times"),
    TextColumn("Package", "package"),
    TextColumn("Idea", "idea"),
)
_SETTINGS = (
    TextColumn("Setting", "setting"),
    TextColumn("Here", "here", lambda value: _shown(value)),
    TextColumn("Default", "default", lambda value: _shown(value)),
    TextColumn("May be", "may_be"),
)


class _OrAName(OneLineErrors):
    """A group in which a word that is none of its commands is the name of a policy."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """`policies srtf` is `policies show srtf`."""
        if args and self.get_command(ctx, args[0]) is None:
            return "show", self.get_command(ctx, "show"), args
        return super().resolve_command(ctx, args)


@click.group(cls=_OrAName, invoke_without_command=True, subcommand_metavar="[NAME | check NAME]")
@JSON
@PARSABLE
@click.pass_context
def policies(context: click.Context, as_json: bool, parsable2: bool) -> None:
    """List the policies, explain one of them, or try whether it keeps to the rules.

    \b
    slurm-fair policies             all that are installed here, ours and others
    slurm-fair policies NAME        its idea, where its code lies, its settings
    slurm-fair policies check NAME  tried on simulated clusters, each fault with its cure

    docs/policy-guide.md: how to write one.
    """
    if context.invoked_subcommand is not None:
        return
    one_form({"--json": as_json, "-P": parsable2})
    site = site_of(context)
    rows = [_row(name, site) for name in names()]
    if as_json:
        click.echo(json.dumps({"policies": rows}))
    else:
        print_table(_LIST, rows, parsable2)


policies.add_command(check_command)


@policies.command("show", hidden=True)
@click.argument("name", metavar="NAME")
@JSON
@click.pass_context
def show(context: click.Context, name: str, as_json: bool) -> None:
    """One policy: its idea, where its code lies, its settings."""
    document = _document(name, site_of(context))
    if as_json or (context.parent is not None and context.parent.params.get("as_json")):
        click.echo(json.dumps(document))
    else:
        _print(document)


def _row(name: str, site: Site) -> dict[str, Any]:
    """One policy in the list; one that cannot be loaded says why."""
    row = {
        "policy": name,
        "chosen": site.config.policy.name == name,
        "leases": "",
        "run_times": "",
        "package": "",
        "code": "",
    }
    try:
        entry = entry_of(name)
        row |= {"package": entry.dist.name if entry.dist else "", "code": entry.value}
        kind = kind_of(name)
    except SlurmFairError as problem:
        return row | {"idea": f"cannot be used: {' '.join(str(problem).split())}", "usable": False}
    knows = "declared" if getattr(kind, "unknown_run_time", "") else ""
    idea = _paragraphs(kind)[0].partition(". ")[0].rstrip(".")
    return row | {"leases": _leases(kind), "run_times": knows, "idea": idea, "usable": True}


def _leases(kind: type[Any]) -> str:
    term = getattr(kind, "lease_seconds", None)
    if term is None:
        return "the site's"
    return "until the end" if term >= NEVER_ENDS_SECONDS else f"{term:g} s"


def _paragraphs(kind: type[Any]) -> list[str]:
    # A dataclass without a docstring is given its signature as one.
    doc = inspect.getdoc(kind) or ""
    said = "" if doc.startswith(f"{kind.__name__}(") else doc
    return [" ".join(part.split()) for part in said.split("\n\n") if part.strip()] or ["(says nothing)"]


def _document(name: str, site: Site) -> dict[str, Any]:
    kind, given = kind_of(name), site.config.policy.settings.get(name, {})
    policy = load(name, given)
    by_name = {each.name: each for each in fields(kind)}
    order = getattr(kind, "score_is", None)
    return _row(name, site) | {
        "about": _paragraphs(kind),
        "file": beginning(kind),
        "decides_by": _order_in_words(order) if isinstance(order, Order) else "",
        "unknown_run_times": str(getattr(kind, "unknown_run_time", "")),
        "settings": [
            {
                "setting": key,
                "here": _plain(getattr(policy, key)),
                "default": _plain(_default(by_name[key])),
                "may_be": allowed(kind, key).strip(),
            }
            for key in settings_of(name)
        ],
    }


def _order_in_words(order: Order) -> str:
    first = "highest" if order.highest_first else "least"
    return f"{order.name}, {first} first; then {order.then}"


def _default(each: Field[Any]) -> object:
    if each.default is not MISSING:
        return each.default
    return each.default_factory() if each.default_factory is not MISSING else None


def _plain(value: object) -> object:
    """The value as JSON holds it."""
    return json.loads(json.dumps(value, default=str))


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _print(document: dict[str, Any]) -> None:
    chosen = ", chosen here" if document["chosen"] else ""
    click.echo(f"{document['policy']} (package {clean(document['package'] or '?')}{chosen})")
    for part in document["about"]:
        click.echo("\n" + click.wrap_text(clean(part), width=_WIDTH))
    click.echo(f"\ncode: {clean(document['code'])}, {clean(document['file'])}")
    click.echo(f"leases: {document['leases']}")
    if document["decides_by"]:
        click.echo(f"decides by: {clean(document['decides_by'])}")
    if document["unknown_run_times"]:
        click.echo(f"jobs of unknown run time: {clean(document['unknown_run_times'])}")
    if not document["settings"]:
        click.echo("settings: none")
        return
    click.echo("")
    print_table(_SETTINGS, document["settings"])
