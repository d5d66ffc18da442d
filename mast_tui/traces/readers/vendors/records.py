"""The records of a vendor's export, gathered by the traces that they belong to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from mast_tui.traces.io.json_values import as_text
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import Problem
from mast_tui.traces.readers.document_traces import Record, records_by_line
from mast_tui.traces.readers.json_fields import Fields, fields_of, items_of, value_in
from mast_tui.traces.readers.vendors.tables import VENDORS, Paths, Vendor

_LOOKED_AT: Final = 5
_ABSENT: Final = object()
NOTHING: Final[tuple[object, ...]] = (None, {}, [], "")
"""Values that mean the same as a missing field."""


@dataclass(frozen=True, slots=True)
class VendorRecord:
    """A record, its id (or its location, where it has none), its parent's id, and its location."""

    id: str
    parent: str | None
    value: Fields
    location: str


@dataclass(slots=True)
class TraceRecords:
    """The records of one trace by their ids, and the file's facts of the trace itself.

    ``id`` is the vendor's own, or None where nothing names the trace.
    """

    id: str | None
    by_id: dict[str, VendorRecord] = field(default_factory=dict)
    head: Fields = field(default_factory=dict)
    location: str = ""

    def add(self, record: VendorRecord) -> None:
        """Add a record; of two with one id the second adds the fields that the first lacks."""
        first = self.by_id.get(record.id)
        if first is None:
            self.by_id[record.id] = record
            return
        facts = {name: value for name, value in first.value.items() if value not in NOTHING}
        merged = {**record.value, **facts}
        parent = first.parent or record.parent
        self.by_id[record.id] = VendorRecord(first.id, parent, merged, first.location)


def value_at(record: object, paths: Paths) -> object:
    """Return the first value that is not None under the paths, which lead into JSON texts too.

    Args:
        record: A JSON value.
        paths: The paths from it, as in ``tables``.
    """
    for path in paths:
        value = _step_through(record, path)
        if value is not _ABSENT and value is not None:
            return value
    return None


def values_at(record: object, paths: Paths) -> list[object]:
    """Return the values that are not None under the paths.

    Args:
        record: A JSON value.
        paths: The paths from it, as in ``tables``.
    """
    values = (_step_through(record, path) for path in paths)
    return [value for value in values if value is not _ABSENT and value is not None]


def text_at(record: object, paths: Paths) -> str | None:
    """Return the first text, or number as text, under one of the paths.

    Args:
        record: A JSON value.
        paths: The paths from it, as in ``tables``.
    """
    for path in paths:
        value = _step_through(record, path)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if text := as_text(value):
            return text
    return None


def _step_through(record: object, path: str) -> object:
    value = record
    for step in path.split("/"):
        value = value_in(value)
        if isinstance(value, Mapping):
            value = next(iter(value.values()), _ABSENT) if step == "*" else value.get(step, _ABSENT)
        elif isinstance(value, list) and step.lstrip("-").isdigit():
            index = int(step)
            value = value[index] if -len(value) <= index < len(value) else _ABSENT
        else:
            return _ABSENT
    return value


def vendor_of(source: Source) -> Vendor | None:
    """Return the vendor whose records the first ones of the file are; None for another file."""
    lines = source.json_lines
    if lines:
        return next((v for v in VENDORS if any(_is_of_vendor(v, value) for value in lines)), None)
    if source.head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] not in (b"{", b"["):
        return None
    data = source.data
    marked = [v for v in VENDORS if all(any(mark in data for mark in g) for g in v.marks)]
    if not marked:
        return None  # before the whole document is parsed for it
    document = source.json
    return next((v for v in marked if _is_of_vendor(v, document)), None)


def _is_of_vendor(vendor: Vendor, value: object) -> bool:
    """Return whether one of the first entries in ``value`` is of this vendor."""
    looked_at = islice(_entries(vendor, value, ""), _LOOKED_AT)
    return any(
        _is_record(vendor, entry) or _is_trace(vendor, entry) for _location, entry in looked_at
    )


def _is_record(vendor: Vendor, value: object) -> bool:
    return vendor.bare and _has(value, vendor.needs)


def _has(value: object, needs: Sequence[Paths]) -> bool:
    return isinstance(value, Mapping) and all(
        any(_step_through(value, path) is not _ABSENT for path in group) for group in needs
    )


def _is_trace(vendor: Vendor, value: object) -> bool:
    members = value_at(value, vendor.members)
    if isinstance(members, list) and any(
        _has(member, vendor.needs) for member in members[:_LOOKED_AT]
    ):
        return True
    return bool(vendor.head_needs) and _has(_head(vendor, value), vendor.head_needs)


def _head(vendor: Vendor, value: object) -> Fields:
    """Return the object with a trace's own facts; an empty one where ``value`` is no object."""
    fields = fields_of(value)
    head = value_at(fields, vendor.head)
    return head if isinstance(head, Mapping) else fields


def _entries(vendor: Vendor, value: object, location: str) -> Iterator[tuple[str, object]]:
    """Yield the traces and records in a JSON value, with their JSON pointers."""
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield f"{location}/{number}", item
        return
    lists = [name for name in vendor.containers if isinstance(fields_of(value).get(name), list)]
    if not lists or _is_record(vendor, value) or _is_trace(vendor, value):
        yield location or "/", value
        return
    for name in lists:
        yield from _entries(vendor, fields_of(value)[name], f"{location}/{name}")


def traces_in(source: Source, vendor: Vendor, problems: list[Problem]) -> list[TraceRecords]:
    """Return the traces of an export in the order of their first records.

    Args:
        source: The file.
        vendor: The vendor.
        problems: The list to which problems are added.
    """
    gathering = _Gathering(vendor, problems)
    by_line = records_by_line(source, problems) if source.json_lines else None
    for record in by_line or [Record(source.json)]:
        for pointer, entry in _entries(vendor, record.value, ""):
            gathering.take(entry, _nested_location_of(record.location, pointer))
    return gathering.done()


class _Gathering:
    """The traces and records of an export so far."""

    def __init__(self, vendor: Vendor, problems: list[Problem]) -> None:
        self._vendor = vendor
        self._problems = problems
        self._heads: dict[str, tuple[Fields, str]] = {}
        self._records: list[tuple[VendorRecord, str | None]] = []

    def take(self, entry: object, location: str) -> None:
        """Add a trace with its records, or a record by itself.

        Args:
            entry: The trace or record.
            location: Its location in the file.
        """
        if not isinstance(entry, Mapping):
            self._refuse(location)
        elif _is_trace(self._vendor, entry):
            self._take_trace(entry, location)
        elif self._vendor.bare and (
            text_at(entry, self._vendor.fields.id) or _ids_from_root(entry)
        ):
            self._take_record(entry, location, None)
        else:
            self._refuse(location)

    def _refuse(self, location: str) -> None:
        self._problems.append(Problem(location, f"no record of {self._vendor.name}, left out"))

    def _take_trace(self, entry: Fields, location: str) -> None:
        vendor = self._vendor
        head = _head(vendor, entry)
        trace = text_at(head, vendor.trace_id) or text_at(entry, vendor.trace_id) or location
        self._heads.setdefault(trace, (head, location))
        members = value_at(entry, vendor.members)
        for number, member in enumerate(items_of(members)):
            member_location = _nested_location_of(location, f"/{vendor.members[0]}/{number}")
            if isinstance(member, Mapping):
                self._take_record(member, member_location, trace)
            elif not isinstance(member, str):  # a list of traces holds mere ids
                self._refuse(member_location)

    def _take_record(self, record: Fields, location: str, trace: str | None) -> None:
        """Add a record and those nested in it; deep nesting costs no stack."""
        fields = self._vendor.fields
        children = self._vendor.children
        waiting: list[tuple[Fields, str, str | None, str | None]] = [
            (record, location, trace, None)
        ]
        while waiting:
            record, location, trace, parent = waiting.pop()
            order = _ids_from_root(record)
            record_id = text_at(record, fields.id) or (order[-1] if order else location)
            above = text_at(record, fields.parent) or parent or (order[-2] if order[1:] else None)
            trace = trace or text_at(record, fields.trace) or (order[0] if order else None)
            self._records.append((VendorRecord(record_id, above, record, location), trace))
            nested = value_in(record.get(children)) if children else None
            if not isinstance(nested, list):
                continue
            for number in reversed(range(len(nested))):
                nested_location = _nested_location_of(location, f"/{children}/{number}")
                if isinstance(nested[number], Mapping):
                    waiting.append((nested[number], nested_location, trace, record_id))
                else:
                    self._refuse(nested_location)

    def done(self) -> list[TraceRecords]:
        """Return every trace; a record that names none belongs to that of its parent."""
        traces: dict[str, TraceRecords] = {}
        for trace, (head, location) in self._heads.items():
            traces[trace] = TraceRecords(
                None if trace == location else trace, head=head, location=location
            )
        trace_of = {record.id: name for record, name in self._records if name is not None}
        parents = {record.id: record.parent for record, _trace in self._records}
        for record, own_trace in self._records:
            name = own_trace or _root(record.id, parents, trace_of)
            native = None if name == record.location else name
            traces.setdefault(name, TraceRecords(native, location=record.location)).add(record)
        return list(traces.values())


def _nested_location_of(location: str, pointer: str) -> str:
    """Return the location of the value at ``pointer`` in the value at ``location``."""
    if pointer == "/":
        return location
    if location.startswith("line ") and "/" not in location:
        return f"{location} {pointer}"
    return pointer if location == "/" else f"{location}{pointer}"


def _root(record_id: str, parents: Mapping[str, str | None], trace_of: dict[str, str]) -> str:
    """Return the trace of a record that names none, and note it for all on the way up."""
    way: list[str] = []
    seen: set[str] = set()
    current = record_id
    while current not in trace_of and current not in seen:
        way.append(current)
        seen.add(current)
        above = parents.get(current)
        if above is None or above not in parents:
            break
        current = above
    trace = trace_of.get(current, current)
    trace_of.update(dict.fromkeys(way, trace))
    return trace


def _ids_from_root(record: Fields) -> list[str]:
    """Return the ids from the root down to a run, by its ``dotted_order``."""
    parts = (as_text(record.get("dotted_order")) or "").split(".")
    return [part_id for part in parts if (part_id := part.partition("Z")[2])]
