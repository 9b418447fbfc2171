"""Shapes that speeds are asked for, and the estimator's answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slurm_fair.model.columns import Code, Codes, Columns, Floats, Ints
from slurm_fair.throughput.job_class import JobClass


class SpeedLayer(Code):
    """The layer that a prediction comes from, the surest first (Hops 3.3)."""

    ENTITY = 0  # measured by this class in this shape on this very node
    TYPE = 1  # measured by this class in this shape on this GPU type
    THEORY = 2  # worked out by eq. 1-5 from what was measured in other shapes on this GPU type
    OTHER_TYPE = 3  # the same, from what was measured on another GPU type
    NOTHING = 4  # this class was never measured: GPUs are counted


@dataclass(frozen=True)
class JobShapes(Columns):
    """One row per question: the speed of a class with so many GPUs of a type on so many nodes."""

    job_class: Ints  # index into `classes`
    gpu_type: Ints  # index into `gpu_types`
    gpus: Ints
    nodes: Ints
    most: Ints  # GPUs on the node that has most of them; 0 = as even as can be
    batch: Floats  # samples of one step of one GPU; nan = as usual for the class
    node: Ints  # index into `node_names`: this very node is one of them; -1 = any
    classes: tuple[JobClass, ...] = ()
    gpu_types: tuple[str, ...] = ()
    node_names: tuple[str, ...] = ()


def most_on_a_node(shapes: JobShapes) -> Ints:
    """The most GPUs on one node, where nobody said it those of an even split."""
    most: Ints = np.where(shapes.most > 0, shapes.most, -(-shapes.gpus // np.maximum(shapes.nodes, 1)))
    return most


@dataclass(frozen=True, slots=True)
class Predictions:
    """One entry per question."""

    rate: Floats  # samples a second of the whole job
    doubt: Floats  # standard deviation of the rate over the rate
    layer: Codes  # SpeedLayer
    count: Floats  # samples behind it, each as much as its age leaves of it
