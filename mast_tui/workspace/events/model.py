"""Events, with their ids and their form in a file."""

from __future__ import annotations

import hashlib
import json
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated, Final, NamedTuple

from msgspec import Meta, Struct, field, structs

from mast_tui.labels import GREATEST_WHOLE, WholeNumber
from mast_tui.workspace.events.codec import Values, fact_to_values, read, tagged_fact_values
from mast_tui.workspace.events.types import KIND_OF, Fact, PassFinished, PassStarted, VerdictSet

_RANDOM_BITS: Final = 74
_STEP_BITS: Final = 32
_VARIANTS: Final = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}
"""The variant digit of a UUID, by the digit of the hash at its place."""


def uuid7(milliseconds: int, low: int) -> str:
    """Return a UUID of version 7 (RFC 9562).

    Args:
        milliseconds: A Unix time in milliseconds.
        low: The other 74 bits.
    """
    # From the top: 48 bits of time, the version 7, 12 bits of ``low``, the variant 0b10, and the
    # other 62 bits of ``low``.
    value = (milliseconds & ((1 << 48) - 1)) << 80
    value |= 0x7 << 76 | (low >> 62) << 64 | 0b10 << 62 | low & ((1 << 62) - 1)
    digits = f"{value:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def uuid5(namespace: bytes, name: str) -> str:
    """Return a UUID of version 5 (RFC 9562), faster than ``uuid.uuid5``.

    Args:
        namespace: The bytes of the namespace's UUID.
        name: The name.
    """
    data = namespace + name.encode()
    digits = hashlib.sha1(data, usedforsecurity=False).hexdigest()
    variant = _VARIANTS[digits[16]]
    return f"{digits[:8]}-{digits[8:12]}-5{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:32]}"


class IdSource:
    """A source of growing UUIDs of version 7, even if the clock is set back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = (0, 0)

    def new(self) -> str:
        """Return a new id, greater than all earlier ids."""
        with self._lock:
            now = time.time_ns() // 1_000_000
            milliseconds, low = self._last
            if now > milliseconds:
                # The top bit is 0, which leaves room for more ids in this millisecond.
                self._last = (now, secrets.randbits(_RANDOM_BITS - 1))
            else:
                # A second id in one millisecond is greater by an unpredictable number.
                low += 1 + secrets.randbits(_STEP_BITS)
                if low >> _RANDOM_BITS:  # there is no room left, so the next millisecond is used
                    milliseconds += 1
                    low = secrets.randbits(_RANDOM_BITS - 1)
                self._last = (milliseconds, low)
            return uuid7(*self._last)


def now() -> str:
    """Return the time as ISO 8601 in UTC with microseconds, always of the same length."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


IMPORT_PREFIX: Final = "import:"
"""The beginning of the actions of imports, which no key press undoes."""


class NewEvent(NamedTuple):
    """An event that is not recorded yet.

    Attributes:
        trace_id: The trace; None for an event without a trace.
        taxonomy: The taxonomy; None for an event without one.
        pass_number: The pass; None for an event without one.
        replaces: The ids of events that this event makes void.
        id: The id of an imported event, which is recorded only once; None for a new id.
        at: The time (ISO 8601 in UTC); None for now.
    """

    annotator: str
    trace_id: str | None
    taxonomy: str | None
    pass_number: int | None
    fact: Fact
    replaces: tuple[str, ...] = ()
    id: str | None = None
    at: str | None = None


class Event(Struct, frozen=True, kw_only=True):
    """A recorded event.

    Attributes:
        id: A UUID of version 7, or another id from an import.
        seq: The sequence number among the annotator's events, from 1.
        at: The time, ISO 8601 in UTC.
        action: The action that groups the events of one key press.
        undoes: The action that this one undoes, if any.
        redoes: The action that this one redoes, if any.
        replaces: The ids of events that this event makes void.
        chain_hash: The hash over this event and the annotator's earlier events (see
            ``mast_tui.workspace.events.chain``); None for judges' events.
    """

    id: str
    annotator: str
    seq: Annotated[int, Meta(ge=1, le=GREATEST_WHOLE)]
    at: str
    trace_id: str | None = None
    taxonomy: str | None = None
    pass_number: WholeNumber | None = field(default=None, name="pass")
    fact: Fact = field(name="payload")
    action: str
    undoes: str | None = None
    redoes: str | None = None
    replaces: tuple[str, ...] = ()
    chain_hash: str | None = field(default=None, name="chain")

    @property
    def kind(self) -> str:
        """The kind of the event."""
        return KIND_OF[type(self.fact)]


class NewChange(NamedTuple):
    """The events of one action that are not recorded yet.

    Attributes:
        events: The events, in order.
        action: The id of the action.
        undoes: The action that this one undoes, if any.
        redoes: The action that this one redoes, if any.
        known_seq: The sequence number of the last event that the caller knows of the first event's
            annotator, trace and taxonomy; None if the change is valid after any event.
    """

    events: Sequence[NewEvent]
    action: str
    undoes: str | None = None
    redoes: str | None = None
    known_seq: int | None = None

    def recorded(self, event: NewEvent, seq: int, new_id: Callable[[], str], time: str) -> Event:
        """Return an event in its recorded form, without its chain.

        Args:
            event: The event.
            seq: The sequence number.
            new_id: Makes an id for an event without an id.
            time: The time for an event without a time.
        """
        return Event(
            id=event.id or new_id(),
            annotator=event.annotator,
            seq=seq,
            at=event.at or time,
            trace_id=event.trace_id,
            taxonomy=event.taxonomy,
            pass_number=event.pass_number,
            fact=event.fact,
            action=self.action,
            undoes=self.undoes,
            redoes=self.redoes,
            replaces=event.replaces,
        )


_ENCODER: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def payload_text(fact: Fact) -> str:
    """Return the values of a fact as ASCII JSON, the same for equal facts."""
    return _frequent_text(fact) if isinstance(fact, _FREQUENT) else _text_of(fact)


def _text_of(fact: Fact) -> str:
    return _ENCODER.encode(fact_to_values(fact))


_frequent_text = lru_cache(maxsize=1000)(_text_of)

_FREQUENT: Final = (VerdictSet, PassStarted, PassFinished)
"""The facts that occur many times with equal values in an import."""


def event_to_dict(event: Event) -> Values:
    """Convert an event to plain values for one line of JSON."""
    values: Values = {
        "id": event.id,
        "annotator": event.annotator,
        "seq": event.seq,
        "at": event.at,
        "kind": event.kind,
        "trace_id": event.trace_id,
        "taxonomy": event.taxonomy,
        "pass": event.pass_number,
        "undoes": event.undoes,
        "redoes": event.redoes,
        "replaces": list(event.replaces),
        "action": event.action,
        "chain": event.chain_hash,
        "payload": fact_to_values(event.fact),
    }
    for optional_name in ("trace_id", "taxonomy", "pass", "undoes", "redoes", "replaces", "chain"):
        if not values[optional_name]:
            del values[optional_name]
    return values


def event_from_dict(values: Mapping[str, object]) -> Event:
    """Convert the values that ``event_to_dict`` returned to an event.

    Raises:
        InvalidRecord: The values describe no event that this version knows.
    """
    context = {
        "annotator": values.get("annotator"),
        "trace_id": values.get("trace_id"),
        "taxonomy": values.get("taxonomy"),
        "pass_number": values.get("pass"),
    }
    fact = tagged_fact_values(values.get("kind"), values.get("payload"), context)
    return read({**values, "payload": fact}, Event, "event")


def event_on_trace(event: Event, trace_id: str) -> Event:
    """Return an event with another trace id.

    Args:
        event: The event.
        trace_id: The id of the event's trace in another workspace.
    """
    # Labels take the trace from their event when the event is read.
    return event_from_dict(event_to_dict(structs.replace(event, trace_id=trace_id)))
