"""What an annotator can do: label, answer suggestions, take back, finish."""

from mast_tui.errors import SessionError
from mast_tui.session.messages import Change
from mast_tui.session.progress import (
    AnnotatorStatus,
    Progress,
    anybody_finished,
    progress,
    status,
)
from mast_tui.session.queues import QueueItem, QueueKind, queue
from mast_tui.session.read_model import Suggestion
from mast_tui.session.retests import Retests, retest_progress
from mast_tui.session.session import Session, known_trace
from mast_tui.session.study_conditions import withheld_by_study
from mast_tui.session.study_setup import (
    check_changes,
    given_back,
    sample_words,
    set_study,
    taken_away,
    with_annotator,
    with_assignments,
    with_sample,
    with_traces,
    with_weights,
    with_worth,
    without_annotator,
)
from mast_tui.session.viewer import (
    Viewer,
    hidden_words,
    known_person,
    outside_words,
    remember_person,
    sight_values,
    unlike_others,
    viewer_named,
    viewer_of,
    working_person,
    works_blind,
)
from mast_tui.session.visibility import (
    LibraryEntry,
    WithinSight,
    library_view,
    record_reveal,
    resolve_sight,
    said_by,
    visible_traces_for_agreement,
    within_sight,
)

__all__ = [
    "AnnotatorStatus",
    "Change",
    "LibraryEntry",
    "Progress",
    "QueueItem",
    "QueueKind",
    "Retests",
    "Session",
    "SessionError",
    "Suggestion",
    "Viewer",
    "WithinSight",
    "anybody_finished",
    "check_changes",
    "given_back",
    "hidden_words",
    "known_person",
    "known_trace",
    "library_view",
    "outside_words",
    "progress",
    "queue",
    "record_reveal",
    "remember_person",
    "resolve_sight",
    "retest_progress",
    "said_by",
    "sample_words",
    "set_study",
    "sight_values",
    "status",
    "taken_away",
    "unlike_others",
    "viewer_named",
    "viewer_of",
    "visible_traces_for_agreement",
    "with_annotator",
    "with_assignments",
    "with_sample",
    "with_traces",
    "with_weights",
    "with_worth",
    "withheld_by_study",
    "within_sight",
    "without_annotator",
    "working_person",
    "works_blind",
]
