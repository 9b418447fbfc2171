"""A key names a job or an array task, and a later job under its id is told from it."""

from __future__ import annotations

import numpy as np
import pytest

from slurm_fair.errors import InputError
from slurm_fair.model.ids import TASK_BITS, is_same_job, label, labels, pack, pack_keys, parse_label

LAST_TASK = 4_000_000  # MaxArraySize is at most 4,000,001


@pytest.mark.parametrize("text", ["1", "17", "6_0", "6_5", "4294967295", f"4294967295_{LAST_TASK}"])
def test_a_label_is_read_and_written_alike(text: str) -> None:
    assert label(parse_label(text)) == text
    assert parse_label(f"  {text}\n") == parse_label(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "_5",
        "5_",
        "-5",
        "5_-1",
        "5_5_5",
        "5.0",
        "5 _1",
        "0x5",
        "job",
        "12345678901",
        "1_12345678",
        f"1_{LAST_TASK + 1}",
        "2_9999999",
        "5_[1-3]",
        "0",
        "00",
        "0_3",
        "+5",
    ],
)
def test_what_is_no_id_is_refused_with_its_own_words(text: str) -> None:
    with pytest.raises(InputError, match="is no job id"):
        parse_label(text)


def test_a_job_and_its_tasks_have_keys_of_their_own_in_the_order_of_ids() -> None:
    base = np.array([5, 6, 6, 6, 6, 7])
    task = np.array([LAST_TASK, -1, 0, 1, LAST_TASK, -1])
    keys = pack_keys(base, task)
    assert keys.tolist() == [pack(int(b), int(t)) for b, t in zip(base, task, strict=True)]
    assert (np.diff(keys) > 0).all()
    assert labels(keys) == [f"5_{LAST_TASK}", "6", "6_0", "6_1", f"6_{LAST_TASK}", "7"]
    assert labels(keys[:0]) == []
    assert (keys >> TASK_BITS).tolist() == base.tolist()
    narrow = pack_keys(np.array([4_000_000], dtype=np.int32), np.array([-1], dtype=np.int32))
    assert label(narrow.item()) == "4000000"


def test_another_job_begins_later_and_without_a_restart() -> None:
    assert [is_same_job(100.0, *now) for now in ((100.0, 0), (99.0, 0), (101.0, 1), (101.0, 0))] == [
        True, True, True, False,
    ]  # fmt: skip
    many = is_same_job(np.full(4, 100.0), np.array([100.0, 99.0, 101.0, 101.0]), np.array([0, 0, 2, 0]))
    assert many.tolist() == [True, True, True, False]
