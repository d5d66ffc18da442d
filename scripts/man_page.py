"""Prints the man page, from the commands themselves and docs/commands.md.

    .venv/bin/python scripts/man_page.py > mast-tui.1

What each command says under --help stands in it, and from the page on the commands the options
that they share and the exit codes. The site of the documentation has it as mast-tui.1.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from mast_tui import __version__
from mast_tui.cli.command_line import COMMANDS
from mast_tui.cli.dispatch import app_command, load_command

DOCS: Final = Path(__file__).resolve().parent.parent / "docs"

TITLE: Final = "label failures in traces of LLM agents"

SHARED: Final = ("workspace", "annotator", "taxonomy", "blind", "assisted", "json", "help")
"""Options that the page on the commands explains; in a command they take their name alone."""

_MARKUP: Final = re.compile(r"\[([^\]]+)\]\([^)]+\)|`([^`]+)`|\*\*([^*]+)\*\*")


def escaped(text: str) -> str:
    """Text that troff prints as it stands."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.MULTILINE)


def plain(markdown: str) -> str:
    """A piece of Markdown without its marks."""
    words = _MARKUP.sub(lambda found: found[1] or found[2] or found[3], markdown)
    return words.replace("`", "").replace("\\|", "|")


def table(heading: str) -> Iterator[tuple[str, str]]:
    """The rows of the table under a heading of docs/commands.md."""
    text = (DOCS / "commands.md").read_text("utf-8")
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| (.+?) \|$", section, re.MULTILINE)
    return ((plain(term), plain(words)) for term, words in rows[1:])


def tagged(term: str, words: str) -> Iterator[str]:
    """A term and what is said about it, indented."""
    yield ".TP"
    yield f"\\fB{escaped(term)}\\fR"
    yield escaped(" ".join(words.split()))


def command_lines(name: str, command: click.Command) -> Iterator[str]:
    """A command: how it is called, what it does, and its options; then those under it."""
    context = click.Context(command, info_name=name)
    pieces = " ".join(command.collect_usage_pieces(context))
    yield f".SS {escaped(name)}"
    yield f"\\fB{escaped(name)}\\fR {escaped(pieces)}"
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        yield ".PP"
        yield escaped(" ".join(paragraph.split()))
    for option in command.get_params(context):
        record = option.get_help_record(context)
        if record is not None and option.name not in SHARED:
            yield from tagged(*record)
    shared = [
        option.opts[0]
        for option in command.params
        if isinstance(option, click.Option) and option.name in SHARED
    ]
    if shared:
        yield ".PP"
        yield escaped(f"Also {', '.join(shared)}: see OPTIONS.")
    if isinstance(command, click.Group):
        for below, one in command.commands.items():
            yield from command_lines(f"{name} {below}", one)


def man_page() -> str:
    """The page in the language of man."""
    lines = [
        f'.TH MAST\\-TUI 1 "" "mast\\-tui {__version__}" "mast\\-tui"',
        ".SH NAME",
        f"mast\\-tui \\- {TITLE}",
        ".SH SYNOPSIS",
        "\\fBmast\\-tui\\fR [\\fIOPTIONS\\fR] [\\fIPATH\\fR …]",
        ".br",
        "\\fBmast\\-tui\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR] …",
        ".SH DESCRIPTION",
        escaped(" ".join(inspect.cleandoc(app_command.help or "").split())),
        ".SH OPTIONS",
        "All commands share these; one that has no use for an option refuses it.",
    ]
    for term, words in table("What they share"):
        lines += tagged(term, words)
    lines.append(".SH COMMANDS")
    for name in COMMANDS:
        lines += command_lines(name, load_command(name))
    lines.append(".SH EXIT STATUS")
    for term, words in table("Exit codes"):
        lines += tagged(term, words)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(man_page(), end="")
