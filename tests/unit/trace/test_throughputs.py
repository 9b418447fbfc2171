"""Throughputs that a simulation reads beside a trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from slurm_fair.errors import InputError
from slurm_fair.trace import read_throughputs
from tests.support.trace_samples import DATA, changed


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
