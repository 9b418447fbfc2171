"""One random history of the controller, and what must hold all along it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from slurm_fair.model import (
    Blocked,
    JobState,
    LeasePhase,
    LeaseTerms,
    TickRecord,
    Verb,
    Verdict,
    label,
)
from slurm_fair.policy.draft import BLOCKED_REASONS
from tests.support.builders import lying
from tests.support.crashes import POINTS, Crash, Failpoint, disarm
from tests.support.fake_cluster import Site
from tests.support.fake_slurm import PENDING, RUNNING, Record, Work
from tests.support.people import NODES, cancel, finish, hold, move_begin, name_nodes, release, requeue_by_hand

TERMS = LeaseTerms(term=30.0, interval=10.0, grace=4.0, start_timeout=10.0)
STEPS, MORE_STEPS = 8, 20
PATIENT = 3  # terms until jobs that rest after a start that did not happen are tried again


@dataclass(slots=True)
class History:
    """One random history and what must hold all along it."""

    seed: int
    gate: str = "begin"
    dice: random.Random = field(init=False)
    site: Site = field(init=False)
    held: dict[int, str] = field(default_factory=dict)  # by people, by key
    moved: dict[int, float] = field(default_factory=dict)  # begin times that users moved, by key
    nodes: dict[int, tuple[str, ...]] = field(default_factory=dict)  # node lists that users gave, by key
    uncertain_since: float = 0.0  # a crash, an outage or a lost reply: starts then may be nobody's
    saved: dict[int, float] = field(default_factory=dict)
    starts_seen: int = 0
    told: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.dice = random.Random(self.seed)
        weights = {"a": 1.0, "b": 1.0, "c": 2.0}
        self.site = Site.build(NODES, terms=TERMS, gate=self.gate, weights=weights, seed=self.seed)

    # -- acts of others -----------------------------------------------------------------------------------

    def step(self) -> None:
        """Something happens, then the controller looks a few times."""
        for _ in range(self.dice.randint(0, 2)):
            act = self.dice.choice(ACTS)
            self.told.append(f"{self.site.now:.1f} {act.__name__}")
            act(self)
        until = self.site.now + self.dice.uniform(1.0, 20.0)
        while self.site.now < until:
            self.look()

    def pick(self, *states: str) -> Record | None:
        """A living job or task in one of these states."""
        fitting = [r for r in self.site.world.living() if r.state in states]
        return self.dice.choice(fitting) if fitting else None

    def look(self) -> None:
        """One tick, with what must hold after it, and the time until the next."""
        site, began = self.site, self.site.now
        acts, ticks = len(site.commands.said), len(site.journal.records)
        try:
            done = site.tick()
        except Crash as crash:
            self.told.append(f"{site.now:.1f} dies: {crash}")
            self.uncertain_since = site.now
            disarm(site)
            site.world.clock.advance(self.dice.uniform(0.0, 8.0))
            site.restart()
            self.check_world()
            return
        if done.blind:
            assert len(site.commands.said) == acts, self.says("acted while blind")
        elif len(site.journal.records) > ticks:
            self.check_tick(site.journal.records[-1])
        self.check_world()
        site.world.clock.sleep_until(site.next_look(began))
        site.world.catch_up()
        self.check_starts()

    def look_only(self) -> None:
        """A tick after which no time passes."""
        self.site.tick()
        self.check_tick(self.site.journal.records[-1])

    def says(self, what: str) -> str:
        """A failure that can be replayed."""
        return f"seed {self.seed} ({self.gate}): {what} at {self.site.now:.1f}; {'; '.join(self.told[-12:])}"

    # -- what must hold -----------------------------------------------------------------------------------

    def check_world(self) -> None:
        """Nothing lost, nothing taken from people, nothing unsaved twice."""
        world = self.site.world
        # Who lets a job begin in the second in which it left its node loses it, with Slurm alone too.
        lost = [label(k) for k in world.lost if world.of_key(k).end - self.moved.get(k, 0.0) > 2]
        assert not lost, self.says(f"jobs {lost} were lost")
        for key, by in self.held.items():
            record = world.of_key(key)
            assert record.held == by or not record.alive, self.says(f"{label(key)}: hold is {record.held!r}")
        for record in world.records.values():
            if not record.tasks:
                before = self.saved.get(record.key, 0.0)
                assert record.saved >= before, self.says(f"{label(record.key)} lost saved work")
                self.saved[record.key] = record.saved
            poisoned = record.state == RUNNING and record.held and record.key not in self.held
            assert not poisoned, self.says(f"{record.number} runs and is held")
        for key, wasted in world.wasted.items():
            assert wasted < TERMS.interval + 1, self.says(
                f"{label(key)} lost {wasted:.2f} s although it answers at once"
            )

    def check_starts(self) -> None:
        """One start per restart count, and none that nobody granted."""
        world, site = self.site.world, self.site
        pairs = [(start.key, start.restarts) for start in world.starts]
        assert len(set(pairs)) == len(pairs), self.says("one run was started twice")
        last = site.journal.records[-1] if site.journal.records else None
        for start in world.starts[self.starts_seen :]:
            if last is None or last.time < self.uncertain_since + 40 or start.key in self.held:
                continue
            seen = last.snapshot.jobs.key == start.key
            lease = site.standing.leases.phase[site.standing.leases.key == start.key]
            granted = len(lease) and lease[0] != LeasePhase.REVOKING
            moved = self.moved.get(start.key, 0.0) > 0
            assert granted or moved or not seen.any(), self.says(f"{label(start.key)} started ungranted")
        self.starts_seen = len(world.starts)

    def check_tick(self, record: TickRecord) -> None:
        """No over-commitment, nobody stopped for nothing, nothing revoked before its time."""
        snapshot, plan, leases = record.snapshot, record.plan, self.site.standing.leases
        names = snapshot.nodes.names
        opened = (leases.phase == LeasePhase.GRANTED) & (leases.opened > 0)
        if leases.node_names == names:
            starting = leases.promises.only(leases.key[opened]).per_node(len(names))
            now_opened = {o.action.key for o in record.outcomes if o.action.verb is Verb.OPEN}
            used = snapshot.held.per_node(len(names)) + starting
            if now_opened:
                nodes = {n for o in record.outcomes if o.action.verb is Verb.OPEN for n in o.action.nodes}
                at = [names.index(name) for name in nodes]
                full = used[at] > snapshot.nodes.capacity[at]
                assert not full.any(), self.says(f"more was opened on {nodes} than they have")
        revoked = np.flatnonzero(plan.verdict == Verdict.REVOKE)
        given = set(plan.places.node.tolist())
        promised = set(leases.promises.node.tolist())
        for row in revoked.tolist():
            mine = set(snapshot.held.nodes_of(row).tolist())
            assert mine & (given | promised), self.says("a job is stopped and nobody gets its GPUs")
        keys = snapshot.jobs.key.tolist()
        for action in (o.action for o in record.outcomes):
            if not action.whole_record:
                row = keys.index(action.key)
                wrong = (
                    action.verb in (Verb.ASK, Verb.REQUEUE) and snapshot.jobs.state[row] != JobState.RUNNING
                )
                assert not wrong, self.says(f"{action.verb} of a job that does not run")

    # -- the end ------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Everybody leaves the cluster alone and all faults are mended."""
        world, trouble = self.site.world, self.site.commands.trouble
        disarm(self.site)
        trouble.dead, trouble.lose_replies, trouble.late_replies, trouble.garbled = False, 0, 0, ""
        for name, machine in world.machines.items():
            world.resume(name)
            machine.others = 0
        self.uncertain_since = self.site.now

    def check_stable(self) -> None:
        """Promises are kept, free GPUs are used, and until the next lease ends only gates are renewed."""
        site, world = self.site, self.site.world
        end = site.now + PATIENT * TERMS.term
        while site.now < end:
            self.look()
        boundary = (site.now // TERMS.term + 1) * TERMS.term
        while site.now < boundary + 2 * TERMS.interval:
            self.look()
        phases = site.standing.leases.phase
        assert (phases == LeasePhase.RUNNING).all(), self.says(f"promises are not kept: {phases.tolist()}")
        self._check_work_conserved()
        acts = len(site.journal.intents)
        while site.now < boundary + TERMS.term - 1:
            self.look()
        late = [a.verb for number, (a, _) in site.journal.intents.items() if number >= acts]
        assert set(late) <= {Verb.CLOSE}, self.says(f"it does not come to rest: {late}")
        for record in world.living():
            leased = site.standing.leases.key.tolist()
            if record.state == PENDING and not record.held and (record.tasks or record.key not in leased):
                assert record.eligible > site.now, self.says(f"the gate of {record.number} is open")
                theirs = () if record.tasks else self.nodes.get(record.key, ())
                assert record.wanted == theirs, self.says(f"{record.number} is to run on {record.wanted}")

    def _check_work_conserved(self) -> None:
        """After a tick no job without a lease fits what nobody has or was promised."""
        self.look_only()
        record, standing = self.site.journal.records[-1], self.site.standing
        snapshot, leases = record.snapshot, standing.leases
        names = snapshot.nodes.names
        unleased = np.flatnonzero(snapshot.jobs.holds_gpus & ~np.isin(snapshot.jobs.key, leases.key))
        used = lying(leases, snapshot).per_node(len(names)) + snapshot.held.only(unleased).per_node(
            len(names)
        )
        free = snapshot.nodes.capacity - used
        jobs = snapshot.jobs
        could = (jobs.state == JobState.WAITING) & (jobs.blocked == Blocked.NOT_BLOCKED) & (jobs.nodes == 1)
        could &= ~np.isin(jobs.key, leases.key)
        why = record.plan.explanation
        own_share = np.array([text == BLOCKED_REASONS[Blocked.OWN_SHARE] for text in why.reasons], dtype=bool)
        could &= ~own_share[why.reason]  # it waits for its tenant's own share, not for GPUs
        could &= TERMS.grants_at(record.time)  # shortly before a common end nothing is granted
        for row in np.flatnonzero(could).tolist():
            if jobs.key[row] in self.nodes:  # it may want a node that has no room
                continue
            fits = [names[node] for node in np.flatnonzero(free >= jobs.gpus[row]).tolist()]
            assert not fits, self.says(f"{label(jobs.key[row])} waits although {fits} have room for it")
        blocked = set(jobs.blocked[jobs.state == JobState.WAITING].tolist())
        people = {Blocked.NOT_BLOCKED, Blocked.USER_HOLD, Blocked.ADMIN_HOLD, Blocked.OWN_BEGIN}
        assert blocked <= people, self.says(f"jobs are still blocked: {blocked}")


def submit(history: History) -> None:
    dice, gate = history.dice, history.gate
    shape = dice.choice(["alone", "alone", "alone", "gang", "array"])
    work = Work(
        seconds=dice.choice([float("inf"), 20.0, 90.0]),
        checkpoints=dice.random() < 0.9,
        answers_in=dice.choice([0.2, 0.6, 0.6, 6.0, float("inf")]),
        saves=dice.random() < 0.9,
        leaves_in=dice.choice([0.05, 0.3, 3.0]),
        patience=TERMS.grace,
    )
    gated = dice.random() < 0.8
    history.site.world.submit(
        4 if shape == "gang" else dice.choice([1, 1, 2, 2, 4, 8]),
        dice.choice("abc"),
        work=work,
        nodes=2 if shape == "gang" else 1,
        gpus_per_node=2 if shape == "gang" else 0,
        tasks=range(1, dice.randint(3, 5)) if shape == "array" else (),
        requeue=dice.random() < 0.95,
        hold=gated and gate == "hold",
        gate_seconds=600.0 if gated and gate == "begin" else 0.0,
    )


def break_node(history: History) -> None:
    name = history.dice.choice(list(NODES))
    (history.site.world.drain if history.dice.random() < 0.5 else history.site.world.fail)(name)


def mend_node(history: History) -> None:
    history.site.world.resume(history.dice.choice(list(NODES)))


def others(history: History) -> None:
    history.site.world.take(history.dice.choice(list(NODES)), history.dice.choice([-4, -2, 1, 2]))


def outage(history: History) -> None:
    trouble = history.site.commands.trouble
    trouble.dead = not trouble.dead
    history.uncertain_since = history.site.now


def lose_reply(history: History) -> None:
    history.site.commands.trouble.lose_replies = 1
    history.uncertain_since = history.site.now + 20


def late_reply(history: History) -> None:
    history.site.commands.trouble.late_replies = 1
    history.uncertain_since = history.site.now + 20


def garble(history: History) -> None:
    history.site.commands.trouble.garbled = history.dice.choice(["7\x1f7", "x", "\x1e\n\x1e\n"])


def crash(history: History) -> None:
    Failpoint(history.dice.choice(POINTS), left=history.dice.randint(1, 3)).arm(history.site)


def race(history: History) -> None:
    """Something happens between the controller's look and its act."""
    site, moment = history.site, history.dice.choice(["before_intent", "after_intent", "before_exec"])
    people = [cancel, finish, hold, release, move_begin, name_nodes, requeue_by_hand]
    act = history.dice.choice([*people, break_node, others])

    def now() -> None:
        disarm(site)
        history.told.append(f"{site.now:.1f} {moment} {act.__name__}")
        history.uncertain_since = site.now
        act(history)

    site.journal.at = lambda point, actions: now() if point == moment else None
    site.commands.watch = lambda when, lines: now() if f"{when}_exec" == moment else None


ACTS: list[Callable[[History], None]] = [
    submit, submit, submit, submit, submit, cancel, finish, finish, hold, hold, release, move_begin, break_node,
    name_nodes, name_nodes, requeue_by_hand,
    mend_node, mend_node, others, outage, outage, lose_reply, late_reply, garble, crash, crash, race, race, race,
]  # fmt: skip


def live(seed: int, steps: int = STEPS) -> History:
    """One whole history, checked all along."""
    history = History(seed, "hold" if seed % 4 == 3 else "begin")
    for _ in range(4):
        submit(history)
    for _ in range(steps):
        history.step()
    history.settle()
    history.check_stable()
    return history
