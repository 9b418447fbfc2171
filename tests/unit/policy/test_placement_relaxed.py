"""Gangs on more nodes than they need: where they come to lie, who may be spread, and what it costs them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from slurm_fair.errors import ConfigError, InputError
from slurm_fair.model import Verdict
from slurm_fair.policy import Loss, Pools, Room, Shapes, load, names, relaxed
from slurm_fair.policy.registry import settings_of
from slurm_fair.sim import Costs
from slurm_fair.sim.world.speed import notes_on_speeds
from slurm_fair.slurm.command import CommandResult, Commands
from slurm_fair.slurm.reading.node_limits import NodeLimits, most_nodes
from slurm_fair.trace import Machines, Throughputs, uniform
from tests.support.accounts import view
from tests.support.builders import JobSpec, NodeSpec, job, leases, node, snapshot
from tests.support.simulated import Arrival, Rounds, arrival, simulated
from tests.support.witness import Witness

RELAXED: dict[str, object] = {"placement": "relaxed"}


def free(gpus: int, **more: int) -> NodeSpec:
    """A node of eight GPUs of which so many are free."""
    return node(8, gpus_others=8 - gpus, **more)


def lie(
    asked: JobSpec, nodes: Mapping[str, int | NodeSpec], loss: Loss | None = None
) -> dict[str, int] | None:
    """GPUs by node, by the first way that finds a place."""
    seen = snapshot(nodes=nodes, jobs=[asked])
    table, pools = seen.nodes, Pools.of(seen)
    cpus, memory_mb = table.cpus - table.cpus_others, table.memory_mb - table.memory_others_mb
    room = Room(pools, table.capacity, cpus, memory_mb, loss)
    for gang in Shapes.of(pools, seen, np.array([0]), spread=True).ways(np.array([0]))[0]:
        sites = relaxed(room, gang)
        if sites is not None:
            return {table.names[n]: gpus for n, gpus in sites}
    return None


FREE = {"n1": free(3), "n2": free(1), "n3": free(4)}
CASES: list[tuple[str, JobSpec, Mapping[str, int | NodeSpec], dict[str, int] | None]] = [
    ("one node is enough, so one node it is", job(1, gpus=4), FREE, {"n3": 4}),
    ("two nodes rather than wait, the freest", job(1, gpus=6), FREE, {"n1": 3, "n3": 3}),
    ("as Slurm pours it: all that a node has, then the next", job(1, gpus=5), FREE, {"n1": 3, "n3": 2}),
    ("all nodes when it takes all", job(1, gpus=8), FREE, {"n1": 3, "n2": 1, "n3": 4}),
    ("more than is free waits", job(1, gpus=9), FREE, None),
    ("one that fixed one node waits", job(1, gpus=6, most_nodes=1), FREE, None),
    ("one that fixed two nodes has two", job(1, gpus=6, nodes=2, most_nodes=2), FREE, {"n1": 3, "n3": 3}),
    ("and an even part on each of them", job(1, gpus=7, nodes=2, most_nodes=2), FREE, None),
    ("no more nodes than it takes", job(1, gpus=8, most_nodes=2), FREE, None),
    ("as many as it takes", job(1, gpus=8, most_nodes=3), FREE, {"n1": 3, "n2": 1, "n3": 4}),
    ("GPUs per node stand", job(1, gpus=4, gpus_per_node=2), FREE, {"n1": 2, "n3": 2}),
    ("and are never split", job(1, gpus=6, gpus_per_node=6), FREE, None),
    ("bigger than any free node", job(1, gpus=8), {"n1": free(7), "n2": free(7)}, {"n1": 7, "n2": 1}),
    ("a wanted node is part of it", job(1, gpus=5, wanted=("n2",)), FREE, {"n1": 0, "n2": 1, "n3": 4}),
    ("a barred one is not", job(1, gpus=7, barred=("n2",)), FREE, {"n1": 3, "n3": 4}),
    ("a full node cannot be wanted", job(1, gpus=2, wanted=("n1",)), {"n1": free(0), "n2": free(1)}, None),
    (
        "each node has the CPUs of a task",
        job(1, gpus=6, cpus=8),
        FREE | {"n3": free(4, cpus_others=60)},
        None,
    ),
    ("and its memory", job(1, gpus=4, memory_mb=9), {"n1": free(3, memory_mb=8), "n2": free(1)}, None),
    ("one type for the whole gang", job(1, gpus=4), {"n1": free(3), "n2": node(4, gpu_type="b")}, {"n2": 4}),
]


@pytest.mark.parametrize(("asked", "nodes", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_where_a_gang_is_spread(
    asked: JobSpec, nodes: Mapping[str, int | NodeSpec], expected: dict[str, int] | None
) -> None:
    wanted = expected and {name: gpus for name, gpus in expected.items() if gpus}
    assert lie(asked, nodes) == wanted


def test_of_nodes_with_as_much_the_ones_owed_least_are_taken() -> None:
    loss = Loss(np.array([0, 0, 0]), np.array([1, 2, 3]))
    assert lie(job(1, gpus=5), {"n1": free(3), "n2": free(3), "n3": free(3)}, loss) == {"n2": 3, "n3": 2}


def test_what_slurm_may_take_instead_is_given_to_nobody_else() -> None:
    # The gang may lie 3 + 1 or 2 + 2: the GPU that its place leaves on n2 is not sure.
    seen = snapshot(time=100.0, nodes={"n1": free(3), "n2": free(2)}, jobs=[job(1, gpus=4), job(2, submit=1)])
    for name in ("astraea", "las", "slurm"):
        plan = load(name, RELAXED).plan(view(seen, leases()))
        assert plan.verdict.tolist() == [Verdict.GRANT, Verdict.WAIT], name
        assert plan.places.gpus.tolist() == [3, 2], "all that it may come to have is promised to it"


@pytest.mark.parametrize("placement", ["consolidated", "relaxed"])
@pytest.mark.parametrize("name", ["astraea", "las", "gandiva-fair", "fifo", "slurm"])
@pytest.mark.parametrize("per_node", [2, 0], ids=["GPUs per node", "two nodes"])
def test_what_a_gang_of_a_fixed_split_leaves_on_its_nodes_is_given_to_others(
    name: str, placement: str, per_node: int
) -> None:
    gang = job(1, gpus=4, nodes=2, most_nodes=2, gpus_per_node=per_node)
    seen = snapshot(time=100.0, nodes={"n1": 4, "n2": 4}, jobs=[gang, job(2, gpus=2, submit=1)])
    plan = load(name, {"placement": placement}).plan(view(seen, leases()))
    assert plan.verdict.tolist() == [Verdict.GRANT, Verdict.GRANT]
    assert np.bincount(plan.places.row, plan.places.gpus).tolist() == [4, 2]


@pytest.mark.parametrize("name", [name for name in names() if "placement" in settings_of(name)])
def test_the_setting_is_known_to_every_policy_that_places(name: str) -> None:
    with pytest.raises(ConfigError, match="unknown placement 'relax'"):
        load(name, {"placement": "relax"}).plan(view(snapshot(), leases()))
    assert load(name, RELAXED)


# -- what it costs ----------------------------------------------------------------------------------------------

# Two nodes with one free GPU each until second 1000.
FILLED = [arrival(gpus=3, seconds=1000), arrival(gpus=3, seconds=1000)]


def ran_and_ended(
    *jobs: Arrival,
    placement: str = "relaxed",
    machines: Machines | None = None,
    rates: Throughputs | None = None,
) -> tuple[float, float]:
    """The run time of the last of these jobs, and its end."""
    result = simulated(
        [*jobs],
        "fifo",
        machines=machines or uniform(8, 4),
        settings={"placement": placement},
        throughputs=rates,
        listen=Witness(),
        wants=Witness.wants,
    )
    row = int(np.flatnonzero(result.trace_row == len(jobs) - 1)[0])
    return float(result.outcomes.ran[row]), float(result.outcomes.end[row]) - result.epoch


def in_two_racks(machines: Machines) -> Machines:
    """The last node stands in another rack."""
    rack = np.zeros(len(machines), dtype=np.int64)
    rack[-1] = 1
    return replace(machines, rack=rack, racks=("r1", "r2"))


@pytest.mark.parametrize(
    ("gang", "placement", "ran", "ended"),
    [
        (arrival(20, gpus=2, seconds=100, sensitivity=1.25), "relaxed", 125, 145),
        (arrival(20, gpus=2, seconds=100, sensitivity=1.25), "consolidated", 100, 1100),
        (arrival(20, gpus=2, seconds=100), "relaxed", 100, 120),
        (arrival(20, gpus=2, nodes=2, seconds=100, sensitivity=1.25), "relaxed", 100, 120),
        (arrival(20, gpus=2, nodes=2, seconds=100, sensitivity=1.25), "consolidated", 100, 120),
    ],
    ids=[
        "a gang on two nodes instead of one runs as much slower as it is sensitive",
        "or waits for a node of its own",
        "one that is not sensitive loses nothing",
        "one recorded on two nodes is as fast there as its record says",
        "wherever gangs are put together",
    ],
)
def test_what_lying_apart_costs(gang: Arrival, placement: str, ran: float, ended: float) -> None:
    assert ran_and_ended(*FILLED, gang, placement=placement) == pytest.approx((ran, ended))


def test_across_racks_a_gang_loses_three_times_as_much_however_it_came_there() -> None:
    two_racks = in_two_racks(uniform(8, 4))
    spread = arrival(20, gpus=2, seconds=100, sensitivity=1.25)
    assert ran_and_ended(*FILLED, spread, machines=two_racks)[0] == pytest.approx(175)
    for forced in (replace(spread, nodes=2), replace(spread, gpus=8)):
        assert ran_and_ended(forced, machines=two_racks, placement="consolidated")[0] == pytest.approx(175)


def test_the_fewest_nodes_are_those_of_the_type_that_the_gang_lies_on() -> None:
    # Another type has nodes of eight; on this one two nodes are the fewest.
    machines = replace(
        uniform(16, 4), gpus=np.array([8, 4, 4, 4]), gpu_type=np.array([0, 1, 1, 1]), gpu_types=("a", "b")
    )
    gang = arrival(gpus=8, seconds=100, sensitivity=1.5, gpu_type="b")
    assert ran_and_ended(gang, machines=machines)[0] == pytest.approx(100)


def measured(apart: float, on_b: float = 1.0) -> Throughputs:
    """LM on two GPUs of types a (the reference) and b."""
    rates = {
        ("a", "consolidated", "LM", 0, 2): 2.0,
        ("a", "unconsolidated", "LM", 0, 2): apart,
        ("b", "consolidated", "LM", 0, 2): 2.0 * on_b,
    }
    return Throughputs("x", ("x",), "a", rates)


def typed(kinds: str = "aa") -> Machines:
    """Nodes of four GPUs, each of a type."""
    types = tuple(sorted(set(kinds)))
    return replace(
        uniform(4 * len(kinds), 4), gpu_types=types, gpu_type=np.array([types.index(kind) for kind in kinds])
    )


def test_a_measured_loss_stands_above_the_sensitivity() -> None:
    gang = arrival(20, gpus=2, seconds=100, sensitivity=4.0, model="LM")
    assert ran_and_ended(*FILLED, gang, machines=typed(), rates=measured(1.0))[0] == pytest.approx(200)


def test_what_lying_apart_costs_is_measured_on_each_type() -> None:
    def slower(model: str) -> float:
        gang = arrival(20, gpus=2, seconds=1000, model=model, gpu_type="k80", sensitivity=4.0)
        filled = [replace(job, gpu_type="k80") for job in FILLED]
        machines = replace(typed("aaaa"), gpu_types=("k80", "v100"), gpu_type=np.array([0, 0, 1, 1]))
        return ran_and_ended(*filled, gang, machines=machines, rates=rates)[0]

    steps = {("v100", "LM"): (10.0, 4.0), ("k80", "LM"): (3.0, 1.5), ("v100", "GAN"): (10.0, 4.0)}
    rates = Throughputs(
        "x",
        ("x",),
        "v100",
        {
            (kind, placement, model, 0, 2): each
            for (kind, model), both in steps.items()
            for placement, each in zip(("consolidated", "unconsolidated"), both, strict=True)
        },
    )
    assert slower("LM") == pytest.approx(10_000 / 1.5)
    assert slower("GAN") == pytest.approx(1000 * 10 / 4), "elsewhere it loses what it loses on the reference"


@pytest.mark.parametrize(
    ("kinds", "gpu_type", "expected"),
    [("bb", "", (100, 1100)), ("bb", "b", (100, 1100)), ("aa", "a", (200, 220))],
    ids=["on the only type", "on the type that it asked for", "elsewhere it may lie apart"],
)
def test_a_gang_is_not_spread_where_it_was_measured_not_to_run_apart(
    kinds: str, gpu_type: str, expected: tuple[float, float]
) -> None:
    speeds = {**measured(1.0).rates, ("b", "unconsolidated", "LM", 0, 2): 0.0}
    gang = arrival(20, gpus=2, seconds=100, model="LM", gpu_type=gpu_type)
    found = ran_and_ended(*FILLED, gang, machines=typed(kinds), rates=replace(measured(1.0), rates=speeds))
    assert found == pytest.approx(expected)


def test_a_gang_measured_not_to_run_apart_waits_for_a_node() -> None:
    gang = arrival(20, gpus=2, seconds=100, model="LM")
    found = ran_and_ended(*FILLED, gang, machines=typed(), rates=measured(0.0))
    assert found == pytest.approx((100, 1100))


def test_a_type_on_which_a_job_does_not_run_is_not_given_to_it() -> None:
    # b is free all the time.
    jobs = [arrival(gpus=4, seconds=1000, gpu_type="a"), arrival(20, gpus=2, seconds=100, model="LM")]
    for policy in ("fifo", "las", "astraea", "gavel", "allox", "slurm"):
        result = simulated(jobs, policy, machines=typed("ab"), throughputs=measured(1.0, on_b=0.0))
        assert result.outcomes.ran[1] == pytest.approx(100), policy
        assert result.outcomes.completed.all(), policy


def test_a_job_that_runs_on_none_of_the_types_is_refused_by_name() -> None:
    jobs = [arrival(20, gpus=2, seconds=100, model="LM", job_id="lost"), arrival(20, gpus=2, seconds=100)]
    with pytest.raises(InputError, match=r"1 of 2 jobs .* runs on none of its GPU types .* lost \(2 GPUs\)"):
        simulated(jobs, "fifo", machines=typed("bb"), throughputs=measured(1.0, on_b=0.0))


def test_leases_change_hands_among_spread_gangs() -> None:
    jobs = [
        arrival(gpus=gpus, seconds=900, tenant="ab"[gpus % 2], sensitivity=1.5) for gpus in (3, 3, 2, 5, 8, 1)
    ]
    how = Rounds(lease=120.0, costs=Costs(checkpoint=5.0, restart=5.0))
    for policy in ("astraea", "las", "gandiva-fair"):
        result = simulated(
            jobs, policy, gpus_per_node=4, how=how, settings=RELAXED, listen=Witness(), wants=Witness.wants
        )
        assert result.outcomes.completed.all(), policy


# -- what is said -----------------------------------------------------------------------------------------------


def test_one_type_of_several_speeds_is_told_of() -> None:
    machines = replace(typed("aa"), speed=np.array([3.0, 1.0]))
    (note,) = notes_on_speeds(machines, measured(1.0))
    assert note.startswith("a GPUs have several speeds (1, 3): all of them count as 1, the slowest")


@pytest.mark.parametrize(
    ("speeds", "rates", "said"),
    [
        ((1.0, 1.0), None, ["a, b GPUs"]),
        ((1.0, 0.5), None, ["nobody says how fast a GPUs"]),
        ((2.0, 0.5), None, []),
        (
            (2.0, 0.5),
            measured(1.0),
            ["speed of a (2), b (0.5) counts only for jobs that the throughputs do not"],
        ),
        ((1.0, 1.0), measured(1.0), []),
    ],
    ids=["nobody said anything", "one type is left out", "all said", "said twice", "measured"],
)
def test_speeds_that_nobody_gave_or_that_do_not_count_are_told(
    speeds: tuple[float, float], rates: Throughputs | None, said: list[str]
) -> None:
    notes = notes_on_speeds(replace(typed("ab"), speed=np.array(speeds)), rates)
    assert len(notes) == len(said)
    assert all(words in note for words, note in zip(said, notes, strict=True))


LINE = (
    "JobId={id} JobName={name} UserId=root(0) NodeList= NumNodes={nodes} NumCPUs=1 NumTasks=1 CPUs/Task=1 "
    "ReqB:S:C:T=0:0:*:* TRES=cpu=1,mem=8000M,node=1,billing=1,gres/gpu=4 Command=(null)"
)


@pytest.mark.parametrize(
    ("nodes", "name", "most"),
    [("1", "wrap", 0), ("1-1", "wrap", 1), ("1-3", "wrap", 3), ("1", "x NumNodes=4 NumCPUs=1", 1)],
    ids=["no -N", "-N1", "-N1-3", "a name that says it too"],
)
def test_the_most_nodes_of_a_job_are_those_that_scontrol_shows(nodes: str, name: str, most: int) -> None:
    assert most_nodes(LINE.format(id=7, name=name, nodes=nodes)) == most


class Shown(Commands):
    """scontrol with these jobs."""

    def __init__(self, jobs: dict[int, str]) -> None:
        super().__init__()
        self.jobs = jobs

    def run(
        self, *argv: str, stdin: str | None = None, timeout_seconds: float | None = None
    ) -> CommandResult:
        """The text that scontrol prints."""
        assert argv == ("scontrol", "-o")
        said = ""
        for line in (stdin or "").splitlines():
            _, what, which = f"{line}  ".split(" ", 2)
            told = {"job": self.jobs.get(int(which)) if what == "job" else "", "hostnames": which.strip()}
            said += f"scontrol: {line}\n" + (f"{told[what]}\n" if line != "exit" else "")
        self.calls += 1
        return CommandResult(argv, 0, said, "", 0.0)


def test_no_job_says_how_many_nodes_another_may_have() -> None:
    forged = "a\n" + LINE.format(id=8, name="b", nodes="1-7")
    slurm = Shown(
        {7: LINE.format(id=7, name=forged, nodes="1-2"), 8: LINE.format(id=8, name="c", nodes="1-3")}
    )
    book = NodeLimits(slurm)
    for _ in range(2):
        book.learn([(7, 0), (8, 0)])
    assert (book.of(7, 0), book.of(8, 0), slurm.calls) == (1, 3, 1)
