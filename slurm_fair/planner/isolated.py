"""The planner whose policy lives in a process of its own, which is killed at the deadline of a plan.

No line of the policy runs in the caller's process. What follows a plan that is late, fails or cannot be: the
policy's quick plan, which the process said before; else nothing, and the leases stay as they are.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from slurm_fair.errors import NoPlan
from slurm_fair.model import Event, Plan
from slurm_fair.planner.messages import FAILED, PLAN, QUICK, RAISED, READY, plan_of
from slurm_fair.planner.process import PROGRAM, Garbage, PlanningProcess, ProcessGone
from slurm_fair.policy import Policy, View
from slurm_fair.policy.check import objections
from slurm_fair.policy.error_place import beginning
from slurm_fair.policy.late import as_a_stand_in, carried_over

_START_SECONDS = 60.0  # in which a policy is loaded, on a busy machine too
_REST_SECONDS = 30.0  # after a start that failed
_MOST_EVENTS = 50_000
STANDS_IN = "its quick plan stands in"
ENDS = "no plan was waited for: the daemon is about to end or to change its policy"
log = logging.getLogger("slurm_fair")


@dataclass(frozen=True, slots=True)
class PlannerLimits:
    """The bounds of a planning process, and the fate of a plan that it makes too late."""

    memory_mb: float = 2048.0
    keeps_late: bool = False  # a plan that comes too late counts at the next look; False: it is given up


@dataclass(slots=True)
class _Asked:
    """A view that the process was shown, and what it has said of it."""

    number: int
    view: View
    began: float
    quick: Plan | None = None
    plan: Plan | None = None
    why: str = ""  # there is no plan that can be used
    late: bool = False

    @property
    def has_ended(self) -> bool:
        """True once there is a plan, or a reason why there is none."""
        return self.plan is not None or bool(self.why)


@dataclass
class IsolatedPlanner:
    """ports.Planner over one planning process at a time."""

    policy: Policy
    limits: PlannerLimits = field(default_factory=PlannerLimits)
    program: Sequence[str] = PROGRAM
    waits: Callable[[], None] = lambda: None  # called now and then while a plan is waited for
    keeps_time: ClassVar[bool] = True
    process: PlanningProcess | None = field(default=None, init=False)
    _ready: bool = field(default=False, init=False)
    _rest_until: float = field(default=0.0, init=False)
    _number: int = field(default=0, init=False)
    _late: _Asked | None = field(default=None, init=False)
    _unheard: tuple[Event, ...] = field(default=(), init=False)  # since the last plan that counts
    _trouble: str = field(default="", init=False)
    _closed: bool = field(default=False, init=False)

    def begin(self) -> None:
        """Start the process, so that it has loaded its policy when it is asked."""
        if self.process is None and not self._closed and time.monotonic() >= self._rest_until:
            self._ready = False
            try:
                self.process = PlanningProcess(self.policy, self.limits.memory_mb, self.program)
            except Exception as error:  # no process or memory to spare, or a class that cannot be named
                self._trouble = f"the planning process cannot be started: {error}"
                self._rest_until = time.monotonic() + _REST_SECONDS

    def plan(self, view: View, limit_seconds: float) -> Plan:
        """The plan, or what stands in for it; NoPlan by the deadline at the latest."""
        until = time.monotonic() + limit_seconds
        late, self._late = self._late, None
        self._unheard = (*self._unheard, *view.happened)[-_MOST_EVENTS:]
        plan = None if late is None else self._of_before(late, view, until)
        if plan is not None:
            self._unheard = tuple(view.happened)
            return plan
        asked = self._ask(view, until)
        if asked.plan is not None:
            self._unheard = ()
            return asked.plan
        if asked.late and self.limits.keeps_late:
            self._late = asked
            raise NoPlan(f"{asked.why}: the last plan stands, and this one counts once it is there")
        if asked.late:
            self._drop()
        return self._instead(asked)

    def close(self) -> None:
        """End the process for good: also from another thread, while a plan is waited for."""
        self._closed = True
        process = self.process
        if process is not None:
            process.kill()

    def _goes_on(self) -> None:
        """While something is waited for: NoPlan once the planner was closed."""
        self.waits()
        if self._closed:
            self._drop(again=False)
            raise NoPlan(ENDS)

    def _instead(self, asked: _Asked) -> Plan:
        quick = asked.quick
        if quick is None:
            raise NoPlan(asked.why)
        return as_a_stand_in(quick, asked.view, f"{asked.why}; {STANDS_IN}")

    def _of_before(self, late: _Asked, view: View, until: float) -> Plan | None:
        """The plan that was late at the last look, as far as it fits this view; None where it is of no use."""
        self._listen(late, until)
        age = time.monotonic() - late.began
        if late.late:
            self._drop()
            if late.quick is None:
                raise NoPlan(late.why)
            note = f"the plan was not there after {age:.0f} s, and was given up; {STANDS_IN}"
            plan = as_a_stand_in(carried_over(late.quick, late.view, view, note), view, note)
        elif late.plan is None:
            return None
        else:
            note = f"this plan came late: it was made for the look {view.now - late.view.now:.0f} s before"
            plan = carried_over(late.plan, late.view, view, note)
        wrong = objections(plan, view)
        if wrong:
            log.info("a plan that came late is dropped: %s", wrong)
            return None
        return plan

    def _ask(self, view: View, until: float) -> _Asked:
        self._number += 1
        asked = _Asked(self._number, view, time.monotonic())
        self._make_ready(until)
        process = self.process
        assert process is not None
        process.ask((asked.number, replace(view, happened=self._unheard)))
        self._listen(asked, until)
        return asked

    def _make_ready(self, until: float) -> None:
        """Wait until the process has loaded its policy; NoPlan where it does not."""
        if self.process is not None and self.process.ended:
            log.warning("the planning process ended between two plans; it is started again")
            self._drop()
        self.begin()
        process = self.process
        if process is None:
            raise NoPlan(self._trouble or "the planning process was ended")
        if self._ready:
            return
        message = self._first_word(process, until)
        if message is None and time.monotonic() - process.began < _START_SECONDS:
            raise NoPlan("the planning process has not loaded the policy yet")
        if message is not None and message[0] == READY:
            self._ready, self._trouble = True, ""
            return
        self._trouble = self._trouble_of(message)
        self._rest_until = time.monotonic() + _REST_SECONDS
        self._drop(again=False)
        raise NoPlan(self._trouble)

    def _trouble_of(self, message: tuple[Any, ...] | None) -> str:
        kind = type(self.policy)
        if message is not None and message[0] == FAILED:
            return f"the planning process cannot load {kind.__module__}.{kind.__qualname__}: {message[-1]}"
        if message is not None:
            return f"the planning process {message[-1]} before it had loaded the policy"
        return f"the planning process did not load the policy in {_START_SECONDS:.0f} s"

    def _first_word(self, process: PlanningProcess, until: float) -> tuple[Any, ...] | None:
        """A message at the start of a process; its end is told as one."""
        try:
            return process.hear(until, self._goes_on)
        except ProcessGone as gone:
            return ("gone", 0, str(gone))
        except Garbage as garbage:
            return ("garbage", 0, f"says what is no answer ({garbage})")

    def _listen(self, asked: _Asked, until: float) -> None:
        """Take what the process says of a view until it has said all, or its time is up."""
        process = self.process
        asked.late, asked.why = False, ""
        place = beginning(type(self.policy))
        try:
            while process is not None and not asked.has_ended:
                message = process.hear(until, self._goes_on)
                if message is not None and message[1] == asked.number:
                    self._take(message, asked)
                asked.late = not asked.has_ended and (message is None or time.monotonic() >= until)
                if asked.late:
                    asked.why = f"the plan was not there after {time.monotonic() - asked.began:.1f} s"
        except ProcessGone as gone:
            asked.why = f"{place}: the planning process {gone} while it made the plan"
            self._drop()
        except Garbage as garbage:
            asked.why = f"{place}: the planning process said what is no plan: {garbage}"
            self._drop()
        if self._closed:
            raise NoPlan(ENDS)

    def _take(self, message: tuple[Any, ...], asked: _Asked) -> None:
        word, said = message[0], message[2:]
        if word == RAISED:
            asked.why = f"{said[0]}: the policy raised: {said[-1]}"
            return
        if word not in (QUICK, PLAN):
            return
        try:
            plan = plan_of(said[0])
            wrong = objections(plan, asked.view)
        except Exception as error:  # whatever it is, it is no plan
            plan, wrong = None, str(error) or type(error).__name__
        if word == QUICK:
            asked.quick = None if wrong else plan
        elif wrong:
            asked.why = f"{beginning(type(self.policy))}: the plan cannot be: {wrong}"
        else:
            asked.plan = plan

    def _drop(self, *, again: bool = True) -> None:
        """Kill the process; another one loads the policy meanwhile."""
        process, self.process, self._ready = self.process, None, False
        if process is not None:
            process.close()
        if again:
            self.begin()
