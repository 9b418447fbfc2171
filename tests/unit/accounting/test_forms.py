"""A command prints one form."""

from __future__ import annotations

import pytest

from slurm_fair.errors import InputError
from slurm_fair_accounting.forms import one_form
from tests.support.command_line import call


def test_the_one_form_that_is_asked_for_is_named_and_none_is_a_table() -> None:
    assert one_form({"-P": False, "--json": True}) == "--json"
    assert one_form({"-P": False, "--json": False}) is None


def test_two_forms_are_refused() -> None:
    with pytest.raises(InputError, match=r"^-P and --json are different forms: keep one of them$"):
        one_form({"-P": True, "--csv": False, "--json": True})


@pytest.mark.parametrize("command", [["queue"], ["plan"], ["policies"]])
def test_every_command_refuses_two_forms(command: list[str]) -> None:
    said = call(*command, "--json", "-P")
    assert (said.code, said.out) == (2, "")
    assert "--json and -P are different forms: keep one of them" in said.complaint
