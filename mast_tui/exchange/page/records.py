"""The work that a page embeds as JSON, and its import.

A page holds the records ``taxonomy``, ``trace`` and ``annotator`` as ``jsonl`` has them, and a
record ``work`` for each annotator. The events of ``jsonl`` are chained over all traces of an
annotator, so that those of one trace cannot be told from an edited history: a page holds what
follows from them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, structs, to_builtins

from mast_tui.exchange.errors import ExchangeError
from mast_tui.exchange.import_batch import (
    Gathered,
    ImportedWork,
    Incoming,
    annotator_of,
    check_one_name,
    label_id,
)
from mast_tui.exchange.jsonl import AnnotatorLine, TaxonomyLine, TraceLine
from mast_tui.exchange.trace_files import files_under
from mast_tui.labels import AnnotatorKind, TraceWork, VerdictValue, annotator_kind, label_origin
from mast_tui.taxonomy.loader import TaxonomyError, from_dict, to_dict
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.traces.io.json_values import InvalidJSON, load_json
from mast_tui.workspace.events.codec import label_from_values, label_to_values, read
from mast_tui.workspace.records import TraceRecord

FORMAT: Final = "mast-tui-page"
VERSION: Final = 1
ELEMENT_ID: Final = "mast-tui-labels"
"""The id of the element of a page that holds the records."""

_ELEMENT: Final = re.compile(
    rf"""<script\b[^>]*\bid=["']?{ELEMENT_ID}["']?[^>]*>(.*?)</script\s*>""", re.DOTALL
)
_UNSAFE_IN_HTML: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


class WorkLine(Struct, kw_only=True, omit_defaults=True, tag_field="record", tag="work"):
    """The work of one annotator on the trace of the page, as one pass holds it."""

    annotator: str
    trace_id: str
    taxonomy: str
    labels: tuple[dict[str, Any], ...] = ()
    verdicts: dict[str, VerdictValue] = {}
    notes: dict[str, str] = {}
    finished_at: str | None = None
    judge_seen: bool = False


Record = TaxonomyLine | TraceLine | AnnotatorLine | WorkLine


def records_of(
    record: TraceRecord,
    taxonomy: Taxonomy,
    works: Sequence[TraceWork],
    kinds: Mapping[str, AnnotatorKind],
) -> Iterator[dict[str, Any]]:
    """Yield the records of a page as plain values.

    Args:
        record: The facts of the trace.
        taxonomy: The taxonomy of the work.
        works: The work of annotators.
        kinds: The kinds of annotators by name.
    """
    lines: list[Record] = [TaxonomyLine(taxonomy=to_dict(taxonomy)), TraceLine.of(record, {})]
    for work in works:
        kind = kinds.get(work.annotator) or annotator_kind(work.annotator)
        lines.append(AnnotatorLine(name=work.annotator, kind=kind))
        lines.append(
            WorkLine(
                annotator=work.annotator,
                trace_id=record.trace_id,
                taxonomy=work.taxonomy,
                labels=tuple(map(label_to_values, work.labels.values())),
                verdicts=work.verdicts_without_label(taxonomy),
                notes=work.notes,
                finished_at=work.finished_at,
                judge_seen=work.judge_seen,
            )
        )
    return map(to_builtins, lines)


def embedded_json(records: Sequence[Mapping[str, object]]) -> str:
    """Return the records as JSON that is safe inside an element of a page."""
    document = {"format": FORMAT, "version": VERSION, "records": records}
    text = json.dumps(document, ensure_ascii=False, allow_nan=False)
    for character, escape in _UNSAFE_IN_HTML.items():
        text = text.replace(character, escape)
    return text


def read_pages(
    files: Sequence[Path],
    *,
    taxonomy: Taxonomy,
    find_taxonomy: Callable[[str], Taxonomy | None],
    annotator: str | None = None,
) -> Incoming:
    """Read the work that pages embed; a page that cannot be read is a problem.

    Args:
        files: The pages, and folders of pages.
        taxonomy: The taxonomy in use, which replaces a page's taxonomy with the same reference.
        find_taxonomy: Returns a taxonomy of the workspace by ``id@version``, None if it has none.
        annotator: The name for the one author of all pages, None to keep the names.
    """
    batch = Gathered()
    authors = set[str]()
    for file in files_under(files, (".html", ".htm")):
        try:
            records = _embedded_records(file)
            if records is None:
                if file in files:
                    raise ExchangeError(
                        "is no page of mast-tui with labels; 'mast-tui page' writes one"
                    )
                continue
            _add_page(file, records, batch, taxonomy, find_taxonomy, annotator, authors)
        except (ExchangeError, InvalidJSON, TaxonomyError, ValueError, OSError) as error:
            batch.wrong(file, "page", error)
    check_one_name(annotator, authors)
    return batch.done()


def _embedded_records(file: Path) -> list[Record] | None:
    """Return the records in a page; None for another file.

    Raises:
        ValueError: The page is of another format or of a newer version.
    """
    match = _ELEMENT.search(file.read_text("utf-8", "replace"))
    if match is None:
        return None
    document = load_json(match[1].strip().encode())
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError(f"the embedded format is not {FORMAT!r}")
    version = document.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise ValueError("written by a newer version of mast-tui; update this one")
    values = read(document.get("records"), list[dict[str, Any]], "records")
    return [read(value, Record, "record") for value in values]  # type: ignore[arg-type]


def _add_page(
    file: Path,
    records: Iterable[Record],
    batch: Gathered,
    taxonomy: Taxonomy,
    find_taxonomy: Callable[[str], Taxonomy | None],
    named: str | None,
    authors: set[str],
) -> None:
    """Add the work of a page to the batch, and its authors to ``authors``.

    ``named`` replaces the name of the page's author, None to keep the names.

    Raises:
        ValueError: The page lacks a taxonomy, or another page has work of the same author.
    """
    taxonomies: dict[str, Taxonomy] = {}
    kinds: dict[str, AnnotatorKind] = {}
    for line in records:
        match line:
            case TaxonomyLine():
                page_taxonomy = from_dict(line.taxonomy, "taxonomy")
                known_taxonomy = (
                    taxonomy
                    if taxonomy.ref == page_taxonomy.ref
                    else find_taxonomy(page_taxonomy.ref)
                )
                taxonomies[page_taxonomy.ref] = known_taxonomy or page_taxonomy
            case TraceLine():
                batch.traces.setdefault(line.trace_id, line.trace_record())
            case AnnotatorLine():
                kinds[line.name] = line.kind
            case WorkLine():
                authors.add(line.annotator)
                work_taxonomy = taxonomies.get(line.taxonomy)
                if work_taxonomy is None:
                    raise ValueError(f"the page does not hold the taxonomy {line.taxonomy!r}")
                kind = kinds.get(line.annotator)
                work = _imported_work(file, line, work_taxonomy, named, kind)
                if work.key in batch.drafts:
                    raise ValueError(f"another page holds the work of {work.annotator} as well")
                batch.keep(work)
                batch.taxonomies[work_taxonomy.ref] = work_taxonomy


def _imported_work(
    file: Path,
    line: WorkLine,
    taxonomy: Taxonomy,
    named: str | None,
    kind: AnnotatorKind | None,
) -> ImportedWork:
    """Return the work in a line of a page.

    Raises:
        ValueError: A mode is unknown.
    """
    name = annotator_of(line.annotator, named)
    kind_of_name = annotator_kind(name)
    # Only names of judges belong to judges, so a new name can make the kind in the page wrong.
    if kind is None or (kind is AnnotatorKind.JUDGE) != (kind_of_name is AnnotatorKind.JUDGE):
        kind = kind_of_name
    work = ImportedWork(
        name, line.trace_id, taxonomy.ref, kind, file=file, judge_seen=line.judge_seen
    )
    context = {
        "annotator": name,
        "trace_id": line.trace_id,
        "taxonomy": taxonomy.ref,
        "pass_number": 1,
    }
    modes = {mode.slug for mode in taxonomy.all_modes}
    for values in line.labels:
        label = label_from_values(values, context)
        if label.mode not in modes:
            raise ValueError(f"{label.mode!r} is no mode of {taxonomy.ref}")
        own_id = label_id(name, line.trace_id, taxonomy.ref, label.mode, label.target)
        origin = label_origin(name, label.origin)
        work.add_label(structs.replace(label, id=own_id, origin=origin), "labels")
    for mode, value in line.verdicts.items():
        if mode not in modes:
            raise ValueError(f"{mode!r} is no mode of {taxonomy.ref}")
        work.add_verdict(mode, value)
    for key, text in line.notes.items():
        work.add_note(key, text, "notes")
    work.finished_at = line.finished_at
    return work
