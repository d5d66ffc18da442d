"""The format ``jsonl``: a whole workspace as lines of JSON, without loss.

The lines have a fixed order, so that two versions can be compared: the heading, taxonomies, traces,
shares set aside, annotators, runs of judges, tags and events. The state of labels follows from the
events. For privacy, a trace has only its file's name without the folder. The usage of models is
written, but not their answers.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, get_args

from msgspec import Meta, Struct, to_builtins
from msgspec import field as named
from msgspec.structs import asdict, replace

from mast_tui.exchange.batches import register_traces
from mast_tui.exchange.errors import ExchangeError
from mast_tui.gold import Decision, Guideline
from mast_tui.labels import AnnotatorKind, Count, QuoteCounts, WholeNumber
from mast_tui.taxonomy.loader import TaxonomyError, from_dict, to_dict
from mast_tui.traces.io.json_values import InvalidJSON, load_json
from mast_tui.traces.library import samples_folder
from mast_tui.traces.model import Outcome, TraceIdentity
from mast_tui.workspace import Event, Run, RunTrace, TraceRecord, Usage, Workspace, WorkspaceError
from mast_tui.workspace.events.chain import ForeignEvents, with_checked_chains
from mast_tui.workspace.events.codec import (
    quote_counts_from,
    read,
    settings_from_values,
    settings_to_values,
)
from mast_tui.workspace.events.model import event_from_dict, event_to_dict
from mast_tui.workspace.events.types import Decided, GuidelineSet
from mast_tui.workspace.merging import (
    add_span_indices,
    register_foreign,
    run_with_local_ids,
    with_local_ids,
)
from mast_tui.workspace.records import MergeReport, SpanIndex
from mast_tui.workspace.registers.hold_out import add_shares, shares_set_aside
from mast_tui.workspace.registers.tags import Tags, add_tags, all_tags, tag_values, tags_from
from mast_tui.workspace.registers.taxonomies import Revision

FORMAT: Final = "mast-tui-workspace"
VERSION: Final = 6
"""Versions 2 to 6 added facts about judges, studies and guidelines, chains of events, changing
codebooks, and agents. An earlier program refuses a newer version."""


class _Line(Struct, kw_only=True, omit_defaults=True, tag_field="record"):
    """A line of a file. Its tag is the kind of the record."""


class WorkspaceLine(_Line, tag="workspace"):
    """The heading of the file."""

    format: str
    version: WholeNumber


class TaxonomyLine(_Line, tag="taxonomy"):
    """A version of a taxonomy. ``since`` is the start of its use."""

    taxonomy: dict[str, Any]
    since: str = ""


class IdentityLine(Struct, kw_only=True):
    """The identity of a trace."""

    trace_id: str = named(name="id")
    content_hash: str
    content_bytes: WholeNumber
    reader: str
    key_scheme: WholeNumber
    native: bool = False


class SpanIndexLine(Struct, omit_defaults=True):
    """The index of a span in its trace."""

    key: str
    index: Count
    text_chars: Count | None = None


class TraceLine(_Line, tag="trace"):
    """A trace. ``file`` is the name of its file without the folder."""

    trace_id: str = named(name="id")
    identity: IdentityLine | None = None
    file: str | None = None
    record: WholeNumber | None = named(default=None, name="number")
    spans: WholeNumber | None = None
    task: str | None = None
    system: str | None = None
    model: str | None = None
    benchmark: str | None = None
    outcome: Outcome = Outcome.UNKNOWN
    score: float | None = None
    version: str | None = None
    started: float | None = None
    task_id: str | None = None
    trial: WholeNumber | None = None
    span_indices: tuple[SpanIndexLine, ...] = ()

    @classmethod
    def of(cls, trace: TraceRecord, indices: Mapping[str, SpanIndex]) -> TraceLine:
        """Return the line of a trace.

        Args:
            trace: The trace.
            indices: The known indices of the trace's spans by key.
        """
        identity = None if trace.identity is None else IdentityLine(**trace.identity._asdict())
        return cls(
            trace_id=trace.trace_id,
            identity=identity,
            file=None if trace.path is None else trace.path.name,
            record=trace.record,
            spans=trace.spans,
            task=trace.task,
            system=trace.system,
            model=trace.model,
            benchmark=trace.benchmark,
            outcome=trace.outcome,
            score=trace.score,
            version=trace.version,
            started=trace.started,
            task_id=trace.task_id,
            trial=trace.trial,
            span_indices=tuple(
                SpanIndexLine(key, span.index, span.text_chars)
                for key, span in sorted(indices.items())
                if span.index is not None
            ),
        )

    def trace_record(self) -> TraceRecord:
        """Return the record of the trace.

        Its path is only the name of the file.
        """
        identity = None if self.identity is None else TraceIdentity(**asdict(self.identity))
        return TraceRecord(
            trace_id=self.trace_id,
            identity=identity,
            path=None if self.file is None else Path(Path(self.file).name),
            record=self.record,
            spans=self.spans,
            task=self.task,
            system=self.system,
            model=self.model,
            benchmark=self.benchmark,
            outcome=self.outcome,
            score=self.score,
            version=self.version,
            started=self.started,
            task_id=self.task_id,
            trial=self.trial,
        )

    def indices(self) -> dict[str, SpanIndex]:
        """Return the indices of the trace's spans by key."""
        return {span.key: SpanIndex(span.index, span.text_chars) for span in self.span_indices}


class SetAsideLine(_Line, tag="set_aside"):
    """A share of the traces that is set aside."""

    share: Annotated[float, Meta(gt=0, lt=1)]
    seed: WholeNumber


class AnnotatorLine(_Line, tag="annotator"):
    """An annotator."""

    name: str
    kind: AnnotatorKind


class RunTraceLine(Struct, omit_defaults=True):
    """The result of a judge's run on a trace."""

    id: str
    findings: WholeNumber
    problem: str | None = None
    quotes: WholeNumber = 0
    verified: WholeNumber = 0
    quote_kinds: QuoteCounts | None = None
    windows: WholeNumber = 0
    remarks: tuple[str, ...] = ()

    @classmethod
    def of(cls, trace: RunTrace) -> RunTraceLine:
        """Return the line of a judge's result on a trace."""
        return cls(
            id=trace.trace_id,
            findings=trace.findings,
            problem=trace.problem,
            quotes=trace.quotes.all,
            verified=trace.quotes.found,
            quote_kinds=None if trace.quotes == QuoteCounts() else trace.quotes,
            windows=trace.windows,
            remarks=trace.remarks,
        )

    def run_trace(self) -> RunTrace:
        """Return the judge's result on the trace."""
        # Earlier versions have no ``quote_kinds``.
        counts = self.quote_kinds or quote_counts_from(
            None, quotes=self.quotes, matched=self.verified
        )
        return RunTrace(self.id, self.findings, self.problem, counts, self.windows, self.remarks)


class RunLine(_Line, tag="run"):
    """A run of a judge."""

    id: str
    judge: str
    taxonomy: str
    started_at: str
    finished_at: str | None = None
    note: str = ""
    ending: str | None = None
    settings: dict[str, Any] | None = None
    form: str | None = None
    usage: Usage | None = None
    traces: tuple[RunTraceLine, ...] = named(default_factory=lambda: ())

    @classmethod
    def of(cls, run: Run) -> RunLine:
        """Return the line of a judge's run."""
        settings = run.settings
        return cls(
            id=run.id,
            judge=run.judge,
            taxonomy=run.taxonomy,
            started_at=run.started_at,
            finished_at=run.finished_at,
            note=run.note,
            ending=run.ending,
            settings=None if settings is None else settings_to_values(settings),
            form=None if settings is None else settings.form,
            usage=None if run.usage == Usage() else run.usage,
            traces=tuple(map(RunTraceLine.of, run.traces)),
        )

    def run(self) -> Run:
        """Return the run."""
        settings = self.settings
        return Run(
            id=self.id,
            judge=self.judge,
            taxonomy=self.taxonomy,
            started_at=self.started_at,
            finished_at=self.finished_at,
            note=self.note,
            traces=tuple(trace.run_trace() for trace in self.traces),
            settings=None if settings is None else settings_from_values(settings, self.form),
            usage=self.usage or Usage(),
            ending=self.ending,
        )


class TagsLine(_Line, tag="tags"):
    """The tags of an annotator's open codes."""

    taxonomy: str
    annotator: str
    given: list[Any]


Line = WorkspaceLine | TaxonomyLine | TraceLine | SetAsideLine | AnnotatorLine | RunLine | TagsLine
_KINDS: Final = frozenset(line.__struct_config__.tag for line in get_args(Line))


def workspace_lines(workspace: Workspace) -> Iterator[str]:
    """Yield the lines of an export, with line feeds."""
    for line in _register_lines(workspace):
        yield json_line(to_builtins(line))
    for event in workspace.events():
        yield json_line({"record": "event", **event_to_dict(event)})


def _register_lines(workspace: Workspace) -> Iterator[Line]:
    """Yield the lines of a workspace without its events."""
    yield WorkspaceLine(format=FORMAT, version=VERSION)
    for revision in workspace.revisions():
        yield TaxonomyLine(taxonomy=to_dict(revision.taxonomy), since=revision.since)
    indices = workspace.span_indices()
    for trace in workspace.traces():
        yield TraceLine.of(trace, indices.get(trace.trace_id, {}))
    for seed, share in shares_set_aside(workspace).items():
        yield SetAsideLine(share=share, seed=seed)
    for annotator in workspace.annotators():
        yield AnnotatorLine(name=annotator.name, kind=annotator.kind)
    for run in workspace.runs():
        yield RunLine.of(run)
    for taxonomy, author, tags in all_tags(workspace):
        yield TagsLine(taxonomy=taxonomy, annotator=author, given=tag_values(tags))


def json_line(values: Mapping[str, Any]) -> str:
    """Return values as one line of JSON."""
    return json.dumps(values, ensure_ascii=False, allow_nan=False) + "\n"


def json_document(document: object) -> str:
    """Return a document as indented JSON."""
    return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


@dataclass(slots=True)
class JsonlContent:
    """The contents of a file. ``foreign`` has its checked events."""

    taxonomies: list[Revision] = field(default_factory=list)
    traces: list[TraceRecord] = field(default_factory=list)
    span_indices: dict[str, dict[str, SpanIndex]] = field(default_factory=dict)
    shares: dict[int, float] = field(default_factory=dict)
    annotators: list[tuple[str, AnnotatorKind]] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    tags: list[tuple[str, str, Tags]] = field(default_factory=list)
    foreign: ForeignEvents = field(default_factory=ForeignEvents)


def read_jsonl(path: Path) -> JsonlContent:
    """Read an exported workspace, and check the chain of hashes of its events.

    Raises:
        ExchangeError: The file is empty, or one of its lines is not valid.
    """
    content = JsonlContent()
    events = list[Event]()
    lines = path.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            value = load_json(line)
            if not isinstance(value, dict):
                raise ValueError("expected one JSON object per line")
            # ``_add_record`` refuses an event on the first line.
            if value.get("record") == "event" and number > 1:
                event = event_from_dict(value)
                _check_author(event)
                events.append(event)
            else:
                _add_record(value, content, is_first=number == 1)
        except (InvalidJSON, TaxonomyError, ValueError) as error:
            raise ExchangeError(f"{path}: line {number}: {error}") from None
    if not any(line.strip() for line in lines):
        raise ExchangeError(f"{path}: empty; expected a 'workspace' line first")
    content.foreign = with_checked_chains(events)
    return content


def _check_author(event: Event) -> None:
    """Check that a decision or guideline has the author of its event."""
    match event.fact:
        case Decided(after=Decision(decided_by=author)):
            pass
        case GuidelineSet(after=Guideline(written_by=author)):
            pass
        case _:
            return
    if author != event.annotator:
        raise ValueError(f"an event by {event.annotator!r} is recorded under {author!r}")


def _add_record(value: dict[str, Any], content: JsonlContent, *, is_first: bool) -> None:
    """Add the record of a line to the content.

    Raises:
        ValueError: The record is not valid, or the first line is not the record ``workspace``.
    """
    kind = read(value.get("record"), str, "record")
    if is_first != (kind == "workspace"):
        raise ValueError("expected the record 'workspace' on the first line, and only there")
    if kind not in _KINDS:
        raise ValueError(f"unknown record {kind!r}; was it written by a newer version?")
    line: Line = read(value, Line, kind)  # type: ignore[arg-type]  # a union is no class to mypy
    match line:
        case WorkspaceLine():
            if line.format != FORMAT:
                raise ValueError(f"the format is {line.format!r}; expected {FORMAT!r}")
            if line.version > VERSION:
                raise ValueError("written by a newer version of mast-tui; upgrade mast-tui")
        case TaxonomyLine():
            content.taxonomies.append(Revision(from_dict(line.taxonomy, "taxonomy"), line.since))
        case TraceLine():
            content.traces.append(line.trace_record())
            if line.span_indices:
                content.span_indices[line.trace_id] = line.indices()
        case SetAsideLine():
            content.shares[line.seed] = line.share
        case AnnotatorLine():
            content.annotators.append((line.name, line.kind))
        case RunLine():
            content.runs.append(line.run())
        case TagsLine():
            content.tags.append((line.taxonomy, line.annotator, tags_from(line.given)))


def merge_content(
    content: JsonlContent, workspace: Workspace, *, replacing: Collection[str] = ()
) -> MergeReport:
    """Add the contents of a file to a workspace in one transaction.

    Known events are recognised by their ids.

    Args:
        content: The contents of a file.
        workspace: The workspace.
        replacing: The people and judges whose work may be replaced.

    Returns:
        The number of added events, and the changes by name.

    Raises:
        MergeRefused: The merge would replace other work than that of ``replacing``.
        WorkspaceError: The contents contradict the workspace, such as a taxonomy with other modes.
    """
    with workspace.transaction():
        return workspace.merge_events(register_content(content, workspace), replacing=replacing)


def register_content(content: JsonlContent, workspace: Workspace) -> ForeignEvents:
    """Add all contents of a file except its events to a workspace.

    Args:
        content: The contents of a file.
        workspace: The workspace.

    Returns:
        The events of the file, with trace ids of the workspace.
    """
    with workspace.transaction():
        workspace.add_revisions(content.taxonomies)
        workspace.add_annotators(content.annotators)
        add_shares(workspace, content.shares)
    local_ids = register_traces(content.traces, lambda t: register_foreign(workspace, t), workspace)
    with workspace.transaction():
        add_span_indices(workspace, content.span_indices, content.traces, local_ids)
        for run in content.runs:
            workspace.add_run(run_with_local_ids(run, local_ids))
        for taxonomy, author, tags in content.tags:
            add_tags(workspace, taxonomy, author, tags, local_ids)
    return with_local_ids(content.foreign, local_ids)


CONTENT_FILE: Final = "workspace.jsonl"
"""The labels of the sample traces, made by ``scripts/make_sample_workspace.py``."""


def fill_samples_workspace(workspace: Workspace) -> None:
    """Add the sample traces and their labels to a workspace without traces and annotators.

    Any other workspace stays unchanged.

    Raises:
        WorkspaceError: The labels cannot be read or written.
    """
    folder = samples_folder()
    if workspace.annotators() or workspace.traces() or not (folder / CONTENT_FILE).is_file():
        return
    try:
        content = read_jsonl(folder / CONTENT_FILE)
    except (ExchangeError, OSError) as error:
        raise WorkspaceError(f"the samples' labels cannot be read: {error}") from error
    content.traces = [
        replace(trace, path=folder / trace.path.name) if trace.path is not None else trace
        for trace in content.traces
    ]
    merge_content(content, workspace)
