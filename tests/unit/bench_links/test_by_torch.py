"""The processes of a PyTorch group, with a stand-in for PyTorch: it is no dependency of ours."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from slurm_fair.bench_links import NO_TORCH, Place, joined
from slurm_fair.errors import InputError

SRUN = {
    "SLURM_PROCID": "2",
    "SLURM_NTASKS": "4",
    "SLURM_LOCALID": "0",
    "SLURM_NODEID": "1",
    "SLURM_JOB_ID": "20007",
}


class Heard:
    """PyTorch as far as it is called, and what it heard; all four processes are played by this one."""

    def __init__(self, gpus: int) -> None:
        self.init: dict[str, Any] = {}
        self.calls: list[tuple[str, Any]] = []
        cuda = SimpleNamespace(
            is_available=lambda: gpus > 0,
            device_count=lambda: gpus,
            set_device=lambda device: self.calls.append(("device", device)),
            synchronize=lambda: self.calls.append(("wait", None)),
        )
        self.torch = SimpleNamespace(cuda=cuda, ones=self._ones)
        self.distributed = SimpleNamespace(
            init_process_group=self._init,
            all_gather_object=self._gather,
            new_group=lambda members: ("group", *members),
            all_reduce=lambda data, group: self.calls.append(("reduce", group)),
            barrier=lambda: self.calls.append(("barrier", None)),
            destroy_process_group=lambda: self.calls.append(("end", None)),
        )

    def _init(self, backend: str, **how: Any) -> None:
        self.init = {"backend": backend, **how}

    def _gather(self, into: list[int], mine: int) -> None:
        into[:] = [0, 0, mine, mine]

    def _ones(self, count: int, device: str) -> Any:
        self.calls.append(("ones", (count, device)))
        return SimpleNamespace(fill_=lambda value: None)


def stand_in(monkeypatch: pytest.MonkeyPatch, gpus: int = 2) -> Heard:
    heard = Heard(gpus)
    monkeypatch.setitem(sys.modules, "torch", heard.torch)
    monkeypatch.setitem(sys.modules, "torch.distributed", heard.distributed)
    return heard


def test_a_step_of_srun_becomes_one_group(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = stand_in(monkeypatch)
    ranks = joined(SRUN, "n1", "nccl")
    assert heard.init == {"backend": "nccl", "init_method": "tcp://n1:30007", "rank": 2, "world_size": 4}
    assert ranks.places == [Place(0, 0), Place(1, 0), Place(2, 1), Place(3, 1)]
    assert ("device", 0) in heard.calls


def test_torchruns_words_go_before_srun_s(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = stand_in(monkeypatch)
    own = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "MASTER_ADDR": "h", "MASTER_PORT": "5"}
    joined({**SRUN, **own}, "n1", "gloo")
    assert heard.init == {"backend": "gloo", "init_method": "tcp://h:5", "rank": 1, "world_size": 2}


def test_who_is_beside_a_group_takes_part_in_making_it_and_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = stand_in(monkeypatch)
    ranks = joined(SRUN, "n1", "nccl")
    heard.calls.clear()
    assert ranks.seconds((0, 1), 100, 2) is None
    assert heard.calls == [("barrier", None)]
    took = ranks.seconds((0, 2), 100, 2)
    assert took is not None
    assert len(took) == 2
    assert heard.calls.count(("reduce", ("group", 0, 2))) == 5, "three to warm up"
    ranks.leave()
    assert heard.calls[-1] == ("end", None)


def test_by_gloo_it_measures_in_main_memory_and_waits_for_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = stand_in(monkeypatch, gpus=0)
    took = joined(SRUN, "n1", "gloo").seconds((0, 2), 100, 2)
    assert took is not None
    assert len(took) == 2
    assert ("ones", (100, "cpu")) in heard.calls
    assert ("wait", None) not in heard.calls
    assert not [what for what, _ in heard.calls if what == "device"]


@pytest.mark.parametrize(
    ("environ", "gpus", "backend", "words"),
    [
        ({}, 2, "nccl", "one process only: start one for each GPU"),
        ({**SRUN, "SLURM_NTASKS": "1"}, 2, "nccl", "one process only"),
        (SRUN, 0, "nccl", "PyTorch sees no GPU here"),
    ],
)
def test_what_cannot_be_measured_is_said_in_one_line(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], gpus: int, backend: str, words: str
) -> None:
    stand_in(monkeypatch, gpus)
    with pytest.raises(InputError, match=words):
        joined(environ, "n1", backend)


def test_without_pytorch_it_says_what_to_install_and_how_to_do_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InputError) as said:
        joined(SRUN, "n1", "nccl")
    assert str(said.value) == NO_TORCH


@pytest.mark.parametrize(
    "failed", [RuntimeError("the port is taken\nat length"), ValueError("port"), OSError()]
)
def test_processes_that_do_not_meet_say_where_they_tried(
    monkeypatch: pytest.MonkeyPatch, failed: Exception
) -> None:
    def fails(backend: str, **how: Any) -> None:
        raise failed

    stand_in(monkeypatch).distributed.init_process_group = fails
    with pytest.raises(InputError, match=r"did not meet at n1:30007 \(.*\): set MASTER_ADDR") as told:
        joined(SRUN, "n1", "nccl")
    assert "\n" not in str(told.value)


def test_a_rank_outside_the_group_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch)
    with pytest.raises(InputError, match="rank 4 of 4: ranks are numbered from 0 to 3"):
        joined(SRUN | {"SLURM_PROCID": "4"}, "n1", "nccl")


@pytest.mark.parametrize("failed", [RuntimeError("CUDA out of memory"), MemoryError()])
def test_an_all_reduce_that_does_not_fit_is_refused(
    monkeypatch: pytest.MonkeyPatch, failed: Exception
) -> None:
    heard = stand_in(monkeypatch)
    ranks = joined(SRUN, "n1", "nccl")

    def fails(count: int, device: str) -> None:
        raise failed

    heard.torch.ones = fails
    with pytest.raises(
        InputError, match="--parameters 1048576: 4 MiB for each GPU are not to be had: give fewer"
    ):
        ranks.seconds([2, 3], 1 << 20, 1)
