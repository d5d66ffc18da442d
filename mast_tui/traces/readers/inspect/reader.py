"""The reader of Inspect AI logs: zip archives (``.eval``) and JSON documents.

An unfinished archive has no ``header.json`` yet. A truncated archive is read as far as its samples
are intact. The ``inspect_ai`` package is not used: it depends on cloud clients and a terminal
interface, and refuses damaged and unfinished logs.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import IO, Final

from mast_tui.traces.io.archive import Archive, UnreadableMember, is_archive
from mast_tui.traces.io.decoding import as_utf8
from mast_tui.traces.io.json_repair import repair
from mast_tui.traces.io.json_values import (
    InvalidJSON,
    as_count,
    as_number,
    as_text,
    canonical_bytes,
    load_json,
)
from mast_tui.traces.io.regular_files import open_regular
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import (
    AnswerKey,
    FileReport,
    Outcome,
    Problem,
    SpanKind,
    SpanStatus,
    Trace,
    TraceMeta,
)
from mast_tui.traces.readers.base import FormatReader
from mast_tui.traces.readers.document_traces import RunOrigin, report_of, trace_of_steps
from mast_tui.traces.readers.inspect.events import EventWalk
from mast_tui.traces.readers.inspect.messages import (
    Attachments,
    MessagePool,
    MessageSpans,
    SpanContext,
    TooManySpans,
)
from mast_tui.traces.readers.json_fields import Fields, fields_of, items_of, located_items
from mast_tui.traces.readers.run_facts import AnswerKeyDraft, Section, task_id_of, task_of, trial_of

_SAMPLE_FIELDS: Final = frozenset({"input", "messages", "message_refs", "events"})

MAX_SPANS: Final = 300_000
"""The largest number of spans of one log, which limits the memory."""


NumberedSample = tuple[int, object, str]
"""The number of a sample in its log, the sample, and the prefix of its locations.

JSON pointers in the sample follow the prefix, which is a JSON pointer, or the name of an archive's
member and a space.
"""


def _trace_of_sample(
    path: Path, header: Fields, numbered_sample: NumberedSample, max_spans: int
) -> Trace | Problem:
    """Return the trace of a sample; a problem if the value is no sample.

    Args:
        path: The path of the log.
        header: The header of the log.
        numbered_sample: The sample with its number and the prefix of its locations.
        max_spans: The largest number of spans of the trace.
    """
    record, sample, prefix = numbered_sample
    sample_location = prefix.strip()
    if not isinstance(sample, Mapping) or _SAMPLE_FIELDS.isdisjoint(sample):
        return Problem(sample_location, "not a sample: it has no messages and no events; left out")
    attachments = Attachments(sample.get("attachments"))
    spans = MessageSpans(attachments, prefix, max_spans)
    walk = EventWalk(sample, spans)
    problems: list[Problem] = []
    try:
        _add_spans(sample, walk)
    except TooManySpans as error:
        problems.append(Problem(sample_location, str(error)))
    problems += spans.problems
    attachment_defects = (
        (attachments.missing_count, "references to attachments that are not there"),
        (attachments.skipped_count, "attachments within longer texts were not filled in"),
    )
    for count, defect in attachment_defects:
        if count:
            problems.append(Problem(f"{prefix}/attachments", f"{count} {defect}"))
    meta = _sample_metadata(sample, header, walk)
    native_id = as_text(sample.get("uuid")) or _id_in_eval(sample, header)
    origin = RunOrigin(READER, path, canonical_bytes(sample), record, native_id)
    return trace_of_steps(origin, spans.steps, meta, problems)


def _add_spans(sample: Fields, walk: EventWalk) -> None:
    """Add the spans of a sample: failed attempts, messages, events and the end."""
    spans = walk.spans
    for attempt_index, error in enumerate(items_of(sample.get("error_retries"))):
        text = f"an earlier attempt failed: {spans.attachments.error(error)}"
        spans.log(text, f"/error_retries/{attempt_index}", SpanContext(), status=SpanStatus.ERROR)
    messages = _final_messages(sample, walk.pool)
    events = items_of(sample.get("events"))
    has_model_calls = any(fields_of(event).get("event") == "model" for event in events)
    if not has_model_calls:
        for pointer, message in messages:
            spans.add(message, pointer, SpanContext(), walk.root.history, key=None)
    # Then the messages above have shown the calls of the tool events.
    walk.walk(events, skip_known_calls=not has_model_calls)
    # Model calls have the messages before, so only the last messages are added.
    if has_model_calls:
        _add_last_messages(messages, walk)
    _add_ending(sample, walk)


def _final_messages(sample: Fields, pool: MessagePool) -> list[tuple[str, object]]:
    """Return the messages of the sample's final conversation with their JSON pointers."""
    messages = sample.get("messages")
    refs = sample.get("message_refs")
    # A log in chunks has ranges of the message pool in place of messages.
    if not isinstance(messages, list) and isinstance(refs, list):
        messages = pool.messages(refs, "/message_refs")
    return located_items(messages, "/messages")


def _add_last_messages(messages: list[tuple[str, object]], walk: EventWalk) -> None:
    """Add the messages of the conversation after the last message that has spans."""
    spans = walk.spans
    first_index = spans.first_without_span([message for _pointer, message in messages])
    if first_index == 0 and any(step.kind is SpanKind.MESSAGE for step in spans.steps.steps):
        return  # the events show the conversation with other texts
    for pointer, message in messages[first_index:]:
        spans.add(message, pointer, SpanContext(), walk.root.history, key=None)


def _add_ending(sample: Fields, walk: EventWalk) -> None:
    """Add the limit or error that ended the run, unless an event has shown it."""
    spans = walk.spans
    limit = sample.get("limit")
    if isinstance(limit, Mapping) and not walk.limit_count:
        kind = as_text(limit.get("type")) or "unknown"
        spans.log(f"stopped by its {kind} limit ({limit.get('limit')})", "/limit", SpanContext())
    if (error := sample.get("error")) is not None:
        text = spans.attachments.error(error)
        if text not in walk.error_texts:
            spans.log(text, "/error", SpanContext(), status=SpanStatus.ERROR)


def _id_in_eval(sample: Fields, header: Fields) -> str | None:
    """Return an id made of the ids of the evaluation and the sample, and the epoch."""
    eval_id = as_text(fields_of(header.get("eval")).get("eval_id"))
    sample_id = sample.get("id")
    epoch = as_count(sample.get("epoch"))
    if isinstance(sample_id, int) and not isinstance(sample_id, bool):
        sample_id = str(sample_id)
    if eval_id is None or epoch is None or as_text(sample_id) is None:
        return None
    return f"{eval_id}/{sample_id}/{epoch}"


_GRADE_BY_NAME: Final[Mapping[str, float]] = {
    "C": 1.0,
    "I": 0.0,
    "P": 0.5,
    "N": 0.0,
    "yes": 1.0,
    "true": 1.0,
    "no": 0.0,
    "false": 0.0,
}
_OUTCOME_BY_SCORE: Final[Mapping[float | None, Outcome]] = {
    1.0: Outcome.SUCCEEDED,
    0.0: Outcome.FAILED,
}
_UNNAMED_PLAN: Final = "plan"
_NO_MODEL: Final = "none/none"
_MAX_SCORES: Final = 200


def _sample_metadata(sample: Fields, header: Fields, walk: EventWalk) -> TraceMeta:
    """Return the metadata of a sample with the events that ``walk`` has read."""
    spec = fields_of(header.get("eval"))
    grades = set(_grades_of_scores(_named_scores(sample)))
    score = grades.pop() if len(grades) == 1 else None  # the scorers may disagree
    has_failed = sample.get("error") is not None
    return TraceMeta(
        task=task_of(_task_text(sample, walk.spans.attachments), steps=walk.spans.steps.steps),
        system=_system_name(header, spec),
        model=_model_name(sample, spec),
        benchmark=as_text(spec.get("task")),
        outcome=Outcome.UNKNOWN if has_failed else _OUTCOME_BY_SCORE.get(score, Outcome.UNKNOWN),
        score=score,
        answer_key=_answer_key(sample, walk),
        task_id=task_id_of(sample.get("id")),
        trial=trial_of(sample.get("epoch")),
        version=as_text(fields_of(spec.get("packages")).get("inspect_ai")),
    )


def _task_text(sample: Fields, attachments: Attachments) -> str | None:
    """Return the sample's input, or the texts of its user messages."""
    sample_input = sample.get("input")
    if isinstance(sample_input, str):
        return attachments.text(sample_input)
    texts = [
        attachments.content(message.get("content"))
        for message in items_of(sample_input)
        if isinstance(message, Mapping) and message.get("role") == "user"
    ]
    return "\n".join(text for text in texts if text) or None


def _system_name(header: Fields, spec: Fields) -> str | None:
    """Return the name of the solver, the plan or the plan's last solver.

    ``spec`` is the ``eval`` object of the header.
    """
    plan = fields_of(header.get("plan"))
    plan_name = as_text(plan.get("name"))
    if plan_name == _UNNAMED_PLAN:
        plan_name = None
    steps = map(fields_of, items_of(plan.get("steps")))
    solvers = [solver for step in steps if (solver := as_text(step.get("solver")))]
    last_solver = solvers[-1] if solvers else None
    return as_text(spec.get("solver")) or plan_name or last_solver


def _model_name(sample: Fields, spec: Fields) -> str | None:
    model = as_text(spec.get("model"))
    if model in (None, _NO_MODEL):
        return as_text(fields_of(sample.get("output")).get("model")) or model
    return model


def _named_scores(sample: Fields) -> list[tuple[str, object]]:
    """Return the name and the score of each scorer; the oldest logs have one unnamed score."""
    scores = sample.get("scores")
    if isinstance(scores, Mapping):
        return list(scores.items())[:_MAX_SCORES]
    return [] if sample.get("score") is None else [("score", sample["score"])]


def _grades_of_scores(scores: list[tuple[str, object]]) -> Iterator[float | None]:
    """Yield the grade of each value of each score; None for a value that is no grade."""
    for _name, score in scores:
        value = score.get("value") if isinstance(score, Mapping) else score
        values = value if isinstance(value, list) else [value]
        yield from map(_grade_of, value.values() if isinstance(value, Mapping) else values)


def _grade_of(value: object) -> float | None:
    """Return a grade such as 0.5, ``C`` or ``yes`` as a number from 0 to 1."""
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        text = value.strip()
        grade = _GRADE_BY_NAME.get(text, _GRADE_BY_NAME.get(text.lower()))
        if grade is not None:
            return grade
        try:
            value = float(text)
        except ValueError:
            return None
    number = as_number(value)
    return number if number is not None and 0 <= number <= 1 else None


def _answer_key(sample: Fields, walk: EventWalk) -> AnswerKey:
    """Return the scores, explanations, target and metadata, hidden from blind annotators."""
    attachments = walk.spans.attachments
    draft = AnswerKeyDraft()
    for name, score in _named_scores(sample):
        _add_score(draft, name, score, attachments)
    for span_key, event in walk.score_events:
        score = event.get("score")
        if event.get("intermediate") is True and isinstance(score, Mapping):
            parts = [score.get(field) for field in ("value", "answer", "explanation")]
            texts = [attachments.dumped(part) for part in parts if part not in (None, "")]
            draft.add("step_scores", span_key, "\n".join(texts))
    target = sample.get("target")
    if target not in (None, "", []):
        draft.add("reference", "target", attachments.dumped(target))
    if walk.grading_texts:
        draft.add("explanations", "grading", "\n\n".join(walk.grading_texts))
    for name, value in fields_of(sample.get("metadata")).items():
        draft.add("other", name, attachments.dumped(value))
    return draft.key()


def _add_score(draft: AnswerKeyDraft, name: str, score: object, attachments: Attachments) -> None:
    """Add a scorer's score to the answer key, with its explanation and metadata."""
    if not isinstance(score, Mapping):
        draft.add("scores", name, score)
        return
    value = score.get("value")
    draft.add_score(name, value if isinstance(value, Mapping) else attachments.dumped(value))
    for field in ("answer", "explanation", "metadata"):
        if score.get(field) not in (None, "", {}):
            section: Section = "other" if field == "metadata" else "explanations"
            draft.add(section, f"{name} {field}", attachments.dumped(score[field]))


_HEADERS: Final = ("header.json", "_journal/start.json", "start.json")
_SAMPLE_NAME: Final = re.compile(r"samples/.+_epoch_\d+\.json", re.DOTALL)
_CHUNKED_SAMPLE_NAME: Final = re.compile(r"(samples/.+_epoch_\d+)/sample\.json", re.DOTALL)
_CHUNK_NAME: Final = re.compile(
    r"(samples/.+_epoch_\d+)/(messages|events|calls|attachments)/(\d{1,12})\.json", re.DOTALL
)
_HEADER_BYTES: Final = 16 << 20
_MAX_VALUES: Final = 5_000_000
_MAX_TEXT_BYTES: Final = 512 << 20

_LOG_KEYS: Final = frozenset({"version", "status", "plan", "samples", "stats"})
_SPEC_KEYS: Final = frozenset({"model", "dataset", "run_id", "created", "eval_id", "task_id"})


def _read(source: Source) -> FileReport:
    """Return a trace of each sample, in the order of the log; any other value is a problem."""
    if not source.is_binary and not isinstance(source.json, Mapping):
        return FileReport(source.path, failed="an Inspect log whose JSON cannot be read")
    traces: list[Trace] = []
    sample_problems: list[Problem] = []
    spans_left = MAX_SPANS
    with _open_log(source) as opened_log:
        header = opened_log.header
        for numbered_sample in opened_log.samples():
            trace_or_problem = _trace_of_sample(source.path, header, numbered_sample, spans_left)
            if isinstance(trace_or_problem, Trace):
                traces.append(trace_or_problem)
                spans_left -= len(trace_or_problem)
            else:
                sample_problems.append(trace_or_problem)
        return report_of(READER, source, traces, (*opened_log.problems, *sample_problems))


READER: Final = FormatReader(
    "inspect",
    lambda source: _is_log_archive(source) if source.is_binary else _is_log_document(source),
    _read,
)
"""The reader of Inspect logs.

Span keys are event and message ids, else pointers in the sample, so that an archive and a document
of one log have the same keys.
"""


def samples_in(source: Source) -> Iterator[tuple[int, Fields]]:
    """Yield the samples of a log with the numbers of their traces."""
    with _open_log(source) as log:
        for number, sample, _prefix in log.samples():
            if isinstance(sample, Mapping):
                yield number, sample


def _is_log_archive(source: Source) -> bool:
    """Return whether a file is an archive with a log's header."""
    if not is_archive(source.head):
        return False
    with _open_file(source) as file:
        archive = Archive(file, most_member_bytes=_HEADER_BYTES, most_bytes=2 * _HEADER_BYTES)
        names = archive.names
        has_samples = any(
            _SAMPLE_NAME.fullmatch(name) or _CHUNKED_SAMPLE_NAME.fullmatch(name) for name in names
        )
        for name in _HEADERS:
            if name not in names:
                continue
            try:
                if _is_header(load_json(archive.read(name))):
                    return True
            except (UnreadableMember, InvalidJSON):
                # The journal of an unfinished log may be unreadable.
                if has_samples and name.startswith("_journal/"):
                    return True
    return False


def _is_log_document(source: Source) -> bool:
    """Return whether the beginning of a file has keys of a log, and of its ``eval`` object."""
    head = as_utf8(source.head).decode("utf-8", "replace")
    # The head of a long document is cut off, so its JSON is repaired.
    repaired = repair(head) if '"eval"' in head else None
    log = fields_of(None if repaired is None else repaired.value)
    spec = fields_of(log.get("eval"))
    return "task" in spec and not _LOG_KEYS.isdisjoint(log) and not _SPEC_KEYS.isdisjoint(spec)


@contextmanager
def _open_log(source: Source) -> Iterator[_DocumentLog | _ArchiveLog]:
    """Open a log; close an archive's file at the end."""
    if not source.is_binary:
        yield _DocumentLog(fields_of(source.json))
        return
    with _open_file(source) as file:
        yield _ArchiveLog(Archive(file))


def _open_file(source: Source) -> IO[bytes]:
    return BytesIO(source.data) if source.packing else BufferedReader(open_regular(source.path))


def _is_header(value: object) -> bool:
    header = fields_of(value)
    return "task" in fields_of(header.get("eval")) and ("plan" in header or "status" in header)


class _DocumentLog:
    """A log that is one JSON document, which is its own header."""

    def __init__(self, document: Fields) -> None:
        self.problems: list[Problem] = []
        self.header = document

    def samples(self) -> Iterator[NumberedSample]:
        """Yield the number, the value and the location prefix of each sample."""
        samples = items_of(self.header.get("samples"))
        if not samples:
            self.problems.append(Problem("/samples", "the log contains no samples"))
        for sample_number, sample in enumerate(samples):
            yield sample_number, sample, f"/samples/{sample_number}"


class _ArchiveLog:
    """A log that is an archive; ``problems`` names the unreadable members."""

    def __init__(self, archive: Archive) -> None:
        self.problems = list(archive.problems)
        self._archive = archive
        self._names = archive.names
        self._text_bytes_left = _MAX_TEXT_BYTES
        self._chunks: defaultdict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
        """The chunks by their folder and kind: the index of the first item and the member."""
        for name in self._names:
            if match := _CHUNK_NAME.fullmatch(name):
                folder, kind, first_item = match.groups()
                self._chunks[folder, kind].append((int(first_item), name))

    @cached_property
    def header(self) -> Fields:
        """The header of the finished log, else of the log's start; empty if none is readable."""
        for name in _HEADERS:
            if name in self._names:
                value = self._read_json_member(name)
                if isinstance(value, Mapping) and isinstance(value.get("eval"), Mapping):
                    return value
        message = "there is no readable header: model, task and solver are unknown"
        self.problems.append(Problem("header.json", message))
        return {}

    def samples(self) -> Iterator[NumberedSample]:
        """Yield the number, the value and the location prefix of each readable sample.

        Unreadable samples are counted too, so that numbers do not depend on them.
        """
        sample_number = 0
        for name in self._names:
            chunked_match = _CHUNKED_SAMPLE_NAME.fullmatch(name)
            if chunked_match is None and not _SAMPLE_NAME.fullmatch(name):
                continue
            sample = self._read_json_member(name)
            if chunked_match is not None and isinstance(sample, Mapping):
                folder = chunked_match[1]
                sample = {
                    **sample,
                    "events": self._items_of_chunks(folder, "events"),
                    "events_data": {"messages": self._items_of_chunks(folder, "messages")},
                    "attachments": self._items_of_chunks(folder, "attachments"),
                }
            if sample is not None:
                yield sample_number, sample, f"{name} "
            sample_number += 1
        if not sample_number:
            self.problems.append(Problem("samples/", "the log contains no samples"))

    def _items_of_chunks(self, folder: str, kind: str) -> list[object]:
        """Return the items of the chunks of a kind, up to the first missing chunk."""
        items: list[object] = []
        for first_index, name in sorted(self._chunks[folder, kind]):
            value = self._read_json_member(name)
            # The name of a chunk has the index of its first item. After a gap, indices would be
            # wrong.
            if first_index != len(items):
                message = f"does not follow on what comes before it; left out ({len(items)})"
                self.problems.append(Problem(name, message))
                break
            if not isinstance(value, list):
                break
            items += value
        return items

    def _read_json_member(self, name: str) -> object | None:
        """Return the JSON value of a member; report an unreadable member."""
        try:
            data = self._archive.read(name)
            reason = self._exceeded_limit(data)
            if reason is None:
                return load_json(data)
        except UnreadableMember as error:
            reason = str(error)
        except OSError as error:
            reason = error.strerror or str(error)
        except InvalidJSON as error:
            reason = f"not JSON, {error}"
        self.problems.append(Problem(name, f"left out: {reason}"))
        return None

    def _exceeded_limit(self, data: bytes) -> str | None:
        """Count the text of a JSON value; return a message if a limit forbids to parse it.

        The size in Python's memory counts towards the limit of the whole log.
        """
        value_count = data.count(b",") + data.count(b"[") + data.count(b"{")
        if value_count > _MAX_VALUES:
            return f"it contains more than {_MAX_VALUES} values"
        self._text_bytes_left -= len(data) * _bytes_per_character(data)
        if self._text_bytes_left < 0:
            return f"the log contains more than {_MAX_TEXT_BYTES >> 20} MB of text"
        return None


def _bytes_per_character(data: bytes) -> int:
    """Return the largest number of bytes that Python uses for a character of this JSON."""
    if data.isascii() and b"\\u" not in data:
        return 1
    return 4 if b"\xf0" in data or b"\\ud" in data or b"\\uD" in data else 2
