"""The option --interval: seconds, `auto`, or what a file of settings says."""

from __future__ import annotations

from pathlib import Path

import pytest

from slurm_fair.cli.simulate.look_distances import LookDistances


@pytest.mark.parametrize(
    ("given", "expected"),
    [(30.0, LookDistances(30.0, 0.0)), ("auto", LookDistances(10.0, 1.0)), (None, LookDistances(10.0, 0.0))],
)
def test_the_option_says_how_far_looks_are_apart(
    given: float | str | None, expected: LookDistances, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slurm_fair.cli.simulate.look_distances.find_config", lambda path: None)
    assert LookDistances.given(given) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[lease]\nterm = 300\n", LookDistances(10.0, 0.0)),
        ("[lease]\ninterval = 20\n", LookDistances(20.0, 0.0)),
        ('[lease]\ninterval = "auto"\ninterval_min = 3\n', LookDistances(10.0, 3.0)),
    ],
)
def test_without_the_option_a_file_of_settings_counts_as_far_as_it_says_so(
    text: str, expected: LookDistances, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "slurm-fair.toml"
    path.write_text(text)
    monkeypatch.setattr("slurm_fair.cli.simulate.look_distances.find_config", lambda given: path)
    assert LookDistances.given(None) == expected
