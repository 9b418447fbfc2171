"""Texts that the runtime inside jobs reads with bash: the published file, the job's own answer, its comment."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import slurm_fair_templates
from tests.fuzz.asking import FOLDER, Parser, file_of

RUNTIME = (Path(slurm_fair_templates.__file__).parent / "runtime.sh.j2").read_text()
READERS = ("now", "say", "go_in", "get", "why", "say_run", "change_comment", "tell_by_comment")
ASKS = """
squeue() { cat -- "$SLURM_FAIR_PUBLISH_DIR/7.json"; }
scontrol() { printf '%s' "$*"; }
slurm_fair_say "$(slurm_fair_why 1795000000)"
slurm_fair_say_run
slurm_fair_tell_by_comment true
"""
SECONDS = 60  # on a busy machine; a text takes it some milliseconds


def _function(name: str) -> str:
    """On one line, or up to the bracket that begins a line."""
    found = re.search(
        rf"^slurm_fair_{name}\(\) (?:\{{ [^\n]* \}}$|[{{(].*?^[}})].*?$)", RUNTIME, re.DOTALL | re.MULTILINE
    )
    assert found, name
    return found[0]


def _read(path: Path) -> None:
    place = FOLDER / "runtime" / "7"
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name in ("7.json", "ack.json"):
        (place / name).write_bytes(path.read_bytes())
    given = {
        "slurm_fair_job": "7",
        "slurm_fair_restart": "1",
        "slurm_fair_folder": str(place),
        "SLURM_JOB_NODELIST": "n1",
        "SLURM_FAIR_PUBLISH_DIR": str(place),
        "PATH": "/usr/bin:/bin",
    }
    asked = ("bash", "--norc", "-c", "\n".join((*map(_function, READERS), ASKS)))
    done = subprocess.run(asked, env=given, capture_output=True, timeout=SECONDS, check=False)
    lines = [line for line in done.stderr.split(b"\n") if b"ignored null byte" not in line]
    said = b"\n".join(lines)
    assert re.fullmatch(rb"(?:slurm_fair: [\x20-\x7e]{0,290}\n){2}", said), said[:500]
    answers = re.findall(rb"slurm_fair_ack:[^\s]*", done.stdout)
    assert len(answers) <= 1, done.stdout[:500]


WHOM = [{"job": "10", "tenant": "speech"}, {"job": "11_2", "tenant": ""}]
DOCUMENT = {"v": 1, "restart": 1, "asked": {"time": 1795000000, "why": "its lease is over", "for": WHOM}}
ACK = {
    "v": 1,
    "what": "ack",
    "job": "7",
    "restart": 1,
    "request": 1,
    "saved": True,
    "step": 118,
    "save_s": 0.4,
}
RUNTIMES = {
    "texts of the runtime": Parser(
        file_of("runtime.new", _read),
        (
            json.dumps(DOCUMENT),
            json.dumps(ACK),
            "mine slurm_fair_ack:job=7,restart=0,saved=1,time=1 x",
            "(null)",
        ),
    )
}
