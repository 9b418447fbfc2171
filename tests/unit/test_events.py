"""Events of a tick: what nobody reads is not written out."""

from __future__ import annotations

from slurm_fair.model import Event, EventKind, Events
from slurm_fair.model.record import Later


def event(kind: str, key: int = 1) -> Event:
    return Event(10.0, kind, key, "phys", 4)


class Clerk:
    """Writes events of one kind, and notes how often it was asked to."""

    def __init__(self, kind: EventKind) -> None:
        self.kind, self.asked = kind, 0

    def part(self) -> Later:
        return Later((self.kind,), self._write)

    def _write(self) -> list[Event]:
        self.asked += 1
        return [event(self.kind, 1), event(self.kind, 2)]


def test_events_of_one_kind_are_read_without_writing_the_others() -> None:
    granted, returned = Clerk(EventKind.GRANTED), Clerk(EventKind.RETURNED)
    events = Events([event("started")]) + Events(granted.part(), returned.part())
    assert [e.key for e in events.of("granted", "started")] == [1, 1, 2]
    assert (granted.asked, returned.asked) == (1, 0)


def test_what_is_at_hand_needs_no_writing() -> None:
    granted = Clerk(EventKind.GRANTED)
    events = Events(granted.part(), [event("revoked")])
    assert [e.kind for e in events.at_hand] == ["revoked"]
    assert granted.asked == 0


def test_all_events_come_in_the_order_of_their_parts_and_are_written_once() -> None:
    granted = Clerk(EventKind.GRANTED)
    events = Events([event("started")], granted.part(), [event("finished")])
    assert [e.kind for e in events] == ["started", "granted", "granted", "finished"]
    assert (len(events), events[-1].kind, granted.asked) == (4, "finished", 1)


def test_those_at_hand_are_changed_and_the_others_stay_unwritten() -> None:
    granted = Clerk(EventKind.GRANTED)
    events = Events([event("started")], granted.part()).changed(
        lambda some: [e._replace(tenant="chem") for e in some]
    )
    assert granted.asked == 0
    assert [e.tenant for e in events] == ["chem", "phys", "phys"]
