"""`slurm-fair run`: the daemon in the foreground."""

from __future__ import annotations

import json
import logging
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType

import click

from slurm_fair.cli.base import Site, find_config, make_directory, need_writable, site_of
from slurm_fair.config import Config, load
from slurm_fair.daemon import Daemon, rules_of
from slurm_fair.errors import SlurmFairError
from slurm_fair.output import open_to_append
from slurm_fair.store import open_journal
from slurm_fair.wall import WallClock

log = logging.getLogger("slurm_fair")


class JsonLines(logging.Formatter):
    """One JSON object per line, so that no job's name can forge a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Time, level, message."""
        line = {"time": record.created, "level": record.levelname.lower(), "message": record.getMessage()}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


class PlainLines(logging.Formatter):
    """Readable lines; control characters in what Slurm or users said are escaped."""

    def format(self, record: logging.LogRecord) -> str:
        """Time, level, message."""
        text = super().format(record)
        return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


def set_up_log(config: Config, verbose: bool) -> None:
    """To standard error; the service manager keeps it."""
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
    clock = WallClock()
    journal = open_journal(site.places.journal)
    try:
        daemon = Daemon.build(site.config, site.places, clock, journal, dry_run)
        if once:
            _once(daemon)
            return
        path = find_config(context.find_root().params.get("config"))
        daemon.reload = (lambda: load(path)) if path else None
        _heed_signals(daemon, clock)
        if not (dry_run or no_deadman):
            start_deadman(site, path)
        log.info("watching %s as %s", site.config.source, "a shadow" if dry_run else "the controller")
        daemon.run()
        log.info("stopped")
    finally:
        journal.close()


def _once(daemon: Daemon) -> None:
    daemon.catch_up()
    done = daemon.once()
    if done.blind or done.record is None:
        raise SlurmFairError(f"no tick was made: {done.blind or 'paused'}")
    record = done.record
    acts = [
        f"  {o.action.verb.value:8} job {o.action.record}: {o.result.value} {o.detail}"
        for o in record.outcomes
    ]
    click.echo(f"tick {record.number}: {len(record.snapshot.jobs)} jobs seen, {len(acts)} acts")
    click.echo("\n".join(acts), nl=bool(acts))


def _heed_signals(daemon: Daemon, clock: WallClock) -> None:
    def stop(number: int, frame: FrameType | None) -> None:
        daemon.stopping = True
        clock.wake()

    def reread(number: int, frame: FrameType | None) -> None:
        daemon.reloading = True
        clock.wake()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGHUP, reread)


def start_deadman(site: Site, config_path: Path | None) -> None:
    """A process of its own session, which outlives us; one that watches already stays."""
    named = ("--config", str(config_path)) if config_path else ()
    with open_to_append(site.places.deadman_log) as log_file:
        subprocess.Popen(
            [sys.executable, "-m", "slurm_fair.cli", *named, "deadman"],
            stdin=subprocess.DEVNULL,
            stdout=log_file,
            stderr=log_file,
            start_new_session=True,
            close_fds=True,
        )
