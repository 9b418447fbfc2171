"""Values on their way into a shell script: none of them may become a command, an option or a further line."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

from slurm_fair.errors import TemplateError

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_PLAIN_DIRECTIVE = re.compile(r"[A-Za-z0-9_@%+=:,./\[\]-]")


class Ready(str):
    """Text that is already in the form in which it belongs into the script."""

    __slots__ = ()


def shell(value: object) -> Ready:
    """One word of the script's body, always on one line."""
    if isinstance(value, Ready):
        return value
    text = ("yes" if value else "no") if isinstance(value, bool) else str(value)
    if "\0" in text:
        raise TemplateError(f"{text!r}: a value for a template has no zero byte")
    if not _CONTROL.search(text):
        return Ready(shlex.quote(text))
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return Ready("$'" + _CONTROL.sub(lambda found: f"\\{ord(found[0]):03o}", escaped) + "'")


def shell_lines(text: str) -> Ready:
    """One word of the script's body that keeps its lines, for people to read."""
    return Ready("'" + text.replace("'", "'\\''") + "'")


def shell_words(values: Iterable[str]) -> Ready:
    return Ready(" ".join(shell(value) for value in values))


def directive(value: object) -> Ready:
    """The value of an option in a #SBATCH line, as sbatch's own reader takes it back."""
    text = str(value)
    if re.search(r"[\n\r\0]", text):
        raise TemplateError(f"{text!r}: the value of a #SBATCH line has no line end and no zero byte")
    if " " in text and all(_PLAIN_DIRECTIVE.match(character) for character in text.replace(" ", "")):
        return Ready(f'"{text}"')
    return Ready("".join(_directive_character(character) for character in text))


def _directive_character(character: str) -> str:
    """sbatch 22.05 honours a backslash, but not before white space: that needs quotation marks."""
    if character.isspace():
        return f'"{character}"'
    return character if _PLAIN_DIRECTIVE.match(character) else f"\\{character}"
