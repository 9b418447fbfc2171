"""The picture of an act at one instant: which job holds which nodes."""

from __future__ import annotations

from dataclasses import dataclass

from slurm_fair.board import Board
from slurm_fair.demo.scenario import DemoJob


@dataclass(frozen=True, slots=True)
class Seen:
    """A job as the queue showed it."""

    job: DemoJob
    state: str  # Slurm's word
    nodes: tuple[str, ...]

    @property
    def holds_gpus(self) -> bool:
        """True if its GPUs are taken."""
        return bool(self.nodes) and self.state != "PENDING"


@dataclass(frozen=True, slots=True)
class Picture:
    """An act at one instant, for the live table."""

    phase: str
    seconds: float = 0.0
    seen: tuple[Seen, ...] = ()
    done: int = 0
    board: Board | None = None
