"""The commands load numpy without threads, and leave no trace of it to what they start."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_TOLD = """
import os, pathlib, slurm_fair.cli
threads = len(list(pathlib.Path("/proc/self/task").iterdir()))
print(threads, os.environ.get("OPENBLAS_NUM_THREADS"))
"""


@pytest.mark.parametrize(
    ("given", "told"),
    [
        pytest.param(None, "1 None", id="no thread is started, and what said so is gone"),
        pytest.param("1", "1 1", id="a number that was given stays"),
    ],
)
def test_numpy_is_loaded_alone(given: str | None, told: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    if given is not None:
        environment["OPENBLAS_NUM_THREADS"] = given
    said = subprocess.run(
        [sys.executable, "-c", _TOLD], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert said.stdout.strip() == told
