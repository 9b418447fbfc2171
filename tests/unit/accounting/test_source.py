"""A journal and a file of events answer the same questions alike."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from slurm_fair.model import Event
from slurm_fair.store import Reader, open_journal, open_reader
from slurm_fair_accounting import EventFile, JournalReader
from slurm_fair_accounting.source import source
from tests.support import journals

HOUR = 3600.0
ODD = "o'brien\x1b[31m=1"
EVENTS = (
    journals.event(30.0, "finished", 2),
    journals.event(10.0, "submitted", 1),
    journals.event(30.0, "started", 3),
    journals.event(20.0, "started", 2)._replace(tenant="chem"),
    journals.event(30.0, "started", 1)._replace(tenant=ODD),
)
TOLD = [EVENTS[at] for at in (1, 3, 0, 2, 4)]  # by time, ties as they were written


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """Events of one tick, and accounts of three."""
    path = tmp_path_factory.mktemp("state") / "journal.db"
    with open_journal(path) as written:
        for number in (1, 2, 3):
            time, events = number * HOUR, EVENTS if number == 1 else ()
            written.append(
                journals.tick(number, time=time, events=events), journals.standing(number, time=time)
            )
    with open_reader(path) as reader:
        yield reader


@pytest.fixture
def both(journal: Reader) -> tuple[JournalReader, JournalReader]:
    """The journal, and a file of the same lines."""
    return journal, EventFile(EVENTS, list(journal.moments(-math.inf, math.inf)))


def alike(both: tuple[JournalReader, JournalReader], *bounds: float, **question: Any) -> list[Event]:
    """The answer of both."""
    first, second = (list(each.events(*bounds, **question)) for each in both)
    assert first == second
    return first


def test_each_question_of_the_protocol_can_be_asked_of_both(both: tuple[Any, Any]) -> None:
    questions = {name for name in vars(source.JournalReader) if not name.startswith("_")}
    assert questions == {"latest", "began", "events", "moments", "moment_time", "close"}
    for each in both:
        assert [name for name in questions if not callable(getattr(each, name, None))] == []


@pytest.mark.parametrize(
    ("bounds", "told"),
    [
        ((), TOLD),
        ((10.0, 30.0), TOLD[:2]),
        ((20.0,), TOLD[1:]),
        ((30.0, 30.0), []),
        ((31.0, 10.0), []),
        ((-math.inf, math.inf), TOLD),
        ((math.inf,), []),
    ],
)
def test_events_are_told_from_the_beginning_to_before_the_end(
    both: tuple[JournalReader, JournalReader], bounds: tuple[float, ...], told: list[Event]
) -> None:
    assert alike(both, *bounds) == told


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ({"kinds": ()}, TOLD),
        ({"kinds": ("started",)}, [TOLD[1], TOLD[3], TOLD[4]]),
        ({"kinds": ("no such kind", ODD)}, []),
        ({"tenant": ODD}, [TOLD[4]]),
        ({"tenant": ""}, []),
        ({"tenant": "chem", "kinds": {"finished"}}, []),
        ({"keys": [EVENTS[0].key]}, [TOLD[1], TOLD[2]]),
        ({"keys": {EVENTS[0].key: "a mapping counts by its keys"}}, [TOLD[1], TOLD[2]]),
        ({"keys": [EVENTS[1].key, EVENTS[1].key]}, [TOLD[0], TOLD[4]]),
        ({"keys": ()}, []),
        ({"keys": [-1]}, []),
    ],
)
def test_a_question_may_name_kinds_a_tenant_and_jobs(
    both: tuple[JournalReader, JournalReader], question: dict[str, Any], told: list[Event]
) -> None:
    assert alike(both, **question) == told


def test_accounts_at_both_ends_count_and_come_oldest_first(both: tuple[JournalReader, JournalReader]) -> None:
    for start, end, times in (
        (HOUR, 3 * HOUR, {HOUR, 2 * HOUR, 3 * HOUR}),
        (2 * HOUR, 2 * HOUR, {2 * HOUR}),
        (HOUR + 1, 2 * HOUR - 1, set()),
        (3 * HOUR, HOUR, set()),
    ):
        first, second = (list(each.moments(start, end)) for each in both)
        assert first == second
        assert {moment.time for moment in first} == times
        assert all(one.time <= other.time for one, other in pairwise(first))


@pytest.mark.parametrize(
    ("near", "found"),
    [(-math.inf, 1), (0.0, 1), (1.4, 1), (1.5, 1), (1.6, 2), (2.0, 2), (9.0, 3), (1e14, 3)],
)
def test_the_nearest_account_is_the_same(
    both: tuple[JournalReader, JournalReader], near: float, found: int
) -> None:
    assert [each.moment_time(near * HOUR) for each in both] == [found * HOUR] * 2


def test_a_source_that_knows_nothing_says_so(tmp_path: Path) -> None:
    with open_journal(tmp_path / "journal.db"):
        pass
    empty = open_reader(tmp_path / "journal.db")
    for each in (empty, EventFile([], [])):
        known: JournalReader = each
        assert (known.latest(), known.began(), known.moment_time(0.0)) == (None, None, None)
        assert list(known.events()) == []
        assert list(known.moments(-math.inf, math.inf)) == []
        known.close()
