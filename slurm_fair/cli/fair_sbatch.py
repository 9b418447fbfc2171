"""fair-sbatch: sbatch with lease support; what it does not know itself goes on to sbatch as it was written."""

from __future__ import annotations

import errno
import importlib.util
import math
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

import slurm_fair_templates as templates
from slurm_fair.board.health import NAME, read_health
from slurm_fair.cli.base import complain, open_site
from slurm_fair.cli.durations import WHOLE_SECONDS
from slurm_fair.errors import InputError, SlurmError, SlurmFairError
from slurm_fair.looks.bell import ring
from slurm_fair.model import Gate
from slurm_fair.model.counted import counted
from slurm_fair.suggest import nearest

SUBMIT_TIMEOUT_SECONDS = 120.0
PRINT = "print"
NO_PROFILER = (
    "--profile: this site has no profiler ([profiler] enabled): the job waits for its turn as all do"
)
TOO_BIG = "--profile: the job asks for {asked}, and turns of the profiler have {most} at most: it gets none"
NOT_REQUEUED = "--profile: a job that is not to be requeued gets no turn of the profiler"
_MOST_BYTES = 64 * 1024**2  # of a script; sbatch itself takes 4 MB unless the site says otherwise
USUAL_GRACE = 120  # seconds
OF_SBATCH = templates.WITH_VALUE | templates.WITHOUT_VALUE
_NEARLY = 0.8  # so much alike is a word of ours that is misspelt
_ASKS = ("help", "usage", "version")


@dataclass(frozen=True, slots=True)
class SiteGate:
    """The site's gate on managed jobs just now, and how long it holds."""

    kind: str = "begin"
    seconds: int = 1800
    publish_dir: str = ""
    reports: str = "auto"
    turn_gpus: float = math.inf  # that turns of its profiler may have, 0 = it has none; inf = nobody can tell
    max_grace: float = math.inf  # seconds; inf = nobody can tell


def site_gate() -> SiteGate:
    """The site's gate, where a user can read its configuration; a broken one is its admin's to mend."""
    try:
        config = open_site(None).config
    except SlurmFairError:
        return SiteGate()
    seconds = max(int(2 * config.lease.term), 1)
    turn_gpus = config.profiler.gpus if config.profiler.enabled else 0
    kind = gate_now(config.slurm.gate, config.lease.publish_dir, time.time())
    lease = config.lease
    return SiteGate(kind, seconds, lease.publish_dir, config.slurm.reports, turn_gpus, lease.max_grace)


def gate_now(kind: str, publish_dir: str, now: float) -> str:
    """The gate that somebody opens again: none while the controller does not act, by its own word or its silence.

    Where nobody here can read what it says, a begin time takes the place of a hold: it ends by itself.
    """
    said = read_health(Path(publish_dir) / NAME) if publish_dir else None
    if said is None:
        return Gate.BEGIN.value
    return kind if said.acts_at(now) else "none"


def gate_from(environ: Mapping[str, str], site: SiteGate) -> SiteGate:
    """The site's gate, unless the environment names another."""
    return replace(site, kind=environ.get("SLURM_FAIR_GATE", site.kind))


def meant_of_ours(option: templates.Given, own: Collection[str]) -> str:
    """The option of ours that somebody may have meant by one that sbatch does not know either; empty for others.

    Options that sbatch got from a plugin are written as --name=value: of these sbatch itself says what is wrong.
    """
    word = option.words[0] if option.words else ""
    if not word.startswith("--") or "=" in word or any(name.startswith(option.name) for name in OF_SBATCH):
        return ""
    letters = option.name.replace("-", "")
    begins = [name for name in own if len(letters) >= 3 and name.replace("-", "").startswith(letters)]
    return begins[0] if begins else nearest(option.name, own, _NEARLY)


class PassThrough(click.Command):
    """A command whose unknown options, up to the script, belong to sbatch."""

    def parse_args(self, context: click.Context, words: list[str]) -> list[str]:
        """Sort the words: ours to click, the others kept for sbatch in their order."""
        own = {
            name.removeprefix("--"): not getattr(parameter, "is_flag", False)
            for parameter in self.get_params(context)
            for name in parameter.opts
            if name.startswith("--")
        }
        try:
            line = templates.split(words, own)
        except SlurmFairError as error:
            click.echo(f"{context.info_name}: {error}", err=True)
            context.exit(error.exit_code)
        asked = [f"--{option.name}" for option in line.options if option.name in _ASKS]  # -h, -V too
        given = [option for option in line.options if option.name in own and option.name not in _ASKS]
        theirs = tuple(option for option in line.options if option.name not in own)
        for option in theirs:
            if meant := meant_of_ours(option, own):
                said = f"no option {option.words[0]}, here or of sbatch; did you mean --{meant}?"
                click.echo(f"{context.info_name}: {said}", err=True)
                context.exit(InputError.exit_code)
        context.obj = templates.CommandLine(theirs, line.script, line.arguments)
        return super().parse_args(context, [*asked, *(word for option in given for word in option.words)])


@click.command(
    "fair-sbatch",
    cls=PassThrough,
    options_metavar="[SBATCH OPTIONS] [OPTIONS BELOW] SCRIPT [ARGUMENTS]",
    epilog="All other options are sbatch's; write long ones that sbatch got from a plugin as --name=value.",
)
@click.help_option("--help", "--usage")
@click.version_option(package_name="slurm_fair", prog_name="fair-sbatch")
@click.option("--template", default="generic", show_default=True, help="The template of the script.")
@click.option(
    "--gpus-choices",
    default="",
    help="Numbers of GPUs that the job can run with, such as 1,2,4,8 or MIN-MAX[:STEP]; it asks for one of them.",
)
@click.option(
    "--lr-rule",
    default="fixed",
    show_default=True,
    help="Learning rate by number of GPUs: fixed, linear, sqrt or GPUS=LR,GPUS=LR.",
)
@click.option("--app", default="", help="Jobs of one search for parameters share this name.")
@click.option(
    "--checkpoint-signal",
    type=click.Choice(templates.SIGNALS),
    default="USR2",
    show_default=True,
    help="The signal by which the job is asked to save.",
)
@click.option(
    "--checkpoint-command", default="", help="A shell command that saves the state of the running job."
)
@click.option("--saves-and-exits", is_flag=True, help="The program answers the signal by saving and ending.")
@click.option(
    "--pass-on",
    type=click.Choice(templates.PASS_ON),
    default="local",
    show_default=True,
    help="Receivers of the signal: processes of the first node that catch it, every srun step too, or none.",
)
@click.option(
    "--grace",
    type=WHOLE_SECONDS,
    default=USUAL_GRACE,
    show_default=True,
    help="The longest time that the job needs to save: seconds, or 5m, 1h, 15:00.",
)
@click.option(
    "--gate-seconds",
    type=WHOLE_SECONDS,
    help="Seconds after which Slurm starts the job by itself where no controller has let it start; less with a "
    "close --deadline. Without it, as long as this site's leases say.",
)
@click.option(
    "--profile", is_flag=True, help="Have the job's speed measured in short turns on each GPU type."
)
@click.option("--no-gate", is_flag=True, help="Let Slurm start the job as soon as it can.")
@click.option(
    "--print",
    PRINT,
    is_flag=True,
    help="Show the script, and on standard error sbatch's options; submit nothing.",
)
@click.pass_context
def fair_sbatch(context: click.Context, /, **given: Any) -> None:
    """Submit a batch script that can be asked to save and to give its GPUs back."""
    line: templates.CommandLine = context.obj
    try:
        refuse_contradictions(given)
        sys.exit(submit(line, given, os.environ, site_gate()))
    except SlurmFairError as error:
        sys.exit(complain(error, "fair-sbatch"))


def refuse_contradictions(given: Mapping[str, Any]) -> None:
    """Refuse options of which one would be left out without a word."""
    both = "{} and {} exclude each other: give one of them"
    if given["no_gate"] and given["gate_seconds"] is not None:
        raise InputError(both.format("--no-gate", "--gate-seconds"))
    if given["saves_and_exits"] and given["checkpoint_command"]:
        raise InputError(both.format("--saves-and-exits", "--checkpoint-command"))
    if given["lr_rule"] != "fixed" and not given["gpus_choices"]:
        raise InputError("--lr-rule is for jobs of several sizes: add --gpus-choices, or leave it out")


def submit(
    line: templates.CommandLine, given: Mapping[str, Any], environ: Mapping[str, str], site: SiteGate
) -> int:
    """Wrap the script and hand it to sbatch, or show it; sbatch's exit code."""
    script, line = script_and_arguments(line)
    gate = gate_from(environ, site)
    options = templates.Options(
        template=given["template"],
        signal=given["checkpoint_signal"],
        grace_seconds=given["grace"],
        gate="none" if given["no_gate"] else gate.kind,
        gate_seconds=gate.seconds if given["gate_seconds"] is None else given["gate_seconds"],
        gpus_choices=templates.parse_choices(given["gpus_choices"]),
        gpus_reference=templates.gpus_asked((*templates.directives(script), *line.options), environ),
        lr_rule=given["lr_rule"],
        app=given["app"],
        checkpoint_command=given["checkpoint_command"],
        pass_on=given["pass_on"],
        exits_when_saved=given["saves_and_exits"],
        lease_py=lease_file(),
        publish_dir=gate.publish_dir,
        reports=gate.reports,
        script_hash=templates.script_hash(script),
        profile=given["profile"],
    )
    if options.gpus_choices and not options.gpus_reference:
        raise InputError(
            "--gpus-choices is for jobs that ask for GPUs: give one of them, such as --gres=gpu:N"
        )
    templates.refuse_too_late(line, script, time.time(), environ)
    wrapped = templates.wrap(script, line.arguments, options, templates.template_folders(environ))
    argv = templates.submit_argv(line, script, options, time.time(), environ)
    if given[PRINT]:
        click.echo(f"fair-sbatch: the script goes to: sbatch {templates.shell_words(argv)}", err=True)
        sys.stdout.buffer.write(wrapped.encode("utf-8", "surrogateescape"))
        sys.stdout.flush()
    code = 0 if given[PRINT] else run_sbatch(argv, wrapped)
    ring("" if given[PRINT] else gate.publish_dir)  # the daemon, where it runs on this machine
    if code == 0:
        stays = templates.may_not_be_requeued(line, script, environ)
        without_turn = no_turn(gate, options.gpus_reference, stays) if given["profile"] else ()
        stuck = templates.notes_on_size(line, script, environ) if options.gpus_choices else ()
        grace = too_long(gate, given["grace"])
        for note in (*grace, *without_turn, *stuck, *templates.notes(line, script, environ)):
            click.echo(f"fair-sbatch: {note}", err=True)
    return code


def too_long(site: SiteGate, grace: int) -> tuple[str, ...]:
    """The note on a grace that is longer than this site gives; the usual one is nobody's wish."""
    if grace <= site.max_grace or grace == USUAL_GRACE:
        return ()
    return (
        f"--grace: {grace} s are more than this site gives: {site.max_grace:g} s count ([lease] max_grace)",
    )


def no_turn(site: SiteGate, gpus: int, stays: str) -> tuple[str, ...]:
    """The reason why a job gets no turn of the profiler, where that is known when it is submitted."""
    if not site.turn_gpus:
        return (NO_PROFILER,)
    if gpus > site.turn_gpus:
        return (TOO_BIG.format(asked=counted(gpus, "GPU"), most=site.turn_gpus),)
    return (NOT_REQUEUED,) if stays else ()


def script_and_arguments(line: templates.CommandLine) -> tuple[str, templates.CommandLine]:
    """The user's script as text; surrogates carry bytes that are no UTF-8."""
    wrapped = templates.script_of_wrap(line)
    if wrapped is not None:
        if line.script is not None:
            raise InputError("--wrap and a script exclude each other; give one of them")
        return wrapped, line
    if line.script is None:
        raise InputError("no script given; write: fair-sbatch [sbatch options] SCRIPT [ARGUMENTS]")
    try:
        return _read(Path(line.script)).decode("utf-8", "surrogateescape"), line
    except OSError as error:
        raise InputError(
            f"script {line.script}: {error.strerror}; give the path of a readable file"
        ) from None


def _read(script: Path) -> bytes:
    """The whole of it; a pipe that nobody writes to is empty and is not waited for."""
    handle = os.open(script, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    os.set_blocking(handle, True)
    with os.fdopen(handle, "rb") as file:
        text = file.read(_MOST_BYTES + 1)
    if len(text) > _MOST_BYTES:
        raise InputError(f"script {script}: is longer than any script: {_MOST_BYTES} bytes at most")
    return text


def lease_file() -> str:
    """The path of lease.py, for programs whose Python has not slurm_fair installed."""
    spec = importlib.util.find_spec("slurm_fair.lease")
    return spec.origin or "" if spec is not None else ""


def run_sbatch(argv: Sequence[str], script: str) -> int:
    """Let sbatch speak for itself: its output, its errors and its exit code go through."""
    program = shutil.which("sbatch")
    if program is None:
        raise SlurmError("sbatch is not on the PATH; load Slurm's environment, or use --print")
    try:
        done = subprocess.run(
            [program, *argv],
            input=script.encode("utf-8", "surrogateescape"),
            timeout=None if waits_for_end(argv) else SUBMIT_TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SlurmError(
            f"sbatch did not answer within {SUBMIT_TIMEOUT_SECONDS:.0f} s; the job may be submitted all the same: "
            "look with squeue --me before trying again"
        ) from None
    except OSError as problem:
        if problem.errno == errno.E2BIG:
            raise InputError("an option or an argument is too long for sbatch: shorten it") from None
        raise SlurmError(f"{program} cannot be run: {problem.strerror}: ask your admin to mend it") from None
    return done.returncode


def waits_for_end(argv: Sequence[str]) -> bool:
    """True if sbatch was told to stay until the job ends."""
    return any(option.name == "wait" for option in templates.split(argv).options)
