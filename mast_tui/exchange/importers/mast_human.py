"""The human labels of the MAST study: three people on whole traces, under older taxonomies.

Label records have ``hf_annotations``: mode → annotator → true or false. Trace records have
``trace_text``, and ``human_labels`` with a yes or no for each code.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from mast_tui.exchange.errors import ExchangeError, RowProblem
from mast_tui.exchange.import_batch import UNKNOWN_TIME, ImportedWork, Incoming, IncomingBuilder
from mast_tui.exchange.mast_data import mast_binding
from mast_tui.exchange.trace_files import files_under, read_records, read_traces
from mast_tui.labels import AnnotatorKind, VerdictValue, checked_person
from mast_tui.taxonomy.loader import from_dict, load_mast
from mast_tui.taxonomy.model import Taxonomy, differences
from mast_tui.traces.model import Trace
from mast_tui.workspace.records import TraceRecord

_FIRST_LINE: Final = re.compile(r"\s*([0-9]+)\.([0-9]+)\s+(\S.*)")
VERSION: Final = "1"


class _Heading(NamedTuple):
    """A heading of a mode: a code of two numbers, a name, and the definition below."""

    first: int
    second: int
    name: str
    definition: str

    @classmethod
    def of(cls, text: str) -> _Heading:
        """Parse a heading.

        Raises:
            ValueError: The code or the name is missing.
        """
        match = _FIRST_LINE.match(text)
        if match is None:
            raise ValueError(f"{text[:40]!r} is not a heading such as '1.3 Step repetition'")
        definition = "\n".join(text.strip().split("\n")[1:])
        return cls(int(match[1]), int(match[2]), match[3].strip(), definition)


def taxonomy_of(scheme: str, headings: Iterable[str]) -> Taxonomy:
    """Return the taxonomy ``<scheme>@1`` with a mode for each heading.

    The first number of a code is its category. Categories have no names in the files.

    Args:
        scheme: The name of the label scheme.
        headings: The headings of the modes.

    Raises:
        ValueError: A heading has no code or no name.
    """
    ordered = sorted(
        map(_Heading.of, headings), key=lambda heading: (heading.first, heading.second)
    )
    groups = sorted({heading.first for heading in ordered})
    return from_dict(
        {
            "id": _slug_of_name(scheme).replace("_", "-"),
            "version": VERSION,
            "name": f"MAST study, {scheme}",
            "categories": [{"id": f"group-{n}", "name": f"Group {n}"} for n in groups],
            "modes": [
                {
                    "slug": _slug_of_name(heading.name),
                    "code": f"{heading.first}.{heading.second}",
                    "name": heading.name,
                    "category": f"group-{heading.first}",
                    "definition": heading.definition,
                }
                for heading in ordered
            ],
        },
        scheme,
    )


def _slug_of_name(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.casefold()).strip("_")[:64].strip("_")


CONSENSUS: Final = "mast-consensus"


@dataclass(frozen=True, slots=True)
class _Record:
    """One record of a file."""

    file: Path
    number: int
    fields: Mapping[str, object]

    def text(self, name: str) -> str | None:
        value = self.fields.get(name)
        return value if isinstance(value, str) and value.strip() else None

    def table(self, name: str) -> Mapping[str, object]:
        value = self.fields.get(name)
        return value if isinstance(value, Mapping) else {}

    def problem(self, reason: object) -> RowProblem:
        return RowProblem(self.file, f"record {self.number}", str(reason))


_Answer = tuple[str, str, bool]
"""An annotator, the slug of a mode, and True for present."""


def read_mast_human(files: Sequence[Path], annotator: str | None = None) -> Incoming:
    """Read the human labels of the MAST study.

    A label record has the answers of people, who keep their names. Its headings become a taxonomy.

    A trace record has ``human_labels``, which become labels of MAST by ``annotator``. Codes are
    translated by the names printed beside them.

    If the files have only one kind of record, the other is searched beside them.

    Args:
        files: The files and folders.
        annotator: The author of ``human_labels``; None for ``mast-consensus``.

    Raises:
        ExchangeError: No file holds such labels.
    """
    problems: list[RowProblem] = []
    named_files = list(files_under(files, (".json", ".jsonl")))
    records = list(_label_and_trace_records(named_files, problems))
    if not records and not problems:
        raise ExchangeError(
            f"{files[0]}: no human labels of MAST; expected records with 'hf_annotations', or "
            "'trace_text' and 'human_labels'"
        )
    kinds = {_is_label(record) for record in records}
    if len(kinds) == 1:
        other_records = _other_records_in_folders(named_files)
        records += [record for record in other_records if _is_label(record) not in kinds]
    reader = _Reader([record for record in records if not _is_label(record)], problems)
    for record in filter(_is_label, records):
        reader.add_people(record)
    reader.add_consensus(annotator or CONSENSUS)
    return reader.to_incoming()


def _check_same_run(label_record: _Record, trace_record: _Record, native_id: str) -> None:
    """Check that a label record and a trace record are about the same run."""
    for label_field, trace_field in (("iaa_round", "round"), ("mas_name", "mas_name")):
        value = label_record.fields.get(label_field)
        trace_value = trace_record.fields.get(trace_field)
        if value != trace_value:
            raise ValueError(
                f"{native_id}: {label_field} is {value!r}, but the trace of this number has "
                f"{trace_value!r}"
            )
    instance = label_record.text("instance_id")
    if instance and instance not in str(trace_record.fields["trace_text"]):
        raise ValueError(f"{native_id}: instance {instance!r} is not in the trace's text")


def _is_label(record: _Record) -> bool:
    return "hf_annotations" in record.fields


def _label_and_trace_records(
    files: Sequence[Path], problems: list[RowProblem]
) -> Iterator[_Record]:
    """Yield the label records and trace records in files."""
    for file, records in read_records(files, problems):
        for number, fields in enumerate(records):
            if isinstance(fields, Mapping) and (
                isinstance(fields.get("hf_annotations"), Mapping)
                or (isinstance(fields.get("trace_text"), str) and "human_labels" in fields)
            ):
                yield _Record(file, number, fields)


def _other_records_in_folders(named_files: Sequence[Path]) -> Iterator[_Record]:
    """Yield the label records and trace records in the JSON files beside the given ones.

    Unreadable files are ignored, since the user has not named them.
    """
    folders = sorted({file.parent for file in named_files})
    files = [file for folder in folders for file in sorted(folder.glob("*.json"))]
    other_files = [file for file in files if file not in named_files]
    return _label_and_trace_records(other_files, problems=[])


class _Reader(IncomingBuilder):
    """The reader of the records."""

    def __init__(self, trace_records: Sequence[_Record], problems: list[RowProblem]) -> None:
        super().__init__(problems=problems)
        self._trace_records = trace_records
        self._trace_by_record = _traces_by_record(trace_records)

    def add_people(self, record: _Record) -> None:
        """Add the labels of all people in a label record."""
        try:
            trace = self._trace_by_record.get(self._trace_record_key(record))
            headings = record.table("hf_annotations")
            scheme = record.text("hf_label_scheme") or record.text("iaa_round") or "mast-human"
            taxonomy = taxonomy_of(scheme, headings)
            # Definitions of a mode differ between records. The first one is kept.
            changed = differences(self.taxonomies.setdefault(taxonomy.ref, taxonomy), taxonomy)
            if changed:
                raise ValueError(
                    f"the headings of {scheme} name different modes than another record's: "
                    + "; ".join(changed)
                )
            answers = list(_people_answers(headings))
            trace_record = _trace_record(trace, record)
            self._add_answers(answers, trace_record, taxonomy, AnnotatorKind.HUMAN, record.file)
        except ValueError as error:
            self.problems.append(record.problem(error))
            return
        if trace is None:
            self.notes.append(
                f"{trace_record.trace_id}: trace not found; labels are kept under this id"
            )
        self.notes.append(
            f"{taxonomy.ref}: {len(taxonomy.modes)} modes, as in the file's headings; without "
            "a crosswalk they are not translated to MAST, 3.2 and 3.3 included"
        )

    def add_consensus(self, annotator: str) -> None:
        """Add the ``human_labels`` of all trace records, the consensus of the people.

        The records print names of failures with their codes. These names give the mode of each
        code.

        Args:
            annotator: The author of the labels.
        """
        if not self._trace_records:
            return
        mast = load_mast()
        try:
            printed_names = [_printed_failures(record) for record in self._trace_records]
            binding = mast_binding(mast, printed_names)
        except ValueError as error:
            self.problems.append(self._trace_records[0].problem(error))
            return
        for record in self._trace_records:
            trace = self._trace_by_record.get((record.file, record.number))
            try:
                if trace is None:
                    raise ValueError("no trace was recognised in 'trace_text'")
                labels = record.table("human_labels")
                answers = [
                    (annotator, _bound_slug(code, binding.slugs), value)
                    for code, value in _yes_or_no(labels)
                ]
                trace_record = _trace_record(trace, record)
                self._add_answers(answers, trace_record, mast, AnnotatorKind.IMPORTED, record.file)
            except ValueError as error:
                self.problems.append(record.problem(error))
        self.taxonomies[mast.ref] = mast
        self.notes.append(f"{annotator}: {binding.in_words}")

    def _trace_record_key(self, record: _Record) -> tuple[Path, int] | None:
        """Return the file and number of a label record's trace record; None without trace records.

        ``trace_id`` ``hf_3`` is the record with number 3.

        Raises:
            ValueError: There is no such trace record, or it is about another run.
        """
        native_id = record.text("trace_id")
        if native_id is None:
            raise ValueError("no 'trace_id' in the record")
        if not self._trace_records:
            return None
        for trace_record in self._trace_records:
            number = trace_record.fields.get("index", trace_record.number)
            if str(number) == native_id.removeprefix("hf_"):
                _check_same_run(record, trace_record, native_id)
                return trace_record.file, trace_record.number
        raise ValueError(f"{native_id}: no trace record has this number")

    def _add_answers(
        self,
        answers: Iterable[_Answer],
        trace: TraceRecord,
        taxonomy: Taxonomy,
        kind: AnnotatorKind,
        file: Path,
    ) -> None:
        """Add the answers of a record, all or none.

        Raises:
            ValueError: An answer is not valid; then none of them is added.
        """
        drafts: dict[tuple[str, str, str], ImportedWork] = {}
        for name, mode, is_present in answers:
            new = ImportedWork(
                name, trace.trace_id, taxonomy.ref, kind, finished_at=UNKNOWN_TIME, file=file
            )
            if new.key in self.drafts:
                raise ValueError(f"{trace.trace_id} has two records by {name}")
            draft = drafts.setdefault(new.key, new)
            if is_present:
                draft.add_label(draft.label(mode))
            else:
                draft.add_verdict(mode, VerdictValue.ABSENT)
        self.drafts |= drafts
        self.traces[trace.trace_id] = trace

    def to_incoming(self) -> Incoming:
        """Return the import, with each note once."""
        self.notes = list(dict.fromkeys(self.notes))
        return super().to_incoming()


def _trace_record(trace: Trace | None, record: _Record) -> TraceRecord:
    """Return the facts of a trace; without the trace, those in the record."""
    if trace is not None:
        return TraceRecord.from_trace(trace)
    return TraceRecord(
        record.text("trace_id") or "",
        system=record.text("mas_name"),
        benchmark=record.text("benchmark_name"),
    )


def _traces_by_record(records: Sequence[_Record]) -> dict[tuple[Path, int] | None, Trace]:
    """Return the traces in the files of records, by file and record number.

    The type allows the key None for lookups of labels without a trace record.
    """
    traces: dict[tuple[Path, int] | None, Trace] = {}
    for file in {record.file for record in records}:
        for trace in read_traces(file):
            traces[file, trace.record or 0] = trace
    return traces


def _people_answers(headings: Mapping[str, object]) -> Iterator[_Answer]:
    for heading, answers in headings.items():
        if not isinstance(answers, Mapping):
            first_line = heading.split("\n")[0]
            raise ValueError(f"{first_line!r}: no answers by annotators")
        for name, is_present in _yes_or_no(answers):
            yield checked_person(name), _slug_of_name(_Heading.of(heading).name), is_present


def _yes_or_no(answers: Mapping[str, object]) -> Iterator[tuple[str, bool]]:
    """Yield the answers that are not null or NaN."""
    for name, value in answers.items():
        if value is None or _is_nan(value):
            continue
        if value not in (True, False):  # 1 and 0 are equal to them
            raise ValueError(f"{name}: {value!r} is not an answer; expected true, false, 1 or 0")
        yield name, bool(value)


def _is_nan(value: object) -> bool:
    if isinstance(value, str):
        return value.strip().casefold() in ("", "nan")
    return isinstance(value, float) and math.isnan(value)


def _bound_slug(code: str, slugs: Mapping[str, str]) -> str:
    if code not in slugs:
        raise ValueError(f"human_labels: {code!r} is not a code of MAST")
    return slugs[code]


def _printed_failures(record: _Record) -> list[str]:
    failures = record.table("human_label_summary").get("failures")
    return [f for f in failures if isinstance(f, str)] if isinstance(failures, list) else []
