"""Classes of jobs: what a site goes by, and that a user's text stays data."""

from __future__ import annotations

import pytest

from slurm_fair.throughput import Alike, JobWords, class_of

WORDS = JobWords(name="train-17", script="abc", model="bert")


@pytest.mark.parametrize(
    ("alike", "key"),
    [
        (Alike.NAME, "name=train-#"),
        (Alike.SCRIPT, "script=abc"),
        (Alike.MODEL, "model=bert"),
        (Alike.FIRST, "model=bert"),
        (Alike.ALL, "model=bert script=abc name=train-#"),
    ],
)
def test_a_site_says_what_makes_jobs_alike(alike: Alike, key: str) -> None:
    assert class_of("lab", WORDS, alike) == ("lab", key)


def test_numbers_in_a_name_tell_no_classes_apart() -> None:
    assert class_of("lab", JobWords("sweep_1_lr003")) == class_of("lab", JobWords("sweep_22_lr1"))


def test_two_tenants_never_share_a_class() -> None:
    assert class_of("lab", WORDS) != class_of("rival", WORDS)


@pytest.mark.parametrize("alike", [Alike.SCRIPT, Alike.MODEL, Alike.FIRST])
def test_a_job_that_does_not_say_it_is_classed_by_its_name(alike: Alike) -> None:
    assert class_of("lab", JobWords("run"), alike).key == "name=run"


def test_no_text_looks_like_two_parts_or_like_another() -> None:
    crafted = class_of("lab", JobWords(name="x", model="bert script=abc"), Alike.ALL)
    honest = class_of("lab", JobWords(name="x", model="bert", script="abc"), Alike.ALL)
    assert crafted != honest
    assert crafted.key.count(" ") == 2


def test_a_key_is_short_and_printable_whatever_the_text() -> None:
    long = [class_of("lab", JobWords(model="m" * 5000 + end), Alike.ALL) for end in "ab"]
    assert long[0] != long[1]
    odd = class_of("lab", JobWords(model="\x1b[31m\n\udc80 é" * 9, name="\0"), Alike.ALL)
    assert all(len(each.key) <= 96 and each.key.isprintable() and each.key.isascii() for each in [*long, odd])
