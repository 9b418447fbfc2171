"""fair-sbatch in this process: the site's gate, the script, and what sbatch and its user are told."""

from __future__ import annotations

import math
import os
import re
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import slurm_fair_templates as templates
from slurm_fair.board.health import NAME, DaemonState, Health
from slurm_fair.cli.fair_sbatch import (
    NO_PROFILER,
    NOT_REQUEUED,
    TOO_BIG,
    SiteGate,
    fair_sbatch,
    gate_from,
    lease_file,
    no_turn,
    run_sbatch,
    script_and_arguments,
    site_gate,
    waits_for_end,
)
from slurm_fair.errors import InputError, SlurmError
from slurm_fair.looks.bell import Bell

SBATCH = """#!/bin/sh
cat >"$STUB_OUT/script"
printf '%s\\n' "$@" >"$STUB_OUT/argv"
exit ${STUB_CODE:-0}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder: a script in it, a stub in sbatch's place, and a site without a configuration."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sbatch").write_text(SBATCH)
    (tmp_path / "bin" / "sbatch").chmod(0o755)
    (tmp_path / "s.sh").write_text("#!/bin/sh\n#SBATCH -G2\ntrue\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("STUB_OUT", str(tmp_path))
    monkeypatch.setenv("SLURM_FAIR_CONFIG", str(tmp_path / "slurm-fair.toml"))
    for name in [name for name in os.environ if name.startswith(("SBATCH_", "SLURM_FAIR_GATE"))]:
        monkeypatch.delenv(name)
    return tmp_path


def site(folder: Path, **tree: dict[str, Any]) -> None:
    """Give the site this configuration."""
    lines = [
        line
        for section, values in tree.items()
        for line in (f"[{section}]", *(f"{name} = {value}" for name, value in values.items()))
    ]
    (folder / "slurm-fair.toml").write_text("\n".join(lines))


def say(folder: Path, state: DaemonState = DaemonState.ACTING, age: float = 0.0) -> None:
    """Have a controller say this of itself, so many seconds ago."""
    now = time.time()
    (folder / NAME).write_text(Health(now - age, 10.0, now - age, state).text())


def call(*words: str) -> Result:
    return CliRunner().invoke(fair_sbatch, words, prog_name="fair-sbatch", catch_exceptions=False)


def argv(folder: Path) -> list[str]:
    return (folder / "argv").read_text().splitlines()


# -- the site's gate ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [None, "[lease\n", "[slurm]\ngate = 'no such gate'\n", "\x00=\x1b[31m"])
def test_where_no_configuration_can_be_read_the_usual_gate_is_set(folder: Path, text: str | None) -> None:
    if text is not None:
        (folder / "slurm-fair.toml").write_text(text)
    assert site_gate() == SiteGate("begin", 1800, "", "auto", math.inf, math.inf)


def test_the_gate_holds_for_two_leases_of_the_site(folder: Path) -> None:
    say(folder)
    site(
        folder,
        lease={"term": 450.7, "publish_dir": f"'{folder}'"},
        slurm={"gate": "'hold'", "reports": "'comment'"},
    )
    assert site_gate() == SiteGate("hold", 901, str(folder), "comment", 0, 600.0)


STOPPED, BLIND, PAUSED, SHADOW = (
    DaemonState.STOPPED,
    DaemonState.BLIND,
    DaemonState.PAUSED,
    DaemonState.SHADOW,
)


@pytest.mark.parametrize("kind", ["begin", "hold"])
@pytest.mark.parametrize(
    ("state", "age", "acts"),
    [
        (DaemonState.ACTING, 80, True),
        (DaemonState.ACTING, 100, False),  # three intervals and a minute: it is dead
        (DaemonState.ACTING, -100, False),  # the clock was set back since
        *((state, 0, False) for state in (STOPPED, BLIND, PAUSED, SHADOW)),
    ],
)
def test_a_job_waits_behind_no_gate_that_nobody_would_open(
    folder: Path, kind: str, state: DaemonState, age: float, acts: bool
) -> None:
    site(folder, lease={"publish_dir": f"'{folder}'"}, slurm={"gate": f"'{kind}'"})
    say(folder, state, age)
    assert call("s.sh").exit_code == 0
    words = " ".join(argv(folder))
    assert (("--hold" in words) or ("--begin=uts" in words)) is acts
    assert (",gate=" in words) is acts


@pytest.mark.parametrize("text", [None, "", "{}", "no health"])
def test_where_nobody_can_tell_whether_the_controller_acts_the_gate_ends_by_itself(
    folder: Path, text: str | None
) -> None:
    site(folder, lease={"publish_dir": f"'{folder}'"}, slurm={"gate": "'hold'"})
    if text is not None:
        (folder / NAME).write_text(text)
    assert site_gate().kind == "begin"
    site(folder, lease={"publish_dir": "''"}, slurm={"gate": "'hold'"})
    assert site_gate().kind == "begin"


def test_a_gate_holds_for_a_second_at_least(folder: Path) -> None:
    site(folder, lease={"term": 0.4, "interval": 0.1, "grace": 0.1})
    assert site_gate().seconds == 1


@pytest.mark.parametrize(("enabled", "gpus"), [("true", 16), ("false", 0)])
def test_a_site_without_a_profiler_has_no_gpus_for_its_turns(folder: Path, enabled: str, gpus: int) -> None:
    site(folder, profiler={"enabled": enabled, "gpus": 16})
    assert site_gate().turn_gpus == gpus


def test_the_environment_may_name_another_gate_and_nothing_else() -> None:
    mine = SiteGate("hold", 99, "/run/x", "off", 4)
    assert gate_from({}, mine) == mine
    assert gate_from({"SLURM_FAIR_GATE": "begin"}, mine) == SiteGate("begin", 99, "/run/x", "off", 4)


@pytest.mark.parametrize("kind", ["", "no such gate", "hold\n--uid=0"])
def test_a_gate_that_is_none_is_refused_in_one_line(
    folder: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_FAIR_GATE", kind)
    done = call("s.sh")
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert "gate" in done.stderr
    assert not (folder / "argv").exists()


# -- the script -----------------------------------------------------------------------------------------------


def line(script: str | None, *words: str) -> templates.CommandLine:
    return templates.split([*words, *([script] if script else [])])


def test_a_script_is_read_whole_whatever_its_bytes(folder: Path) -> None:
    (folder / "odd.sh").write_bytes(b"#!/bin/sh\n\xff\x00\r\n")
    text, _ = script_and_arguments(line("odd.sh"))
    assert text.encode("utf-8", "surrogateescape") == b"#!/bin/sh\n\xff\x00\r\n"


def test_a_script_in_a_pipe_is_read_to_its_end() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"#!/bin/sh\n")
    os.close(writing)
    try:
        assert script_and_arguments(line(f"/dev/fd/{reading}"))[0] == "#!/bin/sh\n"
    finally:
        os.close(reading)


@pytest.mark.parametrize("name", ["absent.sh", ".", "s.sh/below", "x" * 300, "a=b\u202e.sh"])
def test_a_script_that_cannot_be_read_is_named_with_the_reason(name: str) -> None:
    with pytest.raises(InputError, match=r"; give the path of a readable file$") as told:
        script_and_arguments(line(name))
    assert str(told.value).startswith(f"script {name}: ")


def test_a_script_as_long_as_sbatch_never_takes_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slurm_fair.cli.fair_sbatch._MOST_BYTES", 30)
    (folder / "long.sh").write_text("#!/bin/sh\n" + "x" * 20)
    assert len(script_and_arguments(line("long.sh"))[0]) == 30
    (folder / "long.sh").write_text("#!/bin/sh\n" + "x" * 21)
    with pytest.raises(InputError, match=r"script long\.sh: is longer than any script: 30 bytes at most"):
        script_and_arguments(line("long.sh"))


def test_a_command_takes_the_place_of_a_script_and_not_both() -> None:
    assert script_and_arguments(line(None, "--wrap=hostname"))[0].endswith("\nhostname\n")
    for wrong, words in ((line("s.sh", "--wrap=x"), "exclude each other"), (line(None), "no script given")):
        with pytest.raises(InputError, match=words):
            script_and_arguments(wrong)


# -- the profiler ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("most", "gpus", "stays", "words"),
    [
        (math.inf, 64, "", ()),
        (8, 8, "", ()),
        (8, 0, "", ()),
        (0, 1, "", (NO_PROFILER,)),
        (0, 1, "--no-requeue", (NO_PROFILER,)),
        (8, 9, "--no-requeue", (TOO_BIG.format(asked="9 GPUs", most=8),)),
        (8, 8, "--no-requeue", (NOT_REQUEUED,)),
        (math.inf, 8, "--no-requeue", (NOT_REQUEUED,)),
    ],
)
def test_a_job_that_gets_no_turn_is_told_the_first_reason(
    most: float, gpus: int, stays: str, words: tuple[str, ...]
) -> None:
    assert no_turn(SiteGate(turn_gpus=most), gpus, stays) == words


def test_only_who_asks_for_a_turn_hears_of_turns(folder: Path) -> None:
    site(folder, profiler={"enabled": "false"})
    assert NO_PROFILER in call("--profile", "s.sh").stderr
    assert "profile" not in call("s.sh").stderr


# -- sbatch ---------------------------------------------------------------------------------------------------


def test_where_sbatch_is_missing_its_user_hears_of_print(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    done = call("s.sh")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == (
        "fair-sbatch: sbatch is not on the PATH; load Slurm's environment, or use --print\n"
    )
    assert call("--print", "s.sh").exit_code == 0


@pytest.mark.parametrize("text", ["sleep 1\n", "#!/no/such/shell\n"])
def test_an_sbatch_that_cannot_be_run_is_one_line(folder: Path, text: str) -> None:
    (folder / "bin" / "sbatch").write_text(text)
    done = call("s.sh")
    assert (done.exit_code, done.stdout) == (1, "")
    assert re.fullmatch(
        r"fair-sbatch: \S+/sbatch cannot be run: .+: ask your admin to mend it\n", done.stderr
    )


def test_an_option_that_is_too_long_for_any_program_is_refused(folder: Path) -> None:
    done = call(f"--comment={'x' * 200_000}", "s.sh")
    assert done.exit_code == 2
    assert done.stderr == "fair-sbatch: an option or an argument is too long for sbatch: shorten it\n"


def test_a_name_on_two_lines_is_complained_of_on_one(folder: Path) -> None:
    assert call("a\nb.sh").stderr.count("\n") == 1


def test_an_sbatch_that_hangs_is_given_up_with_a_warning_that_the_job_may_be_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "bin" / "sbatch").write_text("#!/bin/sh\nexec sleep 60\n")
    monkeypatch.setattr("slurm_fair.cli.fair_sbatch.SUBMIT_TIMEOUT_SECONDS", 0.2)
    with pytest.raises(SlurmError, match="look with squeue --me before trying again"):
        run_sbatch(["s.sh"], "#!/bin/sh\n")


def test_an_sbatch_that_waits_for_the_end_of_its_job_is_waited_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "bin" / "sbatch").write_text("#!/bin/sh\nsleep 0.5\nexit 7\n")
    monkeypatch.setattr("slurm_fair.cli.fair_sbatch.SUBMIT_TIMEOUT_SECONDS", 0.1)
    assert run_sbatch(["-W", "s.sh"], "#!/bin/sh\n") == 7


@pytest.mark.parametrize(
    ("words", "waits"),
    [
        (["-W", "s.sh"], True),
        (["--wait", "s.sh"], True),
        (["-HW", "s.sh"], True),
        (["--comment=--wait", "s.sh"], False),
        (["s.sh", "--wait"], False),
        (["--wait-all-nodes=1", "s.sh"], False),
        (["s.sh"], False),
    ],
)
def test_only_sbatchs_own_wait_is_one(words: list[str], waits: bool) -> None:
    assert waits_for_end(words) is waits


@pytest.mark.parametrize(("code", "notes"), [(0, True), (1, False), (42, False)])
def test_notes_follow_a_submission_that_went_well(
    folder: Path, code: int, notes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "plain.sh").write_text("#!/bin/sh\n")
    monkeypatch.setenv("STUB_CODE", str(code))
    done = call("plain.sh")
    assert done.exit_code == code
    assert ("the job is left to plain Slurm" in done.stderr) is notes


def test_a_submission_rings_the_bell_of_the_site_and_a_look_at_it_does_not(folder: Path) -> None:
    published = folder / "published"
    published.mkdir(mode=0o755)
    site(folder, lease={"publish_dir": f"'{published}'"})
    bell = Bell()
    bell.hang(str(published))
    try:
        assert call("--print", "s.sh").exit_code == 0
        assert not bell.wait(0.05)
        assert call("s.sh").exit_code == 0
        assert bell.wait(5.0)
    finally:
        bell.close()


# -- words ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", ["-h", "--help", "--usage"])
def test_help_is_ours_whatever_stands_beside_it(asked: str, folder: Path) -> None:
    done = call("-N2", asked, "s.sh")
    assert done.exit_code == 0
    assert "[SBATCH OPTIONS] [OPTIONS BELOW] SCRIPT [ARGUMENTS]" in done.stdout
    assert not (folder / "argv").exists()


@pytest.mark.parametrize("asked", ["-V", "--version"])
def test_the_version_is_ours_too(asked: str) -> None:
    assert re.match(r"fair-sbatch, version \S+", call(asked).stdout)


def test_what_looks_like_ours_behind_the_script_is_the_scripts(folder: Path) -> None:
    assert call("s.sh", "--print", "--help", "--grace=x").exit_code == 0
    assert argv(folder)
    assert "--print --help --grace=x" in (folder / "script").read_text()


def test_a_long_hostile_comment_stays_one_word_before_our_stamp(folder: Path) -> None:
    mine = "x=1 'q' \x1b[31m \u202e --uid=0 " + "y" * 9000
    assert call(f"--comment={mine}", "s.sh").exit_code == 0
    (comment,) = [word for word in argv(folder)[1:] if word.startswith("--comment=")]
    assert comment.startswith(f"--comment={mine} slurm_fair:v1,")


@pytest.mark.parametrize("given", ["0", "-5", "soon", "nan", "1e999", "5m=", ""])
def test_gate_seconds_that_are_none_are_refused_before_anything_is_submitted(
    given: str, folder: Path
) -> None:
    done = call(f"--gate-seconds={given}", "s.sh")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "gate-seconds" in done.stderr
    assert not (folder / "argv").exists()


def test_the_file_of_the_jobs_side_is_named() -> None:
    assert Path(lease_file()).name == "lease.py"
    assert Path(lease_file()).is_file()
