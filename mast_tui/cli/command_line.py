"""A fast parser of the command line without slow imports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple


class Command(NamedTuple):
    """A command: its module in the package ``mast_tui``, and its help text."""

    module: str
    help: str


COMMANDS: Final[Mapping[str, Command]] = MappingProxyType(
    {
        "inspect": Command(
            "cli.inspect", "Show the traces that are recognised in files and folders."
        ),
        "read": Command(
            "cli.read", "Read and label a trace line by line, for screen readers and braille."
        ),
        "web": Command("web.command", "Show the app in a browser, to yourself or to a team."),
        "mcp": Command(
            "agents.command", "Serve traces to an agent, which reads and labels them (MCP)."
        ),
        "search": Command("cli.search", "Find text in all traces of files and folders."),
        "compare": Command(
            "cli.compare", "Align two runs side by side, and show where they diverge."
        ),
        "convert": Command("cli.convert", "Write traces as JSON lines, one trace per line."),
        "judge": Command("cli.judge.command", "Let a judge suggest failure modes in traces."),
        "lint": Command(
            "cli.lint.command",
            "Fail if a judge finds failure modes in traces: for CI and hooks.",
        ),
        "watch": Command(
            "cli.lint.watch",
            "Follow running sessions and report each finding of a rule at once.",
        ),
        "guard": Command(
            "cli.guard", "Turn labels into guards: checks that agents run before they stop."
        ),
        "exam": Command(
            "exam.command", "Score judges against a labelled set, by the set's own measures."
        ),
        "import": Command(
            "cli.import_labels",
            "Import labels from files, list the imports, or undo one.",
        ),
        "status": Command(
            "cli.status", "Show per annotator what is finished, begun and left to adjudicate."
        ),
        "study": Command(
            "cli.study", "Set up a study: who labels which traces, in which order, and how."
        ),
        "taxonomy": Command(
            "cli.taxonomy", "Show a taxonomy, compare versions, and move labels to a new version."
        ),
        "agree": Command("cli.agree", "Show how well annotators agree, and how good a judge is."),
        "report": Command(
            "cli.report",
            "Show how runs fail: which failure modes, how certain, and where.",
        ),
        "experiment": Command(
            "cli.experiment", "Test whether a change helped: compare arms on the same tasks."
        ),
        "export": Command(
            "cli.export",
            "Export labels: the gold and its sources, or annotators' own labels.",
        ),
        "page": Command("cli.page", "Write a run with its labels as one self-contained page."),
        "workspace": Command(
            "cli.workspace", "Copy and check the workspace, or make one on a server."
        ),
        "team": Command(
            "team.command", "Manage the members of a workspace on a server, and their roles."
        ),
        "config": Command(
            "cli.config", "Print every setting with its value, and the path of config.toml."
        ),
        "doctor": Command(
            "cli.doctor", "Show what works on this machine, what does not, and how to fix it."
        ),
    }
)
"""All commands by name, in the order of the help page."""

_WITH_VALUE: Final = ("--workspace", "--annotator", "--taxonomy")
_FLAGS: Final = ("--blind", "--assisted")


class CommandLine(NamedTuple):
    """A command line, split into its parts.

    ``command`` is None for the app. ``options`` are the common options before the command or the
    first path. ``arguments`` are all words after it.
    """

    command: str | None
    options: tuple[str, ...]
    arguments: tuple[str, ...]


class CommonOptions(NamedTuple):
    """The values of the options that the app and all commands share."""

    workspace: str | None = None
    annotator: str | None = None
    taxonomy: Path | None = None
    blind: bool = False
    assisted: bool = False


def split_command(args: Sequence[str]) -> CommandLine:
    """Split a command line at its command.

    Only the first word after the common options can be a command. The path ``./judge`` is no
    command.
    """
    options, arguments = split_options(args)
    if arguments and arguments[0] in COMMANDS:
        return CommandLine(arguments[0], options, arguments[1:])
    return CommandLine(None, options, arguments)


def split_options(args: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split arguments into the common options at their start and the rest."""
    position = 0
    while position < len(args):
        if args[position] in _WITH_VALUE:
            position += 2
        elif args[position] in _FLAGS or args[position].split("=", 1)[0] in _WITH_VALUE:
            position += 1
        else:
            break
    position = min(position, len(args))
    return tuple(args[:position]), tuple(args[position:])


def quick_app_arguments(args: Sequence[str]) -> tuple[tuple[str, ...], CommonOptions] | None:
    """Parse the paths and options of the app quickly; None if only the full parser can.

    The full parser handles help and all errors.
    """
    paths: list[str] = []
    values: dict[str, Any] = {}
    remaining = iter(args)
    for argument in remaining:
        if not argument.startswith("-"):
            paths.append(argument)
            continue
        name, has_value, value = argument.partition("=")
        field = name.removeprefix("--")
        if argument in _FLAGS:
            values[field] = True
        elif name in _WITH_VALUE and field not in values:
            text = value if has_value else next(remaining, "")
            if not text or text.startswith("-"):
                return None
            values[field] = Path(text) if field == "taxonomy" else text
        else:
            return None
    common = CommonOptions(**values)
    return None if common.blind and common.assisted else (tuple(paths), common)
