"""Everything that people can choose is told where they look for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass

import click
import pytest

from slurm_fair.cli.main import cli
from slurm_fair.policy import load, names
from tests.support.trees import ROOT

DOCS = ROOT / "docs"
# The pages of each command that takes many options: what two commands take alike is told once.
PAGES = {
    "simulate": ("simulate.md",),
    "replay": ("tune.md", "simulate.md"),
    "tune-lease": ("tune.md", "simulate.md"),
    "sweep": ("sweep.md", "simulate.md"),
    "trace": ("traces.md",),
    "policies": ("policies.md", "policy-guide.md"),
}


def options(command: click.Command) -> Iterator[list[str]]:
    """The options of a command and of those below it, each by all its names."""
    yield from (param.opts for param in command.params if isinstance(param, click.Option))
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from options(below)


@pytest.mark.parametrize("name", PAGES)
def test_every_option_is_told_on_the_page_of_its_command(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    pages = "".join((DOCS / page).read_text() for page in PAGES[name])
    told = set(re.findall(r"(?<![\w-])--?[a-z][a-z0-9-]*", pages))
    assert [names for names in options(command) if not told & set(names)] == []


@pytest.mark.parametrize("policy", names())
def test_every_policy_has_its_chapter_and_its_settings_are_told_there(policy: str) -> None:
    chapters = re.split(r"(?m)^## ", (DOCS / "policies.md").read_text())
    mine = [text for text in chapters[1:] if policy in re.split(r", ", text.partition("\n")[0])]
    if policy == "astraea":  # what sites run; its settings stand in the admin's own pages
        mine = [page.read_text() for page in DOCS.rglob("*.md")]
    assert mine, f"docs/policies.md has no chapter on {policy}"
    made = load(policy, {})
    settings: list[str] = [field.name for field in fields(made)] if is_dataclass(made) else []
    assert [key for key in settings if not any(f"`{key}`" in text for text in mine)] == []
