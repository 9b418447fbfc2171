"""Events kept as columns: what is taken of each, in which order they stand, and what they are of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from slurm_fair.ledger.charging.window_events import Became
from slurm_fair.ledger.outcomes.event_columns import SAID, Counted, EventTable, Heard
from slurm_fair.model import Event, EventKind
from tests.support.outcome_rows import NAN

COUNT = {"submitted", "started", "stopped", "finished", "revoked", "stays"}


def event(time: float, kind: str, key: int = 7, gpus: int = 2, **detail: Any) -> Event:
    return Event(time, kind, key, "chem", gpus, detail)


def heard(*events: Event) -> EventTable:
    return Heard.of(events).lines()


def kinds(table: EventTable) -> list[str]:
    return [Counted(kind).name.lower() for kind in table.kind.tolist()]


def became(kind: EventKind, time: Sequence[float], key: Sequence[int], said: Mapping[str, Any]) -> Became:
    """Events of one kind, each of two GPUs of one tenant."""
    many = len(time)
    return Became(kind, [0] * many, [0] * many, time, key, ["chem"] * many, [2] * many, said)


# --- what counts


@pytest.mark.parametrize("kind", [*EventKind, "a word of another version"])
def test_only_kinds_that_outcomes_are_made_of_are_kept_and_all_have_their_instant(kind: str) -> None:
    found = Heard.of([event(90.0, kind)])
    assert len(found.lines()) == (kind in COUNT)
    assert found.last == 90.0


def test_the_last_instant_is_the_latest_and_not_that_of_the_last_event() -> None:
    assert Heard.of([event(90.0, "granted"), event(5.0, "started")]).last == 90.0
    assert Heard.of([]).last == 0.0


def test_nothing_was_heard() -> None:
    table = heard()
    assert (len(table), table.words, len(table.edges), table.life.tolist()) == (0, ("",), 0, [])
    assert table.said_by(table.of_kind(Counted.SUBMITTED)).tolist() == []


# --- order


def test_lines_are_in_order_of_keys_and_of_time_and_know_in_which_order_they_came() -> None:
    table = heard(
        event(30, "started", 9), event(10, "submitted", 9), event(20, "submitted", 3), event(5, "started", 3)
    )
    assert list(zip(table.key.tolist(), table.time.tolist(), strict=True)) == [
        (3, 5),
        (3, 20),
        (9, 10),
        (9, 30),
    ]
    assert table.event.tolist() == [3, 2, 1, 0]


def test_of_events_at_one_instant_the_one_that_must_have_come_first_stands_first() -> None:
    at_once = ["finished", "started", "stopped", "stays", "revoked", "submitted"]
    assert kinds(heard(*(event(5, kind) for kind in at_once))) == [
        "submitted", "revoked", "stays", "stopped", "started", "finished",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("start", "order"),
    [
        (4.0, ["stopped", "started"]),  # the run before
        (5.0, ["started", "stopped"]),  # a run of no length
        (None, ["stopped", "started"]),
    ],
)
def test_a_stop_follows_a_start_at_one_instant_only_where_it_ends_that_run(
    start: float | None, order: list[str]
) -> None:
    assert kinds(heard(event(5, "stopped", start=start), event(5, "started"))) == order


def test_a_revocation_stands_before_a_stop_whose_instant_was_cut_to_whole_seconds() -> None:
    table = heard(event(20, "stopped", start=5.0), event(20.7, "revoked"), event(19.9, "started"))
    assert (kinds(table), table.time.tolist()) == (["started", "revoked", "stopped"], [19.9, 20.7, 20.0])


def test_thousands_of_events_keep_their_places() -> None:
    count = 20_000
    table = heard(*(event(float(at), "started", key=at % 1000, gpus=at % 7) for at in range(count)))
    assert len(table) == count
    assert (table.event % 1000 == table.key).all()
    assert (table.time == table.event).all()
    assert (table.gpus == table.event % 7).all()


# --- what is said


def test_the_numbers_of_runs_are_those_that_were_said() -> None:
    table = heard(
        event(1, "started", restarts=3, gpu_weight=2.5),
        event(2, "stopped", start=1.0, restarts=4, state="NODE_FAIL"),
        event(3, "started", start=9.0),
        event(4, "revoked", restarts=5),
    )
    assert np.array_equal(table.restarts, [3.0, 4.0, NAN, NAN], equal_nan=True)
    assert np.array_equal(table.start, [NAN, 1.0, NAN, NAN], equal_nan=True)
    assert table.gpu_weight.tolist() == [2.5, 1.0, 1.0, 1.0]
    assert [table.words[at] for at in table.state.tolist()] == ["", "NODE_FAIL", "", ""]
    assert [table.words[at] for at in table.tenant.tolist()] == ["chem"] * 4


def test_an_end_has_an_account_and_a_submission_has_none() -> None:
    said: dict[str, Any] = {
        "submit": 1.0,
        "ran": 2.0,
        "had": 4.0,
        "declared_seconds": 5.0,
        "limit_seconds": 6.0,
    }
    table = heard(event(1, "submitted", **said), event(9, "finished", **said))
    first, last = table.said_by(table.of_kind(Counted.SUBMITTED, Counted.FINISHED))
    assert (last["submit"], last["ran"], last["had"]) == (1.0, 2.0, 4.0)
    assert np.isnan([first["submit"], first["ran"], first["had"], last["waited"]]).all()
    for edge in (first, last):
        assert (edge["declared_seconds"], edge["limit_seconds"]) == (5.0, 6.0)


def test_what_is_said_to_be_nothing_is_unknown_and_what_stands_beside_it_is_known() -> None:
    nothing: dict[str, Any] = {**dict.fromkeys(SAID), "ran": 30, "user": None, "name": "train", "app": ""}
    table = heard(event(9, "finished", **nothing))
    (edge,) = table.said_by(table.of_kind(Counted.FINISHED))
    assert edge["ran"] == 30.0
    assert np.isnan([edge[name] for name in SAID if name != "ran"]).all()
    assert [table.words[edge[name]] for name in ("user", "name", "app")] == ["", "train", ""]


def test_each_submission_and_each_end_says_its_own_whatever_comes_between() -> None:
    """They came in another order than that of the table."""
    table = heard(
        event(50, "finished", 9, ran=95.0),
        event(60, "started", 3),
        event(10, "submitted", 9, limit_seconds=91.0),
        event(70, "finished", 3, ran=37.0),
        event(20, "submitted", 3, limit_seconds=32.0),
    )
    assert table.said_by(table.of_kind(Counted.SUBMITTED))["limit_seconds"].tolist() == [32.0, 91.0]
    assert table.said_by(table.of_kind(Counted.FINISHED))["ran"].tolist() == [37.0, 95.0]
    assert table.said_by(table.key == 9)["ran"].tolist()[1:] == [95.0]


# --- lives


def test_a_life_begins_with_the_first_event_of_a_key_and_with_each_submission() -> None:
    table = heard(
        event(1, "started", 3), event(2, "submitted", 3), event(3, "started", 3), event(1, "submitted", 5),
        event(2, "submitted", 5), event(9, "stopped", 8), event(10, "started", 8),
    )  # fmt: skip
    assert table.life.tolist() == [0, 1, 1, 2, 3, 4, 4]


# --- columns of one kind at once


@pytest.mark.parametrize(
    "kind", [EventKind.SUBMITTED, EventKind.FINISHED, EventKind.STARTED, EventKind.STOPPED]
)
def test_columns_come_to_the_same_as_one_event_after_the_other(kind: EventKind) -> None:
    rows: list[dict[str, Any]] = [{"gpu_weight": 2.0, "user": "ann"}, {}, {"gpu_weight": 1.0, "user": "bob"}]
    if kind in (EventKind.STARTED, EventKind.STOPPED):
        rows[1] |= {"restarts": 3}
    if kind is EventKind.STOPPED:
        rows[1] |= {"start": 4.0, "state": "PREEMPTED"}
    if kind is EventKind.FINISHED:
        rows = [{"ran": 5.0, "state": "FAILED"}, {"user": "ann", "app": "x"}, {"declared_seconds": 8.0}]
    said = {name: [row.get(name) for row in rows] for name in sorted({name for row in rows for name in row})}
    at_once = Heard()
    at_once.take_columns(became(kind, [9.0, 8.0, 7.0], [1, 2, 2], said))
    one_by_one = Heard.of(
        [event(at, kind, key, **row) for at, key, row in zip((9, 8, 7), (1, 2, 2), rows, strict=True)]
    )
    assert at_once.last == one_by_one.last == 9.0
    assert plain(at_once.lines()) == plain(one_by_one.lines())


def plain(table: EventTable) -> list[str]:
    """Every line and every edge in words, whatever the numbers of the words."""
    named = [table.words[at] for at in (*table.tenant, *table.state)]
    edges = [
        [*edge.tolist()[: len(SAID)], *(table.words[at] for at in edge.tolist()[len(SAID) :])]
        for edge in table.edges
    ]
    numbers = [
        getattr(table, name).tolist()
        for name in ("event", "key", "time", "kind", "gpus", "start", "restarts")
    ]
    return [str(each) for each in (named, edges, numbers, table.gpu_weight.tolist())]


def test_columns_without_a_row_add_nothing() -> None:
    nothing = Heard.of([event(5, "started")])
    nothing.take_columns(became(EventKind.STARTED, [], [], {}))
    assert (len(nothing.lines()), nothing.last) == (1, 5.0)
