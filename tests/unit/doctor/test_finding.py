"""A finding has a cure where it complains, and only there."""

from __future__ import annotations

import pytest

from slurm_fair.doctor import Finding, Level
from tests.support.site_facts import ERROR, OK, WARNING


@pytest.mark.parametrize(("level", "cure"), [(OK, "do this"), (WARNING, ""), (ERROR, "")])
def test_a_complaint_comes_with_a_cure_and_praise_without(level: Level, cure: str) -> None:
    with pytest.raises(ValueError, match="do not go together"):
        Finding(level, "something", cure)
