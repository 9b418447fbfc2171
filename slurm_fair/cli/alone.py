"""numpy loaded with one thread, before anything else of ours loads it.

Nothing of ours multiplies large matrices, and the threads that numpy's library starts otherwise, one per core,
take half as long to start as numpy itself. What says so is taken back at once: jobs that we submit inherit it.
"""

from __future__ import annotations

import os
from importlib import import_module

THREADS = "OPENBLAS_NUM_THREADS"


def load_numpy() -> None:
    """Does nothing about a number that was given, nor where numpy is loaded already."""
    given = os.environ.get(THREADS)
    os.environ[THREADS] = given or "1"
    try:
        import_module("numpy")
    finally:
        if given is None:
            del os.environ[THREADS]
