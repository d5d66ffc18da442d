"""The options that the command line passes to the app.

This module does not import Textual, which would delay the start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mast_tui.workspace import Workspace


class AppOptions(NamedTuple):
    """The options of the app.

    Attributes:
        paths: Existing files and folders; the folder of the sample traces with ``samples``.
        samples: True for the sample traces, which have their own workspace.
        workspace: The path or URL of the workspace; None for the nearest workspace.
        annotator: The name of the annotator; None to find or ask for it.
        taxonomy: The file of the taxonomy; None for MAST.
        blind: True to work blind. Without this and ``assisted``, the last choice counts.
        assisted: True to work with suggestions. It excludes ``blind``.
        fill_new_workspace: Adds the labels of the sample traces to their new workspace. It is
            passed in because screens do not import files.
        password: The password of the workspace's server, if the user has typed one.
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

    @property
    def on_server(self) -> bool:
        """True if the workspace is on a server."""
        return self.workspace is not None and "://" in self.workspace

    def command_of_another(self) -> str:
        """Return the command with which another person labels the same traces on this machine."""
        import shlex  # the first spans do not need it

        arguments = ["mast-tui"]
        if not self.samples:
            arguments.append(shlex.quote(str(self.paths[0])) if len(self.paths) == 1 else "PATH …")
        if self.workspace is not None:
            # A URL may contain a password.
            location = "URL" if self.on_server else shlex.quote(self.workspace)
            arguments.append(f"--workspace {location}")
        return " ".join([*arguments, "--annotator NAME"])


def in_browser(environment: Mapping[str, str]) -> bool:
    """Check if textual-serve shows the app in a browser."""
    return environment.get("TEXTUAL_DRIVER", "").endswith(":WebDriver")
