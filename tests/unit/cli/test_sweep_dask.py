"""A sweep over a Dask cluster that is there already; Dask's own local cluster stands for it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slurm_fair.cli.sweep import over_dask
from slurm_fair.errors import SlurmFairError
from tests.support import sweeps
from tests.support.simulations import made
from tests.support.sweeps import asked, file_of, interrupted, swept

distributed = pytest.importorskip(
    "distributed", reason="Dask is not installed: pip install 'slurm_fair[dask]'"
)
RESULTS = "select policy, seed, state, jct_mean_s, makespan_s from runs order by 1, 2"
# Dask's own processes and sockets, not ours.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two processes with a thread each."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1"
        ) as local:
            yield local


def test_the_results_are_those_of_processes(tmp_path: Path, cluster: Any) -> None:
    (tmp_path / "there").mkdir()
    here, there = made(tmp_path, jobs=12), made(tmp_path / "there", jobs=12)
    grid = ("--policy", "srtf,tiresias", "--seed", "0-1")
    assert swept(here, *grid, "--processes", "2").code == 0
    said = swept(there, *grid, "--dask", cluster.scheduler_address)
    assert (said.code, said.err) == (0, "")
    assert asked(file_of(there), RESULTS) == asked(file_of(here), RESULTS)
    assert len(asked(file_of(there), RESULTS)) == 4
    assert len(cluster.scheduler.workers) == 2, "the cluster is left as it is"


def test_a_process_of_the_cluster_that_dies_costs_its_row(
    tmp_path: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)
    monkeypatch.setattr(over_dask, "_measured_there", sweeps.dies_there)
    trace = made(tmp_path, jobs=6)
    said = swept(trace, "--policy", "srtf", "--seed", "0-2", "--dask", cluster.scheduler_address)
    assert said.code == 1
    states = asked(file_of(trace), "select seed, state from runs order by seed")
    assert states == [(0, "done"), (1, "failed"), (2, "done")]
    assert "failed: srtf, lease 900 s, load 1, seed 1: KilledWorker: " in said.err


def test_another_release_on_the_cluster_is_told(
    tmp_path: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slurm_fair.cli.sweep.command.our_version", lambda: "9.9")
    trace = made(tmp_path, jobs=6)
    said = swept(trace, "--policy", "srtf", "--dask", cluster.scheduler_address)
    assert (said.code, "and here is 9.9: install the same" in said.err) == (1, True)


def test_a_scheduler_that_does_not_answer_or_cannot_be_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(over_dask, "CONNECT_SECONDS", 1)
    trace = made(tmp_path, jobs=6)
    said = swept(trace, "--dask", "tcp://127.0.0.1:9")
    assert (said.code, "no Dask scheduler answers there" in said.complaint) == (1, True)
    said = swept(trace, "--dask", "nonsense://x")
    assert (said.code, "write tcp://HOST:PORT" in said.complaint) == (2, True)
    assert not file_of(trace).exists(), "nothing was begun"


def test_ctrl_c_takes_back_what_has_not_begun_and_leaves_the_cluster(tmp_path: Path, cluster: Any) -> None:
    trace = made(tmp_path, jobs=100)
    grid = ("--policy", "astraea", "--lease", "60", "--seed", "0-9")
    code, err = interrupted(trace, *grid, "--dask", cluster.scheduler_address)
    done = len(asked(file_of(trace), RESULTS))
    assert (code, 1 <= done < 10) == (130, True)
    assert [line for line in err.splitlines() if line] == [
        f"{file_of(trace)}: {done} of 10 runs done and kept: the same command goes on",
        "slurm-fair: stopped",
    ]
    assert len(cluster.scheduler.workers) == 2


class _Lost:
    """The future of a scheduler that went away."""

    status = "cancelled"


def test_a_scheduler_that_goes_away_ends_the_sweep_and_fails_no_run() -> None:
    with pytest.raises(SlurmFairError, match="the Dask scheduler is gone"):
        over_dask._end(0, _Lost(), "tcp://x:1")


def test_without_dask_the_option_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    said = swept(made(tmp_path, jobs=6), "--dask", "tcp://127.0.0.1:9")
    assert (said.code, "pip install 'slurm_fair[dask]'" in said.err.splitlines()[-1]) == (2, True)
