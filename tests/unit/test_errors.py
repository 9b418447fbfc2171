"""Errors form the tree that their module draws, and end a command with the exit codes that it names."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import pytest

from slurm_fair import errors
from slurm_fair.errors import SlurmFairError

ROW = re.compile(r"(?P<indent>[|` -]*)(?P<name>[A-Z]\w+) +(?:exit code (?P<code>[0-9]): )?(?P<words>\S.*)")
INSIDE = {"Paused"}  # no person reads it: the daemon catches it


def _drawn() -> Iterator[tuple[str, str, int]]:
    """The name, the parent and the exit code of each error in the tree."""
    above: list[tuple[int, str, int]] = [(-1, "Exception", 0)]
    for line in (errors.__doc__ or "").splitlines()[1:]:
        if found := ROW.fullmatch(line):
            depth = len(found["indent"])
            above = [one for one in above if one[0] < depth]
            code = int(found["code"] or above[-1][2])
            yield found["name"], above[-1][1], code
            above.append((depth, found["name"], code))


TREE = tuple(_drawn())


@pytest.mark.parametrize(("name", "parent", "code"), TREE, ids=[name for name, _, _ in TREE])
def test_an_error_stands_where_it_is_drawn(name: str, parent: str, code: int) -> None:
    kind = getattr(errors, name)
    assert [base.__name__ for base in kind.__bases__] == [parent]
    assert kind.exit_code == code
    assert str(kind("a\nb")) == "a\nb"


def test_every_error_is_drawn() -> None:
    kinds = {
        name
        for name, kind in vars(errors).items()
        if inspect.isclass(kind) and issubclass(kind, SlurmFairError)
    }
    assert kinds - INSIDE == {name for name, _, _ in TREE}
    assert len(TREE) == len({name for name, _, _ in TREE})


def test_wrong_input_and_a_daemon_that_never_was_are_told_apart_from_a_failure() -> None:
    codes = {code: {name for name, _, own in TREE if own == code} for code in (1, 2, 3)}
    assert codes[3] == {"NotHere"}
    assert codes[2] == {
        "InputError",
        "ConfigError",
        "SlurmTextError",
        "TemplateError",
        "PolicyError",
        "EmptyJournal",
        "UnsafeStore",
    }
    assert {"SlurmUnreachable", "NotTheOwner", "StoreBusy", "LabError", "NoPlan"} <= codes[1]
