"""Marks: what we changed on a record of Slurm and have not taken back yet."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mark:
    """One record that is not plain Slurm any more; enough to free it with the journal alone."""

    key: int
    record: int  # Slurm's record id
    whole_record: bool  # the mark lies on an unsplit array, not on one task
    submit: float
    restarts: int
    gate_until: float  # 0 = none, inf = the hold that it was submitted with, until that is seen lifted
    pinned: bool  # carries a node list of ours
    set_at: float  # 0 = not known
    user_nodes: str = ""  # the user's own node list, to be given back
    gate_before: float = 0.0  # the gate that stood before, until the new one is seen to stand
    pin: str = ""  # the node list that we set last, also after it was taken away
    size: str = ""  # the request for GPUs that we set; "" = it is the user's own
    user_size: str = ""  # that, to be given back
    # Its gate was not seen to stand, or went while nobody looked: where it is gone, it was nobody's move.
    blameless: bool = False
    # The user's own begin time that our gate took the place of, to be given back; 0 = none.
    user_begin: float = 0.0
