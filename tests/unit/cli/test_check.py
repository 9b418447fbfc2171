"""`slurm-fair check` as a person meets it: stub programs of Slurm in a folder of their own."""

from __future__ import annotations

import json
import logging
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from slurm_fair.doctor import examine
from slurm_fair.slurm.reading.queue import BETWEEN, ROW_END
from tests.support.command_line import Said, call, own_log
from tests.support.schemas import faults

CONFIG = """\
Configuration data as of {now}
AccountingStorageEnforce = associations,limits,qos
AccountingStorageTRES   = cpu,mem,energy,node,billing,fs/disk,vmem,pages,gres/gpu
AccountingStorageType   = accounting_storage/slurmdbd
AuthInfo                = (null)
ClusterName             = stub
JobRequeue              = 1
JobSubmitPlugins        = (null)
KillWait                = 30 sec
MinJobAge               = 300 sec
PreemptMode             = OFF
PreemptType             = preempt/none
PriorityFlags           =
PrivateData             = none
SchedulerParameters     = sched_interval=1,bf_interval=1,batch_sched_delay=0
SchedulerType           = sched/backfill
SelectType              = select/cons_tres
SLURM_VERSION           = 24.11.5
SlurmUser               = slurm(64030)
SlurmctldParameters     = (null)
"""
NODES = ("n1", "gpu", "up", "gpu:a100:8", "gpu:a100:0", "idle", "0/64/0/64", "512000", "0", "(null)")
SCRIPTS = {
    "scontrol": """case "$*" in
--version) echo "slurm 24.11.5" ;;
ping) echo "Slurmctld(primary) at ctl is UP" ;;
"show config") sed "s/{now}/$(date +%s)/" "$0.config" ;;
*reservation) echo "No reservations in the system" ;;
*) echo "stub: $*" >&2; exit 1 ;;
esac""",
    "sinfo": 'cat "$0.rows"',
    "squeue": "true",
    "scancel": "exit 1",
    "sacct": "true",
    "sshare": "echo 'vision||1|'",
    "sacctmgr": """case "$*" in
*"show user"*) echo "$6|Operator" ;;
*"show account"*) echo root; echo vision ;;
*"show qos"*) echo normal ;;
esac""",
}
Site = Callable[..., Path]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """Makes a configuration for stub programs; `scripts` replaces some, `config` lines of Slurm's."""
    monkeypatch.delenv("SLURM_CONF", raising=False)
    programs, storage = tmp_path / "bin", tmp_path / "storage"
    programs.mkdir()
    storage.mkdir(mode=0o750)

    def make(
        extra: str = "", scripts: Mapping[str, str] | None = None, config: Mapping[str, str] | None = None
    ) -> Path:
        for name, text in (SCRIPTS | dict(scripts or {})).items():
            script = programs / name
            script.write_text(f"#!/bin/bash\n{text}\n")
            script.chmod(stat.S_IRWXU)
        (programs / "sinfo.rows").write_text(BETWEEN.join(NODES) + ROW_END + "\n")
        shown = CONFIG + "".join(f"{key} = {value}\n" for key, value in (config or {}).items())
        (programs / "scontrol.config").write_text(shown)
        path = tmp_path / "slurm-fair.toml"
        lease = "" if "[lease]" in extra else '[lease]\npublish_dir = ""\n'
        path.write_text(
            f'[slurm]\nbin_dir = "{programs}"\n[storage]\ndir = "{storage}"\nmax_mb = 1\n{lease}{extra}'
        )
        return path

    return make


def findings(said: Said) -> dict[str, list[str]]:
    """The findings, by level."""
    listed = json.loads(said.out)["findings"]
    return {level: [f["what"] for f in listed if f["level"] == level] for level in ("ok", "warning", "error")}


def test_a_site_in_order_passes_without_a_warning(site: Site) -> None:
    said = call("--config", str(site()), "check", "--json")
    found = findings(said)
    assert (said.code, said.err) == (0, "")
    assert (found["warning"], found["error"]) == ([], [])
    for words in ("slurmctld is 24.11.5, cluster stub", "8 a100", "accounting answers", "clock agrees"):
        assert any(words in what for what in found["ok"]), words


def test_what_the_daemon_would_log_is_no_line_without_a_label(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def logs(*given: Any) -> Any:
        logging.getLogger("slurm_fair").warning("the journal began after these jobs had got node lists")
        return examine(*given)

    monkeypatch.setattr("slurm_fair.cli.check.examine", logs)
    with own_log() as log:
        log.propagate = False  # as outside of a test, where nobody hears what is logged
        said = call("--config", str(site()), "check")
    assert (said.code, said.err) == (0, "")


def test_the_table_shows_level_area_finding_and_cure(site: Site) -> None:
    said = call("--config", str(site(config={"KillWait": "5 sec"})), "check")
    assert said.code == 0
    lines = said.out.splitlines()
    at = 0  # problems come first
    assert lines[at].split()[:4] == ["warning", "settings", "KillWait", "is"]
    assert lines[at + 1].strip().startswith("cure: set KillWait=30")
    assert lines[-1].endswith(" ok, 1 warning, 0 errors")


def test_the_document_keeps_to_its_schema(site: Site) -> None:
    schema = json.loads((Path(__file__).parents[3] / "docs/schema/check.json").read_text())
    document = json.loads(call("--config", str(site()), "check", "--json").out)
    assert faults(document, schema) == []
    assert len(document["findings"]) == sum(document["counts"].values()) > 20
    assert faults({**document, "verdict": 1}, schema) != []


def test_without_an_answer_it_says_so_and_looks_at_the_rest(site: Site) -> None:
    down = {"scontrol": 'case "$*" in --version) echo slurm 24.11.5;; *) echo "c is DOWN"; exit 1;; esac'}
    said = call("--config", str(site(scripts=down)), "check", "--json")
    found = findings(said)
    assert said.code == 1
    assert found["error"] == ["Slurm does not answer (c is DOWN): what needs it is not looked at"]
    assert any("policy fair loads" in what for what in found["ok"])
    assert any("journal" in what for what in found["ok"])


@pytest.mark.parametrize(
    ("extra", "scripts", "config", "level", "words"),
    [
        ('[scope]\npartitions = ["gpus"]', {}, {}, "error", "Slurm knows no gpus"),
        ('[scope]\naccounts = ["visoin"]', {}, {}, "error", "[scope] accounts: Slurm knows no visoin"),
        ("[tenants]\nweights = { nobody = 2 }", {}, {}, "error", "[tenants] weights: Slurm knows no nobody"),
        ('[policy]\nname = "nosuch"', {}, {}, "error", "policy nosuch: unknown policy"),
        ("[policy.fair]\nwidth = 3", {}, {}, "error", "unknown setting 'width'"),
        ("", {"sinfo": "echo broken"}, {}, "error", "the nodes cannot be read"),
        ("", {"squeue": "exit 1"}, {}, "error", "the cluster cannot be seen as a whole: squeue"),
        ("", {"sacct": "echo no database >&2; exit 1"}, {}, "warning", "accounting does not answer: sacct"),
        ("", {}, {"SLURM_VERSION": "21.08.5"}, "error", "slurmctld is 21.08.5"),
        ("", {}, {"SLURM_VERSION": "24.05.1"}, "warning", "newer than slurmctld (24.05.1)"),
        ("", {}, {"AuthInfo": "cred_expire=300"}, "error", "for 301 s, [slurm] requeue_delay says 121"),
    ],
)
def test_what_is_wrong_is_found(
    site: Site, extra: str, scripts: dict[str, str], config: dict[str, str], level: str, words: str
) -> None:
    said = call("--config", str(site(extra, scripts, config)), "check", "--json", "--problems")
    found = findings(said)
    assert any(words in what for what in found[level]), found
    assert said.code == (1 if level == "error" else 0)
    assert all(f["cure"] for f in json.loads(said.out)["findings"])


def test_missing_commands_are_named(site: Site, tmp_path: Path) -> None:
    path = site()
    (tmp_path / "bin" / "scancel").unlink()
    found = findings(call("--config", str(path), "check", "--json"))
    assert any("scancel" in what and "not in" in what for what in found["error"])


def test_a_bad_configuration_is_exit_code_2(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text("[lease]\nterm = 0\n")
    said = call("--config", str(path), "check")
    assert (said.code, "lease.term" in said.complaint) == (2, True)


def test_looking_changes_nothing(site: Site, tmp_path: Path) -> None:
    path = site()
    before = sorted(tmp_path.rglob("*"))
    call("--config", str(path), "check")
    assert sorted(tmp_path.rglob("*")) == before
