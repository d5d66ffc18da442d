"""The options that the command line passes to the app.

Free of Textual, so that the import costs no start-up time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mast_tui.workspace import Workspace


class AppOptions(NamedTuple):
    """The options of the app.

    ``paths`` are existing files and folders; with ``samples`` they are the folder of the sample
    traces, whose labels have their own workspace. ``workspace`` is a path or URL, None for the
    nearest one. ``annotator`` is None for the one whom the workspace knows; if there is none, the
    app asks. ``taxonomy`` is None for MAST. ``blind`` and ``assisted`` are never both set; without
    either the last choice stays. ``fill_new_workspace`` adds the samples' labels to their new
    workspace; the command line passes it, because screens do not import files. ``password`` is that
    of the workspace's server, if the user has typed it.
    """

    paths: tuple[Path, ...]
    samples: bool
    workspace: str | None
    annotator: str | None
    taxonomy: Path | None
    blind: bool
    assisted: bool
    fill_new_workspace: Callable[[Workspace], None] | None = None
    password: str | None = None


def in_browser(environment: Mapping[str, str]) -> bool:
    """Check if the app draws into a browser, as textual-serve asks Textual to."""
    return environment.get("TEXTUAL_DRIVER", "").endswith(":WebDriver")
