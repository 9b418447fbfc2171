"""The container starts the lab with options that the lab has, and lists no package by itself."""

from __future__ import annotations

import json
import re
from pathlib import Path

from slurm_fair.lab import packages
from slurm_fair.lab.__main__ import _parser, _spec
from slurm_fair.lab.spec import LabSpec

DOCKER = Path(__file__).parents[3] / "docker"


def words(file: str, key: str) -> list[str]:
    """The JSON list behind a key."""
    found = re.search(rf"^\s*{key}[: ]+(\[.*\])$", (DOCKER / file).read_text(), re.MULTILINE)
    assert found is not None
    said = json.loads(found[1])
    assert isinstance(said, list)
    return said


def test_image_and_compose_ask_for_the_same_cluster() -> None:
    entry = words("Dockerfile", "ENTRYPOINT")
    assert entry[:3] == ["python3", "-m", "slurm_fair.lab"]
    assert words("Dockerfile", "CMD") == words("compose.yaml", "command")
    options = _parser().parse_args(entry[3:] + words("Dockerfile", "CMD"))
    assert _spec(options) == LabSpec(users={"alice": ("vision", "nlp"), "bob": ("speech",)})


def test_the_image_installs_through_the_lab() -> None:
    found = re.search(r"-m slurm_fair\.lab (--\S+)", (DOCKER / "Dockerfile").read_text())
    assert found is not None
    assert _parser().parse_args([found[1]]).packages_only


def test_the_packages_are_named_in_one_place() -> None:
    text = (DOCKER / "Dockerfile").read_text()
    assert not [name for name in packages.PACKAGES if re.search(rf"\s{name}\s", text)]


def test_the_page_starts_the_controller_before_it_asks_for_its_status() -> None:
    text = (DOCKER / "README.md").read_text()
    assert 0 < text.index("slurm-fair run\n") < text.index("slurm-fair status\n")
