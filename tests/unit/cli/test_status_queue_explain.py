"""`status`, `queue` and `explain` over a real journal, and over what the daemon publishes."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from slurm_fair.board.board import draw
from slurm_fair.board.health import Health
from slurm_fair.board.nameless import nameless
from slurm_fair.board.recent import MOST_OF_A_USER, Recent
from slurm_fair.host import state_folder as files
from slurm_fair.host.state_folder import Heartbeat, Places
from slurm_fair.model import Event, LeaseTerms
from slurm_fair.model.ids import parse_label
from slurm_fair.store import open_journal
from tests.support import board_scene
from tests.support.board_scene import recorded
from tests.support.command_line import Said, call
from tests.support.schemas import faults
from tests.support.trees import ROOT

View = Callable[..., Said]


@pytest.fixture
def storage(tmp_path: Path) -> Path:
    folder = tmp_path / "storage"
    folder.mkdir(mode=0o750)
    return folder


@pytest.fixture
def view(tmp_path: Path, storage: Path) -> View:
    """Calls a command of a site whose storage is that folder."""
    config = tmp_path / "c.toml"
    config.write_text(f'[storage]\ndir = "{storage}"\n[lease]\npublish_dir = "{tmp_path}"\n')
    return lambda *words: call("--config", str(config), *words)


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> float:
    """The scene is of this moment."""
    moment = float(int(time.time()))
    monkeypatch.setattr(board_scene, "NOW", moment)
    monkeypatch.setattr(board_scene, "ENDS", moment + 26)
    return moment


def keep(storage: Path, **changes: Any) -> None:
    """One tick in the journal."""
    with open_journal(storage / "journal.db") as journal:
        journal.append(*recorded(**changes))


def alive(storage: Path, now: float, **said: Any) -> None:
    beat: dict[str, Any] = {
        "pid": 1,
        "time": now,
        "limit_seconds": 675.0,
        "gate": "begin",
        "seen": now,
        "blind": "",
    }
    files.beat(Places(storage), Heartbeat(**(beat | said)))


def publish(folder: Path, **health: Any) -> None:
    """The daemon's publications for users."""
    record, standing = recorded()
    (folder / "board.json").write_text(json.dumps(draw(record, standing).document()))
    if health:
        now = record.time
        usual = {"time": now, "interval_seconds": 10.0, "seen": now, "state": "acting"}
        said: dict[str, Any] = {**usual, **health}
        (folder / "health.json").write_text(Health(**said).text())


def shown(view: View, *words: str) -> Any:
    said = view(*words, "--json")
    assert said.code == 0, said
    return json.loads(said.out)


# -- the queue ------------------------------------------------------------------------------------------------


def test_promised_jobs_come_first_with_where_they_start(view: View, storage: Path, now: float) -> None:
    keep(storage)
    alive(storage, now)
    said = view("queue")
    assert (said.code, said.err) == (0, "")
    lines = said.out.splitlines()
    assert lines[1].split()[0] == "9"
    assert "starting" in lines[1]
    assert "starting on n4" in lines[1]


def test_the_order_is_promised_running_by_lease_end_waiting_by_rank_blocked(
    view: View, storage: Path, now: float
) -> None:
    keep(storage)
    jobs = [row["job"] for row in shown(view, "queue")["jobs"]]
    assert jobs == ["9", "4", "1", "2", "3", "10", "11", "20_1", "20_2", "20_3", "12"]


def test_every_row_of_the_queue_has_its_reason(view: View, storage: Path, now: float) -> None:
    keep(storage)
    document = shown(view, "queue")
    said = {row["job"]: row["reason"] for row in document["jobs"]}
    assert said["10"].startswith("next in line: ")
    assert said["11"] == "1 job of 32 GPUs goes before it, first job 10 (speech)"
    assert said["12"] == "its owner holds it"
    assert {row["why"] for row in document["jobs"] if row["job"] == "11"} == {"others are owed more"}


def test_a_bar_in_a_foreign_name_is_no_column(view: View, storage: Path, now: float) -> None:
    record, _ = recorded()
    users = tuple("a|b" if user == "sue" else user for user in record.snapshot.users)
    keep(storage, snapshot=replace(record.snapshot, users=users))
    said = view("queue", "-P")
    assert len({line.count("|") for line in said.out.splitlines()}) == 1
    assert "a?b" in said.out


def test_what_is_left_alone_is_in_queue_and_status(view: View, storage: Path, now: float) -> None:
    keep(storage)
    for command in ("queue", "status"):
        said = view(command).out
        assert "job 99 is left alone: it asks for no GPU" in said
        assert "job 98 of mel is left alone: Slurm's row of it cannot be read: has a row too short" in said
    assert "left alone: 2 (1 unreadable)" in view("status").out
    assert "job 98 of mel is left alone: Slurm's row of it cannot be read" in view("explain", "98").out


def test_what_others_wrote_reaches_no_terminal_raw(view: View, storage: Path, now: float) -> None:
    record, _ = recorded()
    nodes = replace(record.snapshot.nodes, why=("\x1b[31mred", "", "", ""))
    keep(storage, snapshot=replace(record.snapshot, nodes=nodes), guard="\x1b[2Jnote")
    for command in (["status"], ["queue"], ["explain", "10"]):
        said = view(*command)
        assert "\x1b" not in said.out + said.err
    assert "node n1 takes no work: ?[31mred" in view("status").out
    assert "note: ?[2Jnote" in view("status").out


# -- whether the daemon lives ---------------------------------------------------------------------------------


def test_a_daemon_that_looks_needs_no_word_about_its_age(view: View, storage: Path, now: float) -> None:
    keep(storage)
    alive(storage, now)
    for words in (["status"], ["queue"], ["explain", "10"]):
        said = view(*words)
        assert (said.code, said.err) == (0, ""), words
    assert "slurm_fair: acting; tick 7" in view("status").out
    assert view("status", "--exit-code").code == 0


@pytest.mark.parametrize("words", [["status"], ["queue"], ["explain", "10"]])
def test_every_view_says_that_the_daemon_is_silent(
    view: View, storage: Path, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(board_scene, "NOW", time.time() - 70)
    keep(storage)
    alive(storage, time.time() - 70)
    said = view(*words)
    assert said.complaint.startswith("slurm-fair: silent: the daemon does not run, or hangs: no look for 7")
    assert "what follows is 7" in said.complaint


@pytest.mark.parametrize("since", [-70, 3600], ids=["silent", "dead since the clock was set back"])
def test_silence_goes_before_a_pause(
    view: View, storage: Path, monkeypatch: pytest.MonkeyPatch, since: int
) -> None:
    monkeypatch.setattr(board_scene, "NOW", time.time() + since)
    keep(storage)
    (storage / "paused").write_text("maintenance")
    assert shown(view, "status")["health"]["word"] == "silent"
    assert view("status", "--exit-code").code == 3


def test_a_pause_says_why_and_is_no_success(view: View, storage: Path, now: float) -> None:
    keep(storage)
    (storage / "paused").write_text("maintenance")
    said = view("status", "--exit-code")
    assert said.code == 1
    assert "paused" in said.out
    assert "maintenance" in said.out


def test_blind_is_said_at_once_with_the_reason(view: View, storage: Path, now: float) -> None:
    keep(storage)
    alive(storage, now, seen=now - 8, blind="squeue does not answer")
    said = view("status", "--exit-code")
    assert said.code == 1
    assert "blind: squeue does not answer (no good look for" in said.out
    assert "blind: squeue does not answer" in view("queue").complaint


@pytest.mark.parametrize(
    ("limit", "lives", "word"), [(675.0, True, "blind"), (10.0, True, "silent"), (675.0, False, "silent")]
)
def test_a_daemon_that_waits_for_a_slurm_that_hangs_is_blind_and_one_that_died_blind_is_silent(
    view: View, storage: Path, monkeypatch: pytest.MonkeyPatch, limit: float, lives: bool, word: str
) -> None:
    monkeypatch.setattr(board_scene, "NOW", time.time() - 45)
    keep(storage)
    alive(
        storage, time.time() - 40, seen=time.time() - 45, blind="sinfo does not answer", limit_seconds=limit
    )
    with open_journal(Places(storage).journal) if lives else nullcontext():
        assert shown(view, "status")["health"]["word"] == word


def test_a_slow_interval_is_no_silence(view: View, storage: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board_scene, "NOW", time.time() - 70)
    keep(storage, terms=LeaseTerms(term=900.0, interval=60.0))
    alive(storage, time.time() - 70)
    assert shown(view, "status")["health"]["word"] == "acting"


# -- what users see who may not read the storage --------------------------------------------------------------


@pytest.fixture
def outside(view: View, storage: Path, monkeypatch: pytest.MonkeyPatch) -> View:
    """The view of somebody who sees only what is published."""
    real = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: not str(path).startswith(str(storage)) and real(path, mode)
    )
    return view


def test_users_see_the_published_board_and_how_the_daemon_is(
    outside: View, tmp_path: Path, now: float
) -> None:
    publish(tmp_path, state="paused", why="maintenance")
    assert shown(outside, "status")["health"]["state"] == "paused: maintenance"
    publish(tmp_path, state="blind", why="slurmctld is away", seen=now - 30)
    assert shown(outside, "status")["health"]["state"].startswith(
        "blind: slurmctld is away (no good look for 3"
    )


@pytest.mark.parametrize(("age", "word"), [(105, "blind"), (115, "silent")])
def test_users_wait_with_a_blind_daemon_for_commands_that_hang(
    outside: View, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, age: float, word: str
) -> None:
    """Three intervals of 10 s, and the 20 s that each of four commands may take."""
    monkeypatch.setattr(board_scene, "NOW", time.time() - age)
    publish(tmp_path, state="blind", why="squeue does not answer")
    assert shown(outside, "status")["health"]["word"] == word


def test_where_no_reason_may_be_published_blind_is_no_riddle(
    outside: View, tmp_path: Path, now: float
) -> None:
    publish(tmp_path, state="blind", why="", seen=now - 30)
    assert shown(outside, "status")["health"]["state"].startswith(
        "blind: the daemon cannot see the cluster (no good look for 3"
    )


def test_users_see_at_once_that_the_daemon_was_stopped(outside: View, tmp_path: Path, now: float) -> None:
    publish(tmp_path, state="stopped")
    assert outside("status", "--exit-code").code == 3
    assert "the daemon was stopped" in outside("queue").complaint


def test_users_see_that_the_daemon_is_silent(
    outside: View, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(board_scene, "NOW", time.time() - 70)
    publish(tmp_path)
    assert "silent: the daemon does not run, or hangs: no look for 7" in outside("queue").complaint


def test_where_names_are_hidden_a_job_is_explained_without_them(
    outside: View, tmp_path: Path, now: float
) -> None:
    document = nameless(draw(*recorded()).document())
    (tmp_path / "board.json").write_text(json.dumps(document))
    said = outside("explain", "10").out
    assert "job 10, 32 GPUs: waiting" in said
    assert (
        "16 of 32 GPUs are held by jobs 1, 2, 4 (another account)" in said
        or "jobs 1, 2 (another account)" in said
    )
    for name in ("vision", "speech", "nlp", "sue"):
        assert name not in said
    assert "PrivateData" in outside("queue", "--me").out
    assert outside("status").code == 0


# -- explain --------------------------------------------------------------------------------------------------


def test_explain_tells_reasons_with_a_subject(view: View, storage: Path, now: float) -> None:
    keep(storage)
    alive(storage, now)
    said = view("explain", "10").out
    assert "because it is next in line: no waiting job goes before it" in said
    assert "16 of 32 GPUs are held by jobs 1, 2 (vision), whose leases end" in said
    assert "others are owed more" not in said


def test_who_asks_for_turns_of_the_profiler_in_vain_is_told_why(
    view: View, storage: Path, now: float
) -> None:
    record, _ = recorded()
    off, keys = "this site's profiler is switched off", record.snapshot.jobs.key[[0, 5, 8, 9, 10]]
    why = record.plan.explanation.with_columns(no_turn={off: keys})
    keep(storage, plan=replace(record.plan, why=why))
    alive(storage, now)
    assert f"it gets no turn of the profiler: {off}\n" in view("explain", "10").out
    assert "turn of the profiler" not in view("explain", "11").out
    assert shown(view, "explain", "10")["job"]["no_turn"] == off
    assert [row["job"] for row in shown(view, "queue")["jobs"] if row["no_turn"]] == [
        "1",
        "10",
        "20_1",
        "20_2",
        "20_3",
    ]
    said = f"no turn of the profiler: {off}: "
    assert [line for line in view("queue", "--user", "ned").out.splitlines() if said in line] == [
        f"{said}jobs 20_1, 20_2, 20_3"
    ]
    assert said not in view("queue").out, "of a whole queue explain and --json tell it"


def test_the_id_of_an_array_is_answered_with_its_tasks(view: View, storage: Path, now: float) -> None:
    keep(storage)
    said = view("explain", "20").out
    assert "job 20 is an array of ned (nlp): 3 waiting" in said
    assert "20_1, 20_2, 20_3" in said
    assert "slurm-fair explain 20_1" in said
    assert shown(view, "explain", "20")["tasks"] == ["20_1", "20_2", "20_3"]


def test_a_task_of_a_job_that_is_no_array_is_refused(view: View, storage: Path, now: float) -> None:
    keep(storage)
    said = view("explain", "10_1")
    assert (said.code, said.out) == (2, "")
    assert "job 10 is no array, so it has no task 10_1: ask for `slurm-fair explain 10`" in said.complaint


def finished(label: str, end: float, user: str = "sue") -> Event:
    detail = {
        "had": 7200.0, "owed": 3600.0, "waited": 60.0, "ran": 900.0, "rho": 2.0, "restarts": 1,
        "submit": end - 960, "end": end, "user": user, "state": "COMPLETED",
    }  # fmt: skip
    return Event(end, "finished", parse_label(label), "speech", 8, detail)


def test_a_finished_job_is_explained_from_the_journal(view: View, storage: Path, now: float) -> None:
    keep(storage, events=(finished("77", now - 5),))
    said = view("explain", "77").out
    assert "job 77 of sue (speech), 8 GPUs: ended" in said
    assert "(COMPLETED)" in said
    assert "it waited 00:01:00 and ran 00:15:00; it was requeued 1 time" in said
    assert "it had 2.00 of 1.00 GPU-hours owed: rho 2.00" in said


def test_a_finished_job_is_explained_to_its_user_from_what_is_published(
    outside: View, tmp_path: Path, now: float
) -> None:
    ended = Recent([finished("77", now - 5)]).rows(now)
    board = replace(draw(*recorded()), finished=ended)
    (tmp_path / "board.json").write_text(json.dumps(board.document()))
    assert "job 77 of sue (speech), 8 GPUs: ended" in outside("explain", "77").out
    assert "job 77 ended" in outside("queue", "--user", "sue").out


def test_jobs_that_ended_are_kept_for_a_day_and_of_each_user_so_many() -> None:
    recent = Recent([finished("1", 1000.0), finished("2", 90_000.0, "ann")])
    recent.hear(finished(f"5_{task}", 90_001.0) for task in range(300))
    rows = recent.rows(100_000.0)
    assert [row["job"] for row in rows].count("1") == 0
    assert "2" in [row["job"] for row in rows]
    assert len([row for row in rows if row["user"] == "sue"]) == MOST_OF_A_USER
    assert rows[0]["job"] == "5_299"
    assert [row["job"] for row in recent.rows(90_002.0 + 86_400)] == []


# -- documents ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("status", ["status"]),
        ("queue", ["queue"]),
        ("explain", ["explain", "10"]),
        ("explain", ["explain", "20"]),
        ("explain", ["explain", "77"]),
    ],
)
def test_each_document_keeps_to_its_schema(
    view: View, storage: Path, now: float, schema: str, words: list[str]
) -> None:
    keep(storage, events=(finished("77", now - 5),))
    assert faults(shown(view, *words), said_of(schema)) == []


@pytest.mark.parametrize(("schema", "words"), [("status", ["status"]), ("queue", ["queue"])])
def test_a_published_board_keeps_to_the_same_schema(
    outside: View, tmp_path: Path, now: float, schema: str, words: list[str]
) -> None:
    publish(tmp_path, state="acting")
    assert faults(shown(outside, *words), said_of(schema)) == []


def test_what_was_had_while_nothing_was_owed_is_no_number_in_json(
    view: View, storage: Path, now: float
) -> None:
    record, standing = recorded()
    tenants = standing.ledger.tenants.with_columns(owed_demand=np.zeros(3), owed_quota=np.zeros(3))
    with open_journal(storage / "journal.db") as journal:
        journal.append(record, standing._replace(ledger=replace(standing.ledger, tenants=tenants)))
    for words in (["status"], ["queue"], ["explain", "11"]):
        assert "Infinity" not in view(*words, "--json").out
        assert view(*words).code == 0


def said_of(name: str) -> dict[str, Any]:
    """A schema of docs/schema."""
    content: dict[str, Any] = json.loads((ROOT / f"docs/schema/{name}.json").read_text())
    return content
