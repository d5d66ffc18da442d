"""Commands in the documentation: each exists, accepts its options, and is documented."""

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
CALL: Final = re.compile(
    r"(?<![\w./-])(?:\.venv/bin/)?mast-tui +(?P<arguments>[^\s|;&>#][^|;&>#\n]*)"
)
OPTION: Final = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")


def calls(page: Path) -> Iterator[str]:
    """Yield the arguments after each ``mast-tui`` in the code of a page."""
    text = page.read_text("utf-8")
    for block in BLOCK.findall(text):
        joined = re.sub(r" *\\\n *", " ", block)
        for call in re.finditer(rf"^(?:\$ )?{CALL.pattern}", joined, re.MULTILINE):
            yield call["arguments"]
    for code in INLINE.findall(BLOCK.sub("", text)):
        if (inline_call := CALL.match(code)) is not None:
            yield inline_call["arguments"]


def called(arguments: list[str]) -> tuple[click.Command, list[str]]:
    """Return the command that the arguments name, and the remaining arguments."""
    if arguments[0] not in COMMANDS:
        return app_command, arguments
    command, remaining = load_command(arguments[0]), arguments[1:]
    while isinstance(command, click.Group) and remaining and remaining[0] in command.commands:
        command, remaining = command.commands[remaining[0]], remaining[1:]
    return command, remaining


def unknown_options(line: str) -> list[str]:
    """Return the options in the arguments of a call that its command does not accept."""
    command, remaining = called(line.replace("[", " ").replace("]", " ").split())
    accepted = {"--help", *(name for parameter in command.params for name in parameter.opts)}
    accepted |= {name for parameter in command.params for name in parameter.secondary_opts}
    options = OPTION.findall(" ".join(word for word in remaining if word.startswith("-")))
    return [f"mast-tui {line}: {name}" for name in options if name not in accepted]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_shown_command_takes_its_options(page: Path) -> None:
    assert [problem for line in calls(page) for problem in unknown_options(line)] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_has_a_whole_sentence_and_an_example_on_one_line(name: str) -> None:
    commands = {name: load_command(name)}
    if isinstance(group := commands[name], click.Group):
        commands |= {f"{name} {below}": command for below, command in group.commands.items()}
    for full_name, command in commands.items():
        _, *lines = command.get_help(click.Context(command, terminal_width=78)).splitlines()
        assert not any(line.endswith("...") for line in lines), full_name
        (example,) = (line for line in lines if line.startswith("  Example: mast-tui "))
        arguments = example.removeprefix("  Example: mast-tui ")
        assert arguments.startswith(full_name)
        assert unknown_options(arguments) == []


def test_the_pages_show_commands() -> None:
    commands = {line.split()[0] for page in PAGES for line in calls(page)}
    assert commands.issuperset(COMMANDS)


def test_the_readme_has_every_command_in_its_table() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    table = re.findall(r"^\| `mast-tui (\w+)", readme, re.MULTILINE)
    assert sorted(table) == sorted(COMMANDS)
