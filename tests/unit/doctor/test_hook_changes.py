"""The submit hook, alone in a Lua without Slurm: a change by which a waiting job becomes managed gates it."""

from __future__ import annotations

import pytest

from slurm_fair.slurm.reading.stamp import read_stamp
from tests.support.lua import HOOK_SCENE, lua_library, run_lua

pytestmark = pytest.mark.skipif(lua_library() is None, reason="no library of Lua")
NONE = 'tres_per_node = "gres:gpu:0"'
FAR, NOW = "begin_time = os.time() + 900", "begin_time = os.time()"
NOTED = 'comment = "slurm_fair:v1,begin=uts" .. (os.time() + 5000)'


def answer(was: str, asked: str, settings: str = "") -> list[str]:
    """The hook's answer, in how many seconds the job begins, and what its comment says of that."""
    said = run_lua(
        f"""{HOOK_SCENE}
        {settings}
        local was, asked = record({{{was}}}), change({{{asked}}})
        local code = slurm_fair_keep(asked, was, parts, 7, options)
        local ahead = asked.begin_time == 0 and "as-it-was" or asked.begin_time - os.time()
        print(code, ahead, whose(asked.comment or "-"))""",
        timeout_seconds=60,
    )
    return said.rstrip("\n").split("\t")


GATED = ["0", "1800", "slurm_fair:v1,gate=uts"]
AS_ASKED = ["0", "as-it-was", "-"]


SHARD = 'tres_per_node = "gres:shard:1"'
REFUSED = "2002"


@pytest.mark.parametrize(
    ("was", "asked"),
    [
        (SHARD, 'tres_per_node = "gres:gpu:1"'),
        (SHARD, 'tres_per_job = "gres:gpu:a100:2"'),
        (SHARD, 'tres_per_task = "gres:gpu:1"'),
        (SHARD, 'tres_per_socket = "gres/gpu:1"'),
        (SHARD, "ntasks_per_tres = 1"),
        (NONE, 'tres_per_node = "gres:gpu:1", ' + NOW),
        ('partition = "other"', 'partition = "gpu"'),
        ('partition = "other"', 'partition = "other,gpu"'),
        ('account = "nlp"', 'account = "vision"'),
        ('resv_name = "mine"', 'reservation = ""'),
        ('comment = "slurm_fair:v0"', 'comment = "slurm_fair:v1"'),
    ],
)
def test_a_job_is_held_when_it_becomes_managed_and_gated_when_it_is_let_go(was: str, asked: str) -> None:
    """Slurm may refuse another part of the change when it has made this one, and then sets no gate."""
    assert answer(was, asked)[0] == REFUSED
    assert answer(f"{was}, priority = 0", asked)[0] == "0"
    becomes = f"{was}, {asked.replace(NOW, 'begin_time = 0')}, priority = 0".replace('"mine"', '""')
    assert answer(becomes, "priority = 4294967295") == GATED
    for more in ("nice = 5", 'dependency = "after:1"', 'features = "a"'):
        assert answer(becomes, f"priority = 4294967295, {more}")[0] == REFUSED


@pytest.mark.parametrize("was", [SHARD, NONE])
def test_a_job_without_gpus_is_not_brought_among_those_that_take_turns(was: str) -> None:
    """It may have asked for whole nodes, and the hook is not shown that again."""
    for place, there in (
        ('partition = "other"', 'partition = "gpu"'),
        ('account = "nlp"', 'account = "vision"'),
    ):
        assert answer(f"{was}, {place}", there)[0] == REFUSED
        assert answer(f"{was}, {place}, priority = 0", there)[0] == REFUSED
    assert answer(was, 'partition = "gpu"') == AS_ASKED


@pytest.mark.parametrize(
    ("was", "asked"),
    [
        (f'{NONE}, gres_req = "cpu=1,gres/gpu=2"', 'tres_per_node = "gres:gpu:1"'),
        ("", 'req_nodes = ""'),
        ("", 'features = "a"'),
        ("", 'partition = "gpu"'),
        ('tres_per_node = "gres:gpu:a:1,gres:gpu:b:1"', 'tres_per_node = "gres:gpu:2"'),
        ('comment = "slurm_fair:v1"', 'comment = "slurm_fair:v1", features = "a"'),
    ],
)
def test_a_change_by_which_a_managed_job_becomes_another_gates_it(was: str, asked: str) -> None:
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
        ('comment = "slurm_fair:v0"', 'comment = "slurm_fair:v0,x=1"'),
    ],
)
def test_every_other_change_is_left_as_it_is(was: str, asked: str) -> None:
    assert answer(was, asked)[:2] == AS_ASKED[:2]


def test_a_job_that_becomes_managed_begins_no_earlier_than_its_owner_wants() -> None:
    held = "priority = 0"
    assert answer(f'partition = "other", {NOTED}, {held}', 'partition = "gpu"') == ["0", "5000", "-"]
    assert answer(f"{NOTED}, {held}", "priority = 4294967295") == ["0", "5000", "-"]
    assert answer(f'partition = "other", {held}', f'partition = "gpu", {FAR}') == [
        "0",
        "900",
        "slurm_fair:v1,begin=uts",
    ]


def test_a_job_may_leave_with_its_gate_moved() -> None:
    assert answer("", f'partition = "other", {NOW}')[0] == "0"
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


# -- gates that stay, and jobs that take GPUs without asking for them -----------------------------------------

OURS = 'comment = "slurm_fair:v1,gate=uts5"'
WHOLE = 'tres_per_node = "gres:shard:1", comment = "slurm_fair:v1,gate=uts5"'


@pytest.mark.parametrize("was", [OURS, f"{OURS}, array_task_cnt = 5", WHOLE])
def test_the_gate_of_a_job_is_not_its_owners_to_move(was: str) -> None:
    for begin in (NOW, "begin_time = os.time() - 500", "begin_time = os.time() + 15"):
        assert answer(was, begin)[0] == REFUSED
    assert answer(was, FAR)[:2] == ["0", "900"]


def test_a_begin_time_of_its_owners_own_becomes_a_gate_when_it_is_moved_to_now() -> None:
    assert answer(NOTED, NOW) == GATED


def test_a_job_without_a_word_of_ours_is_gated_when_it_is_moved_to_now() -> None:
    """It was sent before there was a hook, or its comment had no room: its begin time may be its owner's own."""
    assert answer("", NOW) == GATED


def test_a_held_job_may_begin_at_any_time() -> None:
    assert answer("priority = 0", NOW)[0] == "0"
    assert answer(f"priority = 0, {NOTED}", NOW)[::2] == ["0", "slurm_fair:v1"]


@pytest.mark.parametrize("state", [1, 2])
def test_a_job_that_has_its_gpus_stays_one_that_can_be_requeued(state: int) -> None:
    assert answer(f"job_state = {state}", "requeue = 0")[0] == REFUSED
    assert answer(f"job_state = {state}", "requeue = 1")[0] == "0"
    assert answer("job_state = 3", "requeue = 0")[0] == "0"


NUMBERS = (
    "min_nodes",
    "max_nodes",
    "num_tasks",
    "min_cpus",
    "cpus_per_task",
    "pn_min_cpus",
    "ntasks_per_node",
    "min_mem_per_node",
    "min_mem_per_cpu",
    "shared",
)


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_that_makes_a_job_another_gates_it_anew(name: str) -> None:
    assert answer("", f"{name} = 2") == GATED
    for nothing in (65534, 65535, 4294967294, 4294967295):
        assert answer("", f"{name} = {nothing}") == AS_ASKED


def test_a_comment_that_its_owner_writes_keeps_the_words_of_ours() -> None:
    assert answer('comment = "y"', 'comment = "x"') == ["0", "as-it-was", "x"]
    assert answer("", 'comment = "x"') == ["0", "as-it-was", "x slurm_fair:v1"]
    assert answer("", 'comment = "slurm_fair:v0 x"')[0] == GATED[0]
    assert answer(WHOLE, 'comment = "x"') == ["0", "as-it-was", "x slurm_fair:v1,gate=uts"]
    own = 'comment = "slurm_fair:v1,begin=uts9"'
    assert answer(own, 'comment = "slurm_fair:v1,begin=uts77777 x"')[2] == "slurm_fair:v1,begin=uts x"
    long = 'comment = string.rep("x", 1010)'
    assert [answer(was, long)[0] for was in (OURS, WHOLE, 'comment = "y"')] == [REFUSED, REFUSED, "0"]
    assert answer(OURS, f"{long}, {FAR}")[0] == REFUSED


def test_a_job_of_whole_nodes_keeps_the_mark_of_a_gate_beside_a_begin_time_of_its_owners_own() -> None:
    both = "slurm_fair:v1,gate=uts,begin=uts"
    assert answer(WHOLE, FAR) == ["0", "900", both]
    noted = (
        'tres_per_node = "gres:shard:1", comment = "slurm_fair:v1,gate=uts0,begin=uts" .. (os.time() + 5000)'
    )
    assert answer(noted, NOW)[2] == "slurm_fair:v1,gate=uts"
    assert answer(noted, 'comment = "x"')[2] == f"x {both}"


def test_a_job_of_another_qos_is_left_as_it_is() -> None:
    settings = 'options.qos = {"high"}'
    for was, asked, code in (
        ('qos = "low"', NOW, "0"),
        ('qos = "high"', NOW, REFUSED),
        ('name = "x"', NOW, REFUSED),  # which QOS it got is not shown
        ('qos = "high"', f'qos = "low", {NOW}', "0"),
    ):
        assert answer(f"{OURS}, {was}", asked, settings)[0] == code, (was, asked)
    assert answer('qos = "low"', 'qos = "high"', settings)[0] == REFUSED
    assert answer('qos = "low", priority = 0', 'qos = "high"', settings) == GATED


@pytest.mark.parametrize("digits", ["1" * 13, "9223372036854775807", "9" * 20, "5x"])
def test_a_begin_time_that_no_hook_noted_is_nobodys(digits: str) -> None:
    """A number that Slurm cannot hold came out as now."""
    for forged in (
        f"slurm_fair:v1,begin=uts{digits}",
        f"slurm_fair:v1,gate=uts5 slurm_fair:v1,begin=uts{digits}",
    ):
        assert answer(f'comment = "{forged}"', "num_tasks = 1")[:2] == GATED[:2]
    assert answer(f'comment = "{forged}"', NOW)[0] == REFUSED


def test_a_job_that_has_its_gpus_goes_on_to_say_that_it_saves() -> None:
    for state in (1, 2):
        was = f'job_state = {state}, comment = "slurm_fair:v1,signal=USR1,gate=uts5"'
        kept = "x slurm_fair:v1,signal=USR1,gate=uts"
        assert answer(was, 'comment = "x"') == ["0", "as-it-was", kept]
        assert answer(was, 'comment = "slurm_fair:v0"')[2].endswith("slurm_fair:v1,signal=USR1,gate=uts")
        assert answer(was, 'comment = string.rep("x", 1010)')[0] == REFUSED


def test_a_change_of_an_array_leaves_each_of_its_records_its_own_words() -> None:
    """Slurm hands the change on from record to record, with what the hook wrote into it."""
    said = run_lua(
        f"""{HOOK_SCENE}
        local asked = change({{priority = 4294967295}})
        local own = os.time() + 5000
        for _, comment in ipairs({{"a slurm_fair:v1,gate=uts5", "b slurm_fair:v1,gate=uts5",
            "c slurm_fair:v1,begin=uts" .. own}}) do
          local was = record({{priority = 0, array_job_id = 3, comment = comment}})
          slurm_fair_keep(asked, was, parts, 7, options)
          print(asked.begin_time - os.time() > 4000, whose(asked.comment))
        end""",
        timeout_seconds=60,
    )
    assert said.splitlines() == [
        "false\ta slurm_fair:v1,gate=uts",
        "false\tb slurm_fair:v1,gate=uts",
        "true\t",
    ]


@pytest.mark.parametrize("more", ["nice = 5", 'dependency = "after:1"', 'clusters = "a"', "contiguous = 1"])
@pytest.mark.parametrize(
    "change", ["time_limit = 90", "requeue = 0", 'tres_per_node = "gres:gpu:8"', "min_nodes = 2"]
)
def test_a_change_that_gates_a_job_anew_changes_nothing_else_unless_it_is_held(
    change: str, more: str
) -> None:
    assert answer(OURS, change)[:2] == GATED[:2]
    assert answer(OURS, f"{change}, {more}")[0] == REFUSED
    assert answer(f"{OURS}, priority = 0", f"{change}, {more}")[0] == "0"
    assert answer(OURS, more)[:2] == AS_ASKED[:2]


def test_a_held_job_that_becomes_another_has_a_gate_from_then_on() -> None:
    """Slurm lets a job go that it held for bad constraints, as soon as they change."""
    assert answer(f"{OURS}, priority = 0", 'features = "a"') == GATED


def test_a_word_of_a_gate_makes_no_job_of_gpus() -> None:
    for word in ("slurm_fair:v1,gate=uts5", "slurm_fair:v1,gate=uts0"):
        was = f'tres_per_node = "gres:shard:1", comment = "{word}"'
        assert answer(was, 'tres_per_node = "gres:gpu:8"')[0] == REFUSED
        assert answer(f"{was}, priority = 0", 'tres_per_node = "gres:gpu:8"')[0] == "0"


@pytest.mark.parametrize(
    ("words", "becomes"),
    [
        ("slurm_fair:v0 slurm_fair:v1", "slurm_fair_v0 slurm_fair_v1 slurm_fair:v1,signal=USR1,gate=uts"),
        ("slurm_fair:v1,grace=x", "slurm_fair_v1,grace=x slurm_fair:v1,signal=USR1,gate=uts"),
        ("slurm_faislurm_fair:r:v0", "slurm_faislurm_fair:r:v0 slurm_fair:v1,signal=USR1,gate=uts"),
        ("see the slurm_fair: manual", "see the slurm_fair: manual slurm_fair:v1,signal=USR1,gate=uts"),
    ],
)
def test_the_first_stamp_is_the_one_that_counts(words: str, becomes: str) -> None:
    was = 'job_state = 1, comment = "slurm_fair:v1,signal=USR1,gate=uts5"'
    assert answer(was, f'comment = "{words}"')[2] == becomes
    stamp = read_stamp(becomes.replace("uts", "uts9"))
    assert stamp is not None
    assert stamp.checkpoints


@pytest.mark.parametrize("typo", ["signal=INT", "grace=1.5m", "grace=9999999", "gate=now"])
@pytest.mark.parametrize("gate", ["begin", "hold"])
def test_a_stamp_that_cannot_be_read_keeps_nobody_waiting_for_ever(typo: str, gate: str) -> None:
    """The controller reads the first word that has the form of a stamp, and knows its gate by it alone."""
    said = run_lua(
        f"""{HOOK_SCENE}
        options.plain, options.gate = "quota", "{gate}"
        local one = job({{comment = "mine slurm_fair:v1,{typo}"}})
        slurm_fair_gate(one, parts, 7, options)
        print(one.comment)""",
        timeout_seconds=60,
    ).strip()
    stamp = read_stamp(said)
    assert stamp is not None
    assert stamp.gate != ""
    assert not stamp.checkpoints
    assert said.startswith("mine slurm_fair")


def test_a_job_of_whole_nodes_has_its_mark_also_while_no_controller_acts() -> None:
    said = run_lua(
        f"""{HOOK_SCENE}
        options.health = "/nowhere/health.json"
        local one = job({{tres_per_node = "gres:shard:1", shared = 0}})
        print(slurm_fair_gate(one, parts, 7, options), one.begin_time, one.comment)
        local text = "slurm_fair:v1 " .. string.rep("x", 1005)
        local long = job({{tres_per_node = "gres:shard:1", shared = 0, comment = text}})
        print(slurm_fair_gate(long, parts, 7, options), long.begin_time)""",
        timeout_seconds=60,
    )
    assert said.splitlines() == ["0\t0\tslurm_fair:v1,gate=uts0", "0\t0"]
