"""Tables whose columns are indices into names: joined, tidied, and put into one order."""

from __future__ import annotations

from slurm_fair.throughput import Samples
from slurm_fair.throughput.names import as_one, in_order, places_in, tidied
from tests.support.speed_samples import BERT, OTHER, ends, samples


def rows(table: Samples) -> list[tuple[str, str, str, float]]:
    """Tenant, GPU type, node and rate of each row, by the names that the table has."""
    nodes = [*table.node_names, ""]
    columns = (table.job_class.tolist(), table.gpu_type.tolist(), table.node.tolist(), table.rate.tolist())
    return [
        (table.classes[cls].tenant, table.gpu_types[kind], nodes[node], rate)
        for cls, kind, node, rate in zip(*columns, strict=True)
    ]


ONE = samples(
    {"cls": OTHER, "kind": "v100", "node": "n2", "rate": 1.0}, {"cls": BERT, "kind": "a100", "rate": 2.0}
)
TWO = samples(
    {"cls": BERT, "kind": "h100", "node": "n1", "rate": 3.0}, {"cls": OTHER, "kind": "a100", "rate": 4.0}
)


def test_names_are_found_among_others_and_no_name_is_none() -> None:
    assert places_in(("b", "x", "a"), ("a", "b")).tolist() == [1, -1, 0, -1]
    assert places_in((), ("a",)).tolist() == [-1]


def test_two_tables_become_one_whose_rows_have_their_names_still() -> None:
    assert rows(as_one(ONE, TWO)) == rows(ONE) + rows(TWO)
    assert as_one(ONE, TWO).gpu_types == ("v100", "a100", "h100")
    both = as_one(ends([1.0], BERT), ends([2.0], OTHER))
    assert [both.classes[at] for at in both.job_class] == [BERT, OTHER]


def test_a_tidy_table_has_the_names_that_it_uses_sorted_and_rows_in_order() -> None:
    both = as_one(ONE, TWO)
    neat = tidied(both.take(both.rate.argsort()[1:]))
    assert neat.classes == tuple(sorted((BERT, OTHER)))
    assert neat.gpu_types == ("a100", "h100")
    assert neat.node_names == ("n1",)
    assert rows(neat) == [("lab", "a100", "", 2.0), ("lab", "h100", "n1", 3.0), ("rival", "a100", "", 4.0)]


def test_the_order_hangs_on_what_is_in_the_rows_alone() -> None:
    there, back = as_one(ONE, TWO), as_one(TWO, ONE)
    assert rows(there) != rows(back)
    assert rows(in_order(there)) == rows(in_order(back))
    assert sorted(rows(in_order(there))) == sorted(rows(there))
