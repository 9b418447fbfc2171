"""Features that a job asks for, as Slurm weighs them; the table was asked of Slurm 22.05 (sbatch --test-only)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_fair.slurm.reading.constraint import ways_of

NODES = {"n1": "a,x", "n2": "b,x", "n3": "a,y", "n4": "b,y,big"}
FEATURES = [frozenset(text.split(",")) for text in NODES.values()]


def where(text: str) -> list[list[str]]:
    """The nodes of each way."""
    return [
        [name for name, there in zip(NODES, way, strict=True) if there] for way in ways_of(text, FEATURES)
    ]


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("a", "n1 n3"), ("a&x", "n1"), ("a|b&y", "n3 n4"), ("a&x|b&y", "n4"), ("b&y|a&x", "n1"),
        ("(a&x)|(b&y)", "n1 n4"), ("a,x", "n1"), ("a&(x|y)", "n1 n3"), ("big|a", "n1 n3 n4"),
        ("a|b|big", "n1 n2 n3 n4"), ("a&x|big", "n1 n4"), ("(a|b)&y", "n3 n4"), ("((a))", "n1 n3"),
        ("none", ""),
    ],
)  # fmt: skip
def test_each_node_alone_keeps_to_it(text: str, nodes: str) -> None:
    assert where(text) == [nodes.split()]


@pytest.mark.parametrize(
    ("text", "ways"),
    [
        ("[a|b]", ["n1 n3", "n2 n4"]),
        ("[x|y]&a", ["n1", "n3"]),
        ("a&[x|y]", ["n1", "n3"]),
        ("[a&x|b]", ["n1", "n2 n4"]),
        ("[a|a]", ["n1 n3"]),
    ],
)
def test_of_options_in_brackets_all_nodes_keep_to_one(text: str, ways: list[str]) -> None:
    assert where(text) == [way.split() for way in ways]


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("a*2", "n1 n3"),
        ("a*1&x", "n1"),
        ("!a", "n2 n4"),
        ("x&!a", "n2"),
        ("[a*1&big*1]", "n1 n3 n4"),
        ("x*1&b*2", "n1 n2 n4"),
    ],
)
def test_counts_and_denials(text: str, nodes: str) -> None:
    assert where(text) == [nodes.split()]


@pytest.mark.parametrize(
    "text", ["", "a&", "&a", "(a", "a)", "[a", "a*", "a*b", "a b", "a[", "(" * 600 + "a"]
)
def test_what_cannot_be_read_leaves_it_to_slurm(text: str) -> None:
    assert where(text) == [list(NODES)]


@given(text=st.text(alphabet="ab&|,()[]!*12 ", max_size=40))
def test_no_text_fails(text: str) -> None:
    assert all(len(way) == len(FEATURES) for way in ways_of(text, FEATURES))


def test_no_text_costs_more_than_its_length() -> None:
    many = "&".join(f"[f{number}|g{number}]" for number in range(40))
    nodes = [frozenset(f"{'fg'[at >> n & 1]}{n}" for n in range(40)) for at in range(256)]
    (all_nodes,) = ways_of(many, nodes)  # of 256 ways and more nobody keeps track
    assert all_nodes.all()
