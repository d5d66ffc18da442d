"""What two invented annotators and a judge say of the sample traces, for the first start."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from mast_tui.exchange.jsonl import merge_content, read_jsonl
from mast_tui.traces.samples import samples_folder
from mast_tui.workspace import Workspace

CONTENT: Final = "workspace.jsonl"
"""The export beside the sample traces; ``scripts/make_sample_workspace.py`` makes it."""


def fill_samples_workspace(workspace: Workspace) -> None:
    """Bring the content into a workspace in which nobody has done anything yet.

    Any other is left as it is, so this may be called at every start. Raises ``WorkspaceError``,
    ``ExchangeError``, and ``FileNotFoundError`` where the samples are missing.
    """
    if workspace.annotators() or workspace.traces():
        return
    folder = samples_folder()
    content = read_jsonl(folder / CONTENT)
    content.traces = [
        replace(trace, path=folder / trace.path.name) if trace.path is not None else trace
        for trace in content.traces
    ]
    merge_content(content, workspace)
