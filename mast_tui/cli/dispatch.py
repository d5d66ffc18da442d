"""The dispatch of commands, the report of their errors, and shell completion."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import dataclass
from importlib import import_module
from io import StringIO
from typing import Final

import click
from click.shell_completion import CompletionItem, shell_complete

from mast_tui import __version__
from mast_tui.cli.command_line import COMMANDS, CommandLine, CommonOptions
from mast_tui.cli.shared import options
from mast_tui.cli.start import WRONG_USAGE, complain, error_text, start
from mast_tui.errors import MastError
from mast_tui.safe_text import display_lines
from mast_tui.traces.io.url_secrets import ADDRESSES


class _AppCommand(click.Command):
    """The app as the default command, with a help page that lists all commands."""

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_usage(ctx.command_path, "[OPTIONS] [PATH …]")
        formatter.write_usage(ctx.command_path, "COMMAND [OPTIONS] …", prefix="       ")

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, command.help) for name, command in COMMANDS.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
        formatter.write_paragraph()
        formatter.write_text("Write a path that is named like a command as ./judge.")


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

    Opens a file in the annotate screen, a folder or several files in the library, or without PATH
    the sample traces.

    Example: mast-tui runs/ --annotator alice
    """
    return start(request.paths, request.common)


DONE: Final = 0
INTERRUPTED: Final = 128 + signal.SIGINT
OUTPUT_CLOSED: Final = 128 + signal.SIGPIPE


def load_command(name: str) -> click.Command:
    """Import the module of a command, and return its function ``NAME_command``."""
    module = import_module(f"mast_tui.{COMMANDS[name].module}")
    command: click.Command = getattr(module, f"{name}_command")
    return command


def run(command_line: CommandLine) -> int:
    """Run a command and return the exit code.

    Errors are printed on stderr. If the reader of stdout has closed it, as a pager does, nothing is
    printed, and the exit code is that of SIGPIPE.
    """
    stdout = sys.stdout
    try:
        exit_code = _run_and_report(command_line)
        stdout.flush()
    except (BrokenPipeError, SystemExit) as error:
        # In place of a ``BrokenPipeError``, Click replaces stdout and exits.
        if isinstance(error, SystemExit) and sys.stdout is stdout:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), stdout.fileno())
        return OUTPUT_CLOSED
    return exit_code


def _run_and_report(command_line: CommandLine) -> int:
    """Run a command, and report its error; return the exit code."""
    typed_name = command_line.command
    name = "mast-tui" if typed_name is None else f"mast-tui {typed_name}"
    args = [*command_line.options, *command_line.arguments]
    try:
        command = app_command if typed_name is None else load_command(typed_name)
        result = command.main(args, prog_name=name, standalone_mode=False)
    except click.UsageError as error:
        usage = StringIO()
        error.show(usage)
        text = ADDRESSES.without_secrets(usage.getvalue())
        click.echo("\n".join(display_lines(text)), err=True)
        return WRONG_USAGE
    except click.ClickException as error:
        return complain(name, error.format_message())
    except (click.Abort, KeyboardInterrupt):
        return complain(name, "interrupted; saved work remains", INTERRUPTED)
    except BrokenPipeError:
        raise
    except MastError as error:
        return complain(name, str(error), error.exit_code)
    except OSError as error:
        return complain(name, error_text(error))
    return result if isinstance(result, int) else DONE


class _WholeCommandLine(click.Group):
    """The command line as a group that imports only the typed command."""

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
    """Answer a shell's request for completion, and return the exit code.

    Args:
        instruction: Click's name of the request: a shell's name with ``_source`` for the script
            that installs completion, or ``_complete`` for the next words.
    """
    app_options = [param for param in app_command.params if isinstance(param, click.Option)]
    line = _WholeCommandLine("mast-tui", params=app_options)
    return shell_complete(line, {}, "mast-tui", "_MAST_TUI_COMPLETE", instruction)
