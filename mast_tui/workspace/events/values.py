"""Labels and decisions as plain JSON values, and back.

What is empty is left out. Whose label it is, and of which trace, taxonomy and pass, stands with
the event that holds it and is not repeated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mast_tui.gold.model import Decision, Said
from mast_tui.labels import Evidence, Label, Match, Origin, Severity, Target, VerdictValue
from mast_tui.workspace.events.fields import Fields

Values = dict[str, object]


def compact(values: Mapping[str, object]) -> Values:
    """The values without those that are None, 0, false or an empty text, list or object."""
    return {name: value for name, value in values.items() if value or value == ()}


def _numbered(values: Values, **numbers: float | None) -> Values:
    """The values and these numbers, where they are known; 0 is a number."""
    return values | {name: number for name, number in numbers.items() if number is not None}


def target_to_dict(target: Target) -> Values:
    """A target as plain values; the whole trace is an empty object."""
    last = target.last if target.last != target.first else None
    # An empty string is a key or a quote like another, so only None is left out.
    texts = {"first": target.first, "last": last, "quote": target.quote}
    values: Values = {name: text for name, text in texts.items() if text is not None}
    return _numbered(values, start=target.char_start, end=target.char_end)


def target_from(fields: Fields) -> Target:
    """The target; raises ``ValueError`` where its parts do not go together."""
    first = fields.text_or_none("first")
    last = fields.text_or_none("last")
    return Target(
        first=first,
        last=first if last is None else last,
        quote=fields.text_or_none("quote"),
        char_start=fields.whole_or_none("start"),
        char_end=fields.whole_or_none("end"),
    )


def label_to_dict(label: Label) -> Values:
    """A label as plain values."""
    values = compact(
        {
            "note": label.note,
            "severity": label.severity,
            "origin": label.origin,
            "suggestion": label.suggestion,
            "saw_suggestions": label.saw_suggestions,
            "created_at": label.created_at,
            "evidence": label.evidence and _evidence_to_dict(label.evidence),
            "remedy": label.remedy,
        }
    )
    named: Values = {"id": label.id, "mode": label.mode, "target": target_to_dict(label.target)}
    # As it is read back: a whole number that stays one would be hashed as another confidence.
    confidence = None if label.confidence is None else float(label.confidence)
    return _numbered(named | values, confidence=confidence, decisive=label.decisive)


def _evidence_to_dict(evidence: Evidence) -> Values:
    values: Values = {} if evidence.key is None else {"key": evidence.key}
    values |= {"quote": evidence.quote, **compact({"match": evidence.match})}
    if evidence.named is not None:
        values["named"] = list(evidence.named)
    if evidence.wording is not None:
        values["wording"] = evidence.wording
    return _numbered(values, start=evidence.char_start, end=evidence.char_end)


def label_from(
    fields: Fields, *, annotator: str, trace_id: str, taxonomy: str, pass_number: int
) -> Label:
    """The label; raises ``ValueError`` where something is missing or cannot be."""
    confidence = fields.number_or_none("confidence")
    if confidence is not None and not 0 <= confidence <= 1:
        raise ValueError(f"a confidence lies between 0 and 1, not at {confidence}")
    return Label(
        id=fields.text("id"),
        annotator=annotator,
        trace_id=trace_id,
        taxonomy=taxonomy,
        mode=fields.text("mode"),
        target=target_from(fields.child("target")),
        note=fields.text("note", ""),
        confidence=confidence,
        severity=fields.word_or_none("severity", Severity),
        origin=fields.word("origin", Origin, Origin.MANUAL),
        suggestion=fields.text_or_none("suggestion"),
        saw_suggestions=fields.flag("saw_suggestions", False),
        pass_number=pass_number,
        created_at=fields.text("created_at", ""),
        evidence=_evidence_from(fields.child_or_none("evidence")),
        decisive=fields.flag_or_none("decisive"),
        remedy=fields.text("remedy", ""),
    )


def _evidence_from(fields: Fields | None) -> Evidence | None:
    if fields is None:
        return None
    evidence = Evidence(
        fields.text_or_none("key"),
        fields.text("quote"),
        fields.whole_or_none("start"),
        fields.whole_or_none("end"),
        fields.word_or_none("match", Match),
        named_from(fields.texts("named")),
        fields.text_or_none("wording"),
    )
    if evidence.placed and evidence.key is None:
        raise ValueError("evidence with a place in a span names the span")
    return evidence


def named_from(keys: Sequence[str]) -> tuple[str, str] | None:
    """The first and last span that a judge had named, None for no keys at all."""
    if not keys:
        return None
    if len(keys) != 2:
        raise ValueError("'named' holds a first and a last key")
    return keys[0], keys[1]


def decision_to_dict(decision: Decision) -> Values:
    """A decision as plain values."""
    return {
        "mode": decision.mode,
        "item": decision.item,
        "value": decision.value,
        "targets": [target_to_dict(target) for target in decision.targets],
        "sides": list(decision.sides),
        "said": [
            compact({"annotator": said.annotator, "value": said.value})
            | {"targets": [target_to_dict(target) for target in said.targets]}
            for said in decision.said
        ],
        "decided_by": decision.decided_by,
        "decided_at": decision.decided_at,
        **compact({"judge_seen": decision.judge_seen, "reason": decision.reason}),
    }


def decision_from(fields: Fields) -> Decision:
    """The decision; raises ``ValueError`` where something is missing or cannot be."""
    return Decision(
        mode=fields.text("mode"),
        item=fields.text("item"),
        value=fields.word("value", VerdictValue),
        targets=tuple(target_from(target) for target in fields.children("targets")),
        sides=fields.texts("sides"),
        said=tuple(
            Said(
                said.text("annotator"),
                said.word_or_none("value", VerdictValue),
                tuple(target_from(target) for target in said.children("targets")),
            )
            for said in fields.children("said")
        ),
        decided_by=fields.text("decided_by"),
        decided_at=fields.text("decided_at"),
        judge_seen=fields.flag("judge_seen", False),
        reason=fields.text("reason", ""),
    )
