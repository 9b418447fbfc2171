"""A simulation whose ledger is folded in batches comes to what one comes to that folds it at every look."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from slurm_fair.model import Standing, TickRecord
from slurm_fair.policy import registry
from tests.support.any_scenario import EXAMPLES, Case, Played, cases, play

INSTANTS = {"submit", "start", "end"}


def nothing(tick: TickRecord, standing: Standing) -> None:
    """A listener that wants every event."""


@pytest.mark.parametrize("policy", registry.names())
@EXAMPLES
@given(case=cases())
def test_a_ledger_in_batches_changes_nothing(policy: str, case: Case) -> None:
    same(play(case, policy), play(case, policy, nothing))


def same(batched: Played, plain: Played) -> None:
    """The same looks and outcomes; what is no instant but for rounding."""
    assert batched.simulation.batches is not None
    assert plain.simulation.batches is None
    assert len(batched.result.decisions) == len(plain.result.decisions)
    for one, other in (
        (batched.result.outcomes, plain.result.outcomes),
        (batched.result.runs, plain.result.runs),
    ):
        for name in one._names:
            found, expected = getattr(one, name), getattr(other, name)
            if np.asarray(found).dtype.kind == "f" and name not in INSTANTS:
                np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-6, err_msg=name)
            else:
                np.testing.assert_array_equal(found, expected, err_msg=name)
    assert batched.result.accounts.keys() == plain.result.accounts.keys()
    for tenant, account in batched.result.accounts.items():
        assert account == pytest.approx(plain.result.accounts[tenant], rel=1e-9, abs=1e-6)
