"""The changes that foreign events make to each annotator's work, and which of them need consent.

The state before is compared with the state afterwards, so it does not matter by which events, with
which counters, a change is brought about.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import Connection, bindparam, select

from mast_tui.labels import AnnotatorKind, annotator_kind
from mast_tui.workspace import schema
from mast_tui.workspace.events.in_force import Key, Rows
from mast_tui.workspace.events.model import Event
from mast_tui.workspace.events.types import (
    Decided,
    GuidelineSet,
    LabelAdded,
    PassStarted,
    ReviewSet,
    SightSet,
    SpanNoteSet,
    SpansRead,
    StudySet,
    VerdictSet,
)
from mast_tui.workspace.records import HistoryRelation, PersonChanges

State = Mapping[str, Rows]
"""All rows of one annotator, by table."""

_TABLES: Final = (
    schema.labels,
    schema.verdicts,
    schema.reviews,
    schema.span_notes,
    schema.passes,
    schema.decisions,
    schema.guidelines,
    schema.studies,
    schema.sights,
)
_READ: Final = {
    table.name: select(table).where(table.c.annotator == bindparam("name")) for table in _TABLES
}
_OF_A_PASS: Final = (schema.labels, schema.verdicts, schema.reviews, schema.span_notes)


def read_state(connection: Connection, annotator: str) -> State:
    """Read the rows of one annotator from the state tables, without withdrawn passes.

    Args:
        connection: An open connection.
        annotator: The annotator.
    """
    state = {}
    for table in _TABLES:
        # The annotator comes first in every table, and the rest of the key follows.
        keys = len(table.primary_key)
        rows = connection.execute(_READ[table.name], {"name": annotator}).all()
        state[table.name] = {tuple(row[1:keys]): tuple(row[keys:]) for row in rows}
    withdrawn = _column_index(schema.passes, "withdrawn")
    passes = state[schema.passes.name]
    state[schema.passes.name] = {key: row for key, row in passes.items() if not row[withdrawn]}
    return state


def only_adds(events: Sequence[Event], *, whole: bool) -> bool:
    """Check whether events remove nothing, whatever the state is.

    This is for events that are not linked to the stored ones, which may take effect only later,
    when the events to which they refer are stored too.

    Args:
        events: The events of one person.
        whole: True if the counters of all foreign events of the person have no gap.
    """
    begun = {_work(event) for event in events if isinstance(event.fact, PassStarted)}
    for event in events:
        match event.fact:
            case (
                VerdictSet(after=None)
                | ReviewSet(after=None)
                | SpanNoteSet(after="")
                | Decided(after=None)
            ):
                adds = False
            case (PassStarted() | LabelAdded() | SpansRead() | GuidelineSet() | StudySet()) | (
                VerdictSet() | ReviewSet() | SpanNoteSet() | Decided()
            ):
                adds = True
            case SightSet():
                adds = whole  # else a missing event may have set it otherwise
            case _:  # it removes nothing stored if its pass begins in these events
                adds = _work(event) in begun
        if not adds:
            return False
    return True


def _work(event: Event) -> Key:
    """Return the key of the pass of an event."""
    return event.trace_id, event.taxonomy, event.pass_number


NOTHING: Final[State] = {table.name: {} for table in _TABLES}
"""The state of an annotator who has done nothing here."""


def compare(
    annotator: str, history: HistoryRelation, old: State, new: State, *, events: int
) -> PersonChanges:
    """Count the changes to an annotator's work, and check if they need consent.

    Args:
        annotator: The author of the work.
        history: The relation of the foreign events to the stored ones.
        old: The state before the merge.
        new: The state after the merge.
        events: The number of events that were not stored before.

    Returns:
        The counts; ``refused`` is True if the change needs ``--replace`` with the author's name.
    """
    labels = _Difference(old, new, "labels")
    verdicts = _Difference(old, new, "verdicts")
    passes = _Difference(old, new, "passes")
    decisions = _Difference(old, new, "decisions")
    guidelines = _Difference(old, new, "guidelines")
    studies = _Difference(old, new, "studies")
    frozen = _changed_finished_passes(old, new)
    reopened = sum(_finished_at(new["passes"].get(key)) is None for key in frozen)
    changes = PersonChanges(
        annotator,
        history,
        events=events,
        labels_added=len(labels.added),
        labels_changed=len(labels.changed),
        labels_removed=len(labels.removed),
        verdicts_added=len(verdicts.added),
        verdicts_changed=len(verdicts.changed) + len(verdicts.removed),
        passes_added=len(passes.added),
        passes_joined=len(_extended_passes(old, new)),
        passes_finished=sum(_finished_at(new["passes"][key]) is not None for key in passes.added)
        + len(_finished_now(old, new)),
        passes_reopened=reopened,
        passes_changed=len(frozen) - reopened,
        decisions_added=len(decisions.added),
        decisions_changed=len(decisions.changed),
        decisions_taken_back=len(decisions.removed),
        guidelines_written=len(guidelines.added | guidelines.changed),
        studies_set=len(studies.added | studies.changed),
        sight=_is_blind(new) if _is_blind(old) != _is_blind(new) else None,
    )
    if history in (HistoryRelation.NEW, HistoryRelation.SAME):
        return changes
    if annotator_kind(annotator) is AnnotatorKind.JUDGE:
        return replace(changes, refused=_replaces_judgement(old, new))
    return replace(changes, refused=_needs_consent(changes, old, new))


def _replaces_judgement(old: State, new: State) -> bool:
    """Check if labels or verdicts of a judge are removed or changed.

    A judge may add labels to traces that it had not finished, and drop its earlier ones there. The
    times of labels are ignored, since a judge may give the same labels at any time. Origins are
    ignored, since earlier versions wrote them differently.
    """
    finished = {key for key, row in old["passes"].items() if _finished_at(row) is not None}
    done = {key for key, row in new["passes"].items() if _finished_at(row) is not None}
    for key, row in old["labels"].items():
        now = new["labels"].get(key)
        continues = row[:_WORK] not in finished and row[:_WORK] in done
        if not continues and (now is None or _compared(now) != _compared(row)):
            return True
    values = _values(new)
    return any(
        (key[:_WORK] not in done or values.get(key) != value)
        for key, value in _values(old).items()
        if key[:_WORK] in finished
    )


def _values(state: State) -> Mapping[Key, str]:
    """Return the verdict on each mode of each pass; a mode with a label is present."""
    values = {key: row[0] for key, row in state["verdicts"].items()}
    return values | {(*row[:_WORK], row[_MODE]): "present" for row in state["labels"].values()}


def _compared(label: Key) -> Key:
    """Return the values of a judge's label that must be equal on two machines."""
    return tuple(value for index, value in enumerate(label) if index not in _INCIDENTAL)


def _needs_consent(changes: PersonChanges, old: State, new: State) -> bool:
    """Check if the person has done more than continue the stored work."""
    if changes.passes_reopened or changes.passes_changed or changes.sight is not None:
        return True
    if changes.decisions_changed or changes.decisions_taken_back:
        return True
    if changes.history is HistoryRelation.LONGER:
        return False
    # Both branches may add rows, but neither can know what the other has changed or removed.
    for table in (*_OF_A_PASS, schema.guidelines, schema.studies):
        difference = _Difference(old, new, table.name)
        if difference.changed or difference.removed:
            return True
    passes = _Difference(old, new, "passes")
    # A branch may finish open passes. Events that share nothing with the stored history may only
    # begin new passes and add to open ones.
    columns = _BEGUN if changes.history is HistoryRelation.FORKED else _OPEN
    if passes.removed or any(
        [old["passes"][key][index] for index in columns]
        != [new["passes"][key][index] for index in columns]
        for key in passes.changed
    ):
        return True
    done = {key[:2] for key, row in old["passes"].items() if _finished_at(row) is not None}
    return changes.history is HistoryRelation.APART and any(key[:2] in done for key in passes.added)


class _Difference:
    """The keys of the rows that were added, removed or changed."""

    def __init__(self, old: State, new: State, table: str) -> None:
        was = old[table]
        now = new[table]
        self.added = now.keys() - was.keys()
        self.removed = was.keys() - now.keys()
        self.changed = {key for key, row in was.items() if now.get(key, row) != row}


def _changed_finished_passes(old: State, new: State) -> Collection[Key]:
    """Return the keys of the finished passes that have changed."""
    finished = {key: row for key, row in old["passes"].items() if _finished_at(row) is not None}
    touched = {
        key for key, row in finished.items() if _frozen(new["passes"].get(key)) != _frozen(row)
    }
    for table in _OF_A_PASS:
        was = old[table.name]
        now = new[table.name]
        for key in was.keys() | now.keys():
            if was.get(key) != now.get(key):
                touched.update(_passes_of_row(table.name, key, was.get(key), now.get(key)))
    return touched & finished.keys()


def _extended_passes(old: State, new: State) -> Collection[Key]:
    """Return the keys of the open passes to which something was added."""
    open_passes = {key for key, row in old["passes"].items() if _finished_at(row) is None}
    return open_passes & {
        work
        for table in _OF_A_PASS
        for key in _Difference(old, new, table.name).added
        for work in _passes_of_row(table.name, key, None, new[table.name][key])
    }


def _passes_of_row(table: str, key: Key, was: Key | None, now: Key | None) -> Iterator[Key]:
    """Yield the keys of the passes to which a row belonged and belongs."""
    if table != schema.labels.name:
        yield key[:_WORK]
        return
    # The key of a label is its id, so its pass is in the rest of the row, and may change.
    for row in (was, now):
        if row is not None:
            yield row[:_WORK]


def _finished_now(old: State, new: State) -> list[Key]:
    """Return the keys of the passes that were open and are finished now."""
    return [
        key
        for key, row in old["passes"].items()
        if _finished_at(row) is None and _finished_at(new["passes"].get(key)) is not None
    ]


def _column_index(table: Any, column: str) -> int:
    """Return the index of a column in a row without its key."""
    names = [table_column.name for table_column in table.columns]
    return names.index(column) - len(table.primary_key)


_WORK: Final = 3
"""The number of columns (trace, taxonomy, pass) that name a pass of an annotator."""
_MODE: Final = _column_index(schema.labels, "mode")
_INCIDENTAL: Final = [_column_index(schema.labels, name) for name in ("created_at", "origin")]
"""The columns of a judge's label that may differ between two machines."""
_FINISHED: Final = _column_index(schema.passes, "finished_at")
_REVEALED: Final = _column_index(schema.passes, "revealed_at")
_BEGUN: Final = [_column_index(schema.passes, name) for name in ("kind", "withheld")]
_OPEN: Final = [
    *_BEGUN,
    *(_column_index(schema.passes, name) for name in ("finished_at", "judge_seen", "revealed_at")),
]
"""The compared columns of an open pass: not its start, since two copies may both have begun it."""


def _finished_at(row: Key | None) -> str | None:
    finished_at: str | None = None if row is None else row[_FINISHED]
    return finished_at


def _frozen(row: Key | None) -> Key | None:
    """Return the columns of a finished pass that no longer change: all but the reveal."""
    return None if row is None else (*row[:_REVEALED], *row[_REVEALED + 1 :])


def _is_blind(state: State) -> bool:
    """Check whether the annotator works blind; without a record, no."""
    return any(row[0] for row in state["sights"].values())
