"""The ring of threads: its sums are right, and its times are as many as were asked for."""

from __future__ import annotations

import socket
from threading import Thread

import numpy as np
import pytest

from slurm_fair.bench_links import PretendedRanks
from slurm_fair.bench_links.by_sockets import all_reduce
from slurm_fair.errors import InputError


@pytest.mark.parametrize("count", [2, 3, 5])
def test_every_member_of_the_ring_ends_with_the_sum(count: int) -> None:
    ring = [socket.socketpair() for _ in range(count)]
    data = [np.arange(17, dtype=np.float32) * (at + 1) for at in range(count)]
    threads = [
        Thread(target=all_reduce, args=(data[at], at, count, ring[at][0], ring[at - 1][1]))
        for at in range(count)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    for ends in ring:
        for end in ends:
            end.close()
    wanted = np.arange(17) * count * (count + 1) / 2
    assert all(np.array_equal(one, wanted) for one in data)


def test_pretended_nodes_are_timed() -> None:
    ranks = PretendedRanks(2, 3)
    assert [place.node for place in ranks.places] == [0, 0, 0, 1, 1, 1]
    took = ranks.seconds((0, 3), 2000, 4)
    assert len(took) == 4
    assert all(seconds > 0 for seconds in took)


def test_arrays_that_do_not_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(np, "full", fails)
    with pytest.raises(InputError, match="--parameters 1024: 0 MiB for each GPU are not to be had"):
        PretendedRanks(1, 2).seconds([0, 1], 1024, 1)
