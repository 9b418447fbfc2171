"""Each converter gives the jobs of its source, and says what it left out and what is wrong."""

from __future__ import annotations

import gzip
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slurm_fair.errors import InputError
from slurm_fair.trace.convert import SOURCES, convert
from tests.support.trace_samples import DATA, OF_SOURCES, refusal

NEVER, RUNS, CPU = "that never ran", "that still ran when the log was taken", "without GPUs"


def test_every_source_has_a_sample() -> None:
    assert set(OF_SOURCES) == set(SOURCES)


@pytest.mark.parametrize(
    ("source", "left"),
    [
        ("philly", {NEVER: 1, RUNS: 1, CPU: 1}),
        ("helios", {NEVER: 1, CPU: 1}),
        ("swf", {NEVER: 1, CPU: 1, "that are partial runs of other lines": 2}),
        ("sacct", {NEVER: 1, RUNS: 1, CPU: 1, "that are steps of other rows": 1}),
        ("shockwave", {}),
        ("pollux", {}),
    ],
)
def test_what_is_no_gpu_job_is_left_out_and_counted_by_reason(source: str, left: dict[str, int]) -> None:
    assert dict(convert(source, DATA / OF_SOURCES[source]).left_out) == left


@pytest.mark.parametrize(
    ("source", "old", "new", "words"),
    [
        ("philly", '"u1", "submitted_time"', '"u1", "submitted"', ": entry 1: submitted_time: is missing; "),
        ("philly", "2017-10-07 02:12:00", "2017-13-07 02:12:00", ": entry 1: end_time: '2017-13-07 02:12:00'"),
        ("philly", "2017-10-07 02:12:00", "2017-10-06 02:12:00", ": entry 1: end_time: '2017-10-06 02:12"),
        ("philly", '"2017-10-07 00:30:00"', "5", ": entry 2: submitted_time: must be a text, not int"),
        ("philly", '"aa11"', "null", ": entry 1: tenant: is empty"),
        ("philly", '"attempts": []', '"attempts": 1', ": entry 3: attempts: must be a list"),
        ("philly", '["gpu0"]', "8", "gpus: must be a list"),
        ("philly", "0006", "0001", ": entry 6: job_id: 'application_1_0001' is there twice, first at entry 1"),
        ("philly", "Pass", "Passt", ": entry 1: status: 'Passt' is no known status"),
        ("philly", "[", "{", "not JSON"),
        ("helios", "uBBBB,vcTwo,16", "uBBBB,vcTwo,x", ":3: gpu_num: 'x' is no number"),
        ("helios", ",300,60", ",-300,60", ":3: duration: '-300' must be 0 or more"),
        ("helios", "2020-06-01 09:59:00", "yesterday", ":3: submit_time: 'yesterday' is no time"),
        ("helios", "NODE_FAIL", "BROKEN", ":3: status: 'BROKEN' is no known status"),
        ("helios", "gpu_num", "gpus", "no column gpu_num; the header needs"),
        ("swf", "1   100  5  600", "1   100  5", ":5: row: has 17 fields instead of 18"),
        ("swf", "1   100  5  600", "1   100  5  x", ":5: run time: 'x' is no number"),
        ("swf", "-1  1  3  1 -1 0 -1 -1 -1\n2", "-1  9  3  1 -1 0 -1 -1 -1\n2", ":5: status: 9 is no status"),
        ("swf", "1   100", "1   -7", ":5: submit_s: '-7' must be 0 or more"),
        ("swf", "-1  0  4 -1", "-1  0 -1 -1", ":6: group: neither group nor user"),
        ("sacct", "|3600|COMPLETED", "|soon|COMPLETED", ":2: ElapsedRaw: 'soon' is no number"),
        ("sacct", "COMPLETED", "COMPLETE", ":2: State: 'COMPLETE' is no known status; did you mean 'completed'?"),
        ("sacct", "2026-03-01T10:00:00|", "Unknown|", ":2: Submit: 'Unknown' is no time"),
        ("sacct", "gres/gpu:a100=4", "gres/gpu:a100=four", ":2: AllocTRES: 'four' is no whole number"),
        ("sacct", "101_1|", "100|", ":4: job_id: '100' is there twice, first at 2"),
        ("sacct", "|train|", "|tr|ain|", ":2: row: has 15 cells, the header 14"),
        ("sacct", "ElapsedRaw", "Time", "no column ElapsedRaw or Elapsed"),
        ("sacct", "Account", "Accounts", "no column Account"),
        ("sacct", "|120\n", "|two hours\n", ":2: TimelimitRaw: 'two hours' is no number"),
        ("shockwave", "\t720\t10", "\t720", ":2: row: has 11 fields, the first line 12"),
        ("gavel", "9000\t", "", ":1: row: has 9 tab-separated fields; Gavel writes 10"),
        ("shockwave", "\t1500\t", "\tlong\t", ":1: duration_s: 'long' is no number"),
        ("shockwave", "\tgns\t", "\tgnss\t", ":1: mode: 'gnss' is no mode; did you mean 'gns'?"),
        ("shockwave", "\t100\t1\t", "\t100\tone\t", ":1: scale_factor: 'one' is no whole number"),
        ("shockwave", "\t2.5\t", "\t0\t", ":2: priority_weight: '0' must be above 0"),
        ("shockwave", "\t2.5\t", "\t1e-13\t", ":2: priority_weight: '1e-13' is too small"),
        ("pollux", "bert,1,12", "bert,0,12", ":3: num_replicas: '0' must be above 0"),
        ("pollux", "12.5", "-12.5", ":2: time: '-12.5' must be 0 or more"),
        ("pollux", "application", "app", "no column application"),
        ("sia", "2017-10-09 07:00:00", "2017-10-09", ":2: timestamp: '2017-10-09' is no time"),
        ("sia", ",66.0,", ",nan,", ":2: duration: 'nan' is no number"),
    ],
)  # fmt: skip
def test_a_record_that_cannot_be_used_is_refused_in_the_words_of_its_source(
    tmp_path: Path, source: str, old: str, new: str, words: str
) -> None:
    text = (DATA / OF_SOURCES[source]).read_text()
    assert old in text
    path = tmp_path / OF_SOURCES[source]
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError) as refused:
        convert(source, path)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_bad_records_are_left_out_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "helios.csv"
    path.write_text((DATA / "helios.csv").read_text().replace("NODE_FAIL", "BROKEN"))
    reading = convert("helios", path, skip_bad=True)
    assert (list(reading.trace.job_id), len(reading.bad)) == (["501", "505"], 1)


def test_a_packed_source_is_read_too(tmp_path: Path) -> None:
    (tmp_path / "log.swf.gz").write_bytes(gzip.compress((DATA / "log.swf").read_bytes()))
    assert len(convert("swf", tmp_path / "log.swf.gz").trace) == 4


def test_a_log_without_gpu_jobs_says_what_it_holds(tmp_path: Path) -> None:
    lines = (DATA / "helios.csv").read_text().splitlines()
    (tmp_path / "cpu.csv").write_text(f"{lines[0]}\n{lines[3]}\n")
    with pytest.raises(InputError, match=r"no job in it \(but 1 without GPUs\)"):
        convert("helios", tmp_path / "cpu.csv")


def test_a_source_that_is_not_known_names_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean 'philly'"):
        convert("phily", DATA / "philly.json")


@pytest.mark.parametrize("source", sorted(SOURCES))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_broken_file_is_refused_and_nothing_else(tmp_path: Path, source: str, data: st.DataObject) -> None:
    content = (DATA / OF_SOURCES[source]).read_bytes()
    at, length = data.draw(st.integers(0, len(content))), data.draw(st.integers(0, 6))
    pieces = [
        b"null",
        b"1e999",
        b"-1",
        b"[",
        b'"',
        b"\x00",
        b"\n",
        b"\t",
        b"|",
        b"nan",
        b"99999999999999",
        b"{}",
    ]
    piece = data.draw(st.one_of(st.binary(max_size=4), st.sampled_from(pieces)))
    path = tmp_path / OF_SOURCES[source]
    path.write_bytes(content[:at] + piece + content[at + length :])
    for skip_bad in (False, True):
        said = refusal(partial(convert, source, path, skip_bad=skip_bad))
        assert said == "" or said.startswith(str(path))
        assert "\n" not in said
        if not said:
            trace = convert(source, path, skip_bad=skip_bad).trace
            assert trace.submit_s[0] == 0
            assert bool((trace.gpus > 0).all())
