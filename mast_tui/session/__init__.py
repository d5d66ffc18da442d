"""What an annotator can do: label, answer suggestions, take back, finish."""

from mast_tui.session.core import known_trace
from mast_tui.session.errors import ChangedMeanwhile, LabelsStand, SessionError
from mast_tui.session.locate import Place, locate
from mast_tui.session.model import Change, Suggestion
from mast_tui.session.progress import Progress, anybody_finished, progress
from mast_tui.session.queues import QueueItem, QueueKind, queue
from mast_tui.session.retests import Retests
from mast_tui.session.session import Session
from mast_tui.session.setting_up import set_study, with_traces
from mast_tui.session.sight import (
    LibraryEntry,
    library_view,
    may_see_others,
    record_reveal,
    resolve_sight,
    retest_progress,
    visible_traces_for_agreement,
)
from mast_tui.session.status import AnnotatorStatus, StatusReport, status

__all__ = [
    "AnnotatorStatus",
    "Change",
    "ChangedMeanwhile",
    "LabelsStand",
    "LibraryEntry",
    "Place",
    "Progress",
    "QueueItem",
    "QueueKind",
    "Retests",
    "Session",
    "SessionError",
    "StatusReport",
    "Suggestion",
    "anybody_finished",
    "known_trace",
    "library_view",
    "locate",
    "may_see_others",
    "progress",
    "queue",
    "record_reveal",
    "resolve_sight",
    "retest_progress",
    "set_study",
    "status",
    "visible_traces_for_agreement",
    "with_traces",
]
