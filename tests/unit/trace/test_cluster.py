"""What a simulation reads beside a trace: throughputs, regimes, weights, the cluster."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slurm_fair.errors import ConfigError, InputError
from slurm_fair.trace import Mode, read_machines, read_regimes, read_throughputs, read_weights, uniform
from slurm_fair.trace.regimes import REGIMES

DATA = Path(__file__).parents[2] / "data" / "traces"
SAME_FILE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def refusal(run: Callable[[], object]) -> str:
    """The one line of a refusal; nothing where there was none. Whatever else is raised fails the test."""
    try:
        run()
    except InputError as refused:
        return str(refused)
    return ""


def changed(folder: Path, name: str, old: str, new: str) -> Path:
    """A sample with one thing wrong."""
    text = (DATA / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new, 1))
    return folder / name


# Throughputs


def test_rates_are_those_of_the_first_source_on_its_reference_type() -> None:
    rates = read_throughputs(DATA / "throughputs.csv")
    assert (rates.source, rates.sources, rates.reference_type) == ("lab", ("lab", "other"), "v100")
    assert rates.steps_per_second("ResNet-18", 32, 2) == 30
    assert rates.steps_per_second("ResNet-18", 32, 2, "k80") == 10
    assert rates.steps_per_second("ResNet-18", 32, 2, placement="unconsolidated") == 20
    assert rates.steps_per_second("A3C", 0, 1) == 2.5
    assert rates.steps_per_second("LM", 5, 1) == 0
    assert rates.steps_per_second("ResNet-18", 32, 4) is None
    assert (rates.gpu_types, rates.models) == (("k80", "v100"), ("A3C", "LM", "ResNet-18"))


def test_another_source_and_another_reference_type_can_be_named() -> None:
    other = read_throughputs(DATA / "throughputs.csv", "other")
    assert (other.reference_type, other.steps_per_second("ResNet-18", 32, 2)) == ("t4", 5)
    assert read_throughputs(DATA / "throughputs.csv", reference_type="k80").reference_type == "k80"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (",30\n", ",-30\n", ":3: steps_per_s: '-30' must be 0 or more"),
        (",30\n", ",\n", ":3: steps_per_s: is empty"),
        (",2,30\n", ",0,30\n", ":3: gpus: '0' must be above 0"),
        ("unconsolidated", "spread", ":4: placement: 'spread' must be consolidated or unconsolidated"),
        ("lab,k80", ",k80", ":2: source: is empty"),
        ("lab,v100", "lab,k80", ":3: row: the same configuration is there twice"),
        (",30\n", ",30,1\n", ":3: row: has 8 cells"),
        ("gpu_type", "type", "no column gpu_type"),
    ],
)
def test_a_bad_row_of_throughputs_is_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    with pytest.raises(InputError) as refused:
        read_throughputs(changed(tmp_path, "throughputs.csv", old, new))
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("source", "kind", "words"), [("labb", "", "did you mean 'lab'?"), ("", "v10", "did you mean 'v100'?")]
)
def test_a_source_or_type_that_is_not_there_names_the_nearest(source: str, kind: str, words: str) -> None:
    with pytest.raises(InputError) as refused:
        read_throughputs(DATA / "throughputs.csv", source, kind)
    assert words in str(refused.value)


def test_throughputs_without_a_row_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("source,gpu_type,placement,model,batch_size,gpus,steps_per_s\n")
    with pytest.raises(InputError, match="nothing was measured"):
        read_throughputs(tmp_path / "t.csv")


# Regimes


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


# Weights


def test_weights_are_by_name() -> None:
    assert read_weights(DATA / "weights.csv") == {"phys": 3.0, "chem": 0.5}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("chem,0.5", "chem,0", ":3: share: '0' must be above 0"),
        ("chem,0.5", "chem,1e-300", ":3: share: '1e-300' is too small: give a number from 1e-12 to 1e+12"),
        ("chem,0.5", "chem,", ":3: share: is empty"),
        ("chem,0.5", ",2", ":3: name: is empty"),
        ("chem,0.5", "phys,2", ":3: name: 'phys' is there twice"),
        ("chem,0.5", "chem", ":3: row: has 1 cells"),
        ("share", "part", "no column share"),
        ("phys,3\nchem,0.5\n", "", "no row below its header"),
    ],
)
def test_bad_weights_are_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    with pytest.raises(InputError) as refused:
        read_weights(changed(tmp_path, "weights.csv", old, new))
    assert words in str(refused.value)


# Cluster


def test_a_cluster_is_read_node_by_node() -> None:
    nodes = read_machines(DATA / "cluster.toml")
    assert nodes.names == ("n01", "n02", "fat1", "fat3", "old1")
    assert nodes.gpus.tolist() == [8, 8, 8, 8, 4]
    assert [nodes.gpu_types[code] for code in nodes.gpu_type] == ["a100"] * 4 + ["v100"]
    assert [nodes.racks[code] for code in nodes.rack] == ["r1"] * 4 + [""]
    assert nodes.speed.tolist() == [1.0] * 4 + [0.5]
    assert (nodes.cpus.tolist(), nodes.memory_gb.tolist()) == ([96] * 4 + [0], [512.0] * 4 + [0.0])
    assert (nodes.total_gpus, nodes.capacity) == (36, 34.0)


@pytest.mark.parametrize(
    ("gpus", "per_node", "sizes"), [(32, 4, [4] * 8), (10, 4, [4, 4, 2]), (3, 8, [3]), (1, 1, [1])]
)
def test_so_many_gpus_make_as_many_nodes_as_they_need(gpus: int, per_node: int, sizes: list[int]) -> None:
    nodes = uniform(gpus, per_node)
    assert (nodes.gpus.tolist(), nodes.total_gpus, len(set(nodes.names))) == (sizes, gpus, len(sizes))


@pytest.mark.parametrize(("gpus", "per_node"), [(0, 4), (4, 0), (-1, 4), (10**9, 4)])
def test_no_cluster_is_made_of_no_gpus(gpus: int, per_node: int) -> None:
    with pytest.raises(ConfigError, match="must be above 0"):
        uniform(gpus, per_node)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no [[nodes]] table"),
        ("nodes = 3", "no [[nodes]] table"),
        ("nodes = [3]", "table 1: must be a table"),
        ("[[node]]\n", "unknown key 'node'"),
        ("x = ", "not TOML"),
        ("[[nodes]]\ngpus = 8", "table 1: name is missing"),
        ('[[nodes]]\nname = "n1"', "table 1: gpus is missing"),
        ('[[nodes]]\nname = "n1"\ngpu = 8', "unknown key 'gpu'; did you mean 'gpus'?"),
        ('[[nodes]]\nname = "n1"\ngpus = 0', "gpus must be above 0"),
        ('[[nodes]]\nname = "n1"\ngpus = 1.5', "gpus must be a whole number"),
        ('[[nodes]]\nname = "n1"\ngpus = true', "gpus must be a whole number"),
        ('[[nodes]]\nname = "n1"\ngpus = -1', "gpus must be a whole number of 0 or more"),
        (
            '[[nodes]]\nname = "n1"\ngpus = 1\nspeed = 0',
            "speed must be a number from 1e-12 to 1e+12, not '0'",
        ),
        (
            '[[nodes]]\nname = "n1"\ngpus = 1\nspeed = -1',
            "speed must be a number from 1e-12 to 1e+12, not '-1'",
        ),
        ('[[nodes]]\nname = "n1"\ngpus = 1\nspeed = 1e-300', "from 1e-12 to 1e+12, not '1e-300'"),
        ('[[nodes]]\nname = "n1"\ngpus = 1\nspeed = 1e300', "from 1e-12 to 1e+12, not '1e+300'"),
        (
            '[[nodes]]\nname = "n1"\ngpus = 1\nmemory_gb = -1',
            "memory_gb must be a number of 0 or more, not '-1'",
        ),
        ('[[nodes]]\nname = "n1"\ngpus = 1\nspeed = nan', "speed must be a number"),
        ("[[nodes]]\nname = 1\ngpus = 1", "name must be a printable text"),
        ('[[nodes]]\nname = "n1,n1"\ngpus = 1', "node n1 is there twice"),
        ('[[nodes]]\nname = ""\ngpus = 1', "is no node name"),
        ('[[nodes]]\nname = "a,,b"\ngpus = 1', "is no node name"),
        ('[[nodes]]\nname = "a]b"\ngpus = 1', "'a]b' has a bracket too many; write it like"),
        ('[[nodes]]\nname = "n[1-150000],m[1-150000]"\ngpus = 1', "more than 200000 nodes"),
        (
            '[[nodes]]\nname = "n[1-150000]"\ngpus = 1\n[[nodes]]\nname = "m[1-150000]"\ngpus = 1',
            "nodes table 2: with it the file names more than 200000 nodes: name fewer",
        ),
        (
            '[[nodes]]\nname = "n[1-150000]' + "[1]" * 30_000 + '"\ngpus = 1',
            "too long for 150000 nodes; write it like",
        ),
        ('[[nodes]]\nname = "n' + "x" * 255 + '"\ngpus = 1', "more than 255 letters: write a shorter name"),
        ('[[nodes]]\nname = "N/A"\ngpus = 1', "'N/A' is no node name; write it like"),
        ('[[nodes]]\nname = "n 1"\ngpus = 1', "'n 1' is no node name; write it like"),
        ('[[nodes]]\nname = "n[1-"\ngpus = 1', "'n[1-' has a bracket too many; write it like"),
        ('[[nodes]]\nname = "n[3-1]"\ngpus = 1', "no range that can be"),
        ('[[nodes]]\nname = "n[a]"\ngpus = 1', "no range that can be"),
        ('[[nodes]]\nname = "n[0-999999999]"\ngpus = 1', "more than 200000 nodes; write it like"),
        ('[[nodes]]\nname = "n[0-999][0-999]"\ngpus = 1', "more than 200000 nodes"),
        ("a = " + "[" * 100_000, "cluster.toml: "),
    ],
)
def test_a_cluster_that_cannot_be_is_refused_with_the_cure(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "cluster.toml").write_text(text)
    with pytest.raises(ConfigError) as refused:
        read_machines(tmp_path / "cluster.toml")
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


READERS = (
    ("throughputs.csv", read_throughputs),
    ("regimes.jsonl", read_regimes),
    ("weights.csv", read_weights),
    ("cluster.toml", read_machines),
)


@pytest.mark.parametrize(("name", "read"), READERS, ids=[name for name, _ in READERS])
@SAME_FILE
@given(data=st.data())
def test_a_broken_file_is_refused_and_nothing_else(
    tmp_path: Path, name: str, read: Any, data: st.DataObject
) -> None:
    content = (DATA / name).read_bytes()
    at, length = data.draw(st.integers(0, len(content))), data.draw(st.integers(0, 4))
    piece = data.draw(
        st.one_of(st.binary(max_size=4), st.sampled_from([b"nan", b"1e999", b"[", b'"', b"\x00"]))
    )
    (tmp_path / name).write_bytes(content[:at] + piece + content[at + length :])
    said = refusal(lambda: read(tmp_path / name))
    assert said == "" or said.startswith(str(tmp_path / name))
    assert "\n" not in said
