"""Rows of text become a trace; what follows from other cells is filled in."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan

import pytest

from slurm_fair.trace import Throughputs, Trace, read_throughputs
from slurm_fair.trace.collect import Collector, ColumnRules
from slurm_fair.trace.faults import BadCell
from tests.support.trace_samples import DATA

NEEDED = {"job_id": "1", "tenant": "a", "submit_s": "0", "gpus": "2", "duration_s": "60"}


def collected(*rows: dict[str, str], together: bool = False, rules: ColumnRules | None = None) -> Trace:
    """A trace of rows, each of which says something else than a plain job; ids count from 1."""
    columns = list(NEEDED | {name: "" for row in rows for name in row})
    full = [NEEDED | {"job_id": str(at)} | row for at, row in enumerate(rows, start=1)]
    table: list[tuple[str, Sequence[str]]] = [
        (f":{at}", [row.get(name, "") for name in columns]) for at, row in enumerate(full, start=2)
    ]
    collector = Collector(columns, rules or ColumnRules())
    if together:
        assert collector.add_together(table)
    else:
        for place, row in table:
            collector.add(place, row)
    assert len(collector) == len(rows)
    return collector.trace()


@pytest.mark.parametrize("together", [False, True])
def test_a_job_is_its_tenants_own_and_stands_in_the_order_of_submission(together: bool) -> None:
    trace = collected(
        {"submit_s": "9", "user": "ann", "note": "x"},
        {"submit_s": "3", "tenant": "b", "gpus_choices": "1|2"},
        {"submit_s": "9"},
        together=together,
    )
    assert list(trace.job_id) == ["2", "1", "3"]
    assert [trace.users[at] for at in trace.user] == ["b", "ann", "a"]
    assert [trace.tenants[at] for at in trace.tenant] == ["b", "a", "a"]
    assert trace.choice_set.tolist() == [0, -1, -1]
    assert trace.choice_sets == ((1, 2),)
    assert trace.further["note"].tolist() == ["", "x", ""]
    assert trace.weight.tolist() == [1, 1, 1]


def test_a_batch_size_in_the_name_of_a_model_is_a_batch_size() -> None:
    trace = collected(
        {"model": "LM (batch size 5)"},
        {"model": "LM (batch size 5)", "batch_size": "5"},
        {"model": "LM (batch size 5)", "batch_size": "7"},
    )
    assert [trace.models[at] for at in trace.model] == ["LM", "LM", "LM (batch size 5)"]
    assert trace.batch_size.tolist() == [5, 5, 7]


def test_an_id_that_is_there_twice_is_refused() -> None:
    with pytest.raises(BadCell, match="'7' is there twice, first at 2: give each job its own") as refused:
        collected({"job_id": "7"}, {"job_id": "7"})
    assert refused.value.column == "job_id"


def test_a_bad_cell_has_the_name_of_its_column() -> None:
    with pytest.raises(BadCell, match="is no mode; did you mean 'gns'") as refused:
        collected({"mode": "gnss"})
    assert refused.value.column == "mode"


@pytest.mark.parametrize(
    "row",
    [{"gpus": "x"}, {"job_id": "0"}, {"duration_s": ""}, {"model": "LM (batch size 5)"}, {"job_id": "old"}],
)
def test_rows_that_need_a_look_are_not_added_together(row: dict[str, str]) -> None:
    columns = [*NEEDED, "model"]
    collector = Collector(columns)
    collector.add(":1", ["old", *list(NEEDED.values())[1:], ""])
    rows = [NEEDED | {"job_id": "0", "model": ""}, NEEDED | {"model": ""} | row]
    assert not collector.add_together([(":2", [each[name] for name in columns]) for each in rows])
    assert len(collector) == 1


def throughputs() -> Throughputs:
    return read_throughputs(DATA / "throughputs.csv")


def test_a_run_time_follows_from_steps_and_throughputs() -> None:
    rules = ColumnRules(throughputs())
    by_steps = {"duration_s": "", "model": "A3C", "gpus": "1", "total_steps": "400"}
    by_epochs = {"epochs": "4", "samples": "7", "batch_size": "4"}
    rate = throughputs().steps_per_second("A3C", 0, 1)
    assert rate
    assert collected(by_steps, rules=rules).duration_s.tolist() == [400 / rate]
    with pytest.raises(BadCell, match="have no row for model 'A3C', batch size 4"):
        collected({"duration_s": "", "model": "A3C", "gpus": "1"} | by_epochs, rules=rules)


@pytest.mark.parametrize(
    ("row", "known", "words"),
    [
        ({}, False, "no model is named"),
        ({"model": "A3C"}, False, "or throughputs of the models"),
        ({"model": "unheard"}, True, "no row for model 'unheard', batch size any, 2 GPUs"),
        ({"model": "A3C", "gpus": "1"}, True, "so are total_steps, or epochs with samples"),
    ],
)
def test_a_job_without_a_run_time_is_told_how_to_get_one(
    row: dict[str, str], known: bool, words: str
) -> None:
    rules = ColumnRules(throughputs() if known else None)
    with pytest.raises(BadCell, match=words) as refused:
        collected({"duration_s": ""} | row, rules=rules)
    assert refused.value.column == "duration_s"
    without = ColumnRules(rules.throughputs, need_durations=False)
    assert isnan(collected({"duration_s": ""} | row, rules=without).duration_s[0])


def test_a_numbered_name_names_the_model() -> None:
    trace = collected({"duration_s": "", "name": "bert-12"}, rules=ColumnRules(need_durations=False))
    assert trace.models == ("bert",)
