"""The format ``mast-data``: records with a yes or no for each mode, as in MAST-Data.

Our records name the trace, annotator and taxonomy, unsure modes and unfinished work. MAST-Data
numbers traces again for each system and benchmark, so its traces are identified by the log in the
record.

Published files use 3.2 and 3.3 in opposite ways. So a name printed beside a number decides
(``mast_binding``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final

from mast_tui.exchange.csv_labels import NUMBERS
from mast_tui.exchange.import_batch import (
    UNKNOWN_TIME,
    ImportedWork,
    Incoming,
    IncomingBuilder,
    annotator_of,
    check_one_name,
    merged_facts,
    taxonomy_named,
)
from mast_tui.exchange.trace_files import read_records, read_traces
from mast_tui.labels import AnnotatorKind, TraceWork, VerdictValue, annotator_kind
from mast_tui.taxonomy.loader import load_mast
from mast_tui.taxonomy.model import Mode, Taxonomy
from mast_tui.workspace.records import TraceRecord

_AMBIGUOUS_CODES: Final = ("3.2", "3.3")
_BY_NUMBER: Final = "by number, as the file has no name"


@dataclass(frozen=True, slots=True)
class Binding:
    """The slug of each code in a file, and a sentence on the meaning of 3.2 and 3.3."""

    slugs: Mapping[str, str]
    in_words: str


def mast_binding(mast: Taxonomy, printed: Iterable[Iterable[str]]) -> Binding:
    """Return the mode for each MAST code of a file.

    Published versions of MAST differ in their numbers. A code with a printed name, such as ``3.3
    Weak Verification``, gets the mode of this name. Another code gets the mode of its number, or a
    remaining mode.

    Args:
        mast: The taxonomy MAST.
        printed: The printed names in each record.

    Raises:
        ValueError: A code has two names, or two codes have names of one mode.
    """
    slugs = {mode.code: mode.slug for mode in mast.modes}
    named: dict[str, tuple[str, str]] = {}  # slug and printed name by code
    for printed_name in chain.from_iterable(printed):
        code, _, name = printed_name.strip().partition(" ")
        mode = _mode_by_name(mast, name)
        if mode is None or code not in slugs:
            continue
        if code in named and named[code][0] != mode.slug:
            raise ValueError(f"{code} is named both {named[code][1]!r} and {name!r}")
        named[code] = (mode.slug, name)
    slugs = _completed_binding(slugs, {code: slug for code, (slug, _) in named.items()})
    return Binding(
        slugs, "; ".join(_binding_text(mast, code, slugs, named) for code in _AMBIGUOUS_CODES)
    )


def _completed_binding(by_number: Mapping[str, str], named: Mapping[str, str]) -> dict[str, str]:
    """Return a different slug for each code: by its name, else by its number, else a free one.

    ``by_number`` has the slugs of all codes, and ``named`` those of codes with a name.
    """
    if len(set(named.values())) < len(named):
        raise ValueError("two codes have names of the same mode")
    free_slugs = [slug for slug in by_number.values() if slug not in named.values()]
    slugs = dict(named)
    for code, slug in by_number.items():
        if code not in named and slug in free_slugs:
            slugs[code] = slug
            free_slugs.remove(slug)
    for code in by_number:
        if code not in slugs:
            slugs[code] = free_slugs.pop(0)
    return slugs


def _binding_text(
    mast: Taxonomy,
    code: str,
    slugs: Mapping[str, str],
    named: Mapping[str, tuple[str, str]],
) -> str:
    """Return a sentence on the mode of a code and the reason.

    ``named`` has the slug and the printed name of codes with a name.
    """
    mode = mast.mode(slugs[code])
    reason = _BY_NUMBER
    if code in named:
        _slug, name = named[code]
        reason = f"by its name {name!r}"
    elif mode.code != code:
        reason = "the only mode left"
    return f"{code} of the file is {mode.code} {mode.name} ({reason})"


def _mode_by_name(mast: Taxonomy, name: str) -> Mode | None:
    """Return the mode with this name or alias in any case; None if there is none."""
    folded = " ".join(name.split()).casefold()
    modes_by_name = {mode.name.casefold(): mode for mode in reversed(mast.modes)}
    modes_by_alias = {
        alias.name.casefold(): mode for mode in reversed(mast.modes) for alias in mode.aliases
    }
    return modes_by_name.get(folded) or modes_by_alias.get(folded)


ANNOTATOR: Final = "mast-data"
_LABELS_FIELD: Final = "mast_annotation"
_UNSURE_FIELD: Final = "unsure"
"""The codes of unsure modes, which are null in the annotation; missing if there are none."""
_FINISHED_FIELD: Final = "finished"
"""False in a record of unfinished work; otherwise missing."""
Record = Mapping[str, Any]
FindTaxonomy = Callable[[str], Taxonomy | None]


def read_mast_data(
    files: Sequence[Path],
    *,
    taxonomy: Taxonomy,
    find_taxonomy: FindTaxonomy,
    annotator: str | None = None,
) -> Incoming:
    """Read records in the form of the MAST dataset.

    A file has one record, a list of records, or one record per line. A value of null is no verdict.
    An invalid record becomes a problem.

    Args:
        files: The files and folders.
        taxonomy: The default taxonomy.
        find_taxonomy: Returns a taxonomy by ``id@version``; None if it is unknown.
        annotator: The author of all records; None if they name their authors.
    """
    builder = IncomingBuilder()
    has_published_records = False
    for file, records in read_records(files, builder.problems):
        traces_by_index = _traces_in(file, records)
        for index, record in enumerate(records):
            with builder.errors_as_problem(file, f"record {index + 1}"):
                record_taxonomy = _record_taxonomy(record, taxonomy, find_taxonomy)
                trace = _record_trace(record, traces_by_index.get(index))
                draft = _record_work(record, trace.trace_id, record_taxonomy, file, annotator)
                _add_record(builder, draft, trace)
                builder.taxonomies[record_taxonomy.ref] = record_taxonomy
                # Only published records have no annotator.
                has_published_records = has_published_records or "annotator" not in record
    check_one_name(annotator, (name for name, _, _ in builder.drafts))
    if has_published_records:
        # Published records print no names, so the numbers of 3.2 and 3.3 are trusted.
        builder.notes.append(mast_binding(load_mast(), printed=()).in_words)
    return builder.to_incoming()


def _add_record(builder: IncomingBuilder, draft: ImportedWork, trace: TraceRecord) -> None:
    """Add the work and the trace of a record.

    Raises:
        ValueError: The annotator has another record on the trace, or another record contradicts the
            facts of the trace.
    """
    if draft.key in builder.drafts:
        raise ValueError(
            f"{draft.annotator} on trace {draft.trace_id!r} appears twice; keep one record"
        )
    earlier = builder.traces.get(trace.trace_id)
    builder.traces[trace.trace_id] = trace if earlier is None else merged_facts(earlier, trace)
    builder.add_work(draft)


def _traces_in(file: Path, records: Sequence[object]) -> dict[int, TraceRecord]:
    """Return the traces in the records, by record index."""
    if not any(isinstance(r, Mapping) and ("trace" in r or "trace_text" in r) for r in records):
        return {}
    return {trace.record or 0: TraceRecord.from_trace(trace) for trace in read_traces(file)}


def _record_taxonomy(record: object, default: Taxonomy, find_taxonomy: FindTaxonomy) -> Taxonomy:
    if not isinstance(record, Mapping) or not isinstance(record.get(_LABELS_FIELD), Mapping):
        raise ValueError(f"has no {_LABELS_FIELD!r} with a 1 or 0 per mode")
    return taxonomy_named(record.get("taxonomy"), default, find_taxonomy)


def _record_trace(record: Record, logged_trace: TraceRecord | None) -> TraceRecord:
    """Return the trace of a record's log, else the one that its fields name."""
    if logged_trace is not None:
        return logged_trace
    system, model, benchmark = (
        None if record.get(name) is None else str(record[name])
        for name in ("mas_name", "llm_name", "benchmark_name")
    )
    name = record.get("trace_id")
    if isinstance(name, int) and not isinstance(name, bool):
        # The numbers of traces repeat for each system and benchmark.
        name = "/".join([*filter(None, (system, model, benchmark)), str(name)])
    if not isinstance(name, str) or not name.strip():
        raise ValueError("has no 'trace_id', and no log to identify the trace")
    return TraceRecord(name, system=system, model=model, benchmark=benchmark)


def _record_work(
    record: Record, trace_id: str, taxonomy: Taxonomy, file: Path, author: str | None
) -> ImportedWork:
    """Return the work in a record, by ``author``, else its own annotator, else ``mast-data``.

    Raises:
        ValueError: A mode or value is not valid.
    """
    record_author = record.get("annotator")
    name = annotator_of(ANNOTATOR if record_author is None else str(record_author), author)
    kind = AnnotatorKind.IMPORTED if record_author is None else annotator_kind(name)
    finished_at = None if record.get(_FINISHED_FIELD) is False else UNKNOWN_TIME
    draft = ImportedWork(name, trace_id, taxonomy.ref, kind, finished_at=finished_at, file=file)
    unsure_codes = record.get(_UNSURE_FIELD, [])
    if not isinstance(unsure_codes, list):
        raise ValueError(f"{_UNSURE_FIELD} is {unsure_codes!r}, not a list of codes")
    for code in unsure_codes:
        draft.add_verdict(_mode_of(code, taxonomy).slug, VerdictValue.UNSURE)
    for code, value in record[_LABELS_FIELD].items():
        mode = _mode_of(code, taxonomy)
        if value is None:
            continue
        if value not in (0, 1):
            raise ValueError(f"mode {code} is {value!r}, not 1, 0 or null")
        if value:
            draft.add_label(draft.label(mode.slug))
        else:
            draft.add_verdict(mode.slug, VerdictValue.ABSENT)
    return draft


def _mode_of(code: object, taxonomy: Taxonomy) -> Mode:
    mode = taxonomy.find(str(code))
    if mode is None:
        raise ValueError(f"mode {code!r} is not in {taxonomy.ref}")
    return mode


def mast_data_records(
    all_work: Iterable[TraceWork], records: Mapping[str, TraceRecord], taxonomy: Taxonomy
) -> list[dict[str, Any]]:
    """Return a record of the MAST dataset for each annotator's work on a trace.

    A mode is 1 for present and 0 for absent. Unsure and open modes are None, since a 0 would hide
    them. ``unsure`` lists unsure modes, and ``finished`` is False for unfinished work.

    Args:
        all_work: The work of annotators under the taxonomy.
        records: The known facts of traces by id.
        taxonomy: The taxonomy.
    """
    mast_records = []
    for work in sorted(all_work, key=lambda work: (work.trace_id, work.annotator)):
        trace = records.get(work.trace_id, TraceRecord(work.trace_id))
        verdicts = {mode.code: work.verdict(mode.slug) for mode in taxonomy.modes}
        unsure_codes = [code for code, value in verdicts.items() if value is VerdictValue.UNSURE]
        mast_records.append(
            {
                "mas_name": trace.system,
                "llm_name": trace.model,
                "benchmark_name": trace.benchmark,
                "trace_id": trace.trace_id,
                "annotator": work.annotator,
                "taxonomy": taxonomy.ref,
                _LABELS_FIELD: {code: NUMBERS.get(value) for code, value in verdicts.items()},
                **({_UNSURE_FIELD: unsure_codes} if unsure_codes else {}),
                **({_FINISHED_FIELD: False} if work.finished_at is None else {}),
            }
        )
    return mast_records
