"""`slurm-fair report`: the accounting reports over this site's journal."""

from __future__ import annotations

import os
import pwd
import time
from pathlib import Path

import click

from slurm_fair.board import estimates
from slurm_fair.cli.base import Site, configuration_read, site_of
from slurm_fair.daemon import plan_tally
from slurm_fair.errors import StoreError
from slurm_fair.store import Reader
from slurm_fair_accounting import build_report_group


def _journal(context: click.Context) -> Reader:
    site = site_of(context)
    _need_reader(site)
    return site.reader()


def _need_reader(site: Site) -> None:
    """Refuse, saying who may make reports, where the journal is closed to this user."""
    folder, journal = site.places.directory, site.places.journal
    closed = os.path.isdir(folder) and not os.access(folder, os.X_OK)
    if closed or (os.path.exists(journal) and not os.access(journal, os.R_OK)):
        owner = _owner(folder)
        who = "root alone reads" if owner == "root" else f"{owner} and root read"
        raise StoreError(
            f"{folder}: reports are made from the journal, which {who}: ask an admin for a page "
            f"(sudo -u {owner} slurm-fair report tenants --html FILE), or for the output of "
            "`report export`, from which you make your own (slurm-fair report tenants --from FILE)"
        )


def _owner(folder: Path) -> str:
    uid = folder.stat().st_uid
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def _files_of_site(context: click.Context) -> list[Path]:
    """The configuration, and where a report is made of the journal also all that the daemon keeps beside it."""
    read = configuration_read(context)
    if context.params.get("source") is not None:
        return read
    places = site_of(context).places
    tallies = [places.directory / name for name in (plan_tally.NAME, estimates.NAME)]
    return [*read, *places.all_files(), *tallies]


report = build_report_group(_journal, time.time, _files_of_site)
