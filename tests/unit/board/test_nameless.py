"""A board for everybody has the shape of the other and names nobody."""

from __future__ import annotations

import json
from typing import Any

import pytest

from slurm_fair.board.board import draw
from slurm_fair.board.nameless import NOTE, nameless
from slurm_fair.model import Standing
from slurm_fair.model.reservation import ReservedNodes, with_reservations
from tests.support.board_scene import NOW, recorded

NAMES = ("vision", "speech", "nlp", "sue", "ned", "mel", "n1", "n2", "n3", "n4")


def _document(**changes: Any) -> dict[str, Any]:
    """The board of a full cluster as it is published."""
    record, standing = recorded(**changes)
    kept = ReservedNodes(int(record.snapshot.jobs.key[5]), NOW, NOW + 9, ("n1", "n2"), 8, 0)
    standing = Standing(*standing)._replace(memory=with_reservations(standing.memory, [kept]))
    return dict(json.loads(json.dumps(draw(record, standing).document())))


def _texts(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set().union(*map(_texts, value.values())) if value else set()
    if isinstance(value, list | tuple):
        return set().union(*map(_texts, value)) if value else set()
    return {value} if isinstance(value, str) else set()


def test_no_name_of_a_whole_board_is_left() -> None:
    whole = _document()
    assert {"vision", "sue", "n1"} <= _texts(whole), "there is something to leave out"
    left = _texts(nameless(whole))
    assert [text for text in left for name in NAMES if name in text.split()] == []
    assert left & set(NAMES) == set()


def test_numbers_ids_and_words_of_ours_stay() -> None:
    whole = _document()
    bare = nameless(whole)
    assert bare.keys() - whole.keys() <= {"note"}
    assert (bare["time"], bare["policy"]) == (whole["time"], whole["policy"])
    for before, after in zip(whole["jobs"], bare["jobs"], strict=True):
        assert before.keys() == after.keys()
        for name in ("job", "gpus", "state", "verdict", "blocked", "lease", "rank", "rho", "lease_end"):
            assert after[name] == before[name], name
        assert (after["user"], after["tenant"], after["nodes"], after["decided"]) == ("", "", "", None)
    assert any(job["rho"] is not None for job in bare["jobs"])


def test_tenants_and_nodes_are_left_out_whole() -> None:
    whole = _document() | {"nodes_out": [{"node": "n9", "why": "DRAIN"}]}
    bare = nameless(whole)
    assert whole["tenants"]
    assert (list(bare["tenants"]), list(bare["nodes_out"]), bare["note"]) == ([], [], NOTE)
    assert (whole["note"], bool(whole["tenants"])) == ("", True), "the other board is as it was"


def test_a_reason_is_said_in_words_of_ours() -> None:
    job = {"job": "7", "why": "vision is owed more", "decided": 0.25}
    bare = nameless({"jobs": [job], "left_alone": [{"reason": "mel's"}]})
    assert bare["jobs"] == [
        {
            "job": "7",
            "why": "the reason may name other jobs, which Slurm's PrivateData hides",
            "decided": None,
        }
    ]
    assert bare["left_alone"] == [{"reason": "is left to plain Slurm"}]


@pytest.mark.parametrize(
    ("value", "bare"),
    [
        ("sue", ""),
        (["sue", ("ned", 3)], ["", ["", 3]]),
        ({"user": {"job": "7", "x": "sue"}}, {"user": {"job": "7", "x": ""}}),
        ({"state": ["running", {"name": "sue"}]}, {"state": ["running", {"name": ""}]}),
        ([None, True, 1.5, 0], [None, True, 1.5, 0]),
        ([], []),
    ],
)
def test_a_text_is_left_out_however_deep_it_lies(value: Any, bare: Any) -> None:
    assert nameless({"said": value})["said"] == bare


def test_a_board_without_anything_is_one() -> None:
    assert nameless({}) == {"jobs": [], "tenants": (), "nodes_out": (), "note": NOTE}
