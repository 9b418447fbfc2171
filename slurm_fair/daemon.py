"""The composition root and the one loop."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from slurm_fair import notify
from slurm_fair import places as files
from slurm_fair.config import Config
from slurm_fair.errors import ConfigError, NotTheOwner, SlurmFairError
from slurm_fair.health import ACTING, BLIND, PAUSED, SHADOW, STOPPED, Health
from slurm_fair.ledger import fill_gap, settle
from slurm_fair.model import Blind, LeasePhase, Standing
from slurm_fair.outlook import Outlook
from slurm_fair.places import Heartbeat, Places
from slurm_fair.policy.registry import load as load_policy
from slurm_fair.ports import Clock, Cluster, History
from slurm_fair.publish import Publisher
from slurm_fair.recent import DAY_SECONDS
from slurm_fair.recent import KIND as ENDED
from slurm_fair.reconcile import Limits
from slurm_fair.slurm.cluster import DryRun, SlurmCluster
from slurm_fair.slurm.command import Commands
from slurm_fair.slurm.history import SlurmHistory
from slurm_fair.slurm.liberate import Liberated, liberate, liberate_patiently, pins_left
from slurm_fair.slurm.marks import MarksInHand
from slurm_fair.slurm.privacy import names_are_hidden
from slurm_fair.slurm.private_conf import short_timeout_copy, site_conf
from slurm_fair.store import SqliteJournal
from slurm_fair.tick import Done, Rules, Stopwatch, tick

_BUSY_SECONDS = 0.12  # at least, between looks while somebody is asked, requeued or about to start
_SETTLE_SECONDS = 60.0
_PRUNE_SECONDS = 300.0
_FREE_TRIES = 15
_DAY = 86_400.0
log = logging.getLogger("slurm_fair")


class Paused(SlurmFairError):
    """An admin has stopped us in the middle of a tick."""


def rules_of(config: Config, dry_run: bool = False) -> Rules:
    """What the configuration makes a tick go by; a policy that cannot be loaded is a ConfigError here."""
    settings = config.policy.chosen()
    return Rules(
        policy_name=config.policy.name,
        policy=load_policy(config.policy.name, settings),
        settings=settings,
        terms=config.lease.terms(),
        ledger=config.tenants.ledger(),
        limits=Limits(
            config.guard.max_revokes,
            config.guard.max_opens,
            config.guard.max_closes,
            config.guard.shrink_alarm,
        ),
        plan_limit_seconds=max(30.0, config.lease.interval),
        dry_run=dry_run,
    )


def commands_of(config: Config, places: Places) -> Commands:
    """Slurm's commands as the configuration wants them run."""
    conf = site_conf(config.slurm.conf)
    if config.slurm.conf and conf is None:
        raise ConfigError(f"{config.source}: slurm.conf = '{config.slurm.conf}': there is no such file")
    if conf is not None and places.directory.is_dir() and os.access(places.directory, os.W_OK):
        conf = short_timeout_copy(conf, places.slurm_conf, config.slurm.client_timeout)
    bin_dir = Path(config.slurm.bin_dir) if config.slurm.bin_dir else None
    return Commands(conf, config.slurm.timeout, bin_dir)


def heartbeat_limit(config: Config) -> float:
    """Age of the heartbeat at which the dead-man acts: within one lease, and never for one slow tick."""
    return max(0.75 * config.lease.term, min(3.0, config.lease.term))


@dataclass(slots=True)
class Daemon:
    """Ticks until it is told to stop."""

    config: Config
    places: Places
    clock: Clock
    journal: SqliteJournal
    commands: Commands
    cluster: Cluster
    history: History
    rules: Rules
    standing: Standing
    publisher: Publisher
    outlook: Outlook | None = None  # none where nobody is to be told of what is ahead
    reload: Callable[[], Config] | None = None
    stopping: bool = False
    reloading: bool = False
    seen: float = 0.0  # the instant of the last good look; of our start before the first one
    blind: str = ""
    blind_since: float = 0.0
    settled_at: float = 0.0
    pruned_at: float = 0.0
    last_tick_seconds: float = 0.0

    @classmethod
    def build(
        cls, config: Config, places: Places, clock: Clock, journal: SqliteJournal, dry_run: bool
    ) -> Daemon:
        """Everything wired together over a journal that is ours."""
        commands = commands_of(config, places)
        sink = MarksInHand() if dry_run else journal
        real = SlurmCluster(commands, config, clock.now, sink, journal)
        rules = rules_of(config, dry_run)
        standing = journal.latest() or Standing.new(clock.now())
        ended = journal.events(clock.now() - DAY_SECONDS, kinds=(ENDED,))
        outlook = Outlook(places.directory, lambda: daemon.rules)
        publisher = Publisher(
            config.lease.publish_dir, lambda: names_are_hidden(commands), ended, outlook.board
        )
        daemon = cls(
            config, places, clock, journal, commands, DryRun(real) if dry_run else real, SlurmHistory(commands),
            rules, standing, publisher, outlook,
        )  # fmt: skip
        real.fence(daemon.may_act)
        daemon.seen = clock.now()
        return daemon

    # -- the loop -----------------------------------------------------------------------------------------

    def run(self) -> None:
        """Until a signal, a fence or fail-open."""
        notify.ready()
        self.catch_up()
        while not self.stopping:
            notify.alive(self.rules.terms.interval)
            if self.places.fail_open.exists():
                self.fail_open()
                return
            if self.reloading:
                self.reload_config()
            began = self.clock.now()
            self.once()
            self.last_tick_seconds = self.clock.now() - began
            if not self.stopping:
                self.clock.sleep_until(self.next_look(began))
        notify.stopping()
        self.publisher.publish_health(replace(self.health(), state=STOPPED, why="the daemon was stopped"))

    def once(self) -> Done:
        """One tick; what goes wrong in it is logged and the next one looks again."""
        paused = self.places.paused.exists()
        if not (paused or self.rules.dry_run):
            self.beat()
        cluster: Cluster = DryRun(self.cluster) if paused else self.cluster
        rules = replace(self.rules, dry_run=True) if paused else self.rules
        watch = Stopwatch(time.monotonic)
        try:
            done = tick(cluster, self.clock, self.journal, rules, self.standing, watch)
        except NotTheOwner:
            raise
        except Paused:
            log.warning("paused in the middle of a tick; what was left of it is not done")
            return Done(self.standing)
        except SlurmFairError as problem:
            log.error("this tick failed, the next one looks again: %s", problem)
            done = Done(self.standing, blind=str(problem))
        except Exception:
            log.exception("this tick failed in a way that is a bug; the next one looks again")
            done = Done(self.standing, blind="internal error")
        self.standing = done.standing
        self.blind = done.blind
        self.seen = self.seen if done.blind else self.clock.now()
        self.after(done)
        return done

    def health(self) -> Health:
        """Whether we live, see and act, for users."""
        state = BLIND if self.blind else PAUSED if self.places.paused.exists() else ACTING
        if self.rules.dry_run and state == ACTING:
            state = SHADOW
        return Health(self.clock.now(), self.rules.terms.interval, self.seen, state, self.blind)

    def after(self, done: Done) -> None:
        """Log, publish, settle, prune."""
        now = self.clock.now()
        self.publisher.publish_health(self.health())
        if done.blind:
            if not self.blind_since:
                log.warning("blind, so nothing is done: %s", done.blind)
            self.blind_since = self.blind_since or now
            return
        if self.blind_since:
            log.warning("sees again after %.0f s", now - self.blind_since)
            self.blind_since = 0.0
        if done.record is not None:
            _log_tick(done)
            if self.outlook is not None:
                self.outlook.hear(done.record)
            self.publisher.publish(done.record, done.standing)
        if now - self.settled_at > _SETTLE_SECONDS:
            self.settle_accounts(now)
        if now - self.pruned_at > _PRUNE_SECONDS:
            storage = self.config.storage
            self.journal.prune(
                now, keep_seconds=storage.keep_days * _DAY, max_bytes=int(storage.max_mb * 1024**2)
            )
            self.pruned_at = now

    def next_look(self, began: float) -> float:
        """At the next interval, or earlier: when a lease or a grace ends, and often while jobs change places."""
        now, leases, terms = self.clock.now(), self.standing.leases, self.rules.terms
        due = began + terms.interval
        busy = (leases.phase == LeasePhase.REVOKING) | (leases.phase == LeasePhase.GRANTED)
        if busy.any() and not (self.rules.dry_run or self.places.paused.exists()):
            due = min(due, now + max(_BUSY_SECONDS, 2 * self.last_tick_seconds))
        ends = leases.end[(leases.phase == LeasePhase.RUNNING) & (leases.end > now)]
        if len(ends):
            due = min(due, float(ends.min()))
        if not terms.grants_at(now):
            due = min(due, terms.next_end(now))
        return max(due, now + 0.05)

    # -- beside the ticks ---------------------------------------------------------------------------------

    def may_act(self) -> None:
        """Just before each batch of acts: still the owner, not paused, and the dead-man knows that we live."""
        self.journal.check_owner()
        if self.places.paused.exists() or self.places.fail_open.exists():
            raise Paused("paused")
        self.beat()
        notify.alive(self.rules.terms.interval)

    def beat(self) -> None:
        """Tell the dead-man that we live."""
        limit, gate = heartbeat_limit(self.config), self.config.slurm.gate
        beat = Heartbeat(os.getpid(), self.clock.now(), limit, gate, self.seen, self.blind)
        files.beat(self.places, beat)

    def catch_up(self) -> None:
        """Fill the time without us from accounting; without accounting the ledger goes on from what it sees."""
        ledger, now = self.standing.ledger, self.clock.now()
        if self.standing.tick == 0 or now - ledger.time < 2 * self.rules.terms.interval:
            return
        runs = self.history.runs(ledger.time, now, self.config.scope.partitions)
        if isinstance(runs, Blind):
            log.warning(
                "accounting does not answer, so the time without us is counted from what runs: %s",
                runs.reason,
            )
            return
        # Up to a little before now: what happened in the last seconds may not have reached accounting yet.
        until = max(now - 2.0, ledger.time)
        filled = fill_gap(ledger, runs, until, self.rules.ledger)
        self.standing = self.standing._replace(ledger=filled, amended=True)
        log.info("filled %.0f s without us from accounting", until - ledger.time)

    def settle_accounts(self, now: float) -> None:
        """Charge what accounting says, where it differs from what we saw."""
        since = now - self.rules.ledger.closed_memory_seconds
        runs = self.history.runs(since, now, self.config.scope.partitions)
        self.settled_at = now
        if isinstance(runs, Blind):
            log.info("accounting does not answer; charges settle later: %s", runs.reason)
            return
        ledger, moved = settle(self.standing.ledger, runs, self.standing.ledger.time)
        if moved > 0:
            self.standing = self.standing._replace(ledger=ledger, amended=True)
        if moved > 0.5:
            log.info("settled %.1f GPU-seconds with accounting", moved)

    def reload_config(self) -> None:
        """Take a new configuration, or keep the old one and say why."""
        self.reloading = False
        if self.reload is None:
            return
        try:
            config = self.reload()
            rules = rules_of(config, self.rules.dry_run)
        except SlurmFairError as problem:
            log.error("the old configuration stays: %s", problem)
            return
        if config.storage != self.config.storage or config.slurm.conf != self.config.slurm.conf:
            log.warning("[storage] and slurm.conf take effect at the next start")
        self.config, self.rules = config, rules
        self.publisher.direct(config.lease.publish_dir)
        inner = self.cluster
        if isinstance(inner, SlurmCluster):
            inner.reconfigure(config)
        log.info("configuration read again from %s", config.source)

    def fail_open(self) -> Liberated:
        """Free every job of ours and stop; a job that is still completing is waited for a little."""
        freed = liberate_patiently(self._free_once, _FREE_TRIES)
        for left in freed.left:
            log.error("could not free %s", left)
        log.warning("failed open: %d jobs freed; the queue flows as plain Slurm", freed.freed)
        for line in pins_left(freed):
            log.warning("%s", line)
        if not freed.left:
            self._leave_nothing(freed)
        self.stopping = True
        return freed

    def _free_once(self) -> Liberated:
        return liberate(self.commands, self.journal.marks(), self.clock.now)

    def _leave_nothing(self, freed: Liberated) -> None:
        """No marks but of node lists on running jobs, and no heartbeat: the dead-man ends with it."""
        marks = [(mark.key, mark.whole_record) for mark in self.journal.marks()]
        self.journal.drop_marks([mark for mark in marks if mark not in freed.pinned])
        for file in (self.places.heartbeat, self.places.fail_open):
            with suppress(OSError):
                file.unlink()


def _log_tick(done: Done) -> None:
    record = done.record
    if record is None:
        return
    counts = np.bincount(record.plan.verdict, minlength=6).tolist()
    acts = [
        f"{o.action.verb.value} {o.action.record}: {o.result.value} {o.detail}".strip()
        for o in record.outcomes
    ]
    log.debug(
        "tick %d: verdicts %s, seconds %s",
        record.number,
        counts,
        {k: round(v, 4) for k, v in record.seconds.items()},
    )
    for act in acts:
        log.log(logging.INFO if ": done" in act else logging.WARNING, "%s", act)
    for note in (record.plan.note, record.guard):
        if note:
            log.warning("%s", note)
