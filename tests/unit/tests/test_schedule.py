"""The order in which a test run hands out its files."""

from __future__ import annotations

from types import SimpleNamespace

from tests.schedule import (
    SECONDS,
    USUAL_SECONDS,
    LongestFirst,
    longest,
    needs_slurm,
    unit,
)

SLURM = [f"tests/slurm/test_{name}.py" for name in ("lab", "catalogue", "catalogue_daemon", "views")]
PLAIN = [f"tests/unit/test_{name}.py" for name in ("forecast", "output", "suggest")]
PROPERTIES = ["tests/properties/test_rows.py::test_one[a::b]", "tests/properties/test_rows.py::test_one[c]"]


class Process:
    """A process of the run: it does what it is sent, one test after the other."""

    gateway = SimpleNamespace(id="process")

    def __init__(self) -> None:
        self.sent: list[int] = []
        self.shutting_down = False

    def send_runtest_some(self, tests: list[int]) -> None:
        """The call by which xdist hands tests out."""
        self.sent += tests

    def shutdown(self) -> None:
        self.shutting_down = True


class Config:
    """The parts of pytest's configuration that xdist's schedulers ask for."""

    option = SimpleNamespace(loadscopereorder=True)

    def __init__(self, processes: int) -> None:
        self.processes = processes

    def getvalue(self, name: str) -> list[str]:
        return {"tx": ["popen"] * self.processes}[name]


def handed_out(tests: list[str], processes: int) -> list[list[str]]:
    """The units that each process got, in its order."""
    schedule = LongestFirst(Config(processes))  # type: ignore[arg-type]
    them = [Process() for _ in range(processes)]
    for process in them:
        schedule.add_node(process)
        schedule.add_node_collection(process, tests)
    schedule.schedule()
    done = dict.fromkeys(range(processes), 0)
    while any(done[number] < len(process.sent) for number, process in enumerate(them)):
        for number, process in enumerate(them):
            if done[number] < len(process.sent):
                done[number] += 1
                schedule.mark_test_complete(process, process.sent[done[number] - 1])
    assert schedule.tests_finished
    assert all(process.shutting_down for process in them)
    return [[tests[number] for number in process.sent] for process in them]


def test_each_test_is_handed_out_once_and_a_file_on_slurm_to_one_process_alone() -> None:
    tests = [f"{file}::test_{number}" for file in (*SLURM, *PLAIN) for number in range(5)] + PROPERTIES
    computing, waiting = handed_out(tests, 2)
    assert sorted(computing + waiting) == sorted(tests)
    for file in SLURM:
        assert len({number for number, got in enumerate((computing, waiting)) if file in str(got)}) == 1
    assert unit(computing[0]) not in SLURM
    assert unit(waiting[0]) == "tests/slurm/test_catalogue_daemon.py"


def test_one_process_gets_all() -> None:
    tests = [f"{file}::test" for file in (*SLURM, *PLAIN)]
    (got,) = handed_out(tests, 1)
    assert sorted(got) == sorted(tests)


def test_who_has_nothing_left_of_his_kind_takes_the_longest_of_the_other() -> None:
    assert longest(SLURM, computing=True) == "tests/slurm/test_catalogue_daemon.py"
    assert longest(PLAIN, computing=False) in PLAIN
    assert longest([*PLAIN, *SLURM], computing=True) in PLAIN


def test_properties_are_handed_out_one_by_one_and_files_whole() -> None:
    assert [unit(each) for each in PROPERTIES] == PROPERTIES
    assert unit("tests/unit/cli/test_main.py::TestOne::test_two[a::b]") == "tests/unit/cli/test_main.py"


def test_the_files_said_to_be_long_are_there_and_wait_for_slurm() -> None:
    assert all(needs_slurm(file) and seconds > USUAL_SECONDS for file, seconds in SECONDS.items())
