"""Every setting of every policy: what it may be is checked, and said in one line where it cannot be."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import pytest

from slurm_fair.errors import ConfigError
from slurm_fair.policy import load, names, registry
from slurm_fair.policy.settings import Within, allowed, check_settings
from tests.support.command_line import call
from tests.support.simulated import arrival, simulated
from tests.support.simulations import simulated as simulated_here
from tests.support.simulations import written

NAN, INF = math.nan, math.inf


@dataclass(frozen=True)
class Setting:
    """One setting as its annotation has it."""

    policy: str
    key: str
    plain: Any
    within: Within | None

    def __str__(self) -> str:
        return f"{self.policy}.{self.key}"

    @property
    def kind(self) -> Any:
        return get_origin(self.plain) or self.plain

    def of(self, number: float) -> object:
        """A value with this number in it."""
        whole = int(number) if self.plain is int and math.isfinite(number) else number
        return [whole] if self.kind is tuple else {"high": whole} if self.kind is dict else whole


def _settings() -> list[Setting]:
    found = []
    for policy in names():
        kind = registry.kind_of(policy)
        hints = get_type_hints(kind, include_extras=True)
        for field in fields(kind):
            hint = hints[field.name]
            parts = get_args(hint) if get_origin(hint) is Annotated else (hint,)
            within = [part for part in parts[1:] if isinstance(part, Within)]
            found.append(Setting(policy, field.name, parts[0], within[0] if within else None))
    return found


SETTINGS = _settings()
NUMBERS = [setting for setting in SETTINGS if setting.kind in (int, float, tuple, dict)]
WRONG_KINDS: dict[Any, list[object]] = {
    int: ["many", 1.5, True, [1], None, NAN, INF],
    float: ["much", True, [1.0], None],
    bool: ["perhaps", 2, 0.5, None],
    str: ["nowhere", 3, True, None],
    tuple: ["much", 3.0, ["a"], [True], None, {"a": 1.0}, [20.0, 10.0], [10.0, 10.0]],
    dict: ["much", 3.0, [1.0], {"high": "a"}, {"high": True}, None],
    Literal: ["perhaps", 3, True, None, NAN],
}


def _bad(setting: Setting) -> list[object]:
    bad = list(WRONG_KINDS[setting.kind])
    if setting.within is not None:
        least, most = setting.within.least, setting.within.most
        below = least if setting.within.above else math.nextafter(least, -INF)
        below = least - 1 if setting.plain is int else below
        odd = [below, -1.0, -1e300, 1e300, most * 2 + 1, NAN, INF, -INF]
        odd = [number for number in odd if number == below or not least <= number <= most]
        bad += [setting.of(number) for number in odd if setting.plain is not int or math.isfinite(number)]
    return bad


CASES = [(setting, value) for setting in SETTINGS for value in _bad(setting)]


def test_every_number_has_a_range() -> None:
    assert [str(setting) for setting in NUMBERS if setting.within is None] == []


@pytest.mark.parametrize(("setting", "value"), CASES, ids=[f"{s}={str(v)[:30]}" for s, v in CASES])
def test_what_a_setting_cannot_be_is_refused_with_its_name_and_what_it_may_be(
    setting: Setting, value: object
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(setting.policy, {setting.key: value})
    said = str(caught.value)
    assert said.startswith(f"policy.{setting} = ")
    assert "\n" not in said
    assert caught.value.exit_code == 2
    assert setting.key == "placement" or allowed(registry.kind_of(setting.policy), setting.key) in said
    if setting.within is not None:
        assert f"{setting.within.least:.10g}" in said
        assert f"{setting.within.most:.10g}" in said


@pytest.mark.parametrize("setting", NUMBERS, ids=str)
@pytest.mark.parametrize("end", ["least", "most"])
def test_a_policy_runs_with_a_setting_at_either_end_of_its_range(setting: Setting, end: str) -> None:
    assert setting.within is not None
    number = getattr(setting.within, end)
    if end == "least" and setting.within.above:
        number = math.nextafter(number, INF)
    settings = {setting.key: setting.of(number)}
    jobs = [arrival(20.0 * at, gpus=1 + at % 4, seconds=300.0, tenant="ab"[at % 2]) for at in range(6)]
    result = simulated(jobs, setting.policy, gpus=4, gpus_per_node=4, settings=settings)
    if "reset" not in setting.key:  # nothing may be chosen anew for years
        assert result.outcomes.completed.all()


@pytest.mark.parametrize(
    "given",
    [
        "tiresias.thresholds_gpu_seconds=[-1.0]",
        "fifo.reset_seconds=nan",
        "slurm.qos_priority={high=-3}",
        "astraea.keep_long_renewed=99999999999999999999999",
        "gandiva.migrate=yes",
    ],
)
def test_on_the_command_line_it_is_one_line_and_exit_code_2(given: str, tmp_path: Any) -> None:
    key, _, _ = given.partition("=")
    policy, _, _ = key.partition(".")
    trace = written(tmp_path, "a,x,0,1,10")
    said = simulated_here(trace, "--policy", policy, "--set", given)
    assert (said.code, said.out) == (2, "")
    assert f"policy.{key} = " in said.err
    assert said.err.count("\n") == 1


def test_in_the_configuration_it_is_one_line_and_exit_code_2(tmp_path: Any) -> None:
    path = tmp_path / "slurm-fair.toml"
    path.write_text('[policy]\nname = "tiresias"\n[policy.tiresias]\npromote_knob = -2\n')
    said = call("--config", str(path), "run", "--once")
    assert said.code == 2
    assert "policy.tiresias.promote_knob = -2" in said.err
    assert "a number from 0 to 1000000000" in said.err


@dataclass(frozen=True)
class _Own:
    """A site's own policy that says nothing of ranges."""

    pace: float = 1.0

    def plan(self, view: Any) -> Any:
        raise NotImplementedError


def test_a_number_without_a_range_must_be_finite() -> None:
    check_settings(_Own(-3.0), "own")
    with pytest.raises(ConfigError, match=r"policy\.own\.pace = nan: give a number"):
        check_settings(_Own(NAN), "own")
