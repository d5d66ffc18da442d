"""TRAIL: the errors of a run, each with its category and the span in which it shows.

``location`` is the id of a span; the labels of a run lie in a file of its own, which is named by
the trace id and mostly does not hold it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from mast_tui.counts import counted
from mast_tui.exchange.errors import ExchangeError
from mast_tui.exchange.import_batch import ImportedWork, Incoming, LabelledRuns
from mast_tui.exchange.trace_files import read_each, read_json, read_traces
from mast_tui.labels import Target
from mast_tui.traces.io.json_values import InvalidJSON, as_text, load_json
from mast_tui.traces.model import Trace
from mast_tui.traces.readers.otel import spans as otel_spans

_NEIGHBOURS: Final = ("*/*.json", "../*/*.json", "../data/*/*.json")
"""Patterns of files with traces, relative to the labels' folder; the last is that of the published
set."""

_STRING_OR_TRAILING_COMMA: Final = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])', re.DOTALL)


def read_trail(files: Sequence[Path], annotator: str | None = None) -> Incoming:
    """Read label files: objects with ``errors`` and an optional ``trace_id``.

    The id of a run is the ``trace_id``, or the stem of the label file without it. The trace of the
    run is searched among ``files``, beside the label file, and in the folders of the published set.
    If it is not found, the labels are stored under the id of the run, with the span ids of the
    label file.

    Args:
        files: The files and folders.
        annotator: The annotator's name, None for the usual one.

    Raises:
        ExchangeError: No file among ``files`` is a label file.
    """
    reader = _Reader(annotator)
    label_files = []
    for file, document in read_each(files, reader.problems, _read_lenient_json):
        if labels := _label_records(document):
            label_files.append((file, labels))
        else:
            reader.note_trace(file, document)
    if not label_files and not reader.problems:
        raise ExchangeError(f"{files[0]}: no TRAIL labels; name the file with 'errors'")
    for file, labels in label_files:
        for number, record in enumerate(labels):
            reader.read(file, "file" if len(labels) == 1 else f"record {number}", record)
    return reader.done()


def _read_lenient_json(file: Path) -> object:
    """Return the JSON document in a file; commas before a closing bracket are allowed.

    Raises:
        ValueError: The file is not JSON even without such commas.
    """
    try:
        return read_json(file)
    except ValueError as error:
        text = file.read_text("utf-8", "replace")
        repaired_text = _STRING_OR_TRAILING_COMMA.sub(lambda m: "" if m[0] == "," else m[0], text)
        try:
            return load_json(repaired_text)
        except InvalidJSON:
            raise error from None


def _label_records(document: object) -> list[Mapping[str, object]]:
    """Return the records of a label file; an empty list for any other document."""
    records = document if isinstance(document, list) else [document]
    label_records = [record for record in map(_label_record, records) if record is not None]
    return label_records if len(label_records) == len(records) else []


def _label_record(value: object) -> Mapping[str, object] | None:
    """Return the record of labels in a JSON value; None if there is none.

    The value is the record, or a row of the published tables, in which it may be JSON text.
    """
    if isinstance(value, Mapping) and "labels" in value and "trace" in value:
        value = value["labels"]
        if isinstance(value, str):
            try:
                value = load_json(value)
            except InvalidJSON:
                return None
    if isinstance(value, Mapping) and "errors" in value and "spans" not in value:
        return value
    return None


class _Reader(LabelledRuns):
    """The labels that were read so far."""

    def __init__(self, annotator: str | None) -> None:
        note = "the impact that TRAIL gives stands in the note; no severity follows from it"
        super().__init__("trail", annotator, _plain_spelling, note)
        self._files: dict[str, Path] = {}
        self._neighbours: dict[Path, dict[str, list[Path]]] = {}
        self._unquoted = 0

    def note_trace(self, file: Path, document: object) -> None:
        """Record a file that may hold a trace, by its name and by the id in it.

        Args:
            file: The file.
            document: The JSON document.
        """
        self._files.setdefault(file.stem, file)
        native = as_text(document.get("trace_id")) if isinstance(document, Mapping) else None
        if native is not None:
            self._files.setdefault(otel_spans.trace_id(native) or native, file)

    def read(self, file: Path, location: str, record: Mapping[str, object]) -> None:
        """Read the labels of one run.

        Args:
            file: The file.
            location: The location in the file.
            record: The record.
        """
        errors = record.get("errors")
        if not isinstance(errors, list):
            self.wrong(file, location, "'errors' is no list")
            return
        native = as_text(record.get("trace_id")) or file.stem
        native = otel_spans.trace_id(native) or native
        trace = self._trace_of_run(file, native)
        draft = self.work(file, native, trace, replaces=False)
        for number, error in enumerate(errors):
            try:
                self._add_error(draft, trace, error)
            except ValueError as problem:
                where = f"error {number}" if location == "file" else f"{location}, error {number}"
                self.wrong(file, where, problem)

    def _trace_of_run(self, file: Path, native: str) -> Trace | None:
        """Return the trace of a run from the first candidate file that holds it; None without one.

        The only trace of a candidate file is that of the run, whatever its id.
        """
        for path in self._candidate_files(file, native):
            traces = read_traces(path)
            for trace in traces:
                if trace.identity.trace_id == native or len(traces) == 1:
                    return trace
        return None

    def _candidate_files(self, file: Path, native: str) -> Iterator[Path]:
        """Yield the files that may hold the trace of a run: named files, then neighbours."""
        folder = file.parent.resolve()
        if folder not in self._neighbours:
            neighbours = self._neighbours[folder] = {}
            for pattern in _NEIGHBOURS:
                base_folder = folder.parent if pattern.startswith("../") else folder
                for path in sorted(base_folder.glob(pattern.removeprefix("../"))):
                    neighbours.setdefault(path.stem, []).append(path)
        own_path = file.resolve()
        for name in dict.fromkeys((native, file.stem)):
            if name in self._files:
                yield self._files[name]
            yield from (path for path in self._neighbours[folder].get(name, ()) if path != own_path)

    def _add_error(self, draft: ImportedWork, trace: Trace | None, error: object) -> None:
        """Add the label of an error to a draft.

        Raises:
            ValueError: A field of the error is missing or not valid.
        """
        if not isinstance(error, Mapping):
            raise ValueError("an error is no object")
        mode = self.mode("category", as_text(error.get("category")) or "")
        location = as_text(error.get("location"))
        if location is None:
            raise ValueError(f"location is {error.get('location')!r}, not the id of a span")
        span = otel_spans.span_id(location) or location.strip()
        evidence = as_text(error.get("evidence"))
        target = Target(span, span)
        if trace is not None:
            target = _evidence_target(trace, span, evidence)
        if trace is not None and evidence is not None and target.quote is None:
            self._unquoted += 1
        notes = [as_text(error.get("description"))]
        if evidence is not None and target.quote is None:
            notes.append(f"Evidence: {evidence.strip()}")
        if (impact := as_text(error.get("impact"))) is not None:
            notes.append(f"Impact: {impact.strip()}")
        note = "\n".join(note.strip() for note in notes if note)
        draft.join_label(draft.label(mode.slug, target, note))

    def done(self) -> Incoming:
        """Return everything that was read."""
        if self._unquoted:
            labels = counted(self._unquoted, "label has", "labels have")
            self.notes.append(f"{labels} evidence that is not in the span's text; the note has it")
        return super().done()


def _plain_spelling(name: str) -> str:
    """Return a name without case, signs and plurals: spellings of categories vary."""
    return "".join(word.rstrip("s") for word in re.findall(r"[a-z0-9]+", name.casefold()))


def _evidence_target(trace: Trace, span: str, evidence: str | None) -> Target:
    """Return the target of a label: its evidence as a quote, or the span if that lacks it.

    A span of the source may be several spans of the trace. The first one with the evidence counts.

    Raises:
        ValueError: The trace has no such span.
    """
    indices = []
    for index in range(len(trace)):
        key = trace.span(index).key
        if key == span or key.startswith(f"{span}/"):
            indices.append(index)
    if not indices:
        raise ValueError(f"location is {span!r}, but the trace has no such span")
    for index in indices if evidence is not None else ():
        text = trace.text(index)
        bounds = _passage_bounds(text, evidence or "")
        if bounds is not None:
            start, end = bounds
            key = trace.span(index).key
            return Target(key, key, text[start:end], start, end)
    exact_index = trace.index_of(span)
    key = trace.span(indices[0] if exact_index is None else exact_index).key
    return Target(key, key)


def _passage_bounds(text: str, evidence: str) -> tuple[int, int] | None:
    """Return start and end of a passage in a text, None if the text lacks it.

    White space may differ.
    """
    evidence = evidence.strip()
    unescaped = evidence.replace("\\n", "\n").replace('\\"', '"')  # copied from within JSON
    for variant in dict.fromkeys((evidence, unescaped, unescaped.strip("\"'` \n"))):
        if not variant.strip():
            continue
        start = text.find(variant)
        if start >= 0:
            return start, start + len(variant)
        match = re.search(r"\s+".join(map(re.escape, variant.split())), text)
        if match is not None:
            return match.start(), match.end()
    return None
