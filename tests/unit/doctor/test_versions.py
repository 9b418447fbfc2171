"""Findings about the releases of Slurm, its clock and its answers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from slurm_fair.doctor import Finding, Level, versions
from tests.support.site_facts import ERROR, FACTS, OK, WARNING, facts


@pytest.mark.parametrize(
    ("found", "level"),
    [
        (versions.client_version("22.05.8"), OK),
        (versions.client_version("26.05.1"), OK),
        (versions.client_version("20.11.9"), ERROR),
        (versions.client_version(""), ERROR),
        (versions.client_version("26.11.0"), WARNING),
        (versions.controller_version(facts()), OK),
        (versions.controller_version(facts({"SLURM_VERSION": "26.05.0"})), OK),
        (versions.controller_version(facts({"SLURM_VERSION": "25.05.3"})), WARNING),
        (versions.controller_version(facts({"SLURM_VERSION": ""})), ERROR),
        (versions.clock(replace(FACTS, clock_ahead=1.0)), OK),
        (versions.clock(replace(FACTS, clock_ahead=-5.0)), WARNING),
        (versions.clock(replace(FACTS, clock_ahead=120.0)), ERROR),
        (versions.latency(replace(FACTS, seconds={"a whole look": 0.1})), OK),
        (versions.latency(replace(FACTS, seconds={"a whole look": 6.0})), WARNING),
        (versions.latency(replace(FACTS, seconds={"queue (squeue)": 2.5, "a whole look": 3.0})), WARNING),
        (versions.accounting(facts({"AccountingStorageType": "accounting_storage/none"})), WARNING),
        (versions.accounting(replace(FACTS, history="sacct: refused")), WARNING),
    ],
)
def test_slurm_itself(found: Finding, level: Level) -> None:
    assert found.level is level
