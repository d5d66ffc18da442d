"""The options that the command line passes to the app.

Free of Textual, so that the import costs no start-up time.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mast_tui.workspace import Workspace


class AppOptions(NamedTuple):
    """The options of the app.

    Attributes:
        paths: Existing files and folders; with ``samples`` the folder of the sample traces.
        samples: True for the sample traces, whose labels have their own workspace.
        workspace: The path or URL of the workspace; None for the nearest workspace.
        annotator: The name of the annotator; None for the annotator in the workspace. If there is
            none, the app asks.
        taxonomy: The file of the taxonomy; None for MAST.
        blind: True to work blind. If neither this nor ``assisted`` is true, the last choice stays.
        assisted: True to work with suggestions; never together with ``blind``.
        fill_new_workspace: Adds the labels of the sample traces to their new workspace. The command
            line passes it, because screens do not import files.
        password: The password of the workspace's server, if the user has typed it.
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

    def command_of_another(self) -> str:
        """Return the command with which another person labels the same traces here."""
        arguments = ["mast-tui"]
        if not self.samples:
            arguments.append(shlex.quote(str(self.paths[0])) if len(self.paths) == 1 else "PATH …")
        if self.workspace is not None:
            # A URL can hold a password.
            location = "URL" if "://" in self.workspace else shlex.quote(self.workspace)
            arguments.append(f"--workspace {location}")
        return " ".join([*arguments, "--annotator NAME"])


def in_browser(environment: Mapping[str, str]) -> bool:
    """Check if the app draws into a browser, as textual-serve asks Textual to."""
    return environment.get("TEXTUAL_DRIVER", "").endswith(":WebDriver")
