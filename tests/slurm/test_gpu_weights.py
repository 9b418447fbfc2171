"""GPUs by Slurm's TRESBillingWeights on a real Slurm: as Slurm itself bills them, and in the ledger."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial

import pytest

from slurm_fair.lab import Lab, LabSpec, available
from slurm_fair.lab.spec import NodeGroup
from slurm_fair.slurm.reading.billing import billing_of
from tests.slurm.harness import Site, wait_until

pytestmark = pytest.mark.slurm
LEASE = {"term": 60, "interval": 1, "grace": 3, "align": "rolling"}
TYPES = ("a100", "v100")
BY_SLURM = '[tenants]\ngpu_weights = "slurm"\n'


@pytest.fixture(scope="module")
def two_types() -> Iterator[Lab]:
    """A node of each of two types, which slurmctld accounts for each by itself."""
    if (reason := available()) is not None:
        pytest.skip(reason)
    nodes = tuple(NodeGroup(1, 4, kind) for kind in TYPES)
    tracked = {"AccountingStorageTRES": "gres/gpu,gres/gpu:a100,gres/gpu:v100"}
    with Lab(spec=LabSpec(node_types=nodes, settings=tracked)) as lab:
        yield lab


def _weigh(lab: Lab, weights: str) -> None:
    lab.run("scontrol", "update", "PartitionName=gpu", f"TRESBillingWeights={weights}")


def _runs(lab: Lab, job: str) -> bool:
    return "JobState=RUNNING" in lab.run("scontrol", "show", "job", job).stdout


def _billed(lab: Lab, job: str) -> float:
    """The number by which Slurm itself bills a running job."""
    shown = lab.run("scontrol", "show", "job", job).stdout
    return float(re.search(r"billing=([0-9.]+)", shown)[1])  # type: ignore[index]


@pytest.mark.parametrize(
    "weights", ["GRES/gpu:a100=4,GRES/gpu:v100=2", "CPU=0,GRES/gpu=3", "GRES/gpu=2,GRES/gpu:a100=5"]
)
def test_a_gpu_counts_what_slurm_bills_for_it(two_types: Lab, weights: str) -> None:
    _weigh(two_types, weights)
    shown = two_types.run("scontrol", "-o", "show", "partition").stdout.splitlines()
    billing = billing_of(shown, {"gpu"}, TYPES)
    for kind in TYPES:
        asked = f"--gres=gpu:{kind}:2"
        label = two_types.run("sbatch", "--parsable", asked, "-A", "nlp", "--wrap", "sleep 60").stdout.strip()
        wait_until(partial(_runs, two_types, label), 30, "it runs")
        billed = _billed(two_types, label)
        two_types.run("scancel", label)
        assert billed == 2 * billing.weights[kind], (weights, kind)


def test_the_controller_charges_by_those_weights_and_tells_them(two_types: Lab) -> None:
    _weigh(two_types, "GRES/gpu:a100=2,GRES/gpu:v100=1")
    site = Site(two_types, "begin", LEASE, extra=BY_SLURM)
    try:
        site.start()
        for kind, tenant in (("a100", "vision"), ("v100", "nlp")):
            site.submit(4, f"--gpus={kind}:4", tenant=tenant)
        for job in site.jobs:
            job.runs(30)
        wait_until(lambda: min(_had(site).values(), default=0) > 20, 30, "both are charged")
        jobs = site.ledger().jobs
        assert sorted(jobs.gpu_weight.tolist()) == [1.0, 2.0]
        assert site.ledger().shared_gpus == 4 * 2 + 4 * 1
        told = site.cli("check", check=False).stdout
        assert "a GPU counts by its type: a100 2, v100 1" in told
        rows = {row["tenant"]: row for row in json.loads(site.cli("status", "--json").stdout)["tenants"]}
        assert rows["vision"]["quota_gpus"] == rows["nlp"]["quota_gpus"] == 6.0
        report = site.cli("report", "tenants", "--start", "now-1hours").stdout
        assert "Had(wGPUh)" in report
        assert "note: GPU-hours are by weight" in report
    finally:
        site.close()
    ledger = site.ledger()
    for key, gpus, weight, had, ran in zip(
        *(
            column.tolist()
            for column in (
                ledger.jobs.key,
                ledger.jobs.gpus,
                ledger.jobs.gpu_weight,
                ledger.jobs.had,
                ledger.jobs.ran,
            )
        ),
        strict=True,
    ):
        assert had == pytest.approx(gpus * weight * ran), key


def test_partitions_that_weigh_no_gpus_leave_one_each_and_check_says_so(two_types: Lab) -> None:
    _weigh(two_types, "CPU=1")
    site = Site(two_types, "begin", LEASE, extra=BY_SLURM)
    try:
        told = site.cli("check", check=False).stdout
        assert "no managed partition weighs GPUs: each counts 1" in told
        assert "a GPU counts by its type: a100 1, v100 1" in told
    finally:
        site.close()


def _had(site: Site) -> dict[int, float]:
    jobs = site.ledger().jobs
    return dict(zip(jobs.key.tolist(), jobs.had.tolist(), strict=True))
