"""A chart of GPUs: each run lies on free GPUs of its nodes, as many as it had."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from slurm_fair.cli.simulate import gantt as module
from slurm_fair.cli.simulate.case import Case
from slurm_fair.cli.simulate.gantt import gantt_of
from slurm_fair.cli.simulate.one_run import SimulationOrder, run_one
from slurm_fair.cli.simulate.setups import PolicySetup
from slurm_fair.sim.scenario import Scenario
from slurm_fair.trace import Machines, uniform
from tests.support.any_scenario import machines
from tests.support.simulated import Arrival, arrival, trace

FIFO = PolicySetup("fifo", {}, None, 10.0, False, False, 0.0, 0)
LAS = PolicySetup("las", {}, 300.0, 10.0, False, False, 0.0, 0)
ROW = 11.0  # of one GPU, from top to bottom


def chart(
    jobs: Iterable[Arrival], machines: Machines, until: float = math.inf, setup: PolicySetup = FIFO
) -> ElementTree.Element:
    """The figure of a simulation, as a page holds it."""
    scenario = Scenario(trace(jobs), machines, until_s=until)
    done = run_one(SimulationOrder(scenario, setup, keeps_grants=True), lambda *said: None)
    figure = gantt_of(Case(scenario, Path("made.csv"), 0, 0, (), "equal"), done)
    return ElementTree.fromstring(f"<div>{figure}</div>")


def words(bar: ElementTree.Element) -> str:
    return bar.findtext("title") or ""


def rows(figure: ElementTree.Element) -> dict[str, list[int]]:
    """The GPUs of each job, numbered from the first of the first node."""
    found: dict[str, list[int]] = {}
    for bar in figure.iter("rect"):
        found.setdefault(words(bar).partition(",")[0], []).append(int(float(bar.get("y", "nan")) // ROW))
    return {job: sorted(places) for job, places in found.items()}


def test_a_bar_says_whose_run_it_is_and_when() -> None:
    figure = chart([arrival(100, gpus=2, seconds=3600, tenant="vision", job_id="j1")], uniform(4, 2))
    assert [words(bar) for bar in figure.iter("rect")] == ["j1, vision, 2 GPUs, 00:00:00 to 01:00:00"] * 2


def test_jobs_side_by_side_lie_on_gpus_of_their_own() -> None:
    jobs = [arrival(0, gpus=size, seconds=100, job_id=f"j{size}") for size in (4, 2, 1)]
    found = rows(chart(jobs, uniform(8, 4)))
    assert {job: len(places) for job, places in found.items()} == {"j4": 4, "j2": 2, "j1": 1}
    taken = [row for places in found.values() for row in places]
    assert len(set(taken)) == 7
    assert found["j4"] in ([0, 1, 2, 3], [4, 5, 6, 7]), "on one node"


def test_a_gang_that_asked_for_nodes_has_the_same_number_on_each() -> None:
    found = rows(chart([arrival(0, gpus=4, nodes=2, seconds=100, job_id="wide")], uniform(8, 4)))
    assert found == {"wide": [0, 1, 4, 5]}


def test_a_gang_that_does_not_divide_evenly_shares_no_gpu_with_others() -> None:
    jobs = [arrival(0, gpus=4, nodes=3, seconds=100, job_id="wide")]
    jobs += [arrival(0, seconds=90, job_id=name) for name in "ab"]
    places = rows(chart(jobs, uniform(6, 2)))
    assert sorted(row for each in places.values() for row in each) == [0, 1, 2, 3, 4, 5]
    assert {row // 2 for row in places["wide"]} == {0, 1, 2}


def test_each_run_has_a_bar_for_each_of_its_gpus() -> None:
    """Runs that begin together are drawn in another order than they were placed in."""
    gangs = ((1020, 3, 2, 1267), (0, 5, 2, 1867), (420, 2, 1, 667), (1020, 2, 1, 2407), (360, 6, 3, 667))
    jobs = [arrival(at, gpus=gpus, nodes=nodes, seconds=seconds) for at, gpus, nodes, seconds in gangs]
    bars = Counter(map(words, chart(jobs, machines((4, 4, 2)), setup=LAS).iter("rect")))
    assert len(bars) > len(jobs), "some were stopped"
    assert all(count == int(run.split(", ")[2].removesuffix(" GPUs")) for run, count in bars.items())


def test_a_gang_that_asked_for_none_lies_on_node_after_node() -> None:
    found = rows(chart([arrival(0, gpus=6, seconds=100, job_id="six")], uniform(8, 4)))
    assert len(found["six"]) == 6
    assert sorted([sum(row < 4 for row in found["six"]), sum(row >= 4 for row in found["six"])]) == [2, 4]


def test_who_comes_later_takes_the_first_gpu_that_is_free_again() -> None:
    jobs = [
        arrival(0, seconds=100, job_id="first"),
        arrival(0, seconds=1000, job_id="second"),
        arrival(300, seconds=100, job_id="third"),
    ]
    assert rows(chart(jobs, uniform(2, 2))) == {"first": [0], "second": [1], "third": [0]}


def colours(figure: ElementTree.Element) -> dict[str, str]:
    return {words(bar).split(", ")[1]: bar.get("class", "") for bar in figure.iter("rect")}


def test_tenants_have_colours_and_few_of_them_a_legend() -> None:
    few = chart([arrival(0, tenant=f"t{at}", seconds=60) for at in range(10)], uniform(16, 8))
    assert len(set(colours(few).values())) > 1
    assert ["".join(item.itertext()) for item in few.iter("li")] == [f"t{at}" for at in range(10)]
    many = chart([arrival(0, tenant=f"t{at:02}", seconds=60) for at in range(11)], uniform(16, 8))
    assert list(many.iter("li")) == []


def test_of_very_many_runs_the_first_are_drawn_and_the_caption_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    jobs = [arrival(at * 3600, seconds=7000, job_id=f"j{at}") for at in range(6)]
    whole = chart(jobs, uniform(4, 4))
    monkeypatch.setattr(module, "_MOST_BARS", 3)
    cut = chart(jobs, uniform(4, 4))
    assert [len(rows(whole)), sorted(rows(cut))] == [6, ["j0", "j1", "j2"]]
    assert whole.findtext(".//figcaption") == "fifo"
    assert cut.findtext(".//figcaption") == "fifo, the first 03:00:00"
    right = max(float(bar.get("x", "0")) + float(bar.get("width", "0")) for bar in cut.iter("rect"))
    assert right <= 1160.0, "no bar reaches beyond the end"


def test_a_job_that_never_ran_is_not_drawn() -> None:
    jobs = [arrival(0, seconds=1000, job_id="runs"), arrival(0, seconds=1000, job_id="waits")]
    assert rows(chart(jobs, uniform(1, 1), until=500.0)) == {"runs": [0]}
    assert rows(chart(jobs, uniform(1, 1))) == {"runs": [0], "waits": [0]}
