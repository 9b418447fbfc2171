"""`slurm-fair replay` as a person meets it, and wrong input of `tune-lease` too."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from slurm_fair.cli.replay.saved_file import read_saved
from slurm_fair.cli.replay.site import machines_of_site
from slurm_fair.config.sections import ScopeSection
from slurm_fair.errors import InputError
from slurm_fair.slurm.reading.nodes import NodeListing, RawNode
from tests.support.command_line import call
from tests.support.pasts import BEGAN, COLUMNS, past, run, saved
from tests.support.schemas import faults
from tests.support.slurm_samples import sample
from tests.support.slurm_stub import Stub

ROOT = Path(__file__).parents[3]
SCHEMA = json.loads((ROOT / "docs" / "schema" / "replay.json").read_text())
ROWS = [
    run("1", 0, 0, 4000, gpus=8, NodeList="n1"),
    run("2", 100, 4000, 4600, gpus=4, tenant="b"),
    run("3", 200, 4000, 4300, gpus=4, state="REQUEUED"),
    run("3", 4300, 4600, 5000, gpus=4),
    run("4_1", 300, None, 900, gpus=2, tenant="b", state="CANCELLED by 0"),
    run("5", 400, 5000, None, gpus=2, tenant="b", state="RUNNING"),
    run("6", 400, 4900, 6000, gpus=1, tenant="b", state="FAILED"),
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A saved file of sacct."""
    return saved(tmp_path / "sacct.txt", ROWS)


def replayed(*arguments: str) -> dict[str, Any]:
    """The output of `replay --json`, held to its schema."""
    said = call("replay", *arguments, "--json")
    assert said.code == 0, said.err
    found: dict[str, Any] = json.loads(said.out)
    assert faults(found, SCHEMA) == []
    return found


def rows_of(path: Path) -> dict[str, dict[str, str]]:
    """A row for each job."""
    with path.open() as text:
        return {row["job_id"]: row for row in csv.DictReader(text)}


# -- a saved file -------------------------------------------------------------------------------------------------


def test_the_first_result_is_what_really_happened(file: Path) -> None:
    found = replayed("--sacct", str(file), "--gpus", "8", "--policy", "astraea,fifo")
    recorded, astraea, fifo = found["results"]
    assert [r["policy"] for r in found["results"]] == ["recorded", "astraea", "fifo"]
    jct = [4000, 4500, 4800, 6000 - 400, 6000 - 400]
    assert recorded["jct_mean_s"] == pytest.approx(sum(jct) / 5)
    assert (recorded["makespan_s"], recorded["restarts"], recorded["preemptions"]) == (6000.0, 1, 1)
    assert [recorded[key] for key in ("decision_p50_s", "cpu_s", "fragments_mean", "lease_s")] == [None] * 4
    assert (recorded["jobs_completed"], recorded["jobs_not_ended"], recorded["jobs_total"]) == (3, 1, 5)
    assert (astraea["jobs_completed"], fifo["jobs_completed"]) == (4, 4)  # the sixth fails
    assert sum(t["had_gpu_seconds"] for t in recorded["tenants"]) == recorded["gpu_seconds"]
    source = found["source"]
    assert (source["not_over"], source["never_ran"], source["until"]) == (["5"], ["4_1"], BEGAN + 6000)


def test_jobs_of_an_array_that_never_ran_count_each(tmp_path: Path) -> None:
    never = [run(job, 0, None, None, state="PENDING") for job in ("2", "3", "4_[1-3]", "5", "6_[0-1]")]
    path = saved(tmp_path / "sacct.txt", [run("1", 0, 0, 100), *never])
    said = call("replay", "--sacct", str(path), "--gpus", "8", "--policy", "fifo")
    assert "note: 8 jobs that never ran (or less than 1 s) left out: 2, 3, 5 and 5 more" in said.out


def test_a_past_of_a_larger_cluster_is_worth_a_warning(file: Path) -> None:
    options = ("replay", "--sacct", str(file), "--policy", "fifo", "--too-large", "drop", "--gpus")
    assert call(*options, "9").err == ""
    small = call(*options, "4")
    assert small.code == 0
    assert small.err.startswith("warning: up to 8 GPUs were held at once, the cluster has 4: ")
    assert small.err.count("\n") == 1


def test_the_table_shows_a_dash_for_what_accounting_cannot_know(file: Path) -> None:
    said = call("replay", "--sacct", str(file), "--gpus", "8", "--policy", "fifo")
    assert (said.code, said.err) == (0, "")
    lines = {line[:24].strip(): line[24:].split() for line in said.out.splitlines()}
    assert lines["idle GPUs while jobs wait"[:24]][-2] == "-"
    assert lines["GPU time lost to them"][0] == "-"
    assert "note: 1 job that never ran (or less than 1 s) left out: 4_1" in said.out
    assert "note: 1 job that had not ended by" in said.out
    assert "saving costs 10 s (assumed), coming back 35 s more (assumed)" in said.out


def test_jobs_go_into_a_file_for_each_and_one_for_what_was_recorded(file: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    options = ("--policy", "fifo", "--jobs-out", str(tmp_path / "jobs.csv"), "--html", str(page))
    assert call("replay", "--sacct", str(file), "--gpus", "8", *options).code == 0
    tables = {name: rows_of(tmp_path / f"jobs.{name}.csv") for name in ("recorded", "fifo")}
    third = tables["recorded"]["3"]
    assert (third["start_s"], third["end_s"], third["run_s"], third["preemptions"]) == (
        "4000",
        "5000",
        "700",
        "1",
    )
    assert tables["recorded"]["1"]["nodes"] == "n1"
    assert tables["fifo"]["3"]["run_s"] == "655", "it neither saves nor comes back, which took 10 s and 35 s"
    assert "recorded" in page.read_text()


def test_local_times_read_as_epoch_seconds_do(file: Path, tmp_path: Path) -> None:
    from datetime import UTC, datetime

    def in_words(cell: str) -> str:
        return (
            datetime.fromtimestamp(int(cell), UTC).strftime("%Y-%m-%dT%H:%M:%S") if cell.isdigit() else cell
        )

    worded = [{**row, **{name: in_words(row[name]) for name in ("Submit", "Start", "End")}} for row in ROWS]
    other = saved(tmp_path / "words.txt", worded)
    one, two = (replayed("--sacct", str(path), "--gpus", "8")["results"][0] for path in (file, other))
    assert one == two


def test_failed_jobs_can_be_left_out_of_both(file: Path) -> None:
    found = replayed("--sacct", str(file), "--gpus", "8", "--policy", "fifo", "--failed", "drop")
    assert [result["jobs_total"] for result in found["results"]] == [4, 4]
    assert found["trace"]["failed_left_out"] == 1


@pytest.mark.parametrize("version", ["24.11", "26.05"])
def test_captures_of_several_versions_are_read(version: str, tmp_path: Path) -> None:
    names = "JobID|Account|User|Submit|Start|End|State|AllocTRES|ReqTRES"
    path = tmp_path / "capture.txt"
    path.write_text(f"{names}\n{sample(version, 'sacct_columns.txt')}")
    told = read_saved(path, skip_bad=False)
    assert told.bad == ()
    assert len(told.past.runs) >= 5
    assert told.past.unsplit["9_[1-5%2]"] == 5


def test_a_run_that_is_there_twice_is_a_bad_row(tmp_path: Path) -> None:
    path = saved(tmp_path / "joined.txt", [*ROWS, *ROWS])
    said = call("replay", "--sacct", str(path), "--gpus", "8")
    assert (said.code, said.out) == (2, "")
    assert f"{path}:9: row: this run of job '1' is there twice, first at 2 (5 more bad rows" in said.complaint
    told = read_saved(path, skip_bad=True)
    assert (len(told.bad), told.past.runs.start.tolist().count(0)) == (6, 2)


def test_a_running_job_tells_when_the_file_was_saved(tmp_path: Path) -> None:
    rows = [{**run("1", 0, 100, None, state="RUNNING"), "ElapsedRaw": "900"}]
    path = saved(tmp_path / "s.txt", rows, (*COLUMNS, "ElapsedRaw"))
    assert read_saved(path, skip_bad=False).until == BEGAN + 1000


def test_bad_rows_are_refused_by_line_or_left_out_and_listed(tmp_path: Path) -> None:
    path = saved(tmp_path / "s.txt", [*ROWS, run("8", 0, 1, 2, Submit="soon")])
    said = call("replay", "--sacct", str(path), "--gpus", "8")
    assert (said.code, f"{path}:9: row: Submit: 'soon' is no time" in said.complaint) == (2, True)
    said = call("replay", "--sacct", str(path), "--gpus", "8", "--policy", "fifo", "--skip-bad")
    assert (said.code, said.err.startswith(f"left out: {path}:9: row:")) == (0, True)


FILE = ("replay", "--sacct", "{file}", "--gpus", "8")
TUNE = ("tune-lease", "--sacct", "{file}", "--gpus", "8")
WRONG = {
    "no sacct output": (["replay", "--sacct", "{other}", "--gpus", "8"], "no column JobID"),
    "no cluster": (["replay", "--sacct", "{file}"], "no cluster: give --gpus N"),
    "an unknown policy": ([*FILE, "--policy", "fare"], "fare"),
    "recorded as a policy": (
        [*FILE, "--policy", "recorded"],
        "leave it out",
    ),
    "a period of a file": ([*FILE, "--start", "today"], "whole file"),
    "shares of a file": ([*FILE, "--weights", "shares"], "asks Slurm"),
    "jobs that are too large": (["replay", "--sacct", "{file}", "--gpus", "4"], "wants more GPUs"),
    "no times": (["replay", "--sacct", "{short}", "--gpus", "8"], "no column Start: save it again"),
    "a file where nothing ran": (["replay", "--sacct", "{idle}", "--gpus", "8"], "no GPU job of it ever ran"),
    "one output for two": (
        [*FILE, "--jobs-out", "{file}/x.csv"],
        "cannot be written",
    ),
    "nothing to tune": (["tune-lease", "--gpus", "8"], "name one of these"),
    "two things to tune": (["tune-lease", "{file}", "--history"], "name only one of these"),
    "two policies to tune": (
        [*TUNE, "--policy", "fifo,astraea"],
        "one policy",
    ),
    "terms that are none": (["tune-lease", "--sacct", "{file}", "--terms", "60,x"], "no list of seconds"),
    "terms without end": ([*TUNE, "--terms", "900,1e9"], "leases of ten years never end: give shorter ones"),
    "terms below the interval": (
        [*TUNE, "--interval", "90"],
        "--interval",
    ),
    "costs above all terms": (
        [*TUNE, "--terms", "60", "--restart-cost", "60"],
        "no term of --terms leaves time to work",
    ),
    "throughputs of a file of sacct": (
        [*TUNE, "--throughputs", "x"],
        "belong to a TRACE",
    ),
    "a tolerance above 1": (["tune-lease", "--sacct", "{file}", "--jct-tolerance", "2"], "range"),
    "a period of a trace": (["tune-lease", "{file}", "--gpus", "8", "--start", "today"], "no period"),
}


@pytest.mark.parametrize(("arguments", "words"), WRONG.values(), ids=WRONG.keys())
def test_wrong_input_is_one_line(arguments: list[str], words: str, file: Path, tmp_path: Path) -> None:
    paths = {
        "file": file,
        "other": ROOT / "tests" / "data" / "traces" / "trace.csv",
        "short": saved(
            tmp_path / "short.txt", ROWS, [name for name in COLUMNS if name not in ("Start", "End")]
        ),
        "idle": saved(tmp_path / "idle.txt", [run("1", 0, None, None, state="PENDING")]),
    }
    said = call(*(argument.format_map(paths) for argument in arguments))
    assert (said.code, said.out) == (2, "")
    assert words in said.complaint


# -- the site itself ----------------------------------------------------------------------------------------------


@pytest.fixture
def stub(tmp_path: Path) -> Stub:
    """Slurm's programs that answer from a table."""
    return Stub(tmp_path / "slurm")


@pytest.fixture
def site(stub: Stub, tmp_path: Path) -> list[str]:
    """The options that name a site whose Slurm is the stub."""
    config = tmp_path / "slurm-fair.toml"
    programs, storage = stub.folder / "bin", tmp_path
    config.write_text(
        f'[slurm]\nbin_dir = "{programs}"\n[storage]\ndir = "{storage}"\n[scope]\npartitions = ["gpu"]\n'
    )
    return ["--config", str(config)]


def test_accounting_is_asked_for_every_run_of_everybody_in_the_period(stub: Stub, site: list[str]) -> None:
    stub.answers("sacct", "\n".join("|".join(row[name] for name in COLUMNS) for row in ROWS) + "\n")
    period = ("--start", "2026-09-01", "--end", "2026-10-01")
    said = call(*site, "replay", *period, "--gpus", "8", "--weights", "equal", "--policy", "fifo", "--json")
    assert said.code == 0, said.err
    found = json.loads(said.out)
    assert (found["source"]["kind"], found["results"][0]["policy"]) == ("slurmdbd", "recorded")
    (asked,) = stub.calls
    assert {"-n", "-P", "-X", "-D", "-a"} <= set(asked)
    assert asked[asked.index("-r") + 1] == "gpu"
    assert asked[asked.index("-S") + 1] == f"uts{int(found['source']['start'])}"


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        (
            (1, "", "Slurm accounting storage is disabled"),
            1,
            "accounting tells nothing (sacct: Slurm accounting storage",
        ),
        ("", 2, "no GPU job ran from"),
        ("1|2|3\n", 1, "has 3 columns instead of"),
        (
            "|".join(run("2", 0, None, None, state="PENDING")[name] for name in COLUMNS),
            2,
            "(1 job only waited)",
        ),
    ],
    ids=["no accounting", "an empty period", "another format", "only waiting jobs"],
)
@pytest.mark.parametrize("command", [("replay",), ("tune-lease", "--history")], ids=lambda words: words[0])
def test_a_past_that_cannot_be_had_is_one_line(
    command: tuple[str, ...],
    answer: str | tuple[int, str, str],
    code: int,
    words: str,
    stub: Stub,
    site: list[str],
) -> None:
    stub.answers("sacct", answer)
    said = call(*site, *command, "--start", "2026-09-01", "--gpus", "8")
    assert (said.code, said.out, words in said.complaint) == (code, "", True)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ([], ("max-min", "all")),
        (["--job-share", "proportional"], ("proportional", "all")),
        (["--counted", "seen"], ("max-min", "seen")),
    ],
)
def test_shares_are_counted_as_at_the_site_unless_told_otherwise(
    given: list[str], wanted: tuple[str, str], stub: Stub, site: list[str]
) -> None:
    with Path(site[1]).open("a") as config:
        config.write('[tenants]\njob_share = "max-min"\ncounted = "all"\n')
    stub.answers("sacct", "\n".join("|".join(row[name] for name in COLUMNS) for row in ROWS) + "\n")
    jobs = (
        "--start",
        "2026-09-01",
        "--end",
        "2026-10-01",
        "--gpus",
        "8",
        "--weights",
        "equal",
        "--json",
        *given,
    )
    found = json.loads(call(*site, "replay", *jobs, "--policy", "fifo").out)["results"]
    tried = json.loads(call(*site, "tune-lease", "--history", *jobs, "--terms", "900").out)["terms"]
    assert [(row["job_share"], row["counted"]) for row in (*found, *tried)] == [wanted] * 3


def test_what_was_recorded_is_measured_by_the_job_share_that_is_given(tmp_path: Path) -> None:
    """8 GPUs of one tenant: of 4 each the narrow job uses 2; max-min owes the wide one the 2 left over."""
    rows = [run("1", 0, 0, 1000, gpus=6), run("2", 0, 0, 1000, gpus=2)]
    path, jobs = saved(tmp_path / "two.txt", rows), tmp_path / "jobs.csv"
    rho = {}
    for share in ("proportional", "max-min"):
        replayed(
            "--sacct",
            str(path),
            "--gpus",
            "8",
            "--policy",
            "fifo",
            "--job-share",
            share,
            "--jobs-out",
            str(jobs),
        )
        row = rows_of(tmp_path / "jobs.recorded.csv")["1"]
        rho[share] = float(row["rho_ltgf"])
    assert rho == pytest.approx({"proportional": 6 / 4, "max-min": 1.0})


def test_a_site_whose_nodes_cannot_be_seen_asks_for_some(stub: Stub, site: list[str]) -> None:
    stub.answers("sacct", "|".join(ROWS[0][name] for name in COLUMNS))
    stub.answers("sinfo", (1, "", "Unable to contact slurm controller"))
    said = call(*site, "replay", "--start", "2026-09-01")
    assert (said.code, "give --gpus N or --cluster FILE.toml" in said.complaint) == (1, True)


def node(name: str, gpus: int, kind: str = "") -> RawNode:
    return RawNode(name, gpus, kind, 0, 8, 0, 1000, 0, "idle")


def test_the_machines_are_the_managed_nodes_with_gpus_of_one_type() -> None:
    nodes = [node("n1", 4, "a100"), node("n2", 8), node("n3", 4, "+"), node("n4", 0), node("o1", 8)]
    members = {"gpu": ("n1", "n2", "n3", "n4"), "other": ("o1",)}
    seen = NodeListing({each.name: each for each in nodes}, members, {"gpu": True, "other": True})
    machines, mixed = machines_of_site(seen, ScopeSection(partitions=("gpu",)))
    assert (machines.names, machines.gpus.tolist(), mixed) == (("n1", "n2"), [4, 8], ("n3",))
    assert [machines.gpu_types[kind] for kind in machines.gpu_type.tolist()] == ["a100", "gpu"]
    with pytest.raises(InputError, match="no managed partition has a node with GPUs"):
        machines_of_site(seen, ScopeSection(partitions=("cpu",)))


def test_the_stub_of_rows_speaks_as_accounting_does() -> None:
    assert len(past(ROWS).runs) == len(ROWS)
