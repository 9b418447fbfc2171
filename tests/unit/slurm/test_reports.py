"""RunReports of running jobs: read a few at a time, each number checked, and nobody's file costs anybody else."""

from __future__ import annotations

import json
import math
import os
import pwd
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from slurm_fair.model import JobState, Mode, Reported, Snapshot, label
from slurm_fair.model.ids import pack
from slurm_fair.slurm.command import Commands
from slurm_fair.slurm.reading import report_comments
from slurm_fair.slurm.reading.details import Details, JobDetails
from slurm_fair.slurm.reading.messages import Wanted, job_directory
from slurm_fair.slurm.reading.readers import Message, Readers
from slurm_fair.slurm.reading.reports import EVERY_SECONDS, RunReports, judged
from slurm_fair.slurm.reading.stamp import Stamp
from tests.support.builders import JobSpec, job, snapshot
from tests.support.fake_commands import FakeCommands
from tests.support.fake_slurm import PushedClock, World

ME = pwd.getpwuid(os.geteuid()).pw_name
START, NOW = 1000.0, 1100.0
GOOD: dict[str, Any] = {
    "restart": 0, "time": 1090.0, "step": 40, "steps": 2000, "epoch": 1.5, "epochs": 20, "steps_per_s": 3.5,
    "samples_per_s": 448, "batch_size": 128, "mode": "gns", "model": "resnet50", "pattern": 2, "data": 0.01,
    "forward": 0.1, "backward": 0.15, "update": 0.02, "sync": 0.0,
}  # fmt: skip


def said(**changes: object) -> dict[str, Any]:
    """The values that are taken from a report that is good but for these."""
    return judged(GOOD | changes, (7, 0, START), NOW)


def test_a_good_report_is_taken_whole() -> None:
    assert said() == {
        "written": 1090.0, "step": 40.0, "steps": 2000.0, "epoch": 1.5, "epochs": 20.0, "steps_per_second": 3.5,
        "samples_per_second": 448.0, "batch_size": 128.0, "mode": Mode.GNS, "model": "resnet50", "pattern": 2,
        "data": 0.01, "forward": 0.1, "backward": 0.15, "update": 0.02, "sync": 0.0,
    }  # fmt: skip


@pytest.mark.parametrize(
    "changes",
    [
        {"restart": 1},
        {"restart": "0"},
        {"restart": False},
        {"restart": None},
        {"time": START - 61},
        {"time": NOW + 61},
        {"time": math.nan},
        {"time": math.inf},
        {"time": "1090"},
        {"time": True},
        {"time": 10**400},
    ],
)
def test_what_is_no_report_of_this_run_says_nothing(changes: dict[str, object]) -> None:
    assert said(**changes) == {}


@pytest.mark.parametrize("time", [START - 59, NOW + 59])
def test_clocks_may_differ_by_a_minute(time: float) -> None:
    assert said(time=time)["step"] == 40


@pytest.mark.parametrize(
    "value", [-1, -1e-9, math.nan, math.inf, -math.inf, 1e400, 10**400, 2e15, True, "3", None]
)
@pytest.mark.parametrize("key", ["step", "steps", "epoch", "epochs"])
def test_a_number_that_cannot_be_costs_that_number(key: str, value: object) -> None:
    found = said(**{key: value})
    assert key not in found
    assert len(found) == len(said()) - 1


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("steps_per_s", 2e12),
        ("samples_per_s", -3),
        ("batch_size", 0),
        ("batch_size", 0.5),
        ("batch_size", 2e9),
        ("data", 2e6),
        ("sync", -0.1),
        ("pattern", 3),
        ("pattern", True),
        ("mode", "other"),
        ("mode", 1),
        ("model", ""),
        ("model", "x" * 65),
        ("model", "a\x1b[31m"),
        ("model", 7),
    ],
)
def test_each_kind_of_value_has_its_range(key: str, value: object) -> None:
    assert len(said(**{key: value})) == len(said()) - 1


# -- the way from the files -------------------------------------------------------------------------------


@dataclass
class Counting(Readers):
    """Readers that note what they are asked for."""

    asked: list[list[str]] = field(default_factory=list)

    def read(self, wanted: Mapping[int, Wanted], begin_seconds: float = 60.0) -> dict[int, Message]:
        """Read with time enough on any machine."""
        self.asked.append([each.job for each in wanted.values()])
        return super().read(wanted, 60.0)


class Known(JobDetails):
    """Details of jobs of which the working folders are known."""

    work = ""

    def of(self, record: int, restarts: int) -> Details:
        """All in one folder."""
        return Details(Stamp(1), self.work, ())


@pytest.fixture
def reports(tmp_path: Path) -> Iterator[RunReports]:
    """The reports as a look has them."""
    details = Known(FakeCommands(World(PushedClock(), {"n1": 4})))
    details.work = str(tmp_path)
    made = RunReports(details, Counting(patience=60.0))
    yield made
    made.readers.close()


def put(work: Path, number: int, **changes: object) -> None:
    """The job's report, as lease.py writes one."""
    folder = job_directory(str(work), str(number))
    folder.mkdir(parents=True, exist_ok=True)
    for each in (folder.parent, folder):
        each.chmod(0o711)
    phases = {name: GOOD[name] for name in ("data", "forward", "backward", "update", "sync")}
    document = {"v": 1, "what": "report", "job": str(number), **GOOD, "phases": phases, **changes}
    (folder / "report.json").write_text(json.dumps(document))


def running(number: int, **columns: Any) -> JobSpec:
    """A job that runs since START."""
    return job(number, user=ME, state=JobState.RUNNING, start=START, **columns)


def look(*jobs: JobSpec, time: float = NOW) -> Snapshot:
    """A look's view of them."""
    return snapshot(time=time, nodes={"n1": 1000}, jobs=jobs)


def heard(reports: RunReports, seen: Snapshot, way: str = "file") -> Reported | None:
    """The reports that one look hears."""
    return reports.of(seen, way)


def labels_of(found: Reported | None, seen: Snapshot) -> list[str]:
    """The jobs that have reported."""
    return [] if found is None else [label(seen.jobs.key.item(row)) for row in found.row.tolist()]


def asked(reports: RunReports) -> list[list[str]]:
    """The jobs whose files were read, look by look."""
    assert isinstance(reports.readers, Counting)
    return reports.readers.asked


# -- the way from the comments ----------------------------------------------------------------------------

TOKEN = "slurm_fair_report:job=1,restart=0,step=40,steps=200,batch_size=8,samples_per_s=2.5e1,time=1090"


@pytest.mark.parametrize(
    ("comment", "wanted"),
    [
        (
            TOKEN,
            {
                "restart": 0,
                "step": 40.0,
                "steps": 200.0,
                "batch_size": 8.0,
                "samples_per_s": 25.0,
                "time": 1090.0,
            },
        ),
        (f"mine {TOKEN} slurm_fair_ack:job=1", {"restart": 0, "step": 40.0}),
        (f"{TOKEN}\n{TOKEN.replace('step=40', 'step=50')}", {"step": 50.0}),
        (TOKEN.replace("job=1", "job=2"), {}),
        (f"x{TOKEN}", {}),
        (TOKEN.replace("40", "-40"), {}),
        (TOKEN.replace("40", "9" * 30), {}),
        (TOKEN.replace("2.5e1", "1e9e9"), {"restart": 0, "step": 40.0}),
        (TOKEN + ",a=1" * 20, {}),
        (TOKEN + ";rm", {}),
    ],
)
def test_a_report_in_a_comment_is_numbers_of_this_job_or_nothing(
    comment: str, wanted: dict[str, float]
) -> None:
    found = report_comments.read_report(comment, "1")
    assert {key: found.get(key) for key in wanted} == wanted
    assert bool(found) == bool(wanted)
    assert "samples_per_s" not in found or found["samples_per_s"] == 25.0


def comments(monkeypatch: pytest.MonkeyPatch, texts: dict[int, str]) -> list[list[int]]:
    """Slurm has these comments by record; the records that were asked for, call by call."""
    calls: list[list[int]] = []

    def ask(commands: Commands, records: list[int], columns: str) -> dict[int, list[str]]:
        calls.append(records)
        return {record: [text] for record, text in texts.items() if record in records}

    monkeypatch.setattr(report_comments, "ask_text", ask)
    return calls


def test_who_says_nothing_in_a_file_is_heard_by_its_comment(
    reports: RunReports, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, 2, step=7)
    calls = comments(monkeypatch, {1: TOKEN, 2: TOKEN.replace("job=1", "job=2")})
    seen = look(running(1), running(2))
    found = heard(reports, seen, "auto")
    assert found is not None
    assert (labels_of(found, seen), found.step.tolist()) == (["1", "2"], [40.0, 7.0])
    assert calls == [[1]]
    assert heard(reports, look(running(1), time=NOW + 20), "file") is not None
    assert len(calls) == 1


def test_comments_are_read_once_a_minute_and_an_old_report_is_no_silence_for_a_lease(
    reports: RunReports, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, silent = comments(monkeypatch, {1: TOKEN}), []
    for time in (NOW, NOW + 30, NOW + 61, NOW + 900, NOW + 2400):
        found = heard(reports, look(running(1), time=time), "comment")
        assert found is not None
        silent.append(found.silent_seconds.item(0))
    assert len(calls) == 4
    assert silent == [0.0, 0.0, 0.0, 0.0, 1200.0]


def test_many_jobs_are_asked_for_in_turns(reports: RunReports, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = comments(monkeypatch, dict.fromkeys(range(1, 251), ""))
    jobs = [running(number) for number in range(1, 251)]
    heard(reports, look(*jobs), "comment")
    heard(reports, look(*jobs, time=NOW + 61), "comment")
    assert [len(call) for call in calls] == [200, 200]
    assert set(calls[0]) | set(calls[1]) == set(range(1, 251))


def test_where_no_answers_are_wanted_no_comment_is_read(
    reports: RunReports, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = comments(monkeypatch, {1: TOKEN})
    assert heard(reports, look(running(1)), "none") is None
    assert calls == []


def test_what_running_jobs_wrote_stands_in_their_rows(reports: RunReports, tmp_path: Path) -> None:
    put(tmp_path, 7)
    put(tmp_path, 9, step=80, model="bert")
    seen = look(running(7), running(8), running(9))
    found = heard(reports, seen)
    assert found is not None
    assert (found.row.tolist(), found.step.tolist(), found.forward.tolist()) == ([0, 2], [40, 80], [0.1, 0.1])
    assert [found.models[model] for model in found.model.tolist()] == ["resnet50", "bert"]
    assert (found.read.tolist(), found.written.tolist()) == ([NOW, NOW], [1090.0, 1090.0])
    assert math.isnan(found.believed.item(0))


def test_jobs_that_wait_or_do_not_speak_the_protocol_are_not_read(
    reports: RunReports, tmp_path: Path
) -> None:
    for number in (7, 8, 9):
        put(tmp_path, number)
    seen = look(running(7, checkpoints=False), job(8, user=ME), running(9))
    assert labels_of(heard(reports, seen), seen) == ["9"]
    assert asked(reports) == [["9"]]


@pytest.mark.parametrize("way", ["comment", "none"])
def test_where_files_are_not_the_way_nothing_is_read(reports: RunReports, tmp_path: Path, way: str) -> None:
    put(tmp_path, 7)
    assert heard(reports, look(running(7)), way) is None
    assert asked(reports) == []


def test_a_job_is_read_again_after_a_while_and_stays_known_meanwhile(
    reports: RunReports, tmp_path: Path
) -> None:
    put(tmp_path, 7)
    heard(reports, look(running(7)))
    put(tmp_path, 7, step=90, time=1101.0)
    soon, later = (look(running(7), time=NOW + after) for after in (EVERY_SECONDS - 1, EVERY_SECONDS))
    assert [found.step.tolist() for found in (heard(reports, soon), heard(reports, later)) if found] == [
        [40],
        [90],
    ]
    assert len(asked(reports)) == 2


def test_it_is_told_for_how_long_a_report_was_not_renewed(reports: RunReports, tmp_path: Path) -> None:
    put(tmp_path, 7)
    silences = [
        found.silent_seconds.item()
        for after in (0, 10, 15, 30)
        if (found := heard(reports, look(running(7), time=NOW + after))) is not None
    ]
    assert silences == [0, 10, 10, 30], "nobody looked between"


def test_many_jobs_are_read_in_turns_and_no_user_fills_a_look(
    reports: RunReports, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slurm_fair.slurm.reading.reports._AT_ONCE", 4)
    jobs = [running(number) for number in range(1, 10)] + [
        job(99, user="nobody", state=JobState.RUNNING, start=START)
    ]
    for turn in range(4):
        heard(reports, look(*jobs, time=NOW + turn))
    turns = asked(reports)
    assert "99" in turns[0]
    assert [len(turn) for turn in turns] == [4, 4, 2]
    assert sorted(job for turn in turns for job in turn) == sorted(map(str, [*range(1, 10), 99]))


def test_a_new_run_has_not_reported_yet(reports: RunReports, tmp_path: Path) -> None:
    put(tmp_path, 7)
    assert heard(reports, look(running(7))) is not None
    again = job(7, user=ME, state=JobState.RUNNING, start=NOW + 5, restarts=1)
    assert heard(reports, look(again, time=NOW + 20)) is None, "the file is that of the run before"
    put(tmp_path, 7, restart=1, time=NOW + 30, step=41)
    found = heard(reports, look(again, time=NOW + 40))
    assert found is not None
    assert found.step.tolist() == [41]


@pytest.mark.parametrize(
    "spoilt",
    ["{", "[]", "[" * 30_000, '{"what": "report"}', "\x00\xff", json.dumps(GOOD), "{}" + " " * 70_000],
)
def test_a_bad_file_costs_its_job_and_no_other(reports: RunReports, tmp_path: Path, spoilt: str) -> None:
    put(tmp_path, 7)
    put(tmp_path, 8)
    (job_directory(str(tmp_path), "7") / "report.json").write_text(spoilt)
    seen = look(running(7), running(8))
    assert labels_of(heard(reports, seen), seen) == ["8"]


def test_a_bad_file_leaves_what_the_job_said_before(reports: RunReports, tmp_path: Path) -> None:
    put(tmp_path, 7)
    heard(reports, look(running(7)))
    (job_directory(str(tmp_path), "7") / "report.json").write_text("{")
    found = heard(reports, look(running(7), time=NOW + 20))
    assert found is not None
    assert (found.step.tolist(), found.silent_seconds.tolist()) == ([40], [20])


@pytest.mark.parametrize("how", ["link", "second name", "pipe", "directory"])
def test_what_is_no_plain_file_of_its_user_is_no_report(
    reports: RunReports, tmp_path: Path, how: str
) -> None:
    put(tmp_path, 7)
    path = job_directory(str(tmp_path), "7") / "report.json"
    path.rename(tmp_path / "elsewhere")
    if how == "link":
        path.symlink_to(tmp_path / "elsewhere")
    elif how == "second name":
        path.hardlink_to(tmp_path / "elsewhere")
    elif how == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    assert heard(reports, look(running(7))) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file away")
@pytest.mark.parametrize("whose", [".slurm-fair", ".slurm-fair/7", ".slurm-fair/7/report.json"])
def test_a_report_that_somebody_else_could_have_put_there_is_none(
    reports: RunReports, tmp_path: Path, whose: str
) -> None:
    put(tmp_path, 7)
    os.chown(tmp_path / whose, pwd.getpwnam("nobody").pw_uid, -1)
    assert heard(reports, look(running(7))) is None


def test_an_answer_is_no_report_and_a_report_of_another_job_neither(
    reports: RunReports, tmp_path: Path
) -> None:
    put(tmp_path, 7, what="ack")
    put(tmp_path, 8, job="7")
    assert heard(reports, look(running(7), running(8))) is None


def test_jobs_that_are_gone_are_forgotten(reports: RunReports, tmp_path: Path) -> None:
    put(tmp_path, 7)
    heard(reports, look(running(7)))
    assert set(reports._heard) == {pack(7)}
    heard(reports, look(running(8)))
    assert set(reports._heard) == {pack(8)}
