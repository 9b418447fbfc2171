"""Trace CSV: what a good file means, how a bad row is refused, and that what is written reads back."""

from __future__ import annotations

import csv
import gzip
import io
import math
from pathlib import Path
from typing import IO

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slurm_fair.errors import InputError, SlurmFairError
from slurm_fair.trace import End, Mode, Trace, read_throughputs, read_trace, write_trace
from slurm_fair.trace.files import write_whole
from slurm_fair.trace.status import end_of
from slurm_fair.trace.table import OPTIONAL, REQUIRED

DATA = Path(__file__).parents[1] / "data" / "traces"
HEADER = "job_id,tenant,submit_s,gpus,duration_s"
SAME_FILE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def written(folder: Path, *lines: str, header: str = HEADER) -> Path:
    path = folder / "t.csv"
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


def same(one: Trace, other: Trace) -> bool:
    """Cell by cell; numbers that are not given are alike."""
    arrays, others = one._arrays(), other._arrays()
    alike = all(
        np.array_equal(arrays[name], others[name], equal_nan=arrays[name].dtype == np.float64)
        for name in arrays
    )
    names = ("tenants", "users", "gpu_types", "models", "apps", "choice_sets")
    further = {name: list(column) for name, column in one.further.items()}
    return (
        alike
        and all(getattr(one, name) == getattr(other, name) for name in names)
        and further == {name: list(column) for name, column in other.further.items()}
    )


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
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(text.encode()))
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
        ("1,LM,5,9000", True, "no row for model 'LM'"),
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
        ("status", "FAILDE", "did you mean failed?"),
        ("mode", "acordion", "did you mean accordion?"),
        ("weight", "0", "must be above 0"),
        ("gpus_choices", "1|two", "no whole number"),
        ("gpus_choices", "0|1", "above 0"),
        ("batch_size", "1.5", "no whole number"),
        ("epochs", "-1", "no whole number"),
        ("sensitivity", "-0.5", "must be 0 or more"),
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
        ("job_id,tenant,submit_s,gpu,duration_s\n", "did you mean gpu?"),
        ("job_id,tenant,submit_s,gpus,duration_s,gpus\n", "'gpus': the column is there twice"),
        ("job_id,tenant,submit_s,gpus,duration_s,declared_s,static_duration_s\n", "there twice"),
        ("job_id,,submit_s,gpus,duration_s\n", "column 2 has no name"),
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
        ("t.csv.gz", gzip.compress(f"{HEADER}\n".encode() * 50)[:-9], "not a whole gzip file"),
        ("t.csv.gz", gzip.compress(b"abc" * 50)[:10] + b"\xff" * 20, "not a whole gzip file"),
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


# What is written reads back


def test_what_was_read_is_written_and_reads_back_the_same(tmp_path: Path) -> None:
    trace = read_trace(DATA / "trace.csv").trace
    for name in ("t.csv", "t.csv.gz"):
        write_trace(trace, tmp_path / name)
        assert same(read_trace(tmp_path / name).trace, trace)


def test_columns_that_say_nothing_are_not_written(tmp_path: Path) -> None:
    path = written(tmp_path, "a,x,0,1.50,5,,x,1", header=f"{HEADER},model,user,weight")
    write_trace(read_trace(path).trace, tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == f"{HEADER}\na,x,0,1.5,5\n"


def test_the_same_trace_makes_the_same_bytes_under_any_name(tmp_path: Path) -> None:
    trace = read_trace(DATA / "trace.csv").trace
    write_trace(trace, tmp_path / "one.csv.gz")
    write_trace(trace, tmp_path / "two.csv.gz")
    assert (tmp_path / "one.csv.gz").read_bytes() == (tmp_path / "two.csv.gz").read_bytes()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("t.json", "ending in .csv or .csv.gz"),
        ("gone/t.csv", "no such directory"),
        ("dir.csv", "is a directory"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "dir.csv").mkdir()
    with pytest.raises(InputError, match=words):
        write_trace(read_trace(DATA / "trace.csv").trace, tmp_path / name)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_a_write_that_breaks_off_leaves_the_old_file_and_nothing_else(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("old")

    def broken(text: IO[str]) -> None:
        text.write("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(SlurmFairError, match="cannot be written: No space left"):
        write_whole(tmp_path / name, broken)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, "old")]


CELLS = st.one_of(
    st.sampled_from(
        ["", "1", "0.5", "-1", "nan", "inf", "1e3", "Pass", "gns", "1|2", "x-3", "LM (batch size 5)"]
    ),
    st.text(max_size=8),
)
PLAIN = st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1, max_size=6)
SECONDS = st.floats(0.001, 1e9, allow_nan=False)


@st.composite
def jobs(draw: st.DrawFn) -> list[dict[str, str]]:
    """Good jobs, with any of the optional columns and one of their own."""
    ids = draw(st.lists(PLAIN, min_size=1, max_size=6, unique=True))
    values: dict[str, st.SearchStrategy[str]] = {
        "tenant": PLAIN,
        "submit_s": st.integers(0, 1000).map(str),
        "gpus": st.sampled_from(["1", "2", "0.25", "8.0", "1e1"]),
        "duration_s": SECONDS.map(repr),
        "user": PLAIN | st.just(""),
        "gpu_type": PLAIN | st.just(""),
        "model": PLAIN | st.just("") | st.just("LM (batch size 5)"),
        "status": st.sampled_from(["", "Pass", "FAILED", "TIMEOUT"]),
        "weight": st.sampled_from(["", "2", "0.5"]),
        "gpus_choices": st.sampled_from(["", "1", "4|1|2", "2|2"]),
        "app": PLAIN | st.just(""),
        "mode": st.sampled_from(["", "gns", "static"]),
        **{name: st.integers(0, 99).map(str) for name in ("batch_size", "epochs", "samples", "total_steps")},
        "sensitivity": SECONDS.map(repr) | st.just(""),
        "node_count": st.integers(0, 9).map(str),
        "declared_s": SECONDS.map(repr) | st.just(""),
        "epoch_seconds": SECONDS.map(repr) | st.just(""),
        "note": st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    }
    assert set(values) == {*REQUIRED, *OPTIONAL, "note"} - {"job_id"}
    return [{"job_id": name, **{key: draw(value) for key, value in values.items()}} for name in ids]


def as_csv(rows: list[dict[str, str]]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


@SAME_FILE
@given(jobs())
def test_any_trace_reads_back_as_it_was_written(tmp_path: Path, rows: list[dict[str, str]]) -> None:
    (tmp_path / "in.csv").write_text(as_csv(rows), newline="")
    trace = read_trace(tmp_path / "in.csv").trace
    write_trace(trace, tmp_path / "out.csv")
    again = read_trace(tmp_path / "out.csv").trace
    assert same(again, trace)
    assert sorted(trace.job_id) == sorted(row["job_id"] for row in rows)


@SAME_FILE
@given(jobs(), st.data())
def test_a_broken_file_is_refused_and_nothing_else(
    tmp_path: Path, rows: list[dict[str, str]], data: st.DataObject
) -> None:
    row = data.draw(st.sampled_from(rows))
    row[data.draw(st.sampled_from(sorted(row)))] = data.draw(CELLS).encode(errors="replace").decode()
    content = as_csv(rows).encode()
    at, length = data.draw(st.integers(0, len(content))), data.draw(st.integers(0, 3))
    content = content[:at] + data.draw(st.binary(max_size=3)) + content[at + length :]
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    for skip_bad in (False, True):
        try:
            reading = read_trace(path, skip_bad=skip_bad)
        except InputError as refused:
            assert str(refused).startswith(str(path))
            assert "\n" not in str(refused)
        else:
            assert len(reading.trace) > 0
            assert bool((reading.trace.gpus > 0).all())
            assert bool((reading.trace.duration_s > 0).all())
            assert bool((np.diff(reading.trace.submit_s) >= 0).all())


@SAME_FILE
@given(st.binary(max_size=60))
def test_no_bytes_make_the_reader_fail_otherwise_than_by_refusing_them(
    tmp_path: Path, content: bytes
) -> None:
    packed = gzip.compress(f"{HEADER}\na,x,0,1,5\n".encode(), mtime=0)
    for path in (tmp_path / "t.csv", tmp_path / "t.csv.gz"):
        for part in (content, packed[: len(content)] + content, packed + content):
            path.write_bytes(part)
            try:
                read_trace(path, skip_bad=True)
            except InputError as refused:
                assert str(refused).startswith(str(path))
