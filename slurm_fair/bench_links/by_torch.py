"""All-reduces by PyTorch: one process for each GPU, started by srun or torchrun."""

from __future__ import annotations

import importlib
import time
from collections.abc import Mapping, Sequence
from typing import Any

from slurm_fair.bench_links.groups import Place, too_many
from slurm_fair.errors import InputError

NO_TORCH = (
    "PyTorch is not installed for this Python: `pip install torch`, or give the rates yourself as "
    "`[throughput] links`; `--by sockets` only tries this command out"
)
_WARM = 3  # all-reduces before the first that is timed
_PORTS, _FIRST_PORT = 20_000, 30_000
# Of torchrun, and of srun.
_NODE = ("GROUP_RANK", "SLURM_NODEID")
_RANK, _COUNT, _LOCAL = (
    ("RANK", "SLURM_PROCID"),
    ("WORLD_SIZE", "SLURM_NTASKS"),
    ("LOCAL_RANK", "SLURM_LOCALID"),
)


def joined(environ: Mapping[str, str], first_host: str, backend: str) -> TorchRanks:
    """This process among all others of its step; every one has come when it returns."""
    try:
        torch = importlib.import_module("torch")
        distributed = importlib.import_module("torch.distributed")
    except ImportError:
        raise InputError(NO_TORCH) from None
    rank, count, local = (_number(environ, names) for names in (_RANK, _COUNT, _LOCAL))
    if rank is None or count is None or count < 2:
        raise InputError(
            "one process only: start one for each GPU, such as "
            "`srun -N 2 --ntasks-per-node=8 --gpus-per-node=8 slurm-fair bench-links`, or by torchrun"
        )
    if rank >= count:
        raise InputError(f"this process has rank {rank} of {count}: ranks are numbered from 0 to {count - 1}")
    if backend == "nccl":
        if not torch.cuda.is_available():
            raise InputError(
                "PyTorch sees no GPU here: ask Slurm for GPUs, or `--by gloo` to try it out on CPUs"
            )
        torch.cuda.set_device((local or 0) % torch.cuda.device_count())
    host = environ.get("MASTER_ADDR") or first_host
    port = environ.get("MASTER_PORT") or str(
        _FIRST_PORT + (_number(environ, ("SLURM_JOB_ID",)) or 0) % _PORTS
    )
    try:
        where = f"tcp://{host}:{port}"
        distributed.init_process_group(backend, init_method=where, rank=rank, world_size=count)
    except (RuntimeError, ValueError, OSError) as failed:
        raise InputError(
            f"the processes did not meet at {host}:{port} ({_in_short(failed)}): set MASTER_ADDR to the node of "
            "the first process and MASTER_PORT to a port that is free there"
        ) from None
    nodes: list[Any] = [None] * count
    distributed.all_gather_object(nodes, _number(environ, _NODE) or 0)
    return TorchRanks(torch, distributed, backend, rank, [Place(at, node) for at, node in enumerate(nodes)])


def _in_short(failed: Exception) -> str:
    """The first line of what an error says, or what it is called."""
    return next(iter(str(failed).splitlines()), type(failed).__name__)[:200]


def _number(environ: Mapping[str, str], names: Sequence[str]) -> int | None:
    text = next((environ[name] for name in names if name in environ), "")
    return int(text) if text.isascii() and text.isdecimal() else None


class TorchRanks:
    """The processes of one PyTorch group."""

    def __init__(
        self, torch: Any, distributed: Any, backend: str, rank: int, places: Sequence[Place]
    ) -> None:
        self._torch, self._distributed, self._on_gpu = torch, distributed, backend == "nccl"
        self.rank, self.places = rank, places
        self._groups: dict[tuple[int, ...], Any] = {}

    def seconds(self, members: Sequence[int], parameters: int, times: int) -> list[float] | None:
        """Seconds of each all-reduce among these ranks; None for this one where it is beside them."""
        key = tuple(members)
        if key not in self._groups:
            self._groups[key] = self._distributed.new_group(list(key))  # of all ranks, says PyTorch
        took = None
        if self.rank in key:
            try:
                data = self._torch.ones(parameters, device="cuda" if self._on_gpu else "cpu")
            except (RuntimeError, MemoryError):  # PyTorch has an error of its own for either
                raise InputError(too_many(parameters)) from None
            took = [self._one(data, self._groups[key]) for _ in range(_WARM + times)][_WARM:]
        self._distributed.barrier()
        return took

    def _one(self, data: Any, group: Any) -> float:
        self._wait()
        began = time.perf_counter()
        self._distributed.all_reduce(data, group=group)
        self._wait()
        data.fill_(1.0)
        return time.perf_counter() - began

    def _wait(self) -> None:
        if self._on_gpu:
            self._torch.cuda.synchronize()

    def leave(self) -> None:
        """End the group; no rank waits for another after that."""
        self._distributed.destroy_process_group()
