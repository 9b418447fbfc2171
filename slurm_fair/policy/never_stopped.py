"""The word by which a policy says which jobs it never stops: nobody waits for the ends of their leases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from slurm_fair.model.columns import Ints

_KEPT = "guaranteed"  # in a plan's memory


def never_stopped(memory: Mapping[str, Any]) -> Ints:
    """The keys of the jobs that a policy noted as such in this memory."""
    kept = memory.get(_KEPT, ())
    keys = [key for key in kept if isinstance(key, int)] if isinstance(kept, list | tuple) else []
    return np.array(keys, dtype=np.int64)


def with_never_stopped(memory: Mapping[str, Any], keys: Ints) -> Mapping[str, Any]:
    """A memory that says that its policy stops none of these jobs as long as they run; others it may."""
    return {**memory, _KEPT: keys.tolist()}
