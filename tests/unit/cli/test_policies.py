"""`slurm-fair policies`: the list, and one policy with its settings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from slurm_fair.policy import names
from tests.support import strange_policies as strange
from tests.support.command_line import call
from tests.support.schemas import faults

SCHEMAS = Path(__file__).parents[3] / "docs" / "schema"


def test_the_list_has_every_policy_with_its_idea() -> None:
    document = json.loads(call("policies", "--json").out)
    assert faults(document, json.loads((SCHEMAS / "policies.json").read_text())) == []
    assert tuple(row["policy"] for row in document["policies"]) == names()
    assert [row["policy"] for row in document["policies"] if row["chosen"]] == ["fair"]
    assert all(len(row["idea"].split()) > 3 for row in document["policies"])
    text = call("policies").out
    assert all(name in text for name in names())


@pytest.mark.parametrize("policy", names())
def test_every_policy_can_be_explained(policy: str) -> None:
    document = json.loads(call("policies", policy, "--json").out)
    assert faults(document, json.loads((SCHEMAS / "policy.json").read_text())) == []
    assert json.loads(call("policies", "--json", policy).out) == document
    text = call("policies", policy).out
    assert all(row["setting"] in text for row in document["settings"])
    assert document["file"].rpartition(":")[0].endswith(".py")


def test_the_settings_of_the_site_are_shown(tmp_path: Path) -> None:
    site = tmp_path / "site.toml"
    site.write_text('[policy]\nname = "tiresias"\n[policy.tiresias]\npromote_knob = 8\n')
    document = json.loads(call("--config", str(site), "policies", "tiresias", "--json").out)
    knob = next(row for row in document["settings"] if row["setting"] == "promote_knob")
    assert (document["chosen"], knob["here"], knob["default"]) == (True, 8.0, 0.0)


def test_a_policy_that_cannot_be_loaded_stays_in_the_list_and_says_why() -> None:
    with strange.installed(mine=dict):
        rows = json.loads(call("policies", "--json").out)["policies"]
        refused = [call("policies", "mine"), call("policies", "check", "mine")]
    mine = next(row for row in rows if row["policy"] == "mine")
    assert not mine["usable"]
    assert "is no dataclass with a method plan(view)" in mine["idea"]
    assert [(said.code, "is no dataclass" in said.complaint) for said in refused] == [(2, True), (2, True)]


def test_a_policy_that_exits_while_it_is_imported_stays_in_the_list_and_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "policy_that_exits.py"
    module.write_text("print('importing')\nimport sys\nsys.exit(7)\n")
    monkeypatch.syspath_prepend(tmp_path)
    with strange.entry("mine", "policy_that_exits:Mine"):
        listed, refused = call("policies", "--json"), call("policies", "mine")
    mine = next(row for row in json.loads(listed.out)["policies"] if row["policy"] == "mine")
    assert (listed.code, mine["usable"]) == (0, False)
    assert f"{module}:3: policy 'mine' cannot be loaded" in mine["idea"]
    assert "SystemExit: 7" in mine["idea"]
    assert (refused.code, refused.out, "SystemExit: 7" in refused.err) == (2, "", True)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("srtff",), "unknown policy 'srtff': did you mean 'srtf'?"),
        (("check", "srtff"), "unknown policy 'srtff': did you mean 'srtf'?"),
        (("check",), "Missing argument 'NAME'"),
        (("check", "fifo", "--set", "fifo.reset=1"), "unknown setting 'reset'"),
        (("check", "fifo", "--set", "srtf.reset=1"), "'srtf' is not simulated"),
    ],
)
def test_bad_input_is_one_line(words: tuple[str, ...], says: str) -> None:
    said = call("policies", *words)
    assert said.code == 2
    assert says in said.complaint
