"""A virtual cluster's looks, with what its jobs tell and its racks, survive the journal on disk."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from slurm_fair.model import Snapshot, Standing, TickRecord
from slurm_fair.sim import Scenario, Simulation, rules_for
from slurm_fair.store import SqliteJournal, open_journal, open_reader
from slurm_fair.trace import uniform
from tests.support import journals
from tests.support.simulated import arrival, trace


class Both:
    """A journal on disk that also remembers what it was given."""

    def __init__(self, disk: SqliteJournal) -> None:
        self.disk, self.seen = disk, list[Snapshot]()
        self.latest, self.ticks, self.wants = disk.latest, disk.ticks, disk.wants

    def append(self, tick: TickRecord, standing: Standing) -> None:
        self.seen.append(tick.snapshot)
        self.disk.append(tick, standing)


def test_every_look_of_a_simulation_comes_back_as_it_was(tmp_path: Path) -> None:
    machines = replace(uniform(16, 4), rack=np.array([0, 0, 1, 1]), racks=("r1", "r2"))
    jobs = [
        arrival(10.0 * at, gpus=1 + at % 4, seconds=700, tenant="ab"[at % 2], model="m", epochs=7)
        for at in range(12)
    ]
    path = tmp_path / "journal.db"
    with open_journal(path) as disk:
        journal = Both(disk)
        Simulation(Scenario(trace(jobs), machines), rules_for("astraea", {}, lease=300.0), journal).run()
    with open_reader(path) as reader:
        kept = [tick.snapshot for tick in reader.ticks()]
    assert len(kept) == len(journal.seen) > 10
    assert all(journals.same(*pair) for pair in zip(journal.seen, kept, strict=True))
    last = kept[5]
    assert last.told is not None
    assert last.racks is not None
    assert last.racks.tolist() == [0, 0, 1, 1]
    assert (last.told.done_seconds > 0).any()
    assert last.told.models == ("m",)
