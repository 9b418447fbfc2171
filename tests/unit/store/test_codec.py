"""The codec gives back what it was given, and refuses what it never wrote."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from slurm_fair.errors import StoreError
from slurm_fair.model import Action, LeaseTerms, Outcome, Result, Retries, RunTable, Standing, Verb, Verdict
from slurm_fair.store.blobs import name_of, squeeze, unpacked
from slurm_fair.store.codec import Encoder, decode, decode_as, read, write
from slurm_fair.store.parcel import Packer, unpack
from tests.support import journals

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.sampled_from([*Verb, *Verdict])
)
columns = arrays.arrays(
    dtype=st.sampled_from([np.int64, np.float64, np.int8, np.bool_, np.uint16]),
    shape=arrays.array_shapes(min_dims=1, max_dims=2, min_side=0, max_side=40),
)
names = st.lists(st.text(max_size=20), max_size=30).map(tuple)
trees = st.recursive(
    scalars | columns | names,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(st.text(max_size=4) | st.just("$is"), inner, max_size=4),
        st.dictionaries(st.integers(), inner, max_size=4),
    ),
    max_leaves=12,
)


def there_and_back(value: Any) -> Any:
    encoder = Encoder()
    body, name = write(encoder.tree(value))
    kept = {column: squeeze(raw) for column, raw in encoder.blobs.items()}
    return decode(read(body, name), lambda column: unpacked(kept[column], column))


@given(trees)
@settings(max_examples=300, deadline=None)
def test_every_value_comes_back_equal_and_of_the_same_type(value: Any) -> None:
    assert journals.same(value, there_and_back(value))


@pytest.mark.parametrize("count", [0, 1, 4, 300])
def test_a_tick_comes_back_whole(count: int) -> None:
    tick = journals.tick(count=count)
    assert journals.same(tick, there_and_back(tick))


@pytest.mark.parametrize("count", [0, 1, 300])
def test_a_standing_comes_back_whole_and_in_one_piece(count: int) -> None:
    standing = journals.standing(count=count)
    packer = Packer()
    for _ in range(2):
        assert journals.same(standing, unpack(packer.pack(standing), type(standing)))


def test_journals_of_older_versions_are_read_with_what_was_true_of_their_rows() -> None:
    tick, standing = journals.tick(count=5), journals.standing(count=5)
    jobs, accounts = tick.snapshot.jobs, standing.ledger.jobs.with_columns(active=np.arange(5) % 2 == 0)
    encoder = Encoder()
    trees = [encoder.tree(jobs), encoder.tree(accounts)]
    del trees[0]["of"]["most_nodes"], trees[1]["of"]["waits"]
    old_jobs, old_accounts = (decode(tree, lambda column: encoder.blobs[column]) for tree in trees)
    assert journals.same(old_jobs, jobs.with_columns(most_nodes=np.zeros(5, dtype=np.int64)))
    assert journals.same(old_accounts, accounts.with_columns(waits=accounts.active))


def test_a_snapshot_keeps_what_is_to_be_freed_and_one_of_an_older_version_frees_nobody() -> None:
    free = Action(Verb.FREE, 7, 8, 100.0, 0, whole_record=True, why="it is not managed")
    seen, encoder = replace(journals.snapshot(), to_free=(free,)), Encoder()
    assert journals.same(there_and_back(seen), seen)
    tree = encoder.tree(seen)
    del tree["of"]["to_free"]
    assert journals.same(decode(tree, lambda column: encoder.blobs[column]), journals.snapshot())


def test_a_plan_of_an_older_version_was_one_table_with_why_it_decides() -> None:
    plan, encoder = journals.plan(), Encoder()
    tree = encoder.tree(plan)
    why = tree["of"].pop("why")["of"]
    del why["no_turn"], tree["of"]["fault"]
    tree["of"] |= why | {"rests": True, "again": {"$float": "inf"}}
    assert journals.same(decode(tree, lambda column: encoder.blobs[column]), plan)


def test_an_outcome_of_an_older_version_told_whether_a_virtual_job_had_answered() -> None:
    outcome, encoder = Outcome(Action(Verb.ASK, 7, 8, 100.0, 0), Result.DONE), Encoder()
    tree = encoder.tree(outcome)
    tree["of"]["answered"] = False
    assert decode(tree, lambda column: encoder.blobs[column]) == outcome


def test_a_standing_of_an_older_version_held_retries_as_bare_maps() -> None:
    due = {7: (1060.0, 2), 8: (1030.0, 1)}
    standing = Standing.new(1000.0)._replace(backoff=Retries(due), unmoved=Retries({9: (5000.0, 1)}))
    encoder = Encoder()
    tree = encoder.tree(standing)
    assert journals.same(decode(tree, lambda column: encoder.blobs[column]), standing)
    for name in ("backoff", "unmoved"):
        tree["of"][name] = tree["of"][name]["of"]["due"]
    del tree["of"]["unshut"]  # which the oldest did not have
    read = decode(tree, lambda column: encoder.blobs[column])
    assert isinstance(read, Standing)
    assert (read.backoff, read.unmoved, read.unshut) == (standing.backoff, standing.unmoved, Retries())


def test_retries_of_an_older_version_named_the_rests() -> None:
    retries, encoder = Retries({7: (1060.0, 2)}), Encoder()
    tree = encoder.tree(retries)
    tree["of"]["rests"] = tree["of"].pop("due")
    assert decode(tree, lambda column: encoder.blobs[column]) == retries


def test_a_plan_keeps_who_gets_no_turn_and_a_fault_of_the_profiler() -> None:
    plan = journals.plan()
    why = plan.explanation.with_columns(no_turn={"it cannot save": np.array([7, 8])})
    told = replace(plan, why=why, fault="the profiler raised")
    assert journals.same(there_and_back(told), told)
    assert not journals.same(told, plan)


def test_surrogates_and_control_characters_in_names_survive() -> None:
    names = ("\udc80job", "\x00", "\x1b[31m", "é" * 40, '"', "\\")
    assert there_and_back(names) == names


def test_a_column_read_back_can_be_written() -> None:
    there_and_back(np.zeros(100))[0] = 1.0


def test_big_endian_columns_come_back_in_the_machines_order() -> None:
    back = there_and_back(np.arange(20, dtype=">i8"))
    assert back.dtype == np.int64
    assert back.tolist() == list(range(20))


def test_an_unchanged_column_has_the_same_name() -> None:
    first, second = Encoder(), Encoder()
    first.tree(journals.snapshot(200))
    second.tree(journals.snapshot(200))
    assert first.blobs.keys() == second.blobs.keys()
    assert len(first.blobs) > 2


def test_small_columns_stay_in_the_tree() -> None:
    encoder = Encoder()
    encoder.tree(np.zeros(7))
    assert not encoder.blobs


@pytest.mark.parametrize(
    "value", [object(), {1, 2}, b"bytes", np.array([object()]), np.array(["text"]), 1j, st]
)
def test_what_is_no_plain_data_is_refused(value: object) -> None:
    with pytest.raises(StoreError, match=r"plain data|numbers only"):
        Encoder().tree(value)


NOT_OURS = {
    "an unknown mark": {"$what": 1},
    "an unknown noun": {"$is": "Nobody", "of": {}},
    "a noun without content": {"$is": "LeaseTerms"},
    "a noun with an unknown field": {"$is": "LeaseTerms", "of": {"term": 1.0, "evil": 2}},
    "a noun with a field of another type": {"$is": "LeaseTerms", "of": {"term": "long"}},
    "a noun that lacks a field": {"$is": "Event", "of": {"time": 1.0}},
    "columns of different length": {
        "$is": "TenantTable",
        "of": {"names": {"$tuple": []}, "weight": {"$array": "AAAAAAAA8D8=", "dtype": "<f8", "n": [7]}},
    },
    "an enum value that is none": {"$enum": "Verb", "value": "delete"},
    "a number that is none": {"$float": "much"},
    "objects in a column": {"$array": "", "dtype": "|O", "n": [0]},
    "a negative length": {"$array": "", "dtype": "<f8", "n": [-1]},
    "text that is no base64": {"$array": "&&&", "dtype": "<f8", "n": [1]},
    "a missing column": {"$blob": "0" * 32, "dtype": "<f8", "n": [1]},
    "names that are none": {"$words": "0" * 32, "n": 1},
    "a map of no pairs": {"$map": [1]},
    "a map with keys that are none": {"$map": [[[1], 2]]},
    "a tuple of nothing": {"$tuple": 5},
}


@pytest.mark.parametrize("tree", NOT_OURS.values(), ids=NOT_OURS)
def test_a_tree_that_no_encoder_wrote_is_refused(tree: Any) -> None:
    def fetch(name: str) -> bytes:
        raise KeyError(name)

    with pytest.raises(StoreError):
        decode(tree, fetch)


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["$is", "$enum", "$tuple", "$map", "$float", "$array", "$blob", "$words", "of", "n"]
            ),
            inner | st.sampled_from(["LeaseTerms", "Event", "Verb", "<f8", "Snapshot"]),
            max_size=4,
        )
    ),
    max_leaves=10,
)


@given(json_like)
@settings(max_examples=300, deadline=None)
def test_garbage_is_a_value_or_a_store_error(tree: Any) -> None:
    with suppress(StoreError):
        decode(tree, lambda name: b"garbage")


@given(st.binary(max_size=200))
def test_bytes_that_are_not_ours_are_refused(data: bytes) -> None:
    with pytest.raises(StoreError):
        read(data, name_of(b"something else"))
    with pytest.raises(StoreError):
        unpack(data, LeaseTerms)


def test_a_newer_document_is_refused_by_name() -> None:
    raw = b'{"v":3,"tree":null}'
    with pytest.raises(StoreError, match=r"newer slurm-fair \(codec 3\)"):
        read(squeeze(raw), name_of(raw))


def test_another_noun_than_expected_is_refused() -> None:
    encoder = Encoder()
    with pytest.raises(StoreError, match="a LeaseTerms where a RunTable belongs"):
        decode_as(RunTable, encoder.tree(LeaseTerms()), lambda name: b"")


def test_content_under_a_false_name_is_refused() -> None:
    with pytest.raises(StoreError, match="damaged"):
        unpacked(squeeze(b"content"), name_of(b"other"))
