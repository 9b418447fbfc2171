"""The package of reports gives each name when it is first asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

import slurm_fair_accounting
from slurm_fair_accounting.table import Report


def test_every_name_of_the_package_is_that_of_its_module() -> None:
    given = {name: getattr(slurm_fair_accounting, name) for name in slurm_fair_accounting.__all__}
    assert given["Report"] is Report
    assert all(value is not None for value in given.values())


def test_a_name_that_is_not_there_is_refused() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = slurm_fair_accounting.nothing


def test_a_table_alone_loads_no_reports() -> None:
    code = f"""
import sys
sys.path[:0] = {sys.path!r}
import slurm_fair_accounting
slurm_fair_accounting.Report
print("slurm_fair_accounting.reports.registry" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "False\n"
