"""Time of one plan of the Astraea policy: everything free, and everything running with its lease over.

python benchmarks/astraea.py --jobs 100000 --gpus 100000 --tenants 1000 --seeds 0 1 2 --repeat 3
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that it runs as a file too

from benchmarks import arguments
from slurm_fair.model import (
    JobAccounts,
    JobState,
    JobTable,
    LeasePhase,
    Leases,
    LeaseTerms,
    Ledger,
    NodeTable,
    PartitionTable,
    Placement,
    Snapshot,
    TenantAccounts,
    TenantTable,
    Verdict,
)
from slurm_fair.model.columns import Ints
from slurm_fair.model.ids import pack_keys
from slurm_fair.policy import View, load

NODE_GPUS, NODE_CPUS, NODE_MEMORY_MB = 8, 128, 1_024_000
GANGS, ODDS = (1, 2, 4, 8, 16, 32), (0.55, 0.15, 0.12, 0.12, 0.04, 0.02)
NOW = 1_000_000.0
CASES = ("cold", "expired")


def main() -> None:
    """Measure each case and print the table."""
    args = _arguments()
    rows = [row for seed in args.seeds for case in args.cases for row in _measure(args, case, seed)]
    document = {"name": "astraea", "machine": f"{platform.machine()}, Python {platform.python_version()}"}
    if args.json:
        print(json.dumps({**document, "rows": rows}))
        return
    print(
        f"{'case':<9}{'seed':>5}{'wall s':>10}{'cpu s':>10}{'granted':>9}{'renewed':>9}{'revoked':>9}{'idle':>7}"
    )
    for row in rows:
        counts = "".join(f"{row[name]:>9}" for name in ("granted", "renewed", "revoked"))
        times = f"{row['wall_s']:>10.3f}{row['cpu_s']:>10.3f}"
        print(f"{row['method']:<9}{row['seed']:>5}{times}{counts}{row['idle_gpus']:>7}")
    for case in args.cases:
        median = np.median([row["wall_s"] for row in rows if row["method"] == case])
        print(f"{case}: median {median:.3f} s of {args.jobs} jobs on {args.gpus} GPUs")


def _arguments() -> argparse.Namespace:
    parser = arguments.Parser(__doc__)
    parser.add_argument("--jobs", type=arguments.count, default=100_000, help="waiting jobs")
    parser.add_argument("--gpus", type=arguments.count, default=100_000)
    parser.add_argument("--tenants", type=arguments.count, default=1000)
    parser.add_argument("--seeds", type=arguments.whole, nargs="+", default=[0])
    parser.add_argument("--repeat", type=arguments.count, default=3)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    return parser.parse_args()


def _measure(args: argparse.Namespace, case: str, seed: int) -> Iterator[dict[str, Any]]:
    policy = load("astraea", {})
    for _ in range(args.repeat):
        view = view_of(args.jobs, args.gpus, args.tenants, case, seed)
        wall, cpu = time.perf_counter(), time.process_time()
        plan = policy.plan(view)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        count = {verdict: int((plan.verdict == verdict).sum()) for verdict in Verdict}
        stays = np.isin(plan.verdict[view.snapshot.held.row], [Verdict.RENEW, Verdict.KEEP])
        used = int(plan.places.gpus.sum() + view.snapshot.held.gpus[stays].sum())
        yield {
            "size": {"jobs": args.jobs, "gpus": args.gpus, "tenants": args.tenants},
            "method": case,
            "seed": seed,
            "wall_s": wall,
            "cpu_s": cpu,
            "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            "granted": count[Verdict.GRANT],
            "renewed": count[Verdict.RENEW],
            "revoked": count[Verdict.REVOKE],
            "idle_gpus": view.snapshot.total_gpus - used,
        }


def view_of(jobs: int, gpus: int, tenants: int, case: str, seed: int) -> View:
    """A cluster of 8-GPU nodes with this many waiting jobs; `expired` fills it with jobs whose lease is over."""
    rng = np.random.default_rng(seed)
    nodes = gpus // NODE_GPUS
    held = _full_cluster(rng, nodes) if case == "expired" else Placement.none()
    running = int(held.row.max(initial=-1)) + 1
    gang = np.concatenate([_gangs_of(held, running), rng.choice(GANGS, jobs, p=ODDS)]).astype(np.int64)
    owner = np.minimum(rng.zipf(1.3, running + jobs) - 1, 10**9) % tenants
    table = _jobs(gang, owner.astype(np.int64), running, rng)
    names = tuple(f"t{i:06d}" for i in range(tenants))
    weight = rng.choice([1.0, 2.0, 4.0], tenants)
    snapshot = Snapshot(
        time=NOW,
        cluster="bench",
        nodes=_nodes(nodes),
        partitions=PartitionTable(("gpu",), np.ones(1, dtype=bool), np.ones((1, nodes), dtype=bool)),
        tenants=TenantTable(names, weight),
        users=("u",),
        gpu_types=("gpu",),
        jobs=table,
        held=held,
        wanted=Placement.none(),
        barred=Placement.none(),
        reasons=("",) * len(table),
    )
    return View(snapshot, _ledger(snapshot, gpus, rng), _leases(snapshot, running), LeaseTerms(), NOW)


def _full_cluster(rng: np.random.Generator, nodes: int) -> Placement:
    """Every node full: some with gangs of 1, 2, 4 or 8, some in pairs under gangs of 16, in no order."""
    node, gpus, row = [], [], []
    job = 0
    order = rng.permutation(nodes).tolist()
    while order:
        size = int(rng.choice([1, 2, 4, 8, 16], p=[0.2, 0.2, 0.2, 0.25, 0.15]))
        wide = 2 if size == 16 and len(order) > 1 else 1
        here = [order.pop() for _ in range(wide)]
        gangs = NODE_GPUS // size if size < NODE_GPUS else 1
        for _ in range(gangs):
            for each in here:
                node.append(each)
                gpus.append(min(size, NODE_GPUS))
                row.append(job)
            job += 1
    return Placement(*(np.array(column, dtype=np.int64) for column in (row, node, gpus)))


def _gangs_of(held: Placement, running: int) -> Ints:
    return np.bincount(held.row, weights=held.gpus, minlength=running).astype(np.int64)


def _jobs(gang: Ints, owner: Ints, running: int, rng: np.random.Generator) -> JobTable:
    count = len(gang)
    columns: dict[str, Any] = {
        name: np.zeros(count, dtype=column.dtype) for name, column in JobTable.none()._arrays().items()
    }
    columns.update(
        key=pack_keys(np.arange(1, count + 1), np.full(count, -1)),
        record=np.arange(1, count + 1),
        submit=np.floor(rng.uniform(0, NOW, count)),
        tenant=owner,
        state=np.where(np.arange(count) < running, JobState.RUNNING, JobState.WAITING).astype(np.int8),
        gpus=gang,
        usual_gpus=gang,
        nodes=np.ones(count, dtype=np.int64),
        gpu_type=np.full(count, -1, dtype=np.int64),
        cpus=gang * 8,
        memory_mb=gang * 64_000,
        checkpoints=np.ones(count, dtype=bool),
        requeueable=np.ones(count, dtype=bool),
        weight=np.ones(count),
        gpu_weight=np.ones(count),
    )
    return JobTable(**columns)


def _nodes(count: int) -> NodeTable:
    def column(value: int) -> Ints:
        return np.full(count, value, dtype=np.int64)

    return NodeTable(
        names=tuple(f"n{i:05d}" for i in range(count)),
        gpus=column(NODE_GPUS),
        gpus_others=column(0),
        gpu_type=column(0),
        cpus=column(NODE_CPUS),
        cpus_others=column(0),
        memory_mb=column(NODE_MEMORY_MB),
        memory_others_mb=column(0),
        usable=np.ones(count, dtype=bool),
        why=("",) * count,
    )


def _ledger(snapshot: Snapshot, gpus: int, rng: np.random.Generator) -> Ledger:
    """Tenants and jobs that have had anything between nothing and twice their due."""
    jobs, tenants = snapshot.jobs, snapshot.tenants
    owed = gpus * tenants.weight / tenants.weight.sum() * NOW
    had = owed * rng.uniform(0, 2, len(owed))
    job_owed = jobs.gpus * rng.uniform(0, 100_000, len(jobs))
    job_had = np.where(rng.random(len(jobs)) < 0.5, 0.0, job_owed * rng.uniform(0, 2, len(jobs)))
    nothing = np.zeros(len(jobs))
    ints = np.zeros(len(jobs), dtype=np.int64)
    accounts = JobAccounts(
        jobs.key, jobs.submit, jobs.submit, ints, jobs.tenant, jobs.gpus, jobs.weight, job_had, job_owed,
        nothing, job_had / jobs.gpus, nothing, nothing, np.ones(len(jobs), dtype=bool),
        np.ones(len(jobs), dtype=bool), np.ones(len(jobs)), ints,
    )  # fmt: skip
    last = np.full(len(owed), NOW)
    return Ledger(
        NOW, 0.0, gpus, TenantAccounts(tenants.names, tenants.weight, had, owed, owed, last), accounts
    )


def _leases(snapshot: Snapshot, running: int) -> Leases:
    """Leases that end now for all running jobs."""
    nothing = np.zeros(running)
    ints = np.zeros(running, dtype=np.int64)
    phase = np.full(running, LeasePhase.RUNNING, dtype=np.int8)
    return Leases(
        snapshot.jobs.key[:running], phase, ints, snapshot.jobs.gpus[:running], nothing, nothing + 1,
        np.full(running, NOW), ints, nothing, nothing, np.zeros(running, dtype=bool), Placement.none(),
        snapshot.nodes.names,
    )  # fmt: skip


if __name__ == "__main__":
    main()
