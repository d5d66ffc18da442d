"""The workspace: where labels, reviews, runs of judges and decisions are kept."""

from importlib import import_module
from typing import TYPE_CHECKING

from mast_tui.errors import ChangedElsewhere, WorkspaceError, WorkspaceGone
from mast_tui.workspace.events.model import Event, NewEvent, event_from_dict, event_to_dict
from mast_tui.workspace.events.types import EventKind, Fact, inverse
from mast_tui.workspace.judgements import store_judgement
from mast_tui.workspace.records import (
    AnnotatorInfo,
    Asked,
    EventConflict,
    History,
    Judgement,
    Member,
    MergeRefused,
    MergeReport,
    PersonChanges,
    Run,
    RunSettings,
    RunTrace,
    TraceRecord,
    Usage,
)
from mast_tui.workspace.registers.hold_out import held_out, set_aside

if TYPE_CHECKING:
    from mast_tui.workspace.events.chain import Foreign, examined
    from mast_tui.workspace.merging import merge
    from mast_tui.workspace.opening import why_not_trusted
    from mast_tui.workspace.paths import default_workspace_path, find_workspace, is_url
    from mast_tui.workspace.queries import PassChoice
    from mast_tui.workspace.store import Workspace
else:
    _LATER = {
        "Foreign": "events.chain",
        "examined": "events.chain",
        "merge": "merging",
        "why_not_trusted": "opening",
        "default_workspace_path": "paths",
        "find_workspace": "paths",
        "is_url": "paths",
        "PassChoice": "queries",
        "Workspace": "store",
    }

    def __getattr__(name: str) -> object:
        """Import what needs SQLAlchemy when it is asked for: processes that judge do without."""
        if name not in _LATER:
            raise AttributeError(name)
        return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)


__all__ = [
    "AnnotatorInfo",
    "Asked",
    "ChangedElsewhere",
    "Event",
    "EventConflict",
    "EventKind",
    "Fact",
    "Foreign",
    "History",
    "Judgement",
    "Member",
    "MergeRefused",
    "MergeReport",
    "NewEvent",
    "PassChoice",
    "PersonChanges",
    "Run",
    "RunSettings",
    "RunTrace",
    "TraceRecord",
    "Usage",
    "Workspace",
    "WorkspaceError",
    "WorkspaceGone",
    "default_workspace_path",
    "event_from_dict",
    "event_to_dict",
    "examined",
    "find_workspace",
    "held_out",
    "inverse",
    "is_url",
    "merge",
    "set_aside",
    "store_judgement",
    "why_not_trusted",
]
