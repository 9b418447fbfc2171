"""Slurm's words for times, sizes, counts and array tasks."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_fair.errors import SlurmTextError
from slurm_fair.slurm.reading import values
from slurm_fair.slurm.reading.task_lists import read_tasks

SLURMISH = st.one_of(st.text(), st.text(alphabet="0123456789-:,%[]()=./KMGTgpu a100²٣NAn\n\x1f", max_size=40))
SPANS = st.lists(st.integers(0, 4_000_000), min_size=1, max_size=30, unique=True)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30:00", 1800),
        ("2:00:00", 7200),
        ("7-00:00:00", 604_800),
        ("1-02:03:04", 93_784),
        ("0:05", 5),
        ("00:00:01.500", 1),
        ("UNLIMITED", math.inf),
        ("NOT_SET", math.inf),
        ("N/A", math.inf),
    ],
)
def test_durations_read_as_slurm_means_them(text: str, seconds: float) -> None:
    assert values.duration_seconds(text) == seconds


@pytest.mark.parametrize(
    ("text", "megabytes"),
    [
        ("512000M", 512_000),
        ("64G", 65_536),
        ("62.50G", 64_000),
        ("1T", 1_048_576),
        ("2048K", 2),
        ("", 0),
        ("0", 0),
    ],
)
def test_sizes_come_to_megabytes(text: str, megabytes: int) -> None:
    assert values.megabytes(text) == megabytes


@pytest.mark.parametrize("text", ["", "N/A", "NONE", "(null)", "None", "Unknown"])
def test_every_word_for_nothing_is_no_time_no_number_and_no_gpus(text: str) -> None:
    assert (values.epoch(text), values.number(text), values.tres(text)) == (0.0, 0, {})
    assert values.gres_gpus(text) == (0, "")


@pytest.mark.parametrize(("text", "number"), [("7", 7), ("2-4", 2), ("-5", -5), ("0", 0)])
def test_a_range_counts_by_its_lower_end(text: str, number: int) -> None:
    assert values.number(text) == number


@pytest.mark.parametrize(
    ("text", "gpus", "kind"),
    [
        ("cpu=4,mem=256G,node=4,billing=4,gres/gpu=4", 4, ""),
        ("cpu=8,mem=8000M,gres/gpu=8,gres/gpu:h100=8", 8, "h100"),
        ("billing=1,gres/gpu:a100=2,gres/gpu:h100=3,gres/gpu=5", 5, "+"),
        ("gres/gpu:a100=0,gres/gpu:h100=3,gres/gpu=3", 3, "h100"),
        ("gres/gpumem=40G,cpu=1", 0, ""),
        ("cpu=1,mem=1G", 0, ""),
    ],
)
def test_gpus_of_a_tres_list(text: str, gpus: int, kind: str) -> None:
    assert values.tres_gpus(values.tres(text)) == (gpus, kind)


@pytest.mark.parametrize(
    ("text", "gpus", "kind"),
    [
        ("gres:gpu:8", 8, ""),
        ("gres/gpu:h100:8", 8, "h100"),
        ("gres:gpu", 1, ""),
        ("gpu:a100:8(S:0-1)", 8, "a100"),
        ("gpu:a100:4(IDX:0-2,5),gpu:h100:2(IDX:0-1)", 6, "+"),
        ("gpu:a100:0(IDX:N/A)", 0, ""),
        ("shard:8,gpu:2", 2, ""),
        ("license:3", 0, ""),
        ("gpu:a100:8(S:0,2-3),gpu:a100:2", 10, "a100"),
    ],
)
def test_gpus_of_a_gres_list(text: str, gpus: int, kind: str) -> None:
    assert values.gres_gpus(text) == (gpus, kind)


@pytest.mark.parametrize(
    ("text", "tasks", "limit"),
    [
        ("0-5%2", [0, 1, 2, 3, 4, 5], 2),
        ("[1,3-4%3]", [1, 3, 4], 3),
        ("0-10:5,20", [0, 5, 10, 20], 0),
        ("7", [7], 0),
    ],
)
def test_task_lists_and_their_limit(text: str, tasks: list[int], limit: int) -> None:
    listed = read_tasks(text)
    assert (listed.numbers().tolist(), listed.count, listed.limit) == (tasks, len(tasks), limit)
    assert listed.among([*range(30), 4_000_000]) == set(tasks)
    assert read_tasks(listed.text()).numbers().tolist() == tasks


@pytest.mark.parametrize(
    "text", ["", "1,,2", "1-", "-", "0-5:0", "5-3", "0-9999999", "1-3,...", "a", "[1-2"[1:] + "]x"]
)
def test_a_task_list_that_is_cut_off_or_impossible_is_refused(text: str) -> None:
    with pytest.raises(SlurmTextError):
        read_tasks(text)


@given(SPANS)
def test_tasks_written_as_slurm_does_read_the_same(tasks: list[int]) -> None:
    text = values.task_list(np.array(tasks, dtype=np.int64))
    listed = read_tasks(text)
    assert (listed.numbers().tolist(), listed.limit, listed.text()) == (sorted(tasks), 0, text)


def test_a_list_of_many_tasks_costs_what_its_text_costs() -> None:
    listed = read_tasks("0-3999999:2%7")
    assert (listed.count, len(listed.spans), listed.text()) == (2_000_000, 1, "")
    assert listed.among([3, 4, 3_999_998]) == {4, 3_999_998}
    assert read_tasks("0-3999999").text() == "0-3999999"


PARSERS: tuple[Callable[[str], object], ...] = (
    values.epoch,
    values.number,
    values.duration_seconds,
    values.megabytes,
    read_tasks,
    values.gres_gpus,
    lambda text: values.tres_gpus(values.tres(text)),
)


@pytest.mark.parametrize("parse", PARSERS)
@given(text=SLURMISH)
def test_no_text_makes_a_parser_fail_otherwise_than_by_refusing_it(
    parse: Callable[[str], object], text: str
) -> None:
    with contextlib.suppress(SlurmTextError):
        parse(text)


@pytest.mark.parametrize("parse", PARSERS[:4])
@pytest.mark.parametrize("text", ["9" * 30, "9" * 5000, "1" * 400 + ":00", "²", "٣", "1e5", " 1", "1\n"])
def test_numbers_beyond_any_cluster_are_refused(parse: Callable[[str], object], text: str) -> None:
    with pytest.raises(SlurmTextError):
        parse(text)
