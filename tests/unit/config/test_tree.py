"""The configuration: what is wrong with it is one line that says where and how to mend it."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slurm_fair.config.sections import Config
from slurm_fair.config.tree import from_tree, load_config
from slurm_fair.config.words import commented_file, keys
from slurm_fair.errors import ConfigError
from tests.support.command_line import call

KNOWN = [(section, key, default) for section, key, default in keys() if key != "settings"]
WRONG = {
    str: [1, 1.5, True, ["x"], {"a": 1}],
    float: ["900", True, [1.0], {"a": 1}, 10**400, float("nan"), float("inf"), -1.0],
    int: ["3", True, 1.5, [1], -1, 0],
    bool: [1, "true", []],
    tuple: ["gpu", [1], [""], {"a": 1}, 3],
    dict: ["x", 1, {"a": "b"}, {"a": 0}, {"a": -1.0}, {"a": True}],
}


RIGHT = [("gpu_weights", {"a": 0})]  # GPUs of a type may count nothing
EITHER = ("interval", "reserve_after", "renewal")  # a number, or a word


def toml(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, float):
        return {"nan": "nan", "inf": "inf"}.get(repr(value), repr(value))
    return json.dumps(value)


@st.composite
def mutations(draw: st.DrawFn) -> str:
    """A file with exactly one thing wrong."""
    section, key, default = draw(st.sampled_from(KNOWN))
    how = draw(st.sampled_from(["type", "key", "section", "syntax"]))
    if how == "type":
        kind = float if key in EITHER else type(default)
        wrong = [value for value in WRONG[kind] if (key, value) not in RIGHT]
        value = draw(st.sampled_from(wrong))
        return f"[{section}]\n{key} = {toml(value)}\n"
    letter = draw(st.sampled_from("abcxyz_"))
    if how == "key":
        at = draw(st.integers(0, len(key)))
        name = f"{key[:at]}{letter}{key[at:]}{letter}x"
        return f"[{section}]\n{name} = {toml(default)}\n"
    if how == "section":
        return f"[{section}{letter}{letter}q]\n{key} = {toml(default)}\n"
    broken = draw(
        st.sampled_from(["{}", "{} =", "{} = [1", '{} = "x', "{} = 1 2", "= 1", "[{}", "{} = \x00"])
    )
    return f"[{section}]\n{broken.format(key)}\n"


FILES = settings(max_examples=300, deadline=1000, suppress_health_check=[HealthCheck.function_scoped_fixture])


@FILES
@given(text=mutations())
def test_a_file_with_one_thing_wrong_ends_the_command_with_one_line_and_exit_code_2(
    tmp_path: Path, text: str
) -> None:
    path = tmp_path / "slurm-fair.toml"
    path.write_text(text)
    said = call("--config", str(path), "status")
    assert said.code == 2, text
    assert str(path) in said.complaint
    assert said.out == ""


def accepted_or_refused(path: Path) -> bool:
    """Nothing but a configuration or a ConfigError that names the file comes out."""
    try:
        return isinstance(load_config(path), Config)
    except ConfigError as problem:
        return str(path) in str(problem)


@FILES
@given(text=st.text(alphabet=st.characters(codec="utf-8"), max_size=60), at=st.integers(0, 2000))
def test_noise_anywhere_in_a_file_is_either_harmless_or_a_config_error(
    tmp_path: Path, text: str, at: int
) -> None:
    whole = commented_file({f"{section}.{key}": default for section, key, default in KNOWN})
    path = tmp_path / "slurm-fair.toml"
    path.write_text(whole[:at] + text + whole[at:])
    assert accepted_or_refused(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[lease]\nterms = 1", ["lease.terms", "did you mean 'term'?"]),
        ("[lease]\ngrase = 1", ["did you mean 'grace'?"]),
        ("[slrum]\n", ["[slrum]", "did you mean 'slurm'?"]),
        ("[storage]\nzzz = 1", ["storage.zzz", "known are dir, keep_days, max_mb"]),
        ("scope = 3", ["scope must be a section", "[scope]"]),
        ("[lease]\nterm = '15 min'", ["lease.term must be a number", "15 min"]),
        ("[lease]\nalign = 'round'", ["lease.align must be one of rolling, aligned", "round"]),
        (
            "[lease]\nrenewal = 901",
            ["lease.renewal must be 0.001 s at least and at most lease.term", "not 901"],
        ),
        ("[lease]\nrenewal = 0", ["lease.renewal must be 0.001 s at least"]),
        ("[lease]\nrenewal = nan", ["lease.renewal must be 0.001 s at least"]),
        ("[lease]\nrenewal = 'never'", ['lease.renewal must be seconds, or "auto" or "term", not']),
        ("[lease]\nalign = 'aligned'\nrenewal = -5", ["lease.renewal must be 0.001 s at least"]),
        (
            "[lease]\ninterval_min = 11",
            ["lease.interval_min (11 s) must not exceed 10 s, in which there is a look"],
        ),
        ("[tenants]\nhalf_life = 1e-320", ["tenants.half_life must be 0, or 0.001 s at least"]),
        ('[tenants]\nweights = { "" = 3 }', ["tenants.weights must name accounts"]),
        (
            "[tenants]\ngpu_weights = { a100 = 1e-12 }",
            ["a100 must count 0, or from 0.001 to 1e+06, not 1e-12"],
        ),
        ("[lease]\nterm = 5\ninterval = 10", ["lease.interval (10 s) must not exceed lease.term (5 s)"]),
        ("[scope]\npartitions = 'gpu'", ["scope.partitions must be a list of names"]),
        ("[tenants]\nweights = { vision = 0 }", ["tenants.weights.vision must be a weight above 0"]),
        (
            "[tenants]\nweights = { vision = 1e-300 }",
            ["tenants.weights.vision", "from 1e-12 to 1e+12", "1e-300"],
        ),
        (f"[tenants]\nweights = {{ vision = {'9' * 300} }}", ["from 1e-12 to 1e+12, not 999"]),
        ("[tenants]\ngpu_weights = 'nvidia'", ["tenants.gpu_weights", '"slurm"', "not 'nvidia'"]),
        (
            "[tenants]\ngpu_weights = 2",
            ["tenants.gpu_weights must be a table such as { a100 = 1, v100 = 0.5 }"],
        ),
        (
            "[tenants]\ngpu_weights = { a100 = -1 }",
            ["tenants.gpu_weights: a100 must count 0, or from 0.001", "-1"],
        ),
        (
            "[tenants]\ngpu_weights = { a100 = nan }",
            ["tenants.gpu_weights: a100 must count 0, or from", "nan"],
        ),
        ("[tenants]\ngpu_weights = { 'a 100' = 1 }", ["tenants.gpu_weights: 'a 100' is no GPU type"]),
        ("[throughput]\nlinks = 2", ["throughput.links must be a table such as { a100 = { link = 6e10"]),
        ("[throughput]\nlinks = { a100 = 2 }", ["throughput.links: a100 must be a table"]),
        ("[throughput.links]\na100 = { lnik = 2 }", ["a100.lnik is no rate: did you mean 'link'?"]),
        ("[throughput.links]\na100 = { net = 0 }", ["a100.net must be a rate from 1e-06", "not 0"]),
        ("[throughput.links]\na100 = { net = nan }", ["a100.net must be a rate", "nan"]),
        ("[throughput.links]\na100 = { net = true }", ["a100.net must be a rate", "True"]),
        ("[throughput.links]\na100 = { net = inf }", ["a100.net must be a number"]),
        ("[throughput.links]\na100 = { speed = inf }", ["a100.speed must be a rate"]),
        ("[throughput.links]\na100 = { link = 2 }", ["a100 needs net too"]),
        ("[guard]\nshrink_alarm = 2", ["guard.shrink_alarm", "fraction"]),
        ("[policy]\nwindow = 3", ["policy.window", "[policy.<name>]"]),
        ("[storage]\ndir = 'here'", ["storage.dir must be an absolute path"]),
        ("[storage]\ndir = ''", ["storage.dir must be an absolute path"]),
        ('[storage]\ndir = "/a\\u0000b"', ["storage.dir holds a character that no path may"]),
        ("[policy.nosuch]\nx = 1", ["[policy.nosuch]", "known are", "astraea"]),
        ("[policy.astrea]\nnew_jobs_first = true", ["[policy.astrea]", "did you mean 'astraea'?"]),
        ("[lease]\ngrace = 700", ["lease.grace (700 s)", "lease.max_grace (600 s)"]),
        ("[lease]\nmax_grace = 30", ["lease.grace (60 s)", "lease.max_grace (30 s)"]),
        ("[profiler]\nenabled = true\n[throughput]\nlearn = false", ["profiler.enabled", "throughput.learn"]),
        ('[profiler]\nenabled = true\n[slurm]\nreports = "none"', ["profiler.enabled", "slurm.reports"]),
        (
            "[profiler]\nenabled = true\ngpu_hours = 0.5\nseconds = 1801",
            ["profiler.gpu_hours (0.5)", "lower profiler.seconds"],
        ),
        (
            "[profiler]\nenabled = true\ngpu_hours = 0.2\n[lease]\nmin_runtime = 800",
            ["profiler.gpu_hours (0.2)", "lease.min_runtime"],
        ),
        ("[profiler]\ntries = 0", ["profiler.tries must be above 0"]),
        ("[slurm]\nclient_timeout = 999999999", ["slurm.client_timeout", "slurm.timeout (20 s)"]),
        ("[slurm]\ntimeout = 1e6", ["slurm.timeout must be at most 600 s"]),
        ("[slurm]\nrequeue_delay = -1", ["slurm.requeue_delay must be 0 or more"]),
        ("[lease]\nmin_runtime = nan", ["lease.min_runtime must be 0 or more"]),
        (f"[lease]\nterm = {'9' * 400}", ["lease.term must be a number"]),
        (f"[lease]\nterm = {'9' * 9000}", ["not TOML"]),
        (f"a = {'[' * 5000}", ["nested too deeply"]),
    ],
)
def test_the_message_names_the_key_and_the_cure(tmp_path: Path, text: str, words: list[str]) -> None:
    path = tmp_path / "c.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    for word in words:
        assert word in message


def test_a_file_that_is_not_there_or_not_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no-such: No such file.*slurm-fair init"):
        load_config(tmp_path / "no-such")
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="binary: not TOML"):
        load_config(binary)


def test_whole_numbers_serve_as_numbers_and_names_as_tuples() -> None:
    tree = {
        "lease": {"term": 60, "interval": 5},
        "scope": {"partitions": ["gpu"]},
        "tenants": {"weights": {"a": 2}},
    }
    config = from_tree(tree, "here")
    assert (config.lease.term, config.scope.partitions, config.tenants.weights) == (
        60.0,
        ("gpu",),
        {"a": 2.0},
    )
    assert isinstance(config.lease.term, float)


@pytest.mark.parametrize(("renewal", "seconds"), [("auto", 75.0), ("term", 300.0), (42, 42.0)])
def test_a_renewal_is_a_part_of_the_term_or_seconds(renewal: str | int, seconds: float) -> None:
    assert from_tree({"lease": {"term": 300, "renewal": renewal}}, "here").lease.terms().renewal == seconds


def test_the_settings_of_other_policies_are_kept_but_not_chosen() -> None:
    tree = {"policy": {"name": "astraea", "astraea": {"new_jobs_first": False}, "fifo": {"x": 1}}}
    policy = from_tree(tree, "here").policy
    assert policy.chosen() == {"new_jobs_first": False}
    assert policy.settings["fifo"] == {"x": 1}


def test_a_configuration_survives_the_way_through_plain_data() -> None:
    tree = {name: value for name, value in asdict(Config()).items() if isinstance(value, dict)}
    tree["policy"].pop("settings")
    tree["scope"] = {
        name: list(value) if isinstance(value, tuple) else value for name, value in tree["scope"].items()
    }
    assert from_tree(tree, "built-in defaults") == Config()


def test_links_are_rates_by_gpu_type() -> None:
    given = {"a100": {"link": 60, "net": 5, "bus": math.inf}, "v100": {"speed": 0.5}}
    section = from_tree({"throughput": {"links": given}}, "test").throughput
    assert section.links == given
    assert from_tree({}, "test").throughput.links == {}


def test_gpu_weights_are_a_table_or_slurms_own() -> None:
    tenants = from_tree({"tenants": {"gpu_weights": {"a100": 1, "v100": 0.5}}}, "test").tenants
    assert tenants.gpu_weights == {"a100": 1.0, "v100": 0.5}
    assert from_tree({"tenants": {"gpu_weights": "slurm"}}, "test").cluster.gpu_weights == "slurm"
    assert from_tree({}, "test").cluster.gpu_weights == {}


@pytest.mark.parametrize(
    ("policy", "may_spread"),
    [
        ({"name": "hops"}, True),
        ({"name": "sia"}, False),
        ({"name": "astraea"}, False),
        ({"name": "astraea", "astraea": {"placement": "relaxed"}}, True),
        ({"name": "astraea", "hived": {}, "srtf": {"placement": "relaxed"}}, False),
    ],
)
def test_slurm_is_asked_how_many_nodes_a_job_may_have_where_the_policy_spreads_gangs(
    policy: dict[str, Any], may_spread: bool
) -> None:
    assert from_tree({"policy": policy}, "x").cluster.gangs_may_spread is may_spread


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[lease]\nterm = 5\nterm = 6\n", "term is set twice, again in line 3: keep one of them"),
        ("term = 5\n", "term stands in no section: write it below [lease]"),
        ("tern = 5\n", "tern stands in no section: there is no such key in any section"),
        ("[leese]\nterm = 5\n", "unknown section [leese]; did you mean 'lease'?"),
        ("[lease]\nterm = true\n", "lease.term must be a number, not true"),
    ],
)
def test_the_key_that_is_wrong_is_named_in_words_of_the_file(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "c.toml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path / "c.toml")
    assert words in str(caught.value)
