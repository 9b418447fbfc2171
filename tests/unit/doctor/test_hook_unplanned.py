"""The submit hook, alone in a Lua without Slurm: jobs that nobody can plan are refused where the site says so."""

from __future__ import annotations

import pytest

from tests.support.lua import HOOK_SCENE, lua_library, run_lua

pytestmark = pytest.mark.skipif(lua_library() is None, reason="no library of Lua")
ACCESS_DENIED = "2002"
TWO_TYPES = 'tres_per_node = "gres:gpu:a100:1,gres:gpu:v100:1"'
PART = "het_job_offset = 1"
REFUSES = 'options.unplanned = "refuse"'


def submitted(fields: str, settings: str = REFUSES, uid: int = 7) -> tuple[str, bool]:
    """The hook's answer to a new job, and whether the job got a gate."""
    said = run_lua(
        f"""{HOOK_SCENE}
        {settings}
        local one = job({{{fields}}})
        print(slurm_fair_gate(one, parts, {uid}, options), one.begin_time ~= 0)""",
        timeout_seconds=60,
    )
    answer, gated = said.split()
    return answer, gated == "true"


def changed(was: str, asked: str, settings: str = REFUSES, uid: int = 7) -> str:
    """The hook's answer to a change."""
    return run_lua(
        f"""{HOOK_SCENE}
        {settings}
        print(slurm_fair_keep(change({{{asked}}}), record({{{was}}}), parts, {uid}, options))""",
        timeout_seconds=60,
    ).strip()


@pytest.mark.parametrize(
    "fields",
    [
        PART,
        "het_job_offset = 0",
        TWO_TYPES,
        'tres_per_node = "gpu:a100:1,gres/gpu:v100=2"',
        'tres_per_node = "gres:gpu:a100,gres:gpu:v100"',
        'tres_per_node = "gres:gpu:a100:1", tres_per_job = "gres:gpu:v100:1"',
        'tres_per_node = "gres:gpu:1", tres_per_task = "gres:gpu:a:1,gres:shard:2,gres:gpu:b:1"',
        f'{TWO_TYPES}, partition = "other,gpu"',
        f'{PART}, script = "", comment = ""',  # so Slurm shows the later parts of a batch job
        f'{TWO_TYPES}, script = ""',
        f'{TWO_TYPES}, comment = ""',
        f"{TWO_TYPES}, priority = 0",
        f"{TWO_TYPES}, begin_time = os.time() + 900",
    ],
)
def test_a_job_that_nobody_can_plan_is_refused(fields: str) -> None:
    assert submitted(fields)[0] == ACCESS_DENIED


@pytest.mark.parametrize(
    "fields",
    [
        "",
        'tres_per_node = "gres:gpu:a100:1,gres:gpu:a100:2"',
        'tres_per_node = "gres:gpu:a100:1", tres_per_job = "gres:gpu:a100:4"',
        'tres_per_node = "gres:gpu:a100:1,gres:gpu:v100:0"',
        'tres_per_node = "gres:gpu:a100:1,gres:shard:v100:1"',
        'tres_per_node = "gres:gpu:a100:1,gres:gpu:2"',
    ],
)
def test_a_job_of_one_type_is_gated_as_ever(fields: str) -> None:
    assert submitted(fields) == ("0", True)


@pytest.mark.parametrize(
    "fields",
    [
        f'{PART}, tres_per_node = "gres:gpu:0"',
        f'{PART}, tres_per_node = "gres:shard:1"',
        f'{PART}, partition = "other"',
        f'{PART}, account = "nlp"',
        f'{PART}, reservation = "ours"',
        f'{TWO_TYPES}, reservation = "ours"',
    ],
)
def test_what_is_left_alone_for_another_reason_passes(fields: str) -> None:
    assert submitted(fields)[0] == "0"


@pytest.mark.parametrize("fields", [PART, TWO_TYPES])
def test_a_site_says_whether_they_are_refused_while_a_controller_acts(fields: str) -> None:
    for leaves in ('options.unplanned = "leave"', "", f'{REFUSES}; options.health = "/nowhere/health.json"'):
        assert submitted(fields, leaves)[0] == "0"


def test_root_is_never_refused() -> None:
    assert submitted(PART, uid=0)[0] == "0"
    assert changed("", TWO_TYPES, uid=0) == "0"


@pytest.mark.parametrize(
    ("was", "asked"),
    [
        ('name = "x"', TWO_TYPES),
        ('tres_per_node = "gres:gpu:0"', TWO_TYPES),
        ('tres_per_job = "gres:gpu:v100:1"', 'tres_per_node = "gres:gpu:a100:1"'),
        (f'partition = "other", {TWO_TYPES}', 'partition = "gpu"'),
        ('partition = "other", gres_req = "gpu:a:1,gpu:b:1"', 'partition = "gpu"'),
        (f'account = "nlp", {TWO_TYPES}', 'account = "vision"'),
        (f'resv_name = "ours", {TWO_TYPES}', 'reservation = ""'),
        ('comment = ""', TWO_TYPES),
        ("het_job_id = 5", 'tres_per_node = "gres:gpu:2"'),
        ('het_job_id = 5, partition = "other"', 'partition = "gpu"'),
    ],
)
def test_a_change_that_makes_such_a_job_of_a_waiting_one_is_refused(was: str, asked: str) -> None:
    for held in ("", ", priority = 0"):
        assert changed(was + held, asked) == ACCESS_DENIED
    assert changed(f"{was}, priority = 0", asked, 'options.unplanned = "leave"') == "0"


@pytest.mark.parametrize(
    ("was", "asked"),
    [
        (TWO_TYPES, 'tres_per_node = "gres:gpu:a100:1"'),
        (f'{TWO_TYPES}, gres_req = "gpu:a100:1,gpu:v100:1"', 'tres_per_node = "gres:gpu:2"'),
        (TWO_TYPES, "nice = 5"),
        (TWO_TYPES, 'features = "a"'),
        (TWO_TYPES, 'partition = "other"'),
        ("het_job_id = 5", "nice = 5"),
        ("", 'reservation = "ours", ' + TWO_TYPES),
        (f"job_state = 1, {TWO_TYPES}", 'features = "a"'),
    ],
)
def test_every_other_change_passes(was: str, asked: str) -> None:
    assert changed(was, asked) == "0"
