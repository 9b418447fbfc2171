"""A job's own output tells of its leases."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from slurm_fair_templates import Options
from tests.support.job_runs import Run, starting

SLEEPER = "#!/bin/sh\necho ready; sleep 60\n"


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """Starts runs in the test's folder."""
    with starting(tmp_path) as begin:
        yield begin


def said(run: Run) -> list[str]:
    """Our lines, without the time of day; a busy machine saves in a few seconds."""
    lines = [line for line in run.text().splitlines() if line.startswith("slurm_fair: ")]
    plain = [re.sub(r"\d\d:\d\d:\d\d", "TIME", line.removeprefix("slurm_fair: ")) for line in lines]
    return [re.sub(r"saved in \d s,", "saved in 0 s,", line) for line in plain]


def published(folder: Path, *whom: dict[str, str], restart: int = 0, when: float = 0.0) -> None:
    """The controller's publication of the job that it has just asked."""
    request = {"time": when or time.time(), "why": "its lease is over", "for": whom}
    document = {"v": 1, "restart": restart, "lease_end": 1234.5, "asked": request}
    (folder / "7.json").write_text(json.dumps(document))


def asked(start: Callable[..., Run], folder: Path, **env: str) -> Run:
    """A run that saves by a command, asked once, that has answered."""
    options = Options(checkpoint_command="true", publish_dir=str(folder), grace_seconds=60)
    run = start(SLEEPER, options=options, **env)
    run.says("ready")
    run.ask()
    run.until(lambda: "waiting to be requeued" in run.text())
    return run


def test_a_job_that_was_asked_says_when_and_that_it_saved(start: Callable[..., Run], tmp_path: Path) -> None:
    began = time.monotonic()
    run = asked(start, tmp_path)
    request, answer = said(run)
    assert request == "asked to save at TIME"
    took = re.fullmatch(r"saved in (\d+) s, waiting to be requeued", answer)
    assert took is not None
    assert (
        int(took[1]) <= time.monotonic() - began + 1
    )  # whole seconds of the clock, which may just have turned
    (when,) = re.findall(r"at (\d\d:\d\d:\d\d)", run.text())
    assert (
        abs(time.time() - time.mktime(time.strptime(time.strftime("%F ") + when, "%Y-%m-%d %H:%M:%S"))) < 30
    )


@pytest.mark.parametrize("exits", [False, True])
def test_a_job_that_is_requeued_a_moment_after_its_answer_has_said_so(
    start: Callable[..., Run], tmp_path: Path, exits: bool
) -> None:
    """The controller needs a few milliseconds from the answer to the requeue."""
    options = Options(
        checkpoint_command="" if exits else "true", exits_when_saved=exits, publish_dir=str(tmp_path)
    )
    run = start(
        "#!/bin/bash\ntrap 'exit 0' USR2\necho ready; while :; do sleep 0.05; done\n", options=options
    )
    run.says("ready")
    published(tmp_path, {"job": "10", "tenant": "speech"})
    run.ask()
    run.until(lambda: bool(run.read("ack.json")))
    run.requeue()
    asked = "asked to save at TIME (its lease is over, for job 10 of speech)"
    assert said(run) == [asked, "saved in 0 s, waiting to be requeued"]


@pytest.mark.parametrize(
    ("whom", "words"),
    [
        ([], "its lease is over"),
        ([{"job": "10", "tenant": "speech"}], "its lease is over, for job 10 of speech"),
        ([{"job": "10_2", "tenant": ""}], "its lease is over, for job 10_2"),
        ([{"job": "7", "tenant": "vision"}], "its lease is over, it is to run elsewhere"),
        (
            [{"job": "10", "tenant": "speech"}, {"job": "11", "tenant": "nlp"}],
            "its lease is over, for job 10 of speech and others",
        ),
    ],
)
def test_a_job_says_why_and_for_whom_where_that_is_published(
    start: Callable[..., Run], tmp_path: Path, whom: list[dict[str, str]], words: str
) -> None:
    published(tmp_path, *whom)
    assert said(asked(start, tmp_path))[0] == f"asked to save at TIME ({words})"


def test_what_is_published_a_little_later_is_said_too(start: Callable[..., Run], tmp_path: Path) -> None:
    options = Options(checkpoint_command="sleep 1", publish_dir=str(tmp_path))
    run = start(SLEEPER, options=options)
    run.says("ready")
    run.ask()
    time.sleep(0.3)
    published(tmp_path, {"job": "10", "tenant": "speech"})
    run.says("for job 10 of speech")


@pytest.mark.parametrize(
    ("what", "changes"),
    [
        ("another run", {"restart": 3}),
        ("a request of long ago", {"when": 1000.0}),
    ],
)
def test_what_is_published_of_something_else_is_not_said(
    start: Callable[..., Run], tmp_path: Path, what: str, changes: dict[str, Any]
) -> None:
    published(tmp_path, **changes)
    assert said(asked(start, tmp_path))[0] == "asked to save at TIME", what


@pytest.mark.parametrize(
    "text",
    ["", "{", "\x1b]0;x\x07", '{"restart": 0, "asked": {"time": 1e400, "why": "x"}}', "\x00" * 200_000],
)
def test_odd_text_that_is_published_harms_nothing(
    start: Callable[..., Run], tmp_path: Path, text: str
) -> None:
    (tmp_path / "7.json").write_text(text)
    assert said(asked(start, tmp_path))[0] == "asked to save at TIME"


@pytest.mark.parametrize("escaped", [True, False])
def test_no_control_character_reaches_the_output(
    start: Callable[..., Run], tmp_path: Path, escaped: bool
) -> None:
    asked_of = {
        "time": time.time(),
        "why": "red\x1b[31m\x07\u009b",
        "for": [{"job": "1\x1b2", "tenant": "a\x1b"}],
    }
    text = json.dumps({"v": 1, "restart": 0, "asked": asked_of}, ensure_ascii=False)
    raw = text.replace("\\u001b", "\x1b").replace("\\u0007", "\x07")
    (tmp_path / "7.json").write_text(text if escaped else raw)
    run = asked(start, tmp_path)
    assert escaped or "red?[31m" in run.text(), "the text of the request was read"
    assert not re.search(r"[^\n\x20-\x7e]", run.text())
    assert all(len(line) <= 300 for line in run.text().splitlines())


def test_a_program_that_answers_itself_has_its_step_and_time_said(
    start: Callable[..., Run], tmp_path: Path
) -> None:
    run = start(SLEEPER)
    run.says("ready")
    run.ask()
    run.until(lambda: run.read("request.json").get("request") == 1)
    head = {"v": 1, "what": "ack", "job": "7", "restart": 0, "request": 1}
    answer = {**head, "saved": True, "step": 118, "save_s": 0.4, "time": time.time()}
    (run.messages / "ack.json").write_text(json.dumps(answer))
    run.says("slurm_fair: saved step 118 in 0.4 s, waiting to be requeued\n")


def test_a_job_that_could_not_save_says_so(start: Callable[..., Run]) -> None:
    run = start(SLEEPER, options=Options(checkpoint_command="false"))
    run.says("ready")
    run.ask()
    run.says("slurm_fair: nothing could be saved, waiting to be requeued\n")


def test_a_job_whose_gpus_nobody_took_says_that_it_goes_on(start: Callable[..., Run]) -> None:
    run = start(SLEEPER, options=Options(checkpoint_command="true", grace_seconds=2))
    run.says("ready")
    run.ask()
    run.says("slurm_fair: nobody took the GPUs, the job goes on\n")


def renewed(folder: Path) -> None:
    """The controller's publication of a job whose request is withdrawn."""
    (folder / "7.json").write_text(json.dumps({"v": 1, "restart": 0, "lease_end": time.time() + 99.5}))


def test_a_job_that_has_not_answered_hears_that_its_request_is_withdrawn(
    start: Callable[..., Run], tmp_path: Path
) -> None:
    run = start(SLEEPER, options=Options(publish_dir=str(tmp_path), grace_seconds=60))
    run.says("ready")
    published(tmp_path, {"job": "10", "tenant": "speech"})
    run.ask()
    run.says("for job 10 of speech")
    assert "goes on" not in run.text()
    renewed(tmp_path)
    run.says("slurm_fair: nobody needs its GPUs any more, the job goes on\n")


def test_a_request_that_was_withdrawn_before_anybody_read_it_is_told_too(
    start: Callable[..., Run], tmp_path: Path
) -> None:
    run = start(SLEEPER, options=Options(publish_dir=str(tmp_path), grace_seconds=60))
    run.says("ready")
    renewed(tmp_path)
    run.ask()
    run.says("slurm_fair: nobody needs its GPUs any more, the job goes on\n")
    assert said(run)[0] == "asked to save at TIME"


def test_a_job_that_never_answers_says_that_it_goes_on_and_once_for_two_requests(
    start: Callable[..., Run],
) -> None:
    run = start(SLEEPER, options=Options(grace_seconds=2), slurm_fair_look_seconds="1")
    run.says("ready")
    run.ask()
    run.until(lambda: run.read("request.json").get("request") == 1)
    run.ask()
    run.says("slurm_fair: nobody took the GPUs, the job goes on\n")
    run.requeue()
    assert said(run) == [*["asked to save at TIME"] * 2, "nobody took the GPUs, the job goes on"]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"saved": True, "step": 118}, ", step 118 is saved"),
        ({"saved": True, "step": None}, ""),
        ({"saved": False, "step": 118}, ""),
        ({"saved": True, "step": 118, "job": "8"}, ""),
    ],
)
def test_a_later_run_says_where_it_begins_and_what_is_saved(
    start: Callable[..., Run], tmp_path: Path, answer: dict[str, Any], words: str
) -> None:
    folder = tmp_path / ".slurm-fair" / "7"
    folder.mkdir(parents=True)
    head = {"v": 1, "what": "ack", "job": "7", "restart": 0, "request": 1}
    (folder / "ack.json").write_text(json.dumps(head | answer | {"time": 1}))
    run = start("#!/bin/sh\ntrue\n", SLURM_RESTART_COUNT="1", SLURM_JOB_NODELIST="n[4-5]")
    assert run.ends() == 0
    assert said(run) == [f"run 2 begins on n[4-5]{words}"]


def test_a_first_run_says_nothing_of_itself(start: Callable[..., Run]) -> None:
    run = start("#!/bin/sh\ntrue\n")
    assert run.ends() == 0
    assert run.text() == ""
