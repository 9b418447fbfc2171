"""The runs of a sweep on a Dask cluster that is there already."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import pickle
import warnings
from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Any

from slurm_fair.cli.simulate.crew import OrderEnd
from slurm_fair.cli.simulate.setups import PolicySetup
from slurm_fair.cli.sweep.grid import SweepRun
from slurm_fair.cli.sweep.task import Row, SweepTask, simulated_metrics
from slurm_fair.errors import InputError, SlurmFairError
from slurm_fair.sim.scenario import Scenario

CONNECT_SECONDS = 20
_PACKAGE = "slurm_fair[dask]"


def over_dask(address: str, tasks: Sequence[SweepTask], version: str) -> Generator[OrderEnd[Row], None, None]:
    """Hand every run to the cluster, and say of each that it has ended; the cluster itself is left as it is.

    Dask fails all runs that were on a process that died. Those are handed over again one by one in the end: only
    the run that took its process along has no result.
    """
    distributed = _library()
    with _quiet(), _client(distributed, address) as client:
        felled: list[int] = []
        for at, future in _as_they_end(distributed, client, tasks, range(len(tasks)), version):
            if future.status == "error" and isinstance(future.exception(), distributed.KilledWorker):
                felled.append(at)
            else:
                yield _end(at, future, address)
        for one in felled:
            for at, future in _as_they_end(distributed, client, tasks, [one], version):
                yield _end(at, future, address)


def _library() -> Any:
    try:
        import distributed
    except ImportError:
        raise InputError(f"--dask needs Dask: pip install '{_PACKAGE}' here and on the cluster") from None
    return distributed


def check_scheduler(address: str) -> None:
    """Refuse an address at which no scheduler answers."""
    distributed = _library()
    with _quiet(), _in_one_line(address):
        asyncio.run(_reach(distributed, address))


@contextlib.contextmanager
def _client(distributed: Any, address: str) -> Iterator[Any]:
    with _in_one_line(address):
        asyncio.run(_reach(distributed, address))
        client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    try:
        yield client
    finally:
        client.close()


@contextlib.contextmanager
def _in_one_line(address: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, TypeError) as problem:
        raise InputError(f"--dask {address!r}: {problem}: write tcp://HOST:PORT") from None
    except (OSError, TimeoutError) as problem:
        raise SlurmFairError(
            f"--dask {address}: no Dask scheduler answers there ({problem}): is it up?"
        ) from None


async def _reach(distributed: Any, address: str) -> None:
    """Connect once before a client is made: Dask leaves a client open that failed to connect."""
    comm = await distributed.comm.connect(address, timeout=CONNECT_SECONDS)
    await comm.close()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Dask's own remarks about a scheduler that went away are not shown: we say it in one line."""
    every = logging.root.manager.loggerDict
    loud = [log for name, log in every.items() if name.split(".")[0] == "distributed"]
    ours = [log for log in loud if isinstance(log, logging.Logger) and not log.disabled]
    for log in ours:
        log.disabled = True
    try:
        yield
    finally:
        for log in ours:
            log.disabled = False


def _as_they_end(
    distributed: Any, client: Any, tasks: Sequence[SweepTask], which: Iterable[int], version: str
) -> Iterator[tuple[int, Any]]:
    """Some of the tasks, each with its future once that is over."""
    futures = _handed_over(client, tasks, which, version)
    try:
        for future in distributed.as_completed(list(futures), loop=client.loop):
            yield futures.pop(future), future
    finally:
        with contextlib.suppress(Exception):  # a scheduler that is gone has nothing to cancel
            client.cancel(list(futures))


def _handed_over(
    client: Any, tasks: Sequence[SweepTask], which: Iterable[int], version: str
) -> dict[Any, int]:
    """The future of each task. The scenario travels once, as their input; no machine needs to be up yet."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph")
        scenario = client.submit(pickle.loads, pickle.dumps(tasks[0].scenario), pure=False)
        return {
            client.submit(_measured_there, tasks[at].cell, tasks[at].setup, scenario, version, pure=False): at
            for at in which
        }


def _measured_there(cell: SweepRun, setup: PolicySetup, scenario: Scenario, version: str) -> Row:
    """One run, on a machine of the cluster; it must have the same release of slurm_fair."""
    from slurm_fair.cli.base import our_version

    if our_version() != version:
        raise InputError(
            f"the cluster has slurm_fair {our_version()}, and here is {version}: install the same"
        )
    return simulated_metrics(SweepTask(cell, setup, scenario), lambda policy, ended, seconds: None)


def _end(at: int, future: Any, address: str) -> OrderEnd[Row]:
    if future.status == "finished":
        return OrderEnd(at, future.result())
    if future.status != "error":
        raise SlurmFairError(f"--dask {address}: the Dask scheduler is gone")
    problem = future.exception()
    if isinstance(problem, SlurmFairError):
        return OrderEnd(at, None, problem)
    return OrderEnd(at, None, SlurmFairError(f"{type(problem).__name__}: {problem}"))
