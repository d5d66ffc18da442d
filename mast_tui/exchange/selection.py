"""The selection of work for an export, with masks on request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

from msgspec import structs

from mast_tui.adjudication import SpanOrders, read_work_by_trace, work_of_passes
from mast_tui.counts import counted
from mast_tui.exchange.errors import UnorderedSpans
from mast_tui.exchange.exporters.gold_document import GoldWithSides
from mast_tui.exchange.import_batch import UNKNOWN_TIME
from mast_tui.figures.time_study import minutes_worked
from mast_tui.gold import GoldTrace
from mast_tui.gold.model import only_settled
from mast_tui.labels import (
    ALL,
    GOLD,
    Evidence,
    Label,
    Origin,
    Target,
    TraceWork,
    Which,
    counted_passes,
)
from mast_tui.redaction.masked_trace import Masks, RedactedOf, requested_masks
from mast_tui.study import Study
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.workspace import TraceRecord, Workspace
from mast_tui.workspace.registers.pseudonyms import Pseudonyms, mask_key

_TEXT_FACTS: Final = ("task", "system", "model", "benchmark")
"""The facts of traces that can have personal data."""

_MODE_TEXTS: Final = ("definition", "applies", "applies_not")
"""The texts of modes, in which a codebook can quote traces."""

_TEXT_FIELDS: Final = frozenset(
    ("quote", "note", "notes", "reason", "text", "texts", "wording", *_TEXT_FACTS, *_MODE_TEXTS)
)
"""The fields of documents with texts of annotators, traces or the codebook."""

_ITEM_FIELDS: Final = frozenset({"id", "item"})
_QUOTE_IN_ITEM: Final = re.compile(r"""\[(['"]).*\1\]\Z""", re.DOTALL)
"""The quote in the id of an item (``item_id``), which has no offsets."""

MASKED_QUOTE: Final = "[quote]"
"""The mask of a whole quote.

A part of a secret is not recognisable. So a quote stays only if its position shows that it is
outside all secrets.
"""


def masks_of_files(
    workspace: Workspace, study: Study | None, *, redact: bool, patterns: Path | None
) -> Masks | None:
    """Return the masks for files of a workspace; None without masks.

    Args:
        workspace: The workspace.
        study: The study of the workspace; None without one. Required masks of a study use its key
            and patterns.
        redact: Mask texts.
        patterns: A file of further patterns to mask.

    Raises:
        RedactionError: A library is missing, or the file is unusable.
        WorkspaceError: The key of the masks cannot be written.
    """
    if study is None or not study.redact:
        return requested_masks(redact, patterns, partial(mask_key, workspace))
    masks = requested_masks(True, patterns, lambda: bytes.fromhex(study.redact_key))
    return None if masks is None else masks.with_patterns(study.redact_patterns)


@dataclass(frozen=True, slots=True)
class WorkMasks:
    """Masks for the quotes and notes of labels.

    ``redacted_of`` returns the masked text of a span; None if the file is missing. Then whole
    quotes are masked. Offsets of quotes refer to the original text, or with ``in_masked_texts`` to
    the masked text.
    """

    masks: Masks
    redacted_of: RedactedOf
    in_masked_texts: bool = False

    def masked_work(self, all_work: Iterable[TraceWork]) -> list[TraceWork]:
        """Return the work with masked labels and notes."""
        return [
            structs.replace(
                work,
                labels={
                    label_id: self._masked_label(label) for label_id, label in work.labels.items()
                },
                notes={key: self.masks.text(text) for key, text in work.notes.items()},
            )
            for work in all_work
        ]

    def _masked_label(self, label: Label) -> Label:
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
        """Return a quote with masks, and its start and end in the exported text of its span.

        Start and end are None if the exported text does not contain the masked quote.
        """
        redacted = self.redacted_of(trace_id, key)
        if redacted is None:
            return MASKED_QUOTE, None, None
        if start is None or end is None:
            masked_quote = self.masks.text(quote)
            # A quote with a part of a secret is not found, so it is masked as a whole.
            if " ".join(masked_quote.split()) not in " ".join(redacted.text.split()):
                masked_quote = MASKED_QUOTE
            return masked_quote, None, None
        masked_start, masked_end = redacted.to_shown(start, end)
        if self.in_masked_texts:  # the exported texts have masks too
            return redacted.text[masked_start:masked_end], masked_start, masked_end
        hidden_ranges = [cut.original for cut in redacted.cuts]
        if any(start < hidden.stop and hidden.start < end for hidden in hidden_ranges):
            return redacted.text[masked_start:masked_end], None, None
        return quote, start, end

    def masked_record(self, record: TraceRecord) -> TraceRecord:
        """Return the facts of a trace with masks and without its path."""
        texts = {name: getattr(record, name) for name in _TEXT_FACTS}
        masked = {name: text and self.masks.text(text) for name, text in texts.items()}
        return structs.replace(record, path=None, **masked)

    def masked_taxonomy(self, taxonomy: Taxonomy) -> Taxonomy:
        """Return a taxonomy with masks in the texts of its modes, for a codebook."""
        modes = []
        for mode in taxonomy.modes:
            texts = {name: getattr(mode, name) for name in _MODE_TEXTS}
            confusable = tuple(
                structs.replace(other, difference=self.masks.text(other.difference))
                for other in mode.confusable
            )
            masked = structs.replace(mode, **self.masked_document(texts), confusable=confusable)
            modes.append(masked)
        return structs.replace(taxonomy, modes=tuple(modes))

    def masked_document(self, document: Any, trace_id: str = "", *, is_text: bool = False) -> Any:
        """Return a document with masked texts and quotes.

        Args:
            document: The document as JSON values.
            trace_id: The id of the trace of its quotes, unless a part names another.
            is_text: True for the value of a field with texts.
        """
        if isinstance(document, list | tuple):
            return [self.masked_document(value, trace_id, is_text=is_text) for value in document]
        if isinstance(document, str):
            return self.masks.text(document) if is_text else document
        if not isinstance(document, dict):
            return document
        trace_id = document.get("trace_id") or document.get("trace") or trace_id
        masked: dict[str, Any] = {
            key: self.masked_document(value, trace_id, is_text=is_text or key in _TEXT_FIELDS)
            for key, value in document.items()
        }
        for key in _ITEM_FIELDS & masked.keys():
            if isinstance(masked[key], str):
                masked[key] = _QUOTE_IN_ITEM.sub(MASKED_QUOTE, masked[key])
        span_key = document.get("first") or document.get("span_first")
        if document.get("quote") and span_key:
            start = document.get("char_start")
            end = document.get("char_end")
            quote = self._masked_quote(trace_id, span_key, document["quote"], start, end)
            fields = zip(("quote", "char_start", "char_end"), quote, strict=True)
            masked |= {name: value for name, value in fields if name in document}
        return masked


_NAMES_SHOWN: Final = 3
"""The most paths and ids in a message."""


def selected_work(
    workspace: Workspace,
    taxonomy: Taxonomy,
    labels: str,
    *,
    which: Which,
    finished_only: bool,
    trace_id: str | None = None,
) -> list[TraceWork]:
    """Return the work of all annotators, or of one, on each trace.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy.
        labels: Whose labels: ``all`` or an annotator's name.
        which: The pass to return: the first or the last.
        finished_only: Leave out unfinished passes.
        trace_id: The only trace to read; None for all.

    Raises:
        WorkspaceError: No annotator here has this name.
    """
    if labels != ALL:
        # Callers use ``gold_work`` for ``gold``.
        workspace.check_annotators(labels, other_choices=[GOLD, ALL])
    all_passes = workspace.passes(trace_id=trace_id, taxonomy=taxonomy.ref)
    passes = [trace_pass for trace_pass in all_passes if labels in (ALL, trace_pass.annotator)]
    chosen = counted_passes(passes, which, finished_only=finished_only).values()
    return work_of_passes(
        workspace,
        taxonomy.ref,
        sorted(chosen, key=attrgetter("trace_id", "annotator")),
        pass_number=None,
        trace_id=trace_id,
    )


def gold_work(entries: Iterable[GoldWithSides], taxonomy: Taxonomy) -> list[TraceWork]:
    """Return the gold of each trace as the work of an annotator ``gold``.

    Args:
        entries: The gold of the traces.
        taxonomy: The taxonomy.
    """
    return [_gold_as_work(entry.trace.trace_id, entry.gold, taxonomy) for entry in entries]


def check_ordered(entries: Iterable[GoldWithSides]) -> None:
    """Raise ``UnorderedSpans`` if the order of some labelled spans is unknown."""
    unordered_entries = [entry for entry in entries if entry.unordered]
    if not unordered_entries:
        return
    span_count = sum(entry.unordered for entry in unordered_entries)
    records = [entry.trace for entry in unordered_entries]
    traces_without_path = [record.trace_id for record in records if record.path is None]
    paths = dict.fromkeys(record.path for record in records if record.path is not None)
    existing_files = [str(path) for path in paths if path.exists()]
    missing_files = [str(path) for path in paths if not path.exists()]
    sentences = [
        f"The order of {counted(span_count, 'labelled span')} in "
        f"{counted(len(records), 'trace')} is unknown, so overlapping places could be missed; "
        "nothing was written."
    ]
    if missing_files:
        names = first_names(missing_files)
        sentences.append(f"Their trace files were not found (looked for {names}).")
    if traces_without_path:
        sentences.append(f"No file is known for {first_names(traces_without_path)}.")
    if existing_files:
        sentences.append(f"The spans are not in the traces of {first_names(existing_files)}.")
    raise UnorderedSpans(" ".join(sentences))


def first_names(names: Sequence[str], limit: int = _NAMES_SHOWN, suffix: str = "") -> str:
    """Return the first names as text, with the number of the others.

    Args:
        names: The names.
        limit: The most names in the text.
        suffix: The words after this number.
    """
    other_count = len(names) - limit
    text = ", ".join(names[:limit])
    return f"{text} and {other_count} more{suffix}" if other_count > 0 else text


def pseudonymous(all_work: Iterable[TraceWork], pseudonyms: Pseudonyms) -> list[TraceWork]:
    """Return the work with letters instead of names, also in the ids.

    Args:
        all_work: The work of annotators.
        pseudonyms: The letters of the workspace's annotators.
    """
    return [
        structs.replace(
            work,
            annotator=pseudonyms.name(work.annotator),
            labels=dict(_with_pseudonym(label, pseudonyms) for label in work.labels.values()),
            merged=frozenset(map(pseudonyms.id, work.merged)),
        )
        for work in all_work
    ]


def _with_pseudonym(label: Label, pseudonyms: Pseudonyms) -> tuple[str, Label]:
    """Return the new id of a label, and the label with letters instead of names."""
    new_id = pseudonyms.id(label.id)
    renamed = structs.replace(
        label,
        annotator=pseudonyms.name(label.annotator),
        id=new_id,
        suggestion=label.suggestion and pseudonyms.id(label.suggestion),
    )
    return new_id, renamed


def gold_entries(
    workspace: Workspace,
    taxonomy: Taxonomy,
    *,
    annotators: Sequence[str] | None = None,
    majority: bool = False,
    settled_only: bool = False,
) -> list[GoldWithSides]:
    """Return the gold of each trace with a finished pass or a decision.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy.
        annotators: The sides of the gold; None for all people.
        majority: Resolve verdicts by majority.
        settled_only: Leave out verdicts of one person alone, and traces with nothing left.
    """
    orders = SpanOrders(workspace)
    records = {record.trace_id: record for record in workspace.traces()}
    minutes = minutes_worked(workspace, taxonomy)
    entries = []
    works = read_work_by_trace(workspace, taxonomy, annotators=annotators)
    for trace_id, trace_sides in works.items():
        order = orders(trace_id)
        keys = {name: (name, trace_id, side.number) for name, side in trace_sides.passes.items()}
        entries.append(
            GoldWithSides(
                trace=records.get(trace_id, TraceRecord(trace_id)),
                gold=trace_sides.gold(taxonomy, order, majority=majority),
                sides=trace_sides.sides,
                passes=trace_sides.passes,
                order=order,
                minutes={name: minutes[key] for name, key in keys.items() if key in minutes},
                decisions=trace_sides.decisions,
                unordered=len(trace_sides.labels_of_unknown_order(taxonomy, order)),
            )
        )
    if not settled_only:
        return entries
    settled_entries = [replace(entry, gold=only_settled(entry.gold)) for entry in entries]
    return [
        entry
        for entry in settled_entries
        if entry.gold.conflicts or any(verdict.value is not None for verdict in entry.gold.verdicts)
    ]


def _gold_as_work(trace_id: str, gold: GoldTrace, taxonomy: Taxonomy) -> TraceWork:
    """Return the gold of a trace as the work of an annotator ``gold``.

    With conflicts it is unfinished.
    """
    finished_at = None if gold.conflicts else UNKNOWN_TIME
    work = TraceWork(GOLD, trace_id, taxonomy.ref, finished_at=finished_at)
    for number, label in enumerate(gold.labels):
        label_id = f"{label.mode}@{number}"
        work.labels[label_id] = Label(
            id=label_id,
            annotator=GOLD,
            trace_id=trace_id,
            taxonomy=taxonomy.ref,
            mode=label.mode,
            target=label.target,
            note="\n".join(note for _, note in label.notes),
            severity=label.severity,
            origin=Origin.IMPORTED,
            saw_suggestions=label.judge_seen,
            created_at=label.decided_at or "",
        )
        if label.merged:
            work.merged |= {label_id}
    for verdict in gold.verdicts:
        if verdict.value is not None:
            work.verdicts[verdict.mode] = verdict.value
    return work
