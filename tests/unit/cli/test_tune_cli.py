"""`slurm-fair tune-lease` as a person meets it."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import call
from tests.support.pasts import run, saved
from tests.support.schemas import faults

ROOT = Path(__file__).parents[3]
SCHEMA = json.loads((ROOT / "docs" / "schema" / "tune-lease.json").read_text())


def document(*arguments: str) -> dict[str, Any]:
    """The output of --json, held to its schema."""
    said = call("tune-lease", *arguments, "--json")
    assert said.code == 0, said.err
    found: dict[str, Any] = json.loads(said.out)
    assert faults(found, SCHEMA) == []
    return found


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Many short jobs and a few long ones, as clusters have them, that want twice the 8 GPUs there are."""
    dice = random.Random(1)
    rows, now = ["job_id,tenant,submit_s,gpus,duration_s"], 0.0
    for job in range(120):
        now += dice.expovariate(1 / 150)
        gpus, seconds = dice.choice([1, 1, 1, 2, 4]), min(max(dice.lognormvariate(6.2, 1.6), 30), 20_000)
        rows.append(f"{job},{dice.choice('aabbbcd')},{now:.0f},{gpus},{seconds:.0f}")
    path = tmp_path_factory.mktemp("traces") / "crowded.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


def tuned(path: Path, checkpoint: int, restart: int, *more: str) -> dict[str, Any]:
    """Under four terms, with these costs."""
    terms = ("--terms", "120,300,1200,3600", "--gpus", "8")
    costs = ("--checkpoint-cost", str(checkpoint), "--restart-cost", str(restart))
    return document(str(path), *terms, *costs, *more)


def test_without_costs_a_short_term_is_recommended_and_with_high_ones_a_long_one(crowded: Path) -> None:
    free, dear = (tuned(crowded, *costs, "--policy", "astraea") for costs in ((0, 0), (60, 240)))
    assert (free["recommended"]["lease_s"], dear["recommended"]["lease_s"]) == (120.0, 3600.0)
    assert (free["terms_left_out"], dear["terms_left_out"]) == ([], [120.0, 300.0])
    assert all(row["overhead_fraction"] == 0 for row in free["terms"])
    lost = [row["overhead_fraction"] for row in dear["terms"]]
    assert lost == sorted(lost, reverse=True)
    moves = [row["preemptions"] for row in free["terms"]]
    assert moves == sorted(moves, reverse=True)


def test_every_term_says_how_far_it_lies_behind_the_best_that_can_be_borne(crowded: Path) -> None:
    found = tuned(crowded, 10, 35, "--overhead-limit", "0.1", "--jct-tolerance", "0.2")
    options = found["options"]
    assert (options["overhead_limit"], options["jct_tolerance"], options["job_tolerance"]) == (0.1, 0.2, 0.01)
    borne = [row for row in found["terms"] if row["bearable"]]
    assert borne == [row for row in found["terms"] if row["overhead_fraction"] <= 0.1] != []
    for kind, key in (
        ("job_loss", "ltgf_job_loss_fraction"),
        ("tenant_unfair", "ltgf_tenant_unfair_fraction"),
    ):
        assert min(row[f"{kind}_behind"] for row in borne) == 0
        least = min(row[key] for row in borne)
        assert [row[f"{kind}_behind"] for row in borne] == pytest.approx([row[key] - least for row in borne])
    for row in borne:
        lags = (row["job_loss_behind"] / 0.01, row["tenant_unfair_behind"] / 0.01, row["jct_behind"] / 0.2)
        assert row["regret"] == pytest.approx(max(lags))
    (chosen,) = (row for row in borne if row["lease_s"] == found["recommended"]["lease_s"])
    assert chosen["regret"] <= max(1.0, min(row["regret"] for row in borne))
    assert found["recommended"]["reason"].startswith(f"{chosen['lease_s']:g} s, because ")


def test_more_workers_say_the_same(crowded: Path) -> None:
    volatile = {
        "wall_s",
        "cpu_s",
        "peak_rss_mb",
        "decision_p50_s",
        "decision_p95_s",
        "decision_max_s",
        "plans_solved_s",
    }
    alone, together = tuned(crowded, 10, 35), tuned(crowded, 10, 35, "--workers", "2")
    for found in (alone, together):
        found["terms"] = [{k: v for k, v in row.items() if k not in volatile} for row in found["terms"]]
    assert alone == together


def test_the_table_marks_the_recommended_term_and_the_page_has_the_plots(
    crowded: Path, tmp_path: Path
) -> None:
    page = tmp_path / "tune.html"
    said = call("tune-lease", str(crowded), "--gpus", "8", "--terms", "300,3600", "--html", str(page))
    assert (said.code, said.err) == (0, "")
    marked = [line.split()[0] for line in said.out.splitlines() if " * " in line]
    (sentence,) = [line for line in said.out.splitlines() if line.startswith("Recommended: ")]
    assert marked == [sentence.split()[1]]
    whole = page.read_text()
    assert whole.count('<svg viewBox="0 0 640') == 4
    assert sentence.replace("'", "&#x27;") in whole


def test_a_file_of_sacct_without_times_can_be_tuned_for_all_the_same() -> None:
    path = ROOT / "tests" / "data" / "traces" / "sacct.txt"
    found = document("--sacct", str(path), "--gpus", "8", "--terms", "300,900")
    assert found["source"]["kind"] == "sacct"
    assert found["trace"]["jobs"] == 4


def test_a_listing_tells_why_rows_are_left_out(tmp_path: Path) -> None:
    wanted = ("JobID", "Account", "User", "Submit", "State", "AllocTRES", "ReqTRES", "ElapsedRaw")
    rows = [{**run(str(job), 0, 0, 600), "ElapsedRaw": "600"} for job in (1, 2)]
    path = saved(tmp_path / "s.txt", [*rows, {**run("3", 0, 0, 1, gpus=0), "ElapsedRaw": "1"}], wanted)
    said = call("tune-lease", "--sacct", str(path), "--gpus", "1", "--terms", "300,900")
    assert said.code == 0, said.err
    assert "note: 1 row left out: jobs without GPUs" in said.out


def test_a_job_that_no_term_can_start_is_refused_by_name(tmp_path: Path) -> None:
    header = "job_id,tenant,submit_s,gpus,duration_s,node_count"
    path = tmp_path / "trace.csv"
    path.write_text(f"{header}\nwide,a,0,4,600,4\nfits,b,0,4,600,1\n")
    said = call("tune-lease", str(path), "--gpus", "8", "--terms", "300,900")
    assert said.code == 2
    assert "wide (4 GPUs on 4 nodes)" in said.err
    said = call("tune-lease", str(path), "--gpus", "8", "--terms", "300,900", "--too-large", "drop")
    assert said.code == 0, said.err
    assert "wide" in said.out


def test_a_policy_without_pre_emption_makes_every_term_alike(crowded: Path) -> None:
    found = document(str(crowded), "--gpus", "8", "--terms", "300,900", "--policy", "fifo")
    assert found["recommended"]["reason"].startswith("900 s, because the term makes no difference")
    said = call("tune-lease", str(crowded), "--gpus", "8", "--terms", "300,900", "--policy", "fifo")
    assert "others may be better still" not in said.out


def test_a_term_that_is_there_twice_is_refused(crowded: Path) -> None:
    said = call("tune-lease", str(crowded), "--gpus", "8", "--terms", "60,300,60")
    assert (said.code, "60 is there twice: keep one of them" in said.complaint) == (2, True)
