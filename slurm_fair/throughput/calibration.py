"""Links worked out of jobs that a site runs to measure them, as the paper does (Hops 3.5, below eq. 2)."""

from __future__ import annotations

import numpy as np

from slurm_fair.throughput.estimator import Estimator
from slurm_fair.throughput.groups import sums
from slurm_fair.throughput.links import Links
from slurm_fair.throughput.theory import DEFAULT_RATIOS, LINKS


def links_of(asked: Estimator) -> Links:
    """The links of each GPU type that classes of jobs of different sizes agree on, against B_net = 1.

    To be asked of the site's own measuring jobs alone: through it, one class moves what is foreseen of another.
    """
    theory, names, gpu_type = asked.theory, asked.known.samples.gpu_types, asked.known.gpu_type
    count = len(names)
    ratios = theory.ratios + theory.fits.parameters[:, LINKS]
    ratios = ratios - ratios[:, 1:2]
    classes = np.bincount(gpu_type, minlength=count)
    rates = np.empty((4, count))
    for link in range(4):
        # The default counts as one class more: a single job does not tell the links from itself.
        total = sums(gpu_type, ratios[:, link], count) + DEFAULT_RATIOS[link]
        rates[link] = np.exp(-total / (classes + 1))
    return Links(rates[0], rates[1], rates[2], rates[3], np.ones(count), names)
