"""Decisions, guidelines and studies in force, and those that another person's entries replace.

Every annotator writes them for all. Of several entries on one thing the latest is in force, by any
author, so a merge can replace one person's decision without an event in that person's name.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, select

from mast_tui.gold.model import Decision
from mast_tui.gold.overlaps import overlap
from mast_tui.labels import VerdictValue
from mast_tui.workspace import schema
from mast_tui.workspace.events.codec import decision_from_values

Key = tuple[Any, ...]
Rows = Mapping[Key, Key]
"""The rows of one annotator in a state table: the columns outside the key by those in it."""

_WRITTEN_AT: Final = {
    schema.decisions: "decided_at",
    schema.guidelines: "written_at",
    schema.studies: "set_at",
}
SHARED_TABLES: Final = tuple(table.name for table in _WRITTEN_AT)
"""The tables of which one row is in force for each key, by any author."""


class DatedEntry(NamedTuple):
    """A decision, guideline or study with its time and author, which order it among others."""

    at: str
    annotator: str
    document: str

    @property
    def rank(self) -> tuple[str, str]:
        """The order among entries on one thing: the highest is in force."""
        return self.at, self.annotator


InForce = Mapping[tuple[str, Key], DatedEntry]
"""The entries in force, by table and key."""


def entries_in_force(connection: Connection) -> InForce:
    """Read the decisions, guidelines and studies that are in force."""
    entries: dict[tuple[str, Key], DatedEntry] = {}
    for table in _WRITTEN_AT:
        rows = connection.execute(select(table)).all()
        keys = len(table.primary_key)
        for row in rows:
            entry = _entry(table.name, row[0], tuple(row[keys:]))
            key = (table.name, tuple(row[1:keys]))
            if key not in entries or entries[key].rank < entry.rank:
                entries[key] = entry
    return entries


def replaced_by(
    annotator: str, in_force: InForce, old: Mapping[str, Rows], new: Mapping[str, Rows]
) -> dict[str, dict[str, int]]:
    """Count the entries in force that new rows of an annotator replace.

    Args:
        annotator: The author of the rows.
        in_force: The entries in force before the new rows.
        old: The author's rows before, by table.
        new: The author's rows now, by table.

    Returns:
        The number of replaced entries by author and table. The annotator's own entries count only
        if a decision on another item replaces them.
    """
    replaced: set[tuple[str, Key]] = set()
    decisions: dict[Key, DatedEntry] = {}
    for table in SHARED_TABLES:
        for key, row in new[table].items():
            if old[table].get(key) == row:
                continue
            entry = _entry(table, annotator, row)
            current = in_force.get((table, key))
            if current is not None and current.annotator != annotator:
                if current.rank > entry.rank:
                    continue  # the new row is earlier and not in force
                replaced.add((table, key))
            if table == schema.decisions.name:
                decisions[key] = entry
    replaced.update(
        (schema.decisions.name, key) for key in _decisions_on_same_mode(decisions, in_force)
    )
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for table, key in replaced:
        counts[in_force[table, key].annotator][table] += 1
    return {name: dict(count) for name, count in sorted(counts.items())}


def _entry(table: str, annotator: str, row: Key) -> DatedEntry:
    """Return the entry with the columns outside the key."""
    columns = [column.name for column in schema.metadata.tables[table].columns]
    values = dict(zip(columns[len(columns) - len(row) :], row, strict=True))
    time_column = next(
        name for shared_table, name in _WRITTEN_AT.items() if shared_table.name == table
    )
    return DatedEntry(values[time_column], annotator, values["document"])


def _decisions_on_same_mode(new: Mapping[Key, DatedEntry], in_force: InForce) -> Iterator[Key]:
    """Yield decisions on other items of the same mode that lose their effect.

    The verdict and the places of a mode are separate items, but gold has places only if the verdict
    is present, and a later decision on places can replace one that came with a verdict.
    """
    traces = {key[:2] for key in new}
    decisions: dict[Key, list[tuple[Key, DatedEntry, Decision]]] = defaultdict(list)
    for (table, key), entry in in_force.items():
        if table == schema.decisions.name and key[:2] in traces:
            decision = _decision(entry)
            decisions[*key[:2], decision.mode].append((key, entry, decision))
    for key, entry in new.items():
        decision = _decision(entry)
        for other_key, other_entry, other in decisions[*key[:2], decision.mode]:
            if other_key != key and _outweighs(entry, decision, other_entry, other):
                yield other_key


def _outweighs(
    entry: DatedEntry, decision: Decision, known_entry: DatedEntry, known_decision: Decision
) -> bool:
    """Check if a new decision on another item of a mode takes effect from a known one.

    The order of spans is unknown here, so any later place counts against another author's verdict.
    """
    if decision.is_verdict:
        return True
    if (
        not known_decision.is_verdict
        or known_decision.value is not VerdictValue.PRESENT
        or not known_decision.targets
    ):
        return False
    if entry.rank < known_entry.rank:
        return False
    if entry.annotator != known_entry.annotator:
        return True
    return any(overlap(a, b) for a in _places(decision) for b in known_decision.targets)


def _places(decision: Decision) -> Iterable[Any]:
    """Return the places of a decision, and those in the opinions that it decides."""
    return (*decision.targets, *(target for opinion in decision.said for target in opinion.targets))


def _decision(entry: DatedEntry) -> Decision:
    return decision_from_values(json.loads(entry.document))
