"""`slurm-fair sweep plot`: the results of a sweep as charts in one SVG file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from slurm_fair.cli.simulate.files import Outputs
from slurm_fair.cli.simulate.options import FILE
from slurm_fair.cli.simulate.table import Metric, metrics
from slurm_fair.cli.sweep.curves import Across, by_lease, by_metric, load_curves, panel
from slurm_fair.cli.sweep.groups import METRICS, Group, groups_of, metrics_in
from slurm_fair.cli.sweep.results_file import ResultsFile
from slurm_fair.cli.table import clean
from slurm_fair.cli.written import Written
from slurm_fair.errors import InputError
from slurm_fair.trace.files import write_with
from slurm_fair_accounting.drawing.page_file import refuse_what_is_read
from slurm_fair_accounting.drawing.panels import picture

USUAL = ("jct_mean_s", "slowdown_mean", "ltgf_job_loss_fraction", "ltgf_tenant_unfair_fraction")
LEASE, LOAD = "lease", "load"
_USUAL_ACROSS = "jct_mean_s"  # where neither loads nor lease terms differ


def _across_in(text: str) -> str:
    """A quantity along the x axis: `load`, `lease`, or a metric by its JSON key."""
    if text in (LEASE, LOAD):
        return text
    keys = metrics_in(text)
    if len(keys) > 1:
        raise click.BadParameter(f"{text!r}: one thing is along the x axis: name one")
    return keys[0].key


@click.command("plot")
@click.argument("file", metavar="FILE", type=FILE)
@click.option("--out", type=FILE, required=True, metavar="FILE.svg", help="The file of the charts.")
@click.option(
    "--x",
    "across",
    type=Written("lease|load|KEY", _across_in),
    help="Along the x axis: `load`, `lease`, or a metric by its JSON key; unless given, whichever of loads and "
    "lease terms differs, else jct_mean_s.",
)
@click.option(
    "--y",
    "wanted",
    type=METRICS,
    default=",".join(USUAL),
    show_default=True,
    help="The metrics of the charts, by their JSON keys.",
)
def plot_command(file: Path, out: Path, across: str | None, wanted: tuple[Metric, ...]) -> None:
    """Draw the results in FILE: a chart for each metric, a curve for each policy, in one SVG file.

    \b
    slurm-fair sweep plot sweep.db --out sweep.svg
    slurm-fair sweep plot sweep.db --x jct_mean_s --y ltgf_tenant_unfair_fraction --out frontier.svg

    Points are means over the seeds; bars reach one standard deviation up and down. Where lease terms and loads
    both differ, each term (or load) has a curve of its own.
    """
    refuse_what_is_read(out, [file])
    if out.suffix != ".svg":
        raise InputError(f"{out}: the charts are SVG: give a name that ends in .svg")
    with ResultsFile.to_read(file) as results:
        about, rows = results.about(), results.rows()
    groups = [group for group in groups_of(rows) if group.seeds]
    if about is None or not groups:
        raise InputError(
            f"{file}: no run in it has a result yet: wait, or go on with the same slurm-fair sweep TRACE"
        )
    x = _across(groups, across or _what_differs(groups))
    title = f"Sweep of {clean(Path(about.trace['path']).name)} on {about.cluster['gpus']} GPUs"
    drawn = picture(title, [panel(metric, groups, x) for metric in wanted])
    with Outputs([file]) as outputs:
        beside = outputs.will_write(out)
        write_with(beside, lambda text: text.writelines([drawn]))
        outputs.commit()


def _what_differs(groups: Sequence[Group]) -> str:
    if len({group.load for group in groups}) > 1:
        return LOAD
    return LEASE if len({group.lease_s for group in groups} - {None}) > 1 else _USUAL_ACROSS


def _across(groups: Sequence[Group], what: str) -> Across:
    if what == LOAD:
        return load_curves(groups)
    if what != LEASE:
        return by_metric(groups, next(metric for metric in metrics() if metric.key == what))
    endless = sorted({group.policy for group in groups if group.lease_s is None})
    if all(group.lease_s is None for group in groups):
        raise InputError("--x lease: no lease of this sweep ends: give --x load, or a metric")
    if endless:
        click.echo(
            f"without a place on the axis, because their leases never end: {', '.join(endless)}", err=True
        )
    return by_lease(groups)
