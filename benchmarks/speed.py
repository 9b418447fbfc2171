"""How fast simulations are on the public traces: medians of five processes each, written as a page.

python benchmarks/speed.py --traces FOLDER --write docs/speed.md

The folder has the Philly traces and the weights that benchmarks/reproduce.py wants; the 900 jobs are made up.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

HEAD = """# How fast simulations are

Written by `make speed`: whole commands (`slurm-fair simulate ... --json`, with imports, reading and results),
each in {repeat} processes on one core, medians. An event is a submission, a start, a stop or an end.
"""
SHARES = "philly_vc_shares_astraea.csv"


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--traces", type=Path, required=True)
    parser.add_argument("--write", type=Path, help="the page; else it is printed")
    parser.add_argument("--repeat", type=int, default=5)
    args = parser.parse_args()
    page = HEAD.format(repeat=args.repeat) + "".join(
        _part(title, [*words, "--repeat", str(args.repeat)]) for title, words in _parts(args.traces)
    )
    page += f"\n{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores\n"
    if args.write:
        args.write.write_text(page)
    else:
        sys.stdout.write(page)


def _parts(traces: Path) -> list[tuple[str, list[str]]]:
    """What is measured: a title, and the options of benchmarks/simulate.py."""
    two_weeks, whole = traces / "philly_sia_2week.csv.gz", traces / "philly_sia_full.csv.gz"
    shares = ["--lease", "900", "--arguments", f"--weights {traces / SHARES}"]
    rounds = ["--arguments", "--rounds gavel"]
    months = ["--trace", str(whole), "--policy", "fifo", "--gpus", "2480"]
    return [
        (
            "Philly, two weeks, 1,120 GPUs, leases of 900 s, a look every 10 s; 1/4, 1/2 and all of its jobs",
            ["--trace", str(two_weeks), "--policy", "astraea", "--gpus", "1120", "--scale", "1,2,4", *shares],
        ),
        (
            "900 jobs on 256 GPUs in Gavel's rounds of 120 s",
            ["--jobs", "900", "--policy", "gavel", "--gpus", "256", "--lease", "120", *rounds],
        ),
        (
            "Philly, 109 days, 2,480 GPUs, a look every 60 s as in Astraea's own simulator; 1/4, 1/2 and all",
            [*months, "--scale", "1,2,4", "--interval", "60"],
        ),
        ("Philly, 109 days, 2,480 GPUs, a look every 10 s", months),
    ]


def _part(title: str, words: list[str]) -> str:
    print(title, file=sys.stderr)
    command = [sys.executable, str(Path(__file__).with_name("simulate.py")), "--markdown", *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=7200, check=True)
    return f"\n## {title}\n\n{done.stdout}"


if __name__ == "__main__":
    main()
