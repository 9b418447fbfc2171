"""The shell runtime among others: what it writes, what it trusts, where it runs the script from."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from slurm_fair.model import Answer
from slurm_fair.slurm.reading.acks import Asked
from slurm_fair_templates import Options
from tests.support.answers import read_acknowledgement, why_unheard
from tests.support.job_runs import Run, starting

SAVES = Options(checkpoint_command="true")
SLEEPER = "#!/bin/sh\necho ready; sleep 60\n"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file away")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """Starts runs in the test's folder."""
    with starting(tmp_path) as begin:
        yield begin


def heard(run: Run, restarts: int = 0) -> int:
    """The answer as the controller reads it."""
    return read_acknowledgement(Asked("root", str(run.folder), "7", restarts, time.time() - 20, time.time()))


@needs_root
def test_the_controller_reads_what_the_runtime_writes(start: Callable[..., Run]) -> None:
    run = start(SLEEPER, options=SAVES)
    run.says("ready")
    assert heard(run) == Answer.NONE
    run.ask()
    run.until(lambda: heard(run) == Answer.SAVED)
    assert heard(run, restarts=1) == Answer.NONE
    assert why_unheard(str(run.folder), "7", "root") == ""


def test_answers_are_for_all_to_read_and_for_nobody_else_to_write(start: Callable[..., Run]) -> None:
    before = os.umask(0)  # the user's own umask leaves everything open
    try:
        run = start(SLEEPER, options=SAVES)
        run.says("ready")
        run.ask()
        run.until(lambda: run.read("ack.json").get("request") == 1)
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o7777 for path in run.messages.iterdir()}
    assert modes == {"ack.json": 0o644, "request.json": 0o600}
    assert run.messages.stat().st_mode & 0o7777 == 0o711
    assert run.messages.parent.stat().st_mode & 0o7777 == 0o711


def test_a_message_is_closed_to_others_from_its_first_byte_on(
    start: Callable[..., Run], tmp_path: Path
) -> None:
    """A process that has opened a file for writing goes on writing when its mode is changed."""
    real, noted = shutil.which("chmod"), tmp_path / "modes"
    (tmp_path / "bin").mkdir()
    shim = tmp_path / "bin" / "chmod"
    shim.write_text(f'#!/bin/sh\n[ ! -f "$2" ] || stat -c %a "$2" >>"{noted}"\nexec {real} "$@"\n')
    shim.chmod(0o755)
    before = os.umask(0)
    try:
        run = start(SLEEPER, options=SAVES, PATH=f"{shim.parent}:{os.environ['PATH']}")
        run.says("ready")
        run.ask()
        run.until(lambda: run.read("ack.json").get("request") == 1)
    finally:
        os.umask(before)
    assert set(noted.read_text().split()) == {"600"}


def test_a_folder_of_ours_that_others_could_write_is_closed_first(
    start: Callable[..., Run], tmp_path: Path
) -> None:
    for folder in (tmp_path / ".slurm-fair", tmp_path / ".slurm-fair" / "7"):
        folder.mkdir()
        folder.chmod(0o777)
    run = start("#!/bin/sh\ntrue\n")
    assert run.ends() == 0
    modes = [folder.stat().st_mode & 0o7777 for folder in (run.messages.parent, run.messages)]
    assert modes == [0o711, 0o711]


@pytest.mark.parametrize("end", ["exit 1", "exit 2", "kill -KILL $$", "kill -SEGV $$", "kill -TERM $$"])
def test_a_program_that_crashes_after_the_request_is_not_answered_as_saved(
    start: Callable[..., Run], end: str
) -> None:
    script = f"#!/bin/bash\ntrap '{end}' USR2\necho ready\nwhile :; do sleep 0.05; done\n"
    run = start(script, options=Options(exits_when_saved=True, grace_seconds=5))
    run.says("ready")
    run.ask()
    assert run.ends() != 0, "the job ends with the program's own code"
    assert run.read("ack.json") == {}


@pytest.mark.parametrize("end", ["exit 0", "trap - USR2; kill -USR2 $$"])
def test_a_program_that_leaves_by_itself_or_by_the_signal_has_saved(
    start: Callable[..., Run], end: str
) -> None:
    script = f"#!/bin/bash\ntrap '{end}' USR2\necho ready\nwhile :; do sleep 0.05; done\n"
    run = start(script, options=Options(exits_when_saved=True, grace_seconds=30))
    run.says("ready")
    run.ask()
    run.until(lambda: run.read("ack.json").get("saved") is True)


def test_a_program_that_ends_before_any_request_is_not_answered(start: Callable[..., Run]) -> None:
    run = start("#!/bin/sh\nexit 0\n", options=Options(exits_when_saved=True))
    assert run.ends() == 0
    assert run.read("ack.json") == {}


@pytest.mark.parametrize("level", [".slurm-fair", ".slurm-fair/7"])
@pytest.mark.parametrize("what", ["a link", "a file", "somebody else's"])
def test_a_folder_that_is_not_ours_is_left_as_it_is_and_the_job_runs(
    start: Callable[..., Run], tmp_path: Path, level: str, what: str
) -> None:
    place, precious = tmp_path / level, tmp_path / "precious"
    precious.mkdir(mode=0o700)
    place.parent.mkdir(exist_ok=True)
    if what == "a link":
        place.symlink_to(precious)
    elif what == "a file":
        place.write_text("mine")
    else:
        place.mkdir()
        if os.geteuid() != 0:
            pytest.skip("only root may give a file away")
        os.chown(place, 65534, -1)
        place.chmod(0o777)
    run = start("#!/bin/sh\necho ready; ls -d $SLURM_FAIR_DIR; sleep 60\n", options=SAVES)
    run.says("ready")
    run.says("/7\n")
    run.ask()
    run.says("saved in")
    assert "is not this user's alone" in run.text()
    assert list(precious.iterdir()) == []
    assert precious.stat().st_mode & 0o7777 == 0o700
    assert place.is_file() or list(place.iterdir()) == []
    private = Path(next(line for line in run.text().splitlines() if line.endswith("/7") and line[0] == "/"))
    assert private.parent.stat().st_mode & 0o777 == 0o700
    assert json.loads((private / "ack.json").read_text())["saved"] is True


def test_a_folder_that_is_exchanged_while_the_job_runs_is_not_written(start: Callable[..., Run]) -> None:
    run = start(SLEEPER, options=SAVES)
    run.says("ready")
    (run.folder / ".slurm-fair").rename(run.folder / "away")
    (run.folder / "trap" / "7").mkdir(parents=True)
    (run.folder / ".slurm-fair").symlink_to(run.folder / "trap")
    run.ask()
    run.says("asked to save")
    time.sleep(0.5)
    assert list((run.folder / "trap" / "7").iterdir()) == []


def test_no_file_leads_to_the_script_while_it_runs(start: Callable[..., Run]) -> None:
    run = start('#!/bin/bash\nreadlink -f "$0"; cat "$0"; echo ready; sleep 60\n')
    run.says("ready\n")
    name, *script = run.text().splitlines()
    assert name.startswith("/tmp/")
    assert name.endswith(" (deleted)")
    assert script[0] == "#!/bin/bash"


def test_a_script_may_start_itself_again_and_python_its_processes(start: Callable[..., Run]) -> None:
    again = '#!/bin/bash\n[ -n "$1" ] && { echo "again $1"; exit; }\nbash "$0" x; bash "$0" y\n'
    run = start(again)
    assert run.ends() == 0
    assert run.text() == "again x\nagain y\n"


def test_processes_that_python_spawns_find_the_script(start: Callable[..., Run]) -> None:
    script = f"#!{sys.executable}\nimport multiprocessing\ndef double(x): return 2 * x\n"
    script += "if __name__ == '__main__':\n    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
    script += "        print(pool.map(double, [21]))\n"
    run = start(script)
    assert run.ends() == 0
    assert run.text() == "[42]\n"


@pytest.mark.parametrize("size", [10, 100_000])
def test_a_script_of_any_size_runs_with_a_shared_temporary_folder(
    start: Callable[..., Run], tmp_path: Path, size: int
) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    script = f'#!/bin/bash\n: {"x" * size}\necho "it\'s" $TMPDIR; ls -A $TMPDIR\n'
    run = start(script, TMPDIR=str(tmp_path / "shared"))
    assert run.ends() == 0
    assert run.text() == f"it's {tmp_path}/shared\n"
