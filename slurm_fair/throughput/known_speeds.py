"""Known speeds as policies see them: a table over classes, GPU types and sizes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from slurm_fair.model.columns import Ints
from slurm_fair.model.speeds import Speeds
from slurm_fair.throughput.estimator import Estimator, predicted
from slurm_fair.throughput.job_class import JobClass
from slurm_fair.throughput.node_speeds import node_speeds
from slurm_fair.throughput.samples import ANY_NODE
from slurm_fair.throughput.shapes import JobShapes, SpeedLayer


def speeds_for(
    asked: Estimator,
    job_classes: Sequence[JobClass],
    gpu_types: Sequence[str],
    sizes: Sequence[int] | Ints,
    node_gpus: Sequence[int] | Ints,
    node_names: Sequence[str] = (),
) -> Speeds:
    """Speeds of the jobs of a snapshot, row by row; `node_gpus` is how many GPUs the nodes of each type have.

    A job of a class of which nothing is known has no class there. "Apart" is on one node more than need be.
    """
    classes = list(dict.fromkeys(job_classes))
    wanted = np.unique(np.asarray(sizes, dtype=np.int64))
    shape = (len(classes), len(gpu_types), len(wanted), 2)
    job_class, gpu_type, size, apart = np.indices(shape).reshape(4, -1)
    gpus = wanted[size]
    fewest = -(-gpus // np.maximum(np.asarray(node_gpus, dtype=np.int64)[gpu_type], 1))
    nodes = np.minimum(fewest + apart, gpus)
    even, any_node = np.zeros(len(gpus), dtype=np.int64), np.full(len(gpus), ANY_NODE)
    usual, names = np.full(len(gpus), np.nan), (tuple(classes), tuple(gpu_types))
    answer = predicted(asked, JobShapes(job_class, gpu_type, gpus, nodes, even, usual, any_node, *names))
    known = (answer.layer.reshape(shape) != SpeedLayer.NOTHING).any(axis=(1, 2, 3))
    number = np.append(np.where(known, np.cumsum(known) - 1, -1), -1)
    index = {name: at for at, name in enumerate(classes)}
    rows = np.array([index[name] for name in job_classes], dtype=np.int64)
    measured = [name for name, is_known in zip(classes, known, strict=True) if is_known]
    called = tuple(f"{name.tenant}: {name.key}" for name in measured)
    rate, doubt = answer.rate.reshape(shape)[known], answer.doubt.reshape(shape)[known]
    return Speeds(number[rows], wanted, rate, doubt, called, node_speeds(asked, measured, node_names))
