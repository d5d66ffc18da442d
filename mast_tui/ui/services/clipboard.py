"""Copying: by the system's own tool where there is one, by tmux, or through the terminal."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from typing import Final, NamedTuple

from mast_tui.safe_text import one_line
from mast_tui.ui.options import in_browser

TERMINAL_CHARS: Final = 100_000
"""The longest text that is handed to a terminal, in code points: many take no more."""

_SECONDS: Final = 5.0


class Tool(NamedTuple):
    """A command that takes what is copied from its input."""

    name: str
    command: tuple[str, ...]


TMUX: Final = Tool("tmux", ("tmux", "load-buffer", "-w", "-"))
_PBCOPY: Final = Tool("pbcopy", ("pbcopy",))
_WL_COPY: Final = Tool("wl-copy", ("wl-copy",))
_OF_X: Final = (
    Tool("xclip", ("xclip", "-selection", "clipboard")),
    Tool("xsel", ("xsel", "--clipboard", "--input")),
)


def tools(environment: Mapping[str, str], platform: str = sys.platform) -> tuple[Tool, ...]:
    """Return what copies here: the system's own tool, and tmux; those that are installed.

    Over SSH the clipboard of this machine is nobody's, but that of a display that was forwarded;
    in a browser it is the page that copies.

    Args:
        environment: Variables of the process.
        platform: As ``sys.platform`` names it.
    """
    if in_browser(environment):
        return ()
    remote = "SSH_CONNECTION" in environment or "SSH_TTY" in environment
    found: list[Tool] = []
    if platform == "darwin" and not remote:
        found.append(_PBCOPY)
    if environment.get("WAYLAND_DISPLAY") and not remote:
        found.append(_WL_COPY)
    if environment.get("DISPLAY"):
        found += _OF_X
    own = next((tool for tool in found if shutil.which(tool.command[0])), None)
    within = [TMUX] if environment.get("TMUX") and shutil.which("tmux") else []
    return (*([own] if own else []), *within)


def copy_by_tools(text: str) -> list[str]:
    """Hand a text to what copies here; may take some seconds.

    Args:
        text: What to copy.

    Returns:
        The names of the tools that took it; without any it is for the terminal to take.
    """
    return [tool.name for tool in tools(os.environ) if _take(tool, text)]


def _take(tool: Tool, text: str) -> bool:
    try:
        # What xclip leaves running must not hold our terminal.
        done = subprocess.run(
            tool.command,
            input=text.encode("utf-8", "replace"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def copied_words(what: str, chars: int, used: list[str]) -> str:
    """Return what was copied and by what, in a line.

    Args:
        what: What was copied, such as ``the text of #9``.
        chars: How long it is, in code points.
        used: The tools that took it; without any the terminal did, or the browser.
    """
    if used:
        return f"Copied {one_line(what)}, {chars:,} characters, by {' and '.join(used)}"
    size = f"{chars:,} characters"
    if chars > TERMINAL_CHARS:
        size = f"the first {TERMINAL_CHARS:,} of {size}"
    if in_browser(os.environ):
        return f"Copied {one_line(what)}, {size}, through the browser, if it allows that"
    return f"Copied {one_line(what)}, {size}, through the terminal (OSC 52, if it allows that)"
