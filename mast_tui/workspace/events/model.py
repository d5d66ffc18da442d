"""Events: what happened, by whom, where and when; and their form in a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from mast_tui.workspace.events.codec import fact_from, fact_to_dict, kind_of
from mast_tui.workspace.events.fields import Fields
from mast_tui.workspace.events.layout import Values, compact
from mast_tui.workspace.events.types import EventKind, Fact, PassFinished, PassStarted, VerdictSet

IMPORT_PREFIX: Final = "import:"
"""Actions whose id begins so came from a file: no key press of a person takes them back."""


class NewEvent(NamedTuple):
    """Something that is about to be recorded.

    ``pass_number`` is None for what belongs to no pass; ``trace_id`` and ``taxonomy`` for what
    belongs to no trace. ``replaces`` are ids of events that this one makes void. With ``id`` an
    import gives an event a lasting name, so that it is recorded once however often it comes.
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


class Event(NamedTuple):
    """Something that was recorded.

    ``id`` is a UUID (version 7 unless an import named it), ``seq`` counts from 1 per annotator,
    ``at`` is ISO 8601 in UTC. ``action`` groups what one key press did; ``undoes`` or ``redoes``
    names the action that this one takes back or does again. ``chain`` is the hash over it and what
    the annotator did before (see ``mast_tui.workspace.events.chain``), None for judges' events.
    """

    id: str
    annotator: str
    seq: int
    at: str
    trace_id: str | None
    taxonomy: str | None
    pass_number: int | None
    fact: Fact
    action: str
    undoes: str | None = None
    redoes: str | None = None
    replaces: tuple[str, ...] = ()
    chain: str | None = None

    @property
    def kind(self) -> EventKind:
        """What sort of thing happened."""
        return kind_of(self.fact)


_ENCODER: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def payload_text(fact: Fact) -> str:
    """The fact's own values as JSON, the same for equal facts; ASCII, whatever it holds."""
    return _often_said(fact) if isinstance(fact, _OFTEN_ALIKE) else _text_of(fact)


def _text_of(fact: Fact) -> str:
    return _ENCODER.encode(fact_to_dict(fact))


_often_said = lru_cache(maxsize=1000)(_text_of)

_OFTEN_ALIKE: Final = (VerdictSet, PassStarted, PassFinished)
"""The same few of these are most of what an import brings."""


def event_to_dict(event: Event) -> Values:
    """An event as plain values, fit for one line of JSON."""
    return {
        "id": event.id,
        "annotator": event.annotator,
        "seq": event.seq,
        "at": event.at,
        "kind": event.kind.value,
        **compact(
            {
                "trace_id": event.trace_id,
                "taxonomy": event.taxonomy,
                "pass": event.pass_number,
                "undoes": event.undoes,
                "redoes": event.redoes,
                "replaces": list(event.replaces),
            }
        ),
        "action": event.action,
        **compact({"chain": event.chain}),
        "payload": fact_to_dict(event.fact),
    }


def event_from_dict(values: Mapping[str, object]) -> Event:
    """The event that ``event_to_dict`` made these values of; raises ``ValueError`` in words."""
    fields = Fields(values, "event")
    annotator = fields.text("annotator")
    trace_id = fields.text_or_none("trace_id")
    taxonomy = fields.text_or_none("taxonomy")
    pass_number = fields.whole_or_none("pass")
    return Event(
        id=fields.text("id"),
        annotator=annotator,
        seq=fields.whole("seq"),
        at=fields.text("at"),
        trace_id=trace_id,
        taxonomy=taxonomy,
        pass_number=pass_number,
        fact=fact_from(
            fields.word("kind", EventKind),
            fields.child("payload"),
            annotator=annotator,
            trace_id=trace_id,
            taxonomy=taxonomy,
            pass_number=pass_number,
        ),
        action=fields.text("action"),
        undoes=fields.text_or_none("undoes"),
        redoes=fields.text_or_none("redoes"),
        replaces=fields.texts("replaces"),
        chain=fields.text_or_none("chain"),
    )
