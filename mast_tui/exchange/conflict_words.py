"""What two copies of somebody's work say differently, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from mast_tui.workspace import Event, EventConflict, Workspace
from mast_tui.workspace.events.types import (
    Decided,
    Fact,
    GuidelineSet,
    LabelAdded,
    LabelChanged,
    LabelRemoved,
    ReviewSet,
    SpanNoteSet,
    VerdictSet,
)

_SHOWN = 20


def conflicts_in_words(workspace: Workspace, conflicts: Sequence[EventConflict]) -> Iterator[str]:
    """A sentence per conflict, and one for those that are too many to tell."""
    shown = conflicts[:_SHOWN]
    wanted = {event_id for conflict in shown for event_id in conflict.events}
    events = {
        event.id: event
        for name in dict.fromkeys(conflict.annotator for conflict in shown)
        for event in workspace.events(annotator=name)
        if event.id in wanted
    }
    for conflict in shown:
        said = [_words(events[name]) for name in conflict.events if name in events]
        yield (
            f"{conflict.annotator} worked in two copies at once: step {conflict.seq} is "
            f"{' in one and '.join(said)} in the other; both are kept, so look at what stands"
        )
    if len(conflicts) > len(shown):
        yield f"and {len(conflicts) - len(shown)} more such steps"


def told_differently(workspace: Workspace, theirs: Iterable[Event], altered: Sequence[str]) -> int:
    """How many of the events that are here already say something else in the file.

    The same file imported on two machines makes the same events at other hours; those say the
    same.
    """
    if not altered:
        return 0
    wanted = set(altered)
    said = {event.id: event for event in theirs if event.id in wanted}
    return sum(
        _said(event) != _said(said[event.id])
        for name in sorted({event.annotator for event in said.values()})
        for event in workspace.events(annotator=name)
        if event.id in said
    )


def _said(event: Event) -> tuple[object, ...]:
    where = (event.annotator, event.trace_id, event.taxonomy, event.pass_number)
    return (*where, event.kind, event.fact, event.replaces)


def _words(event: Event) -> str:
    where = "" if event.trace_id is None else f" on {event.trace_id}"
    return f"'{_what(event.fact, event)}{where}'"


def _what(fact: Fact, event: Event) -> str:
    match fact:
        case LabelAdded(label):
            return f"label {label.mode}"
        case LabelRemoved(label):
            return f"take off label {label.mode}"
        case LabelChanged(_, label):
            return f"change label {label.mode}"
        case VerdictSet(mode, _, value):
            return f"{mode} is {'open' if value is None else value.value}"
        case ReviewSet(_, _, given):
            return "take back an answer" if given is None else f"{given.answer.value} a suggestion"
        case SpanNoteSet(key):
            return f"note beside {key}"
        case Decided(item, _, decision):
            return f"decide {item if decision is None else decision.mode}"
        case GuidelineSet(_, before, after):
            guideline = after or before
            return f"write what was agreed about {guideline.mode if guideline else 'a mode'}"
        case _:
            return event.kind.value.replace("_", " ")
