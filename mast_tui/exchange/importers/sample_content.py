"""The labels of two invented annotators and a judge on the sample traces, for the first start."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from mast_tui.exchange.errors import ExchangeError
from mast_tui.exchange.jsonl import merge_content, read_jsonl
from mast_tui.traces.library import samples_folder
from mast_tui.workspace import Workspace, WorkspaceError

CONTENT_FILE: Final = "workspace.jsonl"
"""The export beside the sample traces; ``scripts/make_sample_workspace.py`` makes it."""


def fill_samples_workspace(workspace: Workspace) -> None:
    """Add the labels of the samples to a workspace without annotators and traces.

    Any other workspace stays as it is, so this may be called at every start. Without the file of
    labels, nothing is added.

    Raises:
        WorkspaceError: The labels cannot be read or written.
    """
    folder = samples_folder()
    if workspace.annotators() or workspace.traces() or not (folder / CONTENT_FILE).is_file():
        return
    try:
        content = read_jsonl(folder / CONTENT_FILE)
    except (ExchangeError, OSError) as error:
        raise WorkspaceError(f"the samples' labels cannot be read: {error}") from error
    content.traces = [
        replace(trace, path=folder / trace.path.name) if trace.path is not None else trace
        for trace in content.traces
    ]
    merge_content(content, workspace)
