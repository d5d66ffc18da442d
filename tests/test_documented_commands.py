"""Every command that the pages show exists, takes the options it is shown with, and is told of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click
import pytest

from mast_tui.cli.command_line import COMMANDS
from mast_tui.cli.dispatch import app_command, load_command

ROOT: Final = Path(__file__).resolve().parent.parent
PAGES: Final = (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md")))

BLOCK: Final = re.compile(r"^ *```.*?\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
INLINE: Final = re.compile(r"`([^`\n]+)`")
CALL: Final = re.compile(r"(?<![\w./-])(?:\.venv/bin/)?mast-tui +(?P<words>[^\s|;&>#][^|;&>#\n]*)")
OPTION: Final = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")


def calls(page: Path) -> Iterator[str]:
    """The words behind each ``mast-tui`` in a page's code."""
    text = page.read_text("utf-8")
    for block in BLOCK.findall(text):
        joined = re.sub(r" *\\\n *", " ", block)
        for call in re.finditer(rf"^(?:\$ )?{CALL.pattern}", joined, re.MULTILINE):
            yield call["words"]
    for code in INLINE.findall(BLOCK.sub("", text)):
        if (shown := CALL.match(code)) is not None:
            yield shown["words"]


def called(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that the words name, and the words behind its name."""
    if words[0] not in COMMANDS:
        return app_command, words
    command, rest = load_command(words[0]), words[1:]
    while isinstance(command, click.Group) and rest and rest[0] in command.commands:
        command, rest = command.commands[rest[0]], rest[1:]
    return command, rest


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_shown_command_takes_its_options(page: Path) -> None:
    unknown = []
    for line in calls(page):
        command, rest = called(line.replace("[", " ").replace("]", " ").split())
        taken = {"--help", *(name for one in command.params for name in one.opts)}
        taken |= {name for one in command.params for name in one.secondary_opts}
        given = [name for word in rest if word.startswith("-") for name in OPTION.findall(word)]
        unknown += [f"mast-tui {line}: {name}" for name in given if name not in taken]
    assert unknown == []


def test_the_pages_show_commands() -> None:
    shown = {line.split()[0] for page in PAGES for line in calls(page)}
    assert shown.issuperset(COMMANDS)


def test_the_readme_has_every_command_in_its_table() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    table = re.findall(r"^\| `mast-tui (\w+)", readme, re.MULTILINE)
    assert sorted(table) == sorted(COMMANDS)
