"""The board of one tick: what people are told of tenants and jobs."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from slurm_fair.board.board import Board, _gpus, draw, read_board
from slurm_fair.errors import StoreError
from slurm_fair.forecast import Forecast
from slurm_fair.model import (
    Blocked,
    JobState,
    LeasePhase,
    LeftAlone,
    Placement,
    Snapshot,
    Standing,
    Told,
    Verdict,
)
from slurm_fair.model.ids import pack
from slurm_fair.model.reservation import ReservedNodes, with_reservations
from tests.support.accounts import Account, ledger
from tests.support.board_scene import plan, tick
from tests.support.builders import job, lease, leases, node, snapshot

NOW = 5000.0
RUNNING = JobState.RUNNING
SEEN = snapshot(
    time=NOW,
    nodes={"n1": 8, "n2": node(8, usable=False, why="DRAIN")},
    weights={"a": 1.0, "b": 3.0},
    left_alone=[LeftAlone("99", "asks for no GPU")],
    jobs=[
        job(1, gpus=4, tenant="a", state=RUNNING, start=4000, on={"n1": 4}),
        job(2, gpus=8, tenant="b", submit=4500, time_limit_seconds=1000.0),
        job(3, gpus=2, tenant="b", submit=4600),
        job(4, gpus=2, tenant="a", blocked=Blocked.USER_HOLD, reason="JobHeldUser"),
        job(5, gpus=1, tenant="a", state=JobState.DONE),
        job(6, gpus=2, tenant="b", submit=4700),
    ],
)
HELD = leases(
    lease(1, {"n1": 4}, start=4000, granted=4000, end=5400, renewals=2),
    lease(6, {"n1": 2}, phase=LeasePhase.GRANTED, granted=4990, end=5400),
)


def board(**changes: Any) -> Board:
    """The board of the snapshot above; ranks 1, 0 of the waiting jobs 2 and 3."""
    said = [Verdict.KEEP, Verdict.WAIT, Verdict.WAIT, Verdict.LEAVE, Verdict.LEAVE, Verdict.KEEP]
    planned = plan(
        SEEN,
        said,
        ("its lease is not over", "others are owed more", "its owner holds it"),
        reason=np.array([0, 1, 1, 2, 2, 0]),
        rank=np.array([-1, 1, 0, -1, -1, -1]),
        note=changes.pop("note", ""),
        no_turn=changes.pop("no_turn", {}),
    )
    books = ledger(
        SEEN,
        {"a": Account(had=4000, owed=2000), "b": Account(had=0, owed=6000)},
        {"1": Account(had=4000, owed=1000), "2": Account(had=0, owed=500, ran=0)},
    )
    seen, ahead = changes.pop("seen", SEEN), changes.pop("ahead", None)
    memory, counts_seconds = changes.pop("memory", {}), changes.pop("counts_seconds", math.inf)
    standing = Standing(books, HELD, 7, memory)
    return draw(tick(seen, planned, **changes), standing, ahead, counts_seconds=counts_seconds)


def of(label: str) -> dict[str, Any]:
    """The row of one job."""
    row = board().find(label)
    assert row is not None, f"job {label} is not on the board"
    return dict(row)


def test_promised_jobs_come_first_then_running_ones_then_the_waiting_ones_as_they_deserve() -> None:
    assert [row["job"] for row in board().jobs] == ["6", "1", "3", "2", "4"]


def test_a_job_that_ended_is_not_on_the_board() -> None:
    assert board().find("5") is None


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        (
            "1",
            {
                "state": "running",
                "verdict": "keep",
                "lease_end": 5400.0,
                "leases": 3,
                "nodes": "n1",
                "rho": 4.0,
            },
        ),
        (
            "2",
            {"state": "waiting", "why": "others are owed more", "lease_end": None, "leases": 0, "rho": 0.0},
        ),
        ("3", {"rho": None, "latency_ratio": None, "rank": 0}),
        ("4", {"blocked": "user_hold", "slurm_reason": "JobHeldUser", "expected_start": None}),
        (
            "6",
            {"lease_end": None, "leases": 1, "verdict": "keep", "lease": "promised", "promised_nodes": "n1"},
        ),
    ],
)
def test_each_job_is_told_where_it_stands(label: str, expected: dict[str, Any]) -> None:
    row = of(label)
    assert {name: row[name] for name in expected} == expected


def test_what_a_user_declares_stands_for_a_time_limit_that_is_not_there() -> None:
    told = Told.nothing(len(SEEN.jobs), len(SEEN.gpu_types))
    declared = np.where(np.arange(len(SEEN.jobs)) == 2, 200.0, np.nan)
    row = board(seen=replace(SEEN, told=told.with_columns(declared_seconds=declared))).find("3")
    assert row is not None
    assert (of("3")["latency_ratio"], row["latency_ratio"]) == (None, 0.0)


def test_expected_starts_are_those_of_the_forecast_and_others_have_none() -> None:
    ahead = Forecast({pack(3): 5400.0}, {pack(2): 9000.0})
    rows = {row["job"]: (row["expected_start"], row["not_before"]) for row in board(ahead=ahead).jobs}
    assert (rows["3"], rows["2"], rows["4"]) == ((5400.0, None), (None, 9000.0), (None, None))


def test_what_a_forecast_of_an_earlier_look_expected_before_now_is_expected_now_and_of_waiting_jobs_only() -> (
    None
):
    ahead = Forecast({pack(1): NOW + 5, pack(3): NOW - 5}, {})
    rows = {row["job"]: row["expected_start"] for row in board(ahead=ahead).jobs}
    assert (rows["1"], rows["3"]) == (None, NOW)


def test_tenants_are_told_their_quota_and_what_they_had() -> None:
    a, b = board().tenants
    assert (a["tenant"], a["quota_gpus"], a["gpus"], a["running"], a["waiting"]) == ("a", 2.0, 4, 1, 1)
    assert (a["had_gpu_seconds"], a["owed_gpu_seconds"], a["rho"]) == (4000.0, 2000.0, 2.0)
    assert (b["tenant"], b["quota_gpus"], b["gpus"], b["demand_gpus"], b["rho"]) == ("b", 6.0, 0, 12, 0.0)


def test_a_tenant_that_is_away_for_long_has_no_quota_and_the_others_share_its_part() -> None:
    only_a = replace(SEEN, jobs=SEEN.jobs.take(SEEN.jobs.tenant == 0), held=SEEN.held.take(SEEN.held.row < 1))
    assert [row["quota_gpus"] for row in _board_of(only_a, 600.0)] == [8.0, 0.0]
    assert [row["quota_gpus"] for row in _board_of(only_a, math.inf)] == [2.0, 6.0]


def _board_of(seen: Snapshot, counts_seconds: float) -> list[dict[str, Any]]:
    books = ledger(seen, {"a": Account(), "b": Account()}, {})
    planned = plan(seen, [Verdict.KEEP, Verdict.LEAVE, Verdict.LEAVE], ("",))
    tenants = draw(tick(seen, planned), Standing(books, HELD, 7), counts_seconds=counts_seconds).tenants
    return [dict(row) for row in tenants]


def test_quotas_are_by_the_weight_of_the_gpus_and_the_weights_are_told() -> None:
    weighed = replace(SEEN, gpu_weights=np.array([0.5]))
    shown = board(seen=weighed)
    assert [row["quota_gpus"] for row in shown.tenants] == [1.0, 3.0]
    assert (shown.gpu_weights, board().gpu_weights) == ({"gpu": 0.5}, {})


def test_a_gang_is_told_which_nodes_are_set_aside_for_it_since_when_and_until_when() -> None:
    key = int(pack(2))
    kept = with_reservations({}, [ReservedNodes(key, NOW - 60, NOW + 300, ("n1",), 8, 0)])
    shown = {row["job"]: row["set_aside"] for row in board(memory=kept).jobs}
    assert shown.pop("2") == {"nodes": ["n1"], "since": NOW - 60, "expected": NOW + 300}
    assert set(shown.values()) == {None}


def test_a_job_that_asks_for_turns_of_the_profiler_in_vain_is_told_why() -> None:
    why = {"it cannot save and be requeued": np.array([pack(2), pack(3), pack(77)])}
    shown = {row["job"]: row["no_turn"] for row in board(no_turn=why).jobs if row["no_turn"]}
    assert shown == dict.fromkeys("23", "it cannot save and be requeued")


def test_a_held_job_is_no_demand() -> None:
    a, _ = board().tenants
    assert a["demand_gpus"] == 4


def test_the_board_says_what_is_left_alone_and_which_nodes_are_out() -> None:
    (alone,) = board().left_alone
    assert alone == {"job": "99", "reason": "asks for no GPU", "user": "", "unreadable": False}
    assert board().nodes_out == ({"node": "n2", "why": "DRAIN"},)
    assert board().total_gpus == 8


def test_notes_of_plan_and_guard_are_both_told() -> None:
    assert board(note="the policy was late", guard="3 acts wait").note == "the policy was late 3 acts wait"
    assert board().note == ""


def test_a_published_board_reads_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "board.json"
    drawn = board(dry_run=True)
    path.write_text(json.dumps(drawn.document()))
    back = read_board(path)
    assert back.document() == json.loads(json.dumps(drawn.document()))
    assert back.find("1") == json.loads(json.dumps(drawn.find("1")))
    assert back.dry_run


def test_the_document_is_plain_json_without_nan() -> None:
    json.dumps(board().document(), allow_nan=False)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"v": 99}', '{"v": 1}', '{"v": 1, "time": 3, "odd": 1}'])
def test_something_that_is_no_board_is_one_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "board.json"
    path.write_text(text)
    with pytest.raises(StoreError, match=r"board\.json"):
        read_board(path)


def test_a_board_that_is_not_there_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be read"):
        read_board(tmp_path / "none.json")


def test_an_empty_cluster_has_a_board() -> None:
    empty: Snapshot = snapshot(time=NOW, nodes={"n1": 8})
    record = tick(empty, plan(empty, (), ()))
    assert draw(record, Standing.new(NOW)).jobs == ()


def test_every_gpu_is_counted_once() -> None:
    seen = snapshot(
        time=NOW,
        nodes={"n1": node(8, gpus_others=2), "n2": node(8, usable=False, why="DRAIN")},
        jobs=[job(1, gpus=4, state=RUNNING, on={"n1": 4}), job(2, gpus=3, state=RUNNING, on={"n2": 3})],
    )
    assert _gpus(seen) == {"used": 7, "others": 2, "free": 2, "out": 5}


def test_a_promise_names_its_nodes_by_the_numbers_that_the_lease_goes_by() -> None:
    seen = replace(SEEN, nodes=snapshot(nodes={"n0": 8, "n1": 8, "n2": 8}).nodes, held=Placement.none())
    row = board(seen=seen).find("6")
    assert row is not None
    assert row["promised_nodes"] == "n1"
