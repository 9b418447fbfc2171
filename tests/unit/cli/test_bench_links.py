"""`slurm-fair bench-links`: what it prints is what a configuration takes."""

from __future__ import annotations

import json
import math
import sys
import tomllib

import pytest

from slurm_fair.bench_links import Rates, Timing
from slurm_fair.cli.bench_links import measured_timings, text_of
from slurm_fair.config.tree import from_tree
from slurm_fair.errors import InputError
from tests.support.command_line import call

TRIED = ("bench-links", "--by", "sockets", "--parameters", str(1 << 23), "--times", "7")


@pytest.mark.parametrize(
    "rates",
    [Rates(6.12345e10, 5e9, math.inf, math.nan, 0.02), Rates(1e5, 12.5, 3e12, 4e9, 0.0)],
)
def test_what_it_prints_can_be_put_into_the_configuration(rates: Rates) -> None:
    printed = "\n".join(text_of("a100", "nccl", rates))
    links = from_tree(tomllib.loads(printed), "test").throughput.links["a100"]
    assert links["link"] == pytest.approx(rates.link, rel=1e-3)
    assert links["net"] == pytest.approx(rates.net, rel=1e-3)
    assert ("host" in links) != math.isnan(rates.host)
    assert math.isinf(links["bus"]) == math.isinf(rates.bus)


def test_it_can_be_tried_out_without_gpus_and_says_so() -> None:
    said = call(*TRIED, "--gpu-type", "h100", "--pretend", "2", "2")
    assert said.code == 0
    assert "no rates of GPUs" in said.out
    assert tomllib.loads(said.out)["throughput"]["links"]["h100"]["net"] > 0
    found = json.loads(call(*TRIED, "--json", "--pretend", "1", "2").out)
    assert (found["net"], [group["gpus"] for group in found["groups"]]) == (None, [2])


def test_one_node_tells_no_rate_between_nodes() -> None:
    said = call(*TRIED, "--pretend", "1", "2")
    assert "No rate between nodes was measured" in said.out


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("bench-links", "--by", "sockets", "--pretend", "1", "1"), "one GPU has no links"),
        (("bench-links",), "PyTorch is not installed for this Python: `pip install torch`"),
        (("bench-links", "--parameters", "7"), "--parameters"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], complaint: str
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    said = call(*words)
    assert (said.code, complaint in said.complaint) == (2, True)
    assert "\n" not in said.complaint.strip()


@pytest.mark.parametrize(
    ("asked", "kind"), [({}, "gpu"), ({"SLURM_GPUS": "a100:4"}, "a100"), ({"SLURM_GPUS": "4"}, "gpu")]
)
def test_the_type_is_that_of_the_job(
    monkeypatch: pytest.MonkeyPatch, asked: dict[str, str], kind: str
) -> None:
    for name in ("SLURM_GPUS_PER_NODE", "SLURM_GPUS", "SLURM_GPUS_PER_TASK"):
        monkeypatch.delenv(name, raising=False)
    for name, value in asked.items():
        monkeypatch.setenv(name, value)
    assert json.loads(call(*TRIED, "--json", "--pretend", "1", "2").out)["gpu_type"] == kind


def test_times_that_do_not_grow_with_what_is_sent_are_refused() -> None:
    fine = Timing(2, 1, 2, 1e-9)
    assert measured_timings([fine], (64, 1024)) == [fine]
    with pytest.raises(InputError, match="2 GPUs on 2 nodes took no longer for them than for 64"):
        measured_timings([fine, Timing(2, 2, 1, math.nan)], (64, 1024))
