"""Which GPUs of which nodes a running job has."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_fair.slurm.layout import LayoutBook, read_layout, spread
from tests.slurm_samples import sample
from tests.slurm_stub import Stub

UNEVEN = {(43, 0): (("n2", "n3"), 5)}


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
    assert read_layout(sample(version, "job.txt"), nodes, gpus) == layout


@pytest.mark.parametrize(
    ("nodes", "gpus"), [(("n2",), 5), (("n2", "n3"), 4), (("n2", "n3", "n4"), 5), ((), 0)]
)
def test_segments_that_do_not_account_for_the_job_are_not_believed(nodes: tuple[str, ...], gpus: int) -> None:
    assert read_layout(sample("22.05", "job.txt"), nodes, gpus) is None


def test_a_forged_segment_in_a_name_costs_its_owner_the_exact_layout_and_nobody_else_anything() -> None:
    forged = sample("22.05", "job.txt").replace(
        "JobName=wrap", "JobName=x Nodes=n9 CPU_IDs=0 Mem=1 GRES=gpu:8"
    )
    assert read_layout(forged, ("n2", "n3"), 5) is None


@given(st.lists(st.text(min_size=1), max_size=9, unique=True), st.integers(0, 100))
def test_an_unexplained_job_is_spread_as_evenly_as_it_goes(nodes: list[str], gpus: int) -> None:
    counts = [count for _, count in spread(tuple(nodes), gpus)]
    assert sum(counts) == (gpus if nodes else 0)
    assert max(counts, default=0) - min(counts, default=0) <= 1


def test_a_run_is_asked_for_once_and_forgotten_when_it_is_over(tmp_path: Path) -> None:
    stub = Stub(tmp_path)
    stub.answers("scontrol", sample("22.05", "job.txt"))
    book = LayoutBook(stub.commands())
    book.learn(UNEVEN)
    book.learn(UNEVEN)
    assert book.of(43, 0) == (("n2", 4), ("n3", 1))
    assert stub.ran("scontrol") == [["-d", "-o", "show", "job", "43"]]
    book.learn({})
    assert book.of(43, 0) is None


def test_of_an_array_only_the_records_own_line_counts(tmp_path: Path) -> None:
    stub = Stub(tmp_path)
    other = sample("22.05", "job.txt").replace("JobId=43 ", "JobId=44 ")
    stub.answers("scontrol", other + sample("22.05", "job.txt"))
    book = LayoutBook(stub.commands())
    book.learn(UNEVEN)
    assert book.of(43, 0) == (("n2", 4), ("n3", 1))


@pytest.mark.parametrize(
    "answer", [(1, "", "slurm_load_jobs error: Invalid job id specified"), "", "JobId=9 Nodes=n2"]
)
def test_a_job_that_slurm_does_not_explain_is_spread(
    tmp_path: Path, answer: str | tuple[int, str, str]
) -> None:
    stub = Stub(tmp_path)
    stub.answers("scontrol", answer)
    book = LayoutBook(stub.commands())
    book.learn(UNEVEN)
    assert book.of(43, 0) == (("n2", 3), ("n3", 2))
