"""Events of a job read as sentences, in the order in which they came, without any control character."""

from __future__ import annotations

from typing import Any

import pytest

from slurm_fair.cli.story import for_jobs, story
from slurm_fair.model import Event, EventKind
from slurm_fair.model.ids import pack
from slurm_fair.reconcile.for_whom import NEEDED_NO_MORE

NOW = 1_700_000_000.0  # 2023-11-14T22:13:20 in UTC
pytestmark = pytest.mark.usefixtures("utc")


def _event(kind: str, after: float = 0.0, **said: Any) -> Event:
    return Event(NOW + after, kind, pack(7), "vision", 4, said)


def _said(kind: str, **said: Any) -> str:
    """The sentence on one event, without its instant."""
    (line,) = story([_event(kind, **said)])
    assert line.startswith("2023-11-14T22:13:20 ")
    return line[20:]


UNTIL = {"until": NOW + 60}


@pytest.mark.parametrize(
    ("kind", "said", "sentence"),
    [
        ("submitted", {}, "submitted"),
        ("submitted", {"user": "ann"}, "submitted by ann"),
        (
            "granted",
            {"nodes": ["n1", "n2"], "why": "granted", **UNTIL},
            "GPUs on n1,n2 were promised to it until 2023-11-14T22:14:20, because its turn came",
        ),
        ("granted", {}, "GPUs were promised to it"),
        ("opened", {"nodes": ("n1",)}, "its gate was opened: Slurm may start it on n1"),
        ("started", {"nodes": ["n1"], "restarts": 0}, "started on n1"),
        ("started", {"restarts": 2}, "started (run 3)"),
        ("adopted", UNTIL, "it ran already and got a lease until 2023-11-14T22:14:20"),
        (
            "adopted",
            {"moved": True},
            "somebody moved its gate and it started: its account's one such wish, and charged",
        ),
        ("renewed", {"number": 2}, "its lease was renewed: lease 2 of this run"),
        ("renewed", {}, "its lease was renewed: lease ? of this run"),
        (
            "revoked",
            {"why": "revoked"},
            "its lease was not renewed, because its lease was over and others were owed more",
        ),
        ("asked", {"why": "x", "for": ["8"]}, "it was asked to save and to give way, because x; for job 8"),
        ("requeued", {"why": "it answered"}, "it was put back into the queue, because it answered"),
        ("returned", {"held_seconds": 90_061}, "it gave its GPUs back after 1-01:01:01"),
        ("returned", {"held_seconds": 0}, "it gave its GPUs back"),
        ("takenback", {"nodes": ["n1"], "why": "x"}, "the promise of GPUs on n1 was taken back, because x"),
        ("stays", {"why": "no"}, "Slurm did not take it off its GPUs, so it has another lease, because no"),
        (
            "stays",
            {"why": NEEDED_NO_MORE, **UNTIL},
            "the request was withdrawn, nobody needs its GPUs any more: its lease goes on until "
            "2023-11-14T22:14:20",
        ),
        ("stopped", {"had": 0.0}, "this run was over: it had 0.00 GPU-hours"),
        ("stopped", {}, "this run was over"),
        ("finished", {"state": "FAILED", "had": 5400.0}, "ended (FAILED): 1.50 GPU-hours in all"),
        ("finished", {"had": 0}, "ended: 0.00 GPU-hours in all"),
        ("finished", {}, "ended"),
        ("flew", {"far": 3, "why": "", "to": None, "by": []}, "flew: far 3"),
        ("flew", {}, "flew"),
    ],
)  # fmt: skip
def test_each_kind_has_its_sentence(kind: str, said: dict[str, Any], sentence: str) -> None:
    assert _said(kind, **said) == sentence


def test_every_kind_of_a_job_has_a_sentence_of_its_own() -> None:
    for kind in EventKind:
        if kind != EventKind.CAPACITY:
            assert not _said(kind).startswith(kind.value + ":"), kind
            assert _said(kind, odd="x") == _said(kind), kind


HOSTILE = "a\nb\x1b[31m\u202e\x00"


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("submitted", {"user": HOSTILE}),
        ("opened", {"nodes": [HOSTILE]}),
        ("requeued", {"why": HOSTILE}),
        ("asked", {"for": [{"job": HOSTILE, "tenant": HOSTILE}]}),
        ("finished", {"state": HOSTILE}),
        ("flew", {HOSTILE: HOSTILE}),
        (HOSTILE, {}),
    ],
)
def test_words_from_elsewhere_stay_in_their_line(kind: str, said: dict[str, Any]) -> None:
    sentence = _said(kind, **said)
    assert sentence.isprintable()
    assert "a?b?[31m??" in sentence


def test_many_nodes_and_many_jobs_are_cut() -> None:
    nodes = [f"n{number}" for number in range(9)]
    assert _said("opened", nodes=nodes[:8]).endswith(" on n0,n1,n2,n3,n4,n5,n6,n7")
    assert _said("opened", nodes=nodes).endswith(" on n0,n1,n2,n3,n4,n5,n6,n7,... (9 nodes)")
    jobs = [str(number) for number in range(7)]
    assert _said("asked", **{"for": jobs[:6]}).endswith("; for jobs 0, 1, 2, 3, 4, 5")
    assert _said("asked", **{"for": jobs}).endswith("; for jobs 0, 1, 2, 3, 4, 5, ...")


def test_the_tenants_of_jobs_are_those_that_were_kept_or_are_known() -> None:
    whom = [{"job": "8", "tenant": "kept"}, {"job": "9"}, "10", {"no": "job"}]
    (line,) = story([_event("revoked", 0.0, **{"for": whom})], {"8": "now", "9": "nlp"})
    assert line.endswith("; for jobs 8 (kept), 9 (nlp), 10")


@pytest.mark.parametrize("whom", [None, "8", 8, {}, [], {"job": "8"}])
def test_what_names_no_jobs_is_for_nobody(whom: object) -> None:
    assert for_jobs({"for": whom}) == []
    assert _said("asked", **{"for": whom}) == "it was asked to save and to give way"


def test_renewals_in_a_row_are_one_line() -> None:
    renewed = [_event("renewed", after, number=number) for number, after in ((2, 10), (3, 20), (4, 30))]
    lines = story([*renewed, _event("stopped", 40), _event("renewed", 50, number=1)])
    assert [line[20:] for line in lines] == [
        "its lease was renewed 3 times, at last to lease 4 of this run",
        "this run was over",
        "its lease was renewed: lease 1 of this run",
    ]
    assert lines[0].startswith("2023-11-14T22:13:50")


def test_a_job_starts_behind_its_gate_and_ends_last_within_a_second() -> None:
    events = [
        _event("finished", 5.0),
        _event("started", 0.0),
        _event("granted", 0.4),
        _event("opened", 0.7),
        _event("stopped", 5.0),
        _event("returned", 5.6),
    ]
    words = [line.split()[1] for line in story(events)]
    assert words == ["GPUs", "its", "started", "this", "it", "ended"]


def test_what_came_at_one_time_keeps_its_order() -> None:
    lines = story([_event("asked"), _event("requeued"), _event("returned")])
    assert [line.split()[2:4] for line in lines] == [["was", "asked"], ["was", "put"], ["gave", "its"]]


@pytest.mark.parametrize(("count", "left"), [(20, 0), (21, 1), (50, 30)])
def test_the_last_twenty_events_are_told(count: int, left: int) -> None:
    lines = story([_event("opened", float(number), nodes=[f"n{number}"]) for number in range(count)])
    assert lines[-1].endswith(f" on n{count - 1}")
    assert lines[-20].endswith(f" on n{count - 20}")
    assert lines[:-20] == ([f"({left} earlier events: see --json)"] if left else [])


def test_renewals_that_are_folded_count_as_one_of_the_last() -> None:
    events = [_event("submitted", -1.0), *(_event("renewed", float(n), number=n) for n in range(100))]
    assert len(story(events)) == 2
    assert story([]) == []
