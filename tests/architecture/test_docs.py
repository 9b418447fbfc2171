"""The documents say what the code does: commands, options, keys and links."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from slurm_fair.cli.fair_sbatch import fair_sbatch
from slurm_fair.cli.main import _COMMANDS, cli
from slurm_fair.config.sections import Config
from slurm_fair.config.words import config_page, keys
from tests.support.trees import named, python

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]
_FENCE = re.compile(r"^```[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`\n]+)`")
_COMMAND = re.compile(
    r"(?:^|&& |; )(?:\$ )?(?:sudo (?:-u \S+ )?)?slurm-fair((?: +--config +\S+)*) +([a-z][a-z-]+)([^\n|;&#()]*)"
)
_SBATCH = re.compile(r"(?<![\w/.-])fair-sbatch((?: +[^\n|;&#`]*)?)")
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_KEY = re.compile(r"\[([a-z]+)\] ([a-z_]+)")


def code(text: str) -> Iterator[str]:
    """Lines of code blocks and code spans: what a reader would type."""
    for block in _FENCE.findall(text):
        yield from block.splitlines()
    yield from _SPAN.findall(_FENCE.sub("", text))


def options_of(command: click.Command) -> set[str]:
    """The long options that a command takes."""
    own = {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
    return own | {"--help", "--config"}


def command(name: str) -> click.Command:
    """A command by its name."""
    found = cli.get_command(click.Context(cli), name)
    assert found is not None
    return found


def strange_options(name: str, rest: str) -> list[str]:
    """Options that neither the command nor, in a group, its subcommand takes."""
    where = command(name)
    known = options_of(where)
    if isinstance(where, click.Group):
        inner = [
            where.get_command(click.Context(where), word)
            for word in where.list_commands(click.Context(where))
        ]
        known |= {option for each in inner if each is not None for option in options_of(each)}
    return [option for option in _OPTION.findall(rest) if option not in known]


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_command_that_is_named_exists_and_takes_its_options(page: Path) -> None:
    wrong = []
    for line in code(page.read_text()):
        for _, name, rest in _COMMAND.findall(line.strip()):
            if name not in _COMMANDS:
                wrong.append(f"{line}: no command {name}")
            else:
                wrong += [f"{line}: {name} takes no {option}" for option in strange_options(name, rest)]
    assert wrong == []


# sbatch's own options that the documents use; all others must be ours.
SBATCH = {"--gpus", "--gres", "--time", "--nodes", "--account", "--partition", "--wrap", "--array", "--begin"}


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_option_of_fair_sbatch_that_is_named_exists(page: Path) -> None:
    known = options_of(fair_sbatch) | SBATCH
    lines = [rest for line in code(page.read_text()) for rest in _SBATCH.findall(line)]
    assert [option for rest in lines for option in _OPTION.findall(rest) if option not in known] == []


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_link_leads_somewhere(page: Path) -> None:
    broken = []
    for target in _LINK.findall(_FENCE.sub("", page.read_text())):
        path, _, anchor = target.partition("#")
        if "://" in path or path.startswith("mailto:"):
            continue
        there = (page.parent / path).resolve() if path else page
        if not there.exists() or (anchor and anchor not in anchors(there)):
            broken.append(target)
    assert broken == []


def anchors(page: Path) -> set[str]:
    """The headings of a page as links name them."""
    headings = re.findall(r"(?m)^#+ +(.*)$", _FENCE.sub("", page.read_text()))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_configuration_key_that_is_named_exists(page: Path) -> None:
    known = {(section, key) for section, key, _ in keys()}
    sections = {section for section, _ in known}
    named = [pair for text in code(page.read_text()) for pair in _KEY.findall(text) if pair[0] in sections]
    assert [pair for pair in named if pair not in known] == []


def test_the_page_of_the_configuration_is_made_from_the_code() -> None:
    written = (ROOT / "docs" / "configuration.md").read_text()
    assert written == config_page(), (
        "write it anew: python -m slurm_fair.config.words > docs/configuration.md"
    )
    assert all(f"| `{key}` |" in written for _, key, _ in keys() if key != "settings")
    assert f"`{Config().storage.dir}`" in written.replace('"', "")


@pytest.mark.parametrize("name", ["docs/admin.md", "docs/install.md", "docs/user.md"])
def test_a_page_for_people_is_short(name: str) -> None:
    assert len((ROOT / name).read_text().splitlines()) <= 100


PRODUCT = ("slurm_fair/", "plugins/", "accounting/", "sbatch_templates/")
# Words of prose that follow the name of a section in a message.
_PROSE = {"and", "in", "limits", "of", "says"}


def test_every_configuration_key_that_a_message_of_the_product_names_exists() -> None:
    known = {(section, key) for section, key, _ in keys()}
    sections = {section for section, _ in known}
    wrong = [
        f"{named(path)}:{node.lineno}: [{section}] {key}"
        for path in python()
        if named(path).startswith(PRODUCT)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for section, key in _KEY.findall(node.value)
        if section in sections and (section, key) not in known and key not in _PROSE
    ]
    assert wrong == []
