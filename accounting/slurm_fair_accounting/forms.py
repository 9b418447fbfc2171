"""The form in which a command prints: a table, or the one other form that was asked for."""

from __future__ import annotations

from collections.abc import Mapping

from slurm_fair.errors import InputError


def one_form(forms: Mapping[str, bool]) -> str | None:
    """The one option of these that is given; None = a table. Two forms are refused."""
    asked = [option for option, wanted in forms.items() if wanted]
    if len(asked) > 1:
        raise InputError(f"{' and '.join(asked)} are different forms: keep one of them")
    return asked[0] if asked else None
