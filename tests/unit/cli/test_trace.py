"""`slurm-fair trace` as a person meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from slurm_fair.trace.convert import SOURCES
from tests.support.command_line import call
from tests.support.schemas import faults

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data" / "traces"
SCHEMA = json.loads((ROOT / "docs" / "schema" / "trace-describe.json").read_text())


@pytest.mark.parametrize("name", ["convert", "generate", "describe"])
def test_help_says_what_each_command_is_for_and_each_option_what_it_does(name: str) -> None:
    said = call("trace", name, "--help")
    assert (said.code, said.err) == (0, "")
    assert len(said.out.splitlines()) > 8


def test_help_of_convert_names_every_source() -> None:
    said = call("trace", "convert", "--help").out
    assert all(f"  {name:<10} {source.about}" in said for name, source in SOURCES.items())


def test_convert_writes_a_trace_and_says_what_it_left_out(tmp_path: Path) -> None:
    out = tmp_path / "helios.csv.gz"
    said = call("trace", "convert", "helios", str(DATA / "helios.csv"), "-o", str(out))
    assert (said.code, said.err) == (0, "")
    assert said.out == f"{out}: 3 jobs; left out: 1 that never ran, 1 without GPUs\n"
    assert call("trace", "describe", str(out)).code == 0


def test_convert_takes_run_times_from_throughputs_when_given(tmp_path: Path) -> None:
    out = tmp_path / "g.csv"
    rates = str(DATA / "throughputs.csv")
    said = call(
        "trace", "convert", "gavel", str(DATA / "gavel.trace"), "--throughputs", rates, "-o", str(out)
    )
    assert said.code == 0
    assert [line.split(",")[4] for line in out.read_text().splitlines()[1:]] == ["300", "200"]


def test_bad_rows_stop_a_conversion_in_one_line_and_leave_no_file(tmp_path: Path) -> None:
    bad = tmp_path / "helios.csv"
    bad.write_text((DATA / "helios.csv").read_text().replace("NODE_FAIL", "BROKEN"))
    out = tmp_path / "out.csv"
    said = call("trace", "convert", "helios", str(bad), "-o", str(out))
    assert said.code == 2
    assert said.complaint.startswith(f"slurm-fair: {bad}:3: status: 'BROKEN' is no known status")
    assert not out.exists()
    skipped = call("trace", "convert", "helios", str(bad), "-o", str(out), "--skip-bad")
    assert (skipped.code, skipped.out.endswith("1 bad row\n")) == (0, True)
    assert skipped.complaint.startswith(f"left out: {bad}:3: status:")


def test_many_bad_rows_are_listed_in_part_and_counted_in_full(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    rows = [f"{at},x,0,0,1" for at in range(50)]
    path.write_text("\n".join(["job_id,tenant,submit_s,gpus,duration_s", *rows, "good,x,0,1,1"]) + "\n")
    said = call("trace", "describe", str(path), "--skip-bad", "--json")
    assert (said.code, json.loads(said.out)["bad_rows"]) == (0, 50)
    assert len(said.err.splitlines()) == 21
    assert said.err.splitlines()[-1] == "left out: 30 more bad rows"


def test_generate_makes_the_same_file_again(tmp_path: Path) -> None:
    one, two = tmp_path / "one.csv.gz", tmp_path / "two.csv.gz"
    for out in (one, two):
        said = call("trace", "generate", "--jobs", "30", "--classes", "hops", "--seed", "5", "-o", str(out))
        assert (said.code, said.err, "30 jobs" in said.out) == (0, "", True)
    assert one.read_bytes() == two.read_bytes()


def test_describe_tells_the_load_on_a_cluster(tmp_path: Path) -> None:
    by_file = call(
        "trace", "describe", str(DATA / "trace.csv"), "--cluster", str(DATA / "cluster.toml"), "--json"
    )
    by_count = call("trace", "describe", str(DATA / "trace.csv"), "--gpus", "34", "--json")
    assert by_file.out == by_count.out
    document = json.loads(by_file.out)
    assert document["cluster_gpus"] == 34
    assert faults(document, SCHEMA) == []


def test_describe_reads_as_a_table() -> None:
    said = call("trace", "describe", str(DATA / "trace.csv"), "--gpus", "4")
    lines = [" ".join(line.split()) for line in said.out.splitlines()]
    assert (said.code, said.err) == (0, "")
    for line in (
        "jobs 2", "tenants 2", "span of submissions 00:00:30", "arrivals per hour 120.00", "GPU-hours 0.3",
        "jobs with a part of a GPU 1", "load 10.251 of 4 GPUs", "ended 1 COMPLETED, 1 CANCELLED",
        "GPUs Jobs Part GPU-hours", "1 1 0.500 0.0", "Tenant Jobs GPU-hours Share", "phys 1 0.3 0.976",
    ):  # fmt: skip
        assert line in lines


def test_names_of_a_trace_reach_a_terminal_only_clean(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("job_id,tenant,submit_s,gpus,duration_s\na,x\x1b[2J,0,1,1\nb,y,0,1,1\n")
    said = call("trace", "describe", str(path), "--skip-bad")
    assert "\x1b" not in said.out + said.err
    assert (said.code, "x?[2J" in said.err) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["describe", "{tmp}/gone.csv"], "gone.csv: cannot be read"),
        (["describe", "{tmp}"], "cannot be read: Is a directory"),
        (["describe", "{data}/trace.csv", "--gpus", "0"], "--gpus"),
        (
            ["describe", "{data}/trace.csv", "--gpus", "4", "--cluster", "{data}/cluster.toml"],
            "give one of them",
        ),
        (["describe", "{data}/trace.csv", "--cluster", "{data}/trace.csv"], "not TOML"),
        (["describe", "{data}/weights.csv"], "no column job_id"),
        (["convert", "phily", "{data}/philly.json", "-o", "{tmp}/o.csv"], "phily"),
        (["convert", "philly", "{data}/philly.json"], "'--out'"),
        (["convert", "philly", "{data}/philly.json", "-o", "{tmp}/o.json"], "ending in .csv"),
        (["convert", "philly", "{data}/philly.json", "-o", "{tmp}/no/o.csv"], "no such directory"),
        (["convert", "philly", "{data}/helios.csv", "-o", "{tmp}/o.csv"], "not JSON"),
        (["generate", "-o", "{tmp}/o.csv", "--jobs", "0"], "jobs and tenants must be above 0"),
        (["generate", "-o", "{tmp}/o.csv", "--rate", "1", "--load", "1"], "cannot both be given"),
        (["generate", "-o", "{tmp}/o.csv", "--rate", "5", "--gpus", "4"], "leave it out beside --rate"),
        (
            ["generate", "-o", "{tmp}/o.csv", "--jobs", "5", "--load", "1e-6", "--gpus", "1"],
            "--load 1e-06: the last of 5 jobs would be submitted after 1.04638e+11 s, more than a hundred years",
        ),
        (
            ["generate", "-o", "{tmp}/o.csv", "--jobs", "5", "--rate", "1e-6"],
            "years (3155760000 s): give a higher --rate, or fewer --jobs",
        ),
        (["generate", "-o", "{tmp}/o.csv", "--classes", "small"], "small"),
        (["generate", "-o", "{tmp}/o.csv", "--seed", "-1"], "--seed"),
        (["desribe"], "did you mean 'describe'"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2_and_writes_nothing(
    tmp_path: Path, arguments: list[str], words: str
) -> None:
    said = call("trace", *(argument.format(tmp=tmp_path, data=DATA) for argument in arguments))
    assert said.code == 2
    assert said.complaint.startswith("slurm-fair: ")
    assert words in said.complaint
    assert list(tmp_path.iterdir()) == []
