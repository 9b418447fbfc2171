"""A file that is written reads back, and no file makes the reader fail otherwise than by refusing it."""

from __future__ import annotations

import csv
import gzip
import io
from functools import partial
from pathlib import Path
from typing import IO

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slurm_fair.errors import InputError, SlurmFairError
from slurm_fair.trace import Trace, read_trace, write_trace
from slurm_fair.trace.files import write_with
from slurm_fair.trace.table import OPTIONAL, REQUIRED
from tests.support.trace_samples import DATA, refusal

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
        write_with(tmp_path / name, broken)
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
        "gpus_choices": st.sampled_from(["", "1", "4|1|2", "2|2", "2-8:2", "1-3"]),
        "app": PLAIN | st.just(""),
        "mode": st.sampled_from(["", "gns", "static"]),
        **{name: st.integers(0, 99).map(str) for name in ("batch_size", "epochs", "samples", "total_steps")},
        "sensitivity": st.floats(1.0, 100.0).map(repr) | st.just(""),
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


@pytest.mark.parametrize("text", ["one\rtwo", "one\ntwo", "one\r\ntwo", 'say "x", y', "nul\x00", "é😀", "'"])
def test_text_of_a_further_column_survives_whatever_it_is_made_of(tmp_path: Path, text: str) -> None:
    row = {"job_id": "a", "tenant": "x", "submit_s": "0", "gpus": "1", "duration_s": "5", "note": text}
    (tmp_path / "in.csv").write_text(as_csv([row]), newline="")
    trace = read_trace(tmp_path / "in.csv").trace
    assert trace.further["note"].tolist() == [text.replace("\r\n", "\n").replace("\r", "\n")]
    write_trace(trace, tmp_path / "out.csv")
    assert same(read_trace(tmp_path / "out.csv").trace, trace)


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
        said = refusal(partial(read_trace, path, skip_bad=skip_bad))
        assert said == "" or said.startswith(str(path))
        assert "\n" not in said
        if not said:
            trace = read_trace(path, skip_bad=skip_bad).trace
            assert len(trace) > 0
            assert bool((trace.gpus > 0).all())
            assert bool((trace.duration_s > 0).all())
            assert bool((np.diff(trace.submit_s) >= 0).all())


@SAME_FILE
@given(st.binary(max_size=60))
def test_no_bytes_make_the_reader_fail_otherwise_than_by_refusing_them(
    tmp_path: Path, content: bytes
) -> None:
    packed = gzip.compress(f"{HEADER}\na,x,0,1,5\n".encode(), mtime=0)
    for path in (tmp_path / "t.csv", tmp_path / "t.csv.gz"):
        for part in (content, packed[: len(content)] + content, packed + content):
            path.write_bytes(part)
            said = refusal(partial(read_trace, path, skip_bad=True))
            assert said == "" or said.startswith(str(path))
