"""The workspace: where labels, reviews, runs of judges and decisions are kept."""

from mast_tui.workspace.errors import ChangedElsewhere, WorkspaceError
from mast_tui.workspace.events import Event, NewEvent, event_from_dict, event_to_dict
from mast_tui.workspace.facts import EventKind, Fact, inverse
from mast_tui.workspace.judgements import store_judgement
from mast_tui.workspace.merging import merge
from mast_tui.workspace.places import default_workspace_path
from mast_tui.workspace.queries import PassChoice
from mast_tui.workspace.records import (
    AnnotatorInfo,
    EventConflict,
    Judgement,
    MergeReport,
    Run,
    RunTrace,
    TraceRecord,
)
from mast_tui.workspace.store import Workspace

__all__ = [
    "AnnotatorInfo",
    "ChangedElsewhere",
    "Event",
    "EventConflict",
    "EventKind",
    "Fact",
    "Judgement",
    "MergeReport",
    "NewEvent",
    "PassChoice",
    "Run",
    "RunTrace",
    "TraceRecord",
    "Workspace",
    "WorkspaceError",
    "default_workspace_path",
    "event_from_dict",
    "event_to_dict",
    "inverse",
    "merge",
    "store_judgement",
]
