"""The file and line of a policy's own code at which an error came up, for its author."""

from __future__ import annotations

import traceback
from collections.abc import Iterator

_NOT_THE_AUTHORS = (
    "slurm_fair",
    "numpy",
    "importlib",
    "_frozen_importlib",
    "_frozen_importlib_external",
    "dataclasses",
    "typing",
)

# What a policy may end with: one that calls sys.exit has failed like any other, and ends nobody else.
POLICY_FAILURES = (Exception, SystemExit)


def where(kind: type, error: BaseException | None = None) -> str:
    """`file:line` of the last step in the code of this class's package; without one, where its plan begins."""
    steps = list(_steps(error))
    own = [place for package, place in steps if package == _package(kind.__module__)]
    foreign = [place for package, place in steps if package not in _NOT_THE_AUTHORS]
    return (own or foreign or [beginning(kind)])[-1]


def where_loading(error: BaseException) -> str:
    """`file:line` at which a module could not be imported; empty where it is not there at all."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    places = [place for package, place in _steps(error) if package not in _NOT_THE_AUTHORS]
    return places[-1] if places else ""


def beginning(kind: type) -> str:
    """`file:line` of the method `plan` of a class; the name of its module if the class has no such method."""
    code = getattr(getattr(kind, "plan", None), "__code__", None)
    return kind.__module__ if code is None else f"{code.co_filename}:{code.co_firstlineno}"


def _steps(error: BaseException | None) -> Iterator[tuple[str, str]]:
    """The package and the place of each step that led to an error, the last one last."""
    if error is not None:
        for frame, line in traceback.walk_tb(error.__traceback__):
            name = str(frame.f_globals.get("__name__", ""))
            yield _package(name), f"{frame.f_code.co_filename}:{line}"


def _package(module: str) -> str:
    return module.partition(".")[0]
