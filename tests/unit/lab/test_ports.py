"""Port claims: several labs never get the same ports, and strangers are left alone."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from slurm_fair.errors import LabError
from slurm_fair.lab import ports
from slurm_fair.lab.ports import BLOCK, FIRST_PORT, lock_ports, port_answers, port_ceiling, port_is_free


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Closes what a test claims."""
    with ExitStack() as opened:
        yield opened


def test_two_claims_with_the_same_hint_do_not_overlap(stack: ExitStack) -> None:
    first, second = (lock_ports(20, start_hint=7) for _ in range(2))
    stack.callback(first.release)
    stack.callback(second.release)
    assert not set(first.ports) & set(second.ports)
    assert [len(claim.ports) for claim in (first, second)] == [20, 20]
    assert first.ports == tuple(range(first.ports[0], first.ports[0] + 20))


def test_released_ports_can_be_claimed_again(stack: ExitStack) -> None:
    first = lock_ports(3, start_hint=11)
    first.release()
    second = lock_ports(3, start_hint=11)
    stack.callback(second.release)
    assert first.ports == second.ports


def test_ports_of_strangers_are_passed_over(stack: ExitStack) -> None:
    probe = lock_ports(3, start_hint=23)
    probe.release()
    stranger = stack.enter_context(socket.create_server(("0.0.0.0", probe.ports[1])))
    claim = lock_ports(3, start_hint=23)
    stack.callback(claim.release)
    assert stranger.getsockname()[1] not in claim.ports
    assert not port_is_free(probe.ports[1])
    assert port_answers(probe.ports[1])
    assert not port_answers(claim.ports[0])


def test_ports_stay_below_those_of_outgoing_connections(stack: ExitStack) -> None:
    blocks = (port_ceiling() - FIRST_PORT) // BLOCK
    claim = lock_ports(BLOCK + 1, start_hint=blocks - 1)
    stack.callback(claim.release)
    assert claim.ports[-1] < port_ceiling()


def test_too_many_ports_are_refused_with_the_cure() -> None:
    with pytest.raises(LabError, match="ask for fewer nodes"):
        lock_ports(70_000)


@pytest.mark.parametrize(
    ("kernel_says", "ceiling"), [("40000\t60999\n", 40_000), ("1024\t60999\n", 65_536), ("", 32_768)]
)
def test_the_ceiling_follows_the_kernel(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kernel_says: str, ceiling: int
) -> None:
    (tmp_path / "range").write_text(kernel_says)
    monkeypatch.setattr(ports, "EPHEMERAL", tmp_path / "range")
    assert port_ceiling() == ceiling
