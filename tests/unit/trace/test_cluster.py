"""The cluster of a simulation, and files beside a trace that are broken anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slurm_fair.errors import ConfigError
from slurm_fair.trace import read_machines, read_regimes, read_throughputs, read_weights, uniform
from tests.support.trace_samples import DATA, refusal

SAME_FILE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


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
            "speed must be a number from 1e-12 to 1e+12, not 0",
        ),
        (
            '[[nodes]]\nname = "n1"\ngpus = 1\nspeed = -1',
            "speed must be a number from 1e-12 to 1e+12, not -1",
        ),
        ('[[nodes]]\nname = "n1"\ngpus = 1\nspeed = 1e-300', "from 1e-12 to 1e+12, not 1e-300"),
        ('[[nodes]]\nname = "n1"\ngpus = 1\nspeed = 1e300', "from 1e-12 to 1e+12, not 1e+300"),
        (
            '[[nodes]]\nname = "n1"\ngpus = 1\nmemory_gb = -1',
            "memory_gb must be a number of 0 or more, not -1",
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
