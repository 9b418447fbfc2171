"""The tests of a module: those of its name, those that use its names, else those of the modules that call it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import tests_of
from tests.support.trees import ROOT

Write = Callable[[dict[str, str]], None]
SUMS, UNIT = "slurm_fair/ledger/charging/sums.py", "tests/unit/ledger"
MODULE = "ZERO = 0\n\n\nclass Sum: ...\n\n\ndef add(): ...\n"


def forget() -> None:
    for each in vars(tests_of).values():
        if hasattr(each, "cache_clear"):
            each.cache_clear()


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """A project in a folder of its own, which holds the files that are written."""

    def files(texts: dict[str, str]) -> None:
        for name, text in texts.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        forget()

    monkeypatch.setattr("tests.support.trees.ROOT", tmp_path)
    monkeypatch.setattr(tests_of, "ROOT", tmp_path)
    monkeypatch.setattr(tests_of, "ours", lambda: tuple(sorted(tmp_path.rglob("*.py"))))
    monkeypatch.setattr(tests_of, "_COMMANDS", {"sum": "slurm_fair.ledger.charging.sums:add"})
    yield files
    forget()


def test_the_tests_of_its_name_come_first_and_then_those_that_use_most_names(write: Write) -> None:
    words = "from slurm_fair.ledger.charging.sums import"
    write(
        {
            SUMS: MODULE,
            f"{UNIT}/test_a.py": f"{words} add",
            f"{UNIT}/test_b.py": f"{words} add as more, ZERO",
            f"{UNIT}/test_sums.py": "",
            f"{UNIT}/test_sums_of_none.py": "",
            f"{UNIT}/charging/test_sums.py": "",
            f"{UNIT}/test_summary.py": "from slurm_fair.ledger.charging.sums_of import add",
        }
    )
    of_its_name = [f"{UNIT}/{name}.py" for name in ("charging/test_sums", "test_sums", "test_sums_of_none")]
    assert tests_of.tests_of(SUMS) == [*of_its_name, f"{UNIT}/test_b.py", f"{UNIT}/test_a.py"]


def test_a_longer_name_of_a_module_has_its_own_tests(write: Write) -> None:
    longer = SUMS.replace("sums", "sums_of")
    write({SUMS: MODULE, longer: MODULE, f"{UNIT}/test_sums_of_none.py": "", f"{UNIT}/test_sums_all.py": ""})
    assert tests_of.tests_of(SUMS) == [f"{UNIT}/test_sums_all.py"]
    assert tests_of.tests_of(longer) == [f"{UNIT}/test_sums_of_none.py"]


def test_a_story_is_no_module(write: Write) -> None:
    write({SUMS: MODULE, "slurm_fair/tick.py": ""})
    assert tests_of.owner("tests/unit/test_tick_asks.py") == "tick"
    assert tests_of.owner(f"{UNIT}/charging/test_sums.py") == "sums"
    assert tests_of.owner("tests/unit/test_ticket.py") is None
    assert tests_of.owner("tests/unit/test_sums.py") is None
    assert tests_of.owner("tests/unit/ledger/test_tick.py") is None
    assert tests_of.owner("tests/unit/elsewhere/test_tick.py") is None


def test_a_package_and_a_plugin_have_their_tests_where_their_names_say(write: Write) -> None:
    package, plugin = "slurm_fair/ledger/charging/__init__.py", "plugins/slurm_fair_plugins/hops/window.py"
    tests = [f"{UNIT}/test_charging.py", "tests/unit/plugins/hops/test_window.py"]
    write({package: "", plugin: ""} | dict.fromkeys(tests, ""))
    assert [tests_of.tests_of(file) for file in (package, plugin)] == [[test] for test in tests]


@pytest.mark.parametrize(
    "text",
    [
        "from slurm_fair.ledger import add",
        "from slurm_fair.ledger.charging import sums\nsums.add()",
        "import slurm_fair.ledger.charging.sums as made\nmade.add.cache_clear()",
        "import slurm_fair.ledger.charging.sums\nslurm_fair.ledger.charging.sums.add()",
        "def test_it(monkeypatch):\n    monkeypatch.setattr('slurm_fair.ledger.charging.sums.add', None)",
        "from tests.support.command_line import call\ncall('--config', 'file', 'sum')",
    ],
)
def test_a_name_is_used_in_many_ways(write: Write, text: str) -> None:
    passed_on = "from slurm_fair.ledger.charging.sums import add"
    write({SUMS: MODULE, "slurm_fair/ledger/__init__.py": passed_on, "tests/unit/test_it.py": text})
    assert tests_of.touching(SUMS) == ["tests/unit/test_it.py"]


@pytest.mark.parametrize(
    "text",
    [
        "from elsewhere import add",
        "from slurm_fair.ledger.charging import sums",
        "from slurm_fair.ledger.charging.sums import other",
        "def add(): ...\nadd()\nthing.add()",
        "words = 'sum'",
    ],
)
def test_a_name_of_something_else_does_not_count(write: Write, text: str) -> None:
    write({SUMS: MODULE, "tests/unit/test_it.py": text})
    assert tests_of.tests_of(SUMS) == []


def test_a_package_may_pass_on_a_name_that_a_module_of_it_has(write: Write) -> None:
    packages = {"slurm_fair/ledger/charging/__init__.py": "from slurm_fair.ledger.charging.sums import sums"}
    packages["slurm_fair/ledger/__init__.py"] = "from slurm_fair.ledger import charging"
    words = "from slurm_fair.ledger import charging\nfrom slurm_fair.ledger.charging import sums"
    uses = {"tests/unit/test_it.py": words}
    write({SUMS: "def sums(): ...", **packages, **uses})
    assert tests_of.touching(SUMS) == ["tests/unit/test_it.py"]


def test_a_module_that_no_test_names_has_the_tests_of_the_modules_that_call_it(write: Write) -> None:
    write(
        {
            SUMS: MODULE,
            "slurm_fair/ledger/charging/half.py": "from slurm_fair.ledger.charging.sums import add\nhalf = 1",
            "slurm_fair/tick.py": "from slurm_fair.ledger.charging import half\nhalf.half\ndef tick(): ...",
            "slurm_fair/board/board.py": "from slurm_fair.tick import tick",
            "tests/unit/test_tick.py": "",
            "tests/unit/board/test_board.py": "",
        }
    )
    assert tests_of.touching(SUMS) == []
    assert tests_of.tests_of(SUMS) == ["tests/unit/test_tick.py"]


def said(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.tests_of", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)


def test_the_program_prints_the_files_and_nothing_else() -> None:
    done = said("slurm_fair/ledger/formulas.py")
    assert (done.returncode, done.stderr) == (0, "")
    first, *others = done.stdout.splitlines()
    assert first == "tests/unit/ledger/test_formulas.py"
    assert all(name.startswith("tests/unit/") for name in others)


@pytest.mark.parametrize("file", ["slurm_fair/no_such.py", "tests/tests_of.py", "README.md", ""])
def test_what_is_no_module_costs_one_line(file: str) -> None:
    done = said(file)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"{file!r} is no module; give one as FILE=slurm_fair/planner/isolated.py\n"
