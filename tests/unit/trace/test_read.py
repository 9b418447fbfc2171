"""Trace CSV: what a good file means, and how a bad row is refused."""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import numpy as np
import pytest

from slurm_fair.errors import InputError
from slurm_fair.trace import End, Mode, read_throughputs, read_trace
from slurm_fair.trace.status import end_of
from tests.support.trace_samples import DATA

HEADER = "job_id,tenant,submit_s,gpus,duration_s"


def written(folder: Path, *lines: str, header: str = HEADER) -> Path:
    path = folder / "t.csv"
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


# What a good file means


def test_columns_come_in_any_order_and_rows_in_order_of_submission() -> None:
    trace = read_trace(DATA / "trace.csv").trace
    assert list(trace.job_id) == ["a", "b"]
    assert trace.submit_s.tolist() == [0.0, 30.0]
    assert [trace.tenants[code] for code in trace.tenant] == ["chem", "phys"]
    assert trace.gpus.tolist() == [0.5, 2.0]
    assert trace.whole_gpus.tolist() == [1, 2]
    assert trace.fractional.tolist() == [True, False]
    assert trace.gpu_seconds.tolist() == [30.125, 1200.0]


def test_a_column_whose_name_is_nearly_that_of_another_is_told_of(tmp_path: Path) -> None:
    header = f"{HEADER},weigth,gputype,note,user"
    reading = read_trace(written(tmp_path, "a,x,0,1,60,2,k80,fine,ann", header=header))
    assert reading.odd_columns == (
        "column 'weigth' is kept as text: did you mean 'weight'?",
        "column 'gputype' is kept as text: did you mean 'gpu_type'?",
    )


def test_every_column_has_its_type_and_its_value_where_it_is_empty() -> None:
    trace = read_trace(DATA / "trace.csv").trace
    assert trace.status.tolist() == [End.CANCELLED, End.COMPLETED]
    assert trace.mode.tolist() == [Mode.STATIC, Mode.GNS]
    assert trace.model.tolist() == [-1, 0]
    assert (trace.models, trace.batch_size.tolist()) == (("LM",), [0, 10])
    assert (trace.choice_sets, trace.choice_set.tolist()) == (((1, 2, 4),), [-1, 0])
    assert math.isnan(trace.declared_s[0])
    assert trace.declared_s[1] == 700
    assert trace.weight.tolist() == [1.0, 1.0]
    assert [trace.users[code] for code in trace.user] == ["chem", "phys"]
    assert list(trace.further) == ["team"]
    assert trace.further["team"].tolist() == ["blue", "red"]


def test_rows_can_be_taken_with_their_further_columns() -> None:
    trace = read_trace(DATA / "trace.csv").trace.take(np.array([1]))
    assert (list(trace.job_id), trace.further["team"].tolist()) == (["b"], ["red"])


def test_a_table_whose_columns_differ_in_length_cannot_be() -> None:
    trace = read_trace(DATA / "trace.csv").trace
    with pytest.raises(ValueError, match="differ in length"):
        trace.with_columns(further={"x": np.array(["1"], dtype=object)})


def test_gzip_a_byte_order_mark_blank_lines_and_line_ends_of_windows_do_not_matter(tmp_path: Path) -> None:
    text = f"\ufeff{HEADER}\r\n\r\na,x,0,1,5\r\n"
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    assert list(read_trace(tmp_path / "t.csv.gz").trace.job_id) == ["a"]


@pytest.mark.parametrize(
    ("word", "end"),
    [
        ("", End.COMPLETED), ("COMPLETED", End.COMPLETED), ("Succeeded", End.COMPLETED), ("Pass", End.COMPLETED),
        ("CANCELLED", End.CANCELLED), ("CANCELLED by 1000", End.CANCELLED), ("Killed", End.CANCELLED),
        ("FAILED", End.FAILED), ("Failed", End.FAILED), ("NODE_FAIL", End.FAILED), ("OUT_OF_MEMORY", End.FAILED),
        ("TIMEOUT", End.TIMEOUT), ("DEADLINE", End.TIMEOUT), ("Running", End.RUNNING), ("PENDING", End.PENDING),
    ],
)  # fmt: skip
def test_slurms_words_and_those_of_the_sources_come_down_to_six(word: str, end: End) -> None:
    assert end_of(word) is end


@pytest.mark.parametrize(
    ("header", "row", "model", "batch"),
    [
        ("model", "ResNet-18", "ResNet-18", 0),
        ("application", "bert", "bert", 0),
        ("model", "LM (batch size 80)", "LM", 80),
        ("model,batch_size", "LM (batch size 80),80", "LM", 80),
        ("model,batch_size", "LM (batch size 80),40", "LM (batch size 80)", 40),
        ("name", "cifar10-17", "cifar10", 0),
        ("model,name", "bert,cifar10-17", "bert", 0),
    ],
)
def test_a_model_is_named_by_model_application_or_the_name_without_its_number(
    tmp_path: Path, header: str, row: str, model: str, batch: int
) -> None:
    path = written(tmp_path, f"a,x,0,1,,{row}", header=f"{HEADER},{header}")
    trace = read_trace(path, need_durations=False).trace
    assert (trace.models, trace.batch_size.tolist()) == ((model,), [batch])


def test_a_name_is_no_model_where_the_run_time_is_given(tmp_path: Path) -> None:
    path = written(tmp_path, "a,x,0,1,5,train-3", header=f"{HEADER},name")
    assert read_trace(path).trace.models == ()


# Run times out of throughputs


@pytest.mark.parametrize(
    ("header", "row", "seconds"),
    [
        ("model,batch_size,total_steps", "2,ResNet-18,32,9000", 300.0),
        ("model,total_steps", "2,ResNet-18 (batch size 32),9000", 300.0),
        ("model,total_steps", "1,A3C,5", 2.0),
        ("model,batch_size,epochs,samples", "1.5,ResNet-18,32,3,100", 12 / 30),
    ],
)
def test_a_missing_run_time_is_steps_over_the_measured_rate(
    tmp_path: Path, header: str, row: str, seconds: float
) -> None:
    path = written(tmp_path, f"a,x,0,{row}", header=f"job_id,tenant,submit_s,gpus,{header},duration_s")
    path.write_text(path.read_text().replace(row, f"{row},"))
    trace = read_trace(path, throughputs=read_throughputs(DATA / "throughputs.csv")).trace
    assert trace.duration_s.tolist() == pytest.approx([seconds])


@pytest.mark.parametrize(
    ("row", "measured", "words"),
    [
        ("1,,,", False, "no model is named"),
        ("1,ResNet-18,32,9000", False, "or throughputs of the models"),
        ("1,ResNet-18,32,9000", True, "no row for model 'ResNet-18', batch size 32, 1 GPUs"),
        ("1,LM,5,9000", True, "model 'LM', batch size 5, 1 GPUs cannot run on v100"),
        ("2,ResNet-18,32,", True, "total_steps"),
    ],
)
def test_a_run_time_that_cannot_be_had_is_refused(
    tmp_path: Path, row: str, measured: bool, words: str
) -> None:
    path = written(
        tmp_path,
        f"a,x,0,,{row}",
        header="job_id,tenant,submit_s,duration_s,gpus,model,batch_size,total_steps",
    )
    rates = read_throughputs(DATA / "throughputs.csv") if measured else None
    with pytest.raises(InputError, match=r"t\.csv:2: duration_s: is empty") as refused:
        read_trace(path, throughputs=rates)
    assert words in str(refused.value)


# How a bad row is refused


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (",x,0,1,5", ":3: job_id: is empty"),
        ("a,,0,1,5", ":3: tenant: is empty"),
        ("a,x,,1,5", ":3: submit_s: is empty"),
        ("a,x,-1,1,5", ":3: submit_s: '-1' must be 0 or more"),
        ("a,x,nan,1,5", ":3: submit_s: 'nan' is no number"),
        ("a,x,1_0,1,5", ":3: submit_s: '1_0' is no number"),
        ("a,x,0,0,5", ":3: gpus: '0' must be above 0"),
        ("a,x,0,-2,5", ":3: gpus: '-2' must be above 0"),
        ("a,x,0,two,5", ":3: gpus: 'two' is no number"),
        ("a,x,0,inf,5", ":3: gpus: 'inf' is no number"),
        ("a,x,0,1,-5", ":3: duration_s: '-5' must be above 0"),
        ("a,x,0,1,0", ":3: duration_s: '0' must be above 0"),
        ("a,x,0,1,1e400", ":3: duration_s: '1e400' is"),
        ("a,x,0,1,1e13", ":3: duration_s: '1e13' is beyond 1e+12"),
        ("a,x,0,1", ":3: row: has 4 cells, the header 5"),
        ("a,x,0,1,5,6", ":3: row: has 6 cells, the header 5"),
        (",,,,", ":3: job_id: is empty"),
        ("first,x,0,1,5", ":3: job_id: 'first' is there twice, first at 2"),
        ("a\x1b[2J,x,0,1,5", ":3: job_id: 'a?[2J' holds characters"),
        (f"{'a' * 300},x,0,1,5", ":3: job_id: 'aaa"),
    ],
)
def test_a_bad_row_is_refused_with_its_line_its_column_and_the_reason(
    tmp_path: Path, row: str, words: str
) -> None:
    with pytest.raises(InputError) as refused:
        read_trace(written(tmp_path, "first,x,0,1,5", row))
    said = str(refused.value)
    assert words in said
    assert said.startswith(str(tmp_path))
    assert "\n" not in said


@pytest.mark.parametrize(
    ("column", "text", "words"),
    [
        ("status", "FAILDE", "did you mean 'failed'?"),
        ("mode", "acordion", "did you mean 'accordion'?"),
        ("weight", "0", "must be above 0"),
        ("weight", "1e-300", "'1e-300' is too small: give a number from 1e-12"),
        ("gpus_choices", "1|two", "with | between them"),
        ("gpus_choices", "0|1", "above 0"),
        ("gpus_choices", "0-4", "above 0"),
        ("gpus_choices", "8-2", "MIN-MAX or MIN-MAX:STEP"),
        ("gpus_choices", "2-8:0", "MIN-MAX or MIN-MAX:STEP"),
        ("gpus_choices", "2-8:", "with | between them"),
        ("gpus_choices", "1-17", "17 sizes: at most 16; give a larger step"),
        ("gpus_choices", "1-999999", "999999 sizes"),
        ("batch_size", "1.5", "no whole number"),
        ("epochs", "-1", "no whole number"),
        ("sensitivity", "-0.5", "must be 1 or more"),
        ("sensitivity", "0.5", "must be 1 or more"),
        ("node_count", "²", "no whole number"),
        ("declared_s", "0", "must be above 0"),
        ("epoch_seconds", "x", "no number"),
        ("model", "a\x00b", "cannot be printed"),
    ],
)
def test_an_optional_cell_that_cannot_be_read_is_refused_too(
    tmp_path: Path, column: str, text: str, words: str
) -> None:
    with pytest.raises(InputError, match=rf":2: {column}: ") as refused:
        read_trace(written(tmp_path, f"a,x,0,1,5,{text}", header=f"{HEADER},{column}"))
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no header"),
        ("\n\n", "no header"),
        ("job_id,tenant,submit_s,gpu,duration_s\n", "no column gpus; "),
        ("job_id,tenant,submit_s,gpu,duration_s\n", "did you mean 'gpu'?"),
        ("job_id,tenant,submit_s,gpus,duration_s,gpus\n", "'gpus': the column is there twice"),
        ("job_id,tenant,submit_s,gpus,duration_s,declared_s,static_duration_s\n", "there twice"),
        ("job_id,,submit_s,gpus,duration_s\n", "column 2 has no short name"),
        (f"{HEADER}\n", "no job in it"),
        (f'{HEADER}\n"a"b,x,0,1,5\n', ":2: row: not CSV"),
        (f'{HEADER}\n"a,x,0,1,5\n', ":2: row: not CSV"),
        (f"{HEADER}\n{'a' * 200_000},x,0,1,5\n", ":2: row: not CSV"),
    ],
)
def test_a_file_that_is_no_table_of_jobs_is_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(InputError) as refused:
        read_trace(tmp_path / "t.csv")
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.csv", b"\xff\xfe\x00", "not UTF-8"),
        ("t.csv.gz", b"job_id", "not a whole gzip file"),
        ("t.csv.gz", gzip.compress(f"{HEADER}\n".encode() * 50, mtime=0)[:-9], "not a whole gzip file"),
        ("t.csv.gz", gzip.compress(b"abc" * 50, mtime=0)[:10] + b"\xff" * 20, "not a whole gzip file"),
    ],
)
def test_a_file_of_other_bytes_is_refused(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=words):
        read_trace(tmp_path / name)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_trace(tmp_path / "gone.csv")


def test_the_place_of_a_row_is_its_first_line_even_behind_cells_with_line_ends(tmp_path: Path) -> None:
    path = written(tmp_path, 'a,x,0,1,5,"one\ntwo"', "b,x,0,0,5,plain", header=f"{HEADER},note")
    with pytest.raises(InputError, match=r":4: gpus:"):
        read_trace(path)


def test_bad_rows_are_left_out_counted_and_listed_when_asked(tmp_path: Path) -> None:
    path = written(tmp_path, "a,x,0,1,5", "b,x,0,0,5", "c,x,0,1", "a,x,3,1,5", "d,y,1,1,5")
    with pytest.raises(InputError, match=r":3: gpus: .*\(2 more bad rows follow; --skip-bad"):
        read_trace(path)
    reading = read_trace(path, skip_bad=True)
    assert list(reading.trace.job_id) == ["a", "d"]
    assert [(fault.place, fault.column) for fault in reading.bad] == [
        (":3", "gpus"),
        (":4", "row"),
        (":5", "job_id"),
    ]


def test_a_file_without_one_good_row_is_refused_even_then(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r":2: gpus: .* no good row is in it"):
        read_trace(written(tmp_path, "b,x,0,0,5"), skip_bad=True)


@pytest.mark.parametrize("together", [1, 7, 64])
def test_jobs_are_the_same_whether_they_are_read_together_or_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, together: int
) -> None:
    """A job's claims may follow from its other cells, and an earlier job may have its id already."""
    good = [
        f"j{row},t{row % 3},{row},{1 + row % 4},{9 + row},{'u' * (row % 2)},m{row % 5}" for row in range(120)
    ]
    good[30], good[70] = "j30,x,3,1,5,,LM (batch size 8)", "j70,x,70,1,5,v,LM"
    bad = {20: "j20,x,0,0,5,,", 40: "j39,x,0,1,5,,", 90: "j90,x,0,1,,,", 119: "j1,x,0,1,5,,m"}
    lines = [bad.get(row, line) for row, line in enumerate(good)]
    path = written(tmp_path, *lines, header=f"{HEADER},user,model")
    monkeypatch.setattr("slurm_fair.trace.read._TOGETHER", together)
    reading = read_trace(path, skip_bad=True)
    found = [(fault.place, fault.column) for fault in reading.bad]
    assert found == [(":22", "gpus"), (":42", "job_id"), (":92", "duration_s"), (":121", "job_id")]
    trace, left = reading.trace, [row for row in range(120) if row not in bad]
    assert trace.job_id.tolist() == [
        f"j{row}" for row in sorted(left, key=lambda row: 3 if row == 30 else row)
    ]
    users = dict(zip(trace.job_id.tolist(), (trace.users[user] for user in trace.user), strict=True))
    models = dict(zip(trace.job_id.tolist(), (trace.models[model] for model in trace.model), strict=True))
    assert (users["j3"], users["j4"], users["j30"], users["j70"]) == ("u", "t1", "x", "v")
    assert (models["j3"], models["j30"], trace.batch_size.max()) == ("m3", "LM", 8)
    assert trace.duration_s.tolist() == [float(line.split(",")[4]) for line in _by_time(left, good)]


def _by_time(rows: list[int], lines: list[str]) -> list[str]:
    return [lines[row] for row in sorted(rows, key=lambda row: float(lines[row].split(",")[2]))]


@pytest.mark.parametrize(
    ("text", "sizes"),
    [("2-8:2", (2, 4, 6, 8)), ("2-4", (2, 3, 4)), ("1-8:3", (1, 4, 7)), (" 5-5 ", (5,)), ("4|2", (2, 4))],
)
def test_sizes_are_listed_or_lie_between_two_by_steps(
    tmp_path: Path, text: str, sizes: tuple[int, ...]
) -> None:
    trace = read_trace(written(tmp_path, f"a,x,0,2,5,{text}", header=f"{HEADER},gpus_choices")).trace
    assert trace.choice_sets[trace.choice_set.item(0)] == sizes
