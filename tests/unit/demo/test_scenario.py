"""The demo's jobs: what the story needs of them, at every size that a person may ask for."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from slurm_fair.config.tree import load_config
from slurm_fair.demo.controller import demo_configuration
from slurm_fair.demo.scenario import FLOOD, THIRD, DemoJob, DemoScenario, full, quick
from slurm_fair.demo.stage import submission
from slurm_fair.errors import InputError

SIZES = [(4, 8, 8.0), (1, 1, 3.0), (1, 8, 5.0), (2, 4, 8.0), (8, 4, 20.0), (3, 5, 10.0)]
ALL = [full(*size) for size in SIZES] + [quick()]


def of(scenario: DemoScenario, tenant: str) -> list[DemoJob]:
    return [job for job in scenario.jobs if job.tenant == tenant]


@pytest.mark.parametrize("scenario", ALL, ids=lambda s: f"{s.nodes}x{s.gpus_per_node}")
class TestAtEverySize:
    """Rules for small and large clusters."""

    def test_every_job_fits_the_cluster(self, scenario: DemoScenario) -> None:
        assert all(job.nodes <= scenario.nodes for job in scenario.jobs)
        assert all(1 <= job.gpus_per_node <= scenario.gpus_per_node for job in scenario.jobs)
        assert all(job.steps >= 1 for job in scenario.jobs)

    def test_the_flood_comes_first_and_wants_more_than_the_whole_cluster(
        self, scenario: DemoScenario
    ) -> None:
        flood, others = of(scenario, FLOOD), [job for job in scenario.jobs if job.tenant != FLOOD]
        assert max(job.at_seconds for job in flood) < min(job.at_seconds for job in others)
        assert sum(job.gpus for job in flood) > scenario.total_gpus

    def test_every_other_tenant_wants_at_least_its_quota(self, scenario: DemoScenario) -> None:
        weights = sum(scenario.weights.values())
        for tenant, weight in scenario.weights.items():
            wanted = sum(job.gpus for job in of(scenario, tenant))
            assert wanted >= math.floor(weight / weights * scenario.total_gpus)

    def test_one_job_wants_the_whole_cluster_and_comes_last(self, scenario: DemoScenario) -> None:
        assert scenario.jobs[-1].gpus == scenario.total_gpus
        assert scenario.jobs[-1].tenant == THIRD

    def test_names_are_told_apart_and_arrivals_are_in_order(self, scenario: DemoScenario) -> None:
        names = [job.name for job in scenario.jobs]
        arrivals = [job.at_seconds for job in scenario.jobs]
        assert len(set(names)) == len(names)
        assert arrivals == sorted(arrivals)


def test_an_act_begins_just_after_leases_have_ended_and_everybody_comes_before_they_end_again() -> None:
    for scenario in ALL:
        for now in (1000.0, 1003.9, 1007.999):
            began, lease = scenario.begin(now), scenario.lease_seconds
            assert now < began <= now + 1.05 * lease
            assert 0 < began % lease < 0.1 * lease
            assert began % lease + scenario.jobs[-1].at_seconds < lease


def test_the_full_demo_has_about_thirty_jobs_of_five_sizes_and_needs_about_a_minute_of_the_cluster() -> None:
    scenario = full()
    assert 27 <= len(scenario.jobs) <= 33
    assert {job.gpus for job in scenario.jobs} >= {1, 2, 4, 8, 16, 32}
    assert 50 < scenario.work_gpu_seconds / scenario.total_gpus < 90


@pytest.mark.parametrize(
    ("size", "cure"),
    [
        ((0, 8, 8.0), "--nodes"),
        ((4, 0, 8.0), "--gpus-per-node"),
        ((65, 8, 8.0), "--nodes"),
        ((4, 65, 8.0), "--gpus-per-node"),
        ((4, 8, 1.0), "--lease"),
        ((4, 8, math.nan), "--lease"),
        ((4, 8, 1e9), "--lease"),
    ],
    ids=[
        "no node",
        "no GPU",
        "too many nodes",
        "too many GPUs",
        "a lease shorter than a start",
        "a lease of no length",
        "a lease longer than anybody watches",
    ],
)
def test_a_size_that_cannot_be_is_refused_with_the_option_to_mend(
    size: tuple[int, int, float], cure: str
) -> None:
    with pytest.raises(InputError, match=cure):
        full(*size)


def test_a_gated_submission_is_stamped_gated_and_asks_for_its_gang(tmp_path: Path) -> None:
    job = DemoJob("speech-02", "speech", 2, 8, 0.0, 50)
    argv, script = submission(job, tmp_path, gated=True, now=1000.0)
    assert {"--account=speech", "--nodes=2", "--gpus-per-node=8", "--requeue", "--begin=uts4600"} <= set(argv)
    assert any(word.startswith("--comment=slurm_fair:v1,signal=USR2") for word in argv)
    assert f"--directory {job.name}" in script
    assert "--steps 50" in script


def test_an_ungated_submission_is_the_same_job_without_a_begin_time(tmp_path: Path) -> None:
    job = DemoJob("nlp-01", "nlp", 1, 4, 0.0, 50)
    argv, _ = submission(job, tmp_path, gated=False, now=1000.0)
    assert not any(word.startswith(("--begin", "--hold")) for word in argv)
    assert {"--account=nlp", "--gpus-per-node=4"} <= set(argv)


def test_the_daemons_configuration_is_one_that_it_reads(tmp_path: Path) -> None:
    file = tmp_path / "slurm-fair.toml"
    file.write_text(
        demo_configuration(full(), tmp_path / "slurm.conf", tmp_path / "storage", tmp_path / "out")
    )
    config = load_config(file)
    assert (config.lease.term, config.lease.interval, config.lease.grace) == (8.0, 1.0, 4.0)
    assert config.lease.publish_dir == str(tmp_path / "out")
    assert config.slurm.conf == str(tmp_path / "slurm.conf")
