"""Regimes of jobs that a simulation reads beside a trace."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from slurm_fair.errors import InputError
from slurm_fair.trace import Mode, read_regimes
from slurm_fair.trace.regimes import REGIMES
from tests.support.trace_samples import DATA, changed


def test_regimes_are_read_by_job_from_plain_and_packed_lines(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl.gz").write_bytes(gzip.compress((DATA / "regimes.jsonl").read_bytes()))
    regimes = read_regimes(tmp_path / "r.jsonl.gz")
    assert regimes == read_regimes(DATA / "regimes.jsonl")
    first = regimes["0"]
    assert list(regimes) == ["0", "b-1"]
    assert (first.mode, first.epochs, first.seconds, first.gpus) == (Mode.GNS, 5, 85.0, 1.0)
    assert [regime.batch_size for regime in first.regimes] == [10, 20]


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("job_id", 1.5, "job_id: must be a text or a whole number"),
        ("job_id", "", "job_id: is empty"),
        ("job_id", 10**20, "job_id: must be"),
        ("job_id", True, "job_id: must be"),
        ("model", None, "model: must be a text"),
        ("mode", "fast", "mode: must be one of static, accordion, gns"),
        ("gpus", 0, "gpus: '0' must be a number above 0"),
        ("gpus", "2", "gpus: "),
        ("samples_per_epoch", 1.5, "samples_per_epoch: '1.5' must be a whole number"),
        (REGIMES, [], "must be a list of"),
        (REGIMES, [[1, 2]], "is not [epochs, batch size, seconds per epoch]"),
        (REGIMES, [[1, 2, 0]], "must be a number above 0"),
        (REGIMES, [[1, 2, float("nan")]], "must be a number above 0"),
        (REGIMES, [[1, 2.5, 3]], "must be a whole number"),
        (REGIMES, [{"a": 1}], "a dict is not"),
        ("modle", "x", "'modle': unknown key: did you mean 'mode'"),
    ],
)
def test_a_bad_line_of_regimes_is_refused(tmp_path: Path, key: str, value: Any, words: str) -> None:
    good = json.loads((DATA / "regimes.jsonl").read_text().splitlines()[0])
    (tmp_path / "r.jsonl").write_text(
        json.dumps(good | {"job_id": 7}) + "\n" + json.dumps(good | {key: value})
    )
    with pytest.raises(InputError) as refused:
        read_regimes(tmp_path / "r.jsonl")
    assert f"{tmp_path / 'r.jsonl'}:2: " in str(refused.value)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no line in it"),
        ("[1]\n", ":1: line: is no JSON object"),
        ("{\n", ":1: line: is no JSON object"),
        ("[" * 100_000, ":1: line: is no JSON object"),
        ('{"job_id": 1}\n', ":1: model: is missing"),
    ],
)
def test_lines_that_are_no_regimes_are_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "r.jsonl").write_text(text)
    with pytest.raises(InputError) as refused:
        read_regimes(tmp_path / "r.jsonl")
    assert words in str(refused.value)


def test_a_job_whose_regimes_are_told_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r":3: job_id: '0' is there twice"):
        read_regimes(changed(tmp_path, "regimes.jsonl", '"b-1"', '"0"'))
