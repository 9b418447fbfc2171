"""All that is known of speeds: the newest samples and run times of each class, and how much of them is kept."""

from __future__ import annotations

from dataclasses import dataclass, field

from slurm_fair.throughput.samples import Ends, Samples


@dataclass(frozen=True, slots=True)
class Keeping:
    """Limits of what is kept, and its ageing. They hold apiece: nobody's samples push out another's."""

    samples: int = 24  # of a class in one shape on one GPU type, any node
    node_samples: int = 6  # the same on one node
    shapes: int = 32  # of a class: GPU type, GPUs and nodes
    node_shapes: int = 64  # of a class on nodes that are told apart
    classes: int = 32  # of a tenant
    half_life_days: float = 14.0  # after which a sample counts half; inf = never
    half_life_samples: float = float("inf")  # after so many newer samples in its shape it counts half
    forget_days: float = 180.0  # a sample this old is dropped

    def __post_init__(self) -> None:
        """Refuse what would keep nothing, or would age backwards."""
        counts = (self.samples, self.node_samples, self.shapes, self.node_shapes, self.classes)
        ages = (self.half_life_days, self.half_life_samples, self.forget_days)
        if min(counts) < 1:
            raise ValueError("what is kept of speeds: each count is at least 1")
        if not all(age > 0 for age in ages):
            raise ValueError("what is kept of speeds: half-lives and forget_days are above 0")


@dataclass(frozen=True, slots=True)
class Known:
    """Plain columns that a store can keep. Means are worked out when they are asked for, with the ages of then."""

    samples: Samples = field(default_factory=Samples.none)
    ends: Ends = field(default_factory=Ends.none)
