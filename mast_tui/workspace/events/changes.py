"""The changes that foreign events make to each annotator's work, and the consent that they need.

The state before is compared with the state after, so the events and their numbers do not matter.
Decisions, guidelines and studies count for all annotators: the latest entry on a subject is in
force, so a merge can replace one person's decision by another person's.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Table, bindparam, select

from mast_tui.gold.model import Decision
from mast_tui.gold.overlaps import overlap
from mast_tui.labels import VerdictValue, is_judge
from mast_tui.workspace import schema
from mast_tui.workspace.events.codec import decision_from_json
from mast_tui.workspace.events.model import Event
from mast_tui.workspace.events.types import (
    BlindWorkSet,
    Decided,
    GuidelineSet,
    LabelAdded,
    PassStarted,
    ReviewSet,
    SpanNoteSet,
    SpansRead,
    StudySet,
    VerdictSet,
)
from mast_tui.workspace.records import HistoryRelation, PersonChanges

Key = tuple[Any, ...]
Rows = Mapping[Key, Key]
"""The rows of one annotator in a state table: the values of the other columns by the key."""

_TIME_COLUMN_BY_TABLE: Final = {
    schema.decisions: "decided_at",
    schema.guidelines: "written_at",
    schema.studies: "set_at",
}
SHARED_TABLES: Final = tuple(table.name for table in _TIME_COLUMN_BY_TABLE)
"""The tables with one row in force for each key, whoever wrote it."""


class DatedEntry(NamedTuple):
    """A decision, guideline or study, with its time and author."""

    at: str
    annotator: str
    document: str

    @property
    def rank(self) -> tuple[str, str]:
        """The order among entries on one subject; the highest is in force."""
        return self.at, self.annotator


InForce = Mapping[tuple[str, Key], DatedEntry]
"""The entries in force, by table and key."""


def entries_in_force(connection: Connection) -> InForce:
    """Return the latest decision, guideline and study on each subject."""
    entries: dict[tuple[str, Key], DatedEntry] = {}
    for table in _TIME_COLUMN_BY_TABLE:
        # In each row the annotator comes first, then the rest of the key, then the other columns.
        key_length = len(table.primary_key)
        for row in connection.execute(select(table)):
            entry = _dated_entry(table.name, row[0], tuple(row[key_length:]))
            key = (table.name, tuple(row[1:key_length]))
            if key not in entries or entries[key].rank < entry.rank:
                entries[key] = entry
    return entries


def count_by_author(
    entries: Iterable[tuple[str, Key]], in_force: InForce
) -> dict[str, dict[str, int]]:
    """Count entries by author and table.

    Args:
        entries: The table and key of each entry to count.
        in_force: All entries in force.
    """
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for table, key in entries:
        counts[in_force[table, key].annotator][table] += 1
    return {name: dict(count) for name, count in sorted(counts.items())}


def _dated_entry(table: str, annotator: str, row: Key) -> DatedEntry:
    """Return the decision, guideline or study in a row without its key columns."""
    row_table = schema.metadata.tables[table]
    columns = [column.name for column in row_table.columns][len(row_table.primary_key) :]
    values = dict(zip(columns, row, strict=True))
    return DatedEntry(values[_TIME_COLUMN_BY_TABLE[row_table]], annotator, values["document"])


def _decisions_on_same_mode(new: Mapping[Key, DatedEntry], in_force: InForce) -> Iterator[Key]:
    """Yield the keys of decisions that new decisions on other items of the same mode overrule.

    An item is the verdict on a mode, or one place of it. Both depend on each other, because a mode
    has places only if its verdict is present.

    Args:
        new: The new decisions by key: trace, taxonomy and item.
        in_force: The stored entries in force, also of other tables.
    """
    changed_traces = {(trace_id, taxonomy) for trace_id, taxonomy, _ in new}
    stored_by_mode: dict[Key, list[tuple[Key, DatedEntry, Decision]]] = defaultdict(list)
    for (table, key), entry in in_force.items():
        if table == schema.decisions.name:
            trace_id, taxonomy, _ = key
            if (trace_id, taxonomy) in changed_traces:
                decision = decision_from_json(entry.document)
                stored_by_mode[trace_id, taxonomy, decision.mode].append((key, entry, decision))
    for key, entry in new.items():
        trace_id, taxonomy, _ = key
        decision = decision_from_json(entry.document)
        for stored_key, stored_entry, stored in stored_by_mode[trace_id, taxonomy, decision.mode]:
            if stored_key != key and _overrules(entry, decision, stored_entry, stored):
                yield stored_key


def _overrules(
    entry: DatedEntry, decision: Decision, stored_entry: DatedEntry, stored_decision: Decision
) -> bool:
    """Return whether a new decision overrules a stored one on another item of the same mode.

    A verdict overrules any decision. A decision on a place overrules an earlier verdict with
    overlapping places.
    """
    if decision.is_verdict:
        return True
    is_verdict_with_places = (
        stored_decision.is_verdict
        and stored_decision.value is VerdictValue.PRESENT
        and bool(stored_decision.targets)
    )
    is_older = entry.rank < stored_entry.rank
    if not is_verdict_with_places or is_older:
        return False
    if entry.annotator != stored_entry.annotator:
        # Two adjudicators may describe one place by different spans. Without the order of the
        # spans, a possible overlap counts.
        return True
    return any(overlap(a, b) for a in _decided_places(decision) for b in stored_decision.targets)


def _decided_places(decision: Decision) -> Iterable[Any]:
    """Return the places that a decision and its answers name."""
    return (
        *decision.targets,
        *(target for opinion in decision.answers for target in opinion.targets),
    )


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
_PASS_TABLES: Final = (schema.labels, schema.verdicts, schema.reviews, schema.span_notes)
_WORK_TABLES: Final = (*_PASS_TABLES, schema.guidelines, schema.studies)
"""The tables to which a merge of two branches may only add rows."""


def read_state(connection: Connection, annotator: str) -> State:
    """Read one annotator's rows from the state tables, without withdrawn passes.

    Args:
        connection: An open connection.
        annotator: The annotator.
    """
    state = {}
    for table in _TABLES:
        # In each row the annotator comes first, then the rest of the key, then the other columns.
        key_length = len(table.primary_key)
        rows = connection.execute(_READ[table.name], {"name": annotator}).all()
        state[table.name] = {tuple(row[1:key_length]): tuple(row[key_length:]) for row in rows}
    withdrawn_index = _column_index(schema.passes, "withdrawn")
    passes = state[schema.passes.name]
    state[schema.passes.name] = {
        key: row for key, row in passes.items() if not row[withdrawn_index]
    }
    return state


def only_adds(events: Sequence[Event], *, has_no_gaps: bool) -> bool:
    """Return whether a person's events only add work, judged by their kinds alone.

    The state does not show this for events without a shared history, which may refer to events that
    will be stored later.

    Args:
        events: The events of one person.
        has_no_gaps: True if no sequence number is missing among the person's events.
    """
    started_passes = {_pass_key(event) for event in events if isinstance(event.fact, PassStarted)}
    return all(_only_adds(event, started_passes, has_no_gaps=has_no_gaps) for event in events)


def _only_adds(event: Event, started_passes: Collection[Key], *, has_no_gaps: bool) -> bool:
    """Return whether an event removes nothing; ``started_passes`` begin in the same events."""
    match event.fact:
        case VerdictSet(after=None) | ReviewSet(after=None) | SpanNoteSet(after=""):
            return False
        case Decided(after=None):
            return False
        case VerdictSet() | ReviewSet() | SpanNoteSet() | Decided():
            return True
        case PassStarted() | LabelAdded() | SpansRead() | GuidelineSet() | StudySet():
            return True
        case BlindWorkSet():
            return has_no_gaps  # with a gap it may replace a setting among the stored events
        case _:
            return _pass_key(event) in started_passes  # such a pass has no stored work


def _pass_key(event: Event) -> Key:
    return event.trace_id, event.taxonomy, event.pass_number


NOTHING: Final[State] = {table.name: {} for table in _TABLES}
"""The state of an annotator without any work."""


class WorkChange:
    """The rows of one annotator in the state tables before and after a merge."""

    def __init__(self, annotator: str, old: State, new: State) -> None:
        self._annotator = annotator
        self._old = old
        self._new = new
        self._finished_before = _finished_passes(old)
        self._finished_after = _finished_passes(new)
        self._differences = {
            table.name: _Difference(old[table.name], new[table.name]) for table in _TABLES
        }

    def counts(self, history: HistoryRelation, *, events: int) -> PersonChanges:
        """Count the changes.

        Args:
            history: The relation of the foreign events to the stored ones.
            events: The number of new events.
        """
        labels = self._differences["labels"]
        verdicts = self._differences["verdicts"]
        decisions = self._differences["decisions"]
        guidelines = self._differences["guidelines"]
        studies = self._differences["studies"]
        changed_passes = self._changed_finished_passes()
        reopened_passes = changed_passes - self._finished_after.keys()
        works_blind = _works_blind(self._new)
        return PersonChanges(
            self._annotator,
            history,
            events=events,
            labels_added=len(labels.added),
            labels_changed=len(labels.changed),
            labels_removed=len(labels.removed),
            verdicts_added=len(verdicts.added),
            verdicts_changed=len(verdicts.changed) + len(verdicts.removed),
            passes_added=len(self._differences["passes"].added),
            passes_joined=len(self._extended_passes()),
            passes_finished=len(self._finished_after.keys() - self._finished_before.keys()),
            passes_reopened=len(reopened_passes),
            passes_changed=len(changed_passes) - len(reopened_passes),
            decisions_added=len(decisions.added),
            decisions_changed=len(decisions.changed),
            decisions_taken_back=len(decisions.removed),
            guidelines_written=len(guidelines.added | guidelines.changed),
            studies_set=len(studies.added | studies.changed),
            blind=None if works_blind == _works_blind(self._old) else works_blind,
        )

    def needs_consent(self, counts: PersonChanges) -> bool:
        """Return whether the merge replaces the annotator's work or adds to finished work."""
        if counts.history in (HistoryRelation.NEW, HistoryRelation.SAME):
            return False
        if is_judge(self._annotator):
            return self._replaces_judgement()
        if counts.passes_reopened or counts.passes_changed or counts.blind is not None:
            return True
        if counts.decisions_changed or counts.decisions_taken_back:
            return True
        if counts.history is HistoryRelation.LONGER:  # the person has continued the stored work
            return False
        # Each branch may add rows, but not change or remove rows of the other branch.
        if any(self._differences[table.name].replaced for table in _WORK_TABLES):
            return True
        # Events with a shared history may finish open passes. Other events may only add to open
        # passes, and begin passes on traces that the person has not finished.
        if counts.history is HistoryRelation.FORKED:
            return self._changes_passes(_START_COLUMNS)
        return self._changes_passes(_OPEN_COLUMNS) or self._adds_to_finished_work()

    def replaced_entries(self, in_force: InForce) -> set[tuple[str, Key]]:
        """Return the table and key of each entry in force that the merge replaces.

        These are other annotators' entries, and decisions on other items of a newly decided mode.
        """
        replaced: set[tuple[str, Key]] = set()
        decisions: dict[Key, DatedEntry] = {}
        for table in SHARED_TABLES:
            difference = self._differences[table]
            for key in difference.added | difference.changed:
                entry = _dated_entry(table, self._annotator, self._new[table][key])
                current = in_force.get((table, key))
                if current is not None and current.annotator != self._annotator:
                    if current.rank > entry.rank:  # the new entry is older, so it has no effect
                        continue
                    replaced.add((table, key))
                if table == schema.decisions.name:
                    decisions[key] = entry
        overruled = _decisions_on_same_mode(decisions, in_force)
        return replaced | {(schema.decisions.name, key) for key in overruled}

    def replaced_taxonomies(self, entries: Iterable[tuple[str, Key]]) -> set[str]:
        """Return the taxonomies of the work that the merge changes, removes or replaces.

        ``entries`` are the ``replaced_entries``.
        """
        passes = self._changed_finished_passes()
        rows = set(entries)
        for table in _PASS_TABLES:
            difference = self._differences[table.name]
            for key in difference.replaced:
                passes.update(self._passes_of_row(table, key))
        for name in SHARED_TABLES:
            rows.update((name, key) for key in self._differences[name].replaced)
        taxonomies = {taxonomy for _, taxonomy, _ in passes}
        return taxonomies | {self._taxonomy_of_row(table_name, key) for table_name, key in rows}

    def _replaces_judgement(self) -> bool:
        """Return whether labels or verdicts of a judge are removed or changed.

        Labels of an open pass may change if the merge finishes it. Times and origins of labels do
        not count: a judge may repeat a label later, and earlier versions wrote other origins.
        """
        newly_finished = self._finished_after.keys() - self._finished_before.keys()
        new_labels = self._new["labels"]
        for key, row in self._old["labels"].items():
            if row[:_PASS_KEY_LENGTH] in newly_finished:
                continue
            if key not in new_labels or _essential_columns(new_labels[key]) != _essential_columns(
                row
            ):
                return True
        new_values = _values_by_mode(self._new)
        return any(
            key[:_PASS_KEY_LENGTH] not in self._finished_after or new_values.get(key) != value
            for key, value in _values_by_mode(self._old).items()
            if key[:_PASS_KEY_LENGTH] in self._finished_before
        )

    def _changes_passes(self, fixed_columns: Sequence[int]) -> bool:
        """Return whether passes are removed, or changed in one of some columns."""
        passes = self._differences["passes"]
        return bool(passes.removed) or any(
            self._old["passes"][key][index] != self._new["passes"][key][index]
            for key in passes.changed
            for index in fixed_columns
        )

    def _adds_to_finished_work(self) -> bool:
        """Return whether passes are added on traces that the person has finished."""
        finished_works = {key[:_WORK_KEY_LENGTH] for key in self._finished_before}
        added_passes = self._differences["passes"].added
        return any(key[:_WORK_KEY_LENGTH] in finished_works for key in added_passes)

    def _changed_finished_passes(self) -> set[Key]:
        """Return the keys of finished passes with changed columns, labels, verdicts and so on."""
        new_passes = self._new["passes"]
        changed_passes = {
            key
            for key, row in self._finished_before.items()
            if _frozen_columns(new_passes.get(key)) != _frozen_columns(row)
        }
        for table in _PASS_TABLES:
            difference = self._differences[table.name]
            for key in difference.added | difference.replaced:
                changed_passes.update(self._passes_of_row(table, key))
        return changed_passes & self._finished_before.keys()

    def _extended_passes(self) -> set[Key]:
        """Return the keys of open passes with an added label, verdict, answer or note."""
        extended_passes = set[Key]()
        for table in _PASS_TABLES:
            for key in self._differences[table.name].added:
                extended_passes.update(self._passes_of_row(table, key))
        open_passes = self._old["passes"].keys() - self._finished_before.keys()
        return open_passes & extended_passes

    def _passes_of_row(self, table: Table, key: Key) -> Iterator[Key]:
        """Yield the keys of the passes to which a row belonged before or belongs now."""
        if table is not schema.labels:
            yield key[:_PASS_KEY_LENGTH]
            return
        # The key of a label is its id. Its pass is in another column, and may change.
        for state in (self._old, self._new):
            if key in state[table.name]:
                yield state[table.name][key][:_PASS_KEY_LENGTH]

    def _taxonomy_of_row(self, table: str, key: Key) -> str:
        """Return the taxonomy of a decision, guideline or study."""
        # The key lacks the annotator, the first column. The taxonomy may be in the key or in the
        # other columns.
        _annotator, *names = [column.name for column in schema.metadata.tables[table].columns]
        row = self._new[table].get(key) or self._old[table].get(key) or ()
        taxonomy: str = (*key, *row)[names.index("taxonomy")]
        return taxonomy


class _Difference:
    """The keys of the added, removed and changed rows of a table."""

    def __init__(self, old_rows: Rows, new_rows: Rows) -> None:
        self.added = new_rows.keys() - old_rows.keys()
        self.removed = old_rows.keys() - new_rows.keys()
        self.changed = {key for key, row in old_rows.items() if new_rows.get(key, row) != row}

    @property
    def replaced(self) -> set[Key]:
        """The keys of the changed and the removed rows."""
        return self.changed | self.removed


def _values_by_mode(state: State) -> Mapping[Key, str]:
    """Return the verdict on each mode of each pass; a mode with a label is present."""
    values = {key: row[0] for key, row in state["verdicts"].items()}
    return values | {
        (*row[:_PASS_KEY_LENGTH], row[_MODE_INDEX]): "present" for row in state["labels"].values()
    }


def _essential_columns(label: Key) -> Key:
    return tuple(value for index, value in enumerate(label) if index not in _INCIDENTAL_COLUMNS)


def _column_index(table: Any, column: str) -> int:
    """Return the index of a column in a row without its key."""
    names = [table_column.name for table_column in table.columns]
    return names.index(column) - len(table.primary_key)


_WORK_KEY_LENGTH: Final = 2
"""The number of columns (trace, taxonomy) that identify an annotator's work on a trace."""
_PASS_KEY_LENGTH: Final = 3
"""The number of columns (trace, taxonomy, pass) that identify a pass of an annotator."""
_MODE_INDEX: Final = _column_index(schema.labels, "mode")
_INCIDENTAL_COLUMNS: Final = [
    _column_index(schema.labels, name) for name in ("created_at", "origin")
]
"""The columns of a judge's label that may differ between two machines."""
_FINISHED_INDEX: Final = _column_index(schema.passes, "finished_at")
_REVEALED_INDEX: Final = _column_index(schema.passes, "revealed_at")
_START_COLUMNS: Final = [_column_index(schema.passes, name) for name in ("kind", "withheld")]
_OPEN_COLUMNS: Final = [
    *_START_COLUMNS,
    *(_column_index(schema.passes, name) for name in ("finished_at", "judge_seen", "revealed_at")),
]
"""The start of an open pass does not count, since two copies may both have begun it."""


def _frozen_columns(row: Key | None) -> Key | None:
    """Return the columns of a finished pass that never change: all except the time of reveal."""
    return None if row is None else (*row[:_REVEALED_INDEX], *row[_REVEALED_INDEX + 1 :])


def _works_blind(state: State) -> bool:
    """Return whether the annotator works blind; False without a setting."""
    return any(row[0] for row in state["sights"].values())


def _finished_passes(state: State) -> Rows:
    """Return the rows of the finished passes by key."""
    return {key: row for key, row in state["passes"].items() if row[_FINISHED_INDEX] is not None}
