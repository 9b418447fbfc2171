"""Findings about what the daemon may do and see."""

from __future__ import annotations

import pytest

from slurm_fair.doctor import Level
from slurm_fair.doctor.rights import sees_jobs_of_others, verbs
from tests.support.site_facts import ERROR, OK, WARNING, facts, worst


@pytest.mark.parametrize(
    ("uid", "level", "expected", "words"),
    [
        (0, "", OK, "an Operator could as well"),
        (500, "", OK, "an Operator could as well"),
        (1000, "Operator", OK, "Operator"),
        (1000, "Administrator", OK, "Administrator"),
        (1000, "None", WARNING, "no operator"),
        (1000, "", WARNING, "does not know it"),
    ],
)
def test_rights(uid: int, level: str, expected: Level, words: str) -> None:
    found = verbs(facts(uid=uid, level=level))
    assert (found.level, words in found.what) == (expected, True)


def test_hidden_jobs_matter_only_to_who_may_not_see_them() -> None:
    assert worst(sees_jobs_of_others(facts({"PrivateData": "jobs,usage"}, level="None"))) is ERROR
    assert worst(sees_jobs_of_others(facts({"PrivateData": "jobs,usage"}))) is OK
    assert list(sees_jobs_of_others(facts())) == []
