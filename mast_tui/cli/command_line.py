"""Telling the words of a command line apart, before anything that takes time is imported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple


class Command(NamedTuple):
    """A command: its module in the package ``mast_tui``, and its line on the help page.

    The side products (``agents``, ``exam``, ``scale``, ``team``, ``web``) are imported by these
    names alone.
    """

    module: str
    help: str


COMMANDS: Final[Mapping[str, Command]] = MappingProxyType(
    {
        "inspect": Command("cli.inspect", "Show what was recognised in files and folders."),
        "read": Command(
            "cli.read", "Read and label a trace line by line, for screen readers and braille."
        ),
        "web": Command("web.command", "Show the app in a browser, to yourself or to a team."),
        "mcp": Command("agents.command", "Let an agent read and label traces, as an MCP server."),
        "search": Command("cli.search", "Find text in all traces of files and folders."),
        "compare": Command("cli.compare", "Put two runs side by side, and say where they part."),
        "convert": Command("cli.convert", "Write traces as JSON lines, one trace a line."),
        "judge": Command("cli.judge.command", "Let a judge suggest failure modes in traces."),
        "lint": Command(
            "cli.lint.command",
            "Fail where a judge finds failure modes in traces: for CI and hooks.",
        ),
        "watch": Command(
            "cli.lint.watch",
            "Follow running sessions and say so the moment a rule finds something.",
        ),
        "guard": Command(
            "cli.guard", "Make checks on runs from labels, which agents run before they stop."
        ),
        "exam": Command(
            "exam.command", "Hold judges against a labelled set, each by the set's own scoring."
        ),
        "import": Command(
            "cli.import_labels",
            "Import labels from elsewhere, list what was imported, or take it back.",
        ),
        "status": Command(
            "cli.status", "Show per annotator what is finished, open and left to adjudicate."
        ),
        "study": Command(
            "cli.study", "Set up a study: who labels which traces, in which order, and how."
        ),
        "taxonomy": Command(
            "cli.taxonomy", "Show a taxonomy, compare versions, and carry labels over to the next."
        ),
        "agree": Command("cli.agree", "Show how far annotators agree, and how good a judge is."),
        "report": Command(
            "cli.report", "Show how and why runs fail: which modes, how sure, and where."
        ),
        "experiment": Command(
            "cli.experiment", "Say whether a change helped: arms over the same tasks."
        ),
        "export": Command(
            "cli.export", "Export labels: the gold with its sources and figures, or anybody's."
        ),
        "page": Command(
            "cli.page",
            "Write runs as pages to hand over, with their labels, offline and printable.",
        ),
        "workspace": Command(
            "cli.workspace", "Copy and check the workspace, or make one on a server."
        ),
        "team": Command("team.command", "Say who works in a workspace on a server, and as what."),
        "config": Command(
            "cli.config", "Print every setting with its value, and where the file lies."
        ),
        "doctor": Command(
            "cli.doctor", "Say what works on this machine, what does not, and what to do."
        ),
    }
)
"""Every command, in the order of the help page, which imports none of them."""

_WITH_VALUE: Final = ("--workspace", "--annotator", "--taxonomy")
_FLAGS: Final = ("--blind", "--assisted")


class Words(NamedTuple):
    """A command line, split.

    ``command`` is None where the app is meant; ``options`` are the common options that stand
    before the first other word, as written, and ``rest`` is what follows.
    """

    command: str | None
    options: tuple[str, ...]
    rest: tuple[str, ...]


class CommonOptions(NamedTuple):
    """What is said with the options that the app and all commands share.

    What a command does not take stands here as where nobody gives it.
    """

    workspace: str | None = None
    annotator: str | None = None
    taxonomy: Path | None = None
    blind: bool = False
    assisted: bool = False


def split_words(args: Sequence[str]) -> Words:
    """Find out which command is meant; common options may stand before it.

    Only the first word that is no option can name a command: a path that is named like one is
    given as ``./judge``.
    """
    options, rest = split_options(args)
    if rest and rest[0] in COMMANDS:
        return Words(rest[0], options, rest[1:])
    return Words(None, options, rest)


def split_options(args: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The common options that stand before the first other word, as written, and what follows."""
    place = 0
    while place < len(args):
        if args[place] in _WITH_VALUE:
            place += 2
        elif args[place] in _FLAGS or args[place].split("=", 1)[0] in _WITH_VALUE:
            place += 1
        else:
            break
    place = min(place, len(args))
    return tuple(args[:place]), tuple(args[place:])


def app_words(args: Sequence[str]) -> tuple[tuple[str, ...], CommonOptions] | None:
    """The app's paths and options, or None where the line holds anything that needs a closer look.

    This is the quick way to the first frame; whatever is unusual (help, an unknown option, a
    missing value, options given twice) is left to the full parser, which also words the errors.
    """
    paths: list[str] = []
    values: dict[str, Any] = {}
    words = iter(args)
    for word in words:
        if not word.startswith("-"):
            paths.append(word)
            continue
        name, has_value, value = word.partition("=")
        field = name.removeprefix("--")
        if word in _FLAGS:
            values[field] = True
        elif name in _WITH_VALUE and field not in values:
            given = value if has_value else next(words, "")
            if not given or given.startswith("-"):
                return None
            values[field] = Path(given) if field == "taxonomy" else given
        else:
            return None
    common = CommonOptions(**values)
    return None if common.blind and common.assisted else (tuple(paths), common)
