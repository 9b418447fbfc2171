"""A policy's author is told what is wrong in one line, with the file and the line of his own code."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

import pytest

from slurm_fair.errors import PolicyError, SlurmFairError
from slurm_fair.policy import load
from slurm_fair.sim import rules_for
from slurm_fair.sim.run import simulate
from slurm_fair.sim.trial import stages
from slurm_fair.tick import decide
from tests.support import strange_policies as strange
from tests.support.accounts import view
from tests.support.builders import job, snapshot
from tests.support.fake_jobs import PushedClock


def line_of(place: str) -> str:
    """The text of a `file:line`."""
    file, _, number = place.rpartition(":")
    return Path(file).read_text().splitlines()[int(number) - 1]


@pytest.mark.parametrize(
    ("kind", "what", "line"),
    [
        (strange.Raises, "ZeroDivisionError: float division by zero", "return view.now / 0"),
        (strange.Nothing, "TypeError: plan(view) returned None, not a Plan", "def plan"),
        (strange.Twice, "ListedTwice: the order lists job 1 (row 0) 2 times", "np.append(rows, rows)"),
        (strange.Crowded, "the plan cannot be: it gives GPUs away that are not free", "def plan"),
    ],
    ids=["it raises", "it returns nothing", "what it calls raises", "its plan cannot be"],
)
def test_a_simulation_names_the_line_of_the_policy_that_fails(kind: type, what: str, line: str) -> None:
    with strange.installed(mine=kind), pytest.raises(SlurmFairError) as caught:
        simulate(stages()[0].scenario, rules_for("mine", {}))
    said = str(caught.value)
    found = re.fullmatch(r"(\S+:\d+): policy mine failed at second [\d.]+ of the trace: (.*)", said)
    assert found, said
    assert what in found[2].replace("slurm_fair.policy.orders.walk.", "")
    assert found[1].startswith(inspect.getfile(kind))
    assert line in line_of(found[1])


def test_a_memory_that_no_journal_keeps_ends_a_simulation() -> None:
    with strange.installed(mine=strange.KeepsASet), pytest.raises(SlurmFairError) as caught:
        simulate(stages()[0].scenario, rules_for("mine", {}))
    said = str(caught.value)
    assert said.endswith("its plan's memory: the journal keeps plain data only, not a set")
    assert "def plan" in line_of(said.partition(": policy mine")[0])


def test_the_daemon_notes_the_line_and_keeps_the_leases() -> None:
    seen = view(snapshot(nodes={"n1": 8}, jobs=[job(1), job(2)]))
    rules = rules_for("fifo", {})
    with strange.installed(mine=strange.Twice):
        plan = decide(seen, rules_for("mine", {}), PushedClock(0.0))
    place, _, rest = plan.note.partition(": ")
    assert "np.append(rows, rows)" in line_of(place)
    assert rest.startswith("the policy raised: Traceback")
    assert plan.granted.size == 0 < decide(seen, rules, PushedClock(0.0)).granted.size


BROKEN = {
    "a syntax error": ("class Own(:\n", "SyntaxError", 1),
    "an error while it is imported": ("x = 1\ny = x / 0\n", "ZeroDivisionError: division by zero", 2),
    "a module that it needs is missing": (
        "from __future__ import annotations\nimport no_such_module\n",
        "No module named 'no_such_module'",
        2,
    ),
    "an annotation that is nothing": (
        "from __future__ import annotations\nfrom dataclasses import dataclass\n\n\n@dataclass(frozen=True)\n"
        "class Own:\n    knob: Flaot = 1.0\n\n    def plan(self, view):\n        return None\n",
        "an annotation of a setting cannot be read: NameError: name 'Flaot' is not defined",
        9,
    ),
    "it cannot be made": (
        "from dataclasses import dataclass\n\n\n@dataclass(frozen=True)\nclass Own:\n    knob: float = 1.0\n\n"
        "    def __post_init__(self):\n        raise RuntimeError('not\\ntoday')\n\n"
        "    def plan(self, view):\n        return None\n",
        "cannot be made: RuntimeError: not today",
        9,
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_policy_that_cannot_be_loaded_is_one_line_that_names_the_place(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, says, number = BROKEN[case]
    (tmp_path / "own_policy.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    with strange.entry("mine", "own_policy:Own"), pytest.raises(PolicyError) as caught:
        load("mine", {})
    sys.modules.pop("own_policy", None)
    said = str(caught.value)
    assert "\n" not in said
    assert said.startswith(f"{tmp_path / 'own_policy.py'}:{number}: policy 'mine'")
    assert says in said
    assert caught.value.exit_code == 2


def test_a_class_that_is_not_there_is_told_without_a_place(tmp_path: Path) -> None:
    with strange.entry("mine", "slurm_fair_plugins.fifo:Fofi"), pytest.raises(PolicyError) as caught:
        load("mine", {})
    assert str(caught.value).startswith("policy 'mine' cannot be loaded from slurm_fair_plugins.fifo:Fofi: ")
