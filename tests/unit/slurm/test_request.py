"""Requests for GPUs whose number can be changed: which are, what is sent, and whose they are."""

from __future__ import annotations

import pytest

from slurm_fair.errors import SlurmTextError
from slurm_fair.model.mark import Mark
from slurm_fair.slurm.acting import scontrol_lines
from slurm_fair.slurm.ownership.ours import either_size, is_our_size, own_request
from slurm_fair.slurm.reading.request import PER_JOB, PER_NODE, SizeRequest, request_in
from slurm_fair.slurm.reading.stamp import read_stamp

NOTHING = dict.fromkeys(("tres-per-node", "tres-per-job", "tres-per-task", "cpus-per-tres"), "N/A")
TWO = SizeRequest(PER_NODE, "gres:gpu:", 2, 1, 1, 4)


def request(nodes: int = 1, tasks: int = 1, cpus: int = 1, **columns: str) -> SizeRequest | str:
    """The request of a row with these columns."""
    given = {name.replace("_", "-"): text for name, text in columns.items()}
    return request_in(NOTHING | given, nodes, tasks, cpus)


@pytest.mark.parametrize(
    ("columns", "field", "head", "gpus"),
    [
        ({"tres_per_node": "gres:gpu:2"}, PER_NODE, "gres:gpu:", 4),
        ({"tres_per_node": "gres/gpu:a100:2"}, PER_NODE, "gres/gpu:a100:", 4),
        ({"tres_per_job": "gres:gpu:3"}, PER_JOB, "gres:gpu:", 3),
    ],
)
def test_a_plain_number_of_gpus_can_be_changed(
    columns: dict[str, str], field: str, head: str, gpus: int
) -> None:
    found = request(nodes=2, tasks=2, cpus=8, **columns)
    assert isinstance(found, SizeRequest)
    assert (found.field, found.head, found.gpus) == (field, head, gpus)
    assert SizeRequest.read(str(found)) == found


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({}, "not a plain number"),
        ({"tres_per_node": "gres:gpu"}, "not a plain number"),
        ({"tres_per_node": "gres:gpu:2,gres:shard:1"}, "not a plain number"),
        ({"tres_per_node": "gres:gpu:0"}, "not a plain number"),
        ({"tres_per_node": "gpu:2\nupdate jobid=1 priority=9"}, "not a plain number"),
        ({"tres_per_node": "gres:gpu:2", "tres_per_job": "gres:gpu:2"}, "both by the node and in all"),
        ({"tres_per_task": "gres:gpu:1"}, "by the task"),
        ({"tres_per_node": "gres:gpu:2", "cpus_per_tres": "gres:gpu:4"}, "CPUs are asked for by the GPU"),
        ({"tres_per_node": "gres:gpu:2", "nodes": 2, "tasks": 3}, "evenly"),
    ],
)
def test_any_other_request_is_rigid_and_says_why(columns: dict[str, str | int], why: str) -> None:
    found = request(**columns)  # type: ignore[arg-type]
    assert isinstance(found, str)
    assert why in found
    assert SizeRequest.read(found) is None


def test_only_what_differs_is_sent() -> None:
    assert TWO.words_from(TWO) == ()
    assert TWO.resized(8, 1).words_from(TWO) == ("trespernode=gres:gpu:8",)
    four = ("numnodes=2-2", "numtasks=2", "numcpus=8", "trespernode=gres:gpu:4")
    assert TWO.resized(8, 2).words_from(TWO) == four
    in_all = SizeRequest(PER_JOB, "gres:gpu:", 2, 1, 1, 1)
    assert in_all.resized(12, 2).words_from(in_all) == ("tresperjob=gres:gpu:12",)


def test_gpus_of_each_node_lie_evenly() -> None:
    with pytest.raises(SlurmTextError, match="3 GPUs do not lie evenly on 2 nodes"):
        TWO.resized(3, 2)


@pytest.mark.parametrize(
    "word", ["trespernode=gres:gpu:0", "numnodes=1-2", "priority=9", "numcpus=4 priority=9"]
)
def test_scontrol_is_told_nothing_but_sizes(word: str) -> None:
    with pytest.raises(SlurmTextError, match="is no size of a job"):
        scontrol_lines.resize("7", (word,))
    assert scontrol_lines.resize("7_2", ("numcpus=8", "trespernode=gres:gpu:a100:4")) == (
        "update jobid=7_2 numcpus=8 trespernode=gres:gpu:a100:4",
    )


def test_a_request_is_ours_by_the_mark_and_any_other_is_the_users() -> None:
    eight, four = TWO.resized(8, 2), TWO.resized(4, 1)
    mark = Mark(
        1, 1, False, 0.0, 0, 0.0, True, 0.0, size=either_size(str(eight), str(four)), user_size=str(TWO)
    )
    assert is_our_size(mark, str(eight))
    assert own_request(str(four), [mark]) == str(TWO)
    assert own_request(str(TWO.resized(1, 1)), [mark]) == str(TWO.resized(1, 1))
    assert own_request("its GPUs are asked for by the task", [mark]) == "its GPUs are asked for by the task"
    assert not is_our_size(Mark(1, 1, False, 0.0, 0, 0.0, True, 0.0), str(eight))


def test_an_update_that_was_cut_short_is_told_from_a_users_own_change() -> None:
    wanted = TWO.resized(8, 2)
    half = SizeRequest(PER_NODE, "gres:gpu:", 2, 2, 2, 4)
    assert half.is_between(TWO, wanted)
    assert not half.is_like(wanted)
    assert not SizeRequest(PER_NODE, "gres:gpu:", 3, 1, 1, 4).is_between(TWO, wanted)


@pytest.mark.parametrize(
    ("text", "sizes", "bad"),
    [
        ("gpus=1+2+4", (1, 2, 4), ""),
        ("gpus=4+2+2", (2, 4), ""),
        ("gpus=0+2", (), "0+2"),
        ("gpus=2x", (), "2x"),
        ("gpus=" + "+".join(map(str, range(1, 18))), (), "+".join(map(str, range(1, 18)))),
        ("gpus=999999", (), "999999"),
        ("grace=3", (), ""),
    ],
)
def test_sizes_in_a_stamp_are_read_and_a_bad_list_costs_nothing_else(
    text: str, sizes: tuple[int, ...], bad: str
) -> None:
    stamp = read_stamp(f"mine slurm_fair:v1,signal=USR1,{text}")
    assert stamp is not None
    assert (stamp.sizes, stamp.bad_sizes, stamp.signal) == (sizes, bad[:60], "USR1")


@pytest.mark.parametrize(
    ("said", "script"),
    [("0123456789abcdef", "0123456789abcdef"), ("0123456789ABCDEF", ""), ("abc", ""), ("0" * 17, "")],
)
def test_a_script_in_a_stamp_is_a_hash_or_nothing_and_costs_nothing_else(said: str, script: str) -> None:
    stamp = read_stamp(f"slurm_fair:v1,signal=USR1,gpus=1+2,script={said}")
    assert stamp is not None
    assert (stamp.script, stamp.sizes, stamp.signal) == (script, (1, 2), "USR1")
