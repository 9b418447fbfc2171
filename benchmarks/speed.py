"""The speed of simulations on the public traces: medians of five processes (the longest: one), written as a page.

python benchmarks/speed.py --traces FOLDER --write docs/speed.md

The folder has the traces and the weights that benchmarks/reproduce.py wants; some jobs are made up.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that it runs as a file too

from benchmarks import arguments

HEAD = """# How fast simulations are

Written by `make speed`: whole commands (`slurm-fair simulate ... --json`, with imports, reading and results),
each in {repeat} processes on one core (the longest: in one), medians. An event is a submission, a start, a stop
or an end.
"""
SHARES, ROUNDS = "philly_vc_shares_astraea.csv", "shockwave_460.csv.gz"
_LONGEST_SECONDS = 14_400  # of a table
TWO_WEEKS, MONTHS = "philly_sia_2week.csv.gz", "philly_sia_full.csv.gz"


def main() -> None:
    """Measure all parts and write the page."""
    parser = arguments.Parser(__doc__)
    parser.add_argument("--traces", type=Path, required=True, help="folder of the public traces")
    parser.add_argument("--write", type=arguments.page, help="the page; else it is printed")
    parser.add_argument("--repeat", type=arguments.count, default=5)
    args = parser.parse_args()
    if wrong := arguments.lacking(args.traces, (TWO_WEEKS, MONTHS, SHARES, ROUNDS)):
        parser.error(wrong)
    page = HEAD.format(repeat=args.repeat) + "".join(_part(part, args.repeat) for part in _parts(args.traces))
    page += f"\n{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores\n"
    if args.write:
        args.write.write_text(page)
    else:
        sys.stdout.write(page)


class Part(NamedTuple):
    """One table: what it is, what is wanted of its last row, and the options of benchmarks/simulate.py."""

    title: str
    wanted: str
    words: list[str]


def _parts(traces: Path) -> list[Part]:
    two_weeks, whole = traces / TWO_WEEKS, traces / MONTHS
    shares = ["--lease", "900", "--arguments", f"--weights {traces / SHARES}"]
    crowd = ["--jobs", "900", "--policy", "gavel", "--gpus", "256", "--lease", "120"]
    crowd += ["--arguments", "--rounds gavel"]
    months = ["--trace", str(whole), "--policy", "fifo", "--gpus", "2480"]
    return [
        Part(
            "Philly, two weeks, 1,120 GPUs, leases of 900 s, a look every 10 s; 1/4, 1/2 and all of its jobs",
            "15 CPU s and 300 MiB",
            ["--trace", str(two_weeks), "--policy", "astraea", "--gpus", "1120", "--scale", "1,2,4", *shares],
        ),
        Part(
            "The same two weeks on 400 GPUs, where jobs wait",
            "40 CPU s",
            ["--trace", str(two_weeks), "--policy", "astraea", "--gpus", "400", *shares, "--repeat", "1"],
        ),
        Part(
            "10,000, 40,000 and 160,000 made-up jobs, which want 1.1 of 256 GPUs: the queue grows to the end",
            "an event costs less than 1.3 times as much from row to row",
            [
                "--jobs",
                "160000",
                "--load",
                "1.1",
                "--scale",
                "1,4,16",
                "--policy",
                "astraea",
                "--gpus",
                "256",
                "--lease",
                "900",
                "--repeat",
                "1",
            ],
        ),
        Part(
            "900 jobs on 256 GPUs in Gavel's rounds of 120 s: those of shockwave_460, each twice",
            "2 CPU s",
            [*crowd, "--trace", str(traces / ROUNDS), "--copies", "2"],
        ),
        Part(
            "900 made-up jobs, which want 1.2 of the GPUs, so that the queue grows to the end",
            "as above",
            [*crowd, "--load", "1.2"],
        ),
        Part(
            "Philly, 109 days, 2,480 GPUs, a look every 60 s; 1/4, 1/2 and all of its jobs",
            "15 CPU s",
            [*months, "--scale", "1,2,4", "--interval", "60"],
        ),
        Part("The same with a look every 10 s", "as above", months),
    ]


def _part(part: Part, repeat: int) -> str:
    print(part.title, file=sys.stderr)
    script = str(Path(__file__).with_name("simulate.py"))
    command = [sys.executable, script, "--markdown", "--repeat", str(repeat), *part.words]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=_LONGEST_SECONDS, check=True)
    return f"\n## {part.title}\n\nWanted of all jobs: {part.wanted}.\n\n{done.stdout}"


if __name__ == "__main__":
    main()
