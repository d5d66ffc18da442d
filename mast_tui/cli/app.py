"""The app's own command line and its help page."""

from __future__ import annotations

from dataclasses import dataclass

import click

from mast_tui import __version__
from mast_tui.cli.command_line import COMMANDS, CommonOptions
from mast_tui.cli.shared import options
from mast_tui.cli.start import start


class _AppCommand(click.Command):
    """The default command, whose help page lists the others."""

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_usage(ctx.command_path, "[OPTIONS] [PATH …]")
        formatter.write_usage(ctx.command_path, "COMMAND [OPTIONS] …", prefix="       ")

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, command.help) for name, command in COMMANDS.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
        formatter.write_paragraph()
        formatter.write_text("A path that is named like a command is given as ./judge.")


@dataclass(frozen=True, slots=True, kw_only=True)
class AppRequest:
    """The options of ``mast-tui`` without a command."""

    paths: tuple[str, ...] = options.argument(nargs=-1, metavar="[PATH …]")
    common: CommonOptions = options.common()


@click.command(cls=_AppCommand)
@options.takes(AppRequest)
@click.version_option(__version__, prog_name="mast-tui")
def app_command(request: AppRequest) -> int:
    """Label agent traces with a failure taxonomy.

    Opens a file in the annotate screen, a folder or several files in the library, and the sample
    traces where no PATH is given.
    """
    return start(request.paths, request.common)
