"""Files of sweeps with few runs in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from slurm_fair.cli.sweep.grid import SweepRun
from slurm_fair.cli.sweep.results_file import About, ResultsFile

ABOUT = About({"path": "jobs.csv", "jobs": 3, "sha256": "0" * 64}, {"gpus": 8, "nodes": 1}, {"--gpus": 8})


def kept(file: Path, *runs: tuple[str, float | None, float, int, dict[str, Any]]) -> Path:
    """A file with these runs: policy, lease, load, seed, metrics; one without metrics has failed."""
    with ResultsFile.to_write(file) as results:
        results.belong(ABOUT, {})
        for policy, lease, load, seed, row in runs:
            cell = SweepRun(policy, lease, load, seed)
            if row:
                results.keep(cell, {"tenants": []} | row, "0.1")
            else:
                results.fail(cell, "out of\x1b[1m luck", "0.1")
    return file


def scene(folder: Path) -> Path:
    """Two policies at two loads with two seeds, one run failed, one policy without lease ends."""
    return kept(
        folder / "sweep.db",
        ("astraea", 900.0, 1.0, 0, {"jct_mean_s": 3600.0, "jain_tenants": 0.9}),
        ("astraea", 900.0, 1.0, 1, {"jct_mean_s": 7200.0, "jain_tenants": None}),
        ("astraea", 900.0, 2.0, 0, {"jct_mean_s": 10800.0, "jain_tenants": 0.8}),
        ("astraea", 900.0, 2.0, 1, {}),
        ("fifo", None, 1.0, 0, {"jct_mean_s": 36000.0, "jain_tenants": 0.5}),
        ("fifo", None, 2.0, 0, {"jct_mean_s": 72000.0, "jain_tenants": 0.4}),
    )
