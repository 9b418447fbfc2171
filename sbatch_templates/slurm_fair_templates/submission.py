"""The arguments of sbatch: the stamp, the gate, and the user's own options unchanged. None of them passes
through a shell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePath

from slurm_fair.errors import TemplateError
from slurm_fair.slurm_text.durations import seconds_in
from slurm_fair_templates.deadline import gate_seconds, seconds_ahead
from slurm_fair_templates.options import Options
from slurm_fair_templates.sbatch_options import CommandLine, Given, directives, effective, has
from slurm_fair_templates.stamp import stamped

FIX_THE_SIZE = ("cpus-per-gpu", "gpus-per-task")  # options with which no size of a job can be changed


def submit_argv(
    line: CommandLine, script: str, options: Options, now: float, environ: Mapping[str, str]
) -> tuple[str, ...]:
    """sbatch's arguments for the wrapped script, which it reads from standard input; the user's wishes stand."""
    own = directives(script)
    words = [word for option in line.options if option.name != "wrap" for word in option.words]
    gate, gate_words = _gate(options, (*own, *line.options), now, environ)
    comment = stamped(effective("comment", line.options, own) or "", options.stamp(gate))
    words += [f"--comment={comment}", *gate_words]
    decided = has("requeue", line.options, own) or has("no-requeue", line.options, own)
    if not (decided or "SBATCH_NO_REQUEUE" in environ):
        words.append("--requeue")
    if not (has("open-mode", line.options, own) or environ.get("SBATCH_OPEN_MODE")):
        words.append("--open-mode=append")
    if not (has("job-name", line.options, own) or environ.get("SBATCH_JOB_NAME")):
        words.append(f"--job-name={PurePath(line.script).name if line.script else 'wrap'}")
    return tuple(words)


def notes(line: CommandLine, script: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Notes for the user on a job that is submitted as it is written, one line each."""
    own = directives(script)
    said = []
    if not gpus_asked((*own, *line.options), environ):
        said.append("no GPUs are asked for: the job is left to plain Slurm, without a lease")
    if stays := may_not_be_requeued(line, script, environ):
        said.append(
            f"{stays}: the job is never asked to give its GPUs back, so it starts only within your account's own "
            "share of the GPUs, unless its whole --time ends within one lease"
        )
    return tuple(said)


def notes_on_size(line: CommandLine, script: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Notes on options with which Slurm cannot change a job's number of GPUs, one line each."""
    own = directives(script)
    given = [f"--{name}" for name in FIX_THE_SIZE if has(name, line.options, own)]
    given += [word for word in map(_variable, FIX_THE_SIZE) if word in environ]
    return tuple(
        f"{option}: the job keeps its number of GPUs, whatever --gpus-choices says" for option in given
    )


def may_not_be_requeued(line: CommandLine, script: str, environ: Mapping[str, str]) -> str:
    """The option that forbids a requeue; empty where none does. Of sbatch's two options the last one stands."""
    for source in (line.options, directives(script)):
        said = [option.name for option in source if option.name in ("requeue", "no-requeue")]
        if said:
            return "--no-requeue" if said[-1] == "no-requeue" else ""
        if "SBATCH_NO_REQUEUE" in environ:  # below the command line, above the script
            return "SBATCH_NO_REQUEUE"
    return ""


def script_of_wrap(line: CommandLine) -> str | None:
    """The script that `--wrap=COMMAND` stands for, or None where a file is given."""
    command = effective("wrap", line.options)
    return None if command is None else f"#!/bin/sh\n{command}\n"


def _variable(option: str) -> str:
    """The variable that stands for an option of sbatch."""
    return "SBATCH_" + option.replace("-", "_").upper()


def gpus_asked(given: Iterable[Given], environ: Mapping[str, str]) -> int:
    """GPUs that the options ask for; 0 where they name none. The later of two stands, as with sbatch."""
    options = tuple(given)

    def value(name: str) -> str:
        asked = effective(name, options)
        return environ.get(_variable(name), "") if asked is None else asked

    nodes, tasks = (_first_number(value(name)) or 1 for name in ("nodes", "ntasks"))
    for name, times in (
        ("gpus", 1),
        ("gpus-per-node", nodes),
        ("gpus-per-task", tasks),
        ("gpus-per-socket", nodes),
    ):
        if count := _gpu_count(value(name), named=False):
            return count * times
    return (
        _gpu_count(value("gres"), named=True) * nodes
        or _gpu_count(value("tres-per-task"), named=True) * tasks
    )


def _gate(
    options: Options, given: tuple[Given, ...], now: float, environ: Mapping[str, str]
) -> tuple[str, tuple[str, ...]]:
    """The gate's key in the stamp and its words for sbatch; a begin time or hold of the user's is left alone."""
    if options.gate == "none" or has("begin", given) or has("hold", given) or not gpus_asked(given, environ):
        return "", ()
    if options.gate == "hold":
        return "hold", ("--hold",)
    limit = _least_time(given, environ)[1]
    seconds = gate_seconds(options.gate_seconds, effective("deadline", given), limit, now)
    moment = f"uts{int(now) + seconds}"
    return moment, (f"--begin={moment}",)


def _least_time(given: tuple[Given, ...], environ: Mapping[str, str]) -> tuple[str, str]:
    """The option by which a job says the time that must fit before its deadline, and its value."""
    for name in ("time-min", "time"):
        if value := effective(name, given):
            return f"--{name}", value
    return "SBATCH_TIMELIMIT", environ.get("SBATCH_TIMELIMIT", "")


def refuse_too_late(line: CommandLine, script: str, now: float, environ: Mapping[str, str]) -> None:
    """Refuse a job whose time does not fit before its deadline: Slurm would end it and never start it."""
    given = (*directives(script), *line.options)
    deadline, (option, time_limit) = effective("deadline", given), _least_time(given, environ)
    ahead, wanted = seconds_ahead(deadline, now) if deadline else None, seconds_in(time_limit)
    if ahead is not None and wanted is not None and wanted > ahead:
        raise TemplateError(
            f"{option}={time_limit} does not fit before --deadline={deadline}, {max(ahead, 0)} s ahead: Slurm "
            "would never start the job; give it less time, a --time-min that fits, or a later deadline"
        )


def _gpu_count(value: str, named: bool) -> int:
    """GPUs in `4`, `a100:4`, or (named) `gpu:4,shard:1`, `gres/gpu:a100=2`, `gpu`."""
    parts = [part for part in value.split(",") if part]
    if named:
        parts = [part for part in parts if re.match(r"(gres[:/])?gpu(?![A-Za-z0-9_])", part)]
    return sum(
        int(found[1]) if (found := re.search(r"(?:^|[:=])([0-9]{1,9})(?![0-9])", part)) else 1
        for part in parts
    )


def _first_number(text: str) -> int:
    """The 2 of `2` or `2-4`."""
    found = re.match(r"[0-9]{1,9}(?![0-9])", text)
    return int(found[0]) if found else 0
