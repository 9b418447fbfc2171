"""All-reduces between threads over sockets: for trying the measurement out where there are no GPUs."""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from threading import Barrier, Thread

import numpy as np
from numpy.typing import NDArray

from slurm_fair.bench_links.groups import Place, too_many
from slurm_fair.errors import InputError


class PretendedRanks:
    """So many nodes with so many processes each; what is measured is this machine's memory, and no link."""

    def __init__(self, nodes: int, of_each: int) -> None:
        self.places = [Place(node * of_each + at, node) for node in range(nodes) for at in range(of_each)]
        self.rank = 0

    def seconds(self, members: Sequence[int], parameters: int, times: int) -> list[float]:
        """Seconds of each all-reduce by a ring of threads; all of them are timed from here."""
        count = len(members)
        try:
            data = [np.full(parameters, float(rank), dtype=np.float32) for rank in members]
        except MemoryError:
            raise InputError(too_many(parameters)) from None
        ring = [socket.socketpair() for _ in range(count)]  # [i]: from i to the next
        barrier, took = Barrier(count + 1), []

        def run(at: int) -> None:
            for _ in range(times):
                barrier.wait()
                all_reduce(data[at], at, count, ring[at][0], ring[at - 1][1])
                barrier.wait()

        threads = [Thread(target=run, args=(at,), daemon=True) for at in range(count)]
        for thread in threads:
            thread.start()
        for _ in range(times):
            barrier.wait()
            began = time.perf_counter()
            barrier.wait()
            took.append(time.perf_counter() - began)
        for thread in threads:
            thread.join()
        for ends in ring:
            for end in ends:
                end.close()
        return took


def all_reduce(
    data: NDArray[np.float32], at: int, count: int, onward: socket.socket, behind: socket.socket
) -> None:
    """The sum of all members' arrays in the place of each, by a ring: every part is sent on 2 (n - 1) times."""
    parts = np.array_split(data, count)
    for step in range(count - 1):
        _pass_on(
            parts[(at - step) % count], onward, into := np.empty_like(parts[(at - step - 1) % count]), behind
        )
        parts[(at - step - 1) % count] += into
    for step in range(count - 1):
        _pass_on(
            parts[(at + 1 - step) % count], onward, into := np.empty_like(parts[(at - step) % count]), behind
        )
        parts[(at - step) % count][:] = into


def _pass_on(
    part: NDArray[np.float32], onward: socket.socket, into: NDArray[np.float32], behind: socket.socket
) -> None:
    """Send one part on while another comes in: a ring in which all only sent would stand still."""
    sender = Thread(target=onward.sendall, args=(part.tobytes(),), daemon=True)
    sender.start()
    rest = into.data.cast("B")
    while rest:
        got = behind.recv_into(rest)
        if not got:
            raise ConnectionError("a member of the ring has gone")
        rest = rest[got:]
    sender.join()
