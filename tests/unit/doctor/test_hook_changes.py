"""The submit hook, alone in a Lua without Slurm: a change by which a waiting job becomes managed gates it."""

from __future__ import annotations

import pytest

from tests.support.lua import HOOK_SCENE, lua_library, run_lua

pytestmark = pytest.mark.skipif(lua_library() is None, reason="no library of Lua")
NONE = 'tres_per_node = "gres:gpu:0"'
FAR, NOW = "begin_time = os.time() + 900", "begin_time = os.time()"
NOTED = 'comment = "slurm_fair:v1,begin=uts" .. (os.time() + 5000)'


def answer(was: str, asked: str) -> list[str]:
    """The hook's answer, in how many seconds the job begins, and what its comment says of that."""
    said = run_lua(
        f"""{HOOK_SCENE}
        local was, asked = record({{{was}}}), change({{{asked}}})
        local code = slurm_fair_keep(asked, was, parts, 7, options)
        local ahead = asked.begin_time == 0 and "as-it-was" or asked.begin_time - os.time()
        print(code, ahead, whose(asked.comment or "-"))""",
        timeout_seconds=60,
    )
    return said.rstrip("\n").split("\t")


GATED = ["0", "1800", "slurm_fair:v1,gate=uts"]
AS_ASKED = ["0", "as-it-was", "-"]


@pytest.mark.parametrize(
    ("was", "asked"),
    [
        ("tres_per_node = nil_text", 'tres_per_node = "gres:gpu:1"'),
        ("tres_per_node = nil_text", 'tres_per_job = "gres:gpu:a100:2"'),
        ("tres_per_node = nil_text", 'tres_per_task = "gres:gpu:1"'),
        ("tres_per_node = nil_text", 'tres_per_socket = "gres/gpu:1"'),
        (NONE, 'tres_per_node = "gres:gpu:1", ' + NOW),
        (f'{NONE}, gres_req = "cpu=1,gres/gpu=2"', 'tres_per_node = "gres:gpu:1"'),
        ('partition = "other"', 'partition = "gpu"'),
        ('partition = "other"', 'partition = "other,gpu"'),
        ('account = "nlp"', 'account = "vision"'),
        ('resv_name = "mine"', 'reservation = ""'),
        ("", 'req_nodes = ""'),
        ("", 'features = "a"'),
        ('tres_per_node = "gres:gpu:a:1,gres:gpu:b:1"', 'tres_per_node = "gres:gpu:2"'),
        ('comment = "slurm_fair:v0"', 'comment = "slurm_fair:v1"'),
    ],
)
def test_a_change_by_which_a_job_becomes_managed_gates_it(was: str, asked: str) -> None:
    was = was.replace("nil_text", '"gres:shard:1"')
    assert answer(was, asked) == GATED


@pytest.mark.parametrize(
    ("was", "asked"),
    [
        ("", 'name = "x", nice = 5'),
        ('partition = "other"', 'tres_per_node = "gres:gpu:1"'),
        ('partition = "other"', NOW.replace("os.time()", "0")),
        ("", 'partition = "other"'),
        ("", 'reservation = "mine"'),
        ("job_state = 1", 'features = "a"'),
        ("het_job_id = 5", 'partition = "gpu"'),
        ("priority = 0", 'features = "a"'),  # held: it waits behind its gate when it is let go
        ('comment = "slurm_fair:v0"', 'comment = "slurm_fair:v0,x=1"'),
    ],
)
def test_every_other_change_is_left_as_it_is(was: str, asked: str) -> None:
    assert answer(was, asked)[:2] == AS_ASKED[:2]


def test_a_job_that_becomes_managed_begins_no_earlier_than_its_owner_wants() -> None:
    assert answer(f'partition = "other", {NOTED}', 'partition = "gpu"') == [
        "0",
        "5000",
        "-",
    ]
    assert answer('partition = "other"', f'partition = "gpu", {FAR}') == [
        "0",
        "900",
        "slurm_fair:v1,begin=uts",
    ]


def test_a_job_that_leaves_with_its_gate_moved_is_gated_when_it_comes_back() -> None:
    assert answer("", f'partition = "other", {NOW}')[0] == "0"
    assert answer('partition = "other"', 'partition = "gpu"') == GATED
    assert answer("", f"{NONE}, {NOW}") == GATED


@pytest.mark.parametrize(
    ("was", "asked", "said"),
    [
        ("", FAR, "slurm_fair:v1,begin=uts"),
        ('comment = "slurm_fair:v1,begin=uts99,x=1"', NOW, "slurm_fair:v1,x=1"),
        ("", NOW, "-"),
        ('comment = string.rep("a", 1020)', FAR, "-"),
    ],
)
def test_the_comment_of_a_job_that_is_left_alone_follows_its_begin_time(
    was: str, asked: str, said: str
) -> None:
    assert answer(f'partition = "other", {was}', asked)[2] == said


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ('partition = "other"', "slurm_fair:v1,begin=uts"),
        (NONE, "slurm_fair:v1,begin=uts"),
        (f'{NONE}, comment = "slurm_fair:v1,gate=+900"', "slurm_fair:v1,gate=+900"),
        (f'{NONE}, comment = ""', "slurm_fair:v0,begin=uts"),
        (f'{NONE}, comment = string.rep("a", 1020)', "a" * 1020),
        (f'{NONE}, het_job_offset = 0, comment = "mine"', "mine"),
    ],
)
def test_a_new_job_that_is_left_alone_says_when_its_owner_wants_it_to_begin(fields: str, said: str) -> None:
    text = run_lua(
        f"""{HOOK_SCENE}
        local one = job({{{FAR}, {fields}}})
        slurm_fair_gate(one, parts, 7, options)
        print(one.begin_time - os.time(), whose(one.comment))""",
        timeout_seconds=60,
    )
    assert text.split() == ["900", said]


@pytest.mark.parametrize(
    ("was", "asked", "said"),
    [
        ("", FAR, "slurm_fair:v1,begin=uts"),
        ('comment = "slurm_fair:v1,gate=uts99"', FAR, "slurm_fair:v1,begin=uts"),
        (NOTED, NOW, "slurm_fair:v1"),
        ("", NOW, "-"),
    ],
)
def test_the_comment_follows_the_begin_time_too_while_no_controller_acts(
    was: str, asked: str, said: str
) -> None:
    text = run_lua(
        f"""{HOOK_SCENE}
        options.health = "/nowhere/health.json"
        local was, asked = record({{{was}}}), change({{{asked}}})
        local begin = asked.begin_time
        local code = slurm_fair_keep(asked, was, parts, 7, options)
        print(code, begin == asked.begin_time, whose(asked.comment or "-"))""",
        timeout_seconds=60,
    )
    assert text.split() == ["0", "true", said]


@pytest.mark.parametrize("gate", ["begin", "hold"])
def test_a_comment_without_room_for_ours_stays_one_that_slurm_takes(gate: str) -> None:
    text = run_lua(
        f"""{HOOK_SCENE}
        options.gate = {gate!r}
        local one = job({{comment = "slurm_fair:v1 " .. string.rep("a", 1008)}})
        slurm_fair_gate(one, parts, 7, options)
        print(one.begin_time - os.time(), one.priority ~= 0, #one.comment)""",
        timeout_seconds=60,
    )
    assert text.split() == ["1800", "true", "1022"]
