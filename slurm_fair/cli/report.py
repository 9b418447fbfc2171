"""`slurm-fair report`: the accounting reports over this site's journal."""

from __future__ import annotations

import time

import click

from slurm_fair.cli.base import site_of
from slurm_fair.store import Reader
from slurm_fair_accounting import build_report_group


def _journal(context: click.Context) -> Reader:
    return site_of(context).reader()


report = build_report_group(_journal, time.time)
