"""The shell runtime, run as slurmstepd runs it, but by us: requests, TERM, exit codes, what programs see."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from slurm_fair.lease import learning_rate_factor
from slurm_fair_templates import Options, wrap
from tests.support.job_runs import BASH, NOWHERE, Run, starting

PYTHON_CATCHER = f"""#!{sys.executable}
import signal, sys, time
def caught(number, frame):
    print("caught", flush=True)
signal.signal(signal.SIGUSR2, caught)
print("ready", flush=True)
time.sleep(60)
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """Starts runs in the test's folder."""
    with starting(tmp_path) as begin:
        yield begin


def is_ready(run: Run) -> None:
    """Wait until the program has its handler."""
    run.says("ready")


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("#!/bin/bash\nexit 0\n", 0),
        ("#!/bin/bash\nexit 7\n", 7),
        ("#!/bin/bash\nkill -KILL $$\n", 137),
        ("#!/bin/sh -e\nfalse\nexit 0", 1),
        ("#!/usr/bin/env python3\nimport sys; sys.exit(9)\n", 9),
        ("#!/nonexistent/interpreter\n", 127),
    ],
)
def test_the_exit_code_is_the_programs(start: Callable[..., Run], script: str, code: int) -> None:
    assert start(script).ends() == code


def test_arguments_and_script_arrive_unchanged(start: Callable[..., Run]) -> None:
    words = ["", "a b", "it's", '"$HOME"', "`id`", "c\nd", "\t", "\\", "-n", "é", "*", "SLURM_FAIR"]
    run = start(
        "#!/usr/bin/env python3\nimport json, sys\nprint(json.dumps(sys.argv[1:]))  # $HOME `x` \\\\ '\n",
        *words,
    )
    assert run.ends() == 0
    assert json.loads(run.text()) == words


@pytest.mark.parametrize(
    ("choices", "seen"),
    [((2, 4), {"a100:4", "8"}), ((), {"a100:2", "3"})],
    ids=["an elastic job", "a rigid job keeps what sbatch set"],
)
def test_steps_of_srun_are_asked_for_with_the_size_of_this_run(
    start: Callable[..., Run], choices: tuple[int, ...], seen: set[str]
) -> None:
    run = start(
        "#!/bin/sh\necho size $SLURM_FAIR_GPUS $SLURM_FAIR_NODES\nprintenv SLURM_GPUS_PER_NODE SLURM_GPUS\n",
        options=Options(gpus_choices=choices, gpus_reference=2),
        SLURM_GPUS_ON_NODE="4",
        SLURM_JOB_NUM_NODES="2",
        SLURM_GPUS_PER_NODE="a100:2",
        SLURM_GPUS="3",
    )
    assert run.ends() == 0
    first, *others = run.text().splitlines()
    assert first == "size 8 2"
    assert set(others) == seen


@pytest.mark.parametrize("gpus", [1, 2, 4, 8])
@pytest.mark.parametrize("rule", ["fixed", "linear", "sqrt", "1=0.3,2=0.1,4=2e-1,8=0.25"])
def test_the_environment_has_the_factor_that_the_python_side_works_out(
    start: Callable[..., Run], rule: str, gpus: int
) -> None:
    run = start(
        "#!/bin/sh\necho $SLURM_FAIR_LR_FACTOR\n",
        options=Options(gpus_choices=(1, 2, 4, 8), gpus_reference=2, lr_rule=rule),
        SLURM_GPUS_ON_NODE=str(gpus),
    )
    assert run.ends() == 0
    assert float(run.text()) == pytest.approx(learning_rate_factor(rule, gpus, 2))


def test_the_program_sees_what_the_protocol_promises(start: Callable[..., Run], tmp_path: Path) -> None:
    options = Options(
        grace_seconds=33, gpus_choices=(1, 2, 4), lr_rule="sqrt", app="my search", signal="USR1"
    )
    run = start(
        "#!/bin/sh\nenv | grep ^SLURM_FAIR_ | sort\n", options=options, SLURM_FAIR_DIR="/the/parent/jobs"
    )
    assert run.ends() == 0
    seen = dict(line.split("=", 1) for line in run.text().splitlines())
    assert seen == {
        "SLURM_FAIR_MANAGED": "1",
        "SLURM_FAIR_NODES": "1",
        "SLURM_FAIR_DIR": f"{tmp_path}/.slurm-fair/7",
        "SLURM_FAIR_SIGNAL": "USR1",
        "SLURM_FAIR_GRACE": "33",
        "SLURM_FAIR_GPUS_CHOICES": "1,2,4",
        "SLURM_FAIR_GPUS": "0",
        "SLURM_FAIR_GPUS_REFERENCE": "",
        "SLURM_FAIR_LR_FACTOR": "1",
        "SLURM_FAIR_LR_RULE": "sqrt",
        "SLURM_FAIR_APP": "my search",
        "SLURM_FAIR_LEASE_PY": "",
        "SLURM_FAIR_PUBLISH_DIR": "",
    }
    assert run.messages.stat().st_mode & 0o777 == 0o711
    assert list(run.messages.iterdir()) == []


def test_an_array_task_has_a_folder_of_its_own(start: Callable[..., Run], tmp_path: Path) -> None:
    run = start("#!/bin/sh\necho $SLURM_FAIR_DIR\n", SLURM_ARRAY_JOB_ID="5", SLURM_ARRAY_TASK_ID="3")
    assert run.ends() == 0
    assert run.text() == f"{tmp_path}/.slurm-fair/5_3\n"


def test_without_a_folder_the_job_runs_all_the_same(start: Callable[..., Run], tmp_path: Path) -> None:
    (tmp_path / ".slurm-fair").write_text("a file in the way")
    run = start("#!/bin/sh\necho runs; exit 4\n")
    assert run.ends() == 4
    assert "answers go by the job's comment" in run.text()
    assert "runs" in run.text()


def test_a_request_reaches_the_program_that_catches_it_and_kills_no_other(start: Callable[..., Run]) -> None:
    catcher = PYTHON_CATCHER.partition("\n")[2].replace("time.sleep(60)", "time.sleep(1)")
    run = start(
        f"#!/bin/bash\nsleep 60 & bystander=$!\n{sys.executable} -c '{catcher}'\nkill -0 $bystander && echo both\n"
    )
    is_ready(run)
    run.ask()
    run.says("caught")
    run.says("both")
    assert run.ends() == 0
    assert run.read("request.json")["request"] == 1
    assert run.read("ack.json") == {}


def test_a_script_with_a_trap_of_its_own_is_asked_too(start: Callable[..., Run]) -> None:
    run = start("#!/bin/bash\ntrap 'echo asked; exit 3' USR2\necho ready\nwhile :; do sleep 0.1; done\n")
    is_ready(run)
    run.ask()
    assert run.ends() == 3
    assert "asked" in run.text()


def test_nobody_is_signalled_if_so_wished_but_the_request_is_written(start: Callable[..., Run]) -> None:
    run = start(PYTHON_CATCHER, options=Options(pass_on="none"))
    is_ready(run)
    run.ask()
    run.until(lambda: run.read("request.json").get("request") == 1)
    run.ask(signal.SIGTERM)
    assert run.ends() == 143
    assert "caught" not in run.text()


def test_each_request_has_its_number_and_the_run_is_named(start: Callable[..., Run]) -> None:
    run = start("#!/bin/sh\necho ready; sleep 60\n", SLURM_RESTART_COUNT="4")
    is_ready(run)
    for number in (1, 2, 3):
        run.ask()
        run.until(lambda number=number: run.read("request.json").get("request") == number)  # type: ignore[misc]
    assert run.read("request.json")["restart"] == 4
    assert run.process.poll() is None


def test_a_request_during_the_start_is_kept(start: Callable[..., Run], tmp_path: Path) -> None:
    """A slow first line stands for a slow start: the trap is older than it."""
    script = wrap("#!/bin/sh\ncat $SLURM_FAIR_DIR/request.json; exit 0\n", (), Options(), NOWHERE)
    early = script.replace("export SLURM_FAIR_MANAGED=1", "kill -USR2 $$; export SLURM_FAIR_MANAGED=1")
    assert early != script
    (tmp_path / "early").write_text(early + "\n")
    done = subprocess.run(
        [BASH, "early"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert done.returncode == 0
    assert json.loads((tmp_path / ".slurm-fair" / "none" / "request.json").read_text())["request"] == 1


def test_term_ends_the_program_and_its_children(start: Callable[..., Run]) -> None:
    run = start("#!/bin/bash\nsleep 60 & echo child $!; echo ready; wait\n")
    is_ready(run)
    child = int(run.text().split()[1])
    run.ask(signal.SIGTERM)
    assert run.ends() == 143
    run.until(
        lambda: (
            not Path(f"/proc/{child}").exists() or "Z" in Path(f"/proc/{child}/stat").read_text().split()[2]
        )
    )


def test_term_waits_for_a_program_that_takes_its_time(start: Callable[..., Run]) -> None:
    run = start(
        "#!/bin/bash\ntrap 'sleep 0.5; echo tidy; exit 5' TERM\necho ready\nwhile :; do sleep 0.1; done\n"
    )
    is_ready(run)
    run.ask(signal.SIGTERM)
    assert run.ends() == 5
    assert "tidy" in run.text()


def test_a_checkpoint_command_saves_and_the_runtime_answers(start: Callable[..., Run]) -> None:
    options = Options(
        checkpoint_command="echo saving $SLURM_FAIR_REQUEST; sleep 0.3; [ $SLURM_FAIR_REQUEST != 2 ]"
    )
    run = start("#!/bin/sh\necho ready; sleep 60\n", options=options)
    is_ready(run)
    for number, saved in ((1, True), (2, False), (3, True)):
        run.ask()
        run.until(lambda number=number: run.read("ack.json").get("request") == number)  # type: ignore[misc]
        answer = run.read("ack.json")
        assert (answer["v"], answer["restart"], answer["saved"], answer["step"]) == (1, 0, saved, None)
        assert run.process.poll() is None
    run.ask(signal.SIGTERM)
    assert run.ends() == 143


def test_requests_that_come_while_it_saves_are_answered_in_order(start: Callable[..., Run]) -> None:
    options = Options(checkpoint_command="echo begin; sleep 0.4; echo end")
    run = start("#!/bin/sh\necho ready; sleep 60\n", options=options)
    is_ready(run)
    run.ask()
    run.says("begin")
    run.ask()
    run.until(lambda: run.read("ack.json").get("request") == 2)
    said = [line for line in run.text().splitlines() if not line.startswith("slurm_fair: ")]
    assert said == ["ready", "begin", "end", "begin", "end"]


def test_a_program_that_saves_and_exits_is_answered_for_and_run_again(start: Callable[..., Run]) -> None:
    script = "#!/bin/bash\ntrap 'exit 0' USR2\necho start; echo ready >&2\nwhile :; do sleep 0.05; done\n"
    run = start(script, options=Options(exits_when_saved=True, grace_seconds=1))
    is_ready(run)
    run.ask()
    run.until(lambda: run.read("ack.json").get("request") == 1)
    assert run.read("ack.json")["saved"] is True
    run.until(lambda: run.text().count("start") == 2)
    run.ask(signal.SIGTERM)
    assert run.ends() == 143


def test_a_program_that_saves_on_term_and_exits_can_be_leased_too(start: Callable[..., Run]) -> None:
    script = "#!/bin/bash\ntrap 'echo saved; exit 0' TERM\necho ready\nwhile :; do sleep 0.05; done\n"
    run = start(script, options=Options(signal="TERM"))
    is_ready(run)
    run.ask(signal.SIGTERM)
    run.until(lambda: run.read("ack.json").get("request") == 1)
    run.ask(signal.SIGTERM)
    assert run.ends() == 143


def test_a_later_runs_answer_is_not_overwritten_by_an_earlier_run(start: Callable[..., Run]) -> None:
    run = start("#!/bin/sh\necho ready; sleep 60\n", options=Options(checkpoint_command="echo saved"))
    is_ready(run)
    (run.messages / "ack.json").write_text('{"v": 1, "restart": 1, "request": 1}\n')
    run.ask()
    run.says("saved")
    run.ask(signal.SIGTERM)
    run.ends()
    assert run.read("ack.json") == {"v": 1, "restart": 1, "request": 1}
