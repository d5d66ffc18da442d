"""Events: what happened, by whom, where and when; and their form in a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Final, NamedTuple

from msgspec import Meta, Struct, field

from mast_tui.labels import GREATEST_WHOLE, WholeNumber
from mast_tui.workspace.events.codec import Values, fact_source, fact_to_values, read
from mast_tui.workspace.events.types import KIND_OF, Fact, PassFinished, PassStarted, VerdictSet

IMPORT_PREFIX: Final = "import:"
"""The beginning of the ids of actions that came from a file; no key press undoes them."""


class NewEvent(NamedTuple):
    """Something that is about to be recorded.

    ``pass_number`` is None for what belongs to no pass; ``trace_id`` and ``taxonomy`` for what
    belongs to no trace. ``replaces`` are ids of events that this one makes void. With ``id`` an
    import gives an event a lasting name, so that it is recorded once however often it is imported.
    ``at`` is when it happened (ISO 8601 in UTC), None for now.
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
    """Something that was recorded.

    ``id`` is a UUID (version 7 unless an import named it), ``seq`` counts from 1 per annotator,
    ``at`` is ISO 8601 in UTC. ``action`` groups what one key press did; ``undoes`` or ``redoes``
    names the action that this one takes back or does again. ``chain`` is the hash over it and what
    the annotator did before (see ``mast_tui.workspace.events.chain``), None for judges' events.
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
    chain: str | None = None

    @property
    def kind(self) -> str:
        """The kind of the event."""
        return KIND_OF[type(self.fact)]


_ENCODER: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def payload_text(fact: Fact) -> str:
    """Return a fact's own values as JSON: ASCII, and the same for equal facts."""
    return _frequent_text(fact) if isinstance(fact, _FREQUENT) else _text_of(fact)


def _text_of(fact: Fact) -> str:
    return _ENCODER.encode(fact_to_values(fact))


_frequent_text = lru_cache(maxsize=1000)(_text_of)

_FREQUENT: Final = (VerdictSet, PassStarted, PassFinished)
"""The types of facts of which an import has many equal ones."""


def event_to_dict(event: Event) -> Values:
    """Return an event as plain values, ready for one line of JSON."""
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
        "chain": event.chain,
        "payload": fact_to_values(event.fact),
    }
    for name in ("trace_id", "taxonomy", "pass", "undoes", "redoes", "replaces", "chain"):
        if not values[name]:
            del values[name]
    return values


def event_from_dict(values: Mapping[str, object]) -> Event:
    """Return the event with the values that ``event_to_dict`` returned.

    Raises:
        InvalidRecord: The values are no event that this version knows.
    """
    context = {
        "annotator": values.get("annotator"),
        "trace_id": values.get("trace_id"),
        "taxonomy": values.get("taxonomy"),
        "pass_number": values.get("pass"),
    }
    fact = fact_source(values.get("kind"), values.get("payload"), context)
    return read({**values, "payload": fact}, Event, "event")
