"""Every field that an ordinary user can set, at the submission and later, with every text that may harm a listing.

Whatever Slurm takes of it, the look is never blind and shows the other user's jobs as they are without it.
"""

from __future__ import annotations

import pytest

from slurm_fair.slurm.reading.queue import BETWEEN, FIELDS, ROW_END
from slurm_fair.slurm.reading.user_text import ask_text
from tests.slurm.attacks import HONEST, HOSTILE, Seen, attack, of_user
from tests.support.adapter_on_slurm import Adapter
from tests.support.hostile import forged_comments, forged_lines, forged_rows
from tests.support.on_slurm import Slurm

pytestmark = pytest.mark.slurm

OPTIONS = (
    "--job-name", "--comment", "--wckey", "--account", "--constraint", "--prefer", "--batch", "--licenses",
    "--mail-user", "--chdir", "--output", "--error", "--input", "--gres", "--gpus", "--gpus-per-node",
    "--gpus-per-task", "--gpus-per-socket", "--gpu-bind", "--gpu-freq", "--cpus-per-gpu", "--mem-per-gpu",
    "--dependency", "--array", "--nodelist", "--reservation", "--exclude", "--container", "--bb",
    "--mcs-label", "--network", "--extra", "--qos", "--partition", "--cluster-constraint", "--signal",
    "--export", "--profile", "--acctg-freq", "--switches", "--core-spec", "--distribution", "--hint",
    "--deadline", "--begin", "--time", "--time-min", "--nodes", "--nice", "--uid", "--tres-per-task",
)  # fmt: skip
KEYS = (
    "JobName", "Comment", "AdminComment", "SystemComment", "Extra", "WCKey", "Account", "Features", "Prefer",
    "Licenses", "MailUser", "MailType", "WorkDir", "StdOut", "StdErr", "StdIn", "Gres", "TresPerNode",
    "TresPerJob", "TresPerTask", "TresPerSocket", "CpusPerTres", "MemPerTres", "TresBind", "TresFreq",
    "Dependency", "ReqNodeList", "ExcNodeList", "ReservationName", "Container", "BurstBuffer", "MCSLabel",
    "Network", "Clusters", "ClusterFeatures", "QOS", "Partition", "BatchFeatures", "ArrayTaskThrottle",
    "Deadline", "EndTime", "TimeLimit", "TimeMin", "NumNodes", "NumTasks", "NumCPUs", "Nice", "Priority",
    "SiteFactor", "Switches", "CoreSpec", "UserId", "JobId", "ArrayTaskId", "Requeue",
)  # fmt: skip
STATES = ("waits", "runs")


def texts(victim: int) -> tuple[str, ...]:
    """One or two texts of each kind; the forged rows are those of a running job that is not there."""
    rows = [text for text in forged_rows(victim, "vision", HONEST) if "RUNNING" in text]
    columns = BETWEEN.join("x" for _ in FIELDS)
    return (
        rows[0], rows[-1], f"{columns}{ROW_END}{'7' * 20}\n{columns}", *list(forged_lines(victim))[:1],
        *list(forged_lines(victim))[-1:], next(forged_comments(victim)), "a\nb\r\nc\rd", "%A %k %j %i %%",
        "\x1b]0;owned\x07\x1b[2J\x1b[31m", "\u202eabc\u200b\u0085\u2028", "\udcff\udcfe\udc80", "x" * 1000,
        "y" * 60_000, "=cmd|' /C calc'!A1", "<script>alert(1)</script>&\"'", f"gpu:1{BETWEEN}", "\t\v\f\b\a",
        "slurm_fair:v1,gate=hold,grace=999999", "9" * 30, "-1", "0", "",
    )  # fmt: skip


def is_taken(slurm: Slurm, *argv: str) -> bool:
    """True where Slurm does what the hostile user says; its answer may be no text at all."""
    return not slurm.do("sh", "-c", 'exec "$@" >/dev/null 2>&1', "sh", *argv, user=HOSTILE).returncode


@pytest.fixture
def adapter(slurm: Slurm) -> Adapter:
    """The adapter with which the daemon sees it."""
    return Adapter(slurm, "begin")


@pytest.fixture
def victims(slurm: Slurm, adapter: Adapter) -> Seen:
    """One waits behind a gate, one runs on two nodes unevenly, an array waits."""
    adapter.submit(user=HONEST)
    slurm.sbatch_running("-N2", "--gpus=3", user=HONEST)
    adapter.submit("--array=0-3%2", user=HONEST)
    return of_user(adapter.observe(), HONEST)


def assert_untouched(adapter: Adapter, mine: Seen, by: str) -> None:
    """The other user's jobs, and who is named as odd, after an attack."""
    seen = adapter.observe()
    assert of_user(seen, HONEST) == mine, by
    assert {alone.user for alone in seen.left_alone} <= {HOSTILE}, by
    assert seen.total_gpus == 32, by
    records = sorted({int(name.partition("_")[0]) for name in mine})
    told = ask_text(adapter.commands, records, "ku")
    assert not isinstance(told, str), by
    assert {user for _, user in told.values()} == {HONEST}, by


def test_no_option_of_a_submission_touches_the_jobs_of_another(
    slurm: Slurm, adapter: Adapter, victims: Seen
) -> None:
    victim = int(next(iter(victims)).partition("_")[0])
    taken = 0
    for number, option in enumerate(OPTIONS):
        for text in texts(victim)[number % 4 :: 4]:
            plain = () if option in ("--gpus", "--gres", "--gpus-per-node") else ("--gpus=1",)
            late = () if option == "--begin" else ("--begin=now+900",)
            argv = ("sbatch", "-A", "speech", "-o", "/dev/null", *plain, *late, f"{option}={text}")
            taken += is_taken(slurm, *argv, "--wrap", "sleep 300")
        assert_untouched(adapter, victims, option)
        slurm.do("scancel", "-u", HOSTILE)
    assert taken > len(OPTIONS) // 2, "of an attack that Slurm refuses nothing is to be seen"


@pytest.mark.parametrize("state", STATES)
def test_no_change_of_a_job_touches_the_jobs_of_another(
    slurm: Slurm, adapter: Adapter, victims: Seen, state: str
) -> None:
    victim = next(iter(victims)).partition("_")[0]
    taken, late = 0, ("--begin=now+900",) if state == "waits" else ()
    for number, key in enumerate(KEYS):
        own = attack(slurm, "--gpus=1", *late)
        if state == "runs":
            slurm.wait_state(own, "RUNNING")
        for text in texts(int(victim))[number % 4 :: 4]:
            taken += is_taken(slurm, "scontrol", "update", f"jobid={own}", f"{key}={text}")
        is_taken(slurm, "scontrol", "update", f"jobid={victim}", f"{key}=x")
        assert_untouched(adapter, victims, key)
        slurm.do("scancel", own)
    assert taken > len(KEYS) // 4
