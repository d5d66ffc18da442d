"""Labels and verdicts as CSV in the formats ``csv-long`` and ``csv-wide``.

``csv-long`` has a row for each label or verdict. ``csv-wide`` has a row for each annotator and
trace, with a column for each mode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from msgspec.structs import replace

from mast_tui.exchange.csv_files import CsvRow, share_in, stream_rows, trial_in
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
from mast_tui.labels import (
    WHOLE_TRACE,
    AnnotatorKind,
    Label,
    Origin,
    Severity,
    Target,
    TraceWork,
    VerdictValue,
    annotator_kind,
)
from mast_tui.reports.render.csv import csv_text
from mast_tui.taxonomy.model import Mode, Taxonomy
from mast_tui.traces.model import Outcome
from mast_tui.traces.times import iso_time as iso_of_seconds
from mast_tui.traces.times import unix_seconds
from mast_tui.workspace.records import TraceRecord

COLUMNS: Final = (
    "trace_id",
    "annotator",
    "mode",
    "value",
    "span_first",
    "span_last",
    "quote",
    "char_start",
    "char_end",
    "confidence",
    "severity",
    "origin",
    "saw_suggestion",
    "note",
    "taxonomy",
    "created_at",
    "slug",
    "merged",
)
TASK_ID: Final = "task_id"
TRIAL: Final = "trial"
_FACTS: Final = (TASK_ID, TRIAL)
"""The columns about the trace, which are the same in all of its rows."""
FINISHED: Final = "finished"
NOTE: Final = "note"
"""The value of a row with a note on a span. Such a row has no mode."""
_REMEMBERED_ROWS: Final = 4096
"""The number of cached contents of rows. Rows that differ only in their trace share one."""
_TARGET_COLUMNS: Final = ("span_first", "span_last", "quote", "char_start", "char_end")
_VALUES: Final = {value.value: value for value in VerdictValue}
EnumValue = TypeVar("EnumValue", Severity, Origin)

_FLAGS: Final = {
    "": False,
    "0": False,
    "false": False,
    "no": False,
    "1": True,
    "true": True,
    "yes": True,
}


def read_csv_long(
    files: Sequence[Path],
    *,
    taxonomy: Taxonomy,
    find_taxonomy: Callable[[str], Taxonomy | None],
    annotator: str | None = None,
) -> Incoming:
    """Read tables with a label, verdict or note in each row.

    An invalid row becomes a problem.

    Args:
        files: The files.
        taxonomy: The taxonomy of rows without one.
        find_taxonomy: Returns a taxonomy by ``id@version``; None if it is unknown.
        annotator: The author of all rows; None if the rows name their authors.

    Raises:
        ExchangeError: A file is not such a table, or the rows name several authors despite
            ``annotator``.
    """
    needed = ("trace_id", "mode", "value", *(() if annotator else ("annotator",)))
    builder = IncomingBuilder()
    names = set[str]()

    @lru_cache(maxsize=_REMEMBERED_ROWS)
    def content_of(columns: tuple[str, ...], texts: tuple[str, ...]) -> _RowContent:
        cells = dict(zip(columns, texts, strict=True))
        name = annotator_of(cells.get("annotator", ""), annotator)
        ref = cells.get("taxonomy", "").strip() or None
        row_taxonomy = taxonomy_named(ref, taxonomy, find_taxonomy)
        return _RowContent(
            name,
            annotator_kind(name),
            row_taxonomy,
            row_taxonomy.ref,
            _row_adder(cells, row_taxonomy),
        )

    for row in stream_rows(files, builder.problems, allowed=(*COLUMNS, *_FACTS), needed=needed):
        names.add(row.texts[row.columns.index("annotator")] if "annotator" in row.columns else "")
        try:
            _add_long_row(builder, row, content_of)
        except ValueError as error:
            builder.problems.append(row.problem(error))
    check_one_name(annotator, names)
    return builder.to_incoming()


def _add_long_row(
    builder: IncomingBuilder,
    row: CsvRow,
    content_of: Callable[[tuple[str, ...], tuple[str, ...]], _RowContent],
) -> None:
    """Add the content of a row and its facts about the trace to the builder.

    ``content_of`` returns the content by the columns and texts of the row.

    Raises:
        ValueError: The row is not valid; nothing was added.
    """
    texts = row.texts
    trace_column = row.columns.index("trace_id")
    trace_id = texts[trace_column].strip()
    if not trace_id:
        raise ValueError("'trace_id' is empty")
    # ``content_of`` caches its results. With empty cells about the trace, rows that differ only in
    # the trace have one result.
    texts[trace_column] = ""
    facts = _take_facts(row.columns, texts)
    trace = _with_facts(builder.traces.get(trace_id), trace_id, facts)
    content = content_of(row.columns, tuple(texts))
    key = (content.annotator, trace_id, content.ref)
    draft = builder.drafts.get(key) or ImportedWork(
        content.annotator, trace_id, content.ref, content.kind, file=row.file
    )
    content.add(draft, row.place)
    if trace is not None:
        builder.traces[trace_id] = trace
    if key not in builder.drafts:
        builder.add_work(draft)
        builder.taxonomies[content.ref] = content.taxonomy


def _take_facts(columns: tuple[str, ...], texts: list[str]) -> Mapping[str, str]:
    """Return the facts of a row about its trace, and empty their cells in ``texts``."""
    facts: dict[str, str] = {}
    for name in _FACTS:
        if name in columns:
            index = columns.index(name)
            facts[name] = texts[index].strip()
            texts[index] = ""
    return facts


def _with_facts(
    earlier: TraceRecord | None, trace_id: str, facts: Mapping[str, str]
) -> TraceRecord | None:
    """Return the record of a trace with the facts of another row; None without any facts.

    Raises:
        ValueError: A fact is not valid, or rows contradict each other.
    """
    if not any(facts.values()):
        return earlier
    trace = TraceRecord(
        trace_id, task_id=facts.get(TASK_ID) or None, trial=trial_in(facts.get(TRIAL, ""))
    )
    return trace if earlier is None else merged_facts(earlier, trace)


class _RowContent(NamedTuple):
    """The content of a row without its trace. Many rows share it."""

    annotator: str
    kind: AnnotatorKind
    taxonomy: Taxonomy
    ref: str
    add: Callable[[ImportedWork, str], None]
    """Adds the content to the work on a trace. The second argument is the location of the row.
    Raises ``ValueError`` for a contradiction with other rows."""


def _row_adder(cells: Mapping[str, str], taxonomy: Taxonomy) -> Callable[[ImportedWork, str], None]:
    """Return a function that adds the content of a row to work.

    Its second argument is the location of the row.

    Raises:
        ValueError: A cell is not valid.
    """
    value = cells["value"].strip().lower()
    time = iso_time(cells.get("created_at", ""))
    if value == FINISHED:
        if cells["mode"].strip():
            raise ValueError(
                "a row with value 'finished' is about the whole trace; leave out the mode"
            )
        _check_has_no_target(cells, value)
        return lambda draft, _location: draft.finish(time)
    if value == NOTE:
        span, text = _span_note(cells)
        return lambda draft, location: draft.add_note(span, text, location)
    mode = _mode_in(cells["mode"], cells.get("slug", ""), taxonomy).slug
    verdict = _VALUES.get(value)
    if verdict is None:
        raise ValueError(f"value is {value!r}; expected present, absent, unsure, finished or note")
    if verdict is not VerdictValue.PRESENT:
        _check_has_no_target(cells, value)
        return lambda draft, _location: draft.add_verdict(mode, verdict)
    return _label_adder(cells, mode, time)


def _label_adder(
    cells: Mapping[str, str], mode: str, time: str
) -> Callable[[ImportedWork, str], None]:
    """Return a function that adds the label of a row to work, as ``_row_adder`` does."""
    target = _target_in(cells)
    note = cells.get("note", "")
    confidence = share_in("confidence", cells.get("confidence", ""))
    severity = _enum_value_in(cells, "severity", Severity)
    origin = _enum_value_in(cells, "origin", Origin) or Origin.IMPORTED
    saw_suggestion = _flag_in(cells.get("saw_suggestion", ""))
    return lambda draft, location: draft.add_label(
        draft.label(
            mode,
            target,
            note,
            confidence=confidence,
            severity=severity,
            origin=origin,
            saw_suggestions=saw_suggestion,
            created_at=time,
        ),
        location,
    )


def _span_note(cells: Mapping[str, str]) -> tuple[str, str]:
    """Return the key of the span and the text of the note in a row.

    Raises:
        ValueError: The row is not a valid note on one span.
    """
    target = _target_in(cells)
    text = cells.get("note", "")
    if cells["mode"].strip() or cells.get("slug", "").strip():
        raise ValueError("a row with value 'note' is about a span; leave out the mode")
    if target.first is None or target.last != target.first or target.quote is not None:
        raise ValueError("a row with value 'note' needs one span in span_first and no quote")
    if not text.strip():
        raise ValueError("a row with value 'note' has an empty note")
    return target.first, text


def _check_has_no_target(cells: Mapping[str, str], value: str) -> None:
    """Check that a row about the whole trace has no span and no quote."""
    for name in _TARGET_COLUMNS:
        if cells.get(name):
            raise ValueError(
                f"a row with value {value!r} is about the whole trace; leave {name!r} empty"
            )


def _target_in(cells: Mapping[str, str]) -> Target:
    """Return the target in a row; the whole trace if its cells are empty.

    Raises:
        ValueError: The cells contradict each other.
    """
    if not any(map(cells.get, _TARGET_COLUMNS)):
        return WHOLE_TRACE
    first = cells.get("span_first", "") or None
    last = cells.get("span_last", "") or first
    quote = cells.get("quote", "") or None
    start = _offset_in(cells, "char_start")
    end = _offset_in(cells, "char_end")
    if first is None and last is not None:
        raise ValueError("span_last without span_first")
    if start is not None and quote is None:
        raise ValueError("char_start without a quote")
    if quote is not None and start is not None and end is not None and end - start != len(quote):
        raise ValueError(
            f"char_end - char_start is {end - start}, but the quote has {len(quote)} characters"
        )
    return Target(first, last, quote, start, end)


def _mode_in(cell: str, slug_cell: str, taxonomy: Taxonomy) -> Mode:
    """Return the mode in the cells ``mode`` and ``slug``.

    Raises:
        ValueError: The mode is missing or unknown, or the cells name different modes.
    """
    slug = slug_cell.strip()
    name = cell.strip() or slug
    if not name:
        raise ValueError("'mode' is empty")
    mode = taxonomy.find(name)
    if mode is None:
        codes = ", ".join(mode.code for mode in taxonomy.modes)
        raise ValueError(f"mode {name!r} is not in {taxonomy.ref} ({codes})")
    if slug and slug != mode.slug:
        raise ValueError(f"mode {name!r} is {mode.slug}, but the slug says {slug!r}")
    return mode


def _offset_in(cells: Mapping[str, str], name: str) -> int | None:
    """Return the character offset in a cell; None if it is empty.

    Raises:
        ValueError: The cell is not a whole number from 0.
    """
    text = cells.get(name, "").strip()
    if not text:
        return None
    digits = text.removesuffix(".0")  # pandas writes integers with missing values like this
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError(f"{name!r} is {text!r}, not a number of characters from 0")
    return int(digits)


def _enum_value_in(cells: Mapping[str, str], name: str, kind: type[EnumValue]) -> EnumValue | None:
    """Return the member of an enumeration in a cell; None if it is empty.

    Raises:
        ValueError: There is no such member.
    """
    text = cells.get(name, "").strip().lower()
    if not text:
        return None
    try:
        return kind(text)
    except ValueError:
        raise ValueError(f"{name} is {text!r}; expected {', '.join(kind)}") from None


def _flag_in(text: str) -> bool:
    try:
        return _FLAGS[text.strip().lower()]
    except KeyError:
        raise ValueError(f"saw_suggestion is {text!r}; expected true or false") from None


def iso_time(text: str) -> str:
    """Return a time as ISO 8601 in UTC; empty for an empty text.

    Raises:
        ValueError: The text is not a time.
    """
    text = text.strip()
    if not text:
        return ""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"created_at is {text!r}; expected a time such as 2026-05-04T10:20:30Z"
        ) from None
    if text.endswith("Z"):
        return text
    time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    return time.isoformat().replace("+00:00", "Z")


def write_csv_long(all_work: Iterable[TraceWork], taxonomy: Taxonomy) -> str:
    """Return the table ``csv-long``, sorted by trace, annotator, mode and span key.

    Args:
        all_work: The work of annotators under the taxonomy.
        taxonomy: The taxonomy.
    """
    ordered = sorted(all_work, key=lambda work: (work.trace_id, work.annotator))
    return csv_text(COLUMNS, (row for work in ordered for row in _work_rows(work, taxonomy)))


def _work_rows(work: TraceWork, taxonomy: Taxonomy) -> Iterator[dict[str, str]]:
    """Yield the rows of a work: labels and verdicts, then notes, then the finish."""
    for mode in taxonomy.all_modes:
        labels = sorted(work.labels_of(mode.slug), key=_sort_key)
        if labels:
            yield from (_label_row(work, mode, label) for label in labels)
        elif mode.slug in work.verdicts:
            yield _csv_row(work, mode=mode.code, slug=mode.slug, value=work.verdicts[mode.slug])
    for key, text in sorted(work.notes.items()):
        yield _csv_row(work, value=NOTE, span_first=key, span_last=key, note=text)
    if work.finished_at is not None:
        yield _csv_row(work, value=FINISHED, created_at=work.finished_at)


def _sort_key(label: Label) -> tuple[str, str, int, str, str]:
    """Return a unique sort key, so that the order of an export never varies."""
    target = label.target
    return (
        target.first or "",
        target.last or "",
        target.char_start or 0,
        target.quote or "",
        label.id,
    )


def _label_row(work: TraceWork, mode: Mode, label: Label) -> dict[str, str]:
    """Return the row of a label."""
    target = label.target
    return _csv_row(
        work,
        mode=mode.code,
        slug=mode.slug,
        value=VerdictValue.PRESENT,
        span_first=target.first or "",
        span_last=target.last or "",
        quote=target.quote or "",
        char_start="" if target.char_start is None else str(target.char_start),
        char_end="" if target.char_end is None else str(target.char_end),
        confidence="" if label.confidence is None else repr(label.confidence),
        severity=label.severity or "",
        origin=label.origin,
        saw_suggestion="true" if label.saw_suggestions else "false",
        note="\n".join(filter(None, (label.note, label.remedy and f"Instead: {label.remedy}"))),
        created_at=label.created_at,
        merged="true" if label.id in work.merged else "",
    )


def _csv_row(work: TraceWork, **cells: str) -> dict[str, str]:
    row = dict.fromkeys(COLUMNS, "")
    row |= {"trace_id": work.trace_id, "annotator": work.annotator, "taxonomy": work.taxonomy}
    return row | cells


FACTS: Final = ("system", "model", "benchmark", "outcome")
SCORE: Final = "score"
VERSION: Final = "version"
DATE: Final = "date"
VERDICT_BY_CELL: Final[Mapping[str, VerdictValue | None]] = {
    "1": VerdictValue.PRESENT,
    "0": VerdictValue.ABSENT,
    "?": VerdictValue.UNSURE,
    "": None,
    # pandas writes integers with missing values like this.
    "1.0": VerdictValue.PRESENT,
    "0.0": VerdictValue.ABSENT,
}
CELL_BY_VERDICT: Final = {
    VerdictValue.PRESENT: "1",
    VerdictValue.ABSENT: "0",
    VerdictValue.UNSURE: "?",
    None: "",
}
NUMBERS: Final[Mapping[VerdictValue | None, int]] = {
    VerdictValue.PRESENT: 1,
    VerdictValue.ABSENT: 0,
}
"""The number of a verdict. Unsure and open have none."""

_OUTCOMES: Final = {
    "": Outcome.UNKNOWN,
    "failed": Outcome.FAILED,
    "succeeded": Outcome.SUCCEEDED,
    "success": Outcome.SUCCEEDED,
}


def read_csv_wide(
    files: Sequence[Path], *, taxonomy: Taxonomy, annotator: str | None = None
) -> Incoming:
    """Read tables with an annotator's verdicts on a trace in each row.

    A row becomes a finished first pass with labels on the whole trace. An invalid row becomes a
    problem.

    Args:
        files: The files.
        taxonomy: The taxonomy. The codes of its modes are columns.
        annotator: The author of all rows; None if the rows name their authors.

    Raises:
        ExchangeError: A file is not such a table, or the rows name several authors despite
            ``annotator``.
    """
    codes = [mode.code for mode in taxonomy.modes]
    allowed = ("trace_id", "annotator", *FACTS, *codes, SCORE, VERSION, DATE, TASK_ID, TRIAL)
    needed = ("trace_id", *(() if annotator else ("annotator",)))
    builder = IncomingBuilder({taxonomy.ref: taxonomy})
    names = set[str]()
    for row in stream_rows(files, builder.problems, allowed=allowed, needed=needed):
        cells = row.cells
        names.add(cells.get("annotator", ""))
        with builder.errors_as_problem(row.file, row.place):
            trace = _trace_in(cells, builder.traces)
            name = annotator_of(cells.get("annotator", ""), annotator)
            draft = _wide_work(name, trace.trace_id, row, taxonomy)
            earlier_draft = builder.drafts.get(draft.key)
            # Two files may have the same row.
            if earlier_draft is not None and replace(earlier_draft, file=draft.file) != draft:
                raise ValueError(f"{trace.trace_id} has two different rows by {name}")
            builder.add_work(draft)
            builder.traces[trace.trace_id] = trace
    check_one_name(annotator, names)
    return builder.to_incoming()


def _wide_work(name: str, trace_id: str, row: CsvRow, taxonomy: Taxonomy) -> ImportedWork:
    """Return the work in a row.

    The verdict present becomes a label on the whole trace.

    Raises:
        ValueError: A cell has another text than ``1``, ``0``, ``?`` or nothing.
    """
    draft = ImportedWork(
        name,
        trace_id,
        taxonomy.ref,
        annotator_kind(name),
        finished_at=UNKNOWN_TIME,
        file=row.file,
    )
    cells = row.cells
    for mode in taxonomy.modes:
        cell = cells.get(mode.code, "").strip()
        if cell not in VERDICT_BY_CELL:
            raise ValueError(f"{mode.code} is {cell!r}; expected 1, 0, ? or empty")
        value = VERDICT_BY_CELL[cell]
        if value is VerdictValue.PRESENT:
            draft.add_label(draft.label(mode.slug))
        elif value is not None:
            draft.add_verdict(mode.slug, value)
    return draft


def _trace_in(cells: Mapping[str, str], earlier: Mapping[str, TraceRecord]) -> TraceRecord:
    """Return the record of a row's trace, merged with earlier rows.

    Raises:
        ValueError: A cell is not valid, or contradicts an earlier row.
    """
    trace_id = cells["trace_id"].strip()
    if not trace_id:
        raise ValueError("'trace_id' is empty")
    outcome = cells.get("outcome", "").strip().lower()
    if outcome not in _OUTCOMES:
        raise ValueError(f"outcome is {outcome!r}; expected failed, succeeded or empty")
    trace = TraceRecord(
        trace_id=trace_id,
        system=cells.get("system", "").strip() or None,
        model=cells.get("model", "").strip() or None,
        benchmark=cells.get("benchmark", "").strip() or None,
        outcome=_OUTCOMES[outcome],
        score=share_in(SCORE, cells.get(SCORE, "").strip()),
        version=cells.get(VERSION, "").strip() or None,
        started=_start_time_in(cells.get(DATE, "").strip()),
        task_id=cells.get(TASK_ID, "").strip() or None,
        trial=trial_in(cells.get(TRIAL, "")),
    )
    return merged_facts(earlier[trace_id], trace) if trace_id in earlier else trace


def _start_time_in(text: str) -> float | None:
    """Return the time in a cell in Unix seconds; None if it is empty.

    Raises:
        ValueError: The cell is not a time.
    """
    if not text:
        return None
    start_time = unix_seconds(text)
    if start_time is None:
        raise ValueError(f"date is {text!r}; expected a date such as 2026-03-31")
    return start_time


def write_csv_wide(
    all_work: Iterable[TraceWork], records: Mapping[str, TraceRecord], taxonomy: Taxonomy
) -> str:
    """Return the table ``csv-wide``, sorted by trace and annotator.

    Args:
        all_work: The work of annotators under the taxonomy.
        records: The known facts of traces by id.
        taxonomy: The taxonomy. Each mode is a column.
    """
    rows = [
        (work, records.get(work.trace_id, TraceRecord(work.trace_id)))
        for work in sorted(all_work, key=lambda work: (work.trace_id, work.annotator))
    ]
    codes = tuple(mode.code for mode in taxonomy.modes)
    optional_columns = [
        *([SCORE] if any(trace.score is not None for _, trace in rows) else ()),
        *([VERSION] if any(trace.version is not None for _, trace in rows) else ()),
        *([DATE] if any(trace.started is not None for _, trace in rows) else ()),
        *([TASK_ID] if any(trace.task_id is not None for _, trace in rows) else ()),
        *([TRIAL] if any(trace.trial is not None for _, trace in rows) else ()),
    ]
    columns = ("trace_id", "annotator", *FACTS, *codes, *optional_columns)
    return csv_text(columns, (_row_cells(work, trace, taxonomy) for work, trace in rows))


def _row_cells(work: TraceWork, trace: TraceRecord, taxonomy: Taxonomy) -> dict[str, str]:
    """Return the cells of a row by column, including optional columns."""
    return {
        "trace_id": trace.trace_id,
        "annotator": work.annotator,
        "system": trace.system or "",
        "model": trace.model or "",
        "benchmark": trace.benchmark or "",
        "outcome": "" if trace.outcome is Outcome.UNKNOWN else trace.outcome,
        **{mode.code: CELL_BY_VERDICT[work.verdict(mode.slug)] for mode in taxonomy.modes},
        SCORE: "" if trace.score is None else repr(trace.score),
        VERSION: trace.version or "",
        DATE: "" if trace.started is None else iso_of_seconds(trace.started) or "",
        TASK_ID: trace.task_id or "",
        TRIAL: "" if trace.trial is None else str(trace.trial),
    }
