"""Telling the words of a command line apart, before anything that takes time is imported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

COMMANDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "inspect": "mast_tui.cli.inspect:inspect_command",
        "convert": "mast_tui.cli.convert:convert_command",
        "judge": "mast_tui.cli.judge:judge_command",
        "import": "mast_tui.cli.import_labels:import_command",
        "status": "mast_tui.cli.status:status_command",
        "study": "mast_tui.cli.study:study_command",
        "agree": "mast_tui.cli.agree:agree_command",
        "report": "mast_tui.cli.report:report_command",
        "export": "mast_tui.cli.export:export_command",
        "workspace": "mast_tui.cli.workspace:workspace_command",
        "config": "mast_tui.cli.config:config_command",
    }
)
"""Every command, in the order of the help page, and where it is defined."""

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


class AppWords(NamedTuple):
    """The command line of the app, where it holds nothing but common options and paths."""

    paths: tuple[str, ...]
    values: Mapping[str, str]
    flags: frozenset[str]


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


def app_words(args: Sequence[str]) -> AppWords | None:
    """The app's command line, or None where it holds anything that needs a closer look.

    This is the quick way to the first frame; whatever is unusual (help, an unknown option, a
    missing value, options given twice) is left to the full parser, which also words the errors.
    """
    paths: list[str] = []
    values: dict[str, str] = {}
    flags: set[str] = set()
    words = iter(args)
    for word in words:
        if not word.startswith("-"):
            paths.append(word)
            continue
        name, has_value, value = word.partition("=")
        if word in _FLAGS:
            flags.add(word)
        elif name in _WITH_VALUE and name not in values:
            given = value if has_value else next(words, "")
            if not given or given.startswith("-"):
                return None
            values[name] = given
        else:
            return None
    if flags == set(_FLAGS):
        return None
    return AppWords(tuple(paths), values, frozenset(flags))
