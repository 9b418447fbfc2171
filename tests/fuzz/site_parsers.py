"""Parsers of what a site, a submission or an earlier run of ours says: settings, notices, scripts, saved files."""

from __future__ import annotations

import json
import re
from itertools import islice
from pathlib import Path

from slurm_fair.board.estimates import Estimates
from slurm_fair.cli.simulate.case import read_outages
from slurm_fair.cli.simulate.setups import given_settings
from slurm_fair.config.sections import Config
from slurm_fair.doctor import published, scheduler, terms, versions
from slurm_fair.doctor.facts import _pairs
from slurm_fair.doctor.hook import differences
from slurm_fair.doctor.storage import file_system
from slurm_fair.host.state_folder import Pause, Places, leave_pause, pause_of
from slurm_fair.slurm.command import CommandResult
from slurm_fair.slurm.notice import read_notices
from slurm_fair.slurm.privacy import hidden, names_are_hidden
from slurm_fair.slurm.private_conf import short_timeout_copy
from slurm_fair.slurm.reading.queue import BETWEEN
from slurm_fair.slurm.reading.stamp import read_stamp
from slurm_fair.slurm.reading.tasks import TaskRows
from slurm_fair.trace.cluster import uniform
from slurm_fair_accounting import export_lines, read_events
from slurm_fair_accounting.source.period import span_of
from slurm_fair_templates import Options
from slurm_fair_templates.deadline import gate_seconds
from slurm_fair_templates.demo_counter import is_whole
from slurm_fair_templates.sbatch_options import split
from slurm_fair_templates.stamp import StampWords, stamped
from slurm_fair_templates.submission import notes, submit_argv
from tests.fuzz.asking import FOLDER, Parser, Saying, file_of
from tests.support import months
from tests.support.hostile import HUGE, forged_lines
from tests.support.site_facts import BASE, facts


def _settings(text: str) -> None:
    """The answer of `scontrol show config`, as the doctor weighs it."""
    site = facts(slurm=dict(_pairs(CommandResult(("scontrol",), 0, text, "", 0.0))))
    for weigh in (scheduler.findings, versions.findings, terms.findings, published.findings):
        list(weigh(site))
    versions.release(text)
    hidden(text)
    names_are_hidden(Saying(text))


def _notices(text: str) -> None:
    """Another user's notice counts for nothing, whatever it says: here all that is read is a daemon's."""
    for notice in read_notices(Saying(text)):
        assert notice.in_words().isprintable()


def _hook(text: str) -> None:
    list(differences(text, Config()))


def _copy(path: Path) -> None:
    copied = short_timeout_copy(path, FOLDER / "copy.conf", 3)
    assert copied == path or copied.read_text(errors="surrogateescape").endswith("MessageTimeout=3\n")


def _script(text: str) -> None:
    """A user's script: what sbatch would read in it, and our words beside."""
    line = split(["--gres=gpu:1", "-t", "10", "job.sh"])
    for word in submit_argv(line, text, Options(), NOW, {}):
        assert isinstance(word, str)
    notes(line, text, {})


def _command_line(text: str) -> None:
    words = text.split("\n")
    script = "#!/bin/sh\ntrue\n"
    submit_argv(split(words), script, Options(), NOW, {})
    notes(split(words), script, {"SBATCH_GPUS": text, "SBATCH_TIMELIMIT": text, "SBATCH_GRES": text})


def _comment(text: str) -> None:
    ours = StampWords("USR2", 60, "uts1795000600")
    twice = stamped(stamped(text, ours), ours)
    assert twice == stamped(text, ours)
    assert read_stamp(twice) is not None


def _deadline(text: str) -> None:
    assert 1 <= gate_seconds(1800, text, text, NOW) <= 1800
    assert 1 <= gate_seconds(1800, text, "10", None) <= 1800


def _pause(path: Path) -> None:
    places = Places(FOLDER)
    path.rename(places.paused)
    pause = pause_of(places)
    assert pause is not None
    assert 0 <= pause.time < 1e12


def _pauses() -> tuple[str, ...]:
    places = Places(FOLDER)
    leave_pause(places, Pause("new driver", "root", NOW))
    return (places.paused.read_text(), "by hand", "{}", '{"time": 1e400, "why": 7}')


def _limits(text: str) -> None:
    rows = ["7\x1f7\x1f1\x1frest", "7\x1f7\x1f2\x1frest"]
    (row,) = TaskRows(Saying(text), BETWEEN).by_record(rows, ask_limits=True)
    assert re.fullmatch("7\x1f7\x1f1-2(%[0-9]{1,9})?\x1frest", row)


def _estimates(path: Path) -> None:
    kept = Estimates.read(path)
    kept.summary(NOW)
    json.loads(kept.text())


NOW = 1795000000.0
NOTICE = (
    "9|slurm_fair:notice,v=1,id=0123456789abcdef,until=1795000900,host=ctl,pid=7,dir=/var/lib/slurm-fair\n"
)
CONFIG = "\n".join(
    ("Configuration data as of 2026-11-19T10:00:00", *(f"{key:<24}= {value}" for key, value in BASE.items()))
)
PARAMETERS = {
    "SchedulerParameters": "batch_sched_delay=1,sched_interval=2,bf_interval=3,requeue_delay=5,defer",
    "SlurmctldParameters": "rl_enable,rl_bucket_size=50,rl_refill_rate=2,rl_refill_period=1",
    "AuthInfo": "cred_expire=120",
    "PrivateData": "jobs,users",
    "MinJobAge": "2 sec",
}
CONFIGS = (CONFIG, "\n".join(f"{key:<24}= {value}" for key, value in (BASE | PARAMETERS).items()))
HOOK = """
slurm_fair_gate = dofile("/etc/slurm/slurm_fair_gate.lua")
local settings = {
  gate = "begin", gate_seconds = 1800,
  gate_seconds = 1800,
  health = "/run/slurm-fair/health.json",
  partitions = {"gpu", "a\\"b"},
  accounts = {},
}
"""
SCRIPT = """#!/bin/bash
#SBATCH --job-name="a b" --gpus=4
#SBATCH -N2 --deadline=now+3hours --time 1-02:03 --comment='mine'
# a comment
srun python train.py
"""
LIMIT = "JobId=7 ArrayJobId=7 ArrayTaskId=1 ArrayTaskThrottle=2 JobName=wrap UserId=alice(1000)\n"
EXPORTS = ("".join(islice(export_lines(months.Month(), 0.0, months.NOW), 40)),)
SITE: dict[str, Parser] = {
    "settings of Slurm": Parser(_settings, CONFIGS),
    "notices of daemons": Parser(_notices, (NOTICE, NOTICE + "8|hello\n7|(null)\n")),
    "submit hooks": Parser(_hook, (HOOK,)),
    "copies of slurm.conf": Parser(
        file_of("slurm.conf", _copy), ("ClusterName=c\nMessageTimeout=10\nNodeName=n1\n", "Include other\n")
    ),
    "tables of mounts": Parser(
        file_of("mounts", lambda path: file_system(FOLDER, path)),
        ("/dev/sda / ext4 rw 0 0\nhost:/home /home nfs4 rw 0 0\n",),
    ),
    "limits of arrays": Parser(_limits, (LIMIT, *(LIMIT.replace("wrap", text) for text in forged_lines(7)))),
    "scripts": Parser(_script, (SCRIPT, "#SBATCH hetjob\n")),
    "command lines of sbatch": Parser(
        _command_line, ("--gres=gpu:a100:2,shard:1\n-N2\n--gpus\n4\n-HN2\njob.sh\n-x", "--wrap=true", "--\n:")
    ),
    "comments": Parser(_comment, ("mine", "a slurm_fair:v1,signal=USR1,grace=60 b")),
    "deadlines": Parser(
        _deadline, ("now+3hours", "uts1795003600", "2026-11-19T10:00:00", "10:00", "1-02:03:04", *HUGE)
    ),
    "learning-rate rules": Parser(lambda text: Options(lr_rule=text), ("linear", "4=0.1,8=0.2")),
    "months of reports": Parser(lambda text: span_of(text, None, None, NOW), ("2026-10", "2026-1")),
    "pauses": Parser(file_of("pause.new", _pause), _pauses()),
    "estimates": Parser(
        file_of("e.json", _estimates),
        ('{"v": 1, "open": [[7, 10.0, "alice"]], "errors": [[1.0, 2.0, "bob"], [3.0, 4.0]]}',),
    ),
    "exported events": Parser(file_of("export.jsonl", read_events), EXPORTS),
    "snapshots of the counter": Parser(
        file_of("1.snap", is_whole), ('{"step": 1, "hash": "aa", "bytes": 3}\nabc', '{"bytes": 1e400}\n')
    ),
    "settings of --set": Parser(
        lambda text: given_settings([f"fifo.key={text}", text], ["fifo"]),
        ("1.5", '"word"', "[1, 2]", "fifo.a=b"),
    ),
    "outages": Parser(
        file_of("o.csv", lambda path: read_outages(path, uniform(16))),
        ("time_s,node,event\n10,n1,down\n20,n1,up\n", "time_s,node,event\n1e400,n2,drain\n"),
    ),
}
