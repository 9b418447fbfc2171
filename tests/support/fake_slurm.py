"""A small Slurm on virtual time: what slurmctld does to job records, as measured on the real one.

It knows only what the controller relies on, and raises on everything else. The contract suite holds it to the
real Slurm; the same seed gives the same history.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from slurm_fair.model.ids import NO_TASK, label, pack
from tests.support.fake_jobs import (
    ADMIN,
    COMPLETING,
    ENDLESS,
    MIN_JOB_AGE_SECONDS,
    PENDING,
    REQUEUE_DELAY_SECONDS,
    REQUEUED_HELD,
    RUNNING,
    START,
    USER,
    Machine,
    PushedClock,
    Record,
    Start,
    Work,
    spread,
)

__all__ = [
    "ADMIN",
    "COMPLETING",
    "PENDING",
    "RUNNING",
    "START",
    "USER",
    "Machine",
    "PushedClock",
    "Record",
    "Work",
    "World",
]


class World:
    """slurmctld and its nodes, on a clock."""

    def __init__(self, clock: PushedClock, nodes: Mapping[str, int], seed: int = 0) -> None:
        self.clock, self.time = clock, clock.now()
        self.machines = {name: Machine(name, gpus) for name, gpus in nodes.items()}
        self.records: dict[int, Record] = {}
        self.starts: list[Start] = []
        self.wasted: dict[int, float] = {}  # seconds of work that an answering job lost to a requeue of ours
        self.lost: list[int] = []  # killed by a restart on a node in the second in which they left it
        self.weights: dict[str, float] = {}
        self.reserved: dict[str, tuple[float, float]] = {}  # nodes, from when to when
        self.later: list[tuple[float, Callable[[], None]]] = []
        self._dice = random.Random(seed)
        self._next_number = 1
        self._pass_at = math.inf

    # -- time ---------------------------------------------------------------------------------------------

    def catch_up(self) -> None:
        """Let everything happen that is due by the clock."""
        while (at := self._next_event()) <= self.clock.now():
            self.time = max(self.time, at)
            self._happen()
        self.time = self.clock.now()

    def _next_event(self) -> float:
        times = [self._pass_at, *(at for at, _ in self.later)]
        for record in self.records.values():
            if record.state == PENDING and not record.held and record.eligible > self.time:
                times.append(record.eligible)
            elif record.state == RUNNING:
                times += [record.finishes_at, record.answer_at]
            elif record.state == COMPLETING:
                times.append(record.gone_at)
        return min(times)

    def _happen(self) -> None:
        for at, act in [due for due in self.later if due[0] <= self.time]:
            self.later.remove((at, act))
            act()
        for record in list(self.records.values()):
            if record.state == RUNNING and record.answer_at <= self.time:
                self._answer(record)
            if record.state == RUNNING and record.finishes_at <= self.time:
                self._leave(record, "COMPLETED")
            if record.state == COMPLETING and record.gone_at <= self.time:
                self._gone(record)
            if record.state == PENDING and record.eligible == self.time:
                self.wake()
        if self._pass_at <= self.time:
            self._pass_at = math.inf
            self._schedule()

    def wake(self) -> None:
        """The scheduler looks within a second of any change."""
        self._pass_at = min(self._pass_at, self.time + self._dice.uniform(0.02, 0.9))

    # -- jobs ---------------------------------------------------------------------------------------------

    def submit(
        self,
        gpus: int = 1,
        tenant: str = "a",
        *,
        work: Work = ENDLESS,
        begin: float = 0.0,
        tasks: Iterable[int] = (),
        array_limit: int = 0,
        nodes: int = 1,
        gpus_per_node: int = 0,
        requeue: bool = True,
        stamped: bool = True,
        hold: bool = False,
        partition: str = "gpu",
        node_list: tuple[str, ...] = (),
        gate_seconds: float = 0.0,
        deadline: float = 0.0,
        time_limit: float = math.inf,
        choices: tuple[int, ...] = (),
    ) -> int:
        """sbatch; the job's id. `gate_seconds` = the begin time that a template sets as our gate."""
        self.catch_up()
        number = self._new_number()
        numbers = tuple(sorted(tasks))
        single = numbers[0] if len(numbers) == 1 else NO_TASK
        submit = float(int(self.time))
        gate = f",gate=+{gate_seconds:g}" if gate_seconds else ",gate=hold" if hold else ""
        speaks = stamped and work.checkpoints
        sizes = f",gpus={'+'.join(map(str, choices))}" if choices else ""
        comment = f"slurm_fair:v{int(speaks)},signal=USR2{gate}{sizes}" if speaks or gate else ""
        eligible = submit + gate_seconds if gate_seconds else max(submit, float(int(begin)))
        eligible = 0.0 if hold and not begin else eligible  # Slurm has not looked whether it may start
        self.records[number] = Record(
            number, number, single, numbers if len(numbers) > 1 else (), gpus, gpus_per_node, nodes, tenant,
            partition, comment, requeue, work, submit, eligible, array_limit, wanted=node_list,
            held=USER if hold else "", deadline=float(int(deadline)), time_limit=time_limit, scheduled=submit,
        )  # fmt: skip
        self.wake()
        return number

    def _new_number(self) -> int:
        number, self._next_number = self._next_number, self._next_number + 1
        return number

    def record(self, base: int, task: int = NO_TASK) -> Record:
        """The record that stands for a job or task now; an unsplit array stands for its tasks."""
        self.catch_up()
        for record in self.records.values():
            if record.base == base and (record.task == task or task in record.tasks):
                return record
        raise KeyError(label(pack(base, task)))

    def of_key(self, key: int) -> Record:
        """The record of one of the controller's keys, without splitting it."""
        text = label(key).split("_")
        return self.record(int(text[0]), int(text[1]) if len(text) > 1 else NO_TASK)

    def split(self, record: Record, task: int) -> Record:
        """Slurm makes a record of its own for a task that is treated apart; the last one keeps the base's."""
        if not record.tasks:
            return record
        apart = replace(record, number=self._new_number(), task=task, tasks=())
        self.records[apart.number] = apart
        rest = tuple(other for other in record.tasks if other != task)
        record.tasks, record.task = (rest, NO_TASK) if len(rest) > 1 else ((), rest[0])
        return apart

    def living(self) -> list[Record]:
        """Every record that is not over, the oldest first."""
        self.catch_up()
        return [record for _, record in sorted(self.records.items()) if record.alive]

    def listed(self) -> list[Record]:
        """The rows of squeue: the living, and the dead for a while."""
        self.catch_up()
        return [
            record
            for _, record in sorted(self.records.items())
            if record.alive or self.time - record.end < MIN_JOB_AGE_SECONDS
        ]

    def reason(self, record: Record) -> str:
        """Slurm's word for why it waits."""
        if record.held:
            return record.held
        if record.state != PENDING:
            return "None"
        return "BeginTime" if record.eligible > self.time else "Resources"

    # -- what Slurm does ----------------------------------------------------------------------------------

    def _schedule(self) -> None:
        waiting = [r for r in self.living_unsorted() if r.state == PENDING and not (r.held or r.depends)]
        for record in waiting:
            if record.eligible <= self.time and 0 < record.deadline < self.time + record.least_time:
                record.state, record.end = "DEADLINE", float(int(self.time))
            while record.state == PENDING and record.eligible <= self.time:
                place = self._place(record)
                if place is None or self._at_its_limit(record):
                    break
                apart = self.split(record, record.tasks[0]) if record.tasks else record
                self._begin(apart, place)
                if apart is record:
                    break

    def living_unsorted(self) -> list[Record]:
        """Living records as they are, without letting time pass."""
        return [record for record in self.records.values() if record.alive]

    def _at_its_limit(self, record: Record) -> bool:
        running = sum(r.base == record.base and r.state == RUNNING for r in self.records.values())
        return bool(record.array_limit) and running >= record.array_limit

    def free(self) -> dict[str, int]:
        """Free GPUs of the nodes that take work."""
        free = {name: m.gpus - m.others for name, m in self.machines.items() if m.state == "idle"}
        for record in self.records.values():
            for name, gpus in record.on.items() if record.state in (RUNNING, COMPLETING) else ():
                if name in free:
                    free[name] -= gpus
        return free

    def _place(self, record: Record) -> dict[str, int] | None:
        """Exactly the named nodes, or the first that do; None while there is no room."""
        free = {name: gpus for name, gpus in self.free().items() if name not in record.excluded}
        if record.wanted:
            if not set(record.wanted) <= free.keys():
                return None
            return spread(record, {name: free[name] for name in record.wanted})
        for size in range(record.nodes, len(free) + 1):
            most = sorted(free, key=lambda name: -free[name])[:size]
            alone = [{name: free[name]} for name in free] if size == 1 else [{n: free[n] for n in most}]
            for choice in alone:
                if place := spread(record, choice):
                    return place
            if record.gpus_per_node:
                return None
        return None

    def _begin(self, record: Record, place: Mapping[str, int]) -> None:
        if int(record.left_at) == int(self.time) and record.left & place.keys():
            # slurmd still refuses the job: "Job credential revoked".
            record.state, record.end = "FAILED", float(int(self.time))
            self.lost.append(record.key)
            return
        record.state, record.on, record.start = RUNNING, dict(place), float(int(self.time))
        record.done, record.counted_to, record.waits_until = record.saved, self.time, 0.0
        record.answer_at = math.inf
        self.starts.append(Start(record.key, record.restarts, self.time, dict(place)))

    def _count_work(self, record: Record) -> None:
        since = max(record.counted_to, min(record.waits_until, self.time))
        record.done += max(self.time - since, 0.0)
        record.counted_to = self.time

    def _answer(self, record: Record) -> None:
        self._count_work(record)
        record.answer_at = math.inf
        record.answered = (record.restarts, self.time, record.work.saves)
        if record.work.saves:
            record.saved = record.done
            record.waits_until = self.time + record.work.patience

    def _leave(self, record: Record, next_state: str) -> None:
        """RUNNING -> COMPLETING: its GPUs are not free yet."""
        self._count_work(record)
        record.state, record.next_state = COMPLETING, next_state
        record.end = float(int(self.time))
        record.gone_at = self.time + record.work.leaves_in

    def _gone(self, record: Record) -> None:
        record.left_at, record.left = self.time, frozenset(record.on)
        record.state, record.on, record.gone_at = record.next_state, {}, math.inf
        if record.state == PENDING:
            record.submit = float(int(self.time))
            record.eligible = record.submit + REQUEUE_DELAY_SECONDS
            record.start = record.end = 0.0
        self.wake()

    # -- what people and machines do ----------------------------------------------------------------------

    def cancel(self, base: int, task: int = NO_TASK) -> None:
        record = self.record(base, task)
        record = self.split(record, task) if task >= 0 else record
        if record.state == RUNNING:
            self._leave(record, "CANCELLED")
        elif record.state == COMPLETING:
            record.next_state = "CANCELLED"
        elif record.state == PENDING:
            record.state, record.end = "CANCELLED", float(int(self.time))

    def finish(self, base: int, task: int = NO_TASK) -> None:
        """The job ends by itself, now."""
        record = self.record(base, task)
        if record.state != RUNNING:
            raise AssertionError(f"job {base} does not run: it is {record.state}")
        self._leave(record, "COMPLETED")

    def hold(self, base: int, task: int = NO_TASK, by: str = USER) -> None:
        """`scontrol uhold` or `hold`: an admin's replaces a user's."""
        record = self.record(base, task)
        record = self.split(record, task) if task >= 0 else record
        if record.alive:
            record.hold(by, self.time)

    def release(self, base: int, task: int = NO_TASK) -> None:
        record = self.record(base, task)
        record.held, record.eligible = "", max(record.eligible, record.submit + 1)  # looked at in a second
        self.wake()

    def move_begin(self, base: int, begin: float, task: int = NO_TASK) -> None:
        """A user's `scontrol update StartTime=`; refused once it runs."""
        record = self.record(base, task)
        if record.state == PENDING:
            record.eligible = float(int(begin))
            self.wake()

    def drain(self, name: str) -> None:
        """No new work on a node."""
        self.catch_up()
        self.machines[name].state = "drained"

    def fail(self, name: str) -> None:
        """A node dies: its jobs go back into the queue, or die with it."""
        self.catch_up()
        self.machines[name].state = "down"
        for record in self.living():
            if name in record.on:
                if record.state == RUNNING:
                    self._leave(record, PENDING if record.requeue else "NODE_FAIL")
                    record.restarts += record.requeue
                self._gone(record)

    def resume(self, name: str) -> None:
        """A node is back."""
        self.catch_up()
        self.machines[name].state = "idle"
        self.wake()

    def take(self, name: str, gpus: int) -> None:
        """Jobs that are not ours take free GPUs of a node; negative = give some back."""
        self.catch_up()
        free = self.free().get(name, 0)
        machine = self.machines[name]
        machine.others = min(max(machine.others + min(gpus, free), 0), machine.gpus)
        self.wake()

    # -- what commands ask for ----------------------------------------------------------------------------

    def signal(self, record: Record) -> str:
        """A request to checkpoint; an error text when there is nobody to hear it."""
        if record.state != RUNNING:
            return "Job/step already completing or completed"
        if record.work.checkpoints:
            record.answer_at = self.time + record.work.answers_in
        return ""

    def requeue(self, record: Record, hold: bool) -> str:
        """`requeue incomplete`: a job that is over stays over."""
        if not record.alive or (record.state == COMPLETING and record.next_state != PENDING):
            return ""
        if record.state != RUNNING:
            return "Job is pending execution"
        if not record.requeue:
            return "Requested operation is presently disabled"
        self._leave(record, PENDING)
        if record.work.saves and record.work.answers_in < 1:
            self.wasted[record.key] = self.wasted.get(record.key, 0.0) + record.done - record.saved
        record.restarts += 1
        record.held = REQUEUED_HELD if hold else record.held
        return ""

    def update(
        self,
        record: Record,
        wanted: tuple[str, ...] | None = None,
        eligible: float | None = None,
        size: tuple[int, int, int] | None = None,
    ) -> str:
        """`scontrol update` of a waiting job's node list, begin time, and size: GPUs, of each node, nodes."""
        if not record.alive:
            return "Job has already finished"
        if record.state != PENDING:
            return "Job is no longer pending execution"
        if wanted is not None:
            if not set(wanted) <= self.machines.keys():
                return "Invalid node name specified"
            record.wanted = wanted
        if size is not None:
            record.gpus, record.gpus_per_node, record.nodes = size
        if eligible is not None:
            record.eligible = float(int(eligible))
        self.wake()
        return ""
