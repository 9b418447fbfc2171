"""The report on fairness says of a simulated month what the simulation says, and of a real one what is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from slurm_fair.model import Event, EventKind, Standing
from slurm_fair.store import open_journal, open_reader
from slurm_fair_accounting import REPORTS, Choice, EventFile, JournalReader, Period, export_lines, read_events
from slurm_fair_accounting.reports.fairness import ALL, COLUMNS
from slurm_fair_accounting.reports.measured import NO_CAPACITY
from tests.support import journals, months
from tests.support.command_line import call
from tests.support.months import FEB_1, MAR_1, NOW, T
from tests.support.simulations import jobs_of, made, only, written

OF_ALL = [column.key for column in COLUMNS if column.key not in ("tenant", "jobs", "rho")]
OUTAGES = "time_s,node,event\n1000,n2,down\n4000,n2,up\n6000,n1,drain\n9000,n1,up\n"
CASES = {
    "leases": (),
    "costs and a cluster that shrinks": ("--restart-cost", "20", "--outages", "OUTAGES"),
    "weights, and jobs that did not end": ("--weights", "demand", "--until", "20000"),
    "quotas, whatever is asked for": ("--report-share", "quota"),
    "tenants that count before their first jobs": ("--counted", "all"),
    "such quotas, whatever is asked for": ("--counted", "all", "--report-share", "quota"),
    "rounds whose ends are told late": ("--rounds", "gavel", "--lease", "120"),
}


def told(path: Path, *arguments: str) -> dict[str, Any]:
    """The report on a file."""
    said = call("report", "fairness", "--from", str(path), "--json", *arguments)
    assert (said.code, said.err) == (0, "")
    found: dict[str, Any] = json.loads(said.out)
    return found


@pytest.mark.parametrize("policy", ["astraea", "fifo"])
@pytest.mark.parametrize("arguments", CASES.values(), ids=CASES)
def test_a_simulation_and_the_report_on_its_events_say_the_same(
    policy: str, arguments: tuple[str, ...], tmp_path: Path
) -> None:
    outages = tmp_path / "outages.csv"
    outages.write_text(OUTAGES)
    given = [str(outages) if part == "OUTAGES" else part for part in arguments]
    events = tmp_path / "events.jsonl"
    found = only(made(tmp_path, jobs=100), "--policy", policy, *given, "--events-out", str(events))
    share = ("--share", "quota") if "quota" in arguments else ()
    total = told(events, *share)["total"]
    assert total["jobs"] == found["jobs_total"] - found["jobs_not_ended"] > 50
    assert {key: total[key] for key in OF_ALL} == pytest.approx({key: found[key] for key in OF_ALL}, rel=1e-9)


def test_gpu_types_apps_and_users_are_told_too(tmp_path: Path) -> None:
    trace = written(
        tmp_path,
        "1,a,0,2,900,fast,x",
        "2,a,10,2,1800,,x",
        "3,b,20,4,2700,slow,",
        "4,b,30,4,600,,y",
        header="job_id,tenant,submit_s,gpus,duration_s,gpu_type,app",
    )
    cluster, events = tmp_path / "cluster.toml", tmp_path / "events.jsonl"
    cluster.write_text(
        '[[nodes]]\nname = "f"\ngpus = 4\ntype = "fast"\nspeed = 2.0\n'
        '[[nodes]]\nname = "s"\ngpus = 4\ntype = "slow"\nspeed = 1.0\n'
    )
    said = call("simulate", str(trace), "--cluster", str(cluster), "--json", "--events-out", str(events))
    (found,) = json.loads(said.out)["results"]
    total = told(events)["total"]
    assert {key: total[key] for key in OF_ALL} == pytest.approx({key: found[key] for key in OF_ALL})


def test_each_tenants_row_is_made_of_its_own_jobs(tmp_path: Path) -> None:
    events, jobs = tmp_path / "events.jsonl", tmp_path / "jobs.csv"
    found = only(made(tmp_path), "--events-out", str(events), "--jobs-out", str(jobs))
    rows = {row["tenant"]: row for row in told(events)["rows"]}
    assert {name: row["rho"] for name, row in rows.items()} == pytest.approx(
        {account["tenant"]: account["rho"] for account in found["tenants"]}
    )
    for name, row in rows.items():
        mine = [job for job in jobs_of(jobs) if job["tenant"] == name]
        static = np.array([float(job["ftf_static"]) for job in mine])
        waited = np.array([float(job["latency_ratio"]) for job in mine])
        assert row["jobs"] == len(mine)
        assert row["ltgf_job_loss_fraction"] == np.mean([float(job["rho_ltgf"]) < 0.95 for job in mine])
        assert row["ftf_static_mean"] == pytest.approx(static.mean())
        assert row["ftf_static_worst"] == pytest.approx(static.max())
        assert row["ftf_static_unfair"] == np.mean(static > 1 + 1e-9)
        assert (row["latency_ratio_mean"], row["latency_ratio_max"]) == pytest.approx(
            (waited.mean(), waited.max())
        )
        assert row["jain_tenants"] is None


# -- a real month -------------------------------------------------------------------------------------------------


def fair(source: JournalReader, period: Period, **choice: Any) -> dict[str, dict[str, Any]]:
    report = REPORTS["fairness"](source, period, Choice(**choice))
    return {row["tenant"]: dict(row) for row in report.lines}


def of_jobs(found: dict[str, dict[str, Any]]) -> dict[str, list[Any]]:
    """The columns that do not depend on tenants' accounts."""
    keys = [key for key in OF_ALL if key.startswith(("ftf_", "latency_", "ltgf_job_"))]
    return {name: [row[key] for key in keys] for name, row in found.items()}


class Known(months.Month):
    """The month with what a controller tells since it tells M and expected run times."""

    def __init__(self) -> None:
        more = [
            Event(FEB_1 - 86400, EventKind.CAPACITY, 0, "", 6),
            Event(T + 3600, EventKind.CAPACITY, 0, "", 8),
        ]
        limit = {"limit_seconds": 18050.0}
        known = [
            event._replace(detail={**event.detail, **limit}) if event.kind == "submitted" else event
            for event in months.events()
        ]
        EventFile.__init__(self, [*known, *more], months.moments())

    def latest(self) -> Standing:
        return months.standing()


def test_a_month_of_a_journal() -> None:
    """Job 17 of phys ran 9,000 s of 10,805 and got 36,000 of 40,000 GPU-seconds; 6_5 of chem never ran."""
    found = fair(Known(), Period(FEB_1, MAR_1))
    phys, chem, all_ = found["phys"], found["chem"], found[ALL]
    assert (phys["jobs"], chem["jobs"], all_["jobs"]) == (1, 1, 2)
    assert (phys["ltgf_job_loss_fraction"], chem["ltgf_job_loss_fraction"]) == (1.0, 0.0)
    assert phys["ftf_static_mean"] == phys["ftf_static_worst"] == pytest.approx(10805 / 9000)
    assert (phys["ftf_static_unfair"], chem["ftf_static_unfair"]) == (1.0, None)
    assert phys["latency_ratio_mean"] == pytest.approx(1805 / 18050)
    assert all_["latency_ratio_mean"] == pytest.approx((1805 + 140) / 2 / 18050)
    assert (phys["rho"], chem["rho"], all_["rho"]) == pytest.approx((1.0, 0.5, 1.75 / 2))
    assert all_["jain_tenants"] == pytest.approx(1.5**2 / (2 * 1.25))
    assert REPORTS["fairness"](Known(), Period(FEB_1, MAR_1), Choice()).note == ""


def test_a_job_that_lives_counts_among_the_active_ones_and_has_no_figures() -> None:
    found = fair(Known(), Period(MAR_1, NOW))
    assert (found["chem"]["jobs"], found["chem"]["ftf_static_worst"]) == (0, None)
    whole = fair(Known(), Period(T, NOW), tenant="phys")
    assert set(whole) == {"phys", ALL}
    assert whole[ALL] == fair(Known(), Period(T, NOW))[ALL]


def test_a_life_whose_end_nobody_saw_does_not_live_with_the_next_of_its_number() -> None:
    journal, period = Known(), Period(FEB_1, NOW)
    lost = [
        months.event(T, "submitted", "40", 8),
        months.event(T + 5, "started", "40", 8, restarts=0),
    ]
    again, before = Known(), fair(journal, period)
    again._events = sorted([*lost, *again._events], key=lambda event: event.time)
    assert of_jobs(fair(again, period)) == of_jobs(before)
    file, with_lost = (EventFile(known._events, known._moments) for known in (journal, again))
    assert of_jobs(fair(with_lost, period)) == of_jobs(fair(file, period))


def test_the_jobs_of_one_user_can_be_asked_for() -> None:
    found = fair(Known(), Period(FEB_1, NOW), user="bob")
    assert set(found) == {"chem", ALL}
    assert found["chem"]["jobs"] == 1


def test_a_journal_that_does_not_tell_m_has_the_sum_of_quotas_for_it() -> None:
    report = REPORTS["fairness"](months.Month(), Period(FEB_1, MAR_1), Choice())
    assert report.note == NO_CAPACITY
    (phys,) = (row for row in report.rows if row["tenant"] == "phys")
    assert phys["ftf_static_worst"] == pytest.approx(10805 / 9000)  # 2 jobs on 4 GPUs


def test_the_journal_and_its_export_say_the_same_and_m_is_known_from_the_beginning(tmp_path: Path) -> None:
    path, period = tmp_path / "state" / "journal.db", Period(T - 100, T + 20000)
    with open_journal(path) as journal:
        events = tuple(Known().events())
        journal.append(journals.tick(1, events=events, time=NOW), months.standing())
    file = tmp_path / "events.jsonl"
    with open_reader(path) as reader:
        stored = fair(reader, period)
        file.write_text("".join(export_lines(reader, T - 100, NOW)))
    assert of_jobs(stored) == of_jobs(fair(Known(), period))
    first = json.loads(file.read_text().splitlines()[0])
    assert first == {"time": T - 100, "kind": EventKind.CAPACITY, "gpus": 6}
    assert of_jobs(fair(read_events(file), period)) == of_jobs(stored)
