"""A task of Label Studio as it comes back, and what of it was written here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mast_tui.exchange.exporters.label_studio_export import META, label_name
from mast_tui.exchange.exporters.trace_texts import SpanText
from mast_tui.exchange.import_batch import label_id
from mast_tui.labels import AnnotatorKind, Label, VerdictValue
from mast_tui.taxonomy.model import Mode, Taxonomy
from mast_tui.workspace.events.codec import LABEL
from mast_tui.workspace.events.fields import Fields

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Kept:
    """What was written of one annotator's work: each label with the region it became."""

    annotator: str
    kind: AnnotatorKind
    finished_at: str | None
    labels: tuple[Label, ...]
    regions: Mapping[str, tuple[Label, Values]]
    placeless: tuple[Label, ...]
    verdicts: Mapping[str, VerdictValue]
    notes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Task:
    """A task: its trace, the taxonomy, the spans, and what of it was written here."""

    file: Path
    place: str
    trace_id: str
    taxonomy: Taxonomy
    spans: tuple[SpanText, ...]
    kept: Mapping[str, Kept]

    def mode(self, name: str) -> Mode:
        """The mode that is called so there; raises ``ValueError``."""
        for mode in self.taxonomy.modes:
            if label_name(mode) == name:
                return mode
        found = self.taxonomy.find(name) or self.taxonomy.find(name.partition(" ")[0])
        if found is None:
            raise ValueError(f"{name!r} is no mode of {self.taxonomy.ref}")
        return found


def read_task(
    file: Path,
    place: str,
    value: object,
    taxonomy: Taxonomy,
    known: Callable[[str], Taxonomy | None],
) -> Task:
    """The task; raises ``ValueError`` where something is missing or cannot be.

    ``taxonomy`` is that of a task which names none, ``known`` finds one by its reference.
    """
    fields = Fields(value, place)
    data = fields.child_or_none("data")
    if data is None or data.text_or_none("trace_id") is None:
        raise ValueError(
            "has no 'trace_id' in its data; read what Label Studio exports as JSON of tasks that "
            "'mast-tui export --format label-studio' wrote"
        )
    meta = fields.child_or_none("meta")
    ours = None if meta is None else meta.child_or_none(META)
    ref = None if ours is None else ours.text_or_none("taxonomy")
    chosen = taxonomy if ref in (None, taxonomy.ref) else known(ref or "")
    if chosen is None:
        raise ValueError(f"taxonomy {ref!r} is unknown here; give its file with --taxonomy")
    trace_id = data.text("trace_id")
    spans = tuple(
        SpanText(span.text("key"), span.text("author", ""), span.text("text"))
        for span in data.children("spans")
    )
    kept = {} if ours is None else _kept_by(value, trace_id, chosen)
    return Task(file, place, trace_id, chosen, spans, kept)


def _kept_by(value: object, trace_id: str, taxonomy: Taxonomy) -> dict[str, Kept]:
    assert isinstance(value, Mapping)
    by = value["meta"][META].get("by", {})
    if not isinstance(by, Mapping):
        raise ValueError(f"meta.{META}.by is no object; export the task anew")
    return {number: _kept(Fields(one, "by"), trace_id, taxonomy) for number, one in by.items()}


def _kept(fields: Fields, trace_id: str, taxonomy: Taxonomy) -> Kept:
    name = fields.text("annotator")
    given = {
        "annotator": name,
        "trace_id": trace_id,
        "taxonomy": taxonomy.ref,
        "pass_number": 1,
    }
    labels: list[Label] = []
    placeless: list[Label] = []
    regions: dict[str, tuple[Label, Values]] = {}
    for detail in fields.children("labels"):
        label = LABEL.read(detail.child("label"), given)
        if all(mode.slug != label.mode for mode in taxonomy.modes):
            raise ValueError(f"{label.mode!r} is no mode of {taxonomy.ref}")
        target_id = label_id(name, trace_id, taxonomy.ref, label.mode, label.target)
        label = replace(label, id=target_id, suggestion=None)
        labels.append(label)
        region = detail.text_or_none("region")
        if region is None:
            placeless.append(label)
        else:
            place = detail.child("value")
            numbers = {key: place.whole(key) for key in ("startOffset", "endOffset")}
            ends = {key: place.text(key) for key in ("start", "end")}
            regions[region] = (label, ends | numbers | {"name": place.text("name")})
    verdicts = fields.child_or_none("verdicts")
    return Kept(
        annotator=name,
        kind=fields.word("kind", AnnotatorKind),
        finished_at=fields.text_or_none("finished_at"),
        labels=tuple(labels),
        regions=regions,
        placeless=tuple(placeless),
        verdicts={}
        if verdicts is None
        else {
            mode.slug: VerdictValue(word)
            for mode in taxonomy.modes
            if (word := verdicts.text_or_none(mode.slug)) is not None
        },
        notes=dict(fields.named_texts("span_notes")),
    )
