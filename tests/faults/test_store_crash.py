"""The journal under kill -9, second daemons and takeovers."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from slurm_fair.errors import NotTheOwner, StoreError
from slurm_fair.model import Result
from slurm_fair.store import fence, open_journal, open_reader
from tests.support import journals

ROOT = Path(__file__).parents[2]
KILLS = 30

# Writes acts as fast as it can and says each id only after the journal has acknowledged it.
WRITER = """
import sys
from pathlib import Path
from slurm_fair.store import open_journal
from tests.support import journals
with open_journal(Path(sys.argv[1])) as journal:
    newest = journal.latest()
    number = newest.tick if newest else 0
    print("open", flush=True)
    while True:
        ids = journal.intend([journals.action(1), journals.action(2)], 1.0)
        print("intended", *ids, flush=True)
        journal.conclude(ids[:1], [journals.outcome(1)], 2.0)
        print("concluded", ids[0], flush=True)
        number += 1
        journal.append(journals.tick(number), journals.standing(number))
        print("tick", number, flush=True)
"""

OWNER = """
import sys
from pathlib import Path
from slurm_fair.errors import StoreError
from slurm_fair.store import open_journal
from tests.support import journals
try:
    journal = open_journal(Path(sys.argv[1]))
except StoreError as error:
    sys.exit(f"{type(error).__name__}: {error}")
print("open", flush=True)
for line in sys.stdin:
    try:
        print("wrote", *journal.intend([journals.action()], 1.0), flush=True)
    except StoreError as error:
        print(type(error).__name__, error, flush=True)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "journal.db"


class Process:
    """A writer in a process of its own."""

    def __init__(self, program: str, path: Path) -> None:
        self.run = subprocess.Popen(
            [sys.executable, "-c", program, str(path)],
            cwd=ROOT,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def line(self) -> str:
        assert self.run.stdout is not None
        return self.run.stdout.readline().strip()

    def ask(self) -> str:
        """One write; what came of it."""
        assert self.run.stdin is not None
        self.run.stdin.write("write\n")
        self.run.stdin.flush()
        return self.line()

    def kill(self) -> tuple[str, str]:
        self.run.kill()
        return self.run.communicate(timeout=30)


@pytest.fixture
def start() -> Iterator[Callable[[str, Path], Process]]:
    started: list[Process] = []

    def begin(program: str, path: Path) -> Process:
        started.append(Process(program, path))
        return started[-1]

    yield begin
    for process in started:
        if process.run.poll() is None:
            process.run.send_signal(signal.SIGCONT)
        process.kill()


def test_no_acknowledged_act_is_lost_over_thirty_kills(path: Path, start: Callable[..., Process]) -> None:
    dice = random.Random(1)
    intended: set[int] = set()
    concluded: set[int] = set()
    ticks: set[int] = set()
    for _ in range(KILLS):
        writer = start(WRITER, path)
        assert writer.line() == "open"
        time.sleep(dice.uniform(0.0, 0.08))  # the kill falls on any step of the writer
        said, complaint = writer.kill()
        assert complaint == ""
        for line in said.splitlines(keepends=True):
            word, *numbers = line.split()
            if line.endswith("\n"):
                {"intended": intended, "concluded": concluded, "tick": ticks}[word].update(map(int, numbers))
    with open_journal(path) as journal:
        journal.check()
        acts = {act.id: act for act in journal.intents()}
        kept = {tick.number for tick in journal.ticks()}
        newest = journal.latest()
    assert len(intended) > KILLS
    assert intended <= acts.keys()
    assert all(acts[number].result is Result.DONE for number in concluded)
    assert ticks <= kept
    assert newest is not None
    assert newest.tick == max(kept)
    assert journal.epoch == KILLS + 1
    assert sorted({act.epoch for act in acts.values()}) == sorted(
        {act.epoch for act in acts.values()} & set(range(1, KILLS + 1))
    )


def test_a_second_daemon_is_refused_by_the_name_of_the_first(
    path: Path, start: Callable[..., Process]
) -> None:
    owner = start(OWNER, path)
    assert owner.line() == "open"
    second = start(OWNER, path)
    _, complaint = second.run.communicate(timeout=30)
    assert f"NotTheOwner: {path}: another daemon owns the journal (pid {owner.run.pid} on " in complaint
    assert second.run.returncode == 1
    assert owner.ask().startswith("wrote")


def test_of_many_daemons_started_at_once_one_owns_the_journal(
    path: Path, start: Callable[..., Process]
) -> None:
    crowd = [start(OWNER, path) for _ in range(6)]
    said = [process.line() for process in crowd]
    assert sorted(said) == [""] * 5 + ["open"]


def test_a_second_opener_in_the_same_process_is_refused(path: Path) -> None:
    with open_journal(path), pytest.raises(NotTheOwner, match=f"pid {os.getpid()}"):
        open_journal(path)


def test_a_fenced_owner_writes_nothing_more(path: Path) -> None:
    with open_journal(path) as journal:
        ids = journal.intend([journals.action()], 1.0)
        assert fence(path, "the dead-man") == journal.epoch + 1
        writes: list[Callable[[], object]] = [
            lambda: journal.intend([journals.action(2)], 2.0),
            lambda: journal.conclude(ids, [journals.outcome()], 2.0),
            lambda: journal.append(journals.tick(), journals.standing()),
            lambda: journal.set_marks([journals.mark()]),
            lambda: journal.drop_marks([(1, False)]),
            lambda: journal.prune(1e9, keep_seconds=0.0, max_bytes=0),
            journal.check_owner,
        ]
        for write in writes:
            with pytest.raises(NotTheOwner, match=r"the dead-man has opened epoch 2: this daemon must stop"):
                write()
    with open_reader(path) as reader:
        assert [act.id for act in journals.unconcluded(reader)] == list(ids)
        assert reader.latest() is None
        assert reader.marks() == ()


def test_an_owner_that_was_stopped_and_comes_back_finds_itself_fenced(
    path: Path, start: Callable[..., Process]
) -> None:
    owner = start(OWNER, path)
    assert owner.line() == "open"
    assert owner.ask() == "wrote 1"
    owner.run.send_signal(signal.SIGSTOP)
    fence(path)
    owner.run.send_signal(signal.SIGCONT)
    assert owner.ask().startswith("NotTheOwner")


def test_who_opened_the_journal_after_the_silent_owner_is_not_fenced(path: Path) -> None:
    with open_journal(path) as silent:
        epoch = silent.epoch
    with open_journal(path) as shadow:
        assert fence(path, owner=epoch) == shadow.epoch == epoch + 1
        shadow.intend([journals.action()], 1.0)
        assert fence(path, owner=shadow.epoch) == epoch + 2
        with pytest.raises(NotTheOwner):
            shadow.intend([journals.action()], 1.0)


def test_an_owner_that_stands_still_inside_a_write_does_not_hold_up_the_fence(path: Path) -> None:
    with open_journal(path) as journal:
        fenced: list[int] = []

        def stand_still(*_: object) -> int:
            fenced.append(fence(path, wait_seconds=0.05))
            return 1

        journal._one_row = stand_still  # type: ignore[method-assign, assignment]
        with pytest.raises(
            NotTheOwner
        ):  # the write itself went through: the owner must look once more after it
            journal.intend([journals.action()], 1.0)
        assert fenced == [journal.epoch + 1]


def test_an_owner_whose_epoch_file_is_gone_stops(path: Path) -> None:
    with open_journal(path) as journal:
        path.with_name("journal.db.epoch").unlink()
        with pytest.raises(NotTheOwner):
            journal.intend([journals.action()], 1.0)


def test_a_forked_child_may_not_write_and_does_not_keep_the_lock(path: Path) -> None:
    journal = open_journal(path)
    heard, tells = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            journal.set_marks([journals.mark()])
        except NotTheOwner:
            os.write(tells, b"refused")
            signal.pause()
        finally:
            os._exit(1)
    try:
        os.close(tells)
        assert os.read(heard, 7) == b"refused"
        journal.close()
        open_journal(path).close()
    finally:
        os.close(heard)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL


def test_an_admins_shell_that_holds_the_lock_is_named_and_outlived(path: Path) -> None:
    with open_journal(path, busy_seconds=0.1) as journal:
        shell = sqlite3.connect(path, isolation_level=None)
        shell.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="another program holds the journal locked"):
            journal.intend([journals.action()], 1.0)
        shell.execute("ROLLBACK")
        shell.close()
        assert journal.intend([journals.action()], 1.0)


def test_a_directory_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="file"):
        open_journal(tmp_path / "file" / "journal.db")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can read as somebody else")
@pytest.mark.parametrize("end", ["alive", "closed", "killed"])
def test_a_group_reads_the_journal_that_it_may_not_write(
    path: Path, tmp_path: Path, start: Callable[..., Process], end: str
) -> None:
    copy = Path("/tmp") / f"journal-{os.getpid()}-{end}"
    copy.mkdir(mode=0o700)
    try:
        journal = copy / "journal.db"
        journals.fill(journal)
        owner = start(OWNER, journal)
        assert owner.line() == "open"
        assert owner.ask().startswith("wrote")
        for place in [copy, *copy.iterdir()]:
            os.chown(place, -1, 65534)
            place.chmod(0o750 if place.is_dir() else 0o640)
        if end == "killed":
            owner.kill()
        elif end == "closed":
            owner.kill()
            open_journal(journal).close()
        reading = (
            "import os, sys; from pathlib import Path; from slurm_fair.store import open_reader\n"
            "from sqlite_utils import Database; Database(memory=True).table_names()\n"
            "os.setgid(65534); os.setgroups([]); os.setuid(65534)\n"
            "print(len(open_reader(Path(sys.argv[1])).intents()))"
        )
        done = subprocess.run(
            [sys.executable, "-c", reading, str(journal)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert (done.stdout.strip(), done.stderr) == ("9", "")
    finally:
        shutil.rmtree(copy)
