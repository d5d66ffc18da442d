"""The site's page with the options of every command, made from the commands.

`scripts/site_pages.py` adds it when the site is built. A row has the help text of the option
and the options that it needs or excludes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, zip_longest
from typing import Final

import click

from mast_tui.cli.command_line import COMMANDS
from mast_tui.cli.dispatch import load_command
from mast_tui.cli.shared.options import rules_of

HEAD: Final = """\
# Options of the commands

After this page you know what each option does, as `mast-tui COMMAND --help` says it. The options \
that most commands have (`--workspace`, `--annotator`, `--taxonomy`, `--blind`, `--assisted`) are \
on [the page of the commands](commands.md#what-they-share).
"""
SHARED: Final = ("--workspace", "--annotator", "--taxonomy", "--blind", "--assisted", "--help")


def cell(text: str) -> str:
    """Return a text as a cell of a Markdown table, with options as code."""
    pieces = re.split(r"(?<![\w-])(--[a-z][a-z-]*)", " ".join(text.split()))
    plain = [re.sub(r"([|<>*_])", r"\\\1", piece) for piece in pieces[::2]]
    code = [f"`{piece}`" for piece in pieces[1::2]]
    return "".join(chain(*zip_longest(plain, code, fillvalue="")))


def conditions(command: click.Command, option: click.Option) -> Iterator[str]:
    """Yield the needs and exclusions of an option, by the rules that depend on no value.

    Args:
        command: The command with the rules.
        option: One of its options.
    """
    rules = [
        rule
        for rule in rules_of(command)
        if rule.when is None and not {*rule.options}.isdisjoint(option.opts)
    ]
    for rule in rules:
        if rule.needs:
            yield f"Needs {listed(rule.needs)}."
    excluded = tuple(dict.fromkeys(flag for rule in rules for flag in rule.excludes))
    if excluded:
        yield f"Not with {listed(excluded)}."


def listed(flags: tuple[str, ...]) -> str:
    """Return options and the names of arguments as a list in words."""
    names = [f"`{flag if flag.startswith('-') else flag.upper()}`" for flag in flags]
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def rows(command: click.Command) -> Iterator[str]:
    """Yield a row of the table for each option that other commands do not share."""
    context = click.Context(command)
    for option in command.params:
        record = option.get_help_record(context) if isinstance(option, click.Option) else None
        if record is None or not isinstance(option, click.Option) or option.opts[0] in SHARED:
            continue
        flags = record[0].replace("|", "\\|")
        about = " ".join((cell(record[1]), *conditions(command, option)))
        yield f"| `{flags}` | {about} |"


def sections(name: str, command: click.Command) -> Iterator[str]:
    """Yield the sections of a command and of those under it.

    Args:
        name: The name as it is typed.
        command: The command.
    """
    if isinstance(command, click.Group):
        for below, subcommand in command.commands.items():
            yield from sections(f"{name} {below}", subcommand)
        return
    usage = " ".join(command.collect_usage_pieces(click.Context(command)))
    option_rows = [*rows(command)]
    table = ["", "| option | |", "|---|---|", *option_rows] if option_rows else []
    yield "\n".join(["", f"## {name}", "", f"`mast-tui {name} {usage}`", *table, ""])


def options_page() -> str:
    """Return the page in Markdown."""
    return HEAD + "".join(
        section for name in COMMANDS for section in sections(name, load_command(name))
    )
