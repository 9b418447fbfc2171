"""Time of whole ticks on a real Slurm with many waiting jobs: observe, advance, plan, act.

python benchmarks/poll.py --jobs 1000 --ticks 20
"""

from __future__ import annotations

import argparse
import json
import logging
import platform
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that it runs as a file too

from benchmarks import arguments
from slurm_fair.config.tree import from_tree
from slurm_fair.daemon.loop import Daemon
from slurm_fair.host.state_folder import Places
from slurm_fair.lab import Lab, LabSpec
from slurm_fair.looks.wall_clock import WallClock
from slurm_fair.store import open_journal

PARTS = ("observe", "advance", "plan", "act")
SCRIPT = "#!/bin/sh\nexec sleep 3600\n"


def main() -> None:
    """Measure ticks on a real Slurm and print them."""
    parser = arguments.Parser(__doc__)
    parser.add_argument("--jobs", type=arguments.count, default=1000, help="waiting jobs")
    parser.add_argument("--ticks", type=arguments.count, default=20, help="ticks after the first two")
    parser.add_argument("--nodes", type=arguments.count, default=8)
    parser.add_argument("--term", type=arguments.number, default=30.0, help="lease term, s")
    parser.add_argument("--seeds", type=arguments.whole, nargs="+", default=[0])
    parser.add_argument("--repeat", type=arguments.count, default=1)
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    args = parser.parse_args()
    logging.getLogger("slurm_fair").setLevel(logging.ERROR)
    rows = [row for seed in args.seeds for _ in range(args.repeat) for row in measure(args, seed)]
    if args.json:
        machine = f"{platform.machine()}, Python {platform.python_version()}"
        print(json.dumps({"name": "poll", "machine": machine, "rows": rows}))
        return
    for name in ("wall_s", *(f"{part}_s" for part in PARTS)):
        values = [row[name] for row in rows]
        p50, p95 = np.percentile(values, [50, 95])
        print(f"{name:>12}: median {p50:.3f} s, p95 {p95:.3f} s, max {max(values):.3f} s")


def measure(args: argparse.Namespace, seed: int) -> list[dict[str, Any]]:
    """One lab, one queue, many ticks; the first two (gating everything) are rows too, marked so."""
    rng = np.random.default_rng(seed)
    with Lab(spec=LabSpec(nodes=args.nodes)) as lab:
        script = lab.folder / "work" / "wait.sh"
        script.write_text(SCRIPT)
        until = int(time.time()) + 3600
        stamp = f"slurm_fair:v1,signal=USR2,gate=uts{until}"
        for number in range(args.jobs):
            gpus = int(rng.choice([1, 2, 4, 8], p=[0.6, 0.2, 0.1, 0.1]))
            tenant = ("vision", "nlp", "speech")[number % 3]
            lab.run(
                "sbatch", "-A", tenant, f"--gpus={gpus}", "--requeue", f"--begin=uts{until}", f"--comment={stamp}",
                str(script), cwd=lab.folder / "work",
            )  # fmt: skip
        store = lab.folder / "store"
        store.mkdir(mode=0o700)
        config = from_tree(
            {
                "lease": {"term": args.term, "interval": 1, "grace": 2},
                "slurm": {"conf": str(lab.conf)},
                "storage": {"dir": str(store)},
            },
            "poll.py",
        )
        journal = open_journal(Places(store).journal)
        daemon = Daemon.build(config, Places(store), WallClock(), journal, dry_run=False)
        rows = [one_tick(daemon, args, seed, number) for number in range(args.ticks + 2)]
        journal.close()
    return rows


def one_tick(daemon: Daemon, args: argparse.Namespace, seed: int, number: int) -> dict[str, Any]:
    """One whole tick with its split."""
    wall, cpu = time.perf_counter(), time.process_time()
    done = daemon.once()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    if done.record is None:
        raise SystemExit(f"blind: {done.blind}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    row: dict[str, Any] = {
        "size": {"jobs": args.jobs, "gpus": args.nodes * 8, "acts": len(done.record.outcomes)},
        "method": "start" if number < 2 else "tick",
        "seed": seed,
        "wall_s": wall,
        "cpu_s": cpu,
        "peak_rss_mb": peak,
    }
    time.sleep(0.3)
    return row | {f"{part}_s": done.record.seconds.get(part, 0.0) for part in PARTS}


if __name__ == "__main__":
    main()
