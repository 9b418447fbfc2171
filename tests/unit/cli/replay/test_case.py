"""From a past to what is simulated: what is told of it, which jobs it has, on which machines."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest

from slurm_fair.cli.base import Site
from slurm_fair.cli.replay.case import (
    KnownPast,
    Origin,
    PastSource,
    case_of,
    case_of_reading,
    read_known_past,
)
from slurm_fair.cli.replay.site import LiveSite
from slurm_fair.cli.simulate.case import CaseOptions
from slurm_fair.cli.simulate.costs import known_costs
from slurm_fair.cli.simulate.given import CostOptions
from slurm_fair.config.tree import from_tree
from slurm_fair.daemon.parts import commands_of
from slurm_fair.errors import InputError, SlurmError
from slurm_fair.host.state_folder import Places
from slurm_fair.sim.past import jobs_of
from slurm_fair.sim.scenario import Costs
from slurm_fair.trace import Reading
from slurm_fair_accounting.source.period import Period
from tests.support.pasts import BEGAN, past, run, saved
from tests.support.simulated import arrival, trace

FREE = CostOptions(0.0, 0.0, 0.0, 0.0)
HERE = click.Context(click.Command("replay"))


def source(*rows: dict[str, str], kind: Any = "sacct", **more: Any) -> PastSource:
    """The past of these runs, asked for 1000 s after its beginning."""
    jobs = jobs_of(past(rows), BEGAN + 1000.0)
    assert jobs is not None
    return PastSource(kind, Path("history.txt"), jobs, BEGAN + 1000.0, more.pop("left_out", {}), **more)


@pytest.fixture
def five_hours_east(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Local time is not UTC in this test."""
    monkeypatch.setenv("TZ", "EAST-5")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


# -- what is told of a past -----------------------------------------------------------------------------------


def test_a_document_has_the_period_of_a_site_and_none_of_a_file() -> None:
    runs = (run("1", 5, 10, 20), run("2", 0, 30, None, state="RUNNING"), run("3", 0, None, 9))
    told = source(*runs, left_out={"steps": 2}).document()
    assert told == {
        "kind": "sacct",
        "start": None,
        "end": None,
        "first_submit": BEGAN,
        "until": BEGAN + 1000.0,
        "not_over": ["2"],
        "never_ran": ["3"],
        "never_ran_jobs": 1,
        "rows_left_out": {"steps": 2},
    }
    site = source(*runs, kind="slurmdbd", period=Period(BEGAN, BEGAN + 500.0)).document()
    assert (site["kind"], site["start"], site["end"]) == ("slurmdbd", BEGAN, BEGAN + 500.0)


def test_a_past_of_which_nothing_is_left_out_has_no_notes() -> None:
    assert source(run("1", 0, 0, 10)).notes() == []


def test_notes_count_and_name_what_is_left_out_or_cut() -> None:
    runs = (run("1", 0, 0, None, state="RUNNING"), run("2_[0-4]", 0, None, None, state="PENDING"))
    told = source(*runs, left_out={"without GPUs": 2, "of steps\x1b[1m": 1}).notes()
    assert all(note.startswith("note: ") and "\x1b" not in note for note in told)
    assert "5 jobs that never ran (or less than 1 s) left out: 2_[0-4]" in told[0]
    assert told[1].startswith("note: 1 job that had not ended by 2026-")
    assert told[1].endswith("with the work done so far: 1")
    assert [note.partition(" left out")[0] for note in told[2:]] == ["note: 1 row", "note: 2 rows"]


@pytest.mark.usefixtures("five_hours_east")
def test_an_instant_of_a_file_stays_as_it_stands_there_and_one_of_the_site_is_local() -> None:
    going = run("1", 0, 0, None, state="RUNNING")
    of_file, of_site = source(going).notes()[0], source(going, kind="slurmdbd").notes()[0]
    assert "ended by 2026-09-21T14:30:00 " in of_file  # BEGAN is 14:13:20 UTC
    assert "2026-09-21" in of_site
    assert "19:30:00" in of_site


def test_a_whole_file_has_no_period() -> None:
    Origin(None, "today", None, False).check()
    Origin(Path("f"), None, None, False).check()
    for start, end in (("today", None), (None, "now")):
        with pytest.raises(InputError, match="--sacct takes a whole file: leave --start and --end out"):
            Origin(Path("f"), start, end, False).check()


def test_the_file_that_is_read_is_one_that_may_not_be_written_over() -> None:
    assert Origin(Path("f"), None, None, False).files == [Path("f")]
    assert Origin(None, None, None, False).files == []


# -- a file ---------------------------------------------------------------------------------------------------


def known(file: Path, given: CostOptions = FREE, skip_bad: bool = False) -> KnownPast:
    return read_known_past(HERE, Origin(file, None, None, skip_bad), given, BEGAN + 9999.0)


def test_costs_that_the_simulation_charges_anew_are_taken_off_the_work(tmp_path: Path) -> None:
    """Two runs of 100 s each: each starts for 2 s, the first saves for 5 s and the second loads for 20 s."""
    rows = [run("1", 0, 0, 100, state="REQUEUED"), run("1", 100, 200, 300), run("2", 0, 0, 1)]
    found = known(saved(tmp_path / "s.txt", rows), CostOptions(5.0, 20.0, 30.0, 2.0))
    assert found.source.jobs.trace.duration_s.tolist() == [200 - 2 - 5 - 2 - 20, 1]
    assert found.known.costs == Costs(checkpoint=5.0, restart=20.0, requeue_delay=30.0, start=2.0)
    assert (found.live, found.ledger, found.source.until) == (None, None, BEGAN + 300.0)


def test_rows_that_were_skipped_are_listed_and_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = saved(tmp_path / "s.txt", [run("1", 0, 0, 100), run("2", 0, 50, 10)])
    with pytest.raises(InputError, match=r"s\.txt:3: row: End"):
        known(file)
    found = known(file, skip_bad=True)
    assert [fault.place for fault in found.source.bad] == [":3"]
    assert "s.txt:3: row: End: the run ends before it starts" in capsys.readouterr().err
    case, _ = case_of(found, CaseOptions(gpus=8))
    assert case.bad_rows == 1


def test_a_file_without_a_run_says_what_it_has_in_its_place(tmp_path: Path) -> None:
    rows = [run("1", 0, None, None, state="PENDING"), run("2.batch", 0, 0, 9), run("3.0", 0, 0, 9)]
    with pytest.raises(InputError, match=r"s\.txt: no GPU job of it ever ran \(but 2 .*step") as caught:
        known(saved(tmp_path / "s.txt", rows))
    assert "\n" not in str(caught.value)


# -- the scenario ---------------------------------------------------------------------------------------------

NO_COSTS = Costs()


def reading() -> Reading:
    """One job of two nodes of some type, and one of anything."""
    jobs = [arrival(gpus=4, nodes=2, gpu_type="h100", tenant="a"), arrival(tenant="b", seconds=60)]
    return Reading(trace(jobs), ())


def scenario_of(wish: CaseOptions, live: LiveSite | None = None) -> Any:
    return case_of_reading(Path("past"), reading(), wish, NO_COSTS, live)[0].scenario


def cluster(folder: Path, *types: str) -> Path:
    """A file of two nodes of each type, 4 GPUs each."""
    path = folder / "c.toml"
    path.write_text(
        "".join(f'[[nodes]]\nname = "{kind}[1-2]"\ngpus = 4\ntype = "{kind}"\n' for kind in types)
    )
    return path


def test_on_gpus_all_alike_types_and_nodes_that_jobs_asked_for_mean_nothing() -> None:
    found = scenario_of(CaseOptions(gpus=4))
    assert (found.trace.gpu_types, found.trace.gpu_type.tolist()) == ((), [-1, -1])
    assert found.trace.node_count.tolist() == [0, 0]
    assert found.machines.gpus.tolist() == [4]


def test_on_a_cluster_file_jobs_keep_to_what_they_asked_for(tmp_path: Path) -> None:
    found = scenario_of(CaseOptions(cluster=cluster(tmp_path, "h100")))
    assert (found.trace.gpu_types, found.trace.node_count.tolist()) == (("h100",), [2, 0])
    with pytest.raises(InputError, match="want the GPU type 'h100'"):
        scenario_of(CaseOptions(cluster=cluster(tmp_path, "a100")))


def test_tenants_of_a_file_are_alike_unless_a_weight_is_said() -> None:
    assert scenario_of(CaseOptions(gpus=4)).weights == {}
    assert scenario_of(CaseOptions(gpus=4, weights="requested")).weights == {"a": 4.0, "b": 1.0}
    with pytest.raises(
        InputError, match="--weights shares asks Slurm, which a saved file is not: give equal"
    ):
        scenario_of(CaseOptions(gpus=4, weights="shares"))


def test_a_file_needs_a_cluster() -> None:
    with pytest.raises(InputError, match="no cluster: give --gpus N"):
        scenario_of(CaseOptions())


def test_wishes_reach_the_scenario() -> None:
    wish = CaseOptions(gpus=4, undeclared="unknown", progress="silent", declared_error=2.0, plain="1", seed=5)
    found = scenario_of(wish)
    assert (found.undeclared, found.truthfulness.progress, found.truthfulness.seed) == (
        "unknown",
        "silent",
        5,
    )
    assert (found.plain_jobs.part, found.costs is NO_COSTS) == (1.0, True)


# -- the site's own -------------------------------------------------------------------------------------------


def site(folder: Path, **tree: Any) -> LiveSite:
    """A site whose Slurm has no programs: nothing of it may be asked for that the options say."""
    config = from_tree({"slurm": {"bin_dir": str(folder / "none")}, **tree}, "test")
    places = Places(folder)
    return LiveSite(Site(config, places), commands_of(config, places))


def test_gpus_of_a_sites_own_past_count_as_at_the_site_on_types_that_it_knows(tmp_path: Path) -> None:
    live = site(tmp_path, tenants={"gpu_weights": {"h100": 2.5, "a100": 0.5}})
    both = CaseOptions(cluster=cluster(tmp_path, "h100", "v100"), weights="equal")
    assert scenario_of(both, live).gpu_weights == {"h100": 2.5, "v100": 1.0}
    assert scenario_of(CaseOptions(gpus=8, weights="equal"), live).gpu_weights == {}
    said = replace(both, gpu_weights={"v100": 0.25})
    assert scenario_of(said, live).gpu_weights == {"v100": 0.25}
    assert scenario_of(both).gpu_weights == {}, "a file has no weights of its own"


def test_a_sites_shares_are_asked_for_unless_weights_are_said(tmp_path: Path) -> None:
    live = site(tmp_path)
    with pytest.raises(SlurmError, match="Slurm's shares cannot be read"):
        scenario_of(CaseOptions(gpus=8), live)
    assert scenario_of(CaseOptions(gpus=8, weights="equal"), live).weights == {}


def test_a_sites_nodes_are_asked_for_unless_a_cluster_is_said(tmp_path: Path) -> None:
    live = site(tmp_path)
    with pytest.raises(SlurmError, match="the nodes cannot be seen"):
        scenario_of(CaseOptions(weights="equal"), live)
    with pytest.raises(InputError, match="no cluster"):
        scenario_of(CaseOptions(weights="equal", gpus_per_node=4), live)


def test_a_sites_past_is_counted_by_the_sites_ledger(tmp_path: Path) -> None:
    live = site(tmp_path, tenants={"half_life": 3600})
    known_there = KnownPast(source(run("1", 0, 0, 10)), known_costs(FREE), live)
    assert known_there.ledger == live.ledger
    assert live.ledger.half_life_seconds == 3600.0
