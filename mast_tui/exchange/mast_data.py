"""``mast-data``: records with a yes or no per mode, as this program writes them and MAST-Data has.

A record of ours names its trace, annotator and taxonomy. One of MAST-Data numbers its traces
anew for each system and benchmark, so its trace is known by the log in it.

Files that look alike bind 3.2 and 3.3 in opposite ways. So a number means the mode whose name is
printed beside it (``mast_binding``), and is never trusted alone where there is a name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mast_tui.exchange.csv_wide import NUMBERS
from mast_tui.exchange.import_batch import Gathered, ImportedWork, Incoming, joined, taxonomy_named
from mast_tui.exchange.names import annotator_of, check_one_name
from mast_tui.exchange.trace_files import read_each, read_json, read_traces
from mast_tui.labels import AnnotatorKind, TraceWork, VerdictValue, annotator_kind
from mast_tui.taxonomy.loader import load_mast
from mast_tui.taxonomy.model import Mode, Taxonomy
from mast_tui.workspace.records import TraceRecord

_DRIFTING: Final = ("3.2", "3.3")
_BY_NUMBER: Final = "by number, as no name is printed in the file"


@dataclass(frozen=True, slots=True)
class Binding:
    """The slug of each code, and a sentence for people on how 3.2 and 3.3 were bound."""

    slugs: Mapping[str, str]
    in_words: str


def mast_binding(mast: Taxonomy, printed: Iterable[Iterable[str]]) -> Binding:
    """Bind the codes by printed names such as ``3.3 Weak Verification``.

    A name is known by the taxonomy's own names first, then by its aliases. Codes without a
    printed name keep their number, unless a name has given its mode to another code: then they
    get what is left. Raises ``ValueError`` where names and codes do not go one to one.

    Args:
        mast: The taxonomy MAST.
        printed: The printed names of each record.
    """
    slugs = {mode.code: mode.slug for mode in mast.modes}
    named: dict[str, tuple[str, str]] = {}
    for failure in (failure for failures in printed for failure in failures):
        code, _, name = failure.strip().partition(" ")
        mode = _by_name(mast, name)
        if mode is None or code not in slugs:
            continue
        if code in named and named[code][0] != mode.slug:
            raise ValueError(f"{code} is printed as {named[code][1]!r} and as {name!r}")
        named[code] = (mode.slug, name)
    slugs = _one_to_one(slugs, {code: slug for code, (slug, _) in named.items()})
    return Binding(slugs, "; ".join(_in_words(mast, code, slugs, named) for code in _DRIFTING))


def _one_to_one(by_number: Mapping[str, str], named: Mapping[str, str]) -> dict[str, str]:
    if len(set(named.values())) < len(named):
        raise ValueError("two codes are printed with names of the same mode")
    left = [slug for slug in by_number.values() if slug not in named.values()]
    slugs = dict(named)
    for code, slug in by_number.items():
        if code not in named and slug in left:
            slugs[code] = slug
            left.remove(slug)
    for code in by_number:
        if code not in slugs:
            slugs[code] = left.pop(0)
    return slugs


def _in_words(
    mast: Taxonomy,
    code: str,
    slugs: Mapping[str, str],
    named: Mapping[str, tuple[str, str]],
) -> str:
    bound = mast.mode(slugs[code])
    how = f"by its name {named[code][1]!r}" if code in named else _BY_NUMBER
    if code not in named and bound.code != code:
        how = "what the printed names leave"
    return f"{code} of the file is {bound.code} {bound.name} ({how})"


def _by_name(mast: Taxonomy, name: str) -> Mode | None:
    folded = " ".join(name.split()).casefold()
    for mode in mast.modes:
        if mode.name.casefold() == folded:
            return mode
    for mode in mast.modes:
        if any(alias.name.casefold() == folded for alias in mode.aliases):
            return mode
    return None


ANNOTATOR: Final = "mast-data"
_LABELS: Final = "mast_annotation"
Record = Mapping[str, Any]
FindTaxonomy = Callable[[str], Taxonomy | None]


def read_mast_data(
    files: Sequence[Path],
    *,
    taxonomy: Taxonomy,
    find_taxonomy: FindTaxonomy,
    annotator: str | None = None,
) -> Incoming:
    """Read one record, a list of them or one a line; a folder stands for the JSON files in it.

    Null is not judged. A record that cannot be read is a problem.

    Args:
        files: The files and folders.
        taxonomy: The taxonomy of records without one.
        find_taxonomy: Returns a taxonomy by ``id@version``, None if it is not known.
        annotator: The name of the one author of all rows, None if the rows name them.
    """
    batch = Gathered()
    foreign = False
    for file, document in read_each(files, batch.problems, read_json):
        records = document if isinstance(document, list) else [document]
        at_hand = _traces_in(file, records)
        for number, record in enumerate(records):
            try:
                chosen = _taxonomy(record, taxonomy, find_taxonomy)
                trace = _trace(record, at_hand.get(number))
                draft = _draft(record, trace.trace_id, chosen, file, annotator)
                name, trace_id, _ = draft.key
                if draft.key in batch.drafts:
                    raise ValueError(f"{name} on trace {trace_id!r} comes twice; keep one record")
                earlier = batch.traces.get(trace_id)
                batch.traces[trace_id] = trace if earlier is None else joined(earlier, trace)
            except ValueError as error:
                batch.wrong(file, f"record {number + 1}", error)
                continue
            batch.keep(draft)
            batch.taxonomies[chosen.ref] = chosen
            foreign = foreign or "annotator" not in record
    check_one_name(annotator, (name for name, _, _ in batch.drafts))
    if foreign:
        batch.notes.append(mast_binding(load_mast(), ()).in_words)
    return batch.done()


def _traces_in(file: Path, records: Sequence[object]) -> dict[int, TraceRecord]:
    """Return the traces that records carry themselves, by the number of the record."""
    if not any(isinstance(r, Mapping) and ("trace" in r or "trace_text" in r) for r in records):
        return {}
    return {trace.record or 0: TraceRecord.from_trace(trace) for trace in read_traces(file)}


def _taxonomy(record: object, default: Taxonomy, find_taxonomy: FindTaxonomy) -> Taxonomy:
    if not isinstance(record, Mapping) or not isinstance(record.get(_LABELS), Mapping):
        raise ValueError(f"has no {_LABELS!r} with a 1 or 0 per mode")
    return taxonomy_named(record.get("taxonomy"), default, find_taxonomy)


def _trace(record: Record, at_hand: TraceRecord | None) -> TraceRecord:
    if at_hand is not None:
        return at_hand
    system, model, benchmark = (
        None if record.get(name) is None else str(record[name])
        for name in ("mas_name", "llm_name", "benchmark_name")
    )
    name = record.get("trace_id")
    if isinstance(name, int) and not isinstance(name, bool):
        # Numbered anew for each system and benchmark, so the number alone names nothing.
        name = "/".join([*filter(None, (system, model, benchmark)), str(name)])
    if not isinstance(name, str) or not name.strip():
        raise ValueError("has no 'trace_id', nor a log that would tell the trace")
    return TraceRecord(name, system=system, model=model, benchmark=benchmark)


def _draft(
    record: Record, trace_id: str, taxonomy: Taxonomy, file: Path, author: str | None
) -> ImportedWork:
    ours = record.get("annotator")
    name = annotator_of(ANNOTATOR if ours is None else str(ours), author)
    kind = AnnotatorKind.IMPORTED if ours is None else annotator_kind(name)
    draft = ImportedWork(name, trace_id, taxonomy.ref, kind, finished_at="", file=file)
    for code, value in record[_LABELS].items():
        mode = taxonomy.find(str(code))
        if mode is None:
            raise ValueError(f"mode {code!r} is none of {taxonomy.ref}")
        if value is None:
            continue
        if value not in (0, 1):
            raise ValueError(f"mode {code} is {value!r}, not 1, 0 or null")
        if not value:
            draft.add_verdict(mode.slug, VerdictValue.ABSENT)
            continue
        draft.add_label(draft.label(mode.slug))
    return draft


def mast_data_records(
    all_work: Iterable[TraceWork], records: Mapping[str, TraceRecord], taxonomy: Taxonomy
) -> list[dict[str, Any]]:
    """Return the records in the order of trace and annotator.

    1 is present, 0 absent, None unsure, unresolved or not judged: a missing answer that counts as 0
    would hide that no one looked at the mode.

    Args:
        all_work: The work of annotators under the taxonomy.
        records: The known facts of traces by id.
        taxonomy: The taxonomy.
    """
    written = []
    for work in sorted(all_work, key=lambda work: (work.trace_id, work.annotator)):
        trace = records.get(work.trace_id, TraceRecord(work.trace_id))
        written.append(
            {
                "mas_name": trace.system,
                "llm_name": trace.model,
                "benchmark_name": trace.benchmark,
                "trace_id": trace.trace_id,
                "annotator": work.annotator,
                "taxonomy": taxonomy.ref,
                _LABELS: {
                    mode.code: NUMBERS.get(work.verdict(mode.slug)) for mode in taxonomy.modes
                },
            }
        )
    return written
