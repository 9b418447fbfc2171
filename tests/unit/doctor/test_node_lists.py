"""Findings about node lists, and about a journal that the doctor may not read."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from slurm_fair.doctor import node_lists
from slurm_fair.host.state_folder import Places
from slurm_fair.model.snapshot import ListInDoubt
from tests.support.builders import snapshot
from tests.support.site_facts import FACTS, OK, WARNING

DOUBT = ListInDoubt("17", "n4", "games")


@pytest.mark.parametrize("closed", ["folder", "journal"])
def test_whom_the_journal_is_closed_to_is_told_nothing_that_only_the_journal_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closed: str
) -> None:
    places = Places(tmp_path)
    places.journal.touch()
    found = replace(FACTS, places=places, snapshot=replace(snapshot(nodes={"n1": 8}), in_doubt=(DOUBT,)))
    (told,) = node_lists.findings(found)
    assert told.level is WARNING
    shut = {"folder": tmp_path, "journal": places.journal}[closed]
    monkeypatch.setattr(os, "access", lambda path, _: Path(path) != shut)
    (told,) = node_lists.findings(found)
    assert told.level is OK
    assert "stands in the journal, which" in told.what
    assert "scontrol" not in f"{told.what} {told.cure}"
