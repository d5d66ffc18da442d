"""The content of a page: a run with the labels, verdicts and notes that its reader may see.

A page embeds the work as JSON for a later import. It has the records ``taxonomy``, ``trace`` and
``annotator`` of ``jsonl``, and a record ``work`` for each annotator. Events are left out, since
their chain covers all traces of an annotator.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import Struct, structs, to_builtins

from mast_tui.adjudication import read_work_by_trace
from mast_tui.counts import counted, duration
from mast_tui.exchange.errors import ExchangeError
from mast_tui.exchange.exporters.files import reveal_work, without_hidden_outcome
from mast_tui.exchange.import_batch import (
    ImportedWork,
    Incoming,
    IncomingBuilder,
    annotator_of,
    check_one_name,
    label_in_work,
)
from mast_tui.exchange.jsonl import AnnotatorLine, TaxonomyLine, TraceLine
from mast_tui.exchange.selection import MASKED_QUOTE, WorkMasks, pseudonymous, selected_work
from mast_tui.exchange.trace_files import files_under
from mast_tui.grouping import values_by_key
from mast_tui.labels import (
    ALL,
    GOLD,
    AnnotatorKind,
    Label,
    Target,
    TraceWork,
    VerdictValue,
    annotator_kind,
    confidence_words,
    is_judge,
)
from mast_tui.redaction.filled_masks import is_masked_copy
from mast_tui.redaction.masked_trace import MaskedSpans, Masks, redacted_span
from mast_tui.taxonomy.loader import TaxonomyError, from_dict, to_dict
from mast_tui.taxonomy.model import Mode, Taxonomy
from mast_tui.traces.file_edits import FileEdit, edits_by_file, file_edits
from mast_tui.traces.file_places import distinct_name
from mast_tui.traces.io.json_values import InvalidJSON, load_json
from mast_tui.traces.model import AnswerKey, Outcome, Role, Span, SpanStatus, Trace
from mast_tui.traces.pictures import Picture, PictureFinder
from mast_tui.traces.sub_agent_steps import SubAgentFinder, acting_agent
from mast_tui.traces.usage import UsageTable, usage_of, usage_tables
from mast_tui.workspace.events.codec import label_to_values, read
from mast_tui.workspace.records import TraceRecord

if TYPE_CHECKING:
    from mast_tui.gold import GoldLabel, GoldTrace
    from mast_tui.session import Viewer
    from mast_tui.workspace.registers.pseudonyms import Pseudonyms

FORMAT: Final = "mast-tui-page"
VERSION: Final = 1
ELEMENT_ID: Final = "mast-tui-labels"
"""The id of the HTML element with the records."""

_ELEMENT: Final = re.compile(
    rf"""<script\b[^>]*\bid=["']?{ELEMENT_ID}["']?[^>]*>(.*?)</script\s*>""", re.DOTALL
)
_UNSAFE_IN_HTML: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


class WorkLine(Struct, kw_only=True, omit_defaults=True, tag_field="record", tag="work"):
    """The work of an annotator on the trace of the page."""

    annotator: str
    trace_id: str
    taxonomy: str
    labels: tuple[dict[str, Any], ...] = ()
    verdicts: dict[str, VerdictValue] = {}
    notes: dict[str, str] = {}
    finished_at: str | None = None
    judge_seen: bool = False


Record = TaxonomyLine | TraceLine | AnnotatorLine | WorkLine


def records_of(
    record: TraceRecord,
    taxonomy: Taxonomy,
    works: Sequence[TraceWork],
    kinds: Mapping[str, AnnotatorKind],
) -> Iterator[dict[str, Any]]:
    """Return the records of a page as JSON values.

    Args:
        record: The facts of the trace.
        taxonomy: The taxonomy of the work.
        works: The work of each annotator on the trace.
        kinds: The kinds of annotators by name.
    """
    lines: list[Record] = [
        TaxonomyLine(taxonomy=to_dict(taxonomy)),
        TraceLine.of(record, indices={}),
    ]
    for work in works:
        kind = kinds.get(work.annotator) or annotator_kind(work.annotator)
        lines.append(AnnotatorLine(name=work.annotator, kind=kind))
        lines.append(
            WorkLine(
                annotator=work.annotator,
                trace_id=record.trace_id,
                taxonomy=work.taxonomy,
                labels=tuple(map(label_to_values, work.labels.values())),
                verdicts=work.verdicts_without_label(taxonomy),
                notes=work.notes,
                finished_at=work.finished_at,
                judge_seen=work.judge_seen,
            )
        )
    return map(to_builtins, lines)


def embedded_json(records: Sequence[Mapping[str, object]]) -> str:
    """Return the records as JSON that is safe inside HTML."""
    document = {"format": FORMAT, "version": VERSION, "records": records}
    text = json.dumps(document, ensure_ascii=False, allow_nan=False)
    for character, escape in _UNSAFE_IN_HTML.items():
        text = text.replace(character, escape)
    return text


def read_pages(
    files: Sequence[Path],
    *,
    taxonomy: Taxonomy,
    find_taxonomy: Callable[[str], Taxonomy | None],
    annotator: str | None = None,
) -> Incoming:
    """Read the work in pages; an unreadable page becomes a problem.

    Args:
        files: The pages and folders of pages.
        taxonomy: The taxonomy in use. It replaces a page's taxonomy of the same reference.
        find_taxonomy: Returns a taxonomy of the workspace by ``id@version``; None if it has none.
        annotator: The author of all work; None for the authors in the pages.
    """
    builder = _PagesBuilder(taxonomy, find_taxonomy, annotator)
    for file in files_under(files, (".html", ".htm")):
        try:
            records = _embedded_records(file)
            if records is not None:
                builder.add_page(file, records)
            elif file in files:  # other files in a folder are ignored
                raise ExchangeError(
                    "is not a mast-tui page with labels; give the pages of runs that 'mast-tui "
                    "page' has written, or their folder"
                )
        except (ExchangeError, InvalidJSON, TaxonomyError, ValueError, OSError) as error:
            builder.add_problem(file, "page", error)
    check_one_name(annotator, builder.authors)
    return builder.to_incoming()


def _embedded_records(file: Path) -> list[Record] | None:
    """Return the records in a page; None if there are none.

    Raises:
        ValueError: The records are of another format or of a newer version.
    """
    match = _ELEMENT.search(file.read_text("utf-8", "replace"))
    if match is None:
        return None
    document = load_json(match[1].strip().encode())
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError(f"the embedded format is unknown; expected {FORMAT!r}")
    version = document.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise ValueError("written by a newer version of mast-tui; upgrade mast-tui")
    values = read(document.get("records"), list[dict[str, Any]], "records")
    return [read(value, Record, "record") for value in values]  # type: ignore[arg-type]


class _PagesBuilder(IncomingBuilder):
    """The work in the pages so far.

    ``authors`` are the names in the pages.
    """

    def __init__(
        self,
        taxonomy: Taxonomy,
        find_taxonomy: Callable[[str], Taxonomy | None],
        given_name: str | None,
    ) -> None:
        super().__init__()
        self.authors = set[str]()
        self._taxonomy = taxonomy
        self._find_taxonomy = find_taxonomy
        self._given_name = given_name

    def add_page(self, file: Path, records: Iterable[Record]) -> None:
        """Add the work of a page.

        Args:
            file: The page.
            records: The records of the page.

        Raises:
            ValueError: The page lacks a taxonomy, or another page has the same author and trace.
        """
        taxonomies: dict[str, Taxonomy] = {}
        kinds: dict[str, AnnotatorKind] = {}
        for line in records:
            match line:
                case TaxonomyLine():
                    taxonomy = from_dict(line.taxonomy, "taxonomy")
                    taxonomies[taxonomy.ref] = self._known_taxonomy(taxonomy.ref) or taxonomy
                case TraceLine():
                    self.traces.setdefault(line.trace_id, line.trace_record())
                case AnnotatorLine():
                    kinds[line.name] = line.kind
                case WorkLine(annotator=author, taxonomy=ref):
                    self.authors.add(author)
                    if ref not in taxonomies:
                        raise ValueError(f"the page does not contain the taxonomy {ref!r}")
                    kind = kinds.get(author)
                    work = _imported_work(file, line, taxonomies[ref], self._given_name, kind)
                    if work.key in self.drafts:
                        raise ValueError(
                            f"another page also contains this trace labelled by {work.annotator}"
                        )
                    self.add_work(work)
                    self.taxonomies[ref] = taxonomies[ref]

    def _known_taxonomy(self, ref: str) -> Taxonomy | None:
        return self._taxonomy if self._taxonomy.ref == ref else self._find_taxonomy(ref)


def _imported_work(
    file: Path,
    line: WorkLine,
    taxonomy: Taxonomy,
    given_name: str | None,
    kind: AnnotatorKind | None,
) -> ImportedWork:
    """Return the work in a line of a page, under ``given_name`` if there is one.

    ``kind`` is the kind of the author in the page.

    Raises:
        ValueError: A mode is unknown.
    """
    name = annotator_of(line.annotator, given_name)
    kind_of_name = annotator_kind(name)
    # A given name can turn a judge into a person or the reverse.
    if kind is None or (kind is AnnotatorKind.JUDGE) != (kind_of_name is AnnotatorKind.JUDGE):
        kind = kind_of_name
    work = ImportedWork(
        name, line.trace_id, taxonomy.ref, kind, file=file, judge_seen=line.judge_seen
    )
    for values in line.labels:
        work.add_label(label_in_work(values, work, taxonomy), "labels")
    modes = {mode.slug for mode in taxonomy.all_modes}
    for mode, value in line.verdicts.items():
        if mode not in modes:
            raise ValueError(f"{mode!r} is not a mode of {taxonomy.ref}")
        work.add_verdict(mode, value)
    for key, text in line.notes.items():
        work.add_note(key, text, "notes")
    work.finished_at = line.finished_at
    return work


PERSON: Final = "person"
JUDGE: Final = "judge"
_SOURCES: Final = (GOLD, PERSON, JUDGE)


MOST_PICTURE_BYTES: Final = 40 << 20
"""The most bytes of all pictures on a page."""

_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME: Final = 120


def file_name_of(title: str, suffix: str) -> str:
    """Return the usual file name of a run's page.

    Args:
        title: The name of the run.
        suffix: The suffix of the file name.
    """
    return f"{_NOT_IN_NAMES.sub('-', title)[:_LONGEST_NAME]}.{suffix}"


class QuoteRange(NamedTuple):
    """The position of a quote: the index of its span, and code points in the span's text."""

    span: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class PageLabel:
    """A label on a page.

    Attributes:
        number: The number of the label in the list, from 1.
        source: ``gold``, ``person`` or ``judge``.
        first: The index of the first span; None for the whole trace or a missing span.
        last: The index of the last span; None as for ``first``.
        details: Short facts such as the severity.
    """

    number: int
    mode: Mode
    author: str
    source: str
    first: int | None
    last: int | None
    location: str
    quote: str
    quote_range: QuoteRange | None
    note: str
    details: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PageVerdict:
    """The verdicts on a mode.

    ``gold`` is the gold verdict, empty if there is none. ``source`` is its source in words.
    """

    mode: Mode
    gold: str
    source: str
    by_author: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PageStep:
    """A span on a page.

    Attributes:
        elapsed: The seconds since the start of the run; None if unknown.
        took: The duration of the span in seconds; None if unknown.
        labels: The labels that begin at this span.
        covered: True if a label covers the span.
        notes: The notes on the span with their authors.
        opened: The names of sub-agents that begin at this span.
        closed: The number of sub-agents that end at this span.
        pictures: The pictures of the span. Beyond ``MOST_PICTURE_BYTES`` per page they have no
            data.
    """

    span: Span
    elapsed: float | None
    took: float | None
    labels: tuple[PageLabel, ...]
    covered: bool
    notes: tuple[tuple[str, str], ...]
    opened: tuple[str, ...]
    closed: int
    pictures: tuple[Picture, ...]


@dataclass(frozen=True, slots=True)
class RunPage:
    """The content of a run's page.

    ``title`` is the name of the run in the library. ``records`` are the work for an import.
    ``answer_key`` is empty if it is hidden from the reader. A masked page has no pictures, since
    they cannot be masked.
    """

    title: str
    trace: Trace
    record: TraceRecord
    taxonomy: Taxonomy
    labels: tuple[PageLabel, ...]
    verdicts: tuple[PageVerdict, ...]
    authors: tuple[str, ...]
    notes: Mapping[int, tuple[tuple[str, str], ...]]
    answer_key: AnswerKey
    records: tuple[Mapping[str, object], ...]
    masked: bool

    def label_count(self, source: str) -> int:
        """Return the number of labels of a source: people, gold or judges."""
        return sum(label.source == source for label in self.labels)

    @property
    def facts(self) -> list[tuple[str, str]]:
        """The names and values of facts about the run."""
        record = self.record
        meta = self.trace.meta
        spans = [self.trace.span(index) for index in range(len(self.trace))]
        times = [time for span in spans for time in (span.start, span.end) if time is not None]
        token_counts = [span.tokens for span in spans if span.tokens is not None]
        tokens_read = sum(counts.input or 0 for counts in token_counts)
        tokens_written = sum(counts.output or 0 for counts in token_counts)
        error_count = sum(span.status is SpanStatus.ERROR for span in spans)
        agents = {span.agent for span in spans if span.role is Role.AGENT}
        values = (
            ("Id", record.trace_id),
            ("System", record.system),
            ("Model", record.model),
            ("Benchmark", record.benchmark),
            ("Task", meta.task_id),
            ("Outcome", None if record.outcome is Outcome.UNKNOWN else record.outcome.value),
            ("Score", None if record.score is None else f"{record.score:g}"),
            ("Spans", f"{len(spans):,}"),
            ("Agents", f"{len(agents):,}" if len(agents) > 1 else None),
            ("Failed steps", f"{error_count:,}" if error_count else None),
            ("Time", duration(max(times) - min(times)) if len(times) > 1 else None),
            ("Tokens read", f"{tokens_read:,}" if tokens_read else None),
            ("Tokens written", f"{tokens_written:,}" if tokens_written else None),
        )
        return [(name, value) for name, value in values if value]

    @property
    def usage(self) -> Sequence[UsageTable]:
        """The sums of time and tokens by agent and by tool."""
        return tuple(usage_tables(usage_of(self.trace)))

    @property
    def files(self) -> Mapping[str, Sequence[FileEdit]]:
        """The changes of files by path, the last changed file first."""
        return edits_by_file(file_edits(self.trace, len(self.trace)))

    def labels_by_author(self) -> list[tuple[str, list[PageLabel]]]:
        """Return the labels by author: the gold, then people, then judges."""
        groups = values_by_key(
            ((_SOURCES.index(label.source), label.author), label) for label in self.labels
        )
        return [(author, labels) for (_rank, author), labels in sorted(groups.items())]

    def quotes_by_span(self) -> dict[int, list[tuple[int, int, PageLabel]]]:
        """Return the start, end and label of quotes, by the index of their span."""
        return values_by_key(
            (quote.span, (quote.start, quote.end, label))
            for label in self.labels
            if (quote := label.quote_range) is not None
        )

    def steps(self) -> Iterator[PageStep]:
        """Yield the spans of the page in order."""
        trace = self.trace
        labels_by_first = values_by_key((label.first, label) for label in self.labels)
        covered_spans = {
            index
            for label in self.labels
            if label.first is not None and label.last is not None
            for index in range(label.first, label.last + 1)
        }
        # A block is the range of spans of a sub-agent. Blocks can be nested.
        block_finder = SubAgentFinder()
        block_finder.read_until(trace, len(trace))
        open_block_ends: list[int] = []  # the innermost block last
        run_start: float | None = None
        pictures = _PagePictures(trace)
        for index in range(len(trace)):
            span = trace.span(index)
            if run_start is None:
                run_start = span.start
            block = block_finder.beginning_at(index)
            if block is not None:
                open_block_ends.append(block[1])
            yield PageStep(
                span=span,
                elapsed=None if span.start is None or run_start is None else span.start - run_start,
                took=None if span.start is None or span.end is None else span.end - span.start,
                labels=tuple(labels_by_first.get(index, ())),
                covered=index in covered_spans,
                notes=self.notes.get(index, ()),
                opened=() if block is None else (acting_agent(trace, *block),),
                closed=_close_blocks(open_block_ends, index, len(trace)),
                pictures=() if self.masked else pictures.of_span(index),
            )


class _PagePictures:
    """The pictures of a page, up to a total number of bytes."""

    def __init__(self, trace: Trace) -> None:
        self._finder = PictureFinder(trace)
        self._bytes_left = MOST_PICTURE_BYTES

    def of_span(self, index: int) -> tuple[Picture, ...]:
        """Return the pictures of a span.

        A picture beyond the limit of the page has no data.
        """
        pictures = []
        for picture in self._finder.of_span(index):
            self._bytes_left -= len(picture.data or b"")
            if self._bytes_left < 0 and picture.data is not None:
                reason = f"{picture.description}, left out because the page would be too large"
                picture = Picture(picture.name or "a picture", None, reason)
            pictures.append(picture)
        return tuple(pictures)


def _close_blocks(open_block_ends: list[int], index: int, span_count: int) -> int:
    """Remove the ends of blocks that end with a span, and return their number.

    Ends are exclusive. The end of the innermost block is the last one. The last span ends all
    blocks.
    """
    count = 0
    is_last_span = index + 1 == span_count
    while open_block_ends and (is_last_span or open_block_ends[-1] <= index + 1):
        open_block_ends.pop()
        count += 1
    return count


def label_counts_text(pages: Iterable[RunPage]) -> str:
    """Return the numbers of labels, gold labels and suggestions on pages as text."""
    counts = Counter(label.source for page in pages for label in page.labels)
    parts = [counted(counts[PERSON], "label")]
    if counts[GOLD]:
        parts.append(counted(counts[GOLD], "gold label"))
    if counts[JUDGE]:
        parts.append(counted(counts[JUDGE], "suggestion"))
    return ", ".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class _VisibleParts:
    """The parts of a trace's page that its reader may see.

    ``record`` has no outcome if that is hidden. ``kinds`` are those of annotators by shown name.
    """

    record: TraceRecord
    works: Sequence[TraceWork] = ()
    gold: GoldTrace | None = None
    kinds: Mapping[str, AnnotatorKind] = field(default_factory=dict)
    has_outcome: bool


class RunPages:
    """A maker of run pages for one reader."""

    def __init__(
        self,
        taxonomy: Taxonomy,
        viewer: Viewer | None = None,
        *,
        blind: bool = False,
        pseudonyms: Pseudonyms | None = None,
        masks: Masks | None = None,
    ) -> None:
        """Make pages under one taxonomy.

        Args:
            taxonomy: The taxonomy of the labels.
            viewer: The reader with the workspace; None without a workspace.
            blind: Hide outcomes without a workspace.
            pseudonyms: The letters in place of people's names.
            masks: The masks of personal data and secrets.
        """
        self.hidden = set[str]()
        """The ids of traces with work that is hidden from the reader."""
        self._taxonomy = taxonomy
        self._viewer = viewer
        self._blind = blind
        self._pseudonyms = pseudonyms
        self._masks = masks

    def page_of(self, trace: Trace, listed: Iterable[Trace] = ()) -> RunPage:
        """Return the page of a trace.

        The trace must be read to its end. It is added to ``hidden`` if some work on it is hidden.

        Args:
            trace: The trace.
            listed: The traces of all pages. The titles of their pages must differ.
        """
        title = distinct_name(trace, listed)
        visible = self._visible_parts(trace)
        record = visible.record
        works = visible.works
        masks = self._masks
        # Labels quote the original text, so they are built before the masks are applied.
        labels = _LabelBuilder(self._taxonomy, trace, self._shown_name).in_order(
            works, visible.gold
        )
        if masks is not None:
            title = masks.text(title)
            masked_trace = trace.with_masks(masks)
            labels = tuple(_masked_label(label, masked_trace, masks) for label in labels)
            work_masks = WorkMasks(masks, lambda _id, key: redacted_span(masked_trace, key))
            record = work_masks.masked_record(record)
            works = work_masks.masked_work(works)
            trace = masked_trace
        records = records_of(record, self._taxonomy, works, visible.kinds) if works else ()
        return RunPage(
            title=title,
            trace=trace,
            record=record,
            taxonomy=self._taxonomy,
            labels=labels,
            verdicts=tuple(
                verdict if masks is None else replace(verdict, source=masks.text(verdict.source))
                for verdict in _mode_verdicts(works, visible.gold, self._taxonomy, self._shown_name)
            ),
            authors=tuple(work.annotator for work in works if work.verdicts or work.labels),
            notes=_span_notes(works, trace),
            answer_key=trace.meta.answer_key if visible.has_outcome else AnswerKey(),
            records=tuple(records),
            masked=masks is not None,
        )

    def _visible_parts(self, trace: Trace) -> _VisibleParts:
        """Return the parts of a trace's page that the reader may see, without masks."""
        record = TraceRecord.from_trace(trace)
        viewer = self._viewer
        if viewer is None:
            visible_record = without_hidden_outcome(record, lambda _trace_id: not self._blind)
            return _VisibleParts(record=visible_record, has_outcome=not self._blind)
        known_record = viewer.workspace.find_trace(record)
        if known_record is not None:
            record = structs.replace(record, trace_id=known_record.trace_id)
        works = self._visible_work(record.trace_id, viewer)
        gold = self._visible_gold(record.trace_id, trace, viewer)
        # The outcome may be visible only since the work was shown, so it is tested last.
        may_see_outcome = viewer.may_see_outcomes()
        return _VisibleParts(
            record=without_hidden_outcome(record, may_see_outcome),
            works=works,
            gold=gold,
            kinds={
                self._shown_name(info.name): info.kind for info in viewer.workspace.annotators()
            },
            has_outcome=may_see_outcome(record.trace_id),
        )

    def _visible_work(self, trace_id: str, viewer: Viewer) -> Sequence[TraceWork]:
        """Return the work on a trace that the reader may see.

        The trace is added to ``hidden`` if there is more.
        """
        selection = selected_work(
            viewer.workspace,
            self._taxonomy,
            ALL,
            which="last",
            finished_only=False,
            trace_id=trace_id,
        )
        visible_work, hidden = reveal_work(viewer, selection)
        self.hidden |= hidden
        works = [work for work in visible_work if work.labels or work.verdicts or work.notes]
        return works if self._pseudonyms is None else pseudonymous(works, self._pseudonyms)

    def _visible_gold(self, trace_id: str, trace: Trace, viewer: Viewer) -> GoldTrace | None:
        """Return the gold of a trace; None if it is missing or hidden."""
        if not viewer.may_see_others(trace_id):
            return None
        work_by_trace = read_work_by_trace(viewer.workspace, self._taxonomy, trace_id=trace_id)
        work = work_by_trace.get(trace_id)
        return None if work is None else work.gold(self._taxonomy, trace.index_of)

    def _shown_name(self, name: str) -> str:
        return name if self._pseudonyms is None else self._pseudonyms.name(name)


def _masked_label(label: PageLabel, trace: Trace, masks: Masks) -> PageLabel:
    """Return a label with masked texts, and the quote's range in the masked span.

    ``trace`` has masks.
    """
    quote_range = label.quote_range
    quote = masks.text(label.quote)
    if quote_range is not None:
        assert isinstance(trace.spans, MaskedSpans)
        redacted = trace.spans.redacted(quote_range.span)
        start, end = redacted.to_shown(quote_range.start, quote_range.end)
        quote_range = QuoteRange(quote_range.span, start, end)
        quote = redacted.text[start:end]
    elif label.first is None or quote not in trace.text(label.first):
        quote = quote and MASKED_QUOTE
    return replace(label, note=masks.text(label.note), quote=quote, quote_range=quote_range)


@dataclass(frozen=True, slots=True)
class _LabelBuilder:
    """A maker of the labels of a page."""

    taxonomy: Taxonomy
    trace: Trace
    shown_name: Callable[[str], str]

    def in_order(self, works: Iterable[TraceWork], gold: GoldTrace | None) -> tuple[PageLabel, ...]:
        """Return all labels, numbered in reading order.

        Args:
            works: The work of annotators and judges.
            gold: The gold; None if it is missing or hidden.
        """
        labels = [] if gold is None else [self._label_of_gold(label) for label in gold.labels]
        for work in works:
            labels += [self._label_of_author(label) for label in work.labels.values()]
        labels.sort(
            key=lambda label: (
                -1 if label.first is None else label.first,
                label.mode.code,
                _SOURCES.index(label.source),
                label.author,
            )
        )
        return tuple(replace(label, number=n) for n, label in enumerate(labels, start=1))

    def _label_of_gold(self, label: GoldLabel) -> PageLabel:
        """Return a gold label for the page."""
        details = [label.source.value]
        if label.decided_by is not None:
            details.append(f"decided by {self.shown_name(label.decided_by)}")
        elif label.annotators:
            details.append(", ".join(map(self.shown_name, label.annotators)))
        if label.merged:
            details.append("joined from several annotators' different places")
        if label.severity is not None:
            details.append(label.severity.value)
        notes = [f"{self.shown_name(name)}: {note}" for name, note in label.notes if note]
        if label.reason:
            notes.append(label.reason)
        return self._page_label(
            label.mode, label.target, author=GOLD, source=GOLD, notes=notes, details=details
        )

    def _label_of_author(self, label: Label) -> PageLabel:
        """Return a label of an annotator or judge for the page.

        Without a quote it shows its evidence.
        """
        details = []
        if label.severity is not None:
            details.append(label.severity.value)
        if label.confidence is not None:
            details.append(confidence_words(label.confidence))
        if label.decisive:
            details.append("decided the outcome")
        notes = [label.note, label.remedy and f"Instead: {label.remedy}"]
        evidence = label.evidence
        if evidence is not None and not evidence.placed:
            details.append("the quote was not found in the trace")
        source = JUDGE if is_judge(label.annotator) else PERSON
        page_label = self._page_label(
            label.mode,
            label.target,
            author=label.annotator,
            source=source,
            notes=notes,
            details=details,
        )
        if evidence is None or not evidence.placed or label.target.quote is not None:
            return page_label
        evidence_target = Target(
            evidence.key, None, evidence.quote, evidence.char_start, evidence.char_end
        )
        evidence_range = self._quote_range(evidence_target)
        return replace(page_label, quote=evidence.quote, quote_range=evidence_range)

    def _page_label(
        self,
        mode: str,
        target: Target,
        *,
        author: str,
        source: str,
        notes: Iterable[str],
        details: Iterable[str],
    ) -> PageLabel:
        """Return a label for the page, with the number 0.

        Its span indices are None for the whole trace or a missing span.
        """
        first = None if target.first is None else self.trace.index_of(target.first)
        last = None if target.last is None else self.trace.index_of(target.last)
        if first is None or last is None:
            first = last = None
        else:
            first, last = sorted((first, last))
        return PageLabel(
            number=0,
            mode=self.taxonomy.mode(mode),
            author=author,
            source=source,
            first=first,
            last=last,
            location=_location_text(target, first, last),
            quote=target.quote or "",
            quote_range=self._quote_range(target),
            note="\n".join(filter(None, notes)),
            details=tuple(details),
        )

    def _quote_range(self, target: Target) -> QuoteRange | None:
        """Return the range of a quote in its span; None if it is missing.

        Without a match at its recorded characters, the first occurrence counts.
        """
        if target.quote is None or target.first is None:
            return None
        index = self.trace.index_of(target.first)
        if index is None:
            return None
        text = self.trace.text(index)
        start = target.char_start
        # A quote from a masked trace has masks in place of secrets.
        if start is None or not is_masked_copy(target.quote, text[start : target.char_end]):
            start = text.find(target.quote)
        return None if start < 0 else QuoteRange(index, start, start + len(target.quote))


def _location_text(target: Target, first: int | None, last: int | None) -> str:
    """Return the location of a target in words, such as ``#83 to #90``."""
    if target.first is None:
        return "the whole trace"
    if first is None or last is None:
        return f"a span that is not in this trace ({target.first})"
    return f"#{first + 1}" if first == last else f"#{first + 1} to #{last + 1}"


def _mode_verdicts(
    works: Sequence[TraceWork],
    gold: GoldTrace | None,
    taxonomy: Taxonomy,
    shown_name: Callable[[str], str],
) -> Iterator[PageVerdict]:
    """Yield the verdicts on each mode that has any."""
    gold_by_mode = {} if gold is None else {verdict.mode: verdict for verdict in gold.verdicts}
    for mode in taxonomy.all_modes:
        by_author = {
            work.annotator: value.value
            for work in works
            if (value := work.verdict(mode.slug)) is not None
        }
        gold_verdict = gold_by_mode.get(mode.slug)
        gold_value = None if gold_verdict is None else gold_verdict.value
        if not by_author and gold_value is None:
            continue
        source = ""
        if gold_verdict is not None:
            source = gold_verdict.source.value
            if gold_verdict.decided_by is not None:
                source = f"{source} by {shown_name(gold_verdict.decided_by)}"
            if gold_verdict.reason:
                source = f"{source}: {gold_verdict.reason}"
        yield PageVerdict(mode, "" if gold_value is None else gold_value.value, source, by_author)


def _span_notes(works: Iterable[TraceWork], trace: Trace) -> dict[int, tuple[tuple[str, str], ...]]:
    """Return the author and text of notes by the index of the span."""
    notes = values_by_key(
        (index, (work.annotator, text))
        for work in works
        for key, text in work.notes.items()
        if (index := trace.index_of(key)) is not None
    )
    return {index: tuple(entries) for index, entries in notes.items()}
