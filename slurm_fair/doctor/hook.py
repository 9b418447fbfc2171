"""The submit hook: whether it is in force, and whether it says what the configuration says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from slurm_fair.board.health import hooks_file
from slurm_fair.config.sections import Config
from slurm_fair.doctor.facts import Facts
from slurm_fair.doctor.finding import Finding, ok, warning
from slurm_fair.looks.bell import place
from slurm_fair.model import Gate

# A text of Lua, in either kind of quotes.
_TEXT = r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\''
_REMARK = re.compile(rf"({_TEXT})|--\[(=*)\[.*?\]\2\]|--[^\n]*", re.DOTALL)
_KEYS = "gate|gate_seconds|near_seconds|plain|interactive|unplanned|health|wake|partitions|accounts|qos"
_SETTING = re.compile(
    rf"{_TEXT}|(?:^|[{{,;]\s*)[ \t]*({_KEYS})"
    rf"\s*=\s*({_TEXT}|[0-9]{{1,9}}|\{{(?:[^}}\"']|{_TEXT})*\}})",
    re.MULTILINE,
)
_NAME = re.compile(_TEXT)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
_BY_THE_HOOK = ("gate", "refuse")  # what comes of no other part of ours
HOOK_ANEW = "slurm-fair init --only plugin --force"  # without --force init leaves a file that differs


def findings(facts: Facts) -> Iterator[Finding]:
    if facts.reachable:
        yield hook(facts)


def hook(facts: Facts) -> Finding:
    """Check whether jobs without a template are gated from the start."""
    if "lua" not in facts.value("JobSubmitPlugins"):
        lack = "no submit hook: a job without a template may start before it is first seen"
        if facts.config.slurm.gate == Gate.HOLD:
            return warning(lack, "slurm-fair init --only plugin, then JobSubmitPlugins=lua in slurm.conf")
        return ok(f"{lack}, and is then weighed like the others")
    place = facts.conf.parent / "job_submit.lua" if facts.conf else None
    text = _text(place)
    if not text:
        return ok("a job_submit.lua is in force; it cannot be read from here")
    text = _REMARK.sub(r"\1", text)
    if "slurm_fair_gate" not in text:
        return warning(
            f"{place} does not call slurm_fair_gate: jobs without a template may start before they are seen",
            "copy the dofile line and the call from `slurm-fair init --only plugin --print`",
        )
    if "slurm_fair_keep" not in text:
        return warning(
            f"{place} does not call slurm_fair_keep: users may move their gates as often as they like",
            "copy slurm_job_modify from `slurm-fair init --only plugin --print`",
        )
    differs = list(differences(text, facts.config))
    if differs:
        return warning(
            f"{place} does not say what the configuration says: {'; '.join(differs)}",
            f"{HOOK_ANEW} writes it anew; in a script of your own, mend these lines",
        )
    return ok(f"{place} gates jobs at submission, and keeps their gates")


def _text(place: Path | None) -> str:
    try:
        return place.read_text(errors="replace") if place else ""
    except OSError:
        return ""


def differences(text: str, config: Config) -> Iterator[str]:
    """Settings of the hook that are not the configuration's; what the hook leaves out is not looked at."""
    said = dict(pair for pair in _SETTING.findall(_REMARK.sub(r"\1", text)) if pair[0])
    if "gate" in said and _unquoted(said["gate"]) != config.slurm.gate:
        yield f"gate = {said['gate']}, [slurm] gate is {config.slurm.gate!r}"
    scope = config.scope
    kinds = {"plain": scope.plain, "interactive": scope.interactive, "unplanned": scope.unplanned}
    for key, wanted_word in kinds.items():
        if key in said and _unquoted(said[key]) != wanted_word:
            yield f"{key} = {said[key]}, [scope] {key} is {wanted_word!r}"
        if key not in said and wanted_word in _BY_THE_HOOK:
            yield f"{key} is not named, [scope] {key} is {wanted_word!r}"
    seconds = round(2 * config.lease.term)
    if said.get("gate_seconds", "").isdigit() and int(said["gate_seconds"]) != seconds:
        yield f"gate_seconds = {said['gate_seconds']}, two leases are {seconds} s"
    near = config.lease.near_seconds
    if said.get("near_seconds", "").isdigit() and int(said["near_seconds"]) != near:
        yield f"near_seconds = {said['near_seconds']}, two intervals are {near} s"
    health = hooks_file(config.slurm.gate, config.lease.publish_dir)
    if "health" in said and _unquoted(said["health"]) != health:
        yield f'health = {said["health"]}, the controller says it in "{health}"'
    bell = place(config.lease.publish_dir)
    if "wake" in said and _unquoted(said["wake"]) != bell:
        yield f'wake = {said["wake"]}, the controller listens at "{bell}"'
    lists = {"partitions": scope.partitions, "accounts": scope.accounts, "qos": scope.qos}
    for key, wanted in lists.items():
        names = [_unquoted(name) for name in _NAME.findall(said.get(key, ""))]
        if key in said and sorted(names) != sorted(wanted):
            yield f"{key} = {', '.join(names) or 'all'}, [scope] says {', '.join(wanted) or 'all'}"


def _unquoted(text: str) -> str:
    """A text of Lua without its quotes."""
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), text[1:-1])
