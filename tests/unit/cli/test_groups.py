"""Runs of a sweep that differ by their seeds alone are one group."""

from __future__ import annotations

from math import isnan
from typing import Any

import click
import pytest

from slurm_fair.cli.sweep.groups import by_load, groups_of, measures, metrics_in
from slurm_fair.cli.sweep.results_file import DONE


def row(seed: int, value: float = 1.0, **columns: Any) -> dict[str, Any]:
    told = {"policy": "fifo", "lease_s": 900.0, "load": 1.0, "seed": seed, "state": DONE, "problem": None}
    return {**told, "run": seed, "version": "1", "mean_jct_s": value, **columns}


def test_a_group_has_the_mean_and_the_deviation_over_its_seeds() -> None:
    lost = row(3, state="failed", problem="no memory")
    one, other = groups_of([row(1, 10.0), row(2, 14.0), lost, row(1, 5.0, lease_s=None)])
    assert (one.seeds, one.lost, other.seeds) == ((1, 2), (3,), (1,))
    assert (one.mean("mean_jct_s"), other.mean("mean_jct_s")) == (12.0, 5.0)
    assert one.deviation("mean_jct_s") > 0
    assert isnan(other.deviation("mean_jct_s"))
    assert isnan(one.mean("unheard"))
    assert (one.name, other.lease_words) == ("fifo, lease 900 s, load 1", "never ends")
    assert one.document(["mean_jct_s"])["mean"] == {"mean_jct_s": 12.0}
    assert (one.document([])["failed"], one.row["policy"]) == (1, "fifo")


def test_a_group_of_which_no_run_is_done_has_no_numbers() -> None:
    (group,) = groups_of([row(1, state="failed")])
    assert isnan(group.mean("mean_jct_s"))
    assert group.lost == (1,)


def test_the_measures_of_a_run_say_not_which_it_is() -> None:
    assert measures(row(1)) == {"mean_jct_s": 1.0}


def test_groups_of_one_load_can_be_compared() -> None:
    groups = groups_of([row(1, load=2.0), row(1, load=1.0), row(1, load=2.0, policy="las")])
    assert [[group.policy for group in some] for some in by_load(groups)] == [["fifo"], ["fifo", "las"]]


def test_a_metric_is_named_by_its_key() -> None:
    assert [metric.key for metric in metrics_in(" jct_mean_s , makespan_s")] == ["jct_mean_s", "makespan_s"]
    with pytest.raises(click.BadParameter, match="no metric 'unheard-of'"):
        metrics_in("unheard-of")
    with pytest.raises(click.BadParameter, match="makespan_s is there twice: keep one of them"):
        metrics_in("makespan_s,jct_mean_s,makespan_s")
