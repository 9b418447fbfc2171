"""Enough of sbatch's command line to find the script in it and to see what the user decided.

sbatch itself stays the judge: every option goes on to it unchanged and in order.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from slurm_fair.errors import TemplateError

# Long options of sbatch 22.05 to 26.05 with a value; those with none or an optional one (--name[=value]) below.
_WITH_VALUE = """
    account acctg-freq array batch bb bbf begin chdir cluster-constraint clusters comment constraint
    container container-id core-spec cores-per-socket cpu-freq cpus-per-gpu cpus-per-task deadline delay-boot
    dependency distribution error exclude export export-file extra extra-node-info gid gpu-bind gpu-freq gpus
    gpus-per-node gpus-per-socket gpus-per-task gres gres-flags hint input job-name kill-on-invalid-dep licenses
    mail-type mail-user mcs-label mem mem-bind mem-per-cpu mem-per-gpu mincpus network nodefile nodelist nodes
    ntasks ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket open-mode output partition power
    prefer priority profile qos reservation segment signal sockets-per-node switches thread-spec
    threads-per-core time time-min tmp tres-bind tres-per-task uid wait-all-nodes wckey wrap
"""
WITH_VALUE = frozenset(_WITH_VALUE.split())
_WITHOUT_VALUE = """
    consolidate-segments contiguous exclusive get-user-env help hold ignore-pbs nice no-kill no-requeue
    oom-kill-step overcommit oversubscribe parsable propagate quiet reboot requeue resv-ports share spread-job
    spread-segments stepmgr test-only usage use-min-nodes verbose version wait
"""
WITHOUT_VALUE = frozenset(_WITHOUT_VALUE.split())
SHORT_WITH_VALUE = {
    "A": "account", "a": "array", "B": "extra-node-info", "b": "begin", "C": "constraint", "c": "cpus-per-task",
    "D": "chdir", "d": "dependency", "e": "error", "F": "nodefile", "G": "gpus", "i": "input", "J": "job-name",
    "L": "licenses", "M": "clusters", "m": "distribution", "N": "nodes", "n": "ntasks", "o": "output",
    "p": "partition", "q": "qos", "S": "core-spec", "t": "time", "w": "nodelist", "x": "exclude",
}  # fmt: skip
SHORT_WITHOUT_VALUE = {
    "H": "hold", "h": "help", "k": "no-kill", "O": "overcommit", "Q": "quiet", "s": "oversubscribe",
    "V": "version", "v": "verbose", "W": "wait",
}  # fmt: skip
HETEROGENEOUS = "heterogeneous jobs cannot be leased; submit them with plain sbatch"
MAGIC = ("#SBATCH", "#PBS", "#BSUB")


@dataclass(frozen=True, slots=True)
class Given:
    """One option as the user wrote it: its words, its full name, its value."""

    words: tuple[str, ...]
    name: str
    value: str | None


@dataclass(frozen=True, slots=True)
class CommandLine:
    """sbatch's command line, taken apart."""

    options: tuple[Given, ...]
    script: str | None
    arguments: tuple[str, ...]


def split(words: Sequence[str], own: Mapping[str, bool] | None = None) -> CommandLine:
    """Options up to the first word that is none: that is the script, and what follows are its arguments.

    own: further long options, and whether each has a value.
    """
    options: list[Given] = []
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] not in ("-", "--"):
        following = words[at + 1] if at + 1 < len(words) else None
        read = _long if words[at].startswith("--") else _short
        found = read(words[at], following, own or {})
        options += found
        at += len(found[0].words)
    if at < len(words) and words[at] == "--":
        at += 1
    rest = tuple(words[at:])
    if rest[:1] == (":",):
        raise TemplateError(HETEROGENEOUS)
    return CommandLine(tuple(options), rest[0] if rest else None, rest[1:])


def directive_lines(script_text: str) -> list[str]:
    """The lines of a script that sbatch reads options from: it stops at the first command."""
    lines = []
    for line in script_text.split("\n"):
        if line.startswith(MAGIC):
            lines.append(line)
        elif line.strip() and not line.startswith("#"):
            break
    return lines


def directives(script_text: str) -> tuple[Given, ...]:
    """The options in a script's #SBATCH lines."""
    options: list[Given] = []
    for line in directive_lines(script_text):
        if not line.startswith("#SBATCH"):
            continue
        try:
            words = shlex.split(line.removeprefix("#SBATCH"), comments=True)
        except ValueError as error:
            raise TemplateError(f"script, line {line!r}: {error}; close the quotation") from None
        if words in (["hetjob"], ["packjob"]):
            raise TemplateError(HETEROGENEOUS)
        options += split(words).options
    return tuple(options)


def effective(name: str, *sources: Iterable[Given]) -> str | None:
    """The value that sbatch will use: the last one of the first source that has any (command line first)."""
    for source in sources:
        values = [option.value for option in source if option.name == name]
        if values:
            return values[-1]
    return None


def has(name: str, *sources: Iterable[Given]) -> bool:
    """True if an option is given at all."""
    return any(option.name == name for source in sources for option in source)


def _long(word: str, following: str | None, own: Mapping[str, bool]) -> list[Given]:
    """`--name=value`, `--name value` or `--name`; sbatch's names may be shortened, as getopt_long has it."""
    written, equals, value = word.removeprefix("--").partition("=")
    name = written if written in own else _full_name(written)
    if equals:
        return [Given((word,), name, value)]
    if following is not None and own.get(name, name in WITH_VALUE):
        return [Given((word, following), name, following)]
    return [Given((word,), name, None)]


def _full_name(written: str) -> str:
    """The one name that begins like this, else the word itself: sbatch will say what is wrong with it."""
    known = WITH_VALUE | WITHOUT_VALUE
    begin_like_it = [name for name in known if name.startswith(written)]
    return begin_like_it[0] if written not in known and len(begin_like_it) == 1 else written


def _short(word: str, following: str | None, own: Mapping[str, bool]) -> list[Given]:
    """`-N2`, `-N 2`, or several letters in one word, `-HN2`; the first of them carries the words."""
    named: list[tuple[str, str | None]] = []
    words: tuple[str, ...] = (word,)
    for at, letter in enumerate(word[1:], start=2):
        if letter in SHORT_WITH_VALUE:
            if not word[at:] and following is not None:
                words = (word, following)
            named.append((SHORT_WITH_VALUE[letter], word[at:] or following))
            break
        named.append((SHORT_WITHOUT_VALUE.get(letter, letter), None))
        if letter == "k":  # -k[off]
            break
    return [Given(words if at == 0 else (), name, value) for at, (name, value) in enumerate(named)]
