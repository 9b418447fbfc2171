"""GPUs of rows that stand in one line for each tenant."""

from __future__ import annotations

import numpy as np

from slurm_fair.ledger.formulas import Numbers
from slurm_fair.model.columns import Bools, Ints


def gpus_ahead(tenant: Ints, gpus: Numbers) -> Numbers:
    """GPUs of each row's tenant in the rows ahead of it; `tenant` is sorted."""
    if not len(gpus):
        return gpus
    through = gpus.cumsum() - gpus
    first = tenant.searchsorted(np.arange(tenant.item(-1) + 1))
    ahead: Numbers = through - through[first[tenant]]
    return ahead


def in_line(tenant: Ints, gpus: Numbers) -> tuple[Bools, Numbers]:
    """True for the first row of each tenant, and the tenant's GPUs up to and with each row; `tenant` is sorted."""
    first = np.append(True, tenant[1:] != tenant[:-1])[: len(tenant)]
    return first, gpus_ahead(tenant, gpus) + gpus
