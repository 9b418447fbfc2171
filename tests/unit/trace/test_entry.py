"""Each record of a source is a job, a reason to leave it out, or a fault."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from slurm_fair.trace import cells
from slurm_fair.trace.convert.entry import NO_GPU, Entry, Left, each, instant_of, of_column
from slurm_fair.trace.faults import BadCell, Fault


def read(record: str) -> Mapping[str, str] | str:
    if record == "bad":
        raise BadCell("is bad")
    if record == "bad gpus":
        raise BadCell("are bad", "gpus")
    return NO_GPU if record == "cpu" else {"job_id": record}


def test_what_reading_a_record_gives_is_kept_with_its_place() -> None:
    cut = Fault(":9", "row", "is cut")
    records: list[tuple[str, str] | Fault] = [
        (":1", "7"),
        (":2", "cpu"),
        (":3", "bad"),
        (":4", "bad gpus"),
        cut,
    ]
    assert list(each(records, read)) == [
        Entry(":1", {"job_id": "7"}),
        Left(NO_GPU),
        Fault(":3", "row", "is bad"),
        Fault(":4", "gpus", "are bad"),
        cut,
    ]


def test_an_instant_is_seconds_with_a_blank_or_a_t() -> None:
    assert instant_of("1970-01-02 00:00:01", "end") == 86_401.0
    assert instant_of("1970-01-02T00:00:01", "end") == 86_401.0


@pytest.mark.parametrize(
    ("text", "words"), [("yesterday", "is no time"), ("1970-13-02 00:00:01", "is a time that cannot be")]
)
def test_an_instant_that_cannot_be_is_refused(text: str, words: str) -> None:
    with pytest.raises(BadCell, match=words) as refused:
        instant_of(text, "end")
    assert refused.value.column == "end"


def test_a_fault_of_a_cell_names_the_column_of_the_source() -> None:
    assert of_column("gpu_num", cells.positive, "2") == 2.0
    with pytest.raises(BadCell, match="must be above 0") as refused:
        of_column("gpu_num", cells.positive, "0")
    assert refused.value.column == "gpu_num"
