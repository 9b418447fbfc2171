"""Errors of the throughput estimator on measured step times (docs/throughput.md).

python benchmarks/estimator.py --traces FOLDER --write docs/throughput.md

Of each application, GPU type and local batch size it learns one row on one GPU and one on several nodes, and
foretells all others. FOLDER holds sia_pollux_step_times.csv.gz. The exit code is 1 where stable jobs are further
off than wanted.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
import platform
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that it runs as a file too

from benchmarks import arguments
from slurm_fair.model.columns import Bools, Floats, Ints
from slurm_fair.throughput import (
    ANY_NODE,
    Estimator,
    JobClass,
    JobShapes,
    Keeping,
    Known,
    Links,
    Samples,
    SpeedLayer,
    estimator,
    learned,
    links_of,
    predicted,
)

FILE = "sia_pollux_step_times.csv.gz"
MEASURED = "## Measured"
WANTED_MEDIAN, WANTED_P90 = 0.05, 0.15
LADDER = (
    0.5,
    1.0,
    0.0,
    0.75,
    0.25,
    0.875,
    0.375,
    0.625,
    0.125,
)  # places in the list of shapes, batch by batch
KEEPING = Keeping(samples=100, shapes=1000, classes=100)  # nothing of the few rows is dropped


@dataclass(frozen=True)
class Rows:
    """Measured rows of one application on one GPU type."""

    batch: Floats  # of one GPU
    gpus: Ints
    nodes: Ints
    most: Ints
    step: Floats  # seconds
    sync: Floats

    def take(self, rows: Ints | Bools) -> Rows:
        """Some of the rows."""
        return Rows(
            *(getattr(self, name)[rows] for name in ("batch", "gpus", "nodes", "most", "step", "sync"))
        )


def read(path: Path) -> dict[tuple[str, str], Rows]:
    """All rows by application and GPU type. Where only counts are known, GPUs lie as evenly as can be."""
    found: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    with gzip.open(path, "rt", newline="") as lines:
        for row in csv.DictReader(lines):
            if row["placement"]:
                split = [int(digit) for digit in row["placement"]]
                nodes, gpus, most = len(split), sum(split), max(split)
            else:
                nodes, gpus = int(float(row["num_nodes"])), int(float(row["num_replicas"]))
                most = -(-gpus // nodes)
            times = float(row["step_time_s"]), float(row["sync_time_s"] or "nan")
            key = row["application"], row["gpu_type"]
            found.setdefault(key, []).append((float(row["local_bsz"]), gpus, nodes, most, *times))
    return {key: _columns(rows) for key, rows in sorted(found.items())}


def _columns(rows: list[tuple[float, ...]]) -> Rows:
    table = np.array(rows)
    batch, gpus, nodes, most, step, sync = table.T
    return Rows(batch, gpus.astype(int), nodes.astype(int), most.astype(int), step, sync)


# -- what is learned -------------------------------------------------------------------------------------------


def alone(rows: Rows) -> Ints:
    """One row of each batch size in the smallest shape: on one GPU, where the application can run so."""
    order = np.lexsort((rows.nodes, rows.gpus, rows.batch))
    return order[np.flatnonzero(np.diff(rows.batch[order], prepend=-1))]


def points(rows: Rows, design: str) -> Ints:
    """One row of each batch size on several nodes, or on several GPUs where the type has no more nodes."""
    several = rows.nodes > 1 if (rows.nodes > 1).any() else rows.gpus > rows.gpus.min()
    chosen = []
    for number, batch in enumerate(np.unique(rows.batch)):
        these = np.flatnonzero(several & (rows.batch == batch))
        if not len(these):
            continue
        if design == "same":
            these = these[rows.nodes[these] == rows.nodes[these].min()]
        shapes = np.unique(np.column_stack([rows.gpus, rows.most, rows.nodes])[these], axis=0)
        place = 0.5 if design == "same" else LADDER[number % len(LADDER)]
        gpus, most, nodes = shapes[round(place * (len(shapes) - 1))]
        like = (rows.gpus[these] == gpus) & (rows.most[these] == most) & (rows.nodes[these] == nodes)
        chosen.append(these[np.flatnonzero(like)[0]])
    return np.array(chosen, dtype=np.int64)


def samples(rows: Rows, name: str, gpu_type: str, each_batch_alone: bool = False) -> Samples:
    """The rows as reports of as many jobs."""
    count = len(rows.step)
    nothing, batches = np.full(count, np.nan), np.unique(rows.batch)
    classes = tuple(
        JobClass("measured", f"{name} {batch:g}" if each_batch_alone else name) for batch in batches
    )
    index = np.searchsorted(batches, rows.batch)
    return Samples(
        job_class=index, gpu_type=np.zeros(count, dtype=np.int64), node=np.full(count, ANY_NODE),
        gpus=rows.gpus, nodes=rows.nodes, most=rows.most, job=np.arange(count), time=np.zeros(count),
        rate=rows.gpus * rows.batch / rows.step, batch_size=rows.gpus * rows.batch,
        data=nothing, forward=nothing, backward=nothing, update=nothing, sync=nothing,
        pattern=np.zeros(count, dtype=np.int8), classes=classes, gpu_types=(gpu_type,),
    )  # fmt: skip


def knowing(rows: Rows, name: str, gpu_type: str, links: Links, each_batch_alone: bool) -> Estimator:
    """The estimator once it has learned these rows."""
    measured = samples(rows, name, gpu_type, each_batch_alone)
    return estimator(learned(Known(), measured, 0.0, KEEPING), links, 0.0, KEEPING)


def links_by_others(table: dict[tuple[str, str], Rows], name: str, gpu_type: str) -> Links:
    """Links as jobs of other sizes tell them: what a site measures once, with jobs of its own."""
    known = Known()
    for (other, of_type), rows in table.items():
        if of_type == gpu_type and other != name:
            known = learned(known, samples(rows, other, gpu_type), 0.0, KEEPING)
    if not len(known.samples):
        return Links.unknown()
    return links_of(estimator(known, Links.unknown(), 0.0, KEEPING))


# -- what it foretells -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Errors:
    """The errors of the rows that were not learned."""

    off: Floats  # foretold step / measured step - 1
    doubts: Floats  # log of that ratio over the doubt that was said


def errors(rows: Rows, name: str, gpu_type: str, design: str, links: Links) -> Errors:
    """Learn one row on one GPU and one on several nodes for each batch size, and foretell the others."""
    used = np.unique(np.concatenate([alone(rows), points(rows, design)]))
    rest = rows.gpus > 1
    rest[used] = False
    each_alone = design == "each alone"
    asked = knowing(rows.take(used), name, gpu_type, links, each_alone)
    others = rows.take(rest)
    measured = samples(others, name, gpu_type, each_alone)
    any_node = np.full(len(others.step), ANY_NODE)
    answer = predicted(
        asked,
        JobShapes(
            measured.job_class, measured.gpu_type, others.gpus, others.nodes, others.most, others.batch, any_node,
            measured.classes, measured.gpu_types,
        ),
    )  # fmt: skip
    step = others.gpus * others.batch / answer.rate
    theory = answer.layer == SpeedLayer.THEORY  # else the very shape was learned, with another split
    return Errors((step / others.step - 1)[theory], (np.log(step / others.step) / answer.doubt)[theory])


# -- which jobs are stable -------------------------------------------------------------------------------------


def unlike(rows: Rows) -> tuple[float, float]:
    """The p90 of two differences between measured rows that should agree with one another.

    The part of a step that is no synchronisation, from its median over all shapes with the same batch size; and a
    step over that of one GPU, from what the next smaller and larger batch sizes say of the same shape.
    """
    own, ratio = rows.step - rows.sync, {}
    first = alone(rows)
    step_alone = dict(zip(rows.batch[first], rows.step[first], strict=True))
    far = [
        np.abs(own[these] / np.median(own[these]) - 1)
        for these in (np.flatnonzero((rows.batch == batch) & (rows.gpus > 1)) for batch in step_alone)
        if len(these)
    ]
    for batch, one in step_alone.items():
        these = np.flatnonzero((rows.batch == batch) & (rows.gpus > 1))
        shapes = np.column_stack([rows.nodes, rows.gpus, rows.most])[these]
        for shape in np.unique(shapes, axis=0):
            here = these[(shapes == shape).all(axis=1)]
            ratio[batch, tuple(shape.tolist())] = float(np.median(np.log(rows.step[here] / one)))
    between = [abs(value - _between(ratio, batch, shape)) for (batch, shape), value in ratio.items()]
    said = [value for value in between if np.isfinite(value)]
    return float(np.quantile(np.concatenate(far), 0.9)), float(np.quantile(said, 0.9)) if said else np.nan


def _between(
    ratio: dict[tuple[float, tuple[int, ...]], float], batch: float, shape: tuple[int, ...]
) -> float:
    batches = sorted({other for other, _ in ratio})
    at = batches.index(batch)
    if not 0 < at < len(batches) - 1:
        return np.nan
    low, high = batches[at - 1], batches[at + 1]
    part = (np.log(batch) - np.log(low)) / (np.log(high) - np.log(low))
    below, above = ratio.get((low, shape), np.nan), ratio.get((high, shape), np.nan)
    return float((1 - part) * below + part * above)


# -- the report ------------------------------------------------------------------------------------------------

STABLE = 0.15  # what rows differ by where they should not is the least that anybody can be off by
HEAD = ("application", *("aws", "azure", "dgx", "dgx-ext", "quad", "rtx"))
DESIGNS = {
    "spread": "each batch size on several nodes in another shape",
    "same": "all batch sizes in the same shape: two nodes, half of their GPUs",
    "each alone": "as the first, and no batch size knows of the others",
}


@dataclass(frozen=True)
class Case:
    """One application on one GPU type, one way to choose what is learned, and whether links were measured."""

    application: str
    gpu_type: str
    design: str
    links: bool
    unlike: float  # p90 of what measured rows differ by where they should not
    errors: Errors
    cpu: float

    @property
    def stable(self) -> bool:
        """Rows agree with one another as closely as the estimator is to agree with them."""
        return self.unlike <= STABLE


def cases(table: dict[tuple[str, str], Rows]) -> list[Case]:
    """Every case: applications, GPU types, choices of rows, with and without links."""
    done = []
    for (name, gpu_type), rows in table.items():
        differ = float(np.nanmax(unlike(rows)))
        measured = links_by_others(table, name, gpu_type)
        for design in DESIGNS:
            for links in (Links.unknown(), measured):
                began = time.process_time()
                off = errors(rows, name, gpu_type, design, links)
                spent = time.process_time() - began
                done.append(Case(name, gpu_type, design, len(links) > 0, differ, off, spent))
    return done


def both(chosen: list[Case]) -> tuple[float, float]:
    """Median and p90 of all errors."""
    off = np.abs(np.concatenate([case.errors.off for case in chosen]))
    return float(np.median(off)), float(np.quantile(off, 0.9))


def shown(chosen: list[Case]) -> str:
    """Median / p90 in per cent."""
    if not sum(len(case.errors.off) for case in chosen):
        return ""
    median, p90 = both(chosen)
    return f"{100 * median:.1f} / {100 * p90:.1f}"


def page(done: list[Case]) -> str:
    """The tables of docs/throughput.md."""
    main = [case for case in done if case.design == "spread" and case.links]
    lines = [_line(HEAD), "| --- " * len(HEAD) + "|"]
    for name in dict.fromkeys(case.application for case in main):
        of_name = {case.gpu_type: case for case in main if case.application == name}
        lines.append(_line((name, *(_cell(of_name.get(kind)) for kind in HEAD[1:]))))
    head = ("what is learned", "links", "rows", "stable jobs", "all jobs", "within 1 and 2 doubts")
    lines += ["", _line(head), "| --- " * len(head) + "|"]
    for design, what in DESIGNS.items():
        for links in (True, False):
            of_design = [case for case in done if case.design == design and case.links == links]
            stable = [case for case in of_design if case.stable]
            off = np.abs(np.concatenate([case.errors.doubts for case in of_design]))
            held = f"{100 * (off < 1).mean():.0f} %, {100 * (off < 2).mean():.0f} %"
            how = "measured" if links else "not known"
            lines.append(_line((what, how, f"{len(off):,}", shown(stable), shown(of_design), held)))
    return "\n".join([*lines, "", *_by_threshold(main)])


def _by_threshold(main: list[Case]) -> list[str]:
    """The first row of the table for other answers to the question which jobs are stable."""
    lines = [_line(("rows agree within", "jobs", "rows", "median / p90")), "| --- " * 4 + "|"]
    for threshold in (0.05, 0.10, STABLE, 0.20, 0.30):
        some = [case for case in main if case.unlike <= threshold]
        rows = sum(len(case.errors.off) for case in some)
        lines.append(_line((f"{100 * threshold:.0f} %", str(len(some)), f"{rows:,}", shown(some))))
    return lines


def _cell(case: Case | None) -> str:
    if case is None:
        return ""
    return f"**{shown([case])}**" if case.stable else shown([case])


def _line(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cells) + " |"


def document(done: list[Case]) -> dict[str, Any]:
    """The same for programs."""
    rows = []
    for case in done:
        median, p90 = both([case]) if len(case.errors.off) else (None, None)
        rows.append({
            "size": {"application": case.application, "gpu_type": case.gpu_type, "rows": len(case.errors.off)},
            "method": case.design, "links": case.links, "stable": case.stable,
            "median_error": median, "p90_error": p90, "cpu_s": round(case.cpu, 3),
        })  # fmt: skip
    return {"name": "estimator", "machine": machine(), "rows": rows}


def machine() -> str:
    """The software that the numbers come from; the same on every machine but for the last digits."""
    of_what = f"{platform.machine()} Python {platform.python_version()} numpy {np.__version__}"
    return f"{of_what}, {os.cpu_count()} cores"


def main() -> int:
    """Measure, print and write; 1 where stable jobs are further off than wanted."""
    parser = arguments.Parser(__doc__)
    parser.add_argument("--traces", type=Path, required=True, help="folder of the public traces")
    parser.add_argument(
        "--write", type=arguments.known_page, help="page whose last section the tables become"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    args = parser.parse_args()
    if wrong := arguments.lacking(args.traces, [FILE]):
        parser.error(wrong)
    done = cases(read(args.traces / FILE))
    text = page(done)
    print(json.dumps(document(done)) if args.json else text)
    if args.write:
        before = args.write.read_text().partition(MEASURED)[0]
        args.write.write_text(before + MEASURED + "\n\n" + text + f"\n\n{machine()}\n")
    stable = [case for case in done if case.stable and case.design == "spread" and case.links]
    median, p90 = both(stable)
    return 0 if median <= WANTED_MEDIAN and p90 <= WANTED_P90 else 1


if __name__ == "__main__":
    raise SystemExit(main())
