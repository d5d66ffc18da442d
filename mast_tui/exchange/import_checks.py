"""Checks of imported labels: known names, and existing spans and quotes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import structs

from mast_tui.adjudication import traces_from_files
from mast_tui.counts import counted
from mast_tui.exchange.errors import Remedy, RowProblem
from mast_tui.exchange.import_batch import ImportedWork, Incoming, IncomingBuilder, label_id
from mast_tui.exchange.jsonl import JsonlContent
from mast_tui.exchange.label_studio import CHANGED_THERE
from mast_tui.exchange.selection import MASKED_QUOTE
from mast_tui.labels import Label, Target
from mast_tui.redaction.masked_trace import MASK_PATTERN
from mast_tui.traces.model import Trace
from mast_tui.workspace import Workspace

_LEAST_SIMILARITY: Final = 60.0
"""The least similarity (0 to 100) of a suggested name."""

_NAMES_COMPARED: Final = 50
"""The most unknown names for which a similar one is searched, since this is slow."""

_MASK: Final = re.compile(rf"{MASK_PATTERN}|{re.escape(MASKED_QUOTE)}")

_UNKNOWN_TRACE: Final = "no trace with this id is in the workspace"
_UNKNOWN_PERSON: Final = "no annotator with this name is in the workspace"


def without_unknown(
    incoming: Incoming, workspace: Workspace, *, accepted_name: str | None
) -> Incoming:
    """Leave out work on unknown traces and by unknown annotators.

    A workspace without traces accepts all traces. A workspace with only judges accepts all
    annotators.

    Args:
        incoming: The contents of the import.
        workspace: The workspace.
        accepted_name: An annotator to accept even if unknown; None for none.

    Returns:
        The remaining contents, with a problem for each unknown name.
    """
    known_traces = [record.trace_id for record in workspace.traces()]
    unknown_traces = {
        record.trace_id
        for record in (incoming.traces if known_traces else ())
        if workspace.find_trace(record) is None
    }
    known_people = _known_people(workspace)
    unknown_names = {
        work.annotator
        for work in (incoming.work if known_people else ())
        # Work that was changed in Label Studio has a suffix after its annotator's name.
        if work.annotator.removesuffix(CHANGED_THERE) not in known_people
    } - {accepted_name}
    if not unknown_traces and not unknown_names:
        return incoming
    # The first file with the trace or person.
    file_by_trace = {work.trace_id: work.file for work in reversed(incoming.work)}
    file_by_person = {work.annotator: work.file for work in reversed(incoming.work)}
    problems = [
        *_problems_of_names(file_by_trace, unknown_traces, known_traces, _UNKNOWN_TRACE),
        *_problems_of_names(file_by_person, unknown_names, known_people, _UNKNOWN_PERSON),
    ]
    return replace(
        incoming,
        traces=tuple(record for record in incoming.traces if record.trace_id not in unknown_traces),
        work=tuple(
            work
            for work in incoming.work
            if work.trace_id not in unknown_traces and work.annotator not in unknown_names
        ),
        problems=(*incoming.problems, *problems),
    )


def unknown_people(file: Path, content: JsonlContent, workspace: Workspace) -> list[RowProblem]:
    """Return a problem for each author of events whom neither file nor workspace registers.

    A workspace with only judges accepts all authors.

    Args:
        file: The file of the exported workspace.
        content: The contents of the file.
        workspace: The workspace.
    """
    known_names = _known_people(workspace)
    if not known_names:
        return []
    registered = {name for name, _ in content.annotators}
    unknown_names = (
        {event.annotator for event in content.foreign.events} - registered - set(known_names)
    )
    files = dict.fromkeys(unknown_names, file)
    return list(_problems_of_names(files, unknown_names, known_names, _UNKNOWN_PERSON))


def _known_people(workspace: Workspace) -> list[str]:
    """Return the names of all annotators; none if there are only judges."""
    annotators = workspace.annotators()
    has_people = any(annotator.kind.is_person for annotator in annotators)
    return [annotator.name for annotator in annotators] if has_people else []


def _problems_of_names(
    files: Mapping[str, Path],
    unknown_names: Iterable[str],
    known_names: Collection[str],
    message: str,
) -> Iterator[RowProblem]:
    """Yield a problem for each unknown name, with a similar known name.

    ``files`` are the files by name.
    """
    for number, name in enumerate(sorted(unknown_names)):
        similar = _most_similar_name(name, known_names) if number < _NAMES_COMPARED else None
        reason = message if similar is None else f"did you mean {similar}? {message}"
        yield RowProblem(files.get(name, Path("-")), name, reason, Remedy.ALLOW_NEW)


def _most_similar_name(name: str, known_names: Collection[str]) -> str | None:
    from rapidfuzz import fuzz, process

    match = process.extractOne(name, known_names, scorer=fuzz.ratio, score_cutoff=_LEAST_SIMILARITY)
    return None if match is None else str(match[0])


_NUMBER: Final = re.compile(r"#([1-9][0-9]{0,17})\Z")
"""The number of a span on screen, from 1."""

_LIST_KEYS: Final = "'mast-tui inspect PATH --spans' lists the keys"


def with_checked_spans(incoming: Incoming, workspace: Workspace) -> Incoming:
    """Leave out labels and notes on spans that are not in their trace.

    A span's number (``#83``) is replaced by its key. Without the file of a trace, any key is
    accepted, but no number.

    Args:
        incoming: The contents of the import.
        workspace: The workspace with the files of traces.

    Returns:
        The remaining import, with a problem for each label or note left out.
    """
    checked = dict(_checked_works(incoming, workspace))
    works = [
        checked[index].work if index in checked else work
        for index, work in enumerate(incoming.work)
    ]
    remaining = tuple(
        work for index, work in enumerate(works) if index not in checked or _has_content(work)
    )
    traces_without_work = {work.trace_id for work in works} - {work.trace_id for work in remaining}
    problems = [problem for index in sorted(checked) for problem in checked[index].problems]
    return replace(
        incoming,
        work=remaining,
        traces=tuple(
            record for record in incoming.traces if record.trace_id not in traces_without_work
        ),
        problems=(*incoming.problems, *problems),
    )


class _CheckedWork(NamedTuple):
    """Work without the labels and notes on unknown spans, and the problems with these."""

    work: ImportedWork
    problems: list[RowProblem]


def _checked_works(incoming: Incoming, workspace: Workspace) -> Iterator[tuple[int, _CheckedWork]]:
    """Yield the checked work by its index, for work on spans that can be checked."""
    indices = [index for index, work in enumerate(incoming.work) if _names_spans(work)]
    if not indices:
        return
    # The traces of a file are checked together, so that it is read only once.
    paths = {record.trace_id: record.path for record in workspace.traces()}
    works_by_path: dict[Path | None, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for index in indices:
        trace_id = incoming.work[index].trace_id
        works_by_path[paths.get(trace_id)][trace_id].append(index)
    trace_of = traces_from_files(workspace)
    for path, indices_by_trace in works_by_path.items():
        for trace_id, work_indices in indices_by_trace.items():
            trace = None if path is None else trace_of(trace_id)
            for index in work_indices:
                work = incoming.work[index]
                if trace is not None or _names_numbers(work):
                    yield index, _checked_work(work, trace)


def _has_content(work: ImportedWork) -> bool:
    return bool(work.labels or work.verdicts or work.notes) or work.finished_at is not None


def _names_spans(work: ImportedWork) -> bool:
    return bool(work.notes) or any(not label.target.is_whole for label in work.labels.values())


def _names_numbers(work: ImportedWork) -> bool:
    ends = (
        end for label in work.labels.values() for end in (label.target.first, label.target.last)
    )
    return any(end is not None and _NUMBER.match(end) for end in (*ends, *work.notes))


def _checked_work(work: ImportedWork, trace: Trace | None) -> _CheckedWork:
    """Return work with the valid labels and notes, and problems with the others.

    ``trace`` is None if its file is not available.
    """
    builder = IncomingBuilder()
    default_location = f"{work.annotator} on {work.trace_id}"
    labels: dict[str, Label] = {}
    for label in work.labels.values():
        with builder.errors_as_problem(work.file, work.places.get(label.id, default_location)):
            checked_label = _with_target(label, _checked_target(label.target, trace))
            if labels.setdefault(checked_label.id, checked_label) != checked_label:
                raise ValueError(
                    f"the same label of {label.mode} appears twice with different details"
                )
    notes: dict[str, str] = {}
    for key, text in work.notes.items():
        with builder.errors_as_problem(work.file, work.places.get(key, default_location)):
            span = _checked_key(key, trace)
            if notes.setdefault(span, text) != text:
                raise ValueError(f"span {span!r} has two notes by one annotator")
    return _CheckedWork(structs.replace(work, labels=labels, notes=notes), builder.problems)


def _with_target(label: Label, target: Target) -> Label:
    """Return the label with another target, and the id for this target."""
    if target == label.target:
        return label
    new_id = label_id(label.annotator, label.trace_id, label.taxonomy, label.mode, target)
    return structs.replace(label, id=new_id, target=target)


def _checked_target(target: Target, trace: Trace | None) -> Target:
    """Return a target with keys instead of span numbers.

    Raises:
        ValueError: The trace lacks a span or the quote, or the last span comes before the first.
    """
    if target.first is None or target.last is None:
        return target
    first = _checked_key(target.first, trace)
    last = first if target.last == target.first else _checked_key(target.last, trace)
    # Both keys are in the trace, so their indices are known.
    if trace is not None and (trace.index_of(first) or 0) > (trace.index_of(last) or 0):
        raise ValueError(
            f"span_first {target.first!r} comes after span_last {target.last!r} in the trace"
        )
    if trace is not None and target.quote is not None:
        _check_quote(trace, first, target.quote, target.char_start, target.char_end)
    return Target(first, last, target.quote, target.char_start, target.char_end)


def _checked_key(name: str, trace: Trace | None) -> str:
    """Return the key of a span by its key or number.

    Without the trace, any key is accepted.

    Raises:
        ValueError: The trace has no such span, or a number is given without the trace.
    """
    number_match = _NUMBER.match(name)
    if trace is None:
        if number_match is not None:
            raise ValueError(
                "the span is a number, and the trace's file is not available; give the span's "
                f"key ({_LIST_KEYS}), or open the trace once and import again"
            )
        return name
    if trace.index_of(name) is not None:
        return name
    if number_match is not None and int(number_match[1]) <= len(trace):
        return trace.span(int(number_match[1]) - 1).key
    if not len(trace):
        raise ValueError(f"span {name!r} is not in the trace, which has no spans")
    raise ValueError(
        f"span {name!r} is not in the trace, which has {counted(len(trace), 'span')}, "
        f"{trace.span(0).key!r} to {trace.span(len(trace) - 1).key!r}; {_LIST_KEYS}"
    )


def _check_quote(trace: Trace, key: str, quote: str, start: int | None, end: int | None) -> None:
    """Check that a quote is in the text of a span, at the given characters.

    Masks of a masked export stand for any text.
    """
    text = trace.text(trace.index_of(key) or 0)
    position = text.find(quote)
    if position < 0 and not _is_masked_quote(quote, text):
        raise ValueError(f"the quote {_shortened_text(quote)!r} is not in the text of span {key!r}")
    if start is not None and text[start:end] != quote:
        raise ValueError(
            f"the quote {_shortened_text(quote)!r} is not at characters {start} to {end} of span "
            f"{key!r}, but at {position} to {position + len(quote)}"
        )


def _is_masked_quote(quote: str, text: str) -> bool:
    """Check whether a quote has masks, and a text has the other parts of it in this order."""
    parts = _MASK.split(quote)
    end = 0
    for part in parts:
        start = text.find(part, end)
        if start < 0:
            return False
        end = start + len(part)
    return len(parts) > 1


def _shortened_text(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:39]}…"
