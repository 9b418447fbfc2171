"""A running job has these GPUs of these nodes."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_fair.slurm.reading.gpu_layout import GpuLayouts, laid_evenly, read_layout
from tests.support.slurm_samples import sample
from tests.support.slurm_stub import Stub

UNEVEN = {(43, 0): (("n2", "n3"), 5)}
ROOM = {f"n{number}": 8 for number in range(10)}


@pytest.mark.parametrize(
    ("version", "nodes", "gpus", "layout"),
    [
        ("22.05", ("n2", "n3"), 5, (("n2", 4), ("n3", 1))),
        ("24.11", ("n3", "n4"), 16, (("n3", 8), ("n4", 8))),
        ("26.05", ("n3", "n4"), 16, (("n3", 8), ("n4", 8))),
    ],
)
def test_captures_say_how_many_on_each_node(
    version: str, nodes: tuple[str, ...], gpus: int, layout: object
) -> None:
    assert read_layout(sample(version, "job.txt"), nodes, gpus, ROOM) == layout


@pytest.mark.parametrize(
    ("nodes", "gpus"), [(("n2",), 5), (("n2", "n3"), 4), (("n2", "n3", "n4"), 5), ((), 0)]
)
def test_segments_that_do_not_account_for_the_job_are_not_believed(nodes: tuple[str, ...], gpus: int) -> None:
    assert read_layout(sample("22.05", "job.txt"), nodes, gpus, ROOM) is None


def test_a_line_that_names_a_node_twice_is_not_believed_though_its_sum_is_right() -> None:
    line = "JobId=43 JobName=x Nodes=n[2-3] CPU_IDs=0 Mem=0 GRES=gpu:1 Nodes=n2 CPU_IDs=0 Mem=0 GRES=gpu:1"
    assert read_layout(line, ("n2", "n3"), 3, ROOM) is None
    assert read_layout(line.replace("Nodes=n[2-3]", "Nodes=n3"), ("n2", "n3"), 2, ROOM) == (
        ("n3", 1),
        ("n2", 1),
    )


def test_a_forged_segment_in_a_name_costs_its_owner_the_exact_layout_and_nobody_else_anything() -> None:
    forged = sample("22.05", "job.txt").replace(
        "JobName=wrap", "JobName=x Nodes=n9 CPU_IDs=0 Mem=1 GRES=gpu:8"
    )
    assert read_layout(forged, ("n2", "n3"), 5, ROOM) is None


@given(st.lists(st.text(min_size=1), max_size=9, unique=True), st.integers(0, 100))
def test_an_unexplained_job_is_spread_as_evenly_as_it_goes(nodes: list[str], gpus: int) -> None:
    counts = [count for _, count in laid_evenly(tuple(nodes), gpus, {})]
    assert sum(counts) == (gpus if nodes else 0)
    assert max(counts, default=0) - min(counts, default=0) <= 1


@pytest.mark.parametrize(
    "name",
    [
        " Nodes=n2 CPU_IDs= Mem=0 GRES=gpu:1000 Nodes=n3 CPU_IDs= Mem=0 GRES=gpu:-995 ",
        " Nodes=n2 CPU_IDs= Mem=0 GRES=gpu:4 Nodes=n3 CPU_IDs= Mem=0 GRES=gpu:1 ",
        " Nodes=n2 CPU_IDs= Mem=0 GRES=gpu:0 ",
        " Nodes=n[1-200000] CPU_IDs= Mem=0 GRES=gpu:0 ",
        " Nodes=n[9-1 CPU_IDs= Mem=0 GRES=gpu:0 ",
    ],
)
@pytest.mark.parametrize("field", ["JobName=wrap", "WorkDir=", "Comment="])
def test_no_word_of_a_user_moves_a_gpu(name: str, field: str) -> None:
    text = sample("22.05", "job.txt").rstrip("\n") + " Comment=k"
    assert read_layout(text.replace(field, f"{field}{name}"), ("n2", "n3"), 5, ROOM) is None


def test_a_users_word_for_very_many_nodes_costs_no_time() -> None:
    text = (
        "JobId=43 JobName= Nodes=n[1-200000] CPU_IDs= Mem=0 GRES=gpu:0 Nodes=n[2-3] CPU_IDs= Mem=0 GRES=gpu:2"
    )
    began = time.process_time()
    for _ in range(500):  # runs of one user
        assert read_layout(text, ("n2", "n3"), 4, ROOM) is None
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    ("counts", "told"), [((9, 1), False), ((11, -1), False), ((0, 10), False), ((8, 2), True)]
)
def test_no_node_has_more_gpus_than_it_has_nor_less_than_none(counts: tuple[int, int], told: bool) -> None:
    text = "".join(f" Nodes=n{at} CPU_IDs=0 Mem=1 GRES=gpu:{n}" for at, n in enumerate(counts, 2))
    assert (read_layout(f"JobId=43 {text}", ("n2", "n3"), 10, ROOM) is not None) == told


def test_a_guess_gives_no_node_more_than_it_has() -> None:
    assert laid_evenly(("n1", "n2", "n3"), 12, {"n1": 8, "n2": 1, "n3": 8}) == (
        ("n1", 6),
        ("n2", 1),
        ("n3", 5),
    )


def shown(*parts: str) -> str:
    """scontrol's answers to several commands; its stub draws no mark."""
    return "".join(
        f"scontrol: show job 43\n{part}scontrol: show hostnames endhere\nendhere\n" for part in parts
    )


def test_a_run_is_asked_for_once_and_forgotten_when_it_is_over(tmp_path: Path) -> None:
    stub = Stub(tmp_path)
    stub.answers("scontrol", shown(sample("22.05", "job.txt")))
    book = GpuLayouts(stub.commands())
    book.learn(UNEVEN, ROOM)
    book.learn(UNEVEN, ROOM)
    assert book.of(43, 0) == (("n2", 4), ("n3", 1))
    assert stub.ran("scontrol") == [["-d", "-o"]]
    assert stub.fed("scontrol") == [["show job 43", "show hostnames endhere", "exit"]]
    book.learn({}, ROOM)
    assert book.of(43, 0) is None


def test_of_an_array_only_the_records_own_line_counts(tmp_path: Path) -> None:
    stub = Stub(tmp_path)
    other = sample("22.05", "job.txt").replace("JobId=43 ", "JobId=44 ")
    stub.answers("scontrol", shown(other + sample("22.05", "job.txt")))
    book = GpuLayouts(stub.commands())
    book.learn(UNEVEN, ROOM)
    assert book.of(43, 0) == (("n2", 4), ("n3", 1))


@pytest.mark.parametrize(
    ("answer", "asked"),
    [
        ((1, shown(""), "slurm_load_jobs error: Invalid job id specified"), 1),
        ((1, "", "slurm_load_jobs error: Unable to contact slurm controller"), 2),
        ("", 2),
        (shown("JobId=9 Nodes=n2\n"), 1),
        (shown("JobId=43 JobName=a\nJobId=43 Nodes=n[2-3] CPU_IDs=0 Mem=1 GRES=gpu:4\n"), 1),
    ],
)
def test_a_job_that_slurm_does_not_explain_is_spread_and_asked_again_without_an_answer(
    tmp_path: Path, answer: str | tuple[int, str, str], asked: int
) -> None:
    stub = Stub(tmp_path)
    stub.answers("scontrol", answer)
    book = GpuLayouts(stub.commands())
    for _ in range(2):
        book.learn(UNEVEN, ROOM)
        assert book.of(43, 0) == (("n2", 3), ("n3", 2))
    assert len(stub.ran("scontrol")) == asked


def test_the_layout_of_a_run_whose_record_bears_another_job_is_asked_anew(stub: Stub) -> None:
    line = "JobId=43 JobName=a Nodes=n2 CPU_IDs=0 Mem=1 GRES=gpu:4 Nodes=n3 CPU_IDs=0 Mem=1 GRES=gpu:1\n"
    stub.answers("scontrol", shown(line))
    layouts = GpuLayouts(stub.commands())
    for forget in (False, False, True):
        if forget:
            layouts.forget([(43, 0), (44, 0)])
        layouts.learn(UNEVEN, ROOM)
    assert len(stub.ran("scontrol")) == 2
