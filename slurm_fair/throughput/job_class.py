"""Classes of jobs: a tenant, and what makes two of its jobs alike."""

from __future__ import annotations

import hashlib
import re
from enum import StrEnum
from typing import NamedTuple

MOST_KEY_CHARACTERS = 96
_NUMBERS = re.compile(r"\d+")
_OF_HASH = 16  # characters


class Alike(StrEnum):
    """A site's choice of what makes two jobs of one tenant alike."""

    NAME = "name"  # the job name without its numbers
    SCRIPT = "script"  # the hash of the batch script
    MODEL = "model"  # the model that the job declares
    ALL = "all"  # all three
    FIRST = "first"  # the first of model, script, name that is known


class JobWords(NamedTuple):
    """Words of a user about one job: data, never structure. Empty = not said."""

    name: str = ""
    script: str = ""  # hash of the batch script
    model: str = ""


class JobClass(NamedTuple):
    """Jobs of one tenant that are taken to be as fast as one another."""

    tenant: str
    key: str


def class_of(tenant: str, words: JobWords, alike: Alike = Alike.FIRST) -> JobClass:
    """The class of a job. A job that does not say what its site goes by is classed by its name."""
    parts = {
        Alike.MODEL: words.model,
        Alike.SCRIPT: words.script,
        Alike.NAME: _NUMBERS.sub("#", words.name),
    }
    if alike is Alike.ALL:
        chosen = list(parts)
    elif alike is Alike.FIRST:
        chosen = [next((part for part, text in parts.items() if text), Alike.NAME)]
    else:
        chosen = [alike if parts[alike] else Alike.NAME]
    return JobClass(tenant, " ".join(f"{part}={_quoted(parts[part])}" for part in chosen))


def _quoted(text: str) -> str:
    """A text that nobody can make look like two parts or like another; a long one ends in its hash."""
    shown = ascii(text)[1:-1].replace(" ", r"\x20").replace("=", r"\x3d")
    limit = MOST_KEY_CHARACTERS // 3 - len("script= ")
    if len(shown) <= limit:
        return shown
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_OF_HASH]
    return f"{shown[: limit - _OF_HASH - 1]}~{digest}"
