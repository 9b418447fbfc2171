"""A command line of sbatch is taken apart as sbatch takes it, and goes on unchanged."""

from __future__ import annotations

import pytest

from slurm_fair.errors import TemplateError
from slurm_fair_templates.sbatch_options import (
    HETEROGENEOUS,
    SHORT_WITH_VALUE,
    SHORT_WITHOUT_VALUE,
    WITH_VALUE,
    WITHOUT_VALUE,
    Given,
    directive_lines,
    directives,
    effective,
    has,
    split,
)


def _options(*words: str) -> list[tuple[str, str | None]]:
    return [(option.name, option.value) for option in split(words).options]


@pytest.mark.parametrize(
    ("words", "options", "script", "arguments"),
    [
        ([], [], None, ()),
        (["s.sh"], [], "s.sh", ()),
        (["s.sh", "-N2", "--hold"], [], "s.sh", ("-N2", "--hold")),
        (["-N2", "s.sh"], [("nodes", "2")], "s.sh", ()),
        (["-N", "2", "s.sh"], [("nodes", "2")], "s.sh", ()),
        (["-N", "-2", "s.sh"], [("nodes", "-2")], "s.sh", ()),
        (["-HN2", "s.sh"], [("hold", None), ("nodes", "2")], "s.sh", ()),
        (["-HN", "2", "s.sh"], [("hold", None), ("nodes", "2")], "s.sh", ()),
        (["-N"], [("nodes", None)], None, ()),
        (["-koff", "s.sh"], [("no-kill", None)], "s.sh", ()),
        (["-k", "off"], [("no-kill", None)], "off", ()),
        (["-Z", "s.sh"], [("Z", None)], "s.sh", ()),
        (["--nodes=2", "s.sh"], [("nodes", "2")], "s.sh", ()),
        (["--nodes", "2", "s.sh"], [("nodes", "2")], "s.sh", ()),
        (["--nodes"], [("nodes", None)], None, ()),
        (["--comment=a=b", "--comment=", "s"], [("comment", "a=b"), ("comment", "")], "s", ()),
        (["--hold", "s.sh"], [("hold", None)], "s.sh", ()),
        (["--nice", "5"], [("nice", None)], "5", ()),
        (["--nice=5", "s"], [("nice", "5")], "s", ()),
        (["--export", "--hold", "s"], [("export", "--hold")], "s", ()),
        (["--", "-s.sh", "x"], [], "-s.sh", ("x",)),
        (["--hold", "--"], [("hold", None)], None, ()),
        (["-", "x"], [], "-", ("x",)),
        (["", "x"], [], "", ("x",)),
        (["--job-name", "a\nb", "s"], [("job-name", "a\nb")], "s", ()),
    ],
)
def test_options_stand_before_the_script_and_arguments_behind_it(
    words: list[str], options: list[tuple[str, str | None]], script: str | None, arguments: tuple[str, ...]
) -> None:
    found = split(words)
    assert [(option.name, option.value) for option in found.options] == options
    assert (found.script, found.arguments) == (script, arguments)
    passed_on = [word for option in found.options for word in option.words]
    assert [word for word in words if word != "--"][: len(passed_on)] == passed_on


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("--part=x", "partition"),
        ("--part x", "partition"),
        ("--mem-per-c 1", "mem-per-cpu"),
        ("--gpus=2", "gpus"),
        ("--gpus-per=2", "gpus-per"),
        ("--time=1", "time"),
        ("--tim=1", "tim"),
        ("--nod=1", "nod"),
        ("--ntasks=1", "ntasks"),
        ("--hol", "hold"),
        ("--=1", ""),
        ("--Hold", "Hold"),
    ],
)
def test_a_name_may_be_shortened_where_only_one_begins_so(written: str, name: str) -> None:
    ((found, value),) = _options(*written.split())
    assert (found, value) == (name, written.replace("=", " ").partition(" ")[2] or None)


def test_options_of_our_own_have_a_value_where_they_say_so() -> None:
    own = {"app": True, "no-lease": False, "hold": True}
    found = split(["--app", "x", "--no-lease", "--hold", "y", "s.sh"], own)
    assert [(option.name, option.value) for option in found.options] == [
        ("app", "x"),
        ("no-lease", None),
        ("hold", "y"),
    ]
    assert found.script == "s.sh"
    assert split(["--app", "x"]).script == "x"


@pytest.mark.parametrize("words", [["-N1", ":", "-N2", "s.sh"], [":"], ["--", ":"]])
def test_a_job_of_several_parts_is_refused(words: list[str]) -> None:
    with pytest.raises(TemplateError, match=HETEROGENEOUS):
        split(words)
    assert split(["s.sh", ":"]).arguments == (":",)


def test_names_of_options_are_told_once() -> None:
    assert not WITH_VALUE & WITHOUT_VALUE
    assert not SHORT_WITH_VALUE.keys() & SHORT_WITHOUT_VALUE.keys()
    assert set(SHORT_WITH_VALUE.values()) <= WITH_VALUE
    assert set(SHORT_WITHOUT_VALUE.values()) <= WITHOUT_VALUE


SCRIPT = """#!/bin/bash
#SBATCH --job-name="my job" --hold   # a comment
# a word of its author

#PBS -N other
#SBATCH -t 10
#SBATCHER
 #SBATCH -N2
true
#SBATCH --partition=late
"""


def test_lines_for_sbatch_end_at_the_first_command() -> None:
    assert directive_lines(SCRIPT) == [
        '#SBATCH --job-name="my job" --hold   # a comment',
        "#PBS -N other",
        "#SBATCH -t 10",
        "#SBATCHER",
    ]
    assert directive_lines("") == directive_lines("true\n#SBATCH -N2") == []
    assert directive_lines("#SBATCH -N2\n \t\n#SBATCH -n3") == ["#SBATCH -N2", "#SBATCH -n3"]


def test_options_of_a_script_are_those_of_its_lines() -> None:
    assert [(option.name, option.value) for option in directives(SCRIPT)] == [
        ("job-name", "my job"),
        ("hold", None),
        ("time", "10"),
    ]
    assert directives("#SBATCH\n#SBATCH # nothing\n") == ()


@pytest.mark.parametrize("line", ["#SBATCH --comment='a", '#SBATCH "', "#SBATCH --comment=a\\"])
def test_a_quotation_that_is_not_closed_is_refused_with_its_line(line: str) -> None:
    with pytest.raises(TemplateError, match="close the quotation") as problem:
        directives(f"#!/bin/sh\n{line}\ntrue\n")
    assert repr(line) in str(problem.value)


@pytest.mark.parametrize("word", ["hetjob", "packjob"])
def test_a_script_of_several_jobs_is_refused(word: str) -> None:
    with pytest.raises(TemplateError, match=HETEROGENEOUS):
        directives(f"#!/bin/sh\n#SBATCH {word}\n")


def _given(name: str, value: str | None) -> Given:
    return Given((), name, value)


def test_the_last_value_of_the_first_source_counts() -> None:
    line = [_given("time", "1"), _given("hold", None), _given("time", "2")]
    script = [_given("time", "3"), _given("nodes", "4"), _given("comment", "")]
    assert effective("time", line, script) == "2"
    assert effective("time", script, line) == "3"
    assert effective("nodes", line, script) == "4"
    assert effective("comment", line, script) == ""
    assert effective("hold", line, script) is None
    assert effective("gpus", line, script) is effective("time") is None


def test_an_option_without_a_value_is_given_all_the_same() -> None:
    assert has("hold", [], [_given("hold", None)])
    assert not has("hold", [_given("nodes", "hold")], [])
    assert not has("hold")
