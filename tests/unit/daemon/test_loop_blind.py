"""A daemon whose looks fail: it presses nobody, lives, and is not taken for one that acts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from slurm_fair.errors import NotTheOwner, StoreError
from slurm_fair.host.state_folder import Heartbeat, Places, last_beat
from slurm_fair.model import LeasePhase
from slurm_fair.slurm.command import CommandResult
from slurm_fair.store import fence
from tests.support.daemon_bench import Bench, bench_in, crowd

TIME_OUT = 20.0


@pytest.fixture
def following(tmp_path: Path) -> Iterator[Bench]:
    """A daemon whose looks follow changes."""
    with bench_in(tmp_path / "auto", lease={"interval": "auto", "term": 600.0}) as made:
        yield made


def hang(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object] = lambda: None
) -> list[float]:
    """From now on each command hangs for its whole time; the instants at which they are sent."""
    sent = []

    def hangs(*argv: str, **how: Any) -> CommandResult:
        sent.append(bench.now)
        bench.pass_time(TIME_OUT)
        meanwhile()
        return CommandResult(argv, -1, "", "", TIME_OUT, timed_out=True)

    monkeypatch.setattr(bench.commands, "run", hangs)
    return sent


@pytest.mark.parametrize("seconds", [0.5, TIME_OUT])
def test_a_slurm_that_does_not_answer_is_asked_again_a_second_later(bench: Bench, seconds: float) -> None:
    crowd(bench)
    bench.run(60 - bench.now % 60 + 1.5)
    assert LeasePhase.REVOKING.code in bench.daemon.standing.leases.phase
    began, bench.commands.trouble.dead = bench.now, True
    assert bench.daemon.once().blind
    bench.pass_time(seconds)
    assert bench.daemon.next_look(began) == bench.now + 1.0
    bench.commands.trouble.dead = False
    assert not bench.daemon.once().blind
    assert bench.daemon.next_look(bench.now) < bench.now + 1.0, "jobs change places"


def test_a_slurm_that_hangs_has_a_second_after_each_look(
    following: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also from the questions for change, which the daemon asks while it waits."""
    crowd(following)
    daemon, ends = following.daemon, []
    sent = hang(following, monkeypatch)
    for _ in range(5):
        began = following.now
        assert daemon.once().blind
        ends.append((len(sent), following.now))
        daemon.wait(began)
    assert daemon.once().blind
    assert all(sent[following] >= end + 1.0 for following, end in ends)


def test_looks_without_an_answer_leave_no_debt(following: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next looks come as soon as ever, once Slurm answers again."""
    crowd(following)
    hang(following, monkeypatch)
    for _ in range(20):
        assert following.daemon.once().blind
    assert following.daemon.watch.allowance.wait_seconds() == 0.0


def test_a_look_at_a_slurm_that_hangs_leaves_a_heartbeat_at_its_end(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The dead-man takes no time-out for a dead daemon."""
    crowd(bench)
    hang(bench, monkeypatch)
    for _ in range(3):
        assert bench.daemon.once().blind
        beat = last_beat(bench.places)
        assert beat is not None
        assert beat.time == bench.now
        assert beat.seen < bench.now - TIME_OUT + 1.0, "it lives, and did not see"


def test_a_daemon_that_is_fenced_during_a_blind_look_does_not_seem_to_live(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    crowd(bench)
    hang(bench, monkeypatch)
    assert bench.daemon.once().blind
    left = bench.places.heartbeat.read_bytes()
    with monkeypatch.context() as patched:
        hang(bench, patched, lambda: fence(bench.places.journal, by="the dead-man"))
        assert bench.daemon.once().blind
    after = last_beat(bench.places)
    assert after is not None
    assert after.time < bench.now, "no heartbeat at the end of that look"
    assert left
    with pytest.raises(NotTheOwner):
        bench.daemon.once()


def test_with_short_leases_a_command_that_hangs_finds_a_fresh_heartbeat(tmp_path: Path) -> None:
    with bench_in(tmp_path / "short", lease={"term": 6.0, "interval": 1.0, "grace": 3.0}) as bench:
        bench.daemon.once()
        bench.pass_time(0.6)
        bench.daemon.goes_on()
        beat = last_beat(bench.places)
        assert beat is not None
        assert beat.time == bench.now


def test_a_heartbeat_that_could_not_be_filled_is_none_and_a_hold_after_the_freeing_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full disk the file can be made; the dead-man takes an empty one for no daemon."""

    def full(places: Places, heartbeat: Heartbeat) -> None:
        places.heartbeat.write_bytes(b"")
        raise StoreError("no space left on device")

    with bench_in(tmp_path / "s", gate="hold") as bench:
        crowd(bench)
        bench.daemon.once()
        monkeypatch.setattr("slurm_fair.host.state_folder.beat", full)
        jobs = [bench.world.submit(8, tenant, hold=True) for tenant in ("a", "b")]
        bench.run(60)
        assert not any(bench.world.record(job).held for job in jobs)
        waits = next(job for job in jobs if bench.world.record(job).state == "PENDING")
        record = bench.world.record(waits)
        bench.world.hold(waits)
        record.scheduled, record.eligible = record.submit, 0.0  # Slurm never came to it in its long queue
        bench.run(200)
        assert record.held
