"""Print the man page, from the commands themselves and docs/commands.md.

    .venv/bin/python scripts/man_page.py > mast-tui.1

It has the text of each command's --help, and the shared options and the exit codes of
docs/commands.md. The site of the documentation has it as mast-tui.1.
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
"""Options that docs/commands.md explains; a command lists only their names."""

_MARKUP: Final = re.compile(r"\[([^\]]+)\]\([^)]+\)|`([^`]+)`|\*\*([^*]+)\*\*")


def escaped(text: str) -> str:
    """Return a text that troff prints unchanged."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.MULTILINE)


def plain(markdown: str) -> str:
    """Return a piece of Markdown without its markup."""
    text = _MARKUP.sub(lambda match: match[1] or match[2] or match[3], markdown)
    return text.replace("`", "").replace("\\|", "|")


def table(heading: str) -> Iterator[tuple[str, str]]:
    """Return the rows of the table under a heading of docs/commands.md."""
    text = (DOCS / "commands.md").read_text("utf-8")
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| (.+?) \|$", section, re.MULTILINE)
    return ((plain(term), plain(description)) for term, description in rows[1:])


def _tagged(term: str, description: str) -> Iterator[str]:
    """Yield the lines of a term and its indented description."""
    yield ".TP"
    yield f"\\fB{escaped(term)}\\fR"
    yield escaped(" ".join(description.split()))


def _command_lines(name: str, command: click.Command) -> Iterator[str]:
    """Yield the usage, help and options of a command, then those of its subcommands."""
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
            yield from _tagged(*record)
    shared = [
        option.opts[0]
        for option in command.params
        if isinstance(option, click.Option) and option.name in SHARED
    ]
    if shared:
        yield ".PP"
        yield escaped(f"Also {', '.join(shared)}: see OPTIONS.")
    if isinstance(command, click.Group):
        for subname, subcommand in command.commands.items():
            yield from _command_lines(f"{name} {subname}", subcommand)


def man_page() -> str:
    """Return the page in the language of troff."""
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
    for term, description in table("What they share"):
        lines += _tagged(term, description)
    lines.append(".SH COMMANDS")
    for name in COMMANDS:
        lines += _command_lines(name, load_command(name))
    lines.append(".SH EXIT STATUS")
    for term, description in table("Exit codes"):
        lines += _tagged(term, description)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(man_page(), end="")
