"""Notes on a replay: what the site has otherwise, as options that make it the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from slurm_fair.cli.base import Site
from slurm_fair.cli.replay.as_the_site import ALL_SAVE, site_notes
from slurm_fair.cli.replay.site import LiveSite
from slurm_fair.cli.simulate.setups import PolicySetup
from slurm_fair.config.tree import from_tree
from slurm_fair.daemon.parts import commands_of
from slurm_fair.host.state_folder import Places

# Leases of 900 s that roll, a look every 10 s: as `replay` has them without any option.
USUAL = PolicySetup("fair", {}, None, 10.0, False, False, 0.0, 0)


def site(**tree: Any) -> LiveSite:
    config, places = from_tree(tree, "test"), Places(Path("/nowhere"))
    return LiveSite(Site(config, places), commands_of(config, places))


OTHERWISE = {
    "nothing": ({"lease": {"interval": 10}}, ""),
    "looks at changes": ({}, "--interval auto"),
    "the length of a lease": ({"lease": {"interval": 10, "term": 1800}}, "--lease 1800"),
    "leases that end together": ({"lease": {"interval": 10, "align": "aligned"}}, "--align aligned"),
    "renewed leases": ({"lease": {"interval": 10, "renewal": "term"}}, "--renewal term"),
    "waits for nodes": ({"lease": {"interval": 10, "reserve_after": "never"}}, "--reserve-after never"),
    "a setting": (
        {
            "lease": {"interval": 10},
            "policy": {"fair": {"price_hours": 0.5, "reserve_part": 1.0}, "astraea": {"swap_after": 2}},
        },
        "--set fair.price_hours=0.5",
    ),
    "several": (
        {"lease": {"term": 600, "interval": 60, "renewal": 60}},
        "--lease 600 --interval 60 --renewal 60",
    ),
}


@pytest.mark.parametrize(("tree", "options"), OTHERWISE.values(), ids=OTHERWISE)
def test_what_differs_is_told_with_the_options_that_make_it_the_same(
    tree: dict[str, Any], options: str
) -> None:
    *notes, last = site_notes(site(**tree), [USUAL])
    assert last == ALL_SAVE
    said = "note: the site is set otherwise; to simulate it as it is add"
    assert notes == ([f"{said} {options}"] if options else [])


def test_the_length_of_leases_is_no_difference_where_lengths_are_compared() -> None:
    live = site(lease={"interval": 10, "term": 1800})
    assert site_notes(live, [USUAL], lease=False) == [ALL_SAVE]


def test_leases_without_end_and_a_past_of_a_file_differ_in_nothing() -> None:
    fifo = PolicySetup("fifo", {}, None, 10.0, False, False, 0.0, 0)
    assert site_notes(site(lease={"term": 1800}), [fifo]) == [ALL_SAVE]
    assert site_notes(None, [USUAL]) == [ALL_SAVE]
