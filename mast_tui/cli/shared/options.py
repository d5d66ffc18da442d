"""The options and arguments that several commands have, as decorators: ``@options.seed``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeVar

import click

from mast_tui.cli.command_line import CommonOptions
from mast_tui.traces.io.named_paths import file_or_record, paths_of
from mast_tui.traces.io.remote import is_url, trace_path

Decorated = TypeVar("Decorated", bound=Callable[..., object])


_COMMON: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "--workspace": {
            "metavar": "PATH-or-URL",
            "help": "Where labels are saved: a file, or postgresql://USER@HOST/DATABASE. Default: "
            ".mast-tui/workspace.db in this folder or the nearest parent folder that has one.",
        },
        "--annotator": {"metavar": "NAME", "help": "Your name (or whose work to show)."},
        "--taxonomy": {
            "type": click.Path(path_type=Path),
            "metavar": "FILE",
            "help": "Your own failure taxonomy (TOML). Default: MAST. For status, agree and export "
            "also the name id@version of one in the workspace.",
        },
        "--blind": {
            "is_flag": True,
            "help": "Hide suggestions, outcomes and labels carried in the traces until finished.",
        },
        "--assisted": {"is_flag": True, "help": "Show suggestions (opposite of --blind)."},
    }
)


NO_LABELS: Final = "it looks at traces, not at labels"
"""Why a command takes no ``--taxonomy``."""


def common(**refused: str) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Add ``--workspace``, ``--annotator``, ``--taxonomy``, ``--blind`` and ``--assisted``.

    The command's function is given them as one argument, ``common``, if it takes any.

    Args:
        refused: By the name of an option that means nothing to the command, why it does not take
            it; such an option is refused in these words.
    """
    taken = [name for option in _COMMON if (name := option.removeprefix("--")) not in refused]

    def decorate(command: Callable[..., object]) -> Callable[..., object]:
        @wraps(command)
        def with_common(*args: object, **values: Any) -> object:
            common = CommonOptions(**{name: values.pop(name) for name in taken})
            if common.blind and common.assisted:
                raise click.UsageError(
                    "--blind and --assisted exclude each other; give one of them"
                )
            return command(*args, common=common, **values)

        decorated = with_common if taken else command
        for option, settings in reversed([*_COMMON.items()]):
            why = refused.get(option.removeprefix("--"))
            if why is not None:
                settings = {
                    "is_flag": settings.get("is_flag", False),
                    "hidden": True,
                    "expose_value": False,
                    "callback": _refusal(option, why),
                }
            decorated = click.option(option, **settings)(decorated)
        return decorated

    return decorate


def _refusal(option: str, why: str) -> Callable[[click.Context, click.Parameter, object], None]:
    def refuse(context: click.Context, _parameter: click.Parameter, value: object) -> None:
        if value:
            raise click.UsageError(f"{context.info_name} does not take {option}: {why}")

    return refuse


gold = click.option(
    "--gold",
    type=click.Choice(["all", "settled"]),
    help="How much of the gold counts: all of it (the default), or only what two agreed on or an "
    "adjudicator decided.",
)

pseudonyms = click.option(
    "--pseudonyms",
    is_flag=True,
    help="Letters in place of people's names, the same in every export and report of this "
    "workspace.",
)

force = click.option(
    "--force",
    is_flag=True,
    help="Also replace what looks like a trace, a database or somebody else's file. The workspace "
    "in use and its traces are never replaced.",
)

seed = click.option("--seed", type=click.IntRange(0), default=0, show_default=True)


def rounds(help_text: str) -> Callable[[Decorated], Decorated]:
    """Add ``--rounds``: the resamples behind intervals."""
    return click.option(
        "--rounds", type=click.IntRange(0), default=2000, show_default=True, help=help_text
    )


def report_file(name: str, help_text: str) -> Callable[[Decorated], Decorated]:
    """Add an option for a file with what is reported, such as ``--csv OUT`` for ``csv_file``."""
    return click.option(
        name,
        f"{name.removeprefix('--')}_file",
        type=click.Path(path_type=Path),
        metavar="OUT",
        help=help_text,
    )


def output(help_text: str, *, required: bool = False) -> Callable[[Decorated], Decorated]:
    """Add ``-o OUT``: the file that a command makes."""
    return click.option(
        "-o",
        "--output",
        type=click.Path(path_type=Path),
        required=required,
        metavar="OUT",
        help=help_text,
    )


def which_pass(help_text: str, default: str | None = None) -> Callable[[Decorated], Decorated]:
    """Add ``--pass``; ``which`` is then ``first``, ``last`` or, without a default, None."""
    return click.option(
        "--pass",
        "which",
        type=click.Choice(["1", "last"]),
        default=default,
        show_default=True,
        callback=lambda _context, _parameter, value: "first" if value == "1" else value,
        help=help_text,
    )


as_json = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document on stdout and nothing else."
)


workers = click.option(
    "--workers",
    "wanted_workers",
    metavar="auto|N|tcp://HOST:PORT",
    help="Read traces by so many processes, by one for each core, or by a Dask cluster, which "
    "needs mast-tui[cluster] (docs/scale.md). Default: by this process alone.",
)


def existing_file(_context: click.Context, parameter: click.Parameter, value: str) -> Path:
    """The path of one file that must be there, from what was typed: for ``callback=``."""
    path = trace_path(value) if is_url(value) else file_or_record(value)
    if path.is_dir():
        raise click.BadParameter(f"File '{path}' is a directory.", param=parameter)
    if not path.exists():
        raise click.BadParameter(f"File '{path}' does not exist.", param=parameter)
    return path


def paths(*, required: bool = False, exist: bool = False) -> Callable[[Decorated], Decorated]:
    """Add the argument ``paths``.

    Args:
        required: Whether there must be one.
        exist: Whether each must be there; else the command tells of it.
    """

    def expand(
        _context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
    ) -> tuple[Path, ...]:
        paths = tuple(paths_of(*values))
        for path in paths if exist else ():
            if not path.exists():
                raise click.BadParameter(f"Path '{path}' does not exist.", param=parameter)
        return paths

    return click.argument(
        "paths",
        nargs=-1,
        required=required,
        type=click.Path(),
        callback=expand,
        metavar="PATH …" if required else "[PATH …]",
    )
