"""The order in which processes of a test run get tests: files on a real Slurm first, the longest ahead.

A file on a real Slurm has a lab of its own, so one process gets all of it. Such files mostly wait. The first
process begins with what computes, and the others begin with Slurm. A process that finds nothing of its kind takes
the other kind. Properties and parsers compute for long, so each of them is handed out by itself.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

ROOT = Path(__file__).parents[1]
ON_SLURM = "pytest.mark.slurm"
BY_THEMSELVES = ("tests/fuzz/", "tests/properties/")
# Files that take more than a minute of one process, roughly: none of them may be begun last.
SECONDS = {
    "tests/slurm/test_catalogue_daemon.py": 190,
    "tests/slurm/test_whose_daemon.py": 140,
    "tests/slurm/test_catalogue.py": 130,
    "tests/slurm/test_catalogue_cluster.py": 120,
    "tests/slurm/test_shape.py": 120,
    "tests/slurm/test_troubles.py": 110,
    "tests/slurm/test_job_side.py": 110,
    "tests/slurm/test_catalogue_forms.py": 90,
    "tests/slurm/test_long_steps.py": 90,
    "tests/slurm/test_hostile_rows.py": 80,
    "tests/contract/test_cluster.py": 80,
    "tests/slurm/test_turns_go_on.py": 80,
    "tests/slurm/test_two_daemons.py": 80,
    "tests/slurm/test_catalogue_scope.py": 70,
    "tests/slurm/test_views.py": 70,
    "tests/slurm/test_demo.py": 65,
}
USUAL_SECONDS = 10


@functools.cache
def needs_slurm(file: str) -> bool:
    """True where tests of this file wait for a real Slurm."""
    return ON_SLURM in (ROOT / file).read_text()


def unit(test: str) -> str:
    """The piece that is handed out whole: a file, or one property or parser."""
    return test if test.startswith(BY_THEMSELVES) else test.partition("::")[0]


def longest(units: list[str], *, computing: bool) -> str:
    """The unit that a process begins next; it prefers one kind."""
    files = {each: each.partition("::")[0] for each in units}
    mine = [each for each in units if needs_slurm(files[each]) is not computing] or units
    return max(mine, key=lambda each: SECONDS.get(files[each], USUAL_SECONDS))


class LongestFirst(LoadScopeScheduling):  # type: ignore[misc]
    """`--dist loadfile`, in an order that keeps all processes busy until the end."""

    def __init__(self, config: pytest.Config, log: Any = None) -> None:
        super().__init__(config, log)
        self._computes: Any = None

    def _split_scope(self, nodeid: str) -> str:
        return unit(nodeid)

    def _assign_work_unit(self, node: Any) -> None:
        self._computes = self._computes or node
        chosen = longest(list(self.workqueue), computing=node is self._computes)
        self.workqueue.move_to_end(chosen, last=False)
        super()._assign_work_unit(node)
