"""The argument for files and folders of traces."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from mast_tui.cli.shared.common import Decorated
from mast_tui.traces.io.named_paths import paths_of
from mast_tui.traces.io.remote import trace_path


def file_argument(_context: click.Context, parameter: click.Parameter, value: str) -> Path:
    """The path of one file that must be there, from what was typed: for ``callback=``."""
    path = trace_path(value)
    if path.is_dir():
        raise click.BadParameter(f"File '{value}' is a directory.", param=parameter)
    if not path.exists():
        raise click.BadParameter(f"File '{value}' does not exist.", param=parameter)
    return path


def paths_argument(
    *, required: bool = False, exist: bool = False
) -> Callable[[Decorated], Decorated]:
    """Add the argument ``paths``.

    Args:
        required: Whether there must be one.
        exist: Whether each must be there; else the command tells of it.
    """

    def expand(
        _context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
    ) -> tuple[Path, ...]:
        paths = tuple(path for value in values for path in paths_of(value))
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
