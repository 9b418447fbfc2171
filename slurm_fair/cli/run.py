"""`slurm-fair run`: the daemon in the foreground."""

from __future__ import annotations

import json
import logging
import math
import os
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import click

from slurm_fair.cli.base import Site, find_config, make_directory, need_writable, site_of
from slurm_fair.config.sections import Config
from slurm_fair.config.tree import load_config
from slurm_fair.daemon.loop import Daemon
from slurm_fair.daemon.parts import rules_of
from slurm_fair.doctor.facts import names_known
from slurm_fair.doctor.terms import unknown_names
from slurm_fair.errors import SlurmFairError, StoreBusy, StoreError
from slurm_fair.host.ending import SignalWishes, heed_signals
from slurm_fair.host.own_python import FOLDER, our_environment, our_program
from slurm_fair.looks.wall_clock import WallClock
from slurm_fair.model import label
from slurm_fair.output import open_to_append
from slurm_fair.slurm.command import Commands
from slurm_fair.store import SqliteJournal, open_journal, refuse_empty

_START_SECONDS = 60.0  # that a start waits for a journal that is busy; the service manager starts it again
log = logging.getLogger("slurm_fair")


class JsonLines(logging.Formatter):
    """One JSON object per line, so that no job's name can forge a line."""

    def format(self, record: logging.LogRecord) -> str:
        """One line of time, level and message."""
        line = {"time": record.created, "level": record.levelname.lower(), "message": record.getMessage()}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


class PlainLines(logging.Formatter):
    """Readable lines; control characters in what Slurm or users said are escaped."""

    def format(self, record: logging.LogRecord) -> str:
        """One line of time, level and message."""
        text = super().format(record)
        return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


def set_up_log(config: Config, verbose: bool) -> None:
    """Log to standard error, which the service manager keeps. A log that cannot be written ends nothing."""
    logging.raiseExceptions = False
    handler = logging.StreamHandler()
    plain = PlainLines("%(asctime)s %(levelname)s %(message)s")
    handler.setFormatter(JsonLines() if config.log.json else plain)
    log.handlers[:] = [handler]
    log.propagate = False
    log.setLevel("DEBUG" if verbose else config.log.level.upper())


@click.command()
@click.option("--once", is_flag=True, help="One tick, then stop; prints what was done.")
@click.option("--dry-run", is_flag=True, help="Shadow mode: plan, record and explain, but act on nothing.")
@click.option("--no-deadman", is_flag=True, help="Do not start the dead-man (your service manager runs one).")
@click.option("-v", "--verbose", is_flag=True, help="Log every tick.")
@click.pass_context
def run(context: click.Context, once: bool, dry_run: bool, no_deadman: bool, verbose: bool) -> None:
    """Run the controller in the foreground, until Ctrl-C or SIGTERM.

    SIGHUP reads the configuration again. When it stops, gates of ours open by themselves, or the dead-man opens
    them, within one lease: the queue then flows as plain Slurm.
    """
    site = site_of(context)
    set_up_log(site.config, verbose)
    rules_of(site.config)  # a policy that cannot be loaded is refused before anything is opened
    make_directory(site.places.directory)
    need_writable(site.places.directory)
    refuse_empty(site.places.journal)
    clock = WallClock()
    new = not os.path.exists(site.places.journal)
    journal = open_journal(site.places.journal) if once else open_patiently(site.places.journal)
    if new:
        log.warning("%s: no journal was here: a new ledger begins, nobody is owed anything", journal.path)
    try:
        daemon = Daemon.build(site.config, site.places, clock, journal, dry_run)
        daemon.watch.bell = clock.bell
        if once:
            _once(daemon)
            return
        path = find_config(context.find_root().params.get("config"))
        daemon.reload = (lambda: load_config(path)) if path else None
        daemon.reloaded = lambda config: set_up_log(config, verbose)
        heed_signals(_wishes(daemon, clock))
        with suppress(StoreError):  # what an earlier daemon left behind would look like our own silence
            daemon.beat()
        if not (dry_run or no_deadman):
            start_deadman(site, path)
        _warn_of_names(site, daemon.commands)
        log.info("watching %s as %s", site.config.source, "a shadow" if dry_run else "the controller")
        daemon.run()
        daemon.commands.give_up()  # a question to accounting may be under way
        log.info("stopped")
    finally:
        journal.close()


def _warn_of_names(site: Site, commands: Commands) -> None:
    """Partitions, accounts and QOS that Slurm does not know manage nothing, and nobody would notice."""
    for finding in unknown_names(names_known(site.config, site.places, commands)):
        log.warning("%s; %s", finding.what, finding.cure)


def _once(daemon: Daemon) -> None:
    daemon.catch_up(math.inf)  # no later look fills the gap
    try:
        done = daemon.once()
        daemon.remember()
    finally:
        daemon.end_planner()
        if daemon.notice is not None:
            daemon.notice.give_back()
    if done.blind or done.record is None:
        raise SlurmFairError(f"no tick was made: {done.blind or 'paused'}")
    record = done.record
    acts = [
        f"  {o.action.verb.value:8} job {label(o.action.key)}: {o.result.value} {o.detail}"
        for o in record.outcomes
    ]
    click.echo(f"tick {record.number}: {len(record.snapshot.jobs)} jobs seen, {len(acts)} acts")
    click.echo("\n".join(acts), nl=bool(acts))


def _wishes(daemon: Daemon, clock: WallClock) -> SignalWishes:
    def stop() -> None:
        daemon.stopping = True
        daemon.end_planner()
        clock.wake()

    def reread() -> None:
        daemon.reloading = True
        clock.wake()

    return SignalWishes(stop, reread, daemon.commands.give_up)


def open_patiently(path: Path) -> SqliteJournal:
    """The journal; a full disk or an admin's shell on it is waited for, but not for ever."""
    until, said = time.monotonic() + _START_SECONDS, False
    while True:
        try:
            return open_journal(path)
        except StoreBusy as problem:
            if time.monotonic() > until:
                raise
            if not said:
                log.warning("waiting up to %.0f s for the journal: %s", _START_SECONDS, problem)
            said = True
            time.sleep(0.5)


def start_deadman(site: Site, config_path: Path | None) -> None:
    """A process of its own session, which outlives us; one that watches already stays."""
    named = ("--config", str(config_path.absolute())) if config_path else ()
    with open_to_append(site.places.deadman_log) as log_file:
        subprocess.Popen(
            our_program(*named, "deadman"),
            stdin=subprocess.DEVNULL,
            stdout=log_file,
            stderr=log_file,
            env=our_environment(),
            cwd=FOLDER,
            start_new_session=True,
            close_fds=True,
        )
