"""Tenants' weights out of Slurm's shares."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_fair.slurm.reading.accounts import WeightReader, read_share_weights, weights_from
from tests.support.slurm_samples import sample
from tests.support.slurm_stub import Stub


def test_a_capture_of_22_05_gives_each_account_its_part() -> None:
    weights = weights_from(sample("22.05", "sshare.txt").splitlines(), {})
    assert weights.by_account == {"nlp": 0.25, "speech": 0.5, "vision": 0.25}


FLAT = ["root||", " root|root|1", " nlp||1", "  nlp|ann|1", " speech||2", " vision||1"]
NESTED = [
    "root||",
    " speech||4",
    "  speech|ann|1",
    " vision||1",
    "  vision|bob|1",
    "  vision|eve|1",
    "  visa||1",
    "   visa|cat|1",
    "  visb||3",
    "   visb|dan|5",
]


@pytest.mark.parametrize(
    ("lines", "weights"),
    [
        (["root||", " a||30", " b||10"], {"a": 0.75, "b": 0.25}),
        (["root||", " a||0", " b||0"], {"a": 1.0, "b": 1.0}),
        (["root||", " root|root|1"], {}),
        ([], {}),
    ],
)
def test_shares_are_parts_of_their_sum(lines: list[str], weights: dict[str, float]) -> None:
    assert weights_from(lines, {}).by_account == pytest.approx(weights)


def test_an_account_with_users_and_accounts_below_it_counts_once() -> None:
    """Its users and the accounts below it are siblings in Slurm's tree: 1 + 1 against 1 and 3."""
    weights = weights_from(NESTED, {}).by_account
    assert weights == pytest.approx(
        {"speech": 0.8, "vision": 0.2 * 2 / 6, "visa": 0.2 / 6, "visb": 0.2 * 3 / 6}
    )
    assert sum(weights.values()) == pytest.approx(1.0)


def test_an_account_that_only_groups_others_is_no_tenant() -> None:
    lines = ["root||", " dept||3", "  x||1", "   x|u|1", "  y||2", " other||1"]
    assert weights_from(lines, {}).by_account == pytest.approx({"x": 0.25, "y": 0.5, "other": 0.25})


FOLLOWS = ["root||", " a||1", "  a|ann|1", " p||parent", "  p|bob|5", "  p|cat|3", " b||2", "  b|dan|1"]
FOLLOWS_DEEP = [
    "root||",
    " a||1",
    "  a|ann|1",
    " p||parent",
    "  q||parent",
    "   q|bob|2",
    "   r||5",
    "    r|eve|1",
]


@pytest.mark.parametrize(
    ("lines", "given", "weights"),
    [
        (FOLLOWS, {}, {"a": 1 / 11, "p": 8 / 11, "b": 2 / 11}),
        (FOLLOWS, {"p": 1.0}, {"a": 1 / 4, "p": 1 / 4, "b": 2 / 4}),
        (FOLLOWS_DEEP, {}, {"a": 1 / 8, "q": 2 / 8, "r": 5 / 8}),
    ],
)
def test_users_and_accounts_below_one_that_follows_its_parent_stand_beside_it(
    lines: list[str], given: dict[str, float], weights: dict[str, float]
) -> None:
    assert weights_from(lines, given).by_account == pytest.approx(weights)


def test_an_account_whose_users_have_no_shares_has_next_to_nothing() -> None:
    lines = ["root||", " a||1", "  a|ann|0", "  c||1", "   c|bob|1", " b||1", "  b|dan|1"]
    weights = weights_from(lines, {}).by_account
    assert weights == pytest.approx({"a": 1e-12, "c": 0.5, "b": 0.5})


@pytest.mark.parametrize(
    ("lines", "given", "weights"),
    [
        (FLAT, {"speech": 4.0}, {"nlp": 1 / 6, "speech": 4 / 6, "vision": 1 / 6}),
        (FLAT, {"speech": 2.0}, {"nlp": 0.25, "speech": 0.5, "vision": 0.25}),  # as Slurm has it: no change
        (FLAT, {"new": 4.0}, {"nlp": 1 / 8, "speech": 2 / 8, "vision": 1 / 8, "new": 4 / 8}),
        (NESTED, {"vision": 4.0, "visb": 1.0}, {"speech": 0.5, "vision": 0.25, "visa": 0.125, "visb": 0.125}),
        ([], {"speech": 2.0}, {"speech": 2.0}),
    ],
)
def test_a_weight_of_the_configuration_takes_the_place_of_the_accounts_shares(
    lines: list[str], given: dict[str, float], weights: dict[str, float]
) -> None:
    assert weights_from(lines, given).by_account == pytest.approx(weights)


@pytest.mark.parametrize(
    ("lines", "given", "weight"),
    [(FLAT, {}, 1 / 3), ([], {}, 1.0), ([], {"speech": 2.0}, 1.0)],
)
def test_an_account_that_slurm_does_not_list_weighs_as_the_others_do_on_average_or_one_share(
    lines: list[str], given: dict[str, float], weight: float
) -> None:
    assert weights_from(lines, given).of("unknown") == pytest.approx(weight)


@pytest.mark.parametrize(
    ("answer", "found"),
    [("root||\n a||1\n", {"a": 1.0}), ("", {})],
)
def test_what_accounting_answers_is_read(tmp_path: Path, answer: str, found: object) -> None:
    stub = Stub(tmp_path)
    stub.answers("sshare", answer)
    weights = read_share_weights(stub.commands(), {})
    assert not isinstance(weights, str)
    assert weights.by_account == found


def test_accounting_that_does_not_answer_gives_a_reason(tmp_path: Path) -> None:
    stub = Stub(tmp_path)
    stub.answers("sshare", (1, "", "sshare: error: x"))
    assert read_share_weights(stub.commands(), {}) == "sshare: sshare: error: x"


class Looks:
    """Looks at a site whose shares change."""

    def __init__(self, folder: Path) -> None:
        self.stub = Stub(folder)
        self.book = WeightReader(self.stub.commands())
        self.now = 0.0

    def look(self, *accounts: str, after: float = 1.0, **given: float) -> dict[str, float]:
        """The weights of these accounts."""
        self.now += after
        self.book.learn(accounts, given, self.now)
        return {name: self.book.weights.of(name) for name in accounts}


def test_a_new_account_is_asked_for_at_once_and_once(tmp_path: Path) -> None:
    looks = Looks(tmp_path)
    looks.stub.answers("sshare", "root||\n a||1\n b||1\n")
    assert looks.look("a") == {"a": 0.5}
    looks.stub.answers("sshare", "root||\n a||1\n b||1\n  b|u|1\n  new||3\n   new|u|1\n")
    assert looks.look("a") == {"a": 0.5}
    assert looks.look("a", "new") == {"a": 0.5, "new": 0.375}
    looks.look("a", "stranger")
    looks.stub.answers("sshare", "root||\n stranger||1\n")
    assert looks.look("a", "stranger")["a"] == 0.5  # not asked again so soon
    assert looks.look("a", "stranger", after=61.0)["stranger"] == 1.0


def test_new_weights_in_the_configuration_hold_at_the_next_look(tmp_path: Path) -> None:
    looks = Looks(tmp_path)
    looks.stub.answers("sshare", "root||\n a||1\n b||1\n")
    assert looks.look("a", "b") == {"a": 0.5, "b": 0.5}
    assert looks.look("a", "b", a=3.0) == {"a": 0.75, "b": 0.25}


def test_accounting_that_goes_away_takes_no_weights_with_it_and_one_that_never_was_leaves_one_share_each(
    tmp_path: Path,
) -> None:
    looks = Looks(tmp_path)
    looks.stub.answers("sshare", (1, "", "sshare: error: x"))
    assert looks.look("a", "b", a=3.0) == {"a": 3.0, "b": 1.0}
    looks.stub.answers("sshare", "root||\n a||1\n b||4\n")
    assert looks.look("a", "b", after=61.0) == {"a": 0.2, "b": 0.8}
    looks.stub.answers("sshare", (1, "", "sshare: error: x"))
    assert looks.look("a", "b", after=61.0) == {"a": 0.2, "b": 0.8}


@given(
    st.lists(
        st.one_of(
            st.text(), st.from_regex(r" {0,4}[a-z]*\|[a-z]*\|(\d+|parent|nan|inf|1e400)", fullmatch=True)
        )
    )
)
def test_no_line_makes_a_weight_that_is_no_number(lines: list[str]) -> None:
    assert all(0 <= weight < float("inf") for weight in weights_from(lines, {}).by_account.values())
