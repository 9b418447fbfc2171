"""An actuator on the stub, whose every word to Slurm is held to the closed list of verbs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from slurm_fair.config.sections import ScopeSection
from slurm_fair.model import Action, Outcome, Result, Verb
from slurm_fair.model.ids import pack
from slurm_fair.model.mark import Mark
from slurm_fair.slurm.acting.actuator import Actuator
from slurm_fair.slurm.ownership.marks import Marks
from slurm_fair.slurm.ownership.remit import Remit
from slurm_fair.slurm.reading.details import JobDetails
from slurm_fair.slurm.reading.queue import BETWEEN, RAW, Queue
from slurm_fair.slurm.scope import Territory
from tests.support.slurm_stub import QUIET, Stub, row

NOW = 1795001000.0
SUBMIT, GATE = float(QUIET["SubmitTime"]), float(QUIET["EligibleTime"])
WAITING, RUNNING = row(), row(State="RUNNING", NodeList="n1", EligibleTime="1795000500")
TRIED_AT_FIRST = f"7{BETWEEN}{QUIET['SubmitTime']}{BETWEEN}\n"  # and by Slurm never since
OPENED, PINNED = row(EligibleTime=str(int(NOW))), row(ReqNodes="n1")
CLOSED = row(EligibleTime=str(int(GATE) + 500))

# Everything that may ever be sent, as whole command lines.
_ID = r"[1-9][0-9]{0,9}(_([0-9]{1,7}|\[[0-9,-]+\]))?"
_NODES = r"([A-Za-z0-9][A-Za-z0-9_.-]*(,[A-Za-z0-9][A-Za-z0-9_.-]*)*)?"
_TIME = r"(uts[0-9]{9,11}|now(\+[1-9][0-9]?)?)"
LINE = re.compile(
    rf"update jobid={_ID}( reqnodelist={_NODES})?( starttime={_TIME})?( eligibletime={_TIME})?"
    rf"|hold {_ID}|release {_ID}|requeue incomplete {_ID}|requeuehold incomplete {_ID}|exit"
)
ARGV = (
    re.compile(r"squeue -h -a -t all --array(-unique)? (-j [0-9,]+ )?(-O|-o) [A-Za-z%:,\-\x1e\x1f]+"),
    re.compile(rf"scancel( -v)? --batch --signal=(USR1|USR2|TERM)( {_ID})+"),
    re.compile(r"sprio -h -j [0-9,]+ -o [^ ]+"),
    re.compile(r"scontrol( show config)?"),
)


@dataclass
class Diary:
    """Intents and marks in the order in which they were written, among the calls of the stub."""

    stub: Stub
    events: list[tuple[str, int]] = field(default_factory=list)
    marks_now: dict[tuple[int, bool], Mark] = field(default_factory=dict)
    outcomes: list[Outcome] = field(default_factory=list)

    def _note(self, what: str) -> None:
        self.events.append((what, len(self.stub.calls)))

    def intend(self, actions: Sequence[Action], now: float) -> Sequence[int]:
        """Before anything is sent."""
        self._note("intend")
        return range(len(actions))

    def conclude(self, ids: Sequence[int], outcomes: Sequence[Outcome], now: float) -> None:
        assert len(ids) == len(outcomes)
        self._note("conclude")
        self.outcomes += outcomes

    def marks(self) -> Sequence[Mark]:
        """The marks that survived."""
        return tuple(self.marks_now.values())

    def set_marks(self, marks: Iterable[Mark]) -> None:
        marks = list(marks)
        self._note("mark")
        self.marks_now |= {(mark.key, mark.whole_record): mark for mark in marks}

    def drop_marks(self, keys: Iterable[tuple[int, bool]]) -> None:
        for key in keys:
            del self.marks_now[key]


class Anybody(Remit):
    """A remit over every job that anybody may have."""

    def objections(self, rows: NDArray[np.void], queue: Queue, details: JobDetails) -> dict[int, str]:
        return {}


EVERYTHING = Anybody(Territory(frozenset(), ()), ScopeSection(), np.zeros(0, np.int64), np.zeros(0, RAW))


@dataclass
class Bench:
    """An actuator on the stub."""

    stub: Stub
    marks: tuple[Mark, ...] = ()
    timeout_seconds: float = 5.0
    now: Callable[[], float] = lambda: NOW

    def __post_init__(self) -> None:
        self.diary = Diary(self.stub, marks_now={(mark.key, mark.whole_record): mark for mark in self.marks})
        commands = self.stub.commands(self.timeout_seconds)
        self.actuator = Actuator(
            commands,
            Queue(commands),
            Marks(self.diary),
            JobDetails(commands),
            self.diary,
            lambda: self.now(),
            remit=EVERYTHING,
        )

    def do(self, *actions: Action) -> list[tuple[Result, str]]:
        """Act; every line that was sent must be one of those allowed."""
        outcomes = self.actuator.actuate(actions)
        assert [outcome.action for outcome in outcomes] == list(actions)
        only_what_is_allowed(self.stub)
        return [(outcome.result, outcome.detail) for outcome in outcomes]


def only_what_is_allowed(stub: Stub) -> None:
    """Nothing was sent but what the closed list of verbs allows."""
    for call in stub.calls:
        line = " ".join(call)
        assert any(pattern.fullmatch(line) for pattern in ARGV), line
    for lines in stub.fed("scontrol"):
        for line in lines:
            assert LINE.fullmatch(line), line
    for program in ("squeue", "scancel"):
        assert all(lines == [] for lines in stub.fed(program))


def sent(stub: Stub) -> list[str]:
    """All lines that scontrol got, but the last."""
    return [line for lines in stub.fed("scontrol") for line in lines if line != "exit"]


def action(
    verb: Verb, job: int = 7, nodes: tuple[str, ...] = ("n1",), task: int = -1, **more: object
) -> Action:
    """An act on job 7 as the snapshot showed it."""
    until = GATE + 500 if verb is Verb.CLOSE else GATE
    known: dict[str, object] = {"submit": SUBMIT, "restarts": 0, "until": until, "record": job} | more
    return Action(verb, pack(job, task), nodes=nodes if verb is Verb.OPEN else (), **known)  # type: ignore[arg-type]


def mark(
    until: float = GATE, pinned: bool = False, user_nodes: str = "", whole: bool = False, pin: str = ""
) -> Mark:
    """Ours on job 7."""
    return Mark(pack(7), 7, whole, SUBMIT, 0, until, pinned, 1.0, user_nodes, pin=pin)
