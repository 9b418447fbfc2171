"""Hops: plans over exact places."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from slurm_fair.errors import ConfigError
from slurm_fair.model import JobState, Verdict
from slurm_fair.policy import load
from slurm_fair.policy.check import objections
from slurm_fair.policy.orders.offer import Offer
from slurm_fair.policy.protocol import QuickPolicy
from slurm_fair_plugins.hops import Hops
from tests.support.accounts import places, reasons, verdicts
from tests.support.builders import NodeSpec, job, node
from tests.support.hops_views import plan, sight


def test_the_job_that_waited_longest_for_its_length_starts_first() -> None:
    seen = sight(
        [job(1, gpus=8), job(2, gpus=8)], {"n1": 8},
        waited={"1": 500.0, "2": 400.0}, declared_seconds=[5000.0, 100.0],
    )  # fmt: skip
    assert plan(seen) == {"2": {"n1": 8}}


def test_an_elastic_job_gets_the_size_that_there_is_room_for() -> None:
    seen = sight(
        [job(1, gpus=8), job(2, gpus=6)], {"n1": 8}, elastic={0: (2, 4, 8)},
        waited={"1": 100.0, "2": 100.0}, declared_seconds=[1000.0, 1000.0],
    )  # fmt: skip  # job 1 gains a little with 8 GPUs, and both together are worth more
    jobs = seen.snapshot.told
    assert jobs is not None
    flat = replace(seen.snapshot, told=jobs.with_columns(scaling=np.array([1.1, np.nan])))
    assert plan(replace(seen, snapshot=flat)) == {"1": {"n1": 2}, "2": {"n1": 6}}


HALVES: dict[str, int | NodeSpec] = {"n1": node(8, gpus_others=4), "n2": node(8, gpus_others=4)}


def test_fragments_go_to_the_job_that_suffers_less_from_lying_apart() -> None:
    wide, waited = [job(1, gpus=7), job(2, gpus=7)], {"1": 90.0, "2": 10.0}
    for rates, first in (([[0.5], [0.95]], "2"), ([[0.95], [0.5]], "1")):
        seen = sight(wide, HALVES, waited=waited, spread_rate=rates, declared_seconds=[100.0, 100.0])
        assert plan(seen) == {first: {"n1": 4, "n2": 3}}


def test_a_sensitive_job_has_fragments_that_nobody_else_takes_whatever_lies_between_them() -> None:
    nodes = {"n1": HALVES["n1"], "n11": node(8, gpus_others=8), "n2": HALVES["n2"]}
    sensitive = sight([job(1, gpus=8)], nodes, spread_rate=[[0.5]], declared_seconds=[100.0])
    assert plan(sensitive) == {"1": {"n1": 4, "n2": 4}}


def test_a_size_that_no_server_holds_is_open_to_a_sensitive_job() -> None:
    seen = sight(
        [job(1, gpus=1)], {"n1": 8, "n2": 8}, elastic={0: (1, 12)}, spread_rate=[[0.6]],
        declared_seconds=[100.0], waited={"1": 50.0},
    )  # fmt: skip
    assert plan(seen) == {"1": {"n1": 8, "n2": 4}}


def test_who_runs_and_keeps_its_shape_stays_on_its_gpus() -> None:
    jobs = [job(1, gpus=4, state=JobState.RUNNING, start=0, on={"n2": 4}), job(2, gpus=8)]
    seen = sight(jobs, over={1: {"n2": 4}}, waited={"2": 5000.0}, declared_seconds=[100.0, 100.0])
    made = load("hops", {}).plan(seen)
    assert verdicts(seen.snapshot, made) == {"1": Verdict.RENEW, "2": Verdict.GRANT}
    assert places(seen.snapshot, made) == {"2": {"n1": 8}}


def test_a_job_that_has_waited_for_much_longer_takes_the_gpus_of_one_that_runs() -> None:
    jobs = [job(1, gpus=8, state=JobState.RUNNING, start=0, on={"n1": 8}), job(2, gpus=8)]
    seen = sight(jobs, {"n1": 8}, over={1: {"n1": 8}}, waited={"2": 5000.0}, declared_seconds=[1e5, 100.0])
    made = load("hops", {}).plan(seen)
    assert verdicts(seen.snapshot, made) == {"1": Verdict.REVOKE, "2": Verdict.GRANT}
    assert "worth more" in reasons(seen.snapshot, made)["1"]


def test_a_job_that_could_run_much_faster_moves_and_its_new_gpus_are_kept() -> None:
    nodes: dict[str, int | NodeSpec] = {"n1": node(4, gpu_type="x"), "n2": node(4, gpu_type="y")}
    running = job(1, gpus=4, state=JobState.RUNNING, start=0, on={"n1": 4})
    seen = sight([running], nodes, over={1: {"n1": 4}}, rates=[[1.0, 3.0]], declared_seconds=[1000.0])
    made = load("hops", {}).plan(seen)
    assert verdicts(seen.snapshot, made) == {"1": Verdict.REVOKE}
    both = [job(1, gpus=4), job(2, gpus=4)]
    later = sight(both, nodes, waited={"2": 1e6}, rates=[[1.0, 3.0], [1.0, 3.0]], declared_seconds=[1e3, 1e3])
    assert plan(replace(later, memory=made.memory)) == {"1": {"n2": 4}, "2": {"n1": 4}}


def test_it_rests_only_where_nobody_could_have_another_shape() -> None:
    one_type = sight([job(1, gpus=2)])
    assert Hops().rests(one_type.snapshot, {})
    assert not Hops().rests(sight([job(1, gpus=2)], elastic={0: (4,)}).snapshot, {})
    assert not Hops().rests(one_type.snapshot, {"moves": [[1, [["n1", 2]]]]})


@pytest.mark.parametrize("setting", [{"threshold": 0.5}, {"gap": 2.0}, {"power": -1.0}, {"priority": "lifo"}])
def test_a_setting_that_cannot_be_is_refused(setting: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=next(iter(setting))):
        load("hops", setting)


@pytest.mark.parametrize("name", ["hops", "sia", "pollux"])
def test_a_quick_plan_asks_no_solver(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: object) -> None:
        raise AssertionError("a solver was asked")

    monkeypatch.setattr("highspy.Highs", refuse)
    seen = sight(
        [job(1, gpus=6), job(2, gpus=4)], {"n1": 8}, elastic={0: (2, 4, 6)}, declared_seconds=[9.0, 9.0]
    )
    policy = load(name, {})
    assert isinstance(policy, QuickPolicy)
    quick = policy.quick_plan(seen)
    assert objections(quick, seen) == ""
    assert sum(places(seen.snapshot, quick)["1"].values()) in (2, 4, 6)


def test_a_contested_job_whose_gpus_were_given_away_is_not_kept() -> None:
    jobs = [job(1, gpus=4, state=JobState.RUNNING, start=0, on={"n1": 4}), job(2, gpus=8)]
    seen = sight(jobs, {"n1": 8}, over={1: {"n1": 4}})
    offer = Offer(seen)
    assert offer.grant(1, [(0, 8)])
    offer.keep(np.array([0]))
    assert not offer.kept.any()
    offer.stop_contested(np.array([1, 0]))
    assert offer.stops == [0]


# -- servers of one type that differ --------------------------------------------------------------------------
