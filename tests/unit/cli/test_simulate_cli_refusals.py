"""`slurm-fair simulate` with wishes that cannot be: one line each, and nothing written."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from slurm_fair.cli.simulate import one_run
from slurm_fair.cli.simulate.case import CaseOptions, read_case
from slurm_fair.cli.simulate.setups import PolicySetup
from slurm_fair.sim.scenario import Costs
from tests.support.command_line import call
from tests.support.simulations import made, simulated


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--policy", "fifoo"], "unknown policy 'fifoo': did you mean 'fifo'?"),
        (["--policy", "fifo,fifo"], "'fifo' is there twice"),
        (["--policy", "fifo,"], "an empty name"),
        (
            ["--policy", "astraea", "--set", "astraea.choose_shar=quota"],
            "unknown setting 'choose_shar': did you mean 'choose_share'?",
        ),
        (["--policy", "astraea", "--set", "astraea.choose_share=much"], "choose_share"),
        (["--set", "astraea.choose_share"], "write policy.key=value"),
        (["--set", "choose_share=quota"], "write policy.key=value"),
        (["--set", "fifo.x=1"], "'fifo' is not simulated"),
        (["--set", "fair.a=1", "--set", "fair.a=2"], "'a' is set twice"),
        (["--cluster", "c.toml"], "--gpus and --cluster both say what the cluster is"),
        (["--gpus-per-node", "99999999999999999999"], "both must be above 0 and at most 200000"),
        (["--gpu-weights", "gpu=-1"], "gpu must count 0, or from 0.001 to 1e+06, not -1.0"),
        (["--gpu-weights", "gpu=nan"], "not nan"),
        (["--gpu-weights", "gpu"], "'gpu' is no weight: write such as a100=1,v100=0.5"),
        (["--gpu-weights", "gpu=much"], "'gpu=much' is no weight"),
        (["--gpu-weights", "gpu=1,gpu=2"], "'gpu=2' is there twice"),
        (["--gpu-weights", "gpv=1"], "--gpu-weights: there are no GPUs of type 'gpv'; did you mean 'gpu'?"),
        (["--gpu-weights", "gpu=0"], "--gpu-weights: all GPUs would count 0"),
        (["--lease", "-900"], "--lease"),
        (["--lease", "0"], "--lease"),
        (["--lease", "nan"], "--lease"),
        (["--interval", "inf"], "--interval"),
        (["--renewal", "901"], "--renewal 901 must not exceed the lease of 900 s under fair"),
        (["--renewal", "0"], "--renewal"),
        (["--interval", "901"], "--interval 901 must not exceed the lease of 900 s under fair"),
        (["--restart-cost", "-1"], "--restart-cost"),
        (
            ["--restart-cost", "890", "--checkpoint-cost", "10"],
            "900 s (checkpoint, start and restart), all of a lease",
        ),
        (["--workers", "0"], "--workers"),
        (["--repeat", "1000000000"], "1000000000 is not in the range 1<=x<=10000"),
        (["--repeat", "1e9"], "--repeat"),
        (["--seed", "-1"], "--seed"),
        (["--failed", "some"], "--failed"),
        (["--rounds", "gavel", "--policy", "fifo"], "fifo has leases without end"),
        (["--rounds", "gavel", "--align", "rolling"], "leave --align rolling out"),
        (["--rounds", "gavel", "--interval", "10"], "leave --interval out"),
        (["--lease", "1e12"], "--lease': '1e12' is more than a hundred years"),
        (["--until", "1e10"], "'1e10' is more than a hundred years"),
        (["--interval", "1e-9"], "'1e-9' is shorter than a millisecond"),
        (["--lease", "0.01", "--interval", "0.01"], "a simulation goes up to 500000; give a longer --lease"),
        (["--set", "fair.placement=relax"], "unknown placement 'relax': did you mean 'relaxed'?"),
        (["--throughputs-source", "x"], "give that too"),
        (["--weights", "{tmp}/gone.csv"], "gone.csv: cannot be read"),
        (["--jobs-out", "{tmp}/no/such/jobs.csv"], "cannot be written: No such file or directory"),
        (["--jobs-out", "{tmp}/trace.csv"], "is read here too"),
        (["--jobs-out", "{tmp}/o", "--html", "{tmp}/o"], "is to be written twice"),
        (["--html", "{tmp}"], "is a directory"),
        (["--html", "/dev/null"], "is no plain file"),
        (["--jobs-out", "/dev/null", "--policy", "fifo,las"], "/dev/null: is no plain file"),
        (["--jobs-out", "/dev/stdout", "--policy", "fifo,las"], "/dev/stdout: is no plain file"),
        (["--events-out", "/dev/stdout", "--policy", "fifo"], "/dev/stdout: is no plain file"),
        (["--jobs-out", "{tmp}", "--policy", "fifo,las"], "is a directory"),
        (["--events-out", "{tmp}/events.jsonl.gz"], "events are written plain"),
    ],
)
def test_a_wrong_wish_is_one_line_and_leaves_nothing(
    tmp_path: Path, arguments: list[str], words: str
) -> None:
    trace = made(tmp_path)
    said = simulated(trace, *(argument.format(tmp=tmp_path) for argument in arguments))
    assert (said.code, said.out) == (2, "")
    assert words in said.complaint
    assert list(tmp_path.iterdir()) == [trace]


def test_a_file_that_the_shell_holds_open_is_not_replaced(tmp_path: Path) -> None:
    trace, log, link = made(tmp_path), tmp_path / "log", tmp_path / "link"
    with log.open("w") as held:
        held.write("before")
        held.flush()
        link.symlink_to(f"/dev/fd/{held.fileno()}")
        for name in (f"/dev/fd/{held.fileno()}", str(link)):
            said = simulated(trace, "--policy", "fifo", "--jobs-out", name)
            assert (said.code, f"{name}: is no plain file: name one" in said.complaint) == (2, True)
    assert log.read_text() == "before"


@pytest.mark.parametrize(
    ("costs", "words"),
    [
        (("--restart-cost", "400", "--checkpoint-cost", "50"), ""),  # half of a lease
        (
            ("--restart-cost", "400", "--checkpoint-cost", "60"),
            "warning: a change of hands costs 460 s (checkpoint, start and restart), 51.1 % of a lease of 900 s",
        ),
        (
            ("--restart-cost", "590", "--lease", "600", "--policy", "fifo,astraea"),
            "98.3 % of a lease of 600 s under fifo, astraea: jobs that take turns get little done",
        ),
    ],
)
def test_costs_of_more_than_half_a_lease_are_worth_a_warning(
    tmp_path: Path, costs: tuple[str, ...], words: str
) -> None:
    said = simulated(made(tmp_path, jobs=5), *costs)
    assert said.code == 0
    assert words in said.complaint if words else said.err == ""


def test_the_bar_moves_on_though_next_to_nothing_gets_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(one_run, "_BEAT_SECONDS", 0.0)
    beats: list[tuple[int, float]] = []
    case, _ = read_case(made(tmp_path), Costs(restart=850.0), CaseOptions(gpus=8, until=20_000.0))
    setup = PolicySetup("astraea", {}, None, 10.0, True, False, 0.0, 0)
    order = one_run.SimulationOrder(case.scenario, setup)
    one_run.run_one(order, lambda policy, ended, seconds: beats.append((ended, seconds)))
    assert all(now >= before for (_, before), (_, now) in pairwise(beats))
    assert max(now - before for (_, before), (_, now) in pairwise(beats)) <= 900
    assert beats[-1][1] == 20_000.0


def test_a_simulation_wants_a_cluster(tmp_path: Path) -> None:
    said = call("simulate", str(made(tmp_path)))
    assert (said.code, "no cluster: give --gpus N" in said.complaint) == (2, True)
    said = call("simulate", str(made(tmp_path)), "--cluster", "c.toml", "--gpus-per-node", "4")
    assert (said.code, "--gpus-per-node and --cluster both say" in said.complaint) == (2, True)
    assert "--gpus and" not in said.complaint


def test_a_cluster_too_slow_to_simulate_is_refused_with_short_numbers(tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.toml"
    cluster.write_text('[[nodes]]\nname = "n1"\ngpus = 16\nspeed = 1e-12\n')
    said = call("simulate", str(made(tmp_path)), "--cluster", str(cluster))
    assert (said.code, "a simulation goes up to 500000" in said.complaint) == (2, True)
    assert len(said.complaint) < 250
