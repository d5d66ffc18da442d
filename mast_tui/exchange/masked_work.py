"""The work of annotators with masks in place of personal data and secrets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from msgspec import structs

from mast_tui.exchange.exporters.gold_document import GoldWithSides
from mast_tui.labels import Evidence, Label, Target, TraceWork
from mast_tui.redaction.masked_trace import Masks, RedactedOf, requested_masks
from mast_tui.study import Study
from mast_tui.workspace import Workspace
from mast_tui.workspace.registers.pseudonyms import mask_key

_TEXT_FIELDS: Final = frozenset({"quote", "note", "notes", "reason", "text", "texts", "wording"})
"""The fields of documents that hold texts of annotators or of traces."""


MASKED_QUOTE: Final = "[quote]"
"""The mask of a whole quote.

A part of a secret is not recognised by itself. So a quote stays only if its place in the text shows
that no secret is in it.
"""


def masks_of_files(
    workspace: Workspace, study: Study | None, *, redact: bool, patterns: Path | None
) -> Masks | None:
    """Return the masks of files that are written from a workspace; None if nothing is masked.

    Args:
        workspace: The workspace.
        study: Its study, if there is one; it may mask all texts.
        redact: True if the user asks for masks.
        patterns: A file of the user's own patterns, which are masked as well.

    Raises:
        RedactionError: A library is missing, or the file is unusable.
        WorkspaceError: The key of the masks cannot be written.
    """
    is_masked = study is not None and study.redact
    masks = requested_masks(redact or is_masked, patterns, partial(mask_key, workspace))
    if masks is None or study is None:
        return masks
    return masks.with_patterns(study.redact_patterns)


@dataclass(frozen=True, slots=True)
class WorkMasks:
    """Masks the quotes and notes of labels.

    ``redacted_of`` returns the text of a span with its masks, or None if the file of the trace is
    missing; then quotes are masked as a whole. The offsets of a quote without masks refer to the
    original text. With ``in_masked_texts`` all offsets refer to the masked text, for formats that
    hold the masked texts.
    """

    masks: Masks
    redacted_of: RedactedOf
    in_masked_texts: bool = False

    def works(self, works: Iterable[TraceWork]) -> list[TraceWork]:
        """Return work with masks in its labels and notes."""
        return [
            replace(
                work,
                labels={name: self.label(label) for name, label in work.labels.items()},
                notes={key: self.masks.text(text) for key, text in work.notes.items()},
            )
            for work in works
        ]

    def label(self, label: Label) -> Label:
        """Return a label with masks in its quote, evidence and notes."""
        evidence = label.evidence
        return structs.replace(
            label,
            target=self._masked_target(label.trace_id, label.target),
            note=self.masks.text(label.note),
            remedy=self.masks.text(label.remedy),
            evidence=None if evidence is None else self._masked_evidence(label.trace_id, evidence),
        )

    def _masked_target(self, trace_id: str, target: Target) -> Target:
        if target.quote is None or target.first is None:
            return target
        quote, start, end = self._masked_quote(
            trace_id, target.first, target.quote, target.char_start, target.char_end
        )
        return Target(target.first, target.last, quote, start, end)

    def _masked_evidence(self, trace_id: str, evidence: Evidence) -> Evidence:
        """Return evidence with masks in its quote and wording."""
        wording = None if evidence.wording is None else self.masks.text(evidence.wording)
        if evidence.key is None:
            return structs.replace(evidence, quote=self.masks.text(evidence.quote), wording=wording)
        quote, start, end = self._masked_quote(
            trace_id, evidence.key, evidence.quote, evidence.char_start, evidence.char_end
        )
        return structs.replace(
            evidence, quote=quote, char_start=start, char_end=end, wording=wording
        )

    def _masked_quote(
        self, trace_id: str, key: str, quote: str, start: int | None, end: int | None
    ) -> tuple[str, int | None, int | None]:
        """Return a quote with masks, and its start and end in the text; None if not known."""
        redacted = self.redacted_of(trace_id, key)
        if redacted is None:
            return MASKED_QUOTE, None, None
        if start is None or end is None:
            masked_quote = self.masks.text(quote)
            if _single_spaced(masked_quote) not in _single_spaced(redacted.text):
                masked_quote = MASKED_QUOTE
            return masked_quote, None, None
        masked_start, masked_end = redacted.to_shown(start, end)
        if self.in_masked_texts:
            return redacted.text[masked_start:masked_end], masked_start, masked_end
        if any(start < cut.end and cut.start < end for cut in redacted.cuts):
            return redacted.text[masked_start:masked_end], None, None
        return quote, start, end

    def gold_entry(self, entry: GoldWithSides) -> GoldWithSides:
        """Return the gold of a trace and its sides with masks in their quotes."""
        trace_id = entry.trace.trace_id
        labels = tuple(
            replace(label, target=self._masked_target(trace_id, label.target))
            for label in entry.gold.labels
        )
        gold = replace(entry.gold, labels=labels)
        return replace(entry, gold=gold, sides=self.works(entry.sides))


def _single_spaced(text: str) -> str:
    return " ".join(text.split())


def masked_document(document: Any, masks: Masks, *, is_text: bool = False) -> Any:
    """Return a document with masks in the fields that hold texts.

    Args:
        document: The document, as a JSON parser returns it.
        masks: The masks.
        is_text: True if it is the value of such a field.
    """
    if isinstance(document, dict):
        return {
            key: masked_document(value, masks, is_text=is_text or key in _TEXT_FIELDS)
            for key, value in document.items()
        }
    if isinstance(document, list | tuple):
        return [masked_document(value, masks, is_text=is_text) for value in document]
    return masks.text(document) if is_text and isinstance(document, str) else document
