"""What a shell completes: commands, their options, and paths."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem, shell_complete

from mast_tui.cli.app import app_command
from mast_tui.cli.dispatch import load_command
from mast_tui.cli.words import COMMANDS


class _WholeCommandLine(click.Group):
    """The command line as one group, of which only the command that was typed is imported."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return load_command(cmd_name) if cmd_name in COMMANDS else None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        commands = [
            CompletionItem(name, help=command.help)
            for name, command in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return [*commands, CompletionItem(incomplete, type="file")]


def complete(instruction: str) -> int:
    """Answer a shell; the exit code.

    Args:
        instruction: What it asks, as click has it: ``bash_source`` for the script that makes it
            ask, ``bash_complete`` for what may come next; ``zsh`` and ``fish`` likewise.
    """
    options = [one for one in app_command.params if isinstance(one, click.Option)]
    line = _WholeCommandLine("mast-tui", params=options)
    return shell_complete(line, {}, "mast-tui", "_MAST_TUI_COMPLETE", instruction)
