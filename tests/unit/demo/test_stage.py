"""One act of the demo, on a Slurm that answers from a table: its phases, its ends, and what it leaves."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from slurm_fair.demo.live import Act
from slurm_fair.demo.picture import Phase
from slurm_fair.demo.scenario import DemoJob, DemoScenario, Scheduler
from slurm_fair.demo.stage import COUNTER, ActFacts, Stage, Stopped, facts_of_the_journal, play
from slurm_fair.errors import LabError
from slurm_fair.lab import LabSpec
from slurm_fair.model import Blind, Event, RunTable
from slurm_fair.model.action import ANSWERED, NO_ANSWER
from slurm_fair.model.ids import pack
from slurm_fair.store import open_journal
from tests.support import journals
from tests.support.builders import run, runs

JOBS = (DemoJob("a-01", "a", 1, 2, 0.0, 5), DemoJob("b-01", "b", 1, 2, 0.02, 5))
PLOT = DemoScenario(1, 4, 0.05, 1.0, JOBS, {"a": 1, "b": 3}, least_rho=0.5)
ENDED = runs(run(11, 1.0, 2.0), run(12, 1.0, 2.0))
Table = Callable[..., str]


@dataclass
class TableLab:
    """A lab whose programs answer from a table, and whose end is noted."""

    folder: Path
    spec: LabSpec
    answers: Table
    trouble: str = ""
    calls: list[str] = field(default_factory=list)

    @property
    def conf(self) -> Path:
        return self.folder / "slurm.conf"

    def start(self) -> None:
        self.calls.append("start")
        if self.trouble:
            (self.folder / "log").mkdir(parents=True)
            (self.folder / "log" / "slurmctld.log").write_text("fatal: everything")
            raise LabError(f"slurmctld ended: see {self.folder}/log/slurmctld.log {self.trouble}")

    def stop(self) -> None:
        self.calls.append("stop")

    def halt(self, name: str) -> None:
        self.calls.append(f"halt {name}")

    def revive(self, name: str) -> None:
        self.calls.append(f"revive {name}")

    def run(self, program: str, *argv: str, **_: Any) -> SimpleNamespace:
        self.calls.append(program)
        return SimpleNamespace(stdout=self.answers(program, *argv))


class Site:
    """Labs of a test, and what accounting says of their jobs."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.labs = folder, list[TableLab]()
        self.answers: Table = self.all_over
        self.trouble = ""
        self.history: list[RunTable | Blind] = [ENDED]
        self._number = 10

    def all_over(self, program: str, *_: str) -> str:
        """Each job is over as soon as it is submitted."""
        if program != "sbatch":
            return ""
        self._number += 1
        return f"{self._number};demo\n"

    def lab(self, spec: LabSpec) -> TableLab:
        made = TableLab(
            self.folder / f"lab{len(self.labs)}", spec, lambda *argv: self.answers(*argv), self.trouble
        )
        self.labs.append(made)
        return made

    def runs(self, *_: object) -> RunTable | Blind:
        return self.history.pop(0) if len(self.history) > 1 else self.history[0]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    made = Site(tmp_path)
    monkeypatch.setattr("slurm_fair.demo.stage.Lab", made.lab)
    monkeypatch.setattr(
        "slurm_fair.demo.stage.SlurmHistory", lambda commands: SimpleNamespace(runs=made.runs)
    )
    monkeypatch.setattr("slurm_fair.demo.stage._LOOK_SECONDS", 0.02)
    monkeypatch.setattr("slurm_fair.demo.stage._ACCOUNTED_SECONDS", 0.25)
    return made


def stage(
    folder: Path, scheduler: Scheduler = Scheduler.FIFO, parties: int = 1, plot: DemoScenario = PLOT
) -> Stage:
    return Stage(plot, folder / scheduler.folder, scheduler, threading.Barrier(parties), threading.Event())


# -- an act that goes well ------------------------------------------------------------------------------------


def test_an_act_ends_with_its_runs_the_ids_of_its_jobs_and_nothing_left(site: Site, tmp_path: Path) -> None:
    act = stage(tmp_path)
    facts = act.run()
    assert (facts.ids, facts.left, facts.complaints) == ({"a-01": 11, "b-01": 12}, (), ())
    assert facts.runs is ENDED
    assert facts.folder == tmp_path / "fifo" / "jobs"
    assert facts.folder.is_dir()
    assert (act.picture.phase, act.picture.done) == (Phase.OVER, 2)
    assert site.labs[0].calls[-1] == "stop"
    assert site.labs[0].calls.count("sbatch") == 2


def test_the_lab_has_the_shape_and_the_shares_of_the_plot(site: Site, tmp_path: Path) -> None:
    for scheduler in Scheduler:
        stage(tmp_path, scheduler)
    ours, fair, fifo = (lab.spec for lab in site.labs)
    assert all((spec.nodes, spec.gpus_per_node) == (1, 4) for spec in (ours, fair, fifo))
    assert all(spec.tenants == {"a": 1, "b": 3} for spec in (ours, fair, fifo))
    assert dict(ours.settings) == {}
    assert fair.settings["PriorityWeightFairshare"] == "100000"
    assert fifo.settings["PriorityType"] == "priority/basic"


def test_what_is_still_in_the_queue_at_the_end_is_said(site: Site, tmp_path: Path) -> None:
    def still_there(program: str, *argv: str) -> str:
        return "a-01\nb-01\n" if program == "squeue" and argv[-1] == "%j" else site.all_over(program)

    site.answers = still_there
    assert stage(tmp_path).run().left == ("job a-01 is still there", "job b-01 is still there")


def test_the_picture_shows_what_the_queue_shows(site: Site, tmp_path: Path) -> None:
    rows = iter(["a-01|RUNNING|n[1-2]\nb-01|PENDING|\n"])
    act, seen = stage(tmp_path), []

    def listed(program: str, *argv: str) -> str:
        seen.append(act.picture)
        both = len(act._ids) == 2
        return next(rows, "") if program == "squeue" and argv[-1] != "%j" and both else site.all_over(program)

    site.answers = listed
    act.run()
    shown = next(picture for picture in seen if picture.seen)
    assert [(one.job.name, one.state, one.nodes, one.holds_gpus) for one in shown.seen] == [
        ("a-01", "RUNNING", ("n1", "n2"), True),
        ("b-01", "PENDING", (), False),
    ]
    assert (shown.done, shown.phase) == (0, Phase.PLAYING)


@pytest.mark.parametrize("scheduler", [Scheduler.FAIR_SHARE, Scheduler.FIFO])
def test_only_slurms_fair_share_is_made_to_count_usage(
    site: Site, tmp_path: Path, scheduler: Scheduler
) -> None:
    """Every two leases, which are 0.1 s here."""
    until = time.time() + 0.5

    def slow(program: str, *argv: str) -> str:
        busy = program == "squeue" and argv[-1] != "%j" and time.time() < until
        return "a-01|RUNNING|n1\n" if busy else site.all_over(program)

    site.answers = slow
    stage(tmp_path, scheduler).run()
    calls = site.labs[0].calls
    counted = scheduler is Scheduler.FAIR_SHARE
    assert ("halt slurmctld" in calls, "revive slurmctld" in calls) == (counted, counted)


def test_accounting_that_is_late_is_waited_for(site: Site, tmp_path: Path) -> None:
    site.history = [Blind(0.0, "slurmdbd is away"), ENDED]
    assert stage(tmp_path).run().runs is ENDED


# -- acts that fail -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("history", "words"),
    [
        (Blind(0.0, "slurmdbd is away"), "slurmdbd is away"),
        (runs(run(11, 1.0, 2.0)), "sacct does not know the end of every job"),
        (runs(run(11, 1.0, 2.0), run(12, 1.0)), "sacct does not know the end of every job"),
    ],
    ids=["no answer", "a job is missing", "a run has no end"],
)
def test_accounting_that_never_knows_is_told(
    site: Site, tmp_path: Path, history: RunTable | Blind, words: str
) -> None:
    site.history = [history]
    with pytest.raises(LabError, match=f"accounting is not complete after 0.25 s: {words}"):
        stage(tmp_path).run()
    assert site.labs[0].calls[-1] == "stop"


def test_a_slurm_that_does_not_come_up_leaves_its_logs_and_ends_the_other_acts(
    site: Site, tmp_path: Path
) -> None:
    site.trouble = "at once"
    act = stage(tmp_path, parties=2)
    with pytest.raises(LabError) as told:
        act.run()
    kept = tmp_path / "fifo" / "slurm-logs" / "slurmctld.log"
    assert str(kept) in str(told.value)
    assert kept.read_text() == "fatal: everything"
    assert site.labs[0].calls == ["start", "stop"]
    assert act._stop.is_set()
    assert act._together.broken


def test_an_act_whose_others_cannot_begin_ends_before_it_submits(site: Site, tmp_path: Path) -> None:
    act = stage(tmp_path, parties=2)
    act._together.abort()
    with pytest.raises(Stopped, match="another act could not begin"):
        act.run()
    assert site.labs[0].calls == ["start", "stop"]


def test_an_act_that_is_stopped_ends_at_once(site: Site, tmp_path: Path) -> None:
    act = stage(tmp_path, plot=DemoScenario(1, 4, 900.0, 1.0, JOBS, {"a": 1, "b": 3}, least_rho=0.5))
    act._stop.set()
    began = time.monotonic()
    with pytest.raises(Stopped, match="stopped"):
        act.run()
    assert time.monotonic() - began < 5
    assert "sbatch" not in site.labs[0].calls


def test_jobs_that_never_end_are_counted_when_the_time_is_up(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DemoScenario, "limit_seconds", 0.3)

    def endless(program: str, *argv: str) -> str:
        return "a-01|RUNNING|n1\n" if program == "squeue" else site.all_over(program)

    site.answers = endless
    with pytest.raises(LabError, match="1 jobs had not ended after 0 s"):
        stage(tmp_path).run()
    assert site.labs[0].calls[-1] == "stop"


# -- all acts together ----------------------------------------------------------------------------------------


def watch(stages: Sequence[Act], over: Callable[[], bool]) -> None:
    del stages
    while not over():
        time.sleep(0.01)


def test_a_failure_is_told_before_the_acts_that_it_stopped(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first act waits for the others, and the last one cannot begin."""
    monkeypatch.setattr("slurm_fair.demo.stage.Controller.start", lambda self, text: None)

    def lab(spec: LabSpec) -> TableLab:
        site.trouble = "at once" if len(site.labs) == 2 else ""
        return site.lab(spec)

    monkeypatch.setattr("slurm_fair.demo.stage.Lab", lab)
    with pytest.raises(LabError, match="slurmctld ended"):
        play(PLOT, tmp_path, True, watch)
    assert [made.calls[-1] for made in site.labs] == ["stop"] * 3


def test_who_stops_watching_stops_every_act(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slurm_fair.demo.stage.Controller.start", lambda self, text: None)

    def leaves(stages: Sequence[Act], over: Callable[[], bool]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        play(PLOT, tmp_path, False, leaves)
    assert [made.calls[-1] for made in site.labs] == ["stop"]


# -- what a journal tells of an act ---------------------------------------------------------------------------


def test_a_journal_tells_pre_emptions_and_whose_grace_passed(tmp_path: Path) -> None:
    def requeued(number: int, why: str) -> Event:
        return Event(10.0, "requeued", pack(number), "a", 2, {"why": why})

    events = (
        requeued(11, ANSWERED),
        requeued(12, NO_ANSWER),
        requeued(12, ANSWERED),
        requeued(99, NO_ANSWER),
    )
    with open_journal(tmp_path / "journal.db") as journal:
        seconds = {"observe": 0.25, "plan": 0.5}
        journal.append(journals.tick(1, events=events, seconds=seconds), journals.standing(1))
    facts = facts_of_the_journal(tmp_path / "journal.db", {"a-01": 11, "b-01": 12})
    assert facts == {"requeued": 4, "unanswered": frozenset({12}), "tick_seconds": (0.75,)}


def test_an_act_without_a_daemon_says_that_nothing_was_taken_from_anybody() -> None:
    facts = ActFacts(ENDED, {}, Path("x"))
    assert (facts.requeued, facts.unanswered, facts.tick_seconds, facts.daemon_code) == (
        0,
        frozenset(),
        (),
        0,
    )


def test_the_counter_is_a_file_that_is_installed() -> None:
    assert COUNTER.is_file()
