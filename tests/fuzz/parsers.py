"""Every parser of text that others wrote: samples of what it reads, and how it is asked."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from slurm_fair import lease
from slurm_fair.board.board import read_board
from slurm_fair.board.health import read_health
from slurm_fair.cli.replay.saved_file import read_saved
from slurm_fair.config.sections import ScopeSection
from slurm_fair.config.tree import load_config
from slurm_fair.errors import InputError
from slurm_fair.host.state_folder import Heartbeat, Places, beat, last_beat
from slurm_fair.model import Answer
from slurm_fair.model.ids import parse_label
from slurm_fair.slurm.acting.act_end import refused_or_unknown, signalled
from slurm_fair.slurm.acting.refusals import classify
from slurm_fair.slurm.command import BY_TASK, CommandResult
from slurm_fair.slurm.history import SlurmHistory
from slurm_fair.slurm.past import read_past
from slurm_fair.slurm.reading import acks, messages, report_comments, reports, values
from slurm_fair.slurm.reading.accounts import weights_from
from slurm_fair.slurm.reading.details import JobDetails
from slurm_fair.slurm.reading.gpu_layout import GpuLayouts
from slurm_fair.slurm.reading.node_limits import NodeLimits
from slurm_fair.slurm.reading.nodes import read_nodes, read_reservations
from slurm_fair.slurm.reading.queue import Queue, with_tasks
from slurm_fair.slurm.reading.reread import look
from slurm_fair.slurm.reading.stamp import read_stamp
from slurm_fair.slurm.reading.task_lists import read_tasks
from slurm_fair.slurm_text import hostlist
from slurm_fair.store.codec import read as read_tree
from slurm_fair.trace.cluster import read_machines as read_cluster
from slurm_fair.trace.convert import SOURCES, convert
from slurm_fair.trace.read import read_trace
from slurm_fair.trace.regimes import read_regimes
from slurm_fair.trace.throughputs import read_throughputs
from slurm_fair.trace.weights import read_weights
from slurm_fair_accounting.source.event_reading import read_line
from slurm_fair_accounting.source.period import parse_when
from slurm_fair_templates.options import parse_choices
from tests.fuzz.asking import FOLDER, Parser, Saying, file_of
from tests.fuzz.runtime_parsers import RUNTIMES
from tests.fuzz.site_parsers import SITE
from tests.support.answers import read_acknowledgement
from tests.support.hostile import HUGE, forged_comments, forged_lines, forged_rows
from tests.support.slurm_samples import sample
from tests.support.slurm_stub import row

TRACES = Path(__file__).parent.parent / "data" / "traces"


def _queue(text: str, unfold: str = "--array-unique") -> None:
    queue = Queue(Saying(text, unfold))
    for _ in range(2):
        rows = queue.read()
        if not isinstance(rows, str):
            with_tasks(rows, queue.task_lists)
            assert (rows["gpus"] >= 0).all()
            assert (rows["gpus"] <= 10**6).all()
    look(queue, [(7 << 23, False), (7 << 23, True)])


def _layout(text: str) -> None:
    book = GpuLayouts(Saying(f"{text}\nendhere\n"))
    book.learn({(43, 0): (("n2", "n3"), 5)}, {"n2": 8, "n3": 8})
    told = book.of(43, 0)
    assert told is not None
    assert sum(count for _, count in told) == 5
    assert sorted(name for name, _ in told) == ["n2", "n3"]
    assert all(0 <= count <= 8 for _, count in told)


def _spans(text: str) -> None:
    book = NodeLimits(Saying(f"{text}\nendhere\n"))
    book.learn([(43, 0)])
    assert book.of(43, 0) >= 0


def _details(text: str) -> None:
    book = JobDetails(Saying(text))
    book.learn([(7, 0)])
    stamp = book.of(7, 0).gate_stamp
    stamp.is_gate(1795000000.0, 1795000000.0)
    assert 0 <= stamp.grace_seconds < 1e6


def _history(text: str) -> None:
    runs = SlurmHistory(Saying(text.replace("|", "\x1f"))).runs(0, 1, [])
    if hasattr(runs, "gpus"):
        assert (runs.gpus >= 0).all()
        assert (runs.gpus <= 10**6).all()
    read_past(Saying(text.replace("|", "\x1f")), 0, 1, ScopeSection())


def _verdicts(text: str) -> None:
    answer = CommandResult(("scontrol",), 1, "", text, 0.0)
    classify(text)
    signalled(answer, ("7", "7_3"))
    refused_or_unknown(answer, ("7", "7_3"), "x")


ASKED = acks.Asked("root", str(FOLDER), "7", 0, 1795000000.0, 1795000200.0)


def _ack(path: Path) -> None:
    folder = messages.job_directory(str(FOLDER), "7")
    folder.mkdir(parents=True, exist_ok=True)
    for each in (folder.parent, folder):
        each.chmod(0o700)
    path.rename(folder / "ack.json")
    assert read_acknowledgement(ASKED) in Answer


def _report(path: Path) -> None:
    folder = messages.job_directory(str(FOLDER), "7")
    folder.mkdir(parents=True, exist_ok=True)
    for each in (folder.parent, folder):
        each.chmod(0o700)
    path.rename(folder / "report.json")
    message = messages.read_message(messages.Wanted("root", str(FOLDER), "7", messages.REPORT))
    said = reports.judged(message, (7, 0, 1795000000.0), 1795000200.0)
    assert all(isinstance(value, str) or math.isfinite(value) for value in said.values())


def _lease(path: Path) -> None:
    folder = FOLDER / "lease"
    folder.mkdir(exist_ok=True)
    for name in ("request.json", "ack.json", "report.json", "lease.json"):
        (folder / name).write_bytes(path.read_bytes())
    environ = {
        "SLURM_FAIR_MANAGED": "1",
        "SLURM_FAIR_DIR": str(folder),
        "SLURM_JOB_ID": "7",
        "SLURM_RESTART_COUNT": "0",
        "SLURM_PROCID": "0",
    }
    job = lease.Lease(environ)
    assert job.should_stop() in (True, False)
    job.status()


def _beat(path: Path) -> object:
    path.rename(FOLDER / "heartbeat.json")
    return last_beat(Places(FOLDER))


def _foreign(text: str) -> None:
    for source in SOURCES:
        path = FOLDER / "foreign"
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        with suppress(InputError):
            convert(source, path, skip_bad=True)


def _files_of(suffixes: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(path.read_text() for path in sorted(TRACES.iterdir()) if path.name.endswith(suffixes))


def _texts(*more: Iterable[str]) -> tuple[str, ...]:
    return tuple(text for some in more for text in some)


HOSTILE_ROWS = tuple(forged_rows(7, "vision", "alice"))
ROWS = (
    row() + row(JobID=9, ArrayTaskID="1,3-4%2") + row(JobID=8, State="RUNNING", NodeList="n[1-2]", NumNodes=2)
)
SQUEUE = (
    ROWS,
    sample("22.05", "squeue.txt"),
    *(row(JobID=7) + row(JobID=8, tres_per_node=f"gres:gpu:{text}") for text in HOSTILE_ROWS[:8]),
    *(row(JobID=7) + row(JobID=8, Account=text) for text in HOSTILE_ROWS[:4]),
    *(row(JobID=7) + row(JobID=8, tres_alloc=f"cpu=1,mem=1M,node=1,gres/gpu={huge}") for huge in HUGE),
)
JOB = "scontrol: show job 43\n" + sample("22.05", "job.txt")
JOBS = (JOB, *(JOB.replace("JobName=wrap", f"JobName={text}") for text in forged_lines(43, ("n2", "n3"))))
STAMP = "slurm_fair:v1,signal=USR1,grace=60,gate=uts1795000000"
COMMENT = f"7\x1f(null)\x1fn[1-2]\x1f/home/alice\x1f{STAMP}\x1ftrain\x1e\n"
ACK = {"v": 1, "what": "ack", "job": "7", "restart": 0, "time": 1795000100.0, "saved": True, "step": 118}
ACKS = (json.dumps(ACK), '{"restart": 0, "time": 1e400, "saved": 1}', '{"restart": 1e400}', "[" * 2000)
REPORT = {
    **ACK, "what": "report", "step": 118, "steps": 2000, "epoch": 1.5, "epochs": 20, "steps_per_s": 3.5,
    "samples_per_s": 448.0, "batch_size": 128, "mode": "gns", "model": "resnet50", "pattern": 2,
    "phases": {"data": 0.01, "forward": 0.1, "backward": 0.15, "update": 0.02, "sync": 0.0},
}  # fmt: skip
REPORTS = (
    json.dumps(REPORT),
    '{"what": "report", "job": "7", "restart": 0, "time": 1795000100, "step": 1e999}',
)
EVENT = {
    "time": 1795000000.0,
    "kind": "started",
    "job": "7_1",
    "tenant": "vision",
    "gpus": 4,
    "user": "alice",
}
EVENTS = (
    json.dumps(EVENT),
    json.dumps(EVENT | {"kind": "finished", "had": 1, "owed": 2, "waited": 3, "ran": 4}),
    '{"time": 1, "kind": "capacity", "gpus": 8}',
)
BOARD = {
    "v": 1, "time": 1.0, "tick": 2, "policy": "fifo", "term_seconds": 9.0, "total_gpus": 8, "dry_run": False,
    "note": "", "tenants": [{"tenant": "a"}], "jobs": [{"job": "7", "state": "running"}], "left_alone": [],
    "nodes_out": [], "seconds": {}, "gpus": {},
}  # fmt: skip
CONFIG = """
[lease]
term = 900
interval = 10
[scope]
partitions = ["gpu"]
[tenants.weights]
vision = 2.0
[policy]
name = "astraea"
"""


def _heartbeats() -> tuple[str, ...]:
    places = Places(FOLDER)
    beat(places, Heartbeat(1, 2.0, 3.0, "begin"))
    return (places.heartbeat.read_text(), "null", '{"pid": null}')


DURATIONS = ("1-02:03:04", "10:00", "UNLIMITED", "1:00:00.5", "INVALID")
TRES = ("cpu=4,mem=256G,node=1,billing=4,gres/gpu=4,gres/gpu:a100=4", "gres:gpu:a100:4", "gpu:a100:8(S:0-1)")
PARSERS: dict[str, Parser] = {
    "squeue rows": Parser(_queue, SQUEUE),
    "squeue rows by task": Parser(
        lambda text: _queue(text, BY_TASK), (*SQUEUE, row(ArrayTaskID=1) + row(ArrayTaskID=2))
    ),
    "squeue texts": Parser(_details, (COMMENT, *(COMMENT + text for text in forged_comments(7)))),
    "scontrol layouts": Parser(_layout, JOBS),
    "scontrol spans": Parser(_spans, JOBS),
    "scontrol reservations": Parser(
        lambda text: read_reservations(Saying(text)),
        ("ReservationName=r StartTime=1795225541 EndTime=1795229141 Nodes=n[2-3] Users=root State=ACTIVE\n",),
    ),
    "scontrol errors": Parser(
        _verdicts, ("Job has already finished for job 7_1,3-4\nslurm_update error: Invalid job id specified",)
    ),
    "sinfo rows": Parser(lambda text: read_nodes(Saying(text)), (sample("22.05", "sinfo.txt"),)),
    "sacct rows": Parser(_history, (sample("22.05", "sacct.txt"),)),
    "sshare rows": Parser(lambda text: weights_from(text.splitlines(), {}), (sample("22.05", "sshare.txt"),)),
    "times": Parser(values.epoch, ("1795000000", "Unknown", *HUGE)),
    "numbers": Parser(values.number, ("12", "2-4", *HUGE)),
    "durations": Parser(values.duration_seconds, (*DURATIONS, *HUGE)),
    "sizes": Parser(values.megabytes, ("512000M", "1.5T", "64Gn", *HUGE)),
    "TRES": Parser(
        lambda text: values.tres_gpus(values.tres(text)), (*TRES, *(f"gres/gpu={huge}" for huge in HUGE))
    ),
    "GRES": Parser(values.gres_gpus, (*TRES, *(f"gpu:{huge}" for huge in HUGE))),
    "array tasks": Parser(lambda text: read_tasks(text).text(), ("0-5,9,10-20:2%3", "[7]", *HUGE)),
    "node lists": Parser(hostlist.expand, ("n[001-004,7],login1", "a[1-2]b[3-4]", "n1")),
    "job labels": Parser(parse_label, ("7", "7_3", *HUGE)),
    "stamps": Parser(read_stamp, (STAMP, "slurm_fair:v0,gate=+600", "slurm_fair:v1,gate=hold")),
    "acknowledgements in comments": Parser(
        lambda text: acks.read_comment(text, ASKED),
        ("slurm_fair:v1 slurm_fair_ack:job=7,restart=0,saved=1,time=1795000000.5,step=4",),
    ),
    "reports in comments": Parser(
        lambda text: reports.judged(
            report_comments.read_report(text, "7"), (7, 0, 1795000000.0), 1795000060.0
        ),
        ("mine slurm_fair_report:job=7,restart=0,step=40,steps=2e3,batch_size=8,time=1795000005.5 yours",),
    ),
    "acknowledgements": Parser(file_of("ack.new", _ack), ACKS),
    "reports": Parser(file_of("report.new", _report), REPORTS),
    "a job's own files": Parser(file_of("lease.new", _lease), ACKS),
    "learning rates": Parser(
        lambda text: lease.learning_rate_factor(text, 4, 8), ("linear", "4=0.1,8=0.2", "4=0.1-")
    ),
    "heartbeats": Parser(file_of("beat.new", _beat), _heartbeats()),
    "health": Parser(
        file_of("health", read_health),
        ('{"v": 1, "state": "acting", "why": "", "time": 1.0, "interval_seconds": 1.0, "seen": 1.0}',),
    ),
    "boards": Parser(file_of("board", read_board), (json.dumps(BOARD), "[]", "null", "7")),
    "configurations": Parser(file_of("c.toml", load_config), (CONFIG,)),
    "trees of the journal": Parser(file_of("tree", lambda path: read_tree(path.read_bytes(), "x")), ("Z{}",)),
    "events": Parser(lambda text: read_line(text, "f:1"), EVENTS),
    "trace tables": Parser(file_of("t.csv", read_trace), _files_of(("trace.csv",))),
    "cluster files": Parser(
        file_of("c2.toml", read_cluster),
        (*_files_of(("cluster.toml",)), '[[nodes]]\nname = "n[1-200000]"\ngpus = 8\n'),
    ),
    "throughputs": Parser(file_of("th.csv", read_throughputs), _files_of(("throughputs.csv",))),
    "weights": Parser(file_of("w.csv", read_weights), _files_of(("weights.csv",))),
    "regimes": Parser(file_of("r.jsonl", read_regimes), _files_of(("regimes.jsonl",))),
    "foreign traces": Parser(
        _foreign, _files_of((".trace", "helios.csv", ".swf", "philly.json", "workload-3.csv"))
    ),
    "saved sacct files": Parser(
        file_of("s.txt", lambda path: read_saved(path, True)), _files_of(("sacct.txt",))
    ),
    "instants of reports": Parser(
        lambda text: parse_when(text, 1795000000.0),
        ("2026-10-01T10:00:00", "now-1days", "1001", "10:00pm", "today"),
    ),
    "GPU choices": Parser(parse_choices, ("1,2,4", "1|8", *HUGE)),
    **SITE,
    **RUNTIMES,
}
