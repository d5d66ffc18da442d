"""What the command line hands to the app; free of Textual, so that it costs no start-up time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mast_tui.workspace import Workspace


class AppOptions(NamedTuple):
    """With what the app was started.

    ``paths`` are existing files and folders; with ``samples`` they hold the folder of the sample
    traces, whose labels have a workspace of their own. ``workspace`` is a path or URL, None for
    the nearest one; ``annotator`` None for the one whom the workspace knows, or to be asked;
    ``taxonomy`` None for MAST. ``blind`` and ``assisted`` are never both set; neither means as
    before. ``fill_new_workspace`` brings the samples' labels into their workspace once it is open;
    it is handed in from above, since screens know nothing of files to import. ``password`` is that
    of the workspace's server, where a person has typed it.
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
    """Whether the app draws into a browser, as textual-serve asks Textual to."""
    return environment.get("TEXTUAL_DRIVER", "").endswith(":WebDriver")
