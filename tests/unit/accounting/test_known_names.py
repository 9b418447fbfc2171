"""An unknown name is refused, not answered with an empty report."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from slurm_fair.errors import InputError
from slurm_fair.model import Event, EventKind
from slurm_fair_accounting.source.known_names import refuse_name, refuse_unknown, tenants_of, users_of


def source(*named: tuple[str, str], moments: tuple[str, ...] = (), ledger: tuple[str, ...] = ()) -> Any:
    """Events that name a tenant and a user, moments of tenants, and a ledger with tenants."""
    events = [Event(0.0, EventKind.STARTED, 1, tenant, 1, {"user": user}) for tenant, user in named]
    accounts = SimpleNamespace(ledger=SimpleNamespace(tenants=SimpleNamespace(names=ledger)))
    return SimpleNamespace(
        latest=lambda: accounts if ledger else None,
        events=lambda: events,
        moments=lambda start, end: [SimpleNamespace(tenant=name) for name in moments],
    )


def test_tenants_are_those_of_the_ledger_else_those_that_are_named() -> None:
    assert tenants_of(source(("a", "ann"), ("", ""), moments=("b",))) == {"a", "b"}
    assert tenants_of(source(("a", "ann"), ledger=("c", "d"))) == {"c", "d"}


def test_users_are_those_that_events_name() -> None:
    assert users_of(source(("a", "ann"), ("b", ""), ("b", "bob"))) == {"ann", "bob"}


@pytest.mark.parametrize(
    ("tenant", "user", "words"),
    [("x", None, "no tenant x; there are a, b"), (None, "x", "no user x; there are ann, bob")],
)
def test_whom_nobody_has_heard_of_is_refused_with_the_known_names(
    tenant: str | None, user: str | None, words: str
) -> None:
    known = source(("b", "bob"), ("a", "ann"))
    refuse_unknown(known, "a", "bob")
    refuse_unknown(known, None, None)
    with pytest.raises(InputError) as refused:
        refuse_unknown(known, tenant, user)
    assert str(refused.value) == words


def test_a_source_that_names_nobody_refuses_nobody_and_a_long_list_is_cut() -> None:
    refuse_name("user", "x", set())
    with pytest.raises(InputError, match=r"n39 and 2 more$"):
        refuse_name("user", "x", {f"n{number:02}" for number in range(42)})
    with pytest.raises(InputError, match=r"n39$"):
        refuse_name("user", "x", {f"n{number:02}" for number in range(40)})
