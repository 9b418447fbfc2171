"""A GPU counts by TRESBillingWeights, and an adapter keeps to it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from slurm_fair.config.sections import TenantsSection
from slurm_fair.model import Blind, Snapshot
from slurm_fair.slurm.command import CommandResult
from slurm_fair.slurm.reading.billing import Billing, BillingReader, billing_of, gpu_weights_in
from tests.support.fake_cluster import Site


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        ("CPU=1.0,Mem=0.25G,GRES/gpu:a100=4,gres/gpu:v100=2.5", {"a100": 4.0, "v100": 2.5}),
        ("GRES/gpu=2", {"": 2.0}),
        ("gres/gpumem=5,license/gpu=3", {}),
        ("GRES/gpu:a100=1..5", {}),
        ("GRES/gpu=9999999999999", {}),
        ("", {}),
    ],
)
def test_weights_are_read_as_slurm_writes_them(text: str, weights: dict[str, float]) -> None:
    assert gpu_weights_in(text) == weights


def lines(**partitions: str) -> list[str]:
    """The lines of `scontrol -o show partition`."""
    return [
        f"PartitionName={name} AllowGroups=ALL State=UP TRESBillingWeights={text} TRES=cpu=64"
        if text
        else f"PartitionName={name} AllowGroups=ALL State=UP"
        for name, text in partitions.items()
    ]


def test_what_slurm_has_for_a_gpu_and_for_its_type_is_added() -> None:
    found = billing_of(lines(gpu="GRES/gpu=1,GRES/gpu:a100=2"), {"gpu"}, ["a100", "v100", ""])
    assert found == Billing({"gpu": 1.0, "a100": 3.0, "v100": 1.0})


def test_partitions_that_differ_and_types_that_none_weighs_are_told() -> None:
    shown = lines(gpu="GRES/gpu:a100=2", fast="GRES/gpu:a100=4", other="GRES/gpu:v100=9", plain="CPU=1")
    found = billing_of(shown, {"gpu", "fast", "plain"}, ["a100", "v100"])
    assert found == Billing({"a100": 4.0, "v100": 1.0}, without=("v100",), several=("a100",))


def test_where_nobody_weighs_gpus_each_counts_one() -> None:
    assert billing_of(lines(gpu="CPU=1", fast=""), {"gpu", "fast"}, ["a100"]) == Billing()


class Told:
    """Commands of which each answer is given beforehand."""

    def __init__(self, *answers: CommandResult) -> None:
        self.answers, self.asked = list(answers), 0

    def run(self, *argv: str) -> CommandResult:
        self.asked += 1
        return self.answers.pop(0)


def answer(*shown: str, rc: int = 0) -> CommandResult:
    return CommandResult(("scontrol",), rc, "".join(f"{line}\n" for line in shown), "", 0.01)


def test_slurms_weights_are_asked_for_each_minute_and_stay_while_it_is_silent() -> None:
    told: Any = Told(
        answer(rc=1), answer(*lines(gpu="GRES/gpu=2")), answer(rc=1), answer(*lines(gpu="GRES/gpu=3"))
    )
    reader = BillingReader(told)
    assert reader.learn("slurm", {"gpu"}, {"a100"}, 0.0)  # nothing is known yet: a complaint
    assert not reader.learn("slurm", {"gpu"}, {"a100"}, 1.0)
    assert not reader.learn("slurm", {"gpu"}, {"a100"}, 30.0)
    assert (told.asked, reader.billing.weights) == (2, {"a100": 2.0})
    assert not reader.learn("slurm", {"gpu"}, {"a100"}, 90.0)
    assert reader.billing.weights == {"a100": 2.0}
    assert not reader.learn("slurm", {"gpu"}, {"a100"}, 91.0)
    assert reader.billing.weights == {"a100": 3.0}
    assert not reader.learn({"a100": 7.0}, {"gpu"}, {"a100"}, 92.0)
    assert (told.asked, reader.billing.weights) == (4, {"a100": 7.0})


def weighed(weights: dict[str, float]) -> Site:
    """A site of one node with these weights."""
    site = Site.build({"n1": 8})
    settings = replace(site.config, tenants=TenantsSection(gpu_weights=weights)).cluster
    site.cluster.adapter.reconfigure(settings)
    return site


def test_a_look_shows_what_a_gpu_of_each_job_counts() -> None:
    kind = Site.build({"n1": 8}).cluster.observe({})
    assert isinstance(kind, Snapshot)
    (name,) = kind.gpu_types
    site = weighed({name or "gpu": 0.5})
    site.world.submit(2, "a")
    seen = site.cluster.observe({})
    assert isinstance(seen, Snapshot)
    assert seen.weighted_gpus == 4.0
    assert seen.jobs.gpu_weight.tolist() == [0.5]


def test_weights_by_which_all_gpus_count_nothing_blind_the_look() -> None:
    kind = Site.build({"n1": 8}).cluster.observe({})
    assert isinstance(kind, Snapshot)
    seen = weighed({kind.gpu_types[0] or "gpu": 0.0}).cluster.observe({})
    assert isinstance(seen, Blind)
    assert seen.reason == "[tenants] gpu_weights: all GPUs would count 0"
