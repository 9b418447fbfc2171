"""The nodes of a gang whose need alone says how many, as Slurm lists them (slurm-facts: stale-node-count)."""

from __future__ import annotations

import pytest

from tests.support.shared_site import Site

# Nodes of 4 GPUs, 64 CPUs, 512,000 MB. Columns as 22.05 lists them after a requeue; then GPUs, nodes, by node.
IN_ALL, BY_TASK = {"tres-per-job": "gres:gpu:2"}, {"tres-per-task": "gres:gpu:1"}
REQUEUED = {
    "-n2 -c40": ("cpu=80,mem=625G,node=1", 2, {"NumTasks": "2", **IN_ALL}, (2, 2, 0)),
    "-n2 -c40, by task": ("cpu=80,mem=625G,node=1", 2, {"NumTasks": "2", **BY_TASK}, (2, 2, 0)),
    "-n2 -c40, by node": (
        "cpu=80,mem=625G,node=1",
        1,
        {"NumTasks": "2", "tres-per-node": "gres:gpu:1"},
        (2, 2, 1),
    ),
    "-n4 -c20": ("cpu=80,mem=625G,node=1", 4, {"NumTasks": "4", **BY_TASK}, (4, 2, 0)),
    "-n2 --ntasks-per-node=1": (
        "cpu=2,mem=16000M,node=1",
        2,
        {"NumTasks": "2", "NTPerNode": "1", **IN_ALL},
        (2, 2, 0),
    ),
    "-n2": ("cpu=2,mem=16000M,node=1", 2, {"NumTasks": "2", **IN_ALL}, (2, 1, 0)),
    "-N2": ("cpu=2,mem=16000M,node=2", 2, {"NumTasks": "2", **IN_ALL}, (2, 2, 0)),
    "two GPUs": ("cpu=1,mem=8000M,node=1", 2, IN_ALL, (2, 1, 0)),
    "--gpus-per-node=2 -N1-2": ("cpu=1,mem=8000M,node=1", 2, {"tres-per-node": "gres:gpu:2"}, (2, 1, 2)),
    "--cpus-per-gpu=40": (
        "cpu=1,mem=8000M,node=1",
        2,
        {"cpus-per-tres": "gres:gpu:40", **IN_ALL},
        (2, 2, 0),
    ),
    "--mem-per-gpu=300000": (
        "cpu=1,mem=600000M,node=1",
        2,
        {"mem-per-tres": "gres:gpu:300000", **IN_ALL},
        (2, 2, 0),
    ),
    "-n2 --mem-per-cpu=300000": ("cpu=2,mem=600000M,node=1", 2, {"NumTasks": "2", **IN_ALL}, (2, 2, 0)),
    "tasks per node without a limit": (
        "cpu=2,mem=1G,node=1",
        2,
        {"NumTasks": "2", "NTPerNode": "65535", **IN_ALL},
        (2, 1, 0),
    ),
}


def seen(tres: str, gpus: int, columns: dict[str, str], nodes: int = 2, restarts: int = 1) -> tuple[int, ...]:
    """GPUs, nodes and GPUs of each node of a waiting job that Slurm lists so."""
    site = Site()
    job = site.world.submit(gpus, "a", begin=site.world.clock.now() + 500)
    asks = {"tres-per-job": "N/A", "tres-per-node": "N/A", "tres-per-task": "N/A"} | columns
    listed = {"tres-alloc": f"{tres},gres/gpu={gpus}", "NumNodes": f"{nodes}", "RestartCnt": f"{restarts}"}
    site.world.records[job].raw = listed | asks
    jobs = site.look().jobs
    return jobs.gpus.item(0), jobs.nodes.item(0), jobs.gpus_per_node.item(0)


@pytest.mark.parametrize(("tres", "gpus", "columns", "shape"), REQUEUED.values(), ids=REQUEUED)
def test_a_requeued_gang_lies_on_the_nodes_that_it_needs_and_no_more(
    tres: str, gpus: int, columns: dict[str, str], shape: tuple[int, ...]
) -> None:
    assert seen(tres, gpus, columns) == shape


def test_a_requeued_gang_needs_no_more_nodes_than_its_last_run_had() -> None:
    """A request of `-N1` may be of a node that is larger than any now: two nodes would be refused."""
    assert seen("cpu=80,mem=625G,node=1", 2, {"NumTasks": "2", **IN_ALL}, nodes=1)[1] == 1


def test_gpus_by_the_node_are_counted_on_all_nodes_before_the_first_start_too() -> None:
    columns = {"NumTasks": "2", "tres-per-node": "gres:gpu:1"}
    assert seen("cpu=80,mem=625G,node=1", 1, columns, restarts=0) == (2, 2, 1)


def test_gpus_by_the_node_that_slurm_did_not_count_are_those_of_the_nodes_asked_for() -> None:
    """Only where accounting tracks GPUs does Slurm count them."""
    site = Site()
    job = site.world.submit(2, "a", begin=site.world.clock.now() + 500)
    columns = {"tres-alloc": "cpu=1,mem=1G,node=1", "tres-per-job": "N/A", "tres-per-node": "gres:gpu:2"}
    site.world.records[job].raw = columns | {"NumNodes": "2", "RestartCnt": "1"}
    jobs = site.look().jobs
    assert (jobs.gpus.tolist(), jobs.nodes.tolist(), jobs.gpus_per_node.tolist()) == ([2], [1], [2])


def test_a_text_for_each_node_that_slurm_did_not_take_changes_no_count() -> None:
    columns = {"NumTasks": "2", "tres-per-node": "gres:gpu:4", **IN_ALL}
    assert seen("cpu=80,mem=625G,node=1", 2, columns, restarts=0) == (2, 2, 0)
