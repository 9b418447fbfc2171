"""Linear problems given to HiGHS."""

import numpy as np
import pytest

from slurm_fair.solve.linear import Effort, MatrixEntries, Problem, solve

ZERO, ONE = np.zeros(1, dtype=np.int64), np.ones(1)
PROBLEM = Problem(ONE, 3 * ONE, MatrixEntries(ZERO, ZERO, ONE), 0 * ONE, 2 * ONE)


def test_a_solver_writes_nothing_among_what_commands_print(capfd: pytest.CaptureFixture[str]) -> None:
    """Some releases of HiGHS greet whoever makes a solver, which breaks every --json."""
    assert solve(PROBLEM, 5.0).objective == 2.0
    assert capfd.readouterr() == ("", "")


def test_a_direct_effort_goes_without_presolve_and_the_heuristic_for_reduced_costs() -> None:
    assert Effort(nodes=3, direct=True).options() == {
        "mip_max_nodes": 3,
        "mip_heuristic_run_root_reduced_cost": False,
        "presolve": "off",
    }
    assert Effort(nodes=3).options() == {"mip_max_nodes": 3}
    assert solve(PROBLEM, 5.0, Effort(direct=True)).objective == 2.0


def test_without_a_clock_counts_are_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[dict[str, float | int | str]] = []
    options = Effort.options

    def noted(self: Effort) -> dict[str, float | int | str]:
        chosen.append(options(self))
        return options(self)

    monkeypatch.setattr(Effort, "options", noted)
    nothing = MatrixEntries(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0))
    asked = Problem(np.ones(1), np.ones(1), nothing, np.zeros(0), np.zeros(0))
    for limit in (1.0, np.inf):
        assert solve(asked, limit).objective == 1.0
    assert chosen == [{}, {"mip_max_nodes": 500, "simplex_iteration_limit": 200_000}]
