"""The rules that somebody's policy breaks."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from slurm_fair.cli import policies_check
from slurm_fair.policy.trial import RULES
from tests.support import strange_policies as strange
from tests.support.command_line import Said, call
from tests.support.schemas import faults

SCHEMAS = Path(__file__).parents[3] / "docs" / "schema"
# Of each policy the rule that it breaks, what is said of it, and the line that is named: one with these words.
BREAKS: list[tuple[type, str, str, str]] = [
    (strange.Raises, "plan", "ZeroDivisionError", "return view.now / 0"),
    (strange.Exits, "plan", "SystemExit: 0", "sys.exit(0)"),
    (strange.Nothing, "plan", "plan(view) returned None, not a Plan", "def plan"),
    (strange.Crowded, "plan", "it gives GPUs away that are not free", "def plan"),
    (strange.Twice, "twice", "the order lists job", "np.append(rows, rows)"),
    (strange.OneRank, "twice", "a job stands in it twice", "def plan"),
    (strange.Dice, "same", "dice only from view.seed, no state", "def plan"),
    (strange.WaitsByDice, "same", "has nodes set aside after", "def plan"),
    (strange.WaitsByRow, "rows", "has nodes set aside after", "def plan"),
    (strange.WaitsForOne, "plan", "one number for each of", "def plan"),
    (strange.Counts, "same", "when the same view is planned again", "def plan"),
    (strange.Writes, "view", "it writes into view.snapshot: take a copy first", "def plan"),
    (strange.ByRow, "rows", "when the rows are permuted", "def plan"),
    (strange.RemembersRows, "rows", "remember jobs by their keys", "def plan"),
    (strange.WrongAccount, "ledger", "use view.account_row", "def plan"),
    (strange.RemembersAccounts, "ledger", "use view.account_row", "def plan"),
    (strange.KeepsASet, "memory", "the journal keeps plain data only, not a set", "def plan"),
    (strange.KeepsItsOwn, "memory", "AttributeError", "note.time + 1.0"),
    (strange.RestsAndCounts, "rests", "leave `rests` out", "def plan"),
    (strange.NeedsReports, "unsaid", "AttributeError", "told.left_seconds[rows]"),
    (strange.NeedsSomebody, "empty", "ValueError", "jobs.gpus.max()"),
    (strange.NeedsANode, "nodes", "ValueError", "nodes.gpus.max()"),
    (strange.RemembersNodes, "nodes", "IndexError", 'view.memory.get("nodes", [])].sum()'),
]


def checked(kind: type) -> tuple[Said, dict[str, dict[str, Any]]]:
    """The answer of `policies check` to a policy, by rule; of fewer views than usual."""
    with strange.installed(mine=kind), patch.object(policies_check, "_VIEWS", 8):
        said = call("policies", "check", "mine", "--json")
    document = json.loads(said.out)
    schema = json.loads((SCHEMAS / "policies-check.json").read_text())
    assert faults(document, schema) == []
    assert document["sound"] is (said.code == 0)
    return said, {row["rule"]: row for row in document["rules"]}


def test_a_policy_that_keeps_to_the_rules_breaks_none() -> None:
    said, rules = checked(strange.Plain)
    assert (said.code, said.err) == (0, "")
    assert {row["level"] for row in rules.values()} == {"ok"}
    assert tuple(rules) == tuple(RULES)


def test_each_rule_has_a_policy_that_breaks_it() -> None:
    assert {rule for _, rule, _, _ in BREAKS} == set(RULES)


@pytest.mark.parametrize(("kind", "rule", "says", "line"), BREAKS, ids=[kind.__name__ for kind, *_ in BREAKS])
def test_a_broken_rule_is_told_with_its_line(kind: type, rule: str, says: str, line: str) -> None:
    said, rules = checked(kind)
    assert said.code == 1
    assert "policy mine breaks" in said.complaint
    assert rules[rule]["level"] == "error"
    assert says in rules[rule]["what"]
    file, _, number = rules[rule]["place"].rpartition(":")
    assert file == inspect.getfile(kind)
    assert line in Path(file).read_text().splitlines()[int(number) - 1]


def test_plans_of_a_policy_that_throws_dice_are_not_compared() -> None:
    _, rules = checked(strange.Dice)
    assert [rule for rule, row in rules.items() if row["level"] == "error"] == ["same"]
    assert [rule for rule, row in rules.items() if row["level"] == "left out"] == ["rows", "ledger", "rests"]
    assert "the rule `same` is broken" in rules["rows"]["what"]


def test_rules_that_an_error_stops_are_not_said_to_hold() -> None:
    _, rules = checked(strange.Raises)
    stopped = {rule: row["what"] for rule, row in rules.items() if row["level"] == "left out"}
    assert [rule for rule, row in rules.items() if row["level"] == "error"] == ["plan"]
    assert [rule for rule, row in rules.items() if row["level"] == "ok"] == ["empty", "nodes"], (
        "it is not asked"
    )
    assert set(stopped.values()) == {"the error of the rule `plan` stops it"}


@pytest.mark.parametrize(
    ("kind", "rule", "what"),
    [
        (strange.Nothing, "plan", "TypeError: plan(view) returned None, not a Plan"),
        (strange.KeepsASet, "memory", "the journal keeps plain data only, not a set"),
    ],
)
def test_a_fault_that_ends_the_simulation_is_told_once_and_without_the_simulations_words(
    kind: type, rule: str, what: str
) -> None:
    _, rules = checked(kind)
    assert {name: row["what"] for name, row in rules.items() if row["level"] == "error"} == {rule: what}


def test_what_a_person_reads_names_the_rule_the_line_and_the_cure() -> None:
    with strange.installed(mine=strange.NeedsReports):
        said = call("policies", "check", "mine")
    assert "error    unsaid  it plans where nobody said anything of the work\n" in said.out
    assert "strange_policies.py:" in said.out
    assert said.complaint.endswith("policy mine breaks 1 of 11 rules (unsaid): mend these first")


def test_what_a_policy_prints_is_no_part_of_the_document() -> None:
    said, rules = checked(strange.Talks)
    assert (said.code, {row["level"] for row in rules.values()}) == (0, {"ok"})
    assert {"here I am", "hello from plan"} <= set(said.err.splitlines())
