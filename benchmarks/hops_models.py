"""The models of Table 2 of the Hops paper, and how fast they are by what was measured of models like them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.estimator import FILE, Rows, read
from slurm_fair.model.columns import Bools, Floats
from slurm_fair.trace import Throughputs, Trace
from slurm_fair.trace.classes import HOUR, WORKLOADS
from slurm_fair.trace.throughputs import CONSOLIDATED, SPREAD

MEASURED_ON = "rtx"  # RTX 2080 Ti, in servers of 8: of the GPUs that were measured the nearest to the paper's
SERVER_GPUS = 8
MOST_GPUS = 16


@dataclass(frozen=True, slots=True)
class TableTwo:
    """One entry of Table 2, and the application whose measured step times stand for it."""

    name: str
    category: str
    batch: int
    application: str


TABLE_2 = (
    TableTwo("resnet50-imagenet", "extra-large", 128, "imagenet"),
    TableTwo("vgg11-imagenet", "large", 32, "imagenet"),
    TableTwo("convnext-imagenet", "large", 32, "imagenet"),
    TableTwo("densenet161-imagenet", "large", 32, "imagenet"),
    TableTwo("mobilenet-imagenet", "medium", 64, "imagenet"),
    TableTwo("regnet-imagenet", "large", 32, "imagenet"),
    TableTwo("resnet18-cifar10", "small", 256, "cifar10"),
    TableTwo("vgg13-cifar10", "small", 128, "cifar10"),
    TableTwo("convnext-cifar10", "small", 64, "cifar10"),
    TableTwo("densenet161-cifar10", "small", 64, "cifar10"),
    TableTwo("mobilenet-cifar10", "small", 64, "cifar10"),
    TableTwo("regnet-cifar10", "medium", 32, "cifar10"),
    TableTwo("distilbert-imdb", "large", 128, "bert"),
    TableTwo("vit-food101", "medium", 48, "bert"),
    TableTwo("macbert-c3", "medium", 8, "bert"),
    TableTwo("wav2vec-language", "medium", 16, "deepspeech2"),
    TableTwo("gpt2-wikitext", "large", 8, "bert"),
)


def with_models(trace: Trace, dice: np.random.Generator) -> Trace:
    """Each job has one of the models of its size class."""
    edges = [each.most_gpu_hours for each in WORKLOADS["hops"].classes[:-1]]
    names = [each.name for each in WORKLOADS["hops"].classes]
    category = np.searchsorted(edges, trace.gpus * trace.duration_s / HOUR)
    models = tuple(sorted(entry.name for entry in TABLE_2))
    batch_of = {entry.name: entry.batch for entry in TABLE_2}
    model = np.zeros(len(trace), dtype=np.int64)
    for at, name in enumerate(names):
        able = [models.index(entry.name) for entry in TABLE_2 if entry.category == name]
        model[category == at] = dice.choice(able, int(np.count_nonzero(category == at)))
    batch = np.array([batch_of[name] for name in models])[model]
    return trace.with_columns(model=model, models=models, batch_size=batch)


def measured(traces: Path) -> Throughputs:
    """Samples per second of every model on 1 to 16 GPUs, well placed and on one server more than it needs."""
    rows = read(traces / FILE)
    rates: dict[tuple[str, str, str, int, int], float] = {}
    for entry in TABLE_2:
        curves = _curves(rows[entry.application, MEASURED_ON], entry.batch)
        for placement, curve in curves.items():
            for gpus, rate in enumerate(curve.tolist(), start=1):
                rates[MEASURED_ON, placement, entry.name, entry.batch, gpus] = rate
    return Throughputs("hops", ("hops",), MEASURED_ON, rates)


def _curves(rows: Rows, batch: int) -> Mapping[str, Floats]:
    """Samples per second by number of GPUs, with the measured batch size that is nearest to this one."""
    batches = np.unique(rows.batch[rows.gpus == 1])
    near = batches[np.abs(np.log(batches / batch)).argmin()]
    fewest = -(-rows.gpus // SERVER_GPUS)
    of_batch = (rows.batch == near) & (rows.gpus <= MOST_GPUS)
    together = _curve(rows, of_batch & (rows.nodes == fewest))
    apart = _curve(rows, of_batch & (rows.nodes == fewest + 1))
    return {CONSOLIDATED: together, SPREAD: np.minimum(apart, together)}  # measured faster apart: by chance


def _curve(rows: Rows, chosen: Bools) -> Floats:
    """Numbers of GPUs that were not measured have what each GPU does with their neighbours' numbers."""
    order = np.lexsort((rows.most[chosen], rows.gpus[chosen]))  # of several splits the most even
    gpus, first = np.unique(rows.gpus[chosen][order], return_index=True)
    each = (rows.batch[chosen] / rows.step[chosen])[order][first]
    counts = np.arange(1.0, MOST_GPUS + 1)
    curve: Floats = counts * np.exp(np.interp(np.log(counts), np.log(gpus), np.log(each)))
    return curve
