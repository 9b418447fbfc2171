"""Claims of users and jobs about their work. A policy may go by them; they are never facts.

A policy never sees a run time or a regime that lies ahead. It sees these claims.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slurm_fair.model.columns import Code, Codes, Columns, Floats, Ints


class Mode(Code):
    """The way in which a job changes its batch size while it runs (Shockwave, section 5)."""

    STATIC = 0
    ACCORDION = 1  # between two sizes, back and forth
    GNS = 2  # doubles, never shrinks


@dataclass(frozen=True)
class Told(Columns):
    """Row i is row i of the snapshot's jobs; nan = nobody said.

    Run times are seconds with the whole gang, well placed, on the reference GPU type (rate 1.0).
    """

    # Run time of the whole job as its user declared it; a time limit if nothing better.
    declared_seconds: Floats
    left_seconds: Floats  # of that still to do at its present batch size, as its progress says
    # Of it done already. done / (done + left) is its progress where what its user declared is true, not elsewhere.
    done_seconds: Floats
    epoch: Floats  # epochs done
    epochs: Floats  # epochs in all
    # Deviation of the logarithm of what is left, where jobs like it tell that; nan = it says so.
    left_spread: Floats
    deadline: Floats  # instant by which its user wants it done; inf = none
    must_fit_seconds: Floats  # of its time limit, before its deadline at a start; nan = all of it
    steps_per_second: Floats  # at its present batch size, with its gang on the reference type
    rate: Floats  # [row, GPU type of the snapshot]: speed on that type against the reference
    spread_rate: Floats  # [the same]: on more nodes than the gang needs, against well placed on that type
    scaling: Floats  # speed of its gang against that of one GPU of it, as measured
    model: Ints  # index into `models`, -1 = not said
    batch_size: Ints  # 0 = not said
    mode: Codes  # Mode, as its user set it; STATIC also where nobody said
    models: tuple[str, ...] = ()

    @classmethod
    def nothing(cls, rows: int, gpu_types: int) -> Told:
        """Nobody said anything: every type is as fast as the reference."""
        unknown = np.full(rows, np.nan)
        return cls(
            declared_seconds=unknown,
            left_seconds=unknown,
            done_seconds=unknown,
            epoch=unknown,
            epochs=unknown,
            left_spread=unknown,
            deadline=np.full(rows, np.inf),
            must_fit_seconds=unknown,
            steps_per_second=unknown,
            rate=np.ones((rows, gpu_types)),
            spread_rate=np.ones((rows, gpu_types)),
            scaling=unknown,
            model=np.full(rows, -1, dtype=np.int64),
            batch_size=np.zeros(rows, dtype=np.int64),
            mode=np.zeros(rows, dtype=np.int8),
        )
