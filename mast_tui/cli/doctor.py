"""``mast-tui doctor``: what works on this machine, what does not, and what to do about it."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import version
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
from mast_tui.cli.shared.terminal import is_utf8
from mast_tui.configuration import (
    JudgeConfiguration,
    read_judge_configuration,
)
from mast_tui.counts import counted
from mast_tui.errors import MastError
from mast_tui.judges.llm.client.client import Client
from mast_tui.judges.llm.client.endpoint import Endpoint
from mast_tui.judges.llm.client.keys import find_key
from mast_tui.judges.llm.request import Parameters
from mast_tui.safe_text import one_line
from mast_tui.ui.dialogs.editor import NoEditor, editor_command
from mast_tui.ui.services.clipboard import tools
from mast_tui.workspace import Workspace, find_workspace, is_url, why_not_trusted
from mast_tui.workspace.file_systems import is_on_network

SMALLEST: Final = (60, 15)
"""Columns and rows on which every screen still shows what it is about."""

COMFORTABLE: Final = (80, 24)

_COLOURS: Final = {"standard": "16 colours", "256": "256 colours", "truecolor": "true colour"}
_NOT_LABELS: Final = "it looks at the machine, not at labels"


class State(StrEnum):
    """How something stands."""

    WORKS = "works"
    NOTE = "note"
    """It works, and there is something to know about it."""
    WRONG = "wrong"


_SIGNS: Final = {State.WORKS: "✓", State.NOTE: "·", State.WRONG: "✗"}


class Check(NamedTuple):
    """What was found of one thing; ``hint`` says what to do, if anything."""

    name: str
    state: State
    found: str
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorRequest:
    """The options of ``mast-tui doctor``."""

    offline: bool = options.option(
        "--offline", is_flag=True, help="Ask no model server; nothing leaves the machine then."
    )
    common: CommonOptions = options.common(
        annotator=_NOT_LABELS, taxonomy=_NOT_LABELS, blind=_NOT_LABELS, assisted=_NOT_LABELS
    )
    as_json: bool = options.as_json()


@click.command()
@options.takes(DoctorRequest)
def doctor_command(request: DoctorRequest) -> int:
    """Say what works on this machine, what does not, and what to do.

    Checks the terminal, its encoding, copying, the editor for notes, settings, the cache, the
    workspace, and the model server if one is set (it is asked for its list of models; nothing is
    sent). Changes nothing. The exit code is 1 if something is wrong.
    """
    found = [check() for check in _checks(request.common.workspace, request.offline)]
    if request.as_json:
        print_json(
            {
                "version": __version__,
                "python": platform.python_version(),
                "textual": version("textual"),
                "platform": platform.platform(),
                "checks": [check._asdict() for check in found],
            }
        )
    else:
        click.echo(
            f"mast-tui {__version__}, Textual {version('textual')}, "
            f"Python {platform.python_version()}, {platform.system()}"
        )
        for check in found:
            click.echo(f"{_SIGNS[check.state]} {check.name:<10} {one_line(check.found)}")
            if check.hint:
                click.echo(f"{'':13}{one_line(check.hint)}")
    return int(any(check.state is State.WRONG for check in found))


def _checks(workspace: str | None, offline: bool) -> Iterator[Callable[[], Check]]:
    yield _terminal
    yield _encoding
    yield _colours
    yield _copying
    yield _editor
    yield _settings
    yield _cache
    yield lambda: _workspace(workspace)
    yield lambda: _model(offline)


def _terminal() -> Check:
    name = os.environ.get("TERM", "")
    size = shutil.get_terminal_size()
    found = f"{name or 'no TERM'}, {size.columns} × {size.lines}"
    if not sys.stdout.isatty():
        return Check("terminal", State.NOTE, f"{found}; the output is no terminal just now")
    if name in ("", "dumb"):
        hint = "set TERM to what your terminal is, such as xterm-256color"
        return Check("terminal", State.WRONG, found, hint)
    if size.columns < SMALLEST[0] or size.lines < SMALLEST[1]:
        return Check("terminal", State.WRONG, found, "make it at least 60 × 15, better 120 × 40")
    if size.columns < COMFORTABLE[0] or size.lines < COMFORTABLE[1]:
        return Check("terminal", State.NOTE, found, "120 × 40 shows the taxonomy beside the trace")
    return Check("terminal", State.WORKS, found)


def _encoding() -> Check:
    encoding = sys.stdout.encoding
    if is_utf8(sys.stdout):
        return Check("encoding", State.WORKS, encoding)
    found = f"{encoding}: other characters are shown as + - | * ?"
    if os.environ.get("PYTHONIOENCODING"):
        return Check("encoding", State.WRONG, found, "unset PYTHONIOENCODING, or set it to utf-8")
    return Check("encoding", State.WRONG, found, "set LC_ALL to a UTF-8 locale such as C.UTF-8")


def _colours() -> Check:
    if os.environ.get("NO_COLOR"):
        return Check("colours", State.NOTE, "NO_COLOR is set: none are used, signs say the same")
    system = Console().color_system
    if system is None:
        return Check("colours", State.NOTE, "none; signs say the same")
    if system == "standard":
        hint = "if your terminal has more, set TERM=xterm-256color or COLORTERM=truecolor"
        return Check("colours", State.NOTE, _COLOURS[system], hint)
    return Check("colours", State.WORKS, _COLOURS.get(system, system))


def _copying() -> Check:
    found = tools(os.environ)
    if found:
        return Check("copying", State.WORKS, f"by {' and '.join(tool[0] for tool in found)}")
    hint = "if nothing arrives, allow OSC 52 in the terminal"
    if os.environ.get("TMUX"):
        hint += ", and in tmux: set -s set-clipboard on"
    return Check("copying", State.NOTE, "through the terminal (OSC 52)", hint)


def _editor() -> Check:
    try:
        words = editor_command(os.environ)
    except NoEditor as error:
        return Check("editor", State.NOTE, str(error))
    if shutil.which(words[0]) is None:
        hint = "set VISUAL or EDITOR to one that is installed; notes can be typed without it too"
        return Check("editor", State.WRONG, f"{words[0]} is not there", hint)
    return Check("editor", State.WORKS, words[0])


def _settings() -> Check:
    found, _keys = settings_in_use()
    if found.problem is not None:
        hint = "the app uses the default of what is wrong; `mast-tui config` lists every setting"
        return Check("settings", State.WRONG, found.problem, hint)
    there = "" if found.path.exists() else ": no such file, all defaults"
    return Check("settings", State.WORKS, f"{found.path}{there}")


def _cache() -> Check:
    folder = user_cache_path("mast-tui", appauthor=False)
    nearest = next(place for place in (folder, *folder.parents) if place.exists())
    if not os.access(nearest, os.W_OK | os.X_OK):
        hint = "what is known of traces is not kept; allow writing, or set XDG_CACHE_HOME"
        return Check("cache", State.WRONG, f"{nearest} may not be written to", hint)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return Check("cache", State.WORKS, f"{folder}, {size / 1e6:,.0f} MB; it may be deleted")


def _workspace(place: str | None) -> Check:
    try:
        if place is not None and is_url(place):
            return Check("workspace", State.WORKS, _looked_into(Workspace.open(place)))
        path = find_workspace(place)
        if not path.exists():
            return _no_workspace(path)
        doubts = why_not_trusted(path) if place is None else None
        if doubts is not None:
            return Check("workspace", State.WRONG, f"{path}: {doubts}", "name it with --workspace")
        found = _looked_into(Workspace.open(path, create=False))
    except MastError as error:
        return Check("workspace", State.WRONG, str(error))
    if is_on_network(path):
        hint = "one person at a time is safe there; several should each have their own and merge"
        return Check("workspace", State.NOTE, f"{found}, on a network file system", hint)
    return Check("workspace", State.WORKS, found)


def _looked_into(workspace: Workspace) -> str:
    with closing(workspace):
        workspace.check()
        events, traces = workspace.event_count(), len(workspace.traces())
    return f"{workspace.name}: {counted(traces, 'trace')}, {counted(events, 'event')}, whole"


def _no_workspace(path: Path) -> Check:
    nearest = next(place for place in path.absolute().parents if place.exists())
    if not os.access(nearest, os.W_OK | os.X_OK):
        hint = "work in a folder of your own, or name one with --workspace PATH"
        return Check("workspace", State.WRONG, f"{nearest} may not be written to", hint)
    return Check("workspace", State.WORKS, f"none yet; the first label makes {path}")


def _model(offline: bool) -> Check:
    try:
        judge = read_judge_configuration()
        if judge.model is None:
            return Check("model", State.WORKS, "none is set; the rules judge without one")
        if offline:
            return Check("model", State.NOTE, f"{judge.model} at {judge.address()}, not asked")
        return asyncio.run(_asked(judge, judge.model))
    except MastError as error:
        return Check("model", State.WRONG, str(error))


async def _asked(judge: JudgeConfiguration, model: str) -> Check:
    """What a server says when it is asked for its models."""
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
        return Check("model", State.WORKS, f"{model} at {address}")
    if not names:
        hint = (
            "it may judge all the same; `mast-tui judge … --max-tokens-total` tries it for little"
        )
        return Check("model", State.NOTE, f"{address} answers but lists no models", hint)
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    found = f"{address} has no {model}; it has {', '.join(names[:5])}{more}"
    return Check("model", State.WRONG, found, "set `model` under [judge], or load it there")
