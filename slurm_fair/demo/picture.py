"""The picture of an act at one instant: which job holds which nodes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from slurm_fair.board.board import Board
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


class Phase(StrEnum):
    """The phases of an act, in the words of the live table."""

    STARTING_SLURM = "starting Slurm"
    STARTING_DAEMON = "starting the daemon"
    READY = "ready"
    PLAYING = "playing"
    READING = "reading the books"
    OVER = "over"


@dataclass(frozen=True, slots=True)
class Picture:
    """An act at one instant, for the live table."""

    phase: Phase
    seconds: float = 0.0
    seen: tuple[Seen, ...] = ()
    done: int = 0
    board: Board | None = None
