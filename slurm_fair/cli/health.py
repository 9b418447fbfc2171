"""The daemon's health, worked out once for all views: it lives or not, sees or not, acts or not."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from slurm_fair.board.board import Board
from slurm_fair.board.health import NAME, DaemonState, read_health
from slurm_fair.cli.base import Site
from slurm_fair.cli.table import clean
from slurm_fair.host.state_folder import last_beat, pause_of
from slurm_fair.store import is_owned

_LOOKS = 3  # so many intervals without a look, and the daemon is late
_LEAST_SECONDS = 5.0
_HANGING = 4  # commands that may hang, one after the other, between two words of a blind daemon
_WORDS = {DaemonState.SHADOW: "shadow mode"}
_CODES = {
    DaemonState.ACTING: 0,
    DaemonState.PAUSED: 1,
    DaemonState.SHADOW: 1,
    DaemonState.BLIND: 1,
    DaemonState.SILENT: 3,
}


@dataclass(frozen=True, slots=True)
class State:
    """The health of the daemon."""

    state: DaemonState
    why: str
    age: float  # seconds since the look that the board shows
    late: bool  # what the board shows is old
    pid: int | None = None

    @property
    def word(self) -> str:
        """The state in a word or two."""
        return _WORDS.get(self.state, self.state.value)

    @property
    def text(self) -> str:
        return f"{self.word}: {self.why}" if self.why else self.word

    @property
    def exit_code(self) -> int:
        """The code of `status --exit-code`: 0 acts, 1 lives and does not act, 3 is not there."""
        return _CODES[self.state]

    def document(self, note: str) -> dict[str, Any]:
        """The daemon's state as JSON documents tell it."""
        return {
            "state": self.text,
            "word": self.word,
            "why": self.why,
            "tick_age_seconds": self.age,
            "late": self.late,
            "pid": self.pid,
            "note": note,
        }


def health_of(site: Site, board: Board) -> State:
    """Silent goes before everything, then blind: a pause of a daemon that is dead is none."""
    now, limit = time.time(), max(_LOOKS * board.interval_seconds, _LEAST_SECONDS)
    age = now - board.time
    state, why, pid = _own(site, board, now, limit) if _may_look(site) else _public(site, board, now, limit)
    return State(state, clean(why), max(age, 0.0), _is_old(age, limit), pid)


def _is_old(age: float, limit: float) -> bool:
    """True if a look is too old, or of a time to come: the clock was set back, and no look was made since."""
    return abs(age) > limit


def _may_look(site: Site) -> bool:
    """True where all can be read that tells of the daemon; a heartbeat that cannot be is no sign of silence."""
    beat = site.places.heartbeat
    may = os.access(site.places.directory, os.X_OK) and os.access(site.places.journal, os.R_OK)
    return may and (os.access(beat, os.R_OK) or not os.path.exists(beat))


def _own(site: Site, board: Board, now: float, limit: float) -> tuple[DaemonState, str, int | None]:
    """The health that the storage shows."""
    beat, pause = last_beat(site.places), pause_of(site.places)
    pid = beat.pid if beat else None
    last = max(board.time, beat.time if beat else 0.0)
    blind = beat is not None and bool(beat.blind) and now - beat.time <= beat.limit_seconds
    waits = blind and is_owned(site.places.journal)  # for a hung Slurm
    if _is_old(now - last, limit) and not waits:
        # a journal that was replaced takes lock and heartbeat with it
        public = _public(site, board, now, limit)
        return public if public[0] == DaemonState.BLIND else (DaemonState.SILENT, _silence(now - last), pid)
    if beat is None and not (board.dry_run or pause):
        return DaemonState.SILENT, "the daemon does not run", None
    if beat is not None and beat.blind:
        return DaemonState.BLIND, f"{beat.blind} (no good look for {now - beat.seen:.0f} s)", pid
    if pause is not None:
        return DaemonState.PAUSED, f"by {pause.in_words()}", pid
    return (DaemonState.SHADOW, "acts on nothing", pid) if board.dry_run else (DaemonState.ACTING, "", pid)


def _silence(seconds: float) -> str:
    if seconds < 0:
        return "the daemon does not run, or hangs: no look since the clock was set back"
    return f"the daemon does not run, or hangs: no look for {seconds:.0f} s"


def _public(site: Site, board: Board, now: float, limit: float) -> tuple[DaemonState, str, int | None]:
    """State, reason and pid for users who see only what is DaemonState."""
    said = read_health(Path(site.config.lease.publish_dir) / NAME)
    last = max(board.time, said.time if said else 0.0)
    if said is not None and said.state == DaemonState.STOPPED:
        return DaemonState.SILENT, said.why or "the daemon was stopped", None
    if said is not None and said.state == DaemonState.BLIND:
        limit += _HANGING * site.config.slurm.timeout
    if _is_old(now - last, limit):
        return DaemonState.SILENT, _silence(now - last), None
    if said is not None and said.state == DaemonState.BLIND:
        why = said.why or "the daemon cannot see the cluster"  # nothing where Slurm hides jobs
        return DaemonState.BLIND, f"{why} (no good look for {now - said.seen:.0f} s)", None
    if said is not None and said.state == DaemonState.PAUSED:
        return DaemonState.PAUSED, said.why, None
    return (DaemonState.SHADOW, "acts on nothing", None) if board.dry_run else (DaemonState.ACTING, "", None)


def say_age(state: State) -> None:
    """One line on standard error above a view that is old, or of a daemon that does nothing."""
    if state.late or state.state in (DaemonState.SILENT, DaemonState.BLIND):
        click.echo(f"slurm-fair: {state.text}; what follows is {state.age:.0f} s old", err=True)
    elif state.state == DaemonState.PAUSED:
        click.echo(f"slurm-fair: {state.text}; nothing is done to any job", err=True)
