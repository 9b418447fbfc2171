"""A line of events that no report could make use of is refused in one line, with its number and a cure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from slurm_fair.model import Event
from slurm_fair_accounting import REPORTS, read_events
from tests.support.command_line import call

JOB = {"time": 900.0, "job": "7", "tenant": "a", "gpus": 2}
STARTED = JOB | {"kind": "started", "nodes": ["n1"]}
GRANTED = JOB | {"kind": "granted", "nodes": ["n1"], "number": 1}
FINISHED = JOB | {"kind": "finished", "had": 9.0, "owed": 9.0, "waited": 3.0, "ran": 6.0, "submit": 100.0}
ACCOUNT = {
    "time": 900.0, "kind": "account", "tenant": "a", "weight": 1.0, "had": 1.0, "owed_quota": 1.0,
    "owed_demand": 1.0, "gpus": 0.0, "demand": 0.0,
}  # fmt: skip
CAPACITY = {"time": 900.0, "kind": "capacity", "gpus": 16}
ODD = {
    "a time after all calendars": (
        CAPACITY | {"time": 1e12},
        "`time` is 1000000000000.0: give seconds since",
    ),
    "a time that no float can hold": (CAPACITY | {"time": 10**400}, "`time` is 1000"),
    "a time before 1970": (CAPACITY | {"time": -1}, "`time` is -1: give seconds since 1970"),
    "a time that is none": (CAPACITY | {"time": "noon"}, '`time` is "noon": give a number'),
    "a time that is infinite": (CAPACITY | {"time": float("inf")}, "`time` is Infinity: give a number"),
    "no time": ({"kind": "capacity"}, "it does not say its `time`"),
    "no kind": ({"time": 900.0}, "it does not say its `kind`"),
    "a kind that is a list": (JOB | {"kind": ["granted"]}, '`kind` is ["granted"]: give a text'),
    "no tenant": (STARTED | {"tenant": None}, "it does not say its `tenant`"),
    "a tenant that is a number": (STARTED | {"tenant": 5}, "`tenant` is 5: give a text"),
    "a user that is a list": (STARTED | {"user": ["ann"]}, '`user` is ["ann"]: give a text'),
    "a job that is none": (STARTED | {"job": "x"}, "'x' is no job id"),
    "a job that is a list": (STARTED | {"job": [7]}, "`job` is [7]: give a job id"),
    "half a GPU": (STARTED | {"gpus": 0.5}, "`gpus` is 0.5: give a whole number"),
    "GPUs below none": (STARTED | {"gpus": -1}, "`gpus` is -1: give a number of GPUs"),
    "more GPUs than there are": (STARTED | {"gpus": 1e17}, "`gpus` is 1e+17: give a number of GPUs"),
    "a start's nodes that are a number": (STARTED | {"nodes": 5}, "`nodes` is 5: give a list of names"),
    "a grant's nodes that are a number": (GRANTED | {"nodes": 5}, "`nodes` is 5: give a list of names"),
    "nodes in one text": (GRANTED | {"nodes": "n1"}, '`nodes` is "n1": give a list of names'),
    "nodes without names": (GRANTED | {"nodes": [1]}, "`nodes` is [1]: give a list of names"),
    "a lease's number that is a word": (GRANTED | {"number": "one"}, '`number` is "one": give a number'),
    "restarts that are a list": (STARTED | {"restarts": []}, "`restarts` is []: give a number"),
    "a submission that is a word": (FINISHED | {"submit": "then"}, '`submit` is "then": give a number'),
    "an end after all calendars": (FINISHED | {"end": 1e300}, "`end` is 1e+300: give a number"),
    "a wait beyond all sums": (
        FINISHED | {"waited": 1e308},
        "`waited` is 1e+308: give a number, at most 1e+18",
    ),
    "a rho beyond all weights": (FINISHED | {"rho": 1e300}, "`rho` is 1e+300: give a number, at most 1e+75"),
    "an end without its account": (JOB | {"kind": "finished"}, "it does not say its `had`"),
    "an account with a hole": (ACCOUNT | {"owed_quota": None}, "it does not say its `owed_quota`"),
    "an account in words": (ACCOUNT | {"had": "much"}, '`had` is "much": give a number'),
    "an account that had less than nothing": (
        ACCOUNT | {"had": -1.0},
        "`had` is -1.0: give a number of 0 or more",
    ),
    "an account without weight": (ACCOUNT | {"weight": 0.0}, "`weight` is 0.0: give a number above 0"),
    "a job that was owed less than nothing": (FINISHED | {"owed": -5}, "`owed` is -5: give a number of 0"),
    "a list": ([1, 2], "is no event but another JSON value"),
    "a number": (5, "is no event but another JSON value"),
    "nothing": (None, "is no event but another JSON value"),
}
PYTHON = ("Error(", "Traceback", "indices", "object", "'float'", "None")


@pytest.mark.parametrize(("line", "words"), ODD.values(), ids=ODD)
def test_an_odd_line_is_refused_with_its_number(line: Any, words: str, tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(json.dumps(STARTED) + "\n\n" + json.dumps(line) + "\n")
    for name in REPORTS:
        said = call("report", name, "--from", str(path))
        assert (said.code, said.out, said.err.count("\n")) == (2, "", 1)
        assert f"{path}:3: " in said.err
        assert words in said.err
        assert not [word for word in PYTHON if word in said.err]


@pytest.mark.parametrize("text", ["[" * 200_000, '{"time": ' + "9" * 5000 + "}"], ids=["depth", "digits"])
def test_what_is_too_deep_or_too_long_to_be_read_is_no_event(text: str, tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(text + "\n")
    said = call("report", "jobs", "--from", str(path))
    assert (said.code, said.out, said.err.count("\n")) == (2, "", 1)
    assert f"{path}:1: is no " in said.err
    assert not [word for word in PYTHON if word in said.err]


def test_null_is_what_was_not_said_save_where_it_says_that_there_is_none(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    silent = {"submit": None, "end": None, "restarts": None, "user": None, "declared_seconds": None}
    lines = [GRANTED | {"until": None, "number": None}, FINISHED | silent | {"rho": None, "more": None}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    granted, finished = read_events(path).events()
    assert isinstance(granted, Event)
    assert granted.detail == {"nodes": ["n1"], "until": None}
    account = {name: FINISHED[name] for name in ("had", "owed", "waited", "ran")}
    assert finished.detail == account | {"rho": None, "more": None}
    for name in REPORTS:
        assert call("report", name, "--from", str(path)).code == 0
