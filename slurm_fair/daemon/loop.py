"""The composition root and the one loop."""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from slurm_fair.board.health import DaemonState, Health
from slurm_fair.board.outlook import Outlook
from slurm_fair.board.publish import Publisher
from slurm_fair.config.sections import Config
from slurm_fair.daemon.accounting import PATIENCE_AT_START, Accounting
from slurm_fair.daemon.freeing import free_everybody
from slurm_fair.daemon.log import Pauses, TickLog, Trouble
from slurm_fair.daemon.parts import (
    commands_of,
    heartbeat_limit,
    knowing_rules_of,
    planner_of,
    redirect_commands,
    rules_of,
    waiting_for_start,
)
from slurm_fair.daemon.plan_tally import TallyKeeper
from slurm_fair.dry_run import DryRun
from slurm_fair.errors import JournalGone, NotTheOwner, Paused, SlurmFairError, StoreError
from slurm_fair.host import state_folder as files
from slurm_fair.host import systemd
from slurm_fair.host.state_folder import Heartbeat, Pause, Places, being_freed, pause_of
from slurm_fair.knowing import Knowing
from slurm_fair.looks.pace import gates_left, look_seconds, next_look
from slurm_fair.looks.watch import Watch
from slurm_fair.model import Event, EventKind, Gate, Standing
from slurm_fair.model.spans import DAY_SECONDS
from slurm_fair.planner import IsolatedPlanner
from slurm_fair.ports import Clock, Cluster, History
from slurm_fair.slurm.cluster import SlurmCluster
from slurm_fair.slurm.command import Commands
from slurm_fair.slurm.fail_open import NOTHING_FREED, Liberated, liberate
from slurm_fair.slurm.history import SlurmHistory
from slurm_fair.slurm.notice import AnotherDaemon, OurNotice
from slurm_fair.slurm.ownership.marks import MarksInHand
from slurm_fair.slurm.privacy import names_are_hidden
from slurm_fair.store import SqliteJournal
from slurm_fair.tick import Rules, Stopwatch, TickDone, tick

_BLIND_SECONDS = 1.0  # from the end of a blind look to the next one, at least
_PRUNE_SECONDS = 300.0
_FRESH_SECONDS = 1.0  # a heartbeat that is younger is not left anew before a command
log = logging.getLogger("slurm_fair")


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
    planner: IsolatedPlanner | None = None  # of a policy that solves
    knowing: Knowing | None = None
    adapter: SlurmCluster | None = None  # to Slurm, at the bottom of `cluster`
    notice: OurNotice | None = None
    reload: Callable[[], Config] | None = None
    reloaded: Callable[[Config], None] = lambda config: None
    stopping: bool = False
    reloading: bool = False
    seen: float = 0.0  # the instant of the last good look; of our start before the first one
    blind: str = ""
    pruned_at: float = 0.0
    aged_at: float = 0.0  # ticks and events are as old as they were then
    freed_at: float = 0.0  # when we freed jobs ourselves because no dead-man could
    freed_alone: Liberated = NOTHING_FREED  # since we are blind
    beaten_at: float = 0.0  # the last heartbeat
    last_look_seconds: float = 0.0  # of the last tick, without its acts
    gates_left: bool = False  # the last tick had no time for every job that waits without a gate
    confirm_in: float = math.inf  # seconds until an odd look is confirmed: no user keeps the others waiting
    no_room: bool = False  # the last tick could not be written down
    missed: tuple[Event, ...] = ()  # what happened before our first look, as accounting told it late
    rescued: Path | None = None  # the copy of a journal that was removed under us
    watch: Watch = field(init=False)
    accounting: Accounting = field(init=False)
    started_with: Config = field(init=False)
    tally: TallyKeeper = field(init=False)
    pauses: Pauses = field(default_factory=Pauses)
    tick_log: TickLog = field(default_factory=TickLog)
    _blindness: Trouble = field(default_factory=lambda: Trouble("blind, so nothing is done"))
    _beside: dict[str, Trouble] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.started_with = self.config
        self.watch = Watch(self.clock, self.commands)
        self.accounting = Accounting(self.history, self.clock, self.waits)
        self.tally = TallyKeeper(self.places.directory, self.clock.now())
        self.take_planner()

    @classmethod
    def build(
        cls, config: Config, places: Places, clock: Clock, journal: SqliteJournal, dry_run: bool
    ) -> Daemon:
        """Everything wired together over a journal that is ours."""
        commands = commands_of(config, places)
        sink = MarksInHand() if dry_run else journal
        real = SlurmCluster(commands, config.cluster, clock.now, sink, journal)
        rules = rules_of(config)
        standing = journal.latest() or Standing.new(clock.now())
        standing = standing._replace(left_over=0)  # the rules may be others than at the last tick
        ended = journal.events(clock.now() - DAY_SECONDS, kinds=(EventKind.FINISHED,))
        outlook = Outlook(places.directory, lambda: daemon.rules, lambda: daemon.tally.tally.document())
        publisher = Publisher(
            config.lease.publish_dir, lambda: names_are_hidden(commands), ended, outlook.board
        )
        cluster = DryRun(real) if dry_run else real
        knowing = Knowing(cluster, real.words_of, journal, knowing_rules_of(config), standing)
        daemon = cls(
            config, places, clock, journal, commands, knowing, SlurmHistory(commands), rules, standing, publisher,
            outlook, knowing=knowing, adapter=real,
        )  # fmt: skip
        real.fence(daemon.may_act)
        commands.before = daemon.goes_on
        if not dry_run:
            real.lists = journal
        daemon.seen, daemon.aged_at = clock.now(), standing.ledger.time
        if config.slurm.notice and not dry_run:
            daemon.notice = OurNotice(commands, places.directory, config.lease.term, real.notices)
        return daemon

    def take_planner(self) -> None:
        """From now on plans come from a process of its own where the policy solves, and the old one ends."""
        old, new = self.planner, planner_of(self.config, self.rules, self.waits)
        if old is not None:
            old.close()
        self.planner, self.rules = new, replace(self.rules, planner=new)

    # -- the loop -----------------------------------------------------------------------------------------

    def run(self) -> None:
        """Tick until a signal, a fence or fail-open."""
        systemd.ready()
        if not self.shadow:  # from now on the gates of new jobs are ours to open
            with suppress(OSError):
                self.places.all_free.unlink()
        self.catch_up()
        while not self.stopping:
            systemd.alive(self.rules.terms.interval)
            if self._fails_open():
                break
            if self.reloading:
                self.reload_config()
            began = self.clock.now()
            self.once()
            if not self.stopping:
                self.wait(began)
        systemd.stopping()
        self.remember()
        self.end_planner()
        if self.notice is not None:
            self.notice.give_back()
        stopped = replace(self.health(), state=DaemonState.STOPPED, why="the daemon was stopped")
        self._safely("saying how it is", lambda: self.publisher.publish_health(stopped))

    def wait(self, began: float) -> None:
        """Wait for the look after one that began then; what happens meanwhile makes no haste after a blind one."""
        since = self.clock.now() if self.blind else began
        self.watch.wait_until(self.next_look(began), since, self.rules.terms, self._is_wanted_now)

    def once(self) -> TickDone:
        """One tick; what goes wrong in it is logged and the next one looks again."""
        pause = pause_of(self.places)
        paused = self.pauses.heed(pause, self.clock.now())
        level, self.gates_left = logging.ERROR, False
        try:
            self._make_ready()
            done, level = self._tick(paused), logging.WARNING
        except AnotherDaemon:
            with suppress(OSError):  # our dead-man must not free what the other one holds
                self.places.heartbeat.unlink()
            raise
        except NotTheOwner:
            raise
        except Paused as why:
            log.warning("%s; what was left of this tick is not done", why)
            if self.adapter is not None:
                self.adapter.unwatched = True
            return TickDone(self.standing)
        except JournalGone as problem:
            done = TickDone(self.standing, blind=f"{problem}; {self._rescue()}")
        except SlurmFairError as problem:
            self.no_room = isinstance(problem, StoreError)  # a quota that is used up reads as a failed disk
            done = TickDone(self.standing, blind=str(problem))
        except Exception:
            log.exception("this tick failed in a way that is a bug; the next one looks again")
            done = TickDone(self.standing, blind="internal error")
        self.standing = done.standing
        self.confirm_in = self.watch.look_ended(done, self.last_look_seconds, self.rules.terms)
        turned = bool(done.blind) != bool(self.blind)
        self._sight(done.blind, level)
        if turned or done.blind:  # `status` hears of it at once, the dead-man also after a command that hung
            self._beat_unless_fenced()
        if not done.blind:
            self.after(done)
        self._safely("saying how it is", lambda: self.publisher.publish_health(self.health(pause)))
        return done

    @property
    def shadow(self) -> bool:
        """True for a daemon that looks and plans beside Slurm, and never acts."""
        return not self.cluster.acts

    def health(self, pause: Pause | None = None) -> Health:
        """The state of the daemon, as users may read it."""
        state, why = DaemonState.ACTING, ""
        if self.blind:
            state, why = DaemonState.BLIND, self.blind
        elif pause is not None:
            state, why = DaemonState.PAUSED, f"by {pause.in_words()}"
        elif self.shadow:
            state = DaemonState.SHADOW
        return Health(self.clock.now(), self.rules.terms.interval, self.seen, state, why)

    def _make_ready(self) -> None:
        """Everything that must hold before a look; what does not is raised."""
        self.journal.check_there()
        self.journal.check_owner()
        self.beat()
        if self.notice is not None:  # after the heartbeat: who cannot reach Slurm is blind, and not silent
            self.notice.hold(self.clock.now())
        if self.no_room:
            self.journal.need_room()

    def _tick(self, paused: bool) -> TickDone:
        cluster: Cluster = DryRun(self.cluster) if paused else self.cluster
        began = self.clock.now()
        self.watch.look_begins(self.rules.terms, self.config.lease.publish_dir)
        stopwatch = Stopwatch(time.monotonic)
        gap = self.accounting.gap(self.config.scope.partitions, self.rules.ledger)
        done = tick(
            cluster, self.clock, self.journal, self.rules, self.standing, stopwatch, self.missed, gap,
            untold=gap is None and self.accounting.ends_absence,
        )  # fmt: skip
        if paused and self.adapter is not None:
            self.adapter.unwatched = True
        if done.record is not None:
            self.missed = ()
            self.accounting.looked(done.record.snapshot)
        took = self.clock.now() - began
        self.gates_left = done.record is not None and gates_left(done.record)
        self.last_look_seconds = look_seconds(done.record, took) if done.record else took
        return done

    def _sight(self, blind: str, level: int) -> None:
        """Say once that we are blind or see again.

        The dead-man cannot watch a daemon that can leave no heartbeat: that one frees the jobs it holds by itself.
        """
        now, self.blind = self.clock.now(), blind
        if not blind:
            self.seen, self.no_room, self.freed_alone = now, False, NOTHING_FREED
            self._blindness.ended(now, "sees again")
            return
        self._blindness.stands(now, blind, level)
        self.seen = min(self.seen, now)  # the clock may have been set back
        self.freed_at = min(self.freed_at, now)
        limit = heartbeat_limit(self.config)
        due = not self.shadow and now - max(self.seen, self.freed_at) > limit
        if due and self.config.slurm.gate == Gate.HOLD and files.last_beat(self.places) is None:
            self.freed_at = now
            self._safely("freeing jobs", self._free_alone)

    def _free_alone(self) -> None:
        freed = self.freed_alone = self._free_once(self.freed_alone)
        if self.adapter is not None:
            self.adapter.unwatched = True
        log.warning("nobody can see whether this daemon lives: %d jobs freed", freed.freed)

    def _rescue(self) -> str:
        """Save what the journal holds, once; what an admin does with it."""
        if self.rescued is None:
            try:
                self.rescued = self.journal.rescue()
            except SlurmFairError as problem:
                return f"it cannot be saved either: {problem}"
        return (
            f"what it held is saved in {self.rescued}: stop the daemon, move this file to "
            f"{self.places.journal} and start again; without that a new ledger begins"
        )

    def after(self, done: TickDone) -> None:
        """Log, publish, settle, prune; nothing of it can end the daemon."""
        now = self.clock.now()
        if done.record is not None:
            record = done.record
            self.tick_log.tell(done)
            self._safely("counting plans", partial(self.tally.hear, record))
            if self.outlook is not None:
                self._safely("looking ahead", partial(self.outlook.hear, record))
            self._safely("publishing", lambda: self.publisher.publish(record, done.standing))
            if self.knowing is not None:
                heard = partial(self.knowing.hear, record.events, done.standing, now)
                self._safely("keeping what is known of speeds", heard)
        if self.accounting.is_due():
            self._safely("settling with accounting", self.settle_accounts)
        self._safely("forgetting old ticks", lambda: self._prune(now))
        self._safely("emptying the journal's -wal", self.journal.check_wal)

    def remember(self) -> None:
        """Write down what is known of speeds, before we end."""
        if self.knowing is not None:
            self._safely("keeping what is known of speeds", partial(self.knowing.write, self.clock.now()))

    def _prune(self, now: float) -> None:
        storage = self.config.storage
        most = int(storage.max_mb * 1024**2)
        due = not 0 <= now - self.pruned_at <= _PRUNE_SECONDS
        if not due and self.journal.bytes_used() <= most:
            return
        if due:  # a clock that is wrong for a moment makes nothing old
            self.aged_at = min(now, self.aged_at + 2 * _PRUNE_SECONDS)
        keep, aged = storage.keep_days * DAY_SECONDS, self.aged_at
        left = self.journal.forget(now, keep_seconds=keep, max_bytes=most, aged=aged)
        self.pruned_at = self.pruned_at if left else now

    def _safely(self, what: str, act: Callable[[], None]) -> None:
        """Do something beside the ticks. A failure is logged once; it is tried again when its time comes."""
        trouble = self._beside.setdefault(what, Trouble(f"{what} failed"))
        now = self.clock.now()
        try:
            act()
        except NotTheOwner:
            raise
        except SlurmFairError as problem:
            trouble.stands(now, str(problem))
        except Exception:
            log.exception("%s failed in a way that is a bug", what)
        else:
            trouble.ended(now, f"{what} works again")

    def next_look(self, began: float) -> float:
        """The instant of the next look after a tick that began at `began`.

        A blind one is followed a second after its end at the soonest: who does not answer is not pressed.
        """
        idle, terms = self.shadow or self.places.paused.exists(), self.rules.terms
        now, left = self.clock.now(), self.gates_left and not idle
        pause = math.inf if idle else self.watch.pause_seconds(2 * self.last_look_seconds, terms)
        due = min(now + self.confirm_in, next_look(self.standing, terms, began, now, pause, left))
        return max(due, now + min(_BLIND_SECONDS, terms.interval)) if self.blind else due

    # -- beside the ticks ---------------------------------------------------------------------------------

    def may_act(self) -> None:
        """Just before each batch of acts: still the owner, not paused, and the dead-man knows that we live."""
        self.journal.check_owner()
        self.journal.check_there()
        if self.places.paused.exists() or self.places.fail_open.exists():
            raise Paused("paused in the middle of a tick")
        self.seen, self.blind = self.clock.now(), ""  # whoever acts has just seen
        self.beat()
        if being_freed(self.places):
            raise Paused("the dead-man is just freeing jobs")
        systemd.alive(self.rules.terms.interval)

    def goes_on(self) -> None:
        """Beat before each command of Slurm: many slow ones are no silence.

        NotTheOwner for a daemon that was fenced while it stood still: it sends nothing more.
        """
        fresh = min(_FRESH_SECONDS, heartbeat_limit(self.config) / 10)  # the command may hang for long
        if self.shadow or 0 <= self.clock.now() - self.beaten_at < fresh:
            return
        try:
            self.journal.check_there()
            self.journal.check_owner()
            if os.path.exists(self.places.heartbeat):
                self.beat()
        except NotTheOwner:
            raise
        except StoreError:
            pass

    def waits(self) -> None:
        """While a plan is waited for: the dead-man and the service manager hear of us, unless we are fenced."""
        with suppress(NotTheOwner):
            self.goes_on()
        systemd.alive(self.rules.terms.interval)

    def end_planner(self) -> None:
        """End the planning process, also while a plan is waited for: from a signal's own thread."""
        if self.planner is not None:
            self.planner.close()

    def _beat_unless_fenced(self) -> None:
        """A fenced daemon is silent; one that cannot ask its journal whether it is fenced lives."""
        try:
            self.journal.check_owner()
        except NotTheOwner:
            return
        except StoreError:
            pass
        with suppress(StoreError):
            self.beat()

    def beat(self) -> None:
        """Tell the dead-man that we live; it watches no shadow."""
        if self.shadow:
            return
        limit, gate = heartbeat_limit(self.config), self.config.slurm.gate
        epoch = self.journal.epoch
        self.beaten_at = self.clock.now()
        beat = Heartbeat(os.getpid(), self.beaten_at, limit, gate, self.seen, self.blind, epoch)
        files.beat(self.places, beat)

    def catch_up(self, patience: float = PATIENCE_AT_START) -> None:
        """Ask accounting for the time without us, and wait for it for so long."""
        self.accounting.begin(self.standing, self.config.scope.partitions, self.rules, patience)

    def settle_accounts(self) -> None:
        """Charge what accounting says, where it differs from what we saw."""
        scope, rules = self.config.scope, self.rules
        self.standing, happened = self.accounting.settle(self.standing, scope.partitions, rules.ledger)
        self.missed += happened

    def reload_config(self) -> None:
        """Take a new configuration, or keep the old one and say why."""
        self.reloading = False
        if self.reload is None:
            return
        try:
            config = self.reload()
            rules = rules_of(config)
        except SlurmFairError as problem:
            log.error("the old configuration stays: %s", problem)
            return
        changed = waiting_for_start(self.config, config)  # each change is said once
        left = [name for name in waiting_for_start(self.started_with, config) if name in changed]
        if left:
            log.warning("%s: a change takes effect at the next start", ", ".join(left))
        self.config, self.rules = config, rules
        self.standing = self.standing._replace(left_over=0)  # other rules plan anew
        self.take_planner()
        redirect_commands(self.commands, config)
        self.publisher.direct(config.lease.publish_dir)
        if self.knowing is not None:
            self.knowing.reconfigure(knowing_rules_of(config))
        if self.adapter is not None:
            self.adapter.reconfigure(config.cluster)
        if self.notice is not None and self.notice.lease_seconds != config.lease.term:  # written anew at once
            self.notice = replace(self.notice, lease_seconds=config.lease.term, _asked=-math.inf)
        self.reloaded(config)
        log.info("configuration read again from %s", config.source)

    def _is_wanted_now(self) -> bool:
        return self.stopping or self.reloading or self.places.fail_open.exists()

    def _fails_open(self) -> bool:
        """Fail open if an admin wants it; True when that is done. The next look tries a silent Slurm again."""
        if self.places.fail_open.exists():
            self._safely("failing open", self.fail_open)
        return self.stopping

    def fail_open(self) -> None:
        """Free every job of ours and stop."""
        free_everybody(self._free_once, self.journal, self.places)
        self.stopping = True

    def _free_once(self, before: Liberated) -> Liberated:
        return liberate(self.commands, self.journal.marks(), self.clock.now, before=before)
