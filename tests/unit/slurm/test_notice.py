"""Two daemons on one cluster meet by a notice in Slurm's own queue; a fake queue stands in for Slurm here."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from slurm_fair.errors import SlurmUnreachable
from slurm_fair.model import LeftAlone
from slurm_fair.slurm.command import CommandResult, Commands
from slurm_fair.slurm.notice import (
    REASON,
    AnotherDaemon,
    Notice,
    OurNotice,
    identity_of,
    read_notices,
    with_notices,
)

LEASE = 60.0


KEPT = """Current Association Manager state

User Records

UserName=root(0) DefAccount=root DefWckey= AdminLevel=Administrator
UserName=daemon(1) DefAccount=ops DefWckey= AdminLevel=Operator
UserName=games(5) DefAccount=all DefWckey= AdminLevel=None
UserName=sync(4) DefAccount=all DefWckey= AdminLevel=Not Set

No associations currently cached in Slurm.
"""  # of `scontrol show assoc_mgr`


class NoticeQueue(Commands):
    """sbatch, scontrol, scancel and squeue for held jobs that carry a comment, as Slurm 22.05 answers."""

    def __init__(self) -> None:
        super().__init__()
        self.jobs: dict[int, tuple[int, str]] = {}
        self.without_dbd = False
        self.next, self.dead, self.refuses, self.said = 1, False, False, list[str]()

    def run(
        self, *argv: str, stdin: str | None = None, timeout_seconds: float | None = None
    ) -> CommandResult:
        self.said.append(" ".join(argv[:2]))
        if self.dead:
            return CommandResult(argv, 1, "", "Unable to contact slurm controller (connect failure)", 1.0)
        if argv[:2] == ("sacctmgr", "-nP") and self.without_dbd:
            return CommandResult(
                argv, 1, "", "sacctmgr: error: Sending PersistInit msg: Connection refused", 1.0
            )
        if argv == ("scontrol", "show", "assoc_mgr", "flags=users"):
            return CommandResult(argv, 0, KEPT, "", 0.0)
        if argv[:2] == ("sacctmgr", "-nP"):
            return CommandResult(argv, 0, "root|Administrator\ndaemon|Operator\ngames|None\n", "", 0.0)
        if argv == ("scontrol", "show", "config"):
            return CommandResult(argv, 0, "SlurmUser               = root(0)\n", "", 0.0)
        if argv[0] == "sbatch":
            if self.refuses:
                return CommandResult(
                    argv, 1, "", "sbatch: error: Invalid account or account/partition combination", 0.0
                )
            assert "-H" in argv
            return self.submit(0, argv[-1].removeprefix("--comment="))
        if argv[:2] == ("scontrol", "update"):
            job = int(argv[2].removeprefix("jobid="))
            self.jobs[job] = (self.jobs[job][0], argv[3].removeprefix("comment="))
            return CommandResult(argv, 0, "", "", 0.0)
        if argv[0] == "scancel":
            self.jobs.pop(int(argv[3]), None)
            return CommandResult(argv, 0, "", "", 0.0)
        if argv[0] == "squeue":
            wanted = set(map(int, argv[argv.index("-u") + 1].split(",")))
            lines = [f"{job}|{text}" for job, (user, text) in self.jobs.items() if user in wanted]
            return CommandResult(argv, 0, "".join(line + "\n" for line in lines), "", 0.0)
        raise NotImplementedError(" ".join(argv))

    def submit(self, user: int, comment: str) -> CommandResult:
        """A job of somebody."""
        self.jobs[self.next] = (user, comment)
        self.next += 1
        return CommandResult(("sbatch",), 0, f"{self.next - 1}\n", "", 0.0)


@pytest.fixture
def queue() -> NoticeQueue:
    return NoticeQueue()


def notice_of(queue: NoticeQueue, tmp_path: Path, name: str) -> OurNotice:
    (tmp_path / name).mkdir(exist_ok=True)
    return OurNotice(queue, tmp_path / name, LEASE)


def test_the_first_daemon_holds_the_cluster_and_the_second_is_told_who(
    queue: NoticeQueue, tmp_path: Path
) -> None:
    first, second = (notice_of(queue, tmp_path, name) for name in ("one", "two"))
    first.hold(1000.0)
    with pytest.raises(AnotherDaemon, match=rf"pid {os.getpid()} on .*/one \(job 1 in the queue") as refused:
        second.hold(1010.0)
    assert "\n" not in str(refused.value)
    assert list(queue.jobs) == [1], "who is refused leaves nothing"


def test_a_mark_is_renewed_three_times_a_lease_and_read_no_more_often(
    queue: NoticeQueue, tmp_path: Path
) -> None:
    mine = notice_of(queue, tmp_path, "one")
    for second in range(1000, 1200, 2):
        mine.hold(float(second))
        (notice,) = read_notices(queue)
        assert notice.until > second + LEASE / 2
    assert queue.said.count("scontrol update") == 9
    assert queue.said.count("sbatch --parsable") == 1


def test_a_daemon_that_died_locks_nobody_out_for_longer_than_a_lease(
    queue: NoticeQueue, tmp_path: Path
) -> None:
    first, second = (notice_of(queue, tmp_path, name) for name in ("one", "two"))
    first.hold(1000.0)
    with pytest.raises(AnotherDaemon):
        second.hold(1000.0 + LEASE - 1)
    second.hold(1000.0 + LEASE + 2)
    with pytest.raises(AnotherDaemon):
        first.hold(1000.0 + LEASE + 3)


def test_a_restart_with_the_same_storage_goes_on_at_once(queue: NoticeQueue, tmp_path: Path) -> None:
    notice_of(queue, tmp_path, "one").hold(1000.0)
    notice_of(queue, tmp_path, "one").hold(1001.0)
    assert list(queue.jobs) == [1]
    notice_of(queue, tmp_path, "one").hold(2000.0)
    assert list(queue.jobs) == [2], "an old notice is not renewed: its number would say that it came first"


def test_given_back_the_next_daemon_need_not_wait(queue: NoticeQueue, tmp_path: Path) -> None:
    first, second = (notice_of(queue, tmp_path, name) for name in ("one", "two"))
    first.hold(1000.0)
    first.give_back()
    second.hold(1001.0)
    first.give_back()
    assert list(queue.jobs) == [2]


def test_of_two_that_begin_at_once_one_stays(queue: NoticeQueue, tmp_path: Path) -> None:
    """Each has looked before the other's notice stands."""
    first, second = (notice_of(queue, tmp_path, name) for name in ("one", "two"))
    submit = queue.submit

    def both(user: int, comment: str) -> CommandResult:
        queue.submit = submit  # type: ignore[method-assign]
        second.hold(1000.0)
        return submit(user, comment)

    queue.submit = both  # type: ignore[method-assign]
    with pytest.raises(AnotherDaemon):
        first.hold(1000.0)
    second._asked = -1e12
    second.hold(1001.0)
    assert list(queue.jobs) == [1]


def test_two_that_act_already_are_told_apart_at_the_next_renewal(queue: NoticeQueue, tmp_path: Path) -> None:
    first, second = (notice_of(queue, tmp_path, name) for name in ("one", "two"))
    first.hold(1000.0)
    kept = queue.jobs.pop(1)
    second.hold(1001.0)
    queue.jobs[1] = kept
    with pytest.raises(AnotherDaemon):
        second.hold(1030.0)
    first.hold(1031.0)


@pytest.mark.parametrize("user", [5, 1000, 65534])
def test_what_a_user_writes_into_such_a_job_is_nothing(queue: NoticeQueue, tmp_path: Path, user: int) -> None:
    text = "slurm_fair:notice,v=1,id=" + "a" * 16 + ",until=9999999999,host=h,pid=1,dir=/x"
    queue.submit(user, text)
    mine = notice_of(queue, tmp_path, "one")
    mine.hold(1000.0)
    assert [notice.job for notice in read_notices(queue)] == [2]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "slurm_fair:notice,v=1,",
        "slurm_fair:notice,v=2,id=" + "a" * 16 + ",until=99999999999,host=h,pid=1,dir=/",
        "slurm_fair:notice,v=1,id=zz,until=1,host=h,pid=1,dir=/x",
        "a|b|c",
    ],
)
def test_a_mark_that_is_none_is_passed_over(queue: NoticeQueue, text: str) -> None:
    queue.submit(0, text)
    assert read_notices(queue) == ()


def test_a_site_that_lets_us_leave_no_mark_is_told_once(
    queue: NoticeQueue, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    queue.refuses = True
    mine = notice_of(queue, tmp_path, "one")
    for second in range(1000, 1200, 10):
        mine.hold(float(second))
    assert caplog.text.count("no notice can be left") == 1


def test_while_slurm_does_not_answer_nothing_is_known(queue: NoticeQueue, tmp_path: Path) -> None:
    mine = notice_of(queue, tmp_path, "one")
    queue.dead = True
    with pytest.raises(SlurmUnreachable, match="whether another daemon acts"):
        mine.hold(1000.0)
    mine.give_back()


def test_who_has_a_mark_is_known_by_host_and_storage(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert identity_of(tmp_path / "a") == identity_of(tmp_path / "a") != identity_of(tmp_path / "b")
    assert Notice(3, "x", 1.0, "h", "7", "/s").in_words() == "pid 7 on h with /s (job 3 in the queue says so)"


def test_a_notice_among_jobs_that_are_left_alone_is_told_as_what_it_is(
    queue: NoticeQueue, tmp_path: Path
) -> None:
    ours = notice_of(queue, tmp_path, "a")
    ours.hold(1000.0)
    (job,) = ours.jobs
    alone = (LeftAlone(str(job), "asks for no GPU", "root"), LeftAlone("99", "asks for no GPU", "root"))
    told = with_notices(alone, ours.jobs)
    assert [each.reason for each in told] == [REASON, "asks for no GPU"]
    assert with_notices(alone[1:], ours.jobs) == alone[1:]


def test_without_slurmdbd_slurmctld_tells_whose_notices_count(queue: NoticeQueue) -> None:
    queue.without_dbd = True
    text = "slurm_fair:notice,v=1,id=0123456789abcdef,until=1900000000,host=h2,pid=9,dir=/var/lib/x"
    for user in (1, 4, 5):
        queue.submit(user, text)
    assert [notice.job for notice in read_notices(queue)] == [1], "of the Operator, and of no other user"
