"""`slurm-fair report`: the accounting commands."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from slurm_fair.errors import InputError, SlurmFairError
from slurm_fair.ledger.settings import ReportShare
from slurm_fair_accounting import render
from slurm_fair_accounting.drawing.page_file import Write, replacing
from slurm_fair_accounting.drawing.report_page import report_page
from slurm_fair_accounting.forms import one_form
from slurm_fair_accounting.reports.history import known_span
from slurm_fair_accounting.reports.registry import REPORTS, Make
from slurm_fair_accounting.source.event_file import EventFile, read_events
from slurm_fair_accounting.source.export import export_lines
from slurm_fair_accounting.source.known_names import refuse_unknown
from slurm_fair_accounting.source.period import Period, choose, span_of
from slurm_fair_accounting.source.source import JournalReader
from slurm_fair_accounting.table import Choice, Report

OpenJournal = Callable[[click.Context], JournalReader]
FilesRead = Callable[[click.Context], Collection[Path]]
_Command = TypeVar("_Command", bound=Callable[..., Any])

_WHEN = "as sreport takes it: YYYY-MM-DD[THH:MM[:SS]], MMDD[YY], HH:MM, now-2hours, today, midnight"
OF_TENANTS = frozenset({"tenants"})  # reports that know no users
_HELP = {
    "tenants": "GPU time that each tenant had and was owed, and its jobs that ended or live.",
    "fairness": "Sharing loss, unfair hours, finish-time fairness and latency of each tenant's jobs, and of all.",
    "jobs": "Jobs that ended in the period, and those that live if it reaches the present.",
    "usage": "GPU-hours by day, tenant and user, and the jobs that ran on that day.",
    "waits": "Waiting times of each tenant's jobs.",
    "leases": "Each lease, and how it ended.",
}


class _OneLineError(click.ClickException):
    """An error of ours with its exit code."""

    def __init__(self, error: SlurmFairError) -> None:
        super().__init__(render.safe(error))
        setattr(self, "exit_code", error.exit_code)  # noqa: B010  of this error, not of the class


def _given_once(_: click.Context, option: click.Parameter, values: Sequence[Any]) -> Any:
    """The one value of an option; none, where it is not given."""
    name = option.opts[0]
    if len(values) > 1:
        raise _OneLineError(InputError(f"{name} is given {len(values)} times: give it once a report"))
    if "" in values:
        raise _OneLineError(InputError(f"{name} is empty: give a value, or leave it out"))
    return values[0] if values else None


def _one(*names: str, **about: Any) -> Callable[[_Command], _Command]:
    """An option with a value that is given once or not at all; click alone would take the last."""
    return click.option(*names, multiple=True, callback=_given_once, **about)


@contextmanager
def _one_line() -> Iterator[None]:
    """An error of ours is one line on standard error, whoever runs the command."""
    try:
        yield
    except SlurmFairError as error:
        raise _OneLineError(error) from error


def _no_files(context: click.Context) -> Collection[Path]:
    return ()


def build_report_group(
    open_journal: OpenJournal, now: Callable[[], float], reads: FilesRead = _no_files
) -> click.Group:
    """The `report` group over a journal that is opened only when a report is made.

    `reads` names the files that are read for any report, none of which a page may replace.
    """

    @click.group("report")
    def report_group() -> None:
        """Reports on tenants, fairness, jobs, usage, waits and leases.

        Without --month, --start and --end: the last full month, or the whole life of a younger journal; with
        --from, the whole file. --html FILE writes a page with plots beside what is printed.
        """

    for name, make in REPORTS.items():
        report_group.add_command(_report_command(name, make, open_journal, now, reads))
    report_group.add_command(_export_command(open_journal, now))
    return report_group


def _choice_options(by_user: bool) -> Callable[[_Command], _Command]:
    """Options that choose the rows of a report, and what counts as owed; help names no user where none can be."""
    options = (
        _one("--tenant", help="Only this tenant (Slurm account)."),
        _one("--user", help="Only this user.", hidden=not by_user),
        click.option(
            "--share",
            type=click.Choice(["demand", "quota"]),
            default="demand",
            help="GPU time that tenants are owed: at most what their jobs ask for (usual), or all of their quota.",
        ),
    )
    return lambda command: _with(command, options)


def _form_options(command: _Command) -> _Command:
    """Options that choose the form of a report."""
    options = (
        click.option(
            "-P",
            "--parsable2",
            "parsable",
            is_flag=True,
            help="`|` between the values, none at the end.",
        ),
        click.option("--csv", is_flag=True, help="Comma-separated, in plain units."),
        click.option("--json", is_flag=True, help="One JSON document."),
        _one(
            "--html",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Also write one page with the table and plots to FILE; what is printed stays as it is.",
        ),
    )
    return _with(command, options)


def _report_command(
    name: str, make: Make, open_journal: OpenJournal, now: Callable[[], float], reads: FilesRead
) -> click.Command:
    @click.command(name, help=_HELP[name])
    @_period_options
    @_choice_options(by_user=name not in OF_TENANTS)
    @_form_options
    @click.option("-n", "--noheader", is_flag=True, help="No titles.")
    @click.pass_context
    def command(
        context: click.Context,
        /,
        source: Path | None,
        tenant: str | None,
        user: str | None,
        share: ReportShare,
        html: Path | None,
        noheader: bool,
        **others: Any,
    ) -> None:
        with _one_line():
            month, start, end = (others.pop(name) for name in ("month", "start", "end"))
            start, end = span_of(month, start, end, now())
            form = _form(others)
        with _one_line(), _page_file(html, source, reads, context) as write:
            with closing(_open(context, source, open_journal)) as journal:
                period = _period(journal, start, end, now())
                report = make(journal, period, Choice(tenant, user, share))
                if user or not report.rows:
                    refuse_unknown(journal, tenant, user)
                empty = "" if report.rows else _of_nothing(journal, source, period, tenant, user)
            if write is not None:
                write(report_page(_noted(report, empty)))
        if empty:
            click.echo(f"note: {empty}", err=True)
        click.echo(
            _written(_noted(report, empty) if form == "json" else report, form, not noheader), nl=False
        )

    return command


def _page_file(
    html: Path | None, source: Path | None, reads: FilesRead, context: click.Context
) -> AbstractContextManager[Write | None]:
    """The page that is to be written, if one is: it replaces nothing that is read."""
    if html is None:
        return nullcontext()
    return replacing(html, [*reads(context), *([source] if source else [])])


def _of_nothing(
    journal: JournalReader, source: Path | None, period: Period, tenant: str | None, user: str | None
) -> str:
    """Words for a report without a row, and of the time that it could be made of."""
    whom = " and ".join(f"{kind} {name}" for kind, name in (("tenant", tenant), ("user", user)) if name)
    words = f"no row of {whom} in this period" if whom else "nothing in this period"
    known = known_span(journal)
    where = "the journal" if source is None else "this file"
    if known is None:
        return render.safe(f"{words}; {where} tells of nothing yet")
    first, last = map(render.instant_text, (known.start, known.end))
    return render.safe(f"{words}; {where} covers {first} to {last}")


def _noted(report: Report, words: str) -> Report:
    return replace(report, note="; ".join(part for part in (report.note, words) if part))


def _export_command(open_journal: OpenJournal, now: Callable[[], float]) -> click.Command:
    @click.command("export")
    @_period_options
    @click.pass_context
    def command(
        context: click.Context, month: str | None, start: str | None, end: str | None, source: Path | None
    ) -> None:
        """Events and tenants' accounts as JSON lines, which every report reads with --from."""
        with _one_line(), closing(_open(context, source, open_journal)) as journal:
            start, end = span_of(month, start, end, now())
            first = journal.began()
            whole = Period(first or 0.0, now()) if start is None and end is None else None
            period = whole or choose(start, end, now(), journal.began)
            for line in export_lines(journal, period.start, period.end):
                click.echo(line, nl=False)

    return command


def _period_options(command: _Command) -> _Command:
    options = (
        _one("--month", metavar="YYYY-MM", help="A calendar month; the present one until now."),
        _one("--start", "-S", help=f"Start of the period, {_WHEN}."),
        _one("--end", "-E", help=f"End of the period, {_WHEN}; now if only --start is given."),
        _one(
            "--from",
            "source",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="Read an exported file of events instead of the journal.",
        ),
    )
    return _with(command, options)


def _with(command: _Command, options: Sequence[Callable[[_Command], _Command]]) -> _Command:
    """A command with these options, in this order on its help page."""
    for option in reversed(options):
        command = option(command)
    return command


def _open(context: click.Context, source: Path | None, open_journal: OpenJournal) -> JournalReader:
    return read_events(source) if source else open_journal(context)


def _period(journal: JournalReader, start: str | None, end: str | None, now: float) -> Period:
    """The period asked for; without one, of a file that was exported all of it."""
    first, last = (journal.began(), journal.ended()) if isinstance(journal, EventFile) else (None, None)
    if start is None and end is None and first is not None and last is not None:
        return Period(first, math.nextafter(last, math.inf))
    return choose(start, end, now, journal.began)


def _form(forms: Mapping[str, bool]) -> str | None:
    """The one form that was asked for; None = a table."""
    names = {"-P" if name == "parsable" else f"--{name}": name for name in forms}
    asked = one_form({option: forms[name] for option, name in names.items()})
    return names[asked] if asked else None


def _written(report: Report, form: str | None, header: bool) -> str:
    if form == "json":
        return render.as_json(report)
    if form == "csv":
        return render.as_csv(report, header)
    return render.parsable(report, header) if form == "parsable" else render.table(report, header)
