"""AgentRx: every failed step of a run with its category, and which of them is the root cause.

``step_number`` counts from 1, unlike the steps of Who&When. In the half of the set that is from
τ-bench a ``trajectory_id`` is the ``task_id`` of a record, and step N is its ``/traj/<N - 1>``.

Its judge's answers (``detailed_results``, categories by number) and the planted truth of simulated
runs (``critical_failure_step``) are read as labels of the same form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from mast_tui.exchange.errors import ExchangeError
from mast_tui.exchange.import_batch import ImportedWork, Incoming, LabelledRuns
from mast_tui.exchange.trace_files import message_spans, read_each, read_json, read_traces
from mast_tui.labels import Severity, Target
from mast_tui.traces.model import Trace


def read_agentrx(files: Sequence[Path], annotator: str | None = None) -> Incoming:
    """Read label files, and the trajectories that their labels name.

    There are three kinds of label file: a list of records with ``trajectory_id`` and ``failures``,
    the answers of AgentRx's judge, and the planted truth of a simulated run. In an answer the first
    failure counts as the root cause.

    A trajectory is searched in this order:

    - a file ``<trajectory_id>.json``, or a file in AgentRx's intermediate form with this
      ``trajectory_id``, among ``files``, in the folder of the label file and in its subfolders;
    - a record of τ-bench with this ``task_id`` in ``files``.

    If there is no trajectory, its labels are stored under the ``trajectory_id``, and their spans
    have the keys that the trajectory's messages would have.

    Args:
        files: The files and folders.
        annotator: The annotator's name; None for the name of the format.

    Raises:
        ExchangeError: No file among ``files`` is a label file.
    """
    reader = _Reader(annotator)
    label_files = []
    for file, document in read_each(files, reader.problems, read_json):
        if labels := _label_records(document):
            label_files.append((file, labels))
        else:
            reader.trajectories.setdefault(file.stem, file)
            if isinstance(document, Mapping) and "steps" in document:
                reader.trajectories.setdefault(str(document.get("trajectory_id")), file)
            reader.add_tasks(file, document)
    if not label_files and not reader.problems:
        raise ExchangeError(
            f"{files[0]}: no AgentRx labels; name the file with 'trajectory_id' and 'failures'"
        )
    for file, labels in label_files:
        reader.add_neighbours(file)
        for number, record in enumerate(labels):
            reader.read(file, number, record)
    return reader.done()


def _label_records(document: object) -> list[Mapping[str, object]]:
    """Return the records of a label file; an empty list for any other document."""
    if isinstance(document, Mapping):
        return _records_of_judge(document) or _records_of_simulation(document)
    if not isinstance(document, list):
        return []
    records = [r for r in document if isinstance(r, Mapping) and "trajectory_id" in r]
    labelled = any("failures" in record for record in records)
    return records if labelled and len(records) == len(document) else []


def _records_of_judge(document: Mapping[str, object]) -> list[Mapping[str, object]]:
    """Return the answers of AgentRx's judge as label records.

    The list is empty if the document does not hold such answers.
    """
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


def _records_of_simulation(document: Mapping[str, object]) -> list[Mapping[str, object]]:
    """Return a list with the fault that was planted in a simulated run, as a label record.

    The list is empty if the document is no simulated run.
    """
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


def _task_ids(document: object) -> Iterator[tuple[int, str]]:
    """Yield the index and ``task_id`` of each record of τ-bench in a document."""
    if isinstance(document, list):
        for index, record in enumerate(document):
            if isinstance(record, Mapping) and "traj" in record and "task_id" in record:
                yield index, str(record["task_id"])


class _Reader(LabelledRuns):
    """The reader of label files, with the labels that were read so far."""

    def __init__(self, annotator: str | None) -> None:
        note = "step_number counts from 1; the root cause is marked fatal"
        super().__init__("agentrx", annotator, _plain_spelling, note, by_code=True)
        self.trajectories: dict[str, Path] = {}
        self._records_by_task: dict[str, list[tuple[Path, int]]] = {}
        self._traces_by_file: dict[Path, tuple[Trace, ...]] = {}
        self._mismatches: dict[str, list[str]] = {}

    def add_neighbours(self, file: Path) -> None:
        """Find trajectories in the folder of a label file and the folders in it."""
        for path in sorted([*file.parent.glob("*.json"), *file.parent.glob("*/*.json")]):
            self.trajectories.setdefault(path.stem, path)

    def add_tasks(self, file: Path, document: object) -> None:
        """Record the tasks of τ-bench whose runs a file holds.

        Args:
            file: The file.
            document: The JSON document.
        """
        for index, task in _task_ids(document):
            self._records_by_task.setdefault(task, []).append((file, index))

    def read(self, file: Path, number: int, record: Mapping[str, object]) -> None:
        """Read the labels of one run.

        Args:
            file: The file.
            number: The number, counted from 0.
            record: The record.
        """
        trajectory_id = str(record["trajectory_id"])
        failures = record.get("failures")
        root = record.get("root_cause")
        if not isinstance(failures, list):
            self.wrong(file, f"record {number}", "'failures' is no list")
            return
        try:
            trace = self._trace_of_trajectory(trajectory_id)
        except ValueError as error:
            self.wrong(file, f"record {number}", error)
            return
        draft = self.work(file, trajectory_id, trace, replaces=True)
        for index, failure in enumerate(failures):
            try:
                self._add_label(draft, trace, failure, root)
            except ValueError as error:
                self.wrong(file, f"record {number}, failure {index}", error)

    def _trace_of_trajectory(self, trajectory_id: str) -> Trace | None:
        """Return the trace of a trajectory or of a run of τ-bench, None if there is none."""
        path = self.trajectories.get(trajectory_id)
        traces = () if path is None else read_traces(path)
        return traces[0] if traces else self._run_of_task(trajectory_id)

    def _run_of_task(self, task: str) -> Trace | None:
        """Return the run of a task of τ-bench, None if there is none.

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
                f"trajectory_id {task!r} may be any of {len(runs)} runs of this task in {files}; "
                "name only the file whose runs were labelled"
            )
        return next(iter(runs.values()), None)

    def _traces_in_file(self, file: Path) -> tuple[Trace, ...]:
        """Return the traces of a file that holds many, read once."""
        if file not in self._traces_by_file:
            self._traces_by_file[file] = read_traces(file)
        return self._traces_by_file[file]

    def _add_label(
        self, draft: ImportedWork, trace: Trace | None, failure: object, root: object
    ) -> None:
        """Add the label of a failure to a draft.

        Raises:
            ValueError: A field of the failure is missing or not valid.
        """
        if not isinstance(failure, Mapping):
            raise ValueError("a failure is no object")
        mode = self.mode("failure_category", str(failure.get("failure_category") or ""))
        step = failure.get("step_number")
        if not isinstance(step, int) or isinstance(step, bool) or step < 1:
            raise ValueError(f"step_number is {step!r}, not a number from 1")
        spans: tuple[str, str] | None = (f"/{step - 1}", f"/{step - 1}")
        if trace is not None:
            spans = message_spans(trace, step - 1)
        if spans is None:
            raise ValueError(f"step_number is {step}, but the run has no step {step} (from 1)")
        self._note_mismatch(draft.trace_id, trace, spans[0], step, failure)
        # The set writes the same id as a number in one place and as a text in the other.
        is_root = isinstance(root, Mapping) and str(root.get("failure_id")) == str(
            failure.get("failure_id")
        )
        label = draft.label(
            mode.slug,
            Target(*spans),
            "\n".join(_reason_texts(failure, root if is_root else None)),
            severity=Severity.FATAL if is_root else None,
        )
        draft.join_label(label)

    def _note_mismatch(
        self,
        trace_id: str,
        trace: Trace | None,
        key: str,
        step: int,
        failure: Mapping[str, object],
    ) -> None:
        """Record a sentence if the agent that a label names is not the agent of its span."""
        index = None if trace is None else trace.index_of(key)
        if trace is None or index is None:
            return
        span_agent = trace.span(index).agent
        label_agent = str(failure.get("failed_agent") or "")
        if label_agent and _plain_spelling(span_agent) != _plain_spelling(
            label_agent.split("(")[0]
        ):
            sentence = f"step {step} is by {span_agent!r}, the label names {label_agent!r}"
            self._mismatches.setdefault(trace_id, []).append(sentence)

    def done(self) -> Incoming:
        """Return everything that was read."""
        for trace_id, mismatches in self._mismatches.items():
            more = f", and {len(mismatches) - 1} more like it" if len(mismatches) > 1 else ""
            self.notes.append(f"{trace_id}: {mismatches[0]}{more}")
        return super().done()


def _plain_spelling(name: str) -> str:
    """Return a name without case, blanks and signs: spellings of categories vary."""
    return re.sub(r"[^a-z0-9]", "", name.casefold())


def _reason_texts(failure: Mapping[str, object], root: object) -> Iterator[str]:
    """Yield the different reasons of a failure, then that of the root cause."""
    seen: set[str] = set()
    for value in (failure.get("step_reason"), failure.get("category_reason")):
        text = str(value or "").strip()
        if text and text not in seen:
            seen.add(text)
            yield text
    if isinstance(root, Mapping) and root.get("reason_for_root_cause"):
        yield f"Root cause: {root['reason_for_root_cause']}"
