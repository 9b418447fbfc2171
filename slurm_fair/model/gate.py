"""Gates of ours, which keep waiting jobs from starting."""

from __future__ import annotations

from enum import StrEnum


class Gate(StrEnum):
    """A gate of ours on a waiting job; the configuration and the heartbeat hold these words."""

    BEGIN = "begin"  # a begin time ahead, at which it opens by itself
    HOLD = "hold"  # only a release opens it
