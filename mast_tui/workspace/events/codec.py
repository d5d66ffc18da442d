"""Facts as plain JSON values, and back."""

from __future__ import annotations

from typing import Final

from mast_tui.gold.model import Decision, Guideline
from mast_tui.labels import Answer, PassKind, VerdictValue
from mast_tui.study.model import Study
from mast_tui.workspace.events.fields import Fields
from mast_tui.workspace.events.protocol_values import (
    guideline_from,
    guideline_to_dict,
    study_from,
    study_to_dict,
)
from mast_tui.workspace.events.types import (
    Decided,
    EventKind,
    Fact,
    GuidelineSet,
    Judged,
    LabelAdded,
    LabelChanged,
    LabelRemoved,
    LookAgainSet,
    PassFinished,
    PassKindSet,
    PassStarted,
    PassUnfinished,
    PassWithdrawn,
    Revealed,
    ReviewGiven,
    ReviewSet,
    SightSet,
    SpanNoteSet,
    SpansRead,
    StudySet,
    SuggestionsSeen,
    VerdictSet,
)
from mast_tui.workspace.events.values import (
    Values,
    compact,
    decision_from,
    decision_to_dict,
    label_from,
    label_to_dict,
)

_KINDS: Final[dict[type, EventKind]] = {
    PassStarted: EventKind.PASS_STARTED,
    PassWithdrawn: EventKind.PASS_WITHDRAWN,
    PassKindSet: EventKind.PASS_KIND_SET,
    PassFinished: EventKind.PASS_FINISHED,
    PassUnfinished: EventKind.PASS_UNFINISHED,
    LabelAdded: EventKind.LABEL_ADDED,
    LabelChanged: EventKind.LABEL_CHANGED,
    LabelRemoved: EventKind.LABEL_REMOVED,
    VerdictSet: EventKind.VERDICT_SET,
    ReviewSet: EventKind.REVIEW_SET,
    SpanNoteSet: EventKind.SPAN_NOTE_SET,
    SpansRead: EventKind.SPANS_READ,
    SuggestionsSeen: EventKind.SUGGESTIONS_SEEN,
    Revealed: EventKind.REVEALED,
    SightSet: EventKind.SIGHT_SET,
    Decided: EventKind.DECIDED,
    Judged: EventKind.JUDGED,
    StudySet: EventKind.STUDY_SET,
    GuidelineSet: EventKind.GUIDELINE_SET,
    LookAgainSet: EventKind.LOOK_AGAIN_SET,
}
KIND_NAMES: Final[dict[type, str]] = {fact: kind.value for fact, kind in _KINDS.items()}
"""The name of each fact's kind as it is written; an enum's own ``value`` takes long to look up."""

_WITHOUT_TRACE: Final = frozenset(
    {EventKind.SIGHT_SET, EventKind.STUDY_SET, EventKind.GUIDELINE_SET}
)
_WITHOUT_PASS: Final = _WITHOUT_TRACE | {EventKind.DECIDED}
_OF_A_TAXONOMY: Final = frozenset({EventKind.STUDY_SET, EventKind.GUIDELINE_SET})


def kind_of(fact: Fact) -> EventKind:
    """The kind of event that records this fact."""
    return _KINDS[type(fact)]


def fact_to_dict(fact: Fact) -> Values:
    """A fact's own values."""
    match fact:
        case PassStarted(kind, copy_of, withheld):
            return {"kind": kind.value, **compact({"copy_of": copy_of, "withheld": withheld})}
        case PassWithdrawn(kind, copy_of):
            return {"kind": kind.value, **compact({"copy_of": copy_of})}
        case PassFinished():
            return _finish_to_dict(fact)
        case PassUnfinished(was):
            return {"was": _finish_to_dict(was)}
        case LabelAdded(label) | LabelRemoved(label):
            return {"label": label_to_dict(label)}
        case LabelChanged(old, new):
            return {"before": label_to_dict(old), "after": label_to_dict(new)}
        case VerdictSet(mode, before, after):
            return {"mode": mode, "before": before, "after": after}
        case ReviewSet(suggestion, given, now):
            return {
                "suggestion": suggestion,
                "before": given and _review_to_dict(given),
                "after": now and _review_to_dict(now),
            }
        case SpanNoteSet(key, text, new_text):
            return {"key": key, "before": text, "after": new_text}
        case SpansRead(keys, runs):
            ends = [{"first": first, "last": last} for first, last in runs]
            return {"keys": list(keys), **compact({"runs": ends})}
        case SuggestionsSeen():
            return {}
        case Revealed(what):
            return {"what": what}
        case SightSet(was, blind):
            return {"before": was, "blind": blind}
        case PassKindSet(was_kind, new_kind):
            return {"before": was_kind.value, "after": new_kind.value}
        case Decided(item, earlier, decision):
            return {
                "item": item,
                "before": earlier and decision_to_dict(earlier),
                "after": decision and decision_to_dict(decision),
            }
        case Judged(looks_at, absent, run, unsure):
            return {
                "looks_at": list(looks_at),
                "absent": list(absent),
                **compact({"run": run, "unsure": list(unsure)}),
            }
        case StudySet(old_study, study):
            return {
                "before": old_study and study_to_dict(old_study),
                "after": study and study_to_dict(study),
            }
        case GuidelineSet(name, old_words, words):
            return {
                "id": name,
                "before": old_words and guideline_to_dict(old_words),
                "after": words and guideline_to_dict(words),
            }
        case LookAgainSet(old_modes, modes):
            return {"before": list(old_modes), "after": list(modes)}


def _finish_to_dict(fact: PassFinished) -> Values:
    numbers = {"read": fact.read, "spans": fact.spans}
    return {
        "open_modes": fact.open_modes,
        **{name: number for name, number in numbers.items() if number is not None},
        **({} if fact.at is None else {"at": fact.at}),
    }


def _review_to_dict(review: ReviewGiven) -> Values:
    return {
        "answer": review.answer.value,
        **compact({"label": review.label, "reason": review.reason}),
    }


def fact_from(
    kind: EventKind,
    fields: Fields,
    *,
    annotator: str,
    trace_id: str | None,
    taxonomy: str | None,
    pass_number: int | None,
) -> Fact:
    """The fact of this kind with these values; raises ``ValueError`` in words."""
    if kind not in _WITHOUT_TRACE and (trace_id is None or taxonomy is None):
        raise ValueError(f"an event {kind.value!r} names its trace and its taxonomy")
    if kind in _OF_A_TAXONOMY and taxonomy is None:
        raise ValueError(f"an event {kind.value!r} names its taxonomy")
    if kind not in _WITHOUT_PASS and pass_number is None:
        raise ValueError(f"an event {kind.value!r} names its pass")
    match kind:
        case EventKind.LABEL_ADDED | EventKind.LABEL_REMOVED | EventKind.LABEL_CHANGED:
            names = ("before", "after") if kind is EventKind.LABEL_CHANGED else ("label",)
            labels = [
                label_from(
                    fields.child(name),
                    annotator=annotator,
                    trace_id=trace_id or "",
                    taxonomy=taxonomy or "",
                    pass_number=pass_number or 0,
                )
                for name in names
            ]
            if kind is EventKind.LABEL_CHANGED:
                return LabelChanged(labels[0], labels[1])
            added = kind is EventKind.LABEL_ADDED
            return LabelAdded(labels[0]) if added else LabelRemoved(labels[0])
        case EventKind.PASS_STARTED:
            return PassStarted(
                fields.word("kind", PassKind),
                fields.whole_or_none("copy_of"),
                fields.flag("withheld", False),
            )
        case EventKind.PASS_WITHDRAWN:
            return PassWithdrawn(fields.word("kind", PassKind), fields.whole_or_none("copy_of"))
        case EventKind.PASS_KIND_SET:
            return PassKindSet(fields.word("before", PassKind), fields.word("after", PassKind))
        case EventKind.PASS_FINISHED:
            return _finish_from(fields)
        case EventKind.PASS_UNFINISHED:
            return PassUnfinished(_finish_from(fields.child("was")))
        case EventKind.VERDICT_SET:
            verdict = VerdictSet(
                fields.text("mode"),
                fields.word_or_none("before", VerdictValue),
                fields.word_or_none("after", VerdictValue),
            )
            if VerdictValue.PRESENT in (verdict.before, verdict.after):
                raise ValueError("'present' is said with a label, not with a verdict")
            return verdict
        case EventKind.REVIEW_SET:
            return ReviewSet(
                fields.text("suggestion"),
                _review_from(fields.child_or_none("before")),
                _review_from(fields.child_or_none("after")),
            )
        case EventKind.SPAN_NOTE_SET:
            return SpanNoteSet(fields.text("key"), fields.text("before"), fields.text("after"))
        case EventKind.SPANS_READ:
            runs = [(run.text("first"), run.text("last")) for run in fields.children("runs")]
            return SpansRead(fields.texts("keys"), tuple(runs))
        case EventKind.SUGGESTIONS_SEEN:
            return SuggestionsSeen()
        case EventKind.REVEALED:
            return Revealed(fields.text("what"))
        case EventKind.SIGHT_SET:
            return SightSet(fields.flag_or_none("before"), fields.flag("blind"))
        case EventKind.DECIDED:
            return Decided(
                fields.text("item"),
                _decision_or_none(fields.child_or_none("before")),
                _decision_or_none(fields.child_or_none("after")),
            )
        case EventKind.JUDGED:
            return Judged(
                fields.texts("looks_at"),
                fields.texts("absent"),
                fields.text_or_none("run"),
                fields.texts("unsure"),
            )
        case EventKind.STUDY_SET:
            return StudySet(
                _study_or_none(fields.child_or_none("before")),
                _study_or_none(fields.child_or_none("after")),
            )
        case EventKind.GUIDELINE_SET:
            return GuidelineSet(
                fields.text("id"),
                _guideline_or_none(fields.child_or_none("before")),
                _guideline_or_none(fields.child_or_none("after")),
            )
        case EventKind.LOOK_AGAIN_SET:
            return LookAgainSet(fields.texts("before"), fields.texts("after"))


def _finish_from(fields: Fields) -> PassFinished:
    return PassFinished(
        fields.text("open_modes"),
        fields.whole_or_none("read"),
        fields.whole_or_none("spans"),
        fields.text_or_none("at"),
    )


def _review_from(fields: Fields | None) -> ReviewGiven | None:
    if fields is None:
        return None
    return ReviewGiven(
        fields.word("answer", Answer), fields.text_or_none("label"), fields.text("reason", "")
    )


def _decision_or_none(fields: Fields | None) -> Decision | None:
    return None if fields is None else decision_from(fields)


def _guideline_or_none(fields: Fields | None) -> Guideline | None:
    return None if fields is None else guideline_from(fields)


def _study_or_none(fields: Fields | None) -> Study | None:
    return None if fields is None else study_from(fields)
