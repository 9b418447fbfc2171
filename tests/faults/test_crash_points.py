"""kill -9 at every boundary of every act, alone and in pairs: nothing is lost and everything imposed is known."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest

from slurm_fair.model import LeasePhase, LeaseTerms, Verb, label
from slurm_fair.slurm.fail_open import liberate
from tests.support.crashes import POINTS, Crash, Failpoint, disarm
from tests.support.fake_cluster import MemoryJournal, Site
from tests.support.fake_commands import FakeCommands
from tests.support.fake_slurm import COMPLETING, PENDING, RUNNING, Work, World
from tests.support.proofs import proved

TERMS = LeaseTerms(term=30.0, interval=10.0, grace=4.0, start_timeout=10.0)
VERBS = (Verb.CLOSE, Verb.OPEN, Verb.ASK, Verb.REQUEUE)
DOWN_SECONDS = 1.5
GATES = ("begin", "hold")


@dataclass(frozen=True, slots=True)
class Death:
    """The point at which one controller dies."""

    point: str
    verb: Verb | None = None
    time: int = 1

    def __str__(self) -> str:
        return f"{self.point} {self.verb.value if self.verb else 'any'} {self.time}"


def busy_site(gate: str) -> Site:
    """More demand than GPUs, a gang over two nodes and an array: every verb is used within two leases."""
    site = Site.build({"n1": 4, "n2": 4}, terms=TERMS, gate=gate, seed=3)
    hold = gate == "hold"
    for gpus, tenant in ((4, "a"), (4, "a"), (2, "b"), (2, "b")):
        site.world.submit(gpus, tenant, work=Work(patience=TERMS.grace), hold=hold)
    site.world.submit(4, "c", nodes=2, gpus_per_node=2, hold=hold)
    site.world.submit(2, "b", tasks=range(1, 4), hold=hold)
    return site


def deaths_of(site: Site, deaths: list[Death], seconds: float) -> int:
    """Run so long, dying as told and starting again from the journal; how often it died."""
    end, died, turns = site.now + seconds, 0, iter(deaths)
    point = _armed(site, turns)
    while site.now < end:
        began = site.now
        try:
            site.tick()
        except Crash:
            died += 1
            check_nothing_is_broken(site, point)
            check_all_can_be_freed(site, point)
            point = _armed(site, turns)
            site.world.clock.advance(DOWN_SECONDS)
            site.restart()
            continue
        site.world.clock.sleep_until(min(site.next_look(began), end))
        site.world.catch_up()
    disarm(site)
    check_nothing_is_broken(site, point)
    return died


def _armed(site: Site, turns: Iterator[Death]) -> str:
    disarm(site)
    death = next(turns, None)
    if death is not None:
        Failpoint(death.point, death.verb, death.time).arm(site)
    return str(death)


def check_nothing_is_broken(site: Site, told: str) -> None:
    """No job lost, none started twice in one incarnation, none running while held."""
    world = site.world
    assert not world.lost, f"{told}: jobs {[label(k) for k in world.lost]} were killed"
    runs = [(start.key, start.restarts) for start in world.starts]
    assert len(set(runs)) == len(runs), f"{told}: one run was started twice"
    states = {record.state for record in world.records.values()}
    assert states <= {PENDING, RUNNING, COMPLETING}, f"{told}: a job is {states}"
    poisoned = [r.number for r in world.records.values() if r.state == RUNNING and r.held]
    assert not poisoned, f"{told}: {poisoned} run and are held"


def check_all_can_be_freed(site: Site, told: str, gate_seconds: float = 2 * TERMS.term) -> None:
    """A later controller finds marks of all that we have imposed: in a copy of the world, undo it.

    A begin gate may also be left to open by itself within `gate_seconds`.
    """
    world: World = copy.deepcopy(site.world)
    commands = FakeCommands(world)
    for _ in range(5):
        freed = liberate(commands, site.journal.marks(), world.clock.now)
        world.clock.advance(1.0)
        if not freed.left:
            break
    assert not freed.left, f"{told}: left are {freed.left}"
    for record in world.living():
        if record.state == PENDING:
            what = f"{told}: job {record.number} task {record.task} {record.tasks}"
            assert not record.wanted, f"{what} is still pinned to {record.wanted}"
            assert not record.held, f"{what} is still held ({record.held})"
            assert record.eligible <= world.time + max(gate_seconds, 1.0), f"{what} is still gated"


def check_converged(site: Site, told: str) -> None:
    """A running job has a lease, a job with a lease runs or is about to, a waiting job is gated."""
    leases, world = site.standing.leases, site.world
    running = {r.key for r in world.living() if r.state in (RUNNING, COMPLETING)}
    held = leases.key[leases.phase != LeasePhase.GRANTED].tolist()
    assert set(held) == {r.key for r in world.living() if r.state == RUNNING}, told
    promised = set(leases.key[leases.phase == LeasePhase.GRANTED].tolist())
    for record in world.living():
        if record.state == PENDING and (record.tasks or record.key not in promised | running):
            assert record.held or record.eligible > site.now, f"{told}: the gate of {record.number} is open"


def converges(site: Site, told: str) -> None:
    """Two looks after the last restart everything is as it should be; then it stays in use."""
    for _ in range(2):
        site.tick()
        site.world.clock.advance(1.0)
        site.world.catch_up()
    check_converged(site, told)
    site.run(TERMS.term)
    check_nothing_is_broken(site, told)
    used = sum(gpus for r in site.world.living() for gpus in r.on.values())
    promised = site.standing.leases.phase == LeasePhase.GRANTED
    assert used + int(site.standing.leases.gpus[promised].sum()) >= 6, f"{told}: {used} of 8 GPUs are used"


SINGLES = [
    Death(point, verb, time)
    for point, verb, time in product(POINTS, VERBS, (1, 2))
    if time == 1 or verb in (Verb.OPEN, Verb.CLOSE)
]


def test_every_verb_is_used_by_the_scenario() -> None:
    for gate in GATES:
        site = busy_site(gate)
        site.run(2.2 * TERMS.term)
        verbs = [action.verb for action, _ in site.journal.intents.values()]
        assert all(verbs.count(verb) >= 2 for verb in VERBS), (gate, verbs)


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("point", POINTS)
def test_a_controller_may_die_at_any_boundary_of_any_act(point: str, gate: str) -> None:
    for death in (d for d in SINGLES if d.point == point):
        site = busy_site(gate)
        assert deaths_of(site, [death], 2.1 * TERMS.term) == 1, f"{death} never came"
        converges(site, f"{gate}: {death}")


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("second", POINTS)
def test_the_controller_after_it_may_die_at_its_first_act(second: str, gate: str) -> None:
    for verb, point in product(VERBS, ("before_exec", "after_exec")):
        site = busy_site(gate)
        deaths = [Death(point, verb), Death(second)]
        assert deaths_of(site, deaths, 1.7 * TERMS.term) == 2
        converges(site, f"{gate}: {deaths[0]}, {deaths[1]}")


@pytest.mark.prove
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("gate", GATES)
def test_any_two_deaths(gate: str) -> None:
    each = [Death(point, verb) for point, verb in product(POINTS, VERBS)]
    pairs = list(product(each, each))
    for first, second in pairs:
        site = busy_site(gate)
        assert deaths_of(site, [first, second], 3.5 * TERMS.term) == 2
        converges(site, f"{gate}: {first}, {second}")
    claim = f"the controller dies at any two boundaries of its acts, {gate} gate, over a fake Slurm"
    proved(claim, "every pair goes on as if nothing had been", f"{len(pairs)} of {len(pairs)} pairs")


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("point", ["before_exec", "after_exec"])
def test_whoever_frees_the_jobs_may_die_too_and_be_followed(point: str, gate: str) -> None:
    site = busy_site(gate)
    site.run(1.5 * TERMS.term)
    Failpoint(point).arm(site)
    with pytest.raises(Crash):
        site.fail_open()
    disarm(site)
    check_all_can_be_freed(site, f"{gate}: freeing died {point}")


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("trouble", ["lose_replies", "late_replies"])
@pytest.mark.parametrize("verb", VERBS)
def test_an_act_whose_answer_is_lost_is_settled_by_looking_again(verb: Verb, trouble: str, gate: str) -> None:
    """Soon after an act of unknown outcome nothing is unknown any more, and nothing is done twice."""
    site = busy_site(gate)
    armed = True

    def at(point: str, actions: object) -> None:
        nonlocal armed
        verbs = {action.verb for action in actions} if isinstance(actions, (list, tuple)) else set()
        if armed and point == "after_intent" and verb in verbs:
            armed = False
            setattr(site.commands.trouble, trouble, 1)

    site.journal.at = at
    site.run(2.2 * TERMS.term)
    assert not armed, f"no {verb.value} was done"
    check_nothing_is_broken(site, f"{gate}: {trouble} of {verb.value}")
    check_all_can_be_freed(site, f"{gate}: {trouble} of {verb.value}")
    assert all(site.now - at < 30 for at in site.standing.unsettled.values())
    converges(site, f"{gate}: {trouble} of {verb.value}")


@pytest.mark.parametrize("ended", ["by itself", "cancelled"])
@pytest.mark.parametrize("when", ["after_intent", "before_exec", "after_exec"])
def test_a_job_that_ends_round_a_requeue_never_runs_again(when: str, ended: str) -> None:
    site = Site.build({"n1": 4}, terms=TERMS)
    first = site.world.submit(4, "a", work=Work(leaves_in=0.05))
    site.world.submit(4, "b", work=Work(leaves_in=0.05))
    site.run(TERMS.term - 1)
    ends = False

    def end() -> None:
        nonlocal ends
        record = site.world.record(first)
        if not ends and record.state == RUNNING:
            ends = True
            site.world.finish(first) if ended == "by itself" else site.world.cancel(first)

    def lines(moment: str, said: tuple[str, ...]) -> None:
        if when == f"{moment}_exec" and any(f"incomplete {first}" in line for line in said):
            end()

    def at(point: str, actions: object) -> None:
        verbs = {action.verb for action in actions} if isinstance(actions, (list, tuple)) else set()
        if when == point and Verb.REQUEUE in verbs:
            end()

    site.commands.watch, site.journal.at = lines, at
    site.run(3 * TERMS.term)
    starts = [start for start in site.world.starts if start.key == site.world.record(first).key]
    record = site.world.record(first)
    assert len(starts) == record.restarts + (record.state != PENDING)
    if ends:
        assert record.state in ("COMPLETED", "CANCELLED")
        assert record.restarts == 0
        assert len(starts) == 1


def test_the_memory_journal_keeps_what_a_controller_needs() -> None:
    site = busy_site("begin")
    site.run(TERMS.term)
    before = site.standing
    site.restart()
    assert site.standing is before
    assert isinstance(site.journal, MemoryJournal)
    assert np.array_equal(site.standing.leases.key, before.leases.key)
