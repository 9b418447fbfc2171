"""Lists of values of `--set`: each value is a policy of its own."""

from __future__ import annotations

import pytest

from slurm_fair.cli.sweep.variants import Variant, base_of, variants_of
from slurm_fair.errors import InputError


def names(*given: str, policies: tuple[str, ...] = ("fair",)) -> list[str]:
    return [one.name for one in variants_of(given, policies)]


def test_without_settings_each_policy_is_there_once() -> None:
    assert variants_of([], ["fair", "srtf"]) == [Variant("fair", "fair", ()), Variant("srtf", "srtf", ())]
    assert variants_of([], []) == []


def test_a_single_value_is_a_setting_and_no_name() -> None:
    assert variants_of(["fair.x=1"], ["fair"]) == [Variant("fair", "fair", ("fair.x=1",))]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1,2", ["1", "2"]),
        (" 1 , 2 ", ["1", "2"]),
        ("[1,2],[3]", ["[1,2]", "[3]"]),
        ("[[1,2],[3,4]],[]", ["[[1,2],[3,4]]", "[]"]),
        ("{a=1,b=2},{}", ["{a=1,b=2}", "{}"]),
        ('"a,b","c"', ['"a,b"', '"c"']),
        ("'a,b',c", ["'a,b'", "c"]),
        ('"it\'s",b', ['"it\'s"', "b"]),
        ('["]",1],2', ['["]",1]', "2"]),
        ("on,off", ["on", "off"]),
        ("1,'1'", ["1", "'1'"]),  # a number and a word
    ],
)
def test_commas_part_values_but_not_within_brackets_and_quotes(text: str, values: list[str]) -> None:
    found = variants_of([f"fair.x={text}"], ["fair"])
    assert [one.name for one in found] == [f"fair x={value}" for value in values]
    assert [one.settings for one in found] == [(f"fair.x={value}",) for value in values]


def test_lists_are_combined_within_a_policy_and_not_between_policies() -> None:
    given = ("a.x=1,2", "b.y=3,4", "a.z=5,6", "a.one=7")
    found = variants_of(given, ("b", "a", "c"))
    assert [one.name for one in found] == [
        "b y=3", "b y=4", "a x=1 z=5", "a x=1 z=6", "a x=2 z=5", "a x=2 z=6", "c",
    ]  # fmt: skip
    assert found[3].settings == ("a.x=1", "a.z=6", "a.one=7")
    assert [base_of(one.name) for one in found] == [one.policy for one in found]


def test_a_list_of_many_values_is_no_trouble() -> None:
    assert len(names(f"fair.x={','.join(map(str, range(2000)))}")) == 2000


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("fair.x=1,",), "an empty value: write fair.x=A,B"),
        (("fair.x=,",), "an empty value"),
        (("fair.x=1, ,2",), "an empty value"),
        (("fair.x=2,1,2.0",), "'2.0' is there twice: keep one of them"),
        (("fair.x=[1,2],[1, 2]",), "'[1, 2]' is there twice"),
        (("fair.x=a,'a'",), "is there twice"),
        (("fair.x=1,2", "fair.x=3"), "'x' is set twice: keep one of them"),
        (("las.x=1,2",), "'las' is not simulated"),
        (("x=1,2",), "write policy.key=value"),
        (("fair.=1,2",), "write policy.key=value"),
        (("",), "write policy.key=value"),
        ((f"fair.x={'a' * 5000},{'a' * 5000}",), "is there twice"),
    ],
)
def test_what_is_no_list_of_values_is_refused_in_one_short_line(given: tuple[str, ...], words: str) -> None:
    with pytest.raises(InputError) as caught:
        names(*given)
    assert words in str(caught.value)
    assert len(str(caught.value)) < 250
    assert "\n" not in str(caught.value)


def test_true_is_another_value_than_1() -> None:
    assert names("fair.x=true,1") == ["fair x=true", "fair x=1"]


def test_a_policy_without_values_is_its_own_base() -> None:
    assert base_of("fair") == "fair"
    assert base_of("fair price_hours=1 solver=off") == "fair"
