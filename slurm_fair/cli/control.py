"""`pause`, `resume`, `fail-open` and `deadman`: the switches of an admin."""

from __future__ import annotations

import os
import pwd
import time

import click

from slurm_fair import deadman as watching
from slurm_fair.cli.base import Site, need_writable, site_of
from slurm_fair.cli.run import set_up_log
from slurm_fair.daemon.parts import commands_of
from slurm_fair.doctor.storage import somebody_watches
from slurm_fair.errors import SlurmFairError, SlurmUnreachable, StoreBusy, StoreError
from slurm_fair.host.state_folder import Pause, all_free_until, last_beat, leave_no_daemon, leave_pause
from slurm_fair.looks.wall_clock import WallClock
from slurm_fair.model.counted import counted
from slurm_fair.slurm.fail_open import Liberated, liberate, liberate_patiently, pins_left, unread_left
from slurm_fair.slurm.notice import withdraw
from slurm_fair.store import fence, is_owned, open_reader

_FREE_TRIES = 15
_MOST_WORDS = 500
_DAEMON_SECONDS = 30.0  # how long a living daemon may take to fail open by itself


@click.command()
@click.option("--why", default="", help="Why, in some words: `status` and the log show them.")
@click.pass_context
def pause(context: click.Context, why: str) -> None:
    """Stop acting, within a second; nothing is granted, revoked or kept back any more.

    The daemon goes on looking and recording. Gates run out or are opened, so within one lease waiting jobs flow as
    plain Slurm.
    """
    site = site_of(context)
    need_writable(site.places.directory)
    lost = leave_pause(site.places, Pause(" ".join(why.split())[:_MOST_WORDS], _who(), time.time()))
    if lost:
        click.echo(f"slurm-fair: paused, but who and why could not be kept: {lost}", err=True)
    click.echo("paused: nothing is done to any job until `slurm-fair resume`")
    _say_nobody_runs(site)


@click.command()
@click.pass_context
def resume(context: click.Context) -> None:
    """Act again after `pause`."""
    site = site_of(context)
    need_writable(site.places.directory)
    if not os.path.exists(site.places.paused):
        click.echo("it was not paused")
        return
    site.places.paused.unlink(missing_ok=True)
    click.echo("acting again from the next tick on")
    _say_nobody_runs(site)


def _who() -> str:
    """The account, and who became it."""
    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        name = f"uid {os.getuid()}"
    before = "".join(char for char in os.environ.get("SUDO_USER", "") if char.isprintable())[:64]
    return f"{name} (sudo by {before})" if before and before != name else name


def _say_nobody_runs(site: Site) -> None:
    if not is_owned(site.places.journal):
        click.echo(
            f"slurm-fair: no daemon runs on {site.places.directory}: it holds for the next one", err=True
        )


@click.command("fail-open")
@click.option("--stamped", is_flag=True, help="Find our jobs by their stamps: the journal is lost.")
@click.pass_context
def fail_open(context: click.Context, stamped: bool) -> None:
    """Release every gate, hold and node list that is ours, and stop the daemon.

    Running jobs run on. Works with the daemon alive, hung or dead.
    """
    site = site_of(context)
    need_writable(site.places.directory)
    if _daemon_did_it(site):  # first: a living one would gate again what is freed beside it
        if not stamped:
            click.echo("the daemon freed its jobs and stopped; the queue flows as plain Slurm")
            return
        click.echo("the daemon freed its jobs and stopped")
    old = last_beat(site.places)
    try:
        freed = _free_ourselves(site, stamped)
    except SlurmUnreachable as problem:
        raise SlurmUnreachable(f"{problem}; {_who_frees(site)}") from None
    site.places.fail_open.unlink(missing_ok=True)
    for left in freed.left:
        click.echo(f"slurm-fair: could not free {left}", err=True)
    click.echo(f"{counted(freed.freed, 'job')} freed; the queue flows as plain Slurm")
    for line in (*pins_left(freed), *unread_left(freed)):
        click.echo(line)
    if freed.left:
        raise SlurmFairError(
            f"{counted(len(freed.left), 'job')} not free yet: look with squeue and run this again"
        )
    if watching.lives_again(site.places, old):
        return
    if lost := leave_no_daemon(site.places, freed.read_at, freed.to_look_at):
        click.echo(f"slurm-fair: {lost}", err=True)


def _daemon_did_it(site: Site) -> bool:
    """Ask a living daemon; False when there is none or it does not answer."""
    if not is_owned(site.places.journal):
        return False
    site.places.fail_open.touch(0o600)  # an empty file, which a full disk still takes
    now = WallClock().now
    deadline = time.monotonic() + _DAEMON_SECONDS
    while time.monotonic() < deadline:
        if not os.path.exists(site.places.fail_open):
            return True
        if last_beat(site.places) is None:
            break  # it hangs, and the dead-man has been here
        if watching.overdue(site.places, now()):
            break  # it hangs
        time.sleep(0.1)
    fence(site.places.journal, by="fail-open")
    return False


def _who_frees(site: Site) -> str:
    """The state in which a command that could not see the queue leaves the jobs."""
    again = "run this again when Slurm answers"
    if last_beat(site.places) is not None and somebody_watches(site.places):
        again = f"the dead-man frees the jobs within a lease when Slurm answers; to free them sooner, {again}"
    return f"the daemon is stopped and acts no more: {again}"


def _free_ourselves(site: Site, stamped: bool) -> Liberated:
    clock = WallClock()
    try:
        with open_reader(site.places.journal) as journal:
            marks = journal.marks()
    except StoreError as problem:
        if not stamped:
            busy = isinstance(problem, StoreBusy)  # that is over by itself
            cure = "" if busy else "; `slurm-fair fail-open --stamped` works without it"
            raise type(problem)(f"{problem}{cure}") from None
        marks = ()
    commands = commands_of(site.config, site.places)
    if site.config.slurm.notice:
        withdraw(commands, site.places.directory)

    def free(before: Liberated) -> Liberated:
        return liberate(commands, marks, clock.now, stamped, before=before)

    return liberate_patiently(free, _FREE_TRIES)


@click.command()
@click.option("--once", is_flag=True, help="Look once and end (for a timer); else watch until it must act.")
@click.pass_context
def deadman(context: click.Context, once: bool) -> None:
    """Watch the daemon's heartbeat; when it is silent for a lease, free its jobs and end.

    `slurm-fair run` starts one by itself.
    """
    site = site_of(context)
    set_up_log(site.config, verbose=False)
    need_writable(site.places.directory)
    freed = watching.watch(site.config, site.places, WallClock(), once)
    if once:
        click.echo(f"{counted(freed, 'job')} freed" if freed else _seen(site))


def _seen(site: Site) -> str:
    """The reason why nothing was freed, as the files of daemon and journal show it."""
    if last_beat(site.places) is not None:
        return "the daemon lives"
    if not os.path.exists(site.places.journal):
        return "no daemon was ever here"
    if is_owned(site.places.journal):
        return "a daemon runs and acts on nothing: there is nothing to watch"
    if all_free_until(site.places) is not None:
        return "no daemon runs, and no job waits behind a gate of ours"
    return "no daemon runs, and none is missed: `slurm-fair fail-open` frees what an earlier one kept back"
