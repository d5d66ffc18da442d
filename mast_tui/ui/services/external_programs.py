"""Programs of the user's machine: clipboard tools and the user's editor."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from mast_tui.counts import counted
from mast_tui.errors import MastError
from mast_tui.safe_text import one_line
from mast_tui.ui.options import in_browser

TERMINAL_CHARS: Final = 100_000
"""The length in code points at which a text for the terminal is cut.

Many terminals accept no more.
"""

_TIMEOUT: Final = 5.0


TMUX: Final = ("tmux", "load-buffer", "-w", "-")
X11_TOOLS: Final = (("xclip", "-selection", "clipboard"), ("xsel", "--clipboard", "--input"))


def tools(
    environment: Mapping[str, str], platform: str = sys.platform
) -> tuple[tuple[str, ...], ...]:
    """Return the installed commands that copy their input to the clipboard of the system or of
    tmux.

    Over SSH, the clipboard of this machine is not the user's, unless the X11 display is forwarded.
    In a browser the page copies, so there are no commands.

    Args:
        environment: The environment variables of the process.
        platform: The platform, as ``sys.platform`` names it.
    """
    if in_browser(environment):
        return ()
    is_remote = "SSH_CONNECTION" in environment or "SSH_TTY" in environment
    candidates: list[tuple[str, ...]] = []
    if platform == "darwin" and not is_remote:
        candidates.append(("pbcopy",))
    if environment.get("WAYLAND_DISPLAY") and not is_remote:
        candidates.append(("wl-copy",))
    if environment.get("DISPLAY"):
        candidates += X11_TOOLS
    commands = [command for command in candidates if shutil.which(command[0])][:1]
    if environment.get("TMUX") and shutil.which("tmux"):
        commands.append(TMUX)
    return tuple(commands)


def copy_by_tools(text: str) -> list[str]:
    """Copy a text with all available tools. This may take some seconds.

    Returns:
        The names of the tools that copied the text; empty if the terminal must copy it.
    """
    return [command[0] for command in tools(os.environ) if _copy_with(command, text)]


def _copy_with(command: tuple[str, ...], text: str) -> bool:
    try:
        # xclip leaves a process running, so its output must not be connected to our terminal.
        result = subprocess.run(
            command,
            input=text.encode("utf-8", "replace"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return result.returncode == 0


def copied_text(name: str, chars: int, tools_used: list[str]) -> str:
    """Return the message after a copy.

    Args:
        name: The name of the text, such as ``the text of #9``.
        chars: The length of the text in code points.
        tools_used: The names of the tools that copied it; empty if the terminal or browser copied
            it.
    """
    size_text = counted(chars, "character")
    if tools_used:
        return f"Copied {one_line(name)}, {size_text}, by {' and '.join(tools_used)}"
    if chars > TERMINAL_CHARS:
        size_text = f"the first {TERMINAL_CHARS:,} of {size_text}"
    if in_browser(os.environ):
        return f"Copied {one_line(name)}, {size_text}, through the browser, if it allows that"
    return f"Copied {one_line(name)}, {size_text}, through the terminal (OSC 52, if it allows that)"


class NoEditor(MastError):
    """An error: there is no editor, or it has failed. The text is unchanged."""


def editor_command(environment: Mapping[str, str]) -> list[str]:
    """Return the words of the command that edits a file.

    Args:
        environment: The environment with ``VISUAL`` and ``EDITOR``.

    Raises:
        NoEditor: Neither variable is set, or a variable is no command.
    """
    for name in ("VISUAL", "EDITOR"):
        try:
            command = shlex.split(environment.get(name, ""))
        except ValueError as error:
            raise NoEditor(f"{name} is not a valid command: {error}") from error
        if command:
            return command
    raise NoEditor("No editor: set EDITOR, for instance EDITOR=nano, and start again")


def edited_text(text: str, command: list[str]) -> str:
    """Open a text in an editor, and return the result without line breaks at its end.

    Args:
        text: The text to edit.
        command: The words of the command, before the path.

    Raises:
        NoEditor: The command cannot be run, ends with an error, or leaves no readable text.
    """
    with TemporaryDirectory(prefix="mast-tui-") as folder:
        path = Path(folder) / "note.md"
        path.write_text(f"{text}\n" if text else "", "utf-8")
        try:
            process = subprocess.run([*command, str(path)], check=False)
        except OSError as error:
            raise NoEditor(f"{command[0]} cannot be run: {error.strerror}") from error
        if process.returncode:
            raise NoEditor(
                f"{command[0]} ended with exit code {process.returncode}; the note is unchanged"
            )
        try:
            return path.read_text("utf-8").rstrip()
        except (OSError, ValueError) as error:
            raise NoEditor("The file that the editor wrote cannot be read as text") from error
