"""A user's choices about leases, checked where they come in."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from slurm_fair.errors import TemplateError
from slurm_fair_templates.stamp import SIGNALS, StampWords

GATES = ("begin", "hold", "none")
REPORTS = ("auto", "file", "comment", "none")
PASS_ON = ("local", "steps", "none")
_MOST_SAID = 200  # characters of a wrong value that its message shows
MOST_SECONDS = 30 * 86400  # of a grace or a gate
MOST_SIZES = 16  # that one job may name
_COUNT = re.compile(r"[0-9]{1,5}")
_SPAN = re.compile(r"([0-9]{1,5})-([0-9]{1,5})(?::([0-9]{1,5}))?")
_HASH = re.compile(r"(?:[0-9a-f]{16})?")
LR_RULES = ("fixed", "linear", "sqrt")
_RATE = re.compile(r"([0-9]{1,6})=([0-9.eE+-]{1,40})")


@dataclass(frozen=True, slots=True)
class Options:
    """The lease side of one submission; the Slurm side stays in sbatch's own options.

    pass_on: to whom the request signal goes: processes of the batch node that catch it (local), these and
    every srun step (steps), nobody (none: the program watches the request file, as lease.py does anyway).
    reports: how the answer travels: the controller reads our file, or we put it into the job's comment.
    script_hash: what makes it a class with other jobs of its script; empty = it does not say.
    profile: its speed is to be measured on each GPU type where nobody knows it.
    exits_when_saved: the program answers the request by saving and exiting; the runtime answers for it.
    """

    template: str = "generic"
    signal: str = "USR2"
    grace_seconds: int = 120
    gate: str = "begin"
    gate_seconds: int = 1800
    gpus_choices: tuple[int, ...] = ()
    gpus_reference: int = 0
    lr_rule: str = "fixed"
    app: str = ""
    checkpoint_command: str = ""
    pass_on: str = "local"
    exits_when_saved: bool = False
    lease_py: str = ""
    publish_dir: str = ""
    reports: str = "auto"
    script_hash: str = ""
    profile: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot work, in one line."""
        _one_of("signal", self.signal, SIGNALS)
        _one_of("gate", self.gate, GATES)
        _one_of("pass-on", self.pass_on, PASS_ON)
        _one_of("reports", self.reports, REPORTS)
        _check(
            re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", self.template),
            "template",
            self.template,
            "a plain name",
        )
        for name, seconds in (("grace", self.grace_seconds), ("gate-seconds", self.gate_seconds)):
            _check(seconds >= 1, name, seconds, "at least 1 second")
            _check(seconds <= MOST_SECONDS, name, seconds, f"at most {MOST_SECONDS} seconds")
        _check(all(n >= 1 for n in self.gpus_choices), "gpus-choices", self.gpus_choices, "numbers from 1 up")
        _check(
            len(self.gpus_choices) <= MOST_SIZES,
            "gpus-choices",
            self.gpus_choices,
            f"at most {MOST_SIZES} numbers",
        )
        self._check_usual()
        _check(_HASH.fullmatch(self.script_hash), "script-hash", self.script_hash, "16 characters of 0-9a-f")
        wanted = (
            f"{', '.join(LR_RULES)}, or a table GPUS=LR,GPUS=LR of numbers above 0, each number of GPUs once"
        )
        _check(self.lr_rule in LR_RULES or _is_table(self.lr_rule), "lr-rule", self.lr_rule, wanted)
        self._check_rates()
        for name in ("app", "checkpoint_command", "lease_py", "publish_dir"):
            value = getattr(self, name)
            _check("\0" not in value, name.replace("_", "-"), value, "text without a zero byte")

    def _check_usual(self) -> None:
        """Refuse a usual size, which is what the job asks for, that is none of those with which it can run."""
        asked = self.gpus_reference
        if not self.gpus_choices or not asked or asked in self.gpus_choices:
            return
        listed = ",".join(map(str, self.gpus_choices))
        number = f"{asked} GPU{'' if asked == 1 else 's'}"
        raise TemplateError(
            f"gpus-choices are {listed}, and the job asks for {number}: ask for one of them with --gres or "
            "--gpus, or add what it asks for"
        )

    def _check_rates(self) -> None:
        """Refuse a table of learning rates that lacks one of the sizes with which the job can run."""
        if self.lr_rule in LR_RULES or not self.gpus_choices:
            return
        lacking = [gpus for gpus in self.gpus_choices if gpus not in _gpus_in_table(self.lr_rule)]
        if lacking:
            listed, cure = ", ".join(map(str, lacking)), ",".join(f"{gpus}=LR" for gpus in lacking)
            raise TemplateError(
                f"lr-rule is {self.lr_rule!r}, which says no learning rate for {listed} GPUs: add {cure}"
            )

    def stamp(self, gate: str) -> StampWords:
        """The words of the job's comment."""
        words = self.signal, self.grace_seconds, gate, self.gpus_choices, self.script_hash, self.profile
        return StampWords(*words)


def parse_choices(text: str) -> tuple[int, ...]:
    """`1,2,4` or `1|2|4` as numbers, ascending; `2-8` or `2-8:2` as those from one to the other, by steps."""
    if span := _SPAN.fullmatch(text):
        least, most, step = int(span[1]), int(span[2]), int(span[3] or 1)
        _check(step >= 1 and least <= most, "gpus-choices", text, "MIN-MAX or MIN-MAX:STEP, such as 2-8:2")
        sizes = range(least, most + 1, step)
        fewer = f"at most {MOST_SIZES} sizes, not {len(sizes)}: give a larger step"
        _check(len(sizes) <= MOST_SIZES, "gpus-choices", text, fewer)
        _check(sizes[-1] == most, "gpus-choices", text, f"steps that end at {most}; these end at {sizes[-1]}")
        return tuple(sizes)
    words = re.split(r"[,|]", text) if text else []
    wanted = "numbers such as 1,2,4,8, or MIN-MAX:STEP"
    _check(all(_COUNT.fullmatch(word) for word in words), "gpus-choices", text, wanted)
    return tuple(sorted({int(word) for word in words}))


def _is_table(text: str) -> bool:
    """True for a learning rate above 0 for each of some numbers of GPUs."""
    return len(_gpus_in_table(text)) == len(text.split(","))


def _gpus_in_table(text: str) -> frozenset[int]:
    """The numbers of GPUs for which a table says a learning rate above 0."""
    rows = [_RATE.fullmatch(row) for row in text.split(",")]
    return frozenset(int(row[1]) for row in rows if row and int(row[1]) > 0 and _is_rate(row[2]))


def _is_rate(text: str) -> bool:
    try:
        return 0 < float(text) < math.inf
    except ValueError:
        return False


def _one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    """Refuse a word that is not known."""
    _check(value in known, name, value, f"one of {', '.join(known)}")


def _check(fine: object, name: str, value: object, wanted: str) -> None:
    """Raise the one line a person reads."""
    if not fine:
        said = repr(value)
        said = said if len(said) <= _MOST_SAID else f"{said[:_MOST_SAID]}..."
        raise TemplateError(f"{name} is {said}, but must be {wanted}")
