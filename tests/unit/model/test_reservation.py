"""Reservations come back from a plan's memory as they were put there, and leave it without a trace."""

from __future__ import annotations

import json
import math

from slurm_fair.model.ids import pack
from slurm_fair.model.reservation import ReservedNodes, next_due, reservations, with_reservations

ONE = ReservedNodes(pack(7), 100.0, 900.0, ("n1", "n3"), 8, 1, 4, 512)
OTHER = ReservedNodes(pack(8, 2), 200.0, 400.0, ("n2",), 2, 0)


def test_what_is_remembered_is_plain_data_and_comes_back_in_its_order() -> None:
    memory = with_reservations({"other": 1}, [ONE, OTHER])
    assert json.loads(json.dumps(memory)) == memory
    assert memory["other"] == 1
    for kept in (memory, json.loads(json.dumps(memory))):
        assert reservations(kept) == (ONE, OTHER)
    assert (ONE.amounts, OTHER.amounts) == ((8, 4, 512), (2, 0, 0))


def test_a_memory_of_before_without_cpus_and_memory_is_read() -> None:
    (key, old) = next(iter(with_reservations({}, [ONE]).items()))
    assert reservations({key: [old[0][:6]]}) == (ONE._replace(cpus=0, memory_mb=0),)
    assert reservations({}) == ()


def test_the_next_one_due_is_the_earliest() -> None:
    assert next_due(with_reservations({}, [ONE, OTHER])) == 400.0
    assert next_due({"other": 1}) == math.inf


def test_new_ones_replace_those_of_before_and_none_leaves_no_trace() -> None:
    before = with_reservations({"other": 1}, [ONE])
    assert reservations(with_reservations(before, [OTHER])) == (OTHER,)
    assert with_reservations(before, []) == {"other": 1}
    assert reservations(before) == (ONE,)
    plain = {"other": 1}
    assert with_reservations(plain, []) is plain
