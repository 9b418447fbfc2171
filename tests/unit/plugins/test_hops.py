"""Hops: latency ratios, the window, sensitivity, and plans over exact places."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from slurm_fair.errors import ConfigError
from slurm_fair.model import JobState, NodeSpeeds, Sizes, Speeds, Told, Verdict, labels
from slurm_fair.policy import View, load
from slurm_fair.policy.check import objections
from slurm_fair.policy.orders.offer import Offer
from slurm_fair.policy.protocol import QuickPolicy
from slurm_fair_plugins.hops import Hops
from slurm_fair_plugins.hops.priority import expected_run_seconds, priorities
from slurm_fair_plugins.hops.window import sensitivity, window_end, with_insensitive
from tests.support.accounts import places, reasons, verdicts, view
from tests.support.builders import JobSpec, NodeSpec, job, lease, leases, node, snapshot

NOW = 10_000.0


def sight(
    jobs: list[JobSpec],
    nodes: dict[str, int | NodeSpec] | None = None,
    *,
    waited: dict[str, float] | None = None,
    elastic: dict[int, tuple[int, ...]] | None = None,
    over: dict[int, dict[str, int]] | None = None,
    rates: list[list[float]] | None = None,
    **told: list[float] | list[list[float]],
) -> View:
    """A view: `elastic` are further sizes by row, `over` the places of jobs whose lease is over."""
    seen = snapshot(time=NOW, nodes=nodes or {"n1": 8, "n2": 8}, jobs=jobs)
    said = Told.nothing(len(jobs), len(seen.gpu_types)).with_columns(
        **{name: np.array(values) for name, values in told.items()}
    )
    if rates is not None:
        said = said.with_columns(rate=np.array(rates))
    sizes = [
        (row, gpus, gpus == jobs[row].gpus)
        for row, more in sorted((elastic or {}).items())
        for gpus in sorted({jobs[row].gpus, *more})
    ]
    if sizes:
        row, gpus, usual = (np.array(column) for column in zip(*sizes, strict=True))
        seen = replace(seen, sizes=Sizes(row, gpus, usual))
    held = leases(*(lease(base, on, end=NOW - 1) for base, on in (over or {}).items()))
    shown = view(replace(seen, told=said), held)
    accounts = shown.ledger.jobs
    seconds = [(waited or {}).get(label, 0.0) for label in labels(accounts.key)]
    accounts = accounts.with_columns(waited=np.array(seconds))
    return replace(shown, ledger=replace(shown.ledger, jobs=accounts))


def plan(seen: View, **settings: object) -> dict[str, dict[str, int]]:
    """Places of the granted jobs; the controller has no objection to the plan."""
    made = load("hops", settings).plan(seen)
    assert objections(made, seen) == ""
    return places(seen.snapshot, made)


def test_a_latency_ratio_is_the_wait_over_the_expected_run_time() -> None:
    seen = sight([job(1), job(2)], waited={"1": 100.0, "2": 100.0}, declared_seconds=[50.0, 400.0])
    assert priorities(seen, np.arange(2), "lr").tolist() == [2.0, 0.25]


def test_the_expected_time_is_over_types_by_their_part_and_over_sizes_by_their_mean() -> None:
    nodes: dict[str, int | NodeSpec] = {"n1": node(6, gpu_type="x"), "n2": node(2, gpu_type="y")}
    seen = sight(
        [job(1, gpus=2)],
        nodes,
        elastic={0: (2, 4)},
        rates=[[1.0, 2.0]],
        declared_seconds=[300.0],
        scaling=[2.0],
    )  # with one GPU half as fast as with two: 0.75 * 300 / (0.5 * 3) + 0.25 * 300 / (1 * 3)
    assert expected_run_seconds(seen, np.arange(1)).tolist() == pytest.approx([0.75 * 200 + 0.25 * 100])


def test_a_job_of_which_nobody_knows_how_long_it_runs_counts_as_the_median() -> None:
    jobs = [job(1), job(2), job(3, time_limit_seconds=float("inf"))]
    seen = sight(jobs, declared_seconds=[100.0, 300.0, float("nan")])
    assert expected_run_seconds(seen, np.arange(3)).tolist() == [100.0, 300.0, 200.0]


@pytest.mark.parametrize(
    ("name", "first"),
    [("lr", "2"), ("sjf", "2"), ("srtf", "3"), ("las", "1"), ("ftf", "2"), ("ltgf", "1")],
)
def test_priorities_by_name(name: str, first: str) -> None:
    seen = sight(
        [job(1, gpus=8), job(2, gpus=8), job(3, gpus=8)],
        {"n1": 8},
        waited={"2": 50.0},
        declared_seconds=[900.0, 60.0, 600.0],
        left_seconds=[900.0, 60.0, 5.0],
    )
    jobs = seen.ledger.jobs
    had = np.array([0.0, 100.0, 100.0])
    seen = replace(seen, ledger=replace(seen.ledger, jobs=jobs.with_columns(had=had, owed=had + 1)))
    assert list(plan(seen, priority=name)) == [first]


def test_the_window_ends_with_the_job_that_fills_the_cluster() -> None:
    assert window_end(np.array([4, 4, 8, 1]), 16) == 3
    assert window_end(np.array([4, 4, 9, 1]), 16) == 3
    assert window_end(np.array([4]), 16) == 1


def test_jobs_behind_the_window_join_a_plan_of_fragments_while_the_window_is_too_sensitive() -> None:
    inside = np.array([True, True, False, False, False, False])
    sensitivity, least = np.array([2.0, 2.0, 1.0, 2.0, 1.0, 1.0]), np.array([8, 8, 1, 1, 3, 1])
    wider = with_insensitive(inside, sensitivity, least, idle=3)
    assert wider.tolist() == [True, True, True, False, False, True]  # 3 GPUs are not fewer than are idle
    assert with_insensitive(inside, sensitivity[::-1].copy(), least, idle=3).tolist() == inside.tolist()


def test_sensitivity_is_speed_alone_over_speed_per_gpu_apart() -> None:
    seen = sight([job(1, gpus=2), job(2, gpus=2)], spread_rate=[[0.5], [1.0]], scaling=[2.0, 2.0])
    assert sensitivity(seen, np.arange(2)).tolist() == pytest.approx([2.0, 1.0])


def test_the_job_that_waited_longest_for_its_length_starts_first() -> None:
    seen = sight(
        [job(1, gpus=8), job(2, gpus=8)],
        {"n1": 8},
        waited={"1": 500.0, "2": 400.0},
        declared_seconds=[5000.0, 100.0],
    )
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
        [job(1, gpus=1)],
        {"n1": 8, "n2": 8},
        elastic={0: (1, 12)},
        spread_rate=[[0.6]],
        declared_seconds=[100.0],
        waited={"1": 50.0},
    )
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


def test_a_job_outside_the_window_is_told_so() -> None:
    jobs = [job(1, gpus=8), job(2, gpus=6), job(3, gpus=8)]
    seen = sight(jobs, {"n1": 8}, declared_seconds=[9.0, 900.0, 9.0], waited={"1": 9.0, "2": 9.0})
    made = load("hops", {}).plan(seen)
    assert verdicts(seen.snapshot, made)["1"] == Verdict.GRANT
    assert "ask for all GPUs" in reasons(seen.snapshot, made)["3"]


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


def on_unlike_servers(seen: View, **ratio: float) -> View:
    """The same where jobs of the one class are known to be so fast on these servers."""
    rows, names = len(seen.snapshot.jobs), list(seen.snapshot.nodes.names)
    known = NodeSpeeds(
        np.zeros(len(ratio), dtype=np.int64),
        np.array([names.index(name) for name in ratio]),
        np.array([*ratio.values()]),
    )
    table = np.full((1, 1, 1, 2), 100.0)
    speeds = Speeds(np.zeros(rows, dtype=np.int64), np.array([4]), table, table / 100, ("a: x",), known)
    return replace(seen, snapshot=replace(seen.snapshot, speeds=speeds))


@pytest.mark.parametrize(("ratio", "where"), [({"n1": 0.5}, "n2"), ({"n2": 0.5}, "n1"), ({"n2": 1.5}, "n2")])
def test_a_job_goes_to_the_server_of_its_type_on_which_it_is_faster(
    ratio: dict[str, float], where: str
) -> None:
    seen = on_unlike_servers(sight([job(1, gpus=8)]), **ratio)
    assert plan(seen) == {"1": {where: 8}}


def test_all_servers_are_used_however_slow_they_are() -> None:
    seen = on_unlike_servers(sight([job(1, gpus=8), job(2, gpus=8)]), n1=0.3)
    assert sorted(map(repr, plan(seen).values())) == ["{'n1': 8}", "{'n2': 8}"]


@pytest.mark.parametrize(("slow", "where"), [(0.5, {"n2": 4}), (0.97, None)])
def test_who_runs_on_a_slow_server_moves_only_where_that_is_worth_more_than_to_stay(
    slow: float, where: dict[str, int] | None
) -> None:
    runs = job(1, gpus=4, state=JobState.RUNNING, start=NOW - 400, on={"n1": 4})
    seen = on_unlike_servers(sight([runs], over={1: {"n1": 4}}), n1=slow)
    made = load("hops", {}).plan(seen)
    assert objections(made, seen) == ""
    assert verdicts(seen.snapshot, made)["1"] is (Verdict.REVOKE if where else Verdict.RENEW)
    assert [on for _, on in made.memory.get("moves", [])] == ([[["n2", 4]]] if where else [])


def test_a_gang_that_needs_several_servers_lies_on_unlike_ones_too() -> None:
    seen = on_unlike_servers(sight([job(1, gpus=16), job(2, gpus=2)], waited={"1": 900.0}), n1=0.5)
    assert plan(seen) == {"1": {"n1": 8, "n2": 8}}


def test_a_gang_that_runs_on_unlike_servers_stays_there() -> None:
    runs = job(1, gpus=6, state=JobState.RUNNING, start=NOW - 400, on={"n1": 3, "n2": 3})
    seen = on_unlike_servers(sight([runs], {"n1": 4, "n2": 4}, over={1: {"n1": 3, "n2": 3}}), n1=0.5)
    assert verdicts(seen.snapshot, load("hops", {}).plan(seen))["1"] is Verdict.RENEW
