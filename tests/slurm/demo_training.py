"""The demonstration training that jobs of a lab run."""

from __future__ import annotations

from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
COUNTER = REPOSITORY / "sbatch_templates" / "slurm_fair_templates" / "demo_counter.py"
