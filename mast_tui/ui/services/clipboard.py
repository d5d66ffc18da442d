"""Copying: by the system's own tool where there is one, by tmux, or through the terminal."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from typing import Final

from mast_tui.safe_text import one_line
from mast_tui.ui.options import in_browser

TERMINAL_CHARS: Final = 100_000
"""The longest text that is handed to a terminal, in code points: many take no more."""

_SECONDS: Final = 5.0


TMUX: Final = ("tmux", "load-buffer", "-w", "-")
_OF_X: Final = (("xclip", "-selection", "clipboard"), ("xsel", "--clipboard", "--input"))


def tools(
    environment: Mapping[str, str], platform: str = sys.platform
) -> tuple[tuple[str, ...], ...]:
    """Return the commands that copy here what they read: the system's own, and tmux, if installed.

    Over SSH the clipboard of this machine is nobody's, but that of a display that was forwarded;
    in a browser it is the page that copies.

    Args:
        environment: Variables of the process.
        platform: As ``sys.platform`` names it.
    """
    if in_browser(environment):
        return ()
    remote = "SSH_CONNECTION" in environment or "SSH_TTY" in environment
    found: list[tuple[str, ...]] = []
    if platform == "darwin" and not remote:
        found.append(("pbcopy",))
    if environment.get("WAYLAND_DISPLAY") and not remote:
        found.append(("wl-copy",))
    if environment.get("DISPLAY"):
        found += _OF_X
    own = next((tool for tool in found if shutil.which(tool[0])), None)
    within = [TMUX] if environment.get("TMUX") and shutil.which("tmux") else []
    return (*([own] if own else []), *within)


def copy_by_tools(text: str) -> list[str]:
    """Hand a text to what copies here; may take some seconds.

    Args:
        text: What to copy.

    Returns:
        The names of the tools that took it; without any it is for the terminal to take.
    """
    return [command[0] for command in tools(os.environ) if _take(command, text)]


def _take(command: tuple[str, ...], text: str) -> bool:
    try:
        # What xclip leaves running must not hold our terminal.
        done = subprocess.run(
            command,
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
