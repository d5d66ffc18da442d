"""``mast-tui doctor``: check this machine, and suggest repairs."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import sys
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

import click
from platformdirs import user_cache_path
from rich.console import Console

from mast_tui import __version__
from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.config import settings_in_use
from mast_tui.cli.shared import options
from mast_tui.cli.shared.common import print_json
from mast_tui.cli.start import is_utf8
from mast_tui.configuration import (
    JudgeConfiguration,
    read_judge_configuration,
)
from mast_tui.counts import counted
from mast_tui.errors import MastError
from mast_tui.judges.llm.client.client import Client
from mast_tui.judges.llm.client.endpoint import Endpoint, find_key
from mast_tui.judges.llm.request import Parameters
from mast_tui.safe_text import one_line
from mast_tui.ui.services.external_programs import NoEditor, editor_command, tools
from mast_tui.workspace import Workspace, find_workspace, is_url, why_not_trusted
from mast_tui.workspace.mounts import is_on_network

MIN_SIZE: Final = (60, 15)
"""The smallest columns and rows for the main content of every screen."""

COMFORTABLE_SIZE: Final = (80, 24)

_COLOURS: Final = {"standard": "16 colours", "256": "256 colours", "truecolor": "true colour"}
_NO_LABELS_REFUSAL: Final = "it checks the machine, not labels"


class CheckState(StrEnum):
    """The result of a check."""

    WORKS = "works"
    NOTE = "note"
    """The thing works, with a limitation."""
    WRONG = "wrong"


_SIGNS: Final = {CheckState.WORKS: "✓", CheckState.NOTE: "·", CheckState.WRONG: "✗"}


class Check(NamedTuple):
    """The result of one check.

    ``hint`` is a suggested repair, empty if there is none.
    """

    name: str
    state: CheckState
    found: str
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorRequest:
    """The options of ``mast-tui doctor``."""

    offline: bool = options.option(
        "--offline",
        is_flag=True,
        help="Do not contact the model server; nothing leaves the machine.",
    )
    common: CommonOptions = options.common(
        annotator=_NO_LABELS_REFUSAL,
        taxonomy=_NO_LABELS_REFUSAL,
        blind=_NO_LABELS_REFUSAL,
        assisted=_NO_LABELS_REFUSAL,
    )
    as_json: bool = options.as_json()


@click.command()
@options.takes(DoctorRequest)
def doctor_command(request: DoctorRequest) -> int:
    """Show what works on this machine, what does not, and how to fix it.

    Checks the terminal, its encoding, copying, the editor for notes, pictures, settings, the cache,
    the workspace, and the model server if one is set (only its list of models is requested).
    Changes nothing. The exit code is 1 if something is wrong.

    Example: mast-tui doctor --offline
    """
    results = [
        _check_terminal(),
        _check_encoding(),
        _check_colours(),
        _check_copying(),
        _check_editor(),
        _check_pictures(),
        _check_settings(),
        _check_cache(),
        _check_workspace(request.common.workspace),
        _check_model(request.offline),
    ]
    if request.as_json:
        print_json(
            {
                "version": __version__,
                "python": platform.python_version(),
                "textual": version("textual"),
                "platform": platform.platform(),
                "checks": [check._asdict() for check in results],
            }
        )
    else:
        click.echo(
            f"mast-tui {__version__}, Textual {version('textual')}, "
            f"Python {platform.python_version()}, {platform.system()}"
        )
        for check in results:
            click.echo(f"{_SIGNS[check.state]} {check.name:<10} {one_line(check.found)}")
            if check.hint:
                click.echo(f"{'':13}{one_line(check.hint)}")
    return int(any(check.state is CheckState.WRONG for check in results))


def _check_terminal() -> Check:
    """Check that the terminal is known and large enough."""
    name = os.environ.get("TERM", "")
    size = shutil.get_terminal_size()
    description = f"{name or 'no TERM'}, {size.columns} × {size.lines}"
    if not sys.stdout.isatty():
        return Check("terminal", CheckState.NOTE, f"{description}; the output is not a terminal")
    if name in ("", "dumb"):
        return Check(
            "terminal",
            CheckState.WRONG,
            description,
            "set TERM to the type of your terminal, such as xterm-256color",
        )
    if size.columns < MIN_SIZE[0] or size.lines < MIN_SIZE[1]:
        return Check(
            "terminal", CheckState.WRONG, description, "make it at least 60 × 15, better 120 × 40"
        )
    if size.columns < COMFORTABLE_SIZE[0] or size.lines < COMFORTABLE_SIZE[1]:
        return Check(
            "terminal", CheckState.NOTE, description, "120 × 40 shows the taxonomy beside the trace"
        )
    return Check("terminal", CheckState.WORKS, description)


def _check_encoding() -> Check:
    """Check that stdout can show all characters."""
    encoding = sys.stdout.encoding
    if is_utf8(sys.stdout):
        return Check("encoding", CheckState.WORKS, encoding)
    description = f"{encoding}: other characters are shown as + - | * ?"
    if os.environ.get("PYTHONIOENCODING"):
        return Check(
            "encoding", CheckState.WRONG, description, "unset PYTHONIOENCODING, or set it to utf-8"
        )
    return Check(
        "encoding", CheckState.WRONG, description, "set LC_ALL to a UTF-8 locale such as C.UTF-8"
    )


def _check_colours() -> Check:
    """Check the number of colours of the terminal."""
    if os.environ.get("NO_COLOR"):
        return Check("colours", CheckState.NOTE, "off, as NO_COLOR is set; symbols show the same")
    system = Console().color_system
    if system is None:
        return Check("colours", CheckState.NOTE, "none; symbols show the same")
    if system == "standard":
        return Check(
            "colours",
            CheckState.NOTE,
            _COLOURS[system],
            "if your terminal has more, set TERM=xterm-256color or COLORTERM=truecolor",
        )
    return Check("colours", CheckState.WORKS, _COLOURS.get(system, system))


def _check_copying() -> Check:
    """Check for programs that copy text."""
    commands = tools(os.environ)
    if commands:
        programs = [program for program, *_arguments in commands]
        return Check("copying", CheckState.WORKS, f"by {' and '.join(programs)}")
    hint = "if nothing arrives, allow OSC 52 in the terminal"
    if os.environ.get("TMUX"):
        hint += ", and in tmux: set -s set-clipboard on"
    return Check("copying", CheckState.NOTE, "through the terminal (OSC 52)", hint)


def _check_editor() -> Check:
    """Check that the editor for notes is installed."""
    try:
        command = editor_command(os.environ)
    except NoEditor as error:
        return Check("editor", CheckState.NOTE, str(error))
    if shutil.which(command[0]) is None:
        return Check(
            "editor",
            CheckState.WRONG,
            f"{command[0]} is not installed",
            "set VISUAL or EDITOR to one that is installed; notes can be typed without it too",
        )
    return Check("editor", CheckState.WORKS, command[0])


def _check_pictures() -> Check:
    """Check that the package for pictures is installed."""
    if find_spec("textual_image") is None:
        return Check(
            "pictures",
            CheckState.NOTE,
            "only their type and size are shown",
            "pip install 'mast-tui[pictures]' draws them",
        )
    return Check("pictures", CheckState.WORKS, "drawn in the terminal")


def _check_settings() -> Check:
    """Check that the settings can be read."""
    configuration, _keys = settings_in_use()
    if configuration.problem is not None:
        return Check(
            "settings",
            CheckState.WRONG,
            configuration.problem,
            "the app uses defaults for wrong settings; `mast-tui config` lists every setting",
        )
    suffix = "" if configuration.path.exists() else ": no such file, all defaults"
    return Check("settings", CheckState.WORKS, f"{configuration.path}{suffix}")


def _check_cache() -> Check:
    """Check that the cache is writable, and report its size."""
    folder = user_cache_path("mast-tui", appauthor=False)
    nearest = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if not os.access(nearest, os.W_OK | os.X_OK):
        return Check(
            "cache",
            CheckState.WRONG,
            f"{nearest} is not writable",
            "indexes of traces are not stored; allow writing, or set XDG_CACHE_HOME",
        )
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return Check("cache", CheckState.WORKS, f"{folder}, {size / 1e6:,.0f} MB; you can delete it")


def _check_workspace(location: str | None) -> Check:
    """Check that the workspace can be opened, trusted and read."""
    try:
        if location is not None and is_url(location):
            return Check(
                "workspace", CheckState.WORKS, _workspace_summary(Workspace.open(location))
            )
        path = find_workspace(location)
        if not path.exists():
            return _check_new_workspace(path)
        distrust = why_not_trusted(path) if location is None else None
        if distrust is not None:
            return Check(
                "workspace", CheckState.WRONG, f"{path}: {distrust}", "give it with --workspace"
            )
        summary = _workspace_summary(Workspace.open(path, create=False))
    except MastError as error:
        return Check("workspace", CheckState.WRONG, str(error))
    if is_on_network(path):
        return Check(
            "workspace",
            CheckState.NOTE,
            f"{summary}, on a network file system",
            "only one person at a time can use it safely; others need their own workspace, to "
            "merge later",
        )
    return Check("workspace", CheckState.WORKS, summary)


def _workspace_summary(workspace: Workspace) -> str:
    """Check a workspace, close it, and return a summary of its content."""
    with closing(workspace):
        workspace.check()
        events = workspace.event_count()
        traces = len(workspace.traces())
    return f"{workspace.name}: {counted(traces, 'trace')}, {counted(events, 'event')}, intact"


def _check_new_workspace(path: Path) -> Check:
    """Check that a workspace can be created at a path."""
    nearest = next(parent for parent in path.absolute().parents if parent.exists())
    if not os.access(nearest, os.W_OK | os.X_OK):
        return Check(
            "workspace",
            CheckState.WRONG,
            f"{nearest} is not writable",
            "work in your own folder, or give --workspace PATH",
        )
    return Check("workspace", CheckState.WORKS, f"none yet; the first label creates {path}")


def _check_model(offline: bool) -> Check:
    """Check that the model server knows the model, if one is set."""
    try:
        judge = read_judge_configuration()
        if judge.model is None:
            return Check("model", CheckState.WORKS, "not set; the rules need none")
        if offline:
            return Check("model", CheckState.NOTE, f"{judge.model} at {judge.address()}, not asked")
        return asyncio.run(_ask_server(judge, judge.model))
    except MastError as error:
        return Check("model", CheckState.WRONG, str(error))


async def _ask_server(judge: JudgeConfiguration, model: str) -> Check:
    """Ask a server for its models, and check that it has this one."""
    address = judge.address()
    endpoint = Endpoint(
        address,
        find_key(address, judge.key_variable),
        judge.key_variable,
        allow_http=judge.allow_http,
        headers=judge.sent_headers(),
    )
    async with Client(Parameters(model), endpoint) as client:
        names = await client.models()
    if model in names:
        return Check("model", CheckState.WORKS, f"{model} at {address}")
    if not names:
        return Check(
            "model",
            CheckState.NOTE,
            f"{address} answers but lists no models",
            "it may still work; test it with `mast-tui judge … --max-tokens-total`",
        )
    further_text = f" and {len(names) - 5} more" if len(names) > 5 else ""
    description = f"{address} has no {model}; it has {', '.join(names[:5])}{further_text}"
    return Check(
        "model", CheckState.WRONG, description, "set `model` under [judge], or load it there"
    )
