"""The submit hook: where it is missing, where it cannot be read, and each setting that it has of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from slurm_fair.cli.site_files import hook_text
from slurm_fair.config.lease import LeaseSection
from slurm_fair.config.sections import Config, ScopeSection, SlurmSection
from slurm_fair.doctor import Finding, hook
from slurm_fair.doctor.facts import Facts
from tests.support.site_facts import OK, WARNING, facts

LUA = {"JobSubmitPlugins": "lua"}
CALLS = "slurm_fair_gate()\nslurm_fair_keep()\n"


def site(folder: Path | None, config: Config | None = None, plugins: str = "lua") -> Facts:
    """A site whose slurm.conf lies there."""
    seen = facts({"JobSubmitPlugins": plugins}, config)
    return replace(seen, conf=folder / "slurm.conf" if folder else None)


def found(folder: Path, text: str, config: Config | None = None) -> Finding:
    (folder / "job_submit.lua").write_text(text)
    return hook.hook(site(folder, config))


def told(*lines: str, **sections: object) -> list[str]:
    """The differences of a hook of these lines from a configuration."""
    return list(hook.differences("\n".join(lines), Config(**sections)))  # type: ignore[arg-type]


# -- whether it is there --------------------------------------------------------------------------------------


def test_a_slurm_that_does_not_answer_tells_nothing_of_a_hook() -> None:
    assert list(hook.findings(replace(facts(LUA), silence="it is down"))) == []
    assert len(list(hook.findings(facts(LUA)))) == 1


@pytest.mark.parametrize("plugins", ["", "(null)", "all_partitions", "defaults,throttle"])
def test_without_lua_among_the_plugins_there_is_no_hook(plugins: str, tmp_path: Path) -> None:
    (tmp_path / "job_submit.lua").write_text(CALLS)
    assert "no submit hook" in hook.hook(site(tmp_path, plugins=plugins)).what
    held = hook.hook(site(tmp_path, Config(slurm=SlurmSection(gate="hold")), plugins))
    assert (held.level, "JobSubmitPlugins=lua" in held.cure) == (WARNING, True)


def test_lua_may_stand_among_other_plugins(tmp_path: Path) -> None:
    (tmp_path / "job_submit.lua").write_text(CALLS)
    assert "gates jobs" in hook.hook(site(tmp_path, plugins="throttle,lua")).what


def test_a_hook_that_cannot_be_read_is_no_complaint(tmp_path: Path) -> None:
    (tmp_path / "job_submit.lua").mkdir()
    for seen in (site(None), site(tmp_path / "nowhere"), site(tmp_path)):
        assert hook.hook(seen).level is OK
        assert "cannot be read from here" in hook.hook(seen).what


def test_bytes_that_are_no_text_hide_nothing_of_a_hook(tmp_path: Path) -> None:
    (tmp_path / "job_submit.lua").write_bytes(b'-- \xff\xfe\n  gate = "hold",\n' + CALLS.encode())
    assert "gate = \"hold\", [slurm] gate is 'begin'" in hook.hook(site(tmp_path)).what


def test_several_differences_are_one_line_with_one_cure(tmp_path: Path) -> None:
    finding = found(tmp_path, f'  gate = "hold",\n  gate_seconds = 7,\n{CALLS}')
    assert finding.level is WARNING
    assert "\n" not in finding.what
    assert f"{tmp_path / 'job_submit.lua'} does not say what the configuration says: gate = " in finding.what
    assert "; gate_seconds = 7, two leases are 1800 s" in finding.what
    assert hook.HOOK_ANEW in finding.cure


# -- what it says ---------------------------------------------------------------------------------------------


def test_a_hook_that_says_nothing_differs_in_nothing() -> None:
    assert told("") == told(CALLS) == []


@pytest.mark.parametrize(
    "line",
    ['-- gate = "hold"', 'my_gate = "hold"', 'gate_of_mine = "hold"', "gate = wanted", 'x = 1 gate = "hold"'],
)
def test_a_line_that_sets_nothing_of_ours_is_not_looked_at(line: str) -> None:
    assert told(line) == []


def test_of_a_setting_that_is_made_twice_the_last_counts_as_in_lua() -> None:
    assert told('gate = "hold"', 'gate = "begin"') == []
    assert told('gate = "begin"', 'gate = "hold"') == ["gate = \"hold\", [slurm] gate is 'begin'"]


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ('interactive = "gate"', "interactive = \"gate\", [scope] interactive is 'leave'"),
        ('unplanned = "refuse"', "unplanned = \"refuse\", [scope] unplanned is 'leave'"),
        ('plain = "leave"', "plain = \"leave\", [scope] plain is 'quota'"),
        ("gate_seconds = 0", "gate_seconds = 0, two leases are 1800 s"),
        ("gate = 'hold'", "gate = 'hold', [slurm] gate is 'begin'"),
        ("near_seconds=999999999", "near_seconds = 999999999, two intervals are 20 s"),
        ('health = "/elsewhere"', 'health = "/elsewhere", the controller says it in ""'),
        ('wake = ""', 'wake = "", the controller listens at "/run/slurm-fair/wake-up"'),
        ('wake = "/tmp/x=1"', 'wake = "/tmp/x=1", the controller listens at "/run/slurm-fair/wake-up"'),
    ],
)
def test_each_setting_that_differs_is_told_with_what_it_should_be(line: str, wanted: str) -> None:
    assert told(f"\t {line}, -- a remark") == [wanted]


@pytest.mark.parametrize(
    "line", ['gate_seconds = "soon"', "gate_seconds = {}", 'near_seconds = ""', 'gate_seconds = "1800"']
)
def test_seconds_that_are_no_number_are_not_compared(line: str) -> None:
    assert told(line) == []


def test_only_a_hook_that_holds_jobs_has_to_know_whether_the_controller_acts() -> None:
    hold = SlurmSection(gate="hold")
    assert told('health = "/run/slurm-fair/health.json"', slurm=hold) == []
    assert told('health = ""', slurm=hold) != []
    assert told('health = ""') == []


def test_a_site_that_publishes_nothing_has_no_bell() -> None:
    quiet = LeaseSection(publish_dir="")
    assert told('wake = ""', lease=quiet) == []
    assert told('wake = "/run/slurm-fair/wake-up"', lease=quiet) != []


@pytest.mark.parametrize(
    ("line", "scope", "wanted"),
    [
        ('partitions = {"b", "a"}', ScopeSection(partitions=("a", "b")), []),
        ("partitions = {}", ScopeSection(), []),
        ('accounts = {"a"}', ScopeSection(), ["accounts = a, [scope] says all"]),
        ("partitions = {}", ScopeSection(partitions=("a",)), ["partitions = all, [scope] says a"]),
        ('partitions = {"a"}', ScopeSection(partitions=("a", "b")), ["partitions = a, [scope] says a, b"]),
        ('partitions = {"a", "a"}', ScopeSection(partitions=("a",)), ["partitions = a, a, [scope] says a"]),
        (r'accounts = {"a\"b", "c\\d"}', ScopeSection(accounts=('a"b', "c\\d")), []),
        ('accounts = {"x=1,y"}', ScopeSection(accounts=("x=1,y",)), []),
        ('accounts = {"a}b"}', ScopeSection(accounts=("a}b",)), []),
        ("accounts = {'a', \"b\"}", ScopeSection(accounts=("a", "b")), []),
        ('accounts = {"a",\n  "b"}', ScopeSection(accounts=("a", "b")), []),
        ('accounts = {"a--b"}', ScopeSection(accounts=("a--b",)), []),
        ('--[[ accounts = {"b"}\n]]', ScopeSection(accounts=("a",)), []),
        ('--[==[ x\naccounts = {"b"}\n]] ]==]', ScopeSection(accounts=("a",)), []),
        ('note = "a, accounts = {}"', ScopeSection(accounts=("a",)), []),
        (r'accounts = {"a\tb"}', ScopeSection(accounts=("a\tb",)), []),
        ('local settings = { accounts = {"b"} }', ScopeSection(), ["accounts = b, [scope] says all"]),
    ],
)
def test_names_are_compared_in_any_order_and_as_lua_reads_them(
    line: str, scope: ScopeSection, wanted: list[str]
) -> None:
    assert told(line, scope=scope) == wanted


def test_interactive_jobs_that_are_to_be_gated_must_be_named() -> None:
    gate = ScopeSection(interactive="gate")
    assert told(CALLS, scope=gate) == ["interactive is not named, [scope] interactive is 'gate'"]
    assert told('interactive = "gate"', scope=gate) == []


def test_jobs_that_are_to_be_refused_must_be_named() -> None:
    refuse = ScopeSection(unplanned="refuse")
    assert told(CALLS, scope=refuse) == ["unplanned is not named, [scope] unplanned is 'refuse'"]
    assert told('unplanned = "refuse"', scope=refuse) == []


@pytest.mark.parametrize("term", [0.75, 600.25, 86_400.0])
@pytest.mark.parametrize("interval", [0.5, 30.0])
def test_what_init_writes_never_differs(term: float, interval: float) -> None:
    config = Config(
        lease=LeaseSection(term=term, interval=interval),
        scope=ScopeSection(
            ("a b", "{}"),
            ('c\\"', "d=', -- x"),
            ("q",),
            plain="leave",
            interactive="gate",
            unplanned="refuse",
        ),
        slurm=SlurmSection(gate="hold"),
    )
    assert list(hook.differences(hook_text(config), config)) == []
