"""Published sets of runs with labels: TRAIL, Who&When and AgentRx."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Final

from mast_tui.counts import counted
from mast_tui.exchange.errors import ExchangeError
from mast_tui.exchange.import_batch import (
    UNKNOWN_TIME,
    ImportedWork,
    Incoming,
    IncomingBuilder,
    LabelledRuns,
    shipped_taxonomy,
)
from mast_tui.exchange.trace_files import (
    files_under,
    message_spans,
    read_each,
    read_json,
    read_traces,
)
from mast_tui.labels import AnnotatorKind, Severity, Target
from mast_tui.parallel import LostItem, Workers, each
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.traces.io.json_values import InvalidJSON, as_text, load_json
from mast_tui.traces.model import Trace
from mast_tui.traces.readers.otel import spans as otel_spans
from mast_tui.workspace.records import TraceRecord

# TRAIL: the errors of a run with category and span.
#
# ``location`` is the id of a span. A file has the labels of one run. Its name is the trace id,
# which is mostly missing in the file.


_TRAIL_NEIGHBOURS: Final = ("*/*.json", "../*/*.json", "../data/*/*.json")
"""Patterns of trace files, relative to the folder of labels. The last one fits the published set.
"""

_STRING_OR_TRAILING_COMMA: Final = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])', re.DOTALL)


def read_trail(files: Sequence[Path], annotator: str | None = None) -> Incoming:
    """Read TRAIL's label files: records with ``errors`` and optionally ``trace_id``.

    Without ``trace_id``, the stem of the label file is the id of the run. The trace of a run is
    searched in ``files``, beside the label file, and in the folders of the published set. Without
    it, labels have the ids of the run and the spans as in the label file.

    Args:
        files: The files and folders.
        annotator: The annotator's name; None for ``trail``.

    Raises:
        ExchangeError: No file among ``files`` is a label file.
    """
    reader = _TrailReader(annotator)
    label_files = []
    for file, document in read_each(files, reader.problems, _read_lenient_json):
        label_records = _trail_label_records(document)
        if label_records:
            label_files.append((file, label_records))
        else:
            reader.note_trace_file(file, document)
    if not label_files and not reader.problems:
        raise ExchangeError(f"{files[0]}: no TRAIL labels; give the file with 'errors'")
    for file, label_records in label_files:
        for number, record in enumerate(label_records):
            location = "file" if len(label_records) == 1 else f"record {number}"
            reader.read(file, location, record)
    return reader.to_incoming()


def _read_lenient_json(file: Path) -> object:
    """Read a JSON file in which commas before a closing bracket are allowed.

    Raises:
        ValueError: The file is not JSON without these commas either.
    """
    try:
        return read_json(file)
    except ValueError as error:
        text = file.read_text("utf-8", "replace")
        # The pattern also matches whole strings, so that their commas stay.
        repaired_text = _STRING_OR_TRAILING_COMMA.sub(lambda m: "" if m[0] == "," else m[0], text)
        try:
            return load_json(repaired_text)
        except InvalidJSON:
            raise error from None


def _trail_label_records(document: object) -> list[Mapping[str, object]]:
    """Return the records of a label file; empty for another document."""
    values = document if isinstance(document, list) else [document]
    label_records = [record for record in map(_trail_label_record, values) if record is not None]
    all_are_labels = len(label_records) == len(values)
    return label_records if all_are_labels else []


def _trail_label_record(value: object) -> Mapping[str, object] | None:
    """Return TRAIL's record of labels in a JSON value; None if there is none.

    In TRAIL's tables, the record is the field ``labels`` of a row, as an object or as JSON text.
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


class _TrailReader(LabelledRuns):
    """The reader of TRAIL's labels."""

    def __init__(self, annotator: str | None) -> None:
        note = "TRAIL's impact is kept in the note; it sets no severity"
        super().__init__("trail", annotator, _without_case_and_plurals, note)
        self._trace_files: dict[str, Path] = {}
        """The imported files without labels, by stem and by trace id."""
        self._neighbours: dict[Path, dict[str, list[Path]]] = {}
        """The files near a folder of labels, by this folder and by stem."""
        self._unquoted_count = 0
        """The number of labels with evidence that is not in the text of their span."""

    def note_trace_file(self, file: Path, document: object) -> None:
        """Record a possible trace file by its stem and trace id.

        Args:
            file: The file.
            document: The JSON document in the file.
        """
        self._trace_files.setdefault(file.stem, file)
        native_id = as_text(document.get("trace_id")) if isinstance(document, Mapping) else None
        if native_id is not None:
            self._trace_files.setdefault(otel_spans.trace_id(native_id) or native_id, file)

    def read(self, file: Path, location: str, record: Mapping[str, object]) -> None:
        """Read the labels of one run.

        Args:
            file: The label file.
            location: The location of the record in the file, ``file`` for the only record.
            record: The record.
        """
        errors = record.get("errors")
        if not isinstance(errors, list):
            self.add_problem(file, location, "'errors' is not a list")
            return
        native_id = as_text(record.get("trace_id")) or file.stem
        # OpenTelemetry ids have several spellings, so they are normalised as in the trace.
        run_id = otel_spans.trace_id(native_id) or native_id
        trace = self._trace_of_run(file, run_id)
        draft = self.work(file, run_id, trace, replaces=False)
        for number, error in enumerate(errors):
            error_name = f"error {number}"
            error_location = error_name if location == "file" else f"{location}, {error_name}"
            with self.errors_as_problem(file, error_location):
                self._add_error(draft, trace, error)

    def _trace_of_run(self, label_file: Path, run_id: str) -> Trace | None:
        """Return the trace of a run from the first matching file; None if there is none.

        The only trace of a file matches with any id.
        """
        for path in self._candidate_files(label_file, run_id):
            traces = read_traces(path)
            for trace in traces:
                if trace.identity.trace_id == run_id or len(traces) == 1:
                    return trace
        return None

    def _candidate_files(self, label_file: Path, run_id: str) -> Iterator[Path]:
        """Yield the possible files of a run's trace: imported files before neighbours."""
        folder = label_file.parent.resolve()
        if folder not in self._neighbours:
            paths_by_stem = self._neighbours[folder] = {}
            for pattern in _TRAIL_NEIGHBOURS:
                # Paths without ``..`` can be compared with the path of the label file.
                base_folder = folder.parent if pattern.startswith("../") else folder
                for path in sorted(base_folder.glob(pattern.removeprefix("../"))):
                    paths_by_stem.setdefault(path.stem, []).append(path)
        label_path = label_file.resolve()
        for name in dict.fromkeys((run_id, label_file.stem)):
            if name in self._trace_files:
                yield self._trace_files[name]
            neighbours = self._neighbours[folder].get(name, [])
            yield from (path for path in neighbours if path != label_path)

    def _add_error(self, draft: ImportedWork, trace: Trace | None, error: object) -> None:
        """Add the label of an error.

        Raises:
            ValueError: A field of the error is missing or not valid.
        """
        if not isinstance(error, Mapping):
            raise ValueError("an error is not an object")
        mode = self.mode("category", as_text(error.get("category")) or "")
        span_id = as_text(error.get("location"))
        if span_id is None:
            raise ValueError(f"location is {error.get('location')!r}; expected the id of a span")
        span_key = otel_spans.span_id(span_id) or span_id.strip()
        evidence = as_text(error.get("evidence"))
        impact = as_text(error.get("impact"))
        target = Target(span_key, span_key)
        if trace is not None:
            target = _evidence_target(trace, span_key, evidence)
            if evidence is not None and target.quote is None:
                self._unquoted_count += 1
        note_lines = [as_text(error.get("description"))]
        if evidence is not None and target.quote is None:
            note_lines.append(f"Evidence: {evidence.strip()}")
        if impact is not None:
            note_lines.append(f"Impact: {impact.strip()}")
        note = "\n".join(line.strip() for line in note_lines if line)
        draft.join_label(draft.label(mode.slug, target, note))

    def to_incoming(self) -> Incoming:
        """Return the import, with a note on evidence outside the texts."""
        if self._unquoted_count:
            labels = counted(self._unquoted_count, "label has", "labels have")
            self.notes.append(
                f"{labels} evidence that is not in the span's text; it is kept in the note"
            )
        return super().to_incoming()


def _without_case_and_plurals(name: str) -> str:
    """Return the letters and digits of a name without case and plural endings."""
    return "".join(word.rstrip("s") for word in re.findall(r"[a-z0-9]+", name.casefold()))


def _evidence_target(trace: Trace, source_key: str, evidence: str | None) -> Target:
    """Return the target of the evidence: a quote, or a whole span if no text contains it.

    A source span can be several spans of the trace. Their keys begin with ``source_key``.

    Raises:
        ValueError: The trace has no such span.
    """
    indices = [
        index
        for index in range(len(trace))
        if f"{trace.span(index).key}/".startswith(f"{source_key}/")
    ]
    if not indices:
        raise ValueError(f"location is {source_key!r}, but the trace has no such span")
    if evidence is not None:
        for index in indices:
            text = trace.text(index)
            bounds = _passage_bounds(text, evidence)
            if bounds is not None:
                start, end = bounds
                key = trace.span(index).key
                return Target(key, key, text[start:end], start, end)
    exact_index = trace.index_of(source_key)
    key = trace.span(indices[0] if exact_index is None else exact_index).key
    return Target(key, key)


def _passage_bounds(text: str, evidence: str) -> tuple[int, int] | None:
    """Return the start and end of the evidence in a text; None if it is missing.

    White space may differ.
    """
    evidence = evidence.strip()
    unescaped = evidence.replace("\\n", "\n").replace('\\"', '"')  # may be copied from JSON
    unquoted = unescaped.strip("\"'` \n")
    for variant in dict.fromkeys((evidence, unescaped, unquoted)):
        if not variant.strip():
            continue
        start = text.find(variant)
        if start >= 0:
            return start, start + len(variant)
        match = re.search(r"\s+".join(map(re.escape, variant.split())), text)
        if match is not None:
            return match.start(), match.end()
    return None


# Who&When: runs with the agent and step of their decisive error.
#
# ``mistake_step`` is a text that counts from 0. The steps of AgentRx count from 1.


WHO_AND_WHEN: Final = "who-and-when"
DECISIVE_ERROR: Final = "decisive_error"


def read_who_and_when(
    files: Sequence[Path], annotator: str | None = None, workers: Workers | None = None
) -> Incoming:
    """Read the labels in Who&When files.

    If a label names another agent than the one of its step, a note reports it.

    Args:
        files: The files and folders.
        annotator: The annotator's name; None for ``who-and-when``.
        workers: The processes that read files; None for this process alone.
    """
    taxonomy = shipped_taxonomy("who_and_when")
    builder = IncomingBuilder({taxonomy.ref: taxonomy}, notes=["mistake_step counts from 0"])
    paths = [*files_under(files, (".json", ".jsonl"))]
    read = partial(_read_who_and_when_files, annotator or WHO_AND_WHEN, taxonomy)
    for file, file_contents in zip(paths, each(read, paths, workers), strict=True):
        if isinstance(file_contents, LostItem):  # the process that read the file has died
            builder.add_problem(file, "file", file_contents.reason)
            continue
        builder.traces |= {trace.trace_id: trace for trace in file_contents.traces}
        builder.drafts |= {work.key: work for work in file_contents.work}
        builder.problems += file_contents.problems
        builder.notes += file_contents.notes
    return builder.to_incoming()


def _read_who_and_when_files(
    name: str, taxonomy: Taxonomy, files: Sequence[Path]
) -> list[Incoming]:
    return [_read_who_and_when_file(name, taxonomy, file) for file in files]


def _read_who_and_when_file(name: str, taxonomy: Taxonomy, file: Path) -> Incoming:
    """Return the labels of a file; invalid records become problems."""
    builder = IncomingBuilder()
    for _, labelled in read_each([file], builder.problems, _labelled_traces):
        for trace, record in labelled:
            trace_id = trace.identity.trace_id
            draft = ImportedWork(
                name,
                trace_id,
                taxonomy.ref,
                AnnotatorKind.IMPORTED,
                finished_at=UNKNOWN_TIME,
                file=file,
            )
            location = "file" if trace.record is None else f"record {trace.record}"
            with builder.errors_as_problem(file, location):
                mismatch = _add_record_label(draft, trace, record)
                if mismatch:
                    builder.notes.append(f"{file}: {mismatch}")
                builder.add_work(draft)
                builder.traces[trace_id] = TraceRecord.from_trace(trace)
    return builder.to_incoming()


def _labelled_traces(file: Path) -> list[tuple[Trace, Mapping[str, object]]]:
    """Return the traces of a file with their records.

    Raises:
        ValueError: No trace was recognised, or a record has no ``mistake_step``.
    """
    document = read_json(file)
    records = document if isinstance(document, list) else [document]
    traces = read_traces(file)
    if not traces:
        raise ValueError("no trace was recognised in the file")
    labelled = []
    for trace in traces:
        record = records[trace.record or 0]
        if not isinstance(record, Mapping) or "mistake_step" not in record:
            raise ValueError("no 'mistake_step' in the record; this is not a Who&When file")
        labelled.append((trace, record))
    return labelled


def _add_record_label(
    draft: ImportedWork, trace: Trace, record: Mapping[str, object]
) -> str | None:
    """Add the label of a record, and return a sentence if it names another agent than its step."""
    step = _step_number(record["mistake_step"])
    spans = message_spans(trace, step)
    if spans is None:
        raise ValueError(f"mistake_step is {step}, but the run has no step {step} (counted from 0)")
    index = trace.index_of(spans[0])
    span_agent = trace.span(index).agent if index is not None else ""
    label_agent = str(record.get("mistake_agent") or "")
    note = str(record.get("mistake_reason") or "")
    mismatch = None
    if plain_agent_name(label_agent) != plain_agent_name(span_agent):
        mismatch = f"step {step} is by {span_agent!r}, but the label names {label_agent!r}"
        note = f"{note}\n({mismatch})".strip()
    draft.add_label(draft.label(DECISIVE_ERROR, Target(*spans), note))
    return mismatch


def _step_number(value: object) -> int:
    """Return the number of a step from an integer or a text of digits.

    Raises:
        ValueError: The value is not such a number.
    """
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
        return int(value)
    raise ValueError(f"mistake_step is {value!r}, not a number from 0")


def plain_agent_name(agent: str) -> str:
    """Return an agent's name without a remark in brackets and without case.

    The hand-crafted runs of the set have such remarks.
    """
    return agent.split("(")[0].strip().casefold()


# AgentRx: the failed steps of a run with their categories, and the root cause among them.
#
# ``step_number`` counts from 1. In runs of τ-bench ``trajectory_id`` is the ``task_id`` of a
# record, and step N is ``/traj/<N - 1>``.
#
# The answers of its judge (``detailed_results``, categories by number) and the planted faults of
# simulated runs (``critical_failure_step``) are read in the same form.


def read_agentrx(files: Sequence[Path], annotator: str | None = None) -> Incoming:
    """Read AgentRx's labels and the trajectories that they name.

    A label file is a list of records with ``trajectory_id`` and ``failures``, the answers of
    AgentRx's judge, or the planted fault of a simulated run. The first failure in a judge's answer
    counts as the root cause.

    The trajectory is a file ``<trajectory_id>.json`` or a file in AgentRx's intermediate form. It
    is searched in ``files`` and below the folder of the label file. Otherwise it is the record of
    τ-bench in ``files`` with this ``task_id``.

    Without the trajectory, labels have its id, and the keys that spans of its messages would have.

    Args:
        files: The files and folders.
        annotator: The annotator's name; None for ``agentrx``.

    Raises:
        ExchangeError: No file among ``files`` is a label file.
    """
    reader = _AgentRxReader(annotator)
    label_files = []
    for file, document in read_each(files, reader.problems, read_json):
        label_records = _agentrx_label_records(document)
        if label_records:
            label_files.append((file, label_records))
        else:
            reader.trajectories.setdefault(file.stem, file)
            if isinstance(document, Mapping) and "steps" in document:
                reader.trajectories.setdefault(str(document.get("trajectory_id")), file)
            reader.add_tasks(file, document)
    if not label_files and not reader.problems:
        raise ExchangeError(
            f"{files[0]}: no AgentRx labels; give the file with 'trajectory_id' and 'failures'"
        )
    for file, label_records in label_files:
        reader.add_neighbours(file)
        for number, record in enumerate(label_records):
            reader.read(file, number, record)
    return reader.to_incoming()


def _agentrx_label_records(document: object) -> list[Mapping[str, object]]:
    """Return the records of a label file; empty for another document."""
    if isinstance(document, Mapping):
        return _agentrx_records_of_judge(document) or _agentrx_records_of_simulation(document)
    if not isinstance(document, list):
        return []
    records = [r for r in document if isinstance(r, Mapping) and "trajectory_id" in r]
    all_are_records = len(records) == len(document)
    has_labels = any("failures" in record for record in records)
    return records if all_are_records and has_labels else []


def _agentrx_records_of_judge(document: Mapping[str, object]) -> list[Mapping[str, object]]:
    """Return the answers of AgentRx's judge as label records; empty for another document."""
    results = document.get("detailed_results")
    records: list[Mapping[str, object]] = []
    for result in results if isinstance(results, list) else ():
        if not isinstance(result, Mapping) or "task_id" not in result:
            return []
        failures = result.get("failures")
        if not isinstance(failures, list):
            return []
        run_failures = [
            {
                "failure_id": number,
                "step_number": failure.get("step_number"),
                "failure_category": failure.get("failure_case"),
                "step_reason": failure.get("description"),
                "category_reason": failure.get("checklist_reasoning"),
            }
            for number, failure in enumerate(failures, 1)
            if isinstance(failure, Mapping)
        ]
        # The first failure of the judge counts as the root cause.
        root = {"failure_id": 1}
        records.append(
            {"trajectory_id": result["task_id"], "failures": run_failures, "root_cause": root}
        )
    return records


def _agentrx_records_of_simulation(document: Mapping[str, object]) -> list[Mapping[str, object]]:
    """Return the planted fault of a simulated run as a label record; empty for another document."""
    if not {"run_task_id", "critical_failure_step"} <= document.keys():
        return []
    failure = {
        "failure_id": 1,
        "step_number": document["critical_failure_step"],
        "failure_category": document.get("failure_category"),
        "failed_agent": document.get("failed_component"),
        "step_reason": document.get("reason"),
    }
    root = {"failure_id": 1}
    return [{"trajectory_id": document["run_task_id"], "failures": [failure], "root_cause": root}]


class _AgentRxReader(LabelledRuns):
    """The reader of AgentRx's labels."""

    def __init__(self, annotator: str | None) -> None:
        note = "step_number counts from 1; the root cause is marked fatal"
        super().__init__("agentrx", annotator, _without_case_and_blanks, note, by_code=True)
        self.trajectories: dict[str, Path] = {}
        """The files of trajectories by id."""
        self._records_by_task: dict[str, list[tuple[Path, int]]] = {}
        """The files and record indices of τ-bench's runs by task id."""
        # A file can have the runs of many tasks.
        self._traces_in_file = cache(read_traces)
        self._mismatches: dict[str, list[str]] = {}
        """Sentences on labels that name another agent than their span, by trace id."""

    def add_neighbours(self, label_file: Path) -> None:
        """Record the files below the folder of a label file as trajectories."""
        folder = label_file.parent
        for path in sorted([*folder.glob("*.json"), *folder.glob("*/*.json")]):
            self.trajectories.setdefault(path.stem, path)

    def add_tasks(self, file: Path, document: object) -> None:
        """Record the runs of τ-bench in a file by task.

        Args:
            file: The file.
            document: The JSON document in the file.
        """
        for index, record in enumerate(document if isinstance(document, list) else ()):
            if isinstance(record, Mapping) and "traj" in record and "task_id" in record:
                self._records_by_task.setdefault(str(record["task_id"]), []).append((file, index))

    def read(self, file: Path, number: int, record: Mapping[str, object]) -> None:
        """Read the labels of one run.

        Args:
            file: The label file.
            number: The index of the record in the file, from 0.
            record: The record.
        """
        trajectory_id = str(record["trajectory_id"])
        failures = record.get("failures")
        with self.errors_as_problem(file, f"record {number}"):
            if not isinstance(failures, list):
                raise ValueError("'failures' is not a list")
            trace = self._trace_of_trajectory(trajectory_id)
            draft = self.work(file, trajectory_id, trace, replaces=True)
            for index, failure in enumerate(failures):
                with self.errors_as_problem(file, f"record {number}, failure {index}"):
                    self._add_label(draft, trace, failure, record.get("root_cause"))

    def _trace_of_trajectory(self, trajectory_id: str) -> Trace | None:
        """Return the trace of a trajectory or a τ-bench run; None if there is none."""
        path = self.trajectories.get(trajectory_id)
        traces = () if path is None else read_traces(path)
        return traces[0] if traces else self._run_of_task(trajectory_id)

    def _run_of_task(self, task: str) -> Trace | None:
        """Return the τ-bench run of a task; None if there is none.

        Raises:
            ValueError: There are several runs with different content.
        """
        records = self._records_by_task.get(task, [])
        runs = {
            trace.identity.content_hash: trace
            for file, index in records
            for trace in self._traces_in_file(file)
            if trace.record == index
        }
        if len(runs) > 1:
            files = ", ".join(dict.fromkeys(str(file) for file, _ in records))
            raise ValueError(
                f"trajectory_id {task!r} may be any of {len(runs)} runs of this task in "
                f"{files}; give only the file with the labelled runs"
            )
        return next(iter(runs.values()), None)

    def _add_label(
        self, draft: ImportedWork, trace: Trace | None, failure: object, root: object
    ) -> None:
        """Add the label of a failure.

        The label is fatal if ``root`` names the failure.

        Raises:
            ValueError: A field of the failure is missing or not valid.
        """
        if not isinstance(failure, Mapping):
            raise ValueError("a failure is not an object")
        mode = self.mode("failure_category", str(failure.get("failure_category") or ""))
        spans = _spans_of_step(trace, failure.get("step_number"))
        self._note_mismatch(draft.trace_id, trace, spans[0], failure)
        # The set writes the same id as a number or a text.
        is_root = isinstance(root, Mapping) and str(root.get("failure_id")) == str(
            failure.get("failure_id")
        )
        label = draft.label(
            mode.slug,
            Target(*spans),
            "\n".join(_agentrx_reason_texts(failure, root if is_root else None)),
            severity=Severity.FATAL if is_root else None,
        )
        draft.join_label(label)

    def _note_mismatch(
        self,
        trace_id: str,
        trace: Trace | None,
        key: str,
        failure: Mapping[str, object],
    ) -> None:
        """Record a label that names another agent than the agent of its span."""
        index = None if trace is None else trace.index_of(key)
        if trace is None or index is None:
            return
        span_agent = trace.span(index).agent
        label_agent = str(failure.get("failed_agent") or "")
        label_name = label_agent.split("(")[0]  # without a remark in brackets
        if label_agent and (
            _without_case_and_blanks(span_agent) != _without_case_and_blanks(label_name)
        ):
            step = failure["step_number"]
            sentence = f"step {step} is by {span_agent!r}, but the label names {label_agent!r}"
            self._mismatches.setdefault(trace_id, []).append(sentence)

    def to_incoming(self) -> Incoming:
        """Return the import, with a note on each trace with labels that name other agents."""
        for trace_id, mismatches in self._mismatches.items():
            more = f", and {len(mismatches) - 1} more like it" if len(mismatches) > 1 else ""
            self.notes.append(f"{trace_id}: {mismatches[0]}{more}")
        return super().to_incoming()


def _spans_of_step(trace: Trace | None, step: object) -> tuple[str, str]:
    """Return the first and last span key of a step, counted from 1.

    Without the trace, this is the key that a span of its message would have.

    Raises:
        ValueError: The number is not valid, or the run has no such step.
    """
    if not isinstance(step, int) or isinstance(step, bool) or step < 1:
        raise ValueError(f"step_number is {step!r}, not a number from 1")
    if trace is None:
        return f"/{step - 1}", f"/{step - 1}"
    spans = message_spans(trace, step - 1)
    if spans is None:
        raise ValueError(f"step_number is {step}, but the run has no step {step} (counted from 1)")
    return spans


def _without_case_and_blanks(name: str) -> str:
    """Return the letters and digits of a name without case."""
    return re.sub(r"[^a-z0-9]", "", name.casefold())


def _agentrx_reason_texts(failure: Mapping[str, object], root: object) -> Iterator[str]:
    """Yield the different reasons of a failure, then that of the root cause."""
    reasons = (failure.get("step_reason"), failure.get("category_reason"))
    yield from filter(None, dict.fromkeys(str(reason or "").strip() for reason in reasons))
    if isinstance(root, Mapping) and root.get("reason_for_root_cause"):
        yield f"Root cause: {root['reason_for_root_cause']}"
