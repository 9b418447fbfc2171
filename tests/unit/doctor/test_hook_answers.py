"""The submit hook, alone in a Lua without Slurm: it answers at once, whatever users write into their jobs."""

from __future__ import annotations

import json

import pytest

from tests.support.lua import HOOK_SCENE, lua_library, run_lua

pytestmark = pytest.mark.skipif(lua_library() is None, reason="no library of Lua")
MANY = 1_000_000
WORDS = (
    "slurm_fair:v0",
    "slurm_fair:v0 ",
    "slurm_fair:v1,gate=",
    "slurm_fair:v1,begin=uts1",
    ",gate=",
    "uts1",
    "gres:gpu:",
    "gres/",
    "gpu:1,",
    ":1",
    "1",
    ",",
    " ",
    "a ",
    "a",
)


def test_a_text_of_a_million_letters_costs_no_time_in_any_field_of_a_user() -> None:
    """All of slurmctld waits for the hook; one such text took it many minutes."""
    run_lua(
        f"""{HOOK_SCENE}
        for _, word in ipairs({{{", ".join(json.dumps(word) for word in WORDS)}}}) do
          local text = string.rep(word, math.ceil({MANY} / #word))
          for _, name in ipairs({{"comment", "partition", "account", "tres_per_node", "tres_per_job",
              "tres_per_task", "tres_per_socket", "script", "features", "dependency", "reservation"}}) do
            for _, begin in ipairs({{0, os.time() + 3600}}) do
              slurm_fair_gate(job({{[name] = text, begin_time = begin}}), parts, 7, options)
              slurm_fair_keep(change({{[name] = text, begin_time = begin}}), record({{}}), parts, 7, options)
              slurm_fair_keep(change({{begin_time = begin}}), record({{[name] = text}}), parts, 7, options)
            end
          end
        end""",
        timeout_seconds=60,
    )


@pytest.mark.parametrize(
    ("name", "noted"),
    [("comment", "false"), ("partition", "true"), ("tres_per_node", "true"), ("tres_per_job", "true")],
)
def test_a_text_that_is_not_looked_at_makes_a_job_one_that_is_gated(name: str, noted: str) -> None:
    said = run_lua(
        f"""{HOOK_SCENE}
        local one = job({{[{json.dumps(name)}] = string.rep("a", 5000)}})
        slurm_fair_gate(one, parts, 7, options)
        print(one.begin_time > os.time() + 1000, string.match(one.comment, "gate=uts%d+$") ~= nil)""",
        timeout_seconds=60,
    )
    assert said.split() == ["true", noted]


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("a slurm_fair:v1,gate=+5,grace=9  b", "a slurm_fair:v1,grace=9,begin=uts  b"),
        ("slurm_fair:v1,begin=uts5", "slurm_fair:v1,begin=uts"),
        ("slurm_fair:v1;x slurm_fair:v1", "slurm_fair:v1;x slurm_fair:v1,begin=uts"),
        ("my_slurm_fair:v1,gate=hold slurm_fair:v1", "my_slurm_fair:v1,gate=hold slurm_fair:v1,begin=uts"),
    ],
)
def test_the_stamp_that_the_controller_reads_is_the_one_that_says_whose_a_begin_time_is(
    comment: str, expected: str
) -> None:
    said = run_lua(
        f"""{HOOK_SCENE}
        local asked, was = change({{begin_time = os.time() + 900}}), record({{comment = {json.dumps(comment)}}})
        slurm_fair_keep(asked, was, parts, 7, options)
        print(whose(asked.comment))""",
        timeout_seconds=60,
    )
    assert said == expected + "\n"
