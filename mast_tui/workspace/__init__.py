"""The workspace, which stores labels, reviews, runs of judges and decisions."""

from importlib import import_module
from typing import TYPE_CHECKING

from mast_tui.errors import WorkspaceError
from mast_tui.workspace.events.model import Event, NewEvent
from mast_tui.workspace.judgements import store_judgement
from mast_tui.workspace.records import (
    Asked,
    PersonChanges,
    Run,
    RunSettings,
    RunTrace,
    TraceRecord,
    Usage,
)

if TYPE_CHECKING:
    from mast_tui.workspace.paths import (
        find_workspace,
        is_url,
        samples_workspace_path,
        why_not_trusted,
    )
    from mast_tui.workspace.store import Workspace
else:
    _LATER = {
        "why_not_trusted": "paths",
        "find_workspace": "paths",
        "is_url": "paths",
        "samples_workspace_path": "paths",
        "Workspace": "store",
    }

    def __getattr__(name: str) -> object:
        """Import the modules that need SQLAlchemy on first use; processes that judge need none."""
        if name not in _LATER:
            raise AttributeError(name)
        return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)


__all__ = [
    "Asked",
    "Event",
    "NewEvent",
    "PersonChanges",
    "Run",
    "RunSettings",
    "RunTrace",
    "TraceRecord",
    "Usage",
    "Workspace",
    "WorkspaceError",
    "find_workspace",
    "is_url",
    "samples_workspace_path",
    "store_judgement",
    "why_not_trusted",
]
