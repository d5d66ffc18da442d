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
"""Where the traces may lie, seen from the labels' folder; the last is as the set was published."""

_STRING_OR_TRAILING_COMMA: Final = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])', re.DOTALL)


def read_trail(files: Sequence[Path], annotator: str | None = None) -> Incoming:
    """Read label files: objects with ``errors`` and, where they tell it, ``trace_id``.

    Traces are looked for by this id, else by the label file's stem, among the other files and
    folders named, beside the label file, and where the published set keeps them. Labels of a
    trace that is nowhere are kept under the id, on the span ids themselves. Raises
    ``ExchangeError`` where no label file is among ``files``.

    Args:
        files: The files and folders.
        annotator: The annotator's name, None for the usual one.
    """
    reader = _Reader(annotator)
    label_files = []
    for file, document in read_each(files, reader.problems, _read):
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


def _read(file: Path) -> object:
    """Return the file as JSON; commas before a closing bracket are allowed."""
    try:
        return read_json(file)
    except ValueError as error:
        text = file.read_text("utf-8", "replace")
        mended = _STRING_OR_TRAILING_COMMA.sub(lambda m: "" if m[0] == "," else m[0], text)
        try:
            return load_json(mended)
        except InvalidJSON:
            raise error from None


def _label_records(document: object) -> list[Mapping[str, object]]:
    """Return the records of a label file; none where the document is something else."""
    records = document if isinstance(document, list) else [document]
    label_records = [record for record in map(_label_record, records) if record is not None]
    return label_records if len(label_records) == len(records) else []


def _label_record(value: object) -> Mapping[str, object] | None:
    """Return the labels that a value is, or that a row of the set's tables holds as ``labels``."""
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
        super().__init__("trail", annotator, _spelling, note)
        self._files: dict[str, Path] = {}
        self._neighbours: dict[Path, dict[str, list[Path]]] = {}
        self._unquoted = 0

    def note_trace(self, file: Path, document: object) -> None:
        """Remember a file that may hold a trace, by its name and by the id in it.

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
        trace = self._trace(file, native)
        draft = self.work(file, native, trace, replaces=False)
        for number, error in enumerate(errors):
            try:
                self._add(draft, trace, error)
            except ValueError as problem:
                where = f"error {number}" if location == "file" else f"{location}, error {number}"
                self.wrong(file, where, problem)

    def _trace(self, file: Path, native: str) -> Trace | None:
        for path in self._candidates(file, native):
            traces = read_traces(path)
            for trace in traces:
                if trace.identity.trace_id == native or len(traces) == 1:
                    return trace
        return None

    def _candidates(self, file: Path, native: str) -> Iterator[Path]:
        folder = file.parent.resolve()
        if folder not in self._neighbours:
            neighbours = self._neighbours[folder] = {}
            for pattern in _NEIGHBOURS:
                above = folder.parent if pattern.startswith("../") else folder
                for path in sorted(above.glob(pattern.removeprefix("../"))):
                    neighbours.setdefault(path.stem, []).append(path)
        own_path = file.resolve()
        for name in dict.fromkeys((native, file.stem)):
            if name in self._files:
                yield self._files[name]
            yield from (path for path in self._neighbours[folder].get(name, ()) if path != own_path)

    def _add(self, draft: ImportedWork, trace: Trace | None, error: object) -> None:
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
            target = _target(trace, span, evidence)
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


def _spelling(name: str) -> str:
    """Return a name without case, signs and plurals: spellings of categories vary."""
    return "".join(word.rstrip("s") for word in re.findall(r"[a-z0-9]+", name.casefold()))


def _target(trace: Trace, span: str, evidence: str | None) -> Target:
    """Return the target of a label: the text of its evidence, or else the span.

    One span of the source may be several here; the first that holds the words is taken, else the
    first. Raises ``ValueError`` where the trace has no such span.
    """
    parts = [
        index
        for index in range(len(trace))
        if (key := trace.span(index).key) == span or key.startswith(f"{span}/")
    ]
    if not parts:
        raise ValueError(f"location is {span!r}, but the trace has no such span")
    for index in parts if evidence is not None else ():
        text = trace.text(index)
        if (bounds := _bounds(text, evidence or "")) is not None:
            key = trace.span(index).key
            return Target(key, key, text[bounds[0] : bounds[1]], *bounds)
    exact = trace.index_of(span)
    key = trace.span(parts[0] if exact is None else exact).key
    return Target(key, key)


def _bounds(text: str, evidence: str) -> tuple[int, int] | None:
    """Return the bounds of a passage in a text, whatever white space separates its parts."""
    evidence = evidence.strip()
    plain = evidence.replace("\\n", "\n").replace('\\"', '"')  # copied from within JSON
    for variant in dict.fromkeys((evidence, plain, plain.strip("\"'` \n"))):
        if not variant.strip():
            continue
        start = text.find(variant)
        if start >= 0:
            return start, start + len(variant)
        match = re.search(r"\s+".join(map(re.escape, variant.split())), text)
        if match is not None:
            return match.start(), match.end()
    return None
