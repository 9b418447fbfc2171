"""The runner of the tests on other releases: what it makes of pytest's report, and where it writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.versions import HERE, PAGE, SUITES, Row, files, read_report, with_part, with_rows_of

REPORT = """<testsuites><testsuite>
<testcase classname="a" name="one"/>
<testcase classname="b" name="one"/>
<testcase classname="a" name="two"><failure message="x"/></testcase>
<testcase classname="a" name="two"><error message="at its end"/></testcase>
<testcase classname="a" name="three"><error message="x"/></testcase>
<testcase classname="a" name="four"><skipped/></testcase>
</testsuite></testsuites>"""


def test_each_test_counts_once_whatever_its_file_and_however_often_it_failed(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    assert read_report("f.py", report, 1.4) == Row("f.py", 2, ("three", "two"), 1, 1.4)


def test_a_file_without_a_report_did_not_end(tmp_path: Path) -> None:
    row = read_report("f.py", tmp_path / "report.xml", 1800.0)
    assert row.line() == "| f.py | 0 | did not end | 0 | 1800 |"


@pytest.mark.parametrize("suite", SUITES)
def test_the_page_has_a_part_for_each_suite_and_only_that_is_replaced(suite: str) -> None:
    page = PAGE.read_text()
    new = with_part(page, suite, "other\n")
    assert new != page
    assert f"<!-- {suite} -->\nother\n<!-- end of {suite} -->" in new
    assert with_part(new, suite, "") == with_part(page, suite, "")


HEAD = "Slurm 24.11.5, MariaDB 11, Python 3.13, {}.\n\n| tests | passed |\n| --- | --- |\n"
PART = (
    HEAD.format("2026-11-20")
    + "| tests/a.py | 1 |\n| tests/b | 2 |\n\n* failed: `x` of tests/a.py\n* failed: `y` of tests/b\n"
)


@pytest.mark.parametrize(
    ("head", "kept", "failed"),
    [
        (HEAD.format("2026-11-21"), "| tests/a.py | 1 |\n", "* failed: `x` of tests/a.py\n"),
        (HEAD.format("2026-11-21").replace("24.11.5", "24.11.6"), "", ""),
    ],
    ids=["the same releases", "another release"],
)
def test_a_run_of_some_files_renews_their_rows_only(head: str, kept: str, failed: str) -> None:
    """Their failures too; what another release did says nothing of this one."""
    page = f"# Page\n<!-- sid -->\n{PART}<!-- end of sid -->\n"
    text = f"{head}| tests/b | 3 |\n\n* failed: `z` of tests/b\n"
    expected = f"{head}{kept}| tests/b | 3 |\n\n{failed}* failed: `z` of tests/b\n"
    assert with_rows_of(page, "sid", text) == expected


def test_a_page_without_the_part_is_left_alone() -> None:
    with pytest.raises(SystemExit, match="no part between <!-- sid --> and <!-- end of sid -->"):
        with_part("# Versions\n", "sid", "other\n")


def test_every_file_with_tests_of_a_real_slurm_is_run_once() -> None:
    listed = files()
    assert len(listed) == len(set(listed))
    assert {HERE / name for name in listed} >= set((HERE / "tests" / "slurm").glob("test_*.py"))
    assert all((HERE / name).exists() for name in listed)
