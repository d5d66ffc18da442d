"""The records of a vendor's export, grouped by trace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from mast_tui.traces.io.decoding import as_utf8
from mast_tui.traces.io.json_values import as_text, identifier
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import Problem
from mast_tui.traces.readers.document_traces import Record, records_by_line
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_of,
    items_of,
    located_items,
    value_in,
    without,
)
from mast_tui.traces.readers.vendors.tables import VENDORS, Paths, Vendor

_COMPARED_ENTRIES: Final = 5
_ABSENT: Final = object()
NOTHING: Final[tuple[object, ...]] = (None, {}, [], "")
"""Values that mean the same as a missing field."""


@dataclass(frozen=True, slots=True)
class VendorRecord:
    """A record, its id, its parent's id, and its location; a missing id is the location."""

    id: str
    parent: str | None
    value: Fields
    location: str


@dataclass(slots=True)
class TraceRecords:
    """The records of one trace by their ids.

    ``trace_facts`` is the record of the trace itself; ``id`` is the vendor's id, if it has one.
    """

    id: str | None
    by_id: dict[str, VendorRecord] = field(default_factory=dict)
    trace_facts: Fields = field(default_factory=dict)
    location: str = ""

    @property
    def values(self) -> list[Fields]:
        """The facts of the trace and the value of each record."""
        return [self.trace_facts, *(record.value for record in self.by_id.values())]

    def add(self, record: VendorRecord) -> None:
        """Add a record, or fill the gaps of an earlier record with the same id."""
        earlier_record = self.by_id.get(record.id)
        if earlier_record is None:
            self.by_id[record.id] = record
            return
        earlier_fields = {
            name: value for name, value in earlier_record.value.items() if value not in NOTHING
        }
        merged_value = {**record.value, **earlier_fields}
        parent = earlier_record.parent or record.parent
        self.by_id[record.id] = VendorRecord(
            earlier_record.id, parent, merged_value, earlier_record.location
        )


def value_at(record: object, paths: Paths) -> object:
    """Return the first value that is not None at one of the paths; None if there is none.

    Args:
        record: The JSON value of a record, or of a trace.
        paths: The paths from the value, in the form that ``tables`` describes.
    """
    return next(values_at(record, paths), None)


def values_at(record: object, paths: Paths) -> Iterator[object]:
    """Yield the values that are not None at the paths.

    Args:
        record: The JSON value of a record, or of a trace.
        paths: The paths from the value, in the form that ``tables`` describes.
    """
    for path in paths:
        value = _value_at_path(record, path)
        if value is not _ABSENT and value is not None:
            yield value


def text_at(record: object, paths: Paths) -> str | None:
    """Return the first text, or integer as text, at one of the paths; None if there is none.

    Args:
        record: The JSON value of a record, or of a trace.
        paths: The paths from the value, in the form that ``tables`` describes.
    """
    return next(filter(None, map(identifier, values_at(record, paths))), None)


def _value_at_path(record: object, path: str) -> object:
    """Return the value at a path, else ``_ABSENT``.

    JSON texts on the way are parsed. The step ``*`` leads to the first field of an object.
    """
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
    """Return the vendor that wrote the first records of a file; None if no vendor did."""
    first_values = source.json_lines
    if first_values:
        # The comparison of marks costs a hundredth of that of records. Without a line feed in the
        # head, the first record is longer than the head.
        data = as_utf8(source.head) if b"\n" in source.head else source.utf8
        for vendor in VENDORS:
            if _has_marks(vendor, data) and any(
                _is_of_vendor(vendor, value) for value in first_values
            ):
                return vendor
        return None

    if as_utf8(source.head).lstrip()[:1] not in (b"{", b"["):
        return None
    possible_vendors = [vendor for vendor in VENDORS if _has_marks(vendor, source.utf8)]
    if not possible_vendors:
        return None
    document = source.json  # slow, so only for possible vendors
    return next((vendor for vendor in possible_vendors if _is_of_vendor(vendor, document)), None)


def _has_marks(vendor: Vendor, data: bytes) -> bool:
    return all(any(mark in data for mark in group) for group in vendor.marks)


def _is_of_vendor(vendor: Vendor, value: object) -> bool:
    """Return whether one of the first entries in ``value`` is of this vendor."""
    first_entries = islice(_traces_and_records(vendor, value, ""), _COMPARED_ENTRIES)
    return any(
        _is_record(vendor, entry) or _is_trace(vendor, entry) for _location, entry in first_entries
    )


def _is_record(vendor: Vendor, value: object) -> bool:
    return vendor.allows_bare_records and _has_required_paths(value, vendor.required_paths)


def _has_required_paths(value: object, path_groups: Sequence[Paths]) -> bool:
    """Return whether an object has a value at one path of each group."""
    return isinstance(value, Mapping) and all(
        any(_value_at_path(value, path) is not _ABSENT for path in group) for group in path_groups
    )


def _is_trace(vendor: Vendor, value: object) -> bool:
    """Return whether a value lists records of the vendor, or has a trace's facts."""
    listed_records = islice(_listed_records(vendor, value), _COMPARED_ENTRIES)
    first_records = [record for _pointer, record in listed_records]
    if any(_has_required_paths(record, vendor.required_paths) for record in first_records):
        return True
    facts = _facts_of_trace(vendor, value)
    return bool(vendor.required_fact_paths) and _has_required_paths(
        facts, vendor.required_fact_paths
    )


def _listed_records(vendor: Vendor, trace: object) -> Iterator[tuple[str, object]]:
    """Yield the records in the lists of a trace with their JSON pointers."""
    for path in vendor.record_lists:
        yield from located_items(value_at(trace, (path,)), f"/{path}")


def _facts_of_trace(vendor: Vendor, value: object) -> Fields:
    """Return the object with the facts of a whole trace."""
    fields = fields_of(value)
    facts = value_at(fields, vendor.fact_paths)
    return facts if isinstance(facts, Mapping) else fields


def _traces_and_records(
    vendor: Vendor, value: object, location: str
) -> Iterator[tuple[str, object]]:
    """Yield the traces and records in a JSON value with their locations.

    They are the items of a list, or of the lists in the vendor's ``containers`` fields, else the
    value itself.
    """
    if isinstance(value, list):
        for item_location, item in located_items(value, location):
            if isinstance(item, Mapping):
                yield from _traces_and_records(vendor, item, item_location)
            else:
                yield item_location, item
        return
    fields = fields_of(value)
    list_names = [name for name in vendor.containers if isinstance(fields.get(name), list)]
    if not list_names or _is_record(vendor, value) or _is_trace(vendor, value):
        yield location or "/", value
        return
    for name in list_names:
        yield from _traces_and_records(vendor, fields[name], f"{location}/{name}")


def traces_in(source: Source, vendor: Vendor, problems: list[Problem]) -> list[TraceRecords]:
    """Return the traces of an export in the order of their first records.

    Args:
        source: The file.
        vendor: The vendor.
        problems: The list to which problems are added.
    """
    collector = _TraceCollector(vendor, problems)
    documents: Iterable[Record] = (
        records_by_line(source, problems) if source.json_lines else [Record(source.json)]
    )
    for document in documents:
        for pointer, entry in _traces_and_records(vendor, document.value, ""):
            collector.add(entry, _nested_location(document.location, pointer))
    return collector.traces()


class _TraceCollector:
    """The traces and records of an export so far."""

    def __init__(self, vendor: Vendor, problems: list[Problem]) -> None:
        self._vendor = vendor
        self._problems = problems
        self._facts_by_trace: dict[str, tuple[Fields, str]] = {}
        """The facts of each trace and their location, by the trace's id."""
        self._records: list[tuple[VendorRecord, str | None]] = []
        """The records, each with the id of its trace; None if the record names no trace."""

    def add(self, entry: object, location: str) -> None:
        """Add a trace with its records, or a record outside of a trace; report anything else.

        Args:
            entry: The trace or record.
            location: The location of the entry in the file.
        """
        if not isinstance(entry, Mapping):
            self._report_foreign_entry(location)
            return
        # Foreign JSON has no id.
        has_id = bool(text_at(entry, self._vendor.fields.id) or _ids_from_root(entry))
        if _is_trace(self._vendor, entry):
            self._add_trace(entry, location)
        elif self._vendor.allows_bare_records and has_id:
            self._add_record(entry, location, trace_id=None)
        else:
            self._report_foreign_entry(location)

    def _report_foreign_entry(self, location: str) -> None:
        self._problems.append(Problem(location, f"no record of {self._vendor.name}, left out"))

    def _add_trace(self, entry: Fields, location: str) -> None:
        """Add the facts and the records of a trace; report listed items that are no records."""
        vendor = self._vendor
        facts = _facts_of_trace(vendor, entry)
        trace_id = text_at(facts, vendor.trace_id) or text_at(entry, vendor.trace_id) or location
        self._facts_by_trace.setdefault(trace_id, (facts, location))
        for record_pointer, record in _listed_records(vendor, entry):
            record_location = _nested_location(location, record_pointer)
            if isinstance(record, Mapping):
                self._add_record(record, record_location, trace_id)
            elif not isinstance(record, str):  # a list of traces may have only ids of records
                self._report_foreign_entry(record_location)

    def _add_record(self, record: Fields, location: str, trace_id: str | None) -> None:
        """Add a record and the records nested in it.

        The ids of its parent and its trace are in the record, in the object around it, or in
        LangSmith's ``dotted_order``. ``trace_id`` is the id of the trace around the record.
        """
        fields = self._vendor.fields
        children = self._vendor.children
        stack: list[tuple[Fields, str, str | None, str | None]] = [
            (record, location, trace_id, None)
        ]
        while stack:
            record, location, trace_id, outer_id = stack.pop()
            if self._vendor.has_end_records:
                record = _with_end(record)
            ids_from_root = _ids_from_root(record)
            last_id = ids_from_root[-1] if ids_from_root else location
            record_id = text_at(record, fields.id) or last_id
            parent_id = text_at(record, fields.parent) or outer_id
            if parent_id is None and len(ids_from_root) > 1:
                parent_id = ids_from_root[-2]
            trace_id = trace_id or text_at(record, fields.trace)
            if trace_id is None and ids_from_root:
                trace_id = ids_from_root[0]
            self._records.append((VendorRecord(record_id, parent_id, record, location), trace_id))

            nested_records = items_of(value_in(record.get(children)) if children else None)
            # The children are pushed in reverse, so that the first child is popped first.
            for child_index in reversed(range(len(nested_records))):
                child = nested_records[child_index]
                child_location = _nested_location(location, f"/{children}/{child_index}")
                if isinstance(child, Mapping):
                    stack.append((child, child_location, trace_id, record_id))
                else:
                    self._report_foreign_entry(child_location)

    def traces(self) -> list[TraceRecords]:
        """Return all traces; a record that names no trace belongs to the trace of its parent."""
        traces: dict[str, TraceRecords] = {}
        for trace_id, (facts, location) in self._facts_by_trace.items():
            # The location was the replacement of a missing id.
            native_id = None if trace_id == location else trace_id
            traces[trace_id] = TraceRecords(native_id, trace_facts=facts, location=location)

        trace_by_record = {
            record.id: trace_id for record, trace_id in self._records if trace_id is not None
        }
        parents = {record.id: record.parent for record, _trace_id in self._records}
        for record, own_trace_id in self._records:
            trace_id = own_trace_id or _trace_of_ancestors(record.id, parents, trace_by_record)
            native_id = None if trace_id == record.location else trace_id
            new_trace = TraceRecords(native_id, location=record.location)
            traces.setdefault(trace_id, new_trace).add(record)
        return list(traces.values())


def _with_end(event: Fields) -> Fields:
    """Return an ATOF event as a part of the record of its call; a mark is a call without input."""
    if event.get("scope_category") == "start":
        data = fields_of(event.get("data"))
        is_request = data.keys() == {"content", "headers"}
        return {**event, "data": data["content"]} if is_request else event
    record = {**without(event, ("data",)), "end": event}
    if event.get("scope_category") == "end":
        return without(record, ("timestamp",))
    is_part_of_answer = event.get("name") == "llm.chunk"
    return {**record, "category": "chunk" if is_part_of_answer else "mark"}


def _nested_location(location: str, pointer: str) -> str:
    """Return the location of the value at ``pointer`` in the value at ``location``."""
    if pointer == "/":
        return location
    # A location is ``/data/0``, or in a file of lines ``line 3`` or ``line 3 /data/0``.
    is_whole_line = location.startswith("line ") and "/" not in location
    if is_whole_line:
        return f"{location} {pointer}"
    return pointer if location == "/" else f"{location}{pointer}"


def _trace_of_ancestors(
    record_id: str, parents: Mapping[str, str | None], trace_by_record: dict[str, str]
) -> str:
    """Return the trace of the nearest ancestor that names a trace, else the id of the root.

    It is recorded in ``trace_by_record`` for all visited records.
    """
    visited_ids: dict[str, None] = {}
    ancestor_id = record_id
    while ancestor_id not in trace_by_record and ancestor_id not in visited_ids:
        visited_ids[ancestor_id] = None
        parent_id = parents.get(ancestor_id)
        if parent_id is None or parent_id not in parents:
            break
        ancestor_id = parent_id
    trace_id = trace_by_record.get(ancestor_id, ancestor_id)
    trace_by_record.update(dict.fromkeys(visited_ids, trace_id))
    return trace_id


def _ids_from_root(record: Fields) -> list[str]:
    """Return the ids from the root to a record, from LangSmith's ``dotted_order``."""
    # Each part is a time that ends with Z, and an id.
    parts = (as_text(record.get("dotted_order")) or "").split(".")
    return [part_id for part in parts if (part_id := part.partition("Z")[2])]
