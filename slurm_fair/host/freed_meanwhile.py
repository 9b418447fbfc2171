"""The jobs that were freed while a daemon lives and does nothing: they are looked at once, until it acts again."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from slurm_fair.host.state_folder import Places, last_beat, paused_since
from slurm_fair.output import write_text
from slurm_fair.slurm.fail_open import NOTHING_FREED, Liberated

_MOST_BYTES = 2**24


class Spell(NamedTuple):
    """A time in which a daemon does nothing, by what tells it from the next one."""

    epoch: float
    seen: float  # the last good look: a daemon that is blind has none since
    paused: float  # since when; 0 = it is not paused

    @classmethod
    def of(cls, places: Places) -> Spell:
        """The spell of now, as far as heartbeat and pause tell."""
        beat = last_beat(places)
        return cls(beat.epoch if beat else 0, beat.seen if beat else 0.0, paused_since(places) or 0.0)

    def goes_on(self, earlier: Spell) -> bool:
        """True if the daemon has not acted since: it saw nothing, or it is paused since then."""
        if self.epoch != earlier.epoch:
            return False
        return self.seen == earlier.seen or (self.paused > 0 and self.paused == earlier.paused)


@dataclass(slots=True)
class FreedMeanwhile:
    """A memory that outlives the process, where its file can be written: on a full disk it does not."""

    places: Places
    _spell: Spell | None = None
    _done: Liberated = field(default=NOTHING_FREED)

    def so_far(self) -> Liberated:
        """The runs that are clear already in this spell, and the records of those that are not."""
        now = Spell.of(self.places)
        if self._spell is None or not now.goes_on(self._spell):
            self._spell, self._done = self._read()
        return self._done if self._spell is not None and now.goes_on(self._spell) else NOTHING_FREED

    def keep(self, done: Liberated) -> None:
        """Remember what is clear now."""
        self._spell, self._done = Spell.of(self.places), done
        said = json.dumps({"spell": self._spell, "clear": sorted(done.clear), "left": done.to_look_at})
        path = self.places.freed_meanwhile
        with suppress(OSError):
            write_text(path, said, 0o600)

    def _read(self) -> tuple[Spell | None, Liberated]:
        try:
            with self.places.freed_meanwhile.open("rb") as file:
                said = json.loads(file.read(_MOST_BYTES))
            epoch, seen, paused = said["spell"]
            clear = frozenset(
                (int(record), float(at), int(restarts)) for record, at, restarts in said["clear"]
            )
            left = tuple(int(record) for record in said["left"])
            return Spell(float(epoch), float(seen), float(paused)), Liberated(
                0, (), unfreed=left, clear=clear
            )
        except (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError):
            return None, NOTHING_FREED
