"""Slurm's node lists."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_fair.errors import SlurmTextError
from slurm_fair.slurm_text import hostlist

NAMES = st.lists(st.from_regex(r"[A-Za-z][A-Za-z0-9_.-]{0,8}", fullmatch=True), max_size=8)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n1", ["n1"]),
        ("n[1-3]", ["n1", "n2", "n3"]),
        ("n[001-003,7],login1", ["n001", "n002", "n003", "n7", "login1"]),
        ("rack[1-2]n[08-10]", ["rack1n08", "rack1n09", "rack1n10", "rack2n08", "rack2n09", "rack2n10"]),
        ("gpu-[1,3]-ib", ["gpu-1-ib", "gpu-3-ib"]),
        ("n[9-11]", ["n9", "n10", "n11"]),
        ("", []),
        ("(null)", []),
        ("None assigned", []),
    ],
)
def test_a_list_expands_in_its_order(text: str, names: list[str]) -> None:
    assert list(hostlist.expand(text)) == names


@pytest.mark.parametrize(
    "text",
    ["n[1-3", "n1]", "n[]", "n[a-b]", "n[3-1]", "n[1-]", "n[1--3]", "a,,b", "a,", "n[[1]]", "n[²]", "a]b[1"],
)
def test_a_list_that_slurm_would_not_write_is_refused(text: str) -> None:
    with pytest.raises(SlurmTextError):
        hostlist.expand(text)


@pytest.mark.parametrize("text", ["n[0-999999999]", "n" + "[0-999]" * 6, ",".join(["n[1-100000]"] * 3)])
def test_a_list_beyond_any_cluster_is_refused_before_it_fills_the_memory(text: str) -> None:
    with pytest.raises(SlurmTextError, match="more than 200000 nodes"):
        hostlist.expand(text)


def test_who_expects_few_nodes_expands_no_more() -> None:
    assert hostlist.expand("n[1-3]", most=3) == ("n1", "n2", "n3")
    for text in ("n[1-4]", "n[1-200000]", "a,b,c,d", "n[1-2][1-2]"):
        with pytest.raises(SlurmTextError, match="more than 3 nodes"):
            hostlist.expand(text, most=3)


def test_names_too_long_for_so_many_nodes_are_refused_before_they_fill_the_memory() -> None:
    assert hostlist.expand("n[1-3][7]x[2]") == ("n17x2", "n27x2", "n37x2")
    with pytest.raises(SlurmTextError, match="too long for 150000 nodes"):
        hostlist.expand("n[1-150000]" + "[1]" * 30_000)


def test_many_brackets_do_not_exhaust_the_stack() -> None:
    assert hostlist.expand("n[1]" * 3000) == ("n1" * 3000,)


@given(st.one_of(st.text(), st.text(alphabet="n0123456789[],-.", max_size=30)))
def test_no_text_makes_it_fail_otherwise_than_by_refusing_it(text: str) -> None:
    try:
        names = hostlist.expand(text)
    except SlurmTextError:
        return
    assert all(names)


@given(NAMES)
def test_names_joined_for_a_command_expand_to_themselves(names: list[str]) -> None:
    assert list(hostlist.expand(hostlist.join(names))) == [*names]


@given(st.text(min_size=1))
def test_only_plain_names_reach_a_command(name: str) -> None:
    try:
        joined = hostlist.join([name])
    except SlurmTextError:
        return
    assert joined.isascii()
    assert not set(joined) & set(" \t\n\r\v\f,=[]'\"\\$`;|&")


@pytest.mark.parametrize("name", ["n1 nice=-5", "n1\nrelease 7", "n1,n2", "-n1", "", "n1\n", "n[1-2]", "nö"])
def test_a_name_that_could_be_more_than_a_name_is_refused(name: str) -> None:
    with pytest.raises(SlurmTextError):
        hostlist.join([name])
