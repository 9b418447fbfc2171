"""Findings about leases, shares and the weights of GPUs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from slurm_fair.config.lease import LeaseSection
from slurm_fair.config.sections import Config, SlurmSection, TenantsSection
from slurm_fair.doctor import Finding, Level, terms
from slurm_fair.slurm.reading.nodes import NodeListing, RawNode
from tests.support.builders import snapshot
from tests.support.site_facts import ERROR, FACTS, OK, WARNING, facts, worst


def test_the_shares_of_the_tenants_are_told_in_per_cent_the_greatest_first() -> None:
    seen = snapshot(nodes={"n1": 8}, weights={"nlp": 0.25, "vision": 0.5, "speech": 0.25})
    (told,) = terms.tenant_shares(replace(FACTS, snapshot=seen))
    assert told.level is OK
    assert told.what.endswith(": vision 50 %, nlp 25 %, speech 25 %")


def listing(*kinds: str) -> NodeListing:
    """A managed node of each of these GPU types."""
    found = {f"n{at}": RawNode(f"n{at}", 4, kind, 0, 8, 0, 1000, 0, "idle") for at, kind in enumerate(kinds)}
    return NodeListing(found, {"gpu": tuple(found)}, {"gpu": True})


def with_weights(weights: dict[str, float], *kinds: str) -> list[Finding]:
    config = Config(tenants=TenantsSection(gpu_weights=weights))
    return list(terms.gpu_weights(replace(FACTS, config=config, machines=listing(*kinds))))


def test_what_a_gpu_counts_by_its_type_is_told() -> None:
    (told,) = with_weights({"v100": 0.5}, "a100", "v100", "")
    assert (told.level, told.what) == (OK, "a GPU counts by its type: a100 1, gpu 1, v100 0.5")
    assert with_weights({}, "a100") == []


def test_weights_of_gpus_that_are_not_there_or_of_nothing_are_errors() -> None:
    (strange,) = with_weights({"v10": 0.5}, "a100", "v100")
    assert strange.level is ERROR
    assert "there are no GPUs of type 'v10'; did you mean 'v100'?" in strange.what
    (nothing,) = with_weights({"a100": 0.0}, "a100")
    assert nothing.level is ERROR


def test_of_many_tenants_the_greatest_are_told() -> None:
    seen = snapshot(nodes={"n1": 8}, weights={f"t{number}": 1.0 for number in range(30)})
    (told,) = terms.tenant_shares(replace(FACTS, snapshot=seen))
    assert told.what.endswith(", 10 more")
    assert list(terms.tenant_shares(FACTS)) == []


@pytest.mark.parametrize(
    ("lease", "level", "words"),
    [
        (LeaseSection(), OK, "lease 900 s, renewed for 225 s, looked at"),
        (LeaseSection(renewal="term"), OK, "lease 900 s, renewed for 900 s, looked at"),
        (LeaseSection(align="aligned"), OK, "lease 900 s, looked at"),
        (LeaseSection(interval=400), WARNING, "more than a third"),
        (LeaseSection(interval=230), OK, "lease 900 s, renewed for 225 s, looked at every 230 s"),
        (LeaseSection(interval=230, align="aligned"), OK, "lease 900 s, looked at every 230 s"),
        (LeaseSection(renewal=5), OK, "renewed for 5 s, looked at when something changes"),
        (LeaseSection(grace=900), WARNING, "not shorter than the term"),
        (LeaseSection(term=100, interval=5, grace=10), WARNING, "shorter than Slurm's requeue delay"),
        (
            LeaseSection(min_runtime=2000, align="aligned"),
            WARNING,
            "at the first end of a term after min_runtime",
        ),
        (LeaseSection(min_runtime=2000), WARNING, "a lease ends after min_runtime"),
        (
            LeaseSection(align="aligned", reserve_after=100, renewal=10),
            WARNING,
            "[lease] reserve_after and renewal: without effect",
        ),
    ],
)
def test_lengths_that_do_not_go_together(lease: LeaseSection, level: Level, words: str) -> None:
    found = list(terms.lengths(facts(config=Config(lease=lease))))
    assert worst(found) is level
    assert any(words in f.what for f in found)


@pytest.mark.parametrize(
    ("seconds", "warned"), [(0.0, False), (7.0, True), (900.0, False), (604_800.0, False)]
)
def test_a_half_life_that_seems_to_be_in_days_is_said(seconds: float, warned: bool) -> None:
    config = Config(tenants=TenantsSection(half_life=seconds))
    assert bool(list(terms.half_life(facts(config=config)))) == warned


@pytest.mark.parametrize(
    ("ours", "slurm", "level"),
    [
        (121, {}, OK),
        (121, {"AuthInfo": "socket=/run/munge,cred_expire=120"}, OK),
        (121, {"AuthInfo": "cred_expire=600"}, ERROR),
        (121, {"AuthInfo": "cred_expire=60"}, ERROR),
        (121, {"SchedulerParameters": "bf_continue,requeue_delay=300"}, ERROR),
        (301, {"SchedulerParameters": "requeue_delay=300"}, OK),
    ],
)
def test_slurms_delay_after_a_requeue(ours: float, slurm: dict[str, str], level: Level) -> None:
    assert terms.requeue_delay(facts(slurm, Config(slurm=SlurmSection(requeue_delay=ours)))).level is level


@pytest.mark.parametrize(
    ("lease", "wait", "level"),
    [
        (LeaseSection(), "30 sec", OK),
        (LeaseSection(), "5 sec", WARNING),
        (LeaseSection(term=180, grace=100), "90 sec", WARNING),
    ],
)
def test_kill_wait(lease: LeaseSection, wait: str, level: Level) -> None:
    assert terms.kill_wait(facts({"KillWait": wait}, Config(lease=lease))).level is level


@pytest.mark.parametrize(
    ("parameters", "uid", "bears"),
    [
        ("(null)", 1000, "rl_enable is off"),
        ("rl_enable", 0, "does not hold for this account"),
        ("rl_enable", 500, "does not hold for this account"),
        ("rl_enable", 1000, "bears about 360 gated jobs"),
        ("idle_on_node_suspend,rl_enable,rl_refill_rate=10", 1000, "bears about 7560 gated jobs"),
        ("rl_enable,rl_refill_rate=1,rl_refill_period=10", 1000, "bears about 0 gated jobs"),
    ],
)
def test_the_rate_limit_is_told_in_gated_jobs(parameters: str, uid: int, bears: str) -> None:
    assert bears in terms.rate_limit(facts({"SlurmctldParameters": parameters}, uid=uid)).what


def test_more_waiting_jobs_than_the_rate_limit_bears_are_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terms, "waiting_jobs", lambda seen: 2000)
    assert terms.rate_limit(facts({"SlurmctldParameters": "rl_enable"})).level is WARNING
    assert terms.rate_limit(facts({"SlurmctldParameters": "rl_enable,rl_refill_rate=20"})).level is OK
