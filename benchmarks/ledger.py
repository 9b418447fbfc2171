"""Time and memory of one step of the ledger: many jobs, of which few or many changed since the last look.

The events of the step are not written out.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that it runs as a file too

from benchmarks import arguments
from slurm_fair.ledger import advance
from slurm_fair.ledger.charging.advance import DEFAULTS, folded
from slurm_fair.ledger.charging.window_events import WindowLooks
from slurm_fair.model import (
    JobState,
    JobTable,
    Ledger,
    NodeTable,
    PartitionTable,
    Placement,
    Snapshot,
    TenantTable,
)
from slurm_fair.model.ids import pack_keys

BEGAN = 1_700_000_000.0
INTERVAL_SECONDS = 10.0
RUNNING_PART = 0.2
NODE_GPUS = 8


def main() -> None:
    """One row per repeat, for few and for many changed rows."""
    options = _options()
    rows = [
        row
        for events in options.events
        for seed in range(options.seeds)
        for row in measure(options.jobs, options.tenants, events, seed, options.repeat)
    ]
    if options.json:
        print(json.dumps({"name": "ledger", "machine": _machine(), "rows": rows}))
    else:
        _print_table(rows)


def _options() -> argparse.Namespace:
    parser = arguments.Parser(__doc__)
    parser.add_argument("--jobs", type=arguments.count, default=100_000)
    parser.add_argument("--tenants", type=arguments.count, default=1_000)
    parser.add_argument(
        "--events", type=arguments.count, nargs="+", default=[50, 2_000], help="changed rows per step"
    )
    parser.add_argument("--seeds", type=arguments.count, default=1, help="how many random clusters")
    parser.add_argument("--repeat", type=arguments.count, default=15, help="steps measured per cluster")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def measure(jobs: int, tenants: int, events: int, seed: int, repeat: int) -> Iterator[dict[str, Any]]:
    """Steps of one cluster, the first two of which are not counted."""
    looks = _looks(jobs, tenants, events, np.random.default_rng(seed))
    ledger, _ = advance(Ledger.new(BEGAN + 0.4), next(looks))
    ledger, _ = advance(ledger, next(looks))
    for _ in range(repeat):
        look = next(looks)
        wall, cpu = time.perf_counter(), time.process_time()
        ledger, _ = folded(ledger, WindowLooks((look,), look.jobs), DEFAULTS)
        yield {
            "size": {"jobs": jobs, "tenants": tenants, "events": events},
            "method": "fold",
            "seed": seed,
            "wall_s": time.perf_counter() - wall,
            "cpu_s": time.process_time() - cpu,
            "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }


def _looks(jobs: int, tenants: int, events: int, random: np.random.Generator) -> Iterator[Snapshot]:
    """Snapshots ten seconds apart; a quarter of the changed rows each starts, is requeued, ends, arrives.

    Times are cut to whole seconds as Slurm's are, so that some news lie before the snapshot before.
    """
    now, part = BEGAN + 0.4, max(events // 4, 1)
    empty = _snapshot(JobTable.none(), tenants, now)
    table = _with_rows(empty.jobs, 1, jobs, tenants, np.full(jobs, now - 5.0), random)
    running = random.permutation(jobs)[: int(jobs * RUNNING_PART)]
    table.state[running], table.start[running] = JobState.RUNNING, now - 3.0
    yield _snapshot(table, tenants, now)
    while True:
        now += INTERVAL_SECONDS
        table = table.take(table.state != JobState.DONE)
        table = table.with_columns(**{name: column.copy() for name, column in table._arrays().items()})
        instants = np.floor(now - random.uniform(0.0, INTERVAL_SECONDS, part))
        waiting = random.permutation(np.flatnonzero(table.state == JobState.WAITING))[:part]
        holding = random.permutation(np.flatnonzero(table.state == JobState.RUNNING))
        requeued, ended = holding[:part], holding[part : 2 * part]
        table.state[waiting], table.start[waiting] = JobState.RUNNING, instants[: len(waiting)]
        table.state[requeued], table.start[requeued] = JobState.WAITING, 0.0
        table.submit[requeued] = instants[: len(requeued)]
        table.restarts[requeued] += 1
        table.state[ended], table.end[ended] = JobState.DONE, instants[: len(ended)]
        first = int(table.key[-1] >> 23) + 1
        table = _with_rows(table, first, part, tenants, instants, random)
        yield _snapshot(table, tenants, now)


def _with_rows(
    table: JobTable, first: int, count: int, tenants: int, submit: Any, random: np.random.Generator
) -> JobTable:
    defaults = {name: np.zeros(count, dtype=column.dtype) for name, column in table._arrays().items()}
    fresh = defaults | {
        "key": pack_keys(np.arange(first, first + count), np.full(count, -1)),
        "submit": submit,
        "tenant": random.integers(0, tenants, count),
        "gpus": random.choice([1, 1, 2, 4, 8], count),
        "weight": np.ones(count),
    }
    fresh["usual_gpus"] = fresh["gpus"]
    return replace(table, **{n: np.concatenate([c, fresh[n]]) for n, c in table._arrays().items()})


def _snapshot(jobs: JobTable, tenants: int, now: float) -> Snapshot:
    count = max(len(jobs) // 10, 1)
    zeros = np.zeros(count, dtype=np.int64)
    nodes = NodeTable(
        tuple(f"n{number}" for number in range(count)), zeros + NODE_GPUS, zeros, zeros, zeros, zeros, zeros,
        zeros, np.ones(count, dtype=bool), ("",) * count,
    )  # fmt: skip
    held = np.flatnonzero(jobs.state == JobState.RUNNING)
    names = tuple(f"t{number:05}" for number in range(tenants))
    return Snapshot(
        time=now,
        cluster="bench",
        nodes=nodes,
        partitions=PartitionTable(("gpu",), np.ones(1, dtype=bool), np.ones((1, count), dtype=bool)),
        tenants=TenantTable(names, np.arange(tenants, dtype=np.float64) % 3 + 1),
        users=names,
        gpu_types=("gpu",),
        jobs=jobs,
        held=Placement(held, held % count, jobs.gpus[held]),
        wanted=Placement.none(),
        barred=Placement.none(),
        reasons=("",) * len(jobs),
    )


def _machine() -> str:
    return (
        f"{platform.machine()} {platform.system()} Python {platform.python_version()} numpy {np.__version__}"
    )


def _print_table(rows: list[dict[str, Any]]) -> None:
    print(_machine())
    heads = ("jobs", "tenants", "events", "steps", "median ms", "best ms", "worst ms", "peak MB")
    print(" ".join(f"{head:>9}" for head in heads))
    sizes = sorted({tuple(row["size"].values()) for row in rows})
    for size in sizes:
        some = [row for row in rows if tuple(row["size"].values()) == size]
        walls = [1000 * row["wall_s"] for row in some]
        peak = max(row["peak_rss_mb"] for row in some)
        numbers = [f"{n:>9}" for n in (*size, len(some))]
        numbers += [f"{n:>9.1f}" for n in (statistics.median(walls), min(walls), max(walls), peak)]
        print(" ".join(numbers))


if __name__ == "__main__":
    main()
