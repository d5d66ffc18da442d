"""A chain of hashes over each person's events, which shows whether a history was edited.

The ``chain_hash`` of an event is a hash of its content and of the ``chain_hash`` of its
predecessor, the last event with a lower sequence number. If two copies of a workspace continue from
the same event, each branch has its own chain, also after a merge. Imported events are hashed by
their content alone, since the same file may be imported on any machine between other events.
Judges' events have no ``chain_hash``, since judges look at traces in any order.

The hash has no key. It detects changes by accident or by hand, but not forgery with this program.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby, islice
from json.encoder import encode_basestring_ascii
from operator import attrgetter
from typing import Final

from msgspec import Struct, field, structs
from sqlalchemy import Connection, bindparam, select, update

from mast_tui.labels import is_judge
from mast_tui.workspace import schema
from mast_tui.workspace.database import call_function, calls_stored_functions
from mast_tui.workspace.events.codec import fact_to_values
from mast_tui.workspace.events.model import IMPORT_PREFIX, Event, payload_text
from mast_tui.workspace.events.rows import event_to_row, readable_events
from mast_tui.workspace.events.types import KIND_OF, GuidelineSet, StudySet

LENGTH: Final = 32
"""The number of stored hexadecimal digits of a hash."""

START: Final = ""
"""The hash before the first event."""

_ENCODER: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"))

_FACTS_WITH_TRACES: Final = (StudySet, GuidelineSet)

_MOST_TRIES: Final = 200_000
"""The most attempts to find the branch of an event, over all events of a person."""

_LOCAL_NAME: Final = re.compile(r"(?:-[0-9a-f]{8})?(?:~[0-9]+)*\Z")
"""The suffix that a workspace may add to a trace's id, which is not hashed."""

_READ_PERSON: Final = (
    select(schema.events)
    .where(schema.events.c.annotator == bindparam("name"))
    .order_by(schema.events.c.seq, schema.events.c.id)
)
_EARLIER: Final = schema.events.alias("earlier")
LAST_HASH: Final = (
    select(_EARLIER.c.chain)
    .where(
        _EARLIER.c.annotator == bindparam("annotator"),
        _EARLIER.c.chain.is_not(None),
        ~_EARLIER.c.action.startswith(IMPORT_PREFIX),
    )
    .order_by(_EARLIER.c.seq.desc(), _EARLIER.c.id.desc())
    .limit(1)
    .scalar_subquery()
)
"""The hash that the next event of ``annotator`` continues; null for the first event."""

_REPLACE: Final = (
    update(schema.events)
    .where(schema.events.c.id == bindparam("new_id"))
    .values({column.name: bindparam(f"new_{column.name}") for column in schema.events.columns})
)


class ForeignEvents(Struct, frozen=True):
    """Events of another workspace, without repeats, with the check of their chains.

    Attributes:
        events: The events, sorted by annotator, sequence number and id. People's have hashes.
        first_broken: By person, the first event that does not fit its hash, or that came twice with
            different contents.
        repeat_count: The number of repeated events, of which the first ones count.
    """

    events: Sequence[Event] = ()
    first_broken: Mapping[str, Event] = field(default_factory=dict)
    repeat_count: int = 0


def has_chain(annotator: str) -> bool:
    """Return whether the events of an annotator have chains."""
    return not is_judge(annotator)


def is_linked(event: Event) -> bool:
    """Return whether the hash of an event continues the hash of its predecessor."""
    return not is_import(event.action)


def is_import(action: str) -> bool:
    """Return whether an action is an import."""
    return action.startswith(IMPORT_PREFIX)


def digest(event: Event, payload: str | None = None) -> bytes:
    """Compute the hash of an event's content, the same in every workspace.

    Args:
        event: The event.
        payload: The ``payload_text`` of the event's fact, if known.
    """
    fact = event.fact
    content_text = _context_json(
        event.annotator, KIND_OF[type(fact)], event.trace_id, event.taxonomy
    )
    if is_linked(event):  # an imported event has another sequence number and time in each workspace
        position = (
            *(event.seq, event.at, event.pass_number or None),
            *(event.action, event.undoes or None, event.redoes or None),
        )
        position_json = _ENCODER.encode([*position, event.replaces])
        content_text += "," + position_json.removeprefix("[").removesuffix("]")
    if isinstance(fact, _FACTS_WITH_TRACES):
        payload = _shared_payload(fact)
    elif payload is None:
        payload = payload_text(fact)
    hashed_text = f"[{encode_basestring_ascii(event.id)},{content_text}]{payload}"
    return hashlib.sha256(hashed_text.encode("ascii")).digest()


def next_hash(previous: str, event_digest: bytes) -> str:
    """Compute the ``chain_hash`` of an event from its content and its predecessor's hash.

    Args:
        previous: The ``chain_hash`` of the event's predecessor.
        event_digest: The ``digest`` of the event.

    Returns:
        The first ``LENGTH`` hexadecimal digits of the hash.
    """
    chained_bytes = previous.encode("utf-8", "replace") + event_digest
    return hashlib.sha256(chained_bytes).hexdigest()[:LENGTH]


def with_chain_hash(event: Event, previous: str, payload: str | None = None) -> Event:
    """Add the ``chain_hash`` to an event.

    Args:
        event: The event.
        previous: The hash of the event's predecessor, not used for an imported event.
        payload: The ``payload_text`` of the event's fact, if known.
    """
    predecessor = previous if is_linked(event) else START
    return structs.replace(event, chain_hash=next_hash(predecessor, digest(event, payload)))


def hash_to_continue(event: Event, previous: str) -> str:
    """Return the hash that the next event continues.

    This is the hash of ``event``, or ``previous`` if ``event`` is imported or has no hash.

    Args:
        event: The event.
        previous: The hash that ``event`` itself would continue.
    """
    return event.chain_hash if event.chain_hash is not None and is_linked(event) else previous


def with_chain_hashes(events: Iterable[Event]) -> Iterator[Event]:
    """Yield the events of one person with their hashes; missing ones are computed.

    The events must be complete, and sorted by sequence number and id.
    """
    last_hash = START
    # Merged branches may share sequence numbers. Each event continues the hash of the last event
    # with a lower number.
    for _, events_of_seq in groupby(events, key=attrgetter("seq")):
        previous = last_hash
        for event in events_of_seq:
            if event.chain_hash is None:
                event = with_chain_hash(event, previous)
            last_hash = hash_to_continue(event, last_hash)
            yield event


def first_break(events: Iterable[Event]) -> Event | None:
    """Return the first event of one person with a wrong hash, or None.

    A wrong hash shows that the event or an earlier event was changed or deleted. Events without a
    hash are ignored. The result may be a correct event once ``_MOST_TRIES`` are used up.

    Args:
        events: The person's events, sorted by sequence number and id.
    """
    # In merged branches an event may follow any event with a lower sequence number, so all are
    # tried, the last one first. Most events follow the last one, so only further tries are limited.
    earlier_hashes = [START]
    remaining_tries = _MOST_TRIES
    hashed_events = (event for event in events if event.chain_hash is not None)
    for _, group in groupby(hashed_events, key=attrgetter("seq")):
        events_of_seq = list(group)
        for event in events_of_seq:
            predecessors = reversed(earlier_hashes) if is_linked(event) else (START,)
            failed_tries = _failed_tries(event, islice(predecessors, remaining_tries + 1))
            if failed_tries is None:
                return event
            remaining_tries -= failed_tries
        earlier_hashes += [
            event.chain_hash for event in events_of_seq if event.chain_hash and is_linked(event)
        ]
    return None


def _failed_tries(event: Event, predecessors: Iterable[str]) -> int | None:
    """Return how many hashes come before the one that an event continues; None if none fits."""
    event_digest = digest(event)
    fits = (next_hash(previous, event_digest) == event.chain_hash for previous in predecessors)
    return next((number for number, is_predecessor in enumerate(fits) if is_predecessor), None)


def with_checked_chains(events: Iterable[Event]) -> ForeignEvents:
    """Sort the events of another workspace, remove repeats, and check and complete the hashes."""
    unique: dict[str, Event] = {}
    repeats = 0
    broken = dict[str, Event]()
    for event in events:
        first_copy = unique.setdefault(event.id, event)
        if first_copy is not event:
            repeats += 1
            # Different contents under one id show that one copy was edited.
            if _without_hash(first_copy) != _without_hash(event):
                broken.setdefault(event.annotator, event)
    ordered = sorted(unique.values(), key=lambda event: (event.annotator, event.seq, event.id))
    examined_events = list[Event]()
    for name, events_by_name in groupby(ordered, key=attrgetter("annotator")):
        annotator_events = list(events_by_name)
        if not has_chain(name):
            examined_events += map(_without_hash, annotator_events)
            continue
        broken_event = first_break(annotator_events)
        if broken_event is not None:
            broken.setdefault(name, broken_event)
        examined_events += with_chain_hashes(annotator_events)
    return ForeignEvents(examined_events, broken, repeats)


def _without_hash(event: Event) -> Event:
    return structs.replace(event, chain_hash=None)


def edited_histories(connection: Connection, annotators: Iterable[str]) -> tuple[Event, ...]:
    """Return the first event with a wrong hash, for each person with such an event.

    Args:
        connection: An open connection.
        annotators: The annotators to check; judges are left out.
    """
    breaks = (
        first_break(_events_of_person(connection, name)) for name in annotators if has_chain(name)
    )
    return tuple(event for event in breaks if event is not None)


def rebuild_chain(connection: Connection, annotator: str) -> None:
    """Compute and store all hashes of a person's events anew.

    Args:
        connection: An open transaction.
        annotator: The person; for a judge nothing happens.
    """
    if not has_chain(annotator):
        return
    events = map(_without_hash, _events_of_person(connection, annotator))
    replace_events(connection, list(with_chain_hashes(events)))


def replace_events(connection: Connection, events: Sequence[Event]) -> None:
    """Replace stored events by other versions; the caller updates the state tables.

    Args:
        connection: An open transaction.
        events: The new versions, with the ids of the stored events.
    """
    rows = [event_to_row(event, payload_text(event.fact)) for event in events]
    if calls_stored_functions(connection):
        values = [tuple(row.values()) for row in rows]
        call_function(connection, "replace_event", schema.events, values)
    elif rows:
        connection.execute(
            _REPLACE, [{f"new_{name}": value for name, value in row.items()} for row in rows]
        )


def _events_of_person(connection: Connection, annotator: str) -> Iterator[Event]:
    """Yield one person's readable events in order."""
    return readable_events(connection.execute(_READ_PERSON, {"name": annotator}).mappings())


@lru_cache(maxsize=1000)
def _context_json(annotator: str, kind: str, trace_id: str | None, taxonomy: str | None) -> str:
    """Return the annotator, kind, trace and taxonomy as JSON, which many events share."""
    trace_text = _json_of(_shared_trace_name(trace_id))
    return f'{_json_of(annotator)},"{kind}",{trace_text},{_json_of(taxonomy or None)}'


@lru_cache(maxsize=1000)
def _json_of(text: str | None) -> str:
    return "null" if text is None else encode_basestring_ascii(text)


@lru_cache(maxsize=1000)
def _shared_trace_name(trace_id: str | None) -> str | None:
    return None if not trace_id else _LOCAL_NAME.sub("", trace_id, count=1)


def _shared_payload(fact: StudySet | GuidelineSet) -> str:
    """Return a fact as JSON, with trace ids without the suffixes of a workspace."""
    values = fact_to_values(fact)
    for document in (values["before"], values["after"]):
        if isinstance(document, dict):
            if "trace_id" in document:
                document["trace_id"] = _shared_trace_name(document["trace_id"])
            for batch in (*document.get("batches", ()), *document.get("releases", ())):
                batch["traces"] = [_shared_trace_name(trace_id) for trace_id in batch["traces"]]
    return _ENCODER.encode(values)
