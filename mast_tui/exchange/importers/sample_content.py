"""The labels of two invented annotators and a judge on the sample traces, for the first start."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from mast_tui.exchange.errors import ExchangeError
from mast_tui.exchange.jsonl import merge_content, read_jsonl
from mast_tui.traces.library import samples_folder
from mast_tui.workspace import Workspace, WorkspaceError

CONTENT: Final = "workspace.jsonl"
"""The export beside the sample traces; ``scripts/make_sample_workspace.py`` makes it."""


def fill_samples_workspace(workspace: Workspace) -> None:
    """Add the content to a workspace without any work.

    Any other is left as it is, so this may be called at every start; so is one whose samples came
    without content. Raises ``WorkspaceError``, also for content that cannot be read.
    """
    folder = samples_folder()
    if workspace.annotators() or workspace.traces() or not (folder / CONTENT).is_file():
        return
    try:
        content = read_jsonl(folder / CONTENT)
    except (ExchangeError, OSError) as error:
        raise WorkspaceError(f"the samples' labels cannot be read: {error}") from error
    content.traces = [
        replace(trace, path=folder / trace.path.name) if trace.path is not None else trace
        for trace in content.traces
    ]
    merge_content(content, workspace)
