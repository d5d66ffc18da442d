"""``jsonl``: a whole workspace as lines of JSON, without loss.

One record per line, in a lasting order, so that two versions can be compared line by line: a
heading, then taxonomies, traces, the share of them that is set aside, annotators, runs of judges
and events. The state (labels, verdicts, passes, decisions …) follows from the events. Of the place
where a trace was last seen only the file's name is written: folders are nobody else's business.
Nor are the answers of models: what a run used is written, not what was said.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from mast_tui.exchange.batches import register_traces
from mast_tui.exchange.errors import ExchangeError
from mast_tui.gold import Decision, Guideline
from mast_tui.labels import AnnotatorKind
from mast_tui.taxonomy.loader import TaxonomyError, from_dict, to_dict
from mast_tui.traces.io.json_values import InvalidJSON, load_json
from mast_tui.traces.model import Outcome, TraceIdentity
from mast_tui.workspace import Event, Run, RunTrace, TraceRecord, Usage, Workspace
from mast_tui.workspace.events.chain import Foreign, examined
from mast_tui.workspace.events.codec import (
    QUOTES,
    SETTINGS,
    USAGE,
    quote_kinds_from,
)
from mast_tui.workspace.events.fields import Fields
from mast_tui.workspace.events.layout import Kind, Layout, Values, always, known
from mast_tui.workspace.events.model import event_from_dict, event_to_dict
from mast_tui.workspace.events.types import Decided, GuidelineSet
from mast_tui.workspace.merging import (
    add_span_indices,
    register_foreign,
    renamed,
    renamed_run,
)
from mast_tui.workspace.records import MergeReport, SpanIndex
from mast_tui.workspace.registers.hold_out import add_shares, shares_set_aside
from mast_tui.workspace.registers.tags import Tags, add_tags, all_tags, tag_values, tags_from
from mast_tui.workspace.registers.taxonomies import Revision

FORMAT: Final = "mast-tui-workspace"
VERSION: Final = 5
"""Version 1 knew less of judges, version 2 nothing of studies and guidelines, version 3 nothing of
chains, version 4 nothing of codebooks that change; programs of those times would drop it without a
word, or stumble."""


def workspace_lines(workspace: Workspace) -> Iterator[str]:
    """Yield the lines of the export, each with its line break."""
    yield _line("workspace", {"format": FORMAT, "version": VERSION})
    for revision in workspace.revisions():
        since = {"since": revision.since} if revision.since else {}
        yield _line("taxonomy", {"taxonomy": to_dict(revision.taxonomy), **since})
    indices = workspace.span_indices()
    for trace in workspace.traces():
        of_trace = _index_values(indices.get(trace.trace_id, {}))
        yield _line("trace", {**TRACE.write(trace), **_without_none(span_indices=of_trace or None)})
    for seed, share in shares_set_aside(workspace).items():
        yield _line("set_aside", {"share": share, "seed": seed})
    for annotator in workspace.annotators():
        yield _line("annotator", {"name": annotator.name, "kind": annotator.kind.value})
    for run in workspace.runs():
        yield _line("run", run_values(run))
    for taxonomy, author, tags in all_tags(workspace):
        values = {"taxonomy": taxonomy, "annotator": author, "given": tag_values(tags)}
        yield _line("tags", values)
    for event in workspace.events():
        yield _line("event", event_to_dict(event))


def _line(record: str, values: Mapping[str, Any]) -> str:
    return json.dumps({"record": record, **values}, ensure_ascii=False, allow_nan=False) + "\n"


@dataclass(slots=True)
class Content:
    """The contents of a file in the order of its lines; its events after ``examined``."""

    taxonomies: list[Revision] = field(default_factory=list)
    traces: list[TraceRecord] = field(default_factory=list)
    span_indices: dict[str, dict[str, SpanIndex]] = field(default_factory=dict)
    shares: dict[int, float] = field(default_factory=dict)
    annotators: list[tuple[str, AnnotatorKind]] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    tags: list[tuple[str, str, Tags]] = field(default_factory=list)
    foreign: Foreign = field(default_factory=Foreign)


def read_jsonl(path: Path) -> Content:
    """Read an export; raises ``ExchangeError`` with file and line for a bad one."""
    content = Content()
    events = list[Event]()
    lines = path.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            value = load_json(line)
            if not isinstance(value, dict):
                raise ValueError("a line is one JSON object")
            if value.get("record") == "event" and number > 1:
                event = event_from_dict(value)
                _check_author(event)
                events.append(event)
            else:
                _take(value, content, is_first=number == 1)
        except (InvalidJSON, TaxonomyError, ValueError) as error:
            raise ExchangeError(f"{path}: line {number}: {error}") from None
    if not any(line.strip() for line in lines):
        raise ExchangeError(f"{path}: empty; an export begins with a 'workspace' line")
    content.foreign = examined(events)
    return content


def _check_author(event: Event) -> None:
    """Refuse a decision or guideline that names somebody else as its author."""
    match event.fact:
        case Decided(after=Decision(decided_by=author)):
            pass
        case GuidelineSet(after=Guideline(written_by=author)):
            pass
        case _:
            return
    if author != event.annotator:
        raise ValueError(f"an event of {event.annotator!r} is written as by {author!r}")


def _check_version(fields: Fields) -> None:
    """Refuse a file of another format or of a newer version."""
    if fields.text("format") != FORMAT:
        raise ValueError(f"the format is {fields.text('format')!r}, not {FORMAT!r}")
    if fields.whole("version") > VERSION:
        raise ValueError("written by a newer version of mast-tui; update this one")


def _revision_from(fields: Fields, taxonomy: object) -> Revision:
    """Read a taxonomy and the time since which it is worded so."""
    if not isinstance(taxonomy, dict):
        raise ValueError("'taxonomy' is no object")
    return Revision(from_dict(taxonomy, "taxonomy"), fields.text_or_none("since") or "")


def _take(value: dict[str, Any], content: Content, *, is_first: bool) -> None:
    fields = Fields(value, "record")
    kind = fields.text("record")
    if is_first != (kind == "workspace"):
        raise ValueError("the first line, and no other, has the record 'workspace'")
    match kind:
        case "workspace":
            _check_version(fields)
        case "taxonomy":
            content.taxonomies.append(_revision_from(fields, value.get("taxonomy")))
        case "trace":
            trace = TRACE.read(fields)
            content.traces.append(trace)
            if indices := _indices_from(fields.children("span_indices")):
                content.span_indices[trace.trace_id] = indices
        case "set_aside":
            seed, share = share_from(fields)
            content.shares[seed] = share
        case "annotator":
            name = (fields.text("name"), fields.word("kind", AnnotatorKind))
            content.annotators.append(name)
        case "run":
            content.runs.append(run_from(fields))
        case "tags":
            names = fields.text("taxonomy"), fields.text("annotator")
            content.tags.append((*names, tags_from(value.get("given"))))
        case _:
            raise ValueError(f"unknown record {kind!r}; was it written by a newer version?")


def merge_content(
    content: Content, workspace: Workspace, *, replacing: Collection[str] = ()
) -> MergeReport:
    """Bring what a workspace lacks into it, in one transaction.

    The union of both by the ids of the events: merging twice changes nothing.

    Args:
        content: what a file holds.
        workspace: what takes it.
        replacing: The people and judges whose work may be replaced.

    Returns:
        The number of added events, and the changes by name.

    Raises:
        MergeRefused: It would replace work that is here.
        WorkspaceError: among others, a taxonomy's name stands for another one here.
    """
    with workspace.transaction():
        return workspace.merge_events(register_content(content, workspace), replacing=replacing)


def register_content(content: Content, workspace: Workspace) -> Foreign:
    """Bring all but the events into a workspace, the traces piece by piece.

    Args:
        content: what a file holds.
        workspace: what takes it.

    Returns:
        The events, with each trace under the name that it has here.
    """
    with workspace.transaction():
        workspace.add_revisions(content.taxonomies)
        workspace.add_annotators(content.annotators)
        add_shares(workspace, content.shares)
    names = register_traces(content.traces, lambda t: register_foreign(workspace, t), workspace)
    with workspace.transaction():
        add_span_indices(workspace, content.span_indices, content.traces, names)
        for run in content.runs:
            workspace.add_run(renamed_run(run, names))
        for taxonomy, author, tags in content.tags:
            add_tags(workspace, taxonomy, author, tags, names)
    return renamed(content.foreign, names)


def _index_values(indices: Mapping[str, SpanIndex]) -> list[Values]:
    """Return what is known of where spans stand, in the order of their keys."""
    return [
        {"key": key, "index": span_index.index, **_without_none(text_chars=span_index.text_chars)}
        for key, span_index in sorted(indices.items())
        if span_index.index is not None
    ]


def _indices_from(spans: Iterable[Fields]) -> dict[str, SpanIndex]:
    indices = {}
    for span in spans:
        index = span.whole("index")
        text_chars = span.whole_or_none("text_chars")
        if index < 0 or (text_chars is not None and text_chars < 0):
            raise ValueError(f"'span_indices': a number below 0 at {span.text('key')!r}")
        indices[span.text("key")] = SpanIndex(index, text_chars)
    return indices


def _file_from(fields: Fields, name: str) -> Path | None:
    file = fields.text_or_none(name)
    return None if file is None else Path(Path(file).name)


_NUMBER: Final = Kind(None, Fields.number_or_none)

_IDENTITY: Final = Layout(
    TraceIdentity,
    always("id:trace_id", "content_hash", "content_bytes", "reader", "key_scheme", "native"),
    kinds={
        "native": Kind(None, lambda fields, name: fields.flag(name, False)),
    },
)
TRACE: Final = Layout(
    TraceRecord,
    always("id:trace_id"),
    known("identity", "file:path", "number:record", "spans", "task", "system", "model"),
    known("benchmark", "outcome", "score", "version", "started"),
    kinds={
        "file": Kind(lambda path: path.name, _file_from),
        "outcome": Kind(
            lambda outcome: None if outcome is Outcome.UNKNOWN else outcome.value,
            lambda fields, name: fields.word(name, Outcome, Outcome.UNKNOWN),
        ),
        "score": _NUMBER,
        "started": _NUMBER,
    },
    parts=(_IDENTITY,),
)
"""A trace; of its path only the file's name, and a number as it is."""


def run_values(run: Run) -> Values:
    """Return a run of a judge as plain values."""
    return {
        "id": run.id,
        "judge": run.judge,
        "taxonomy": run.taxonomy,
        "started_at": run.started_at,
        **_without_none(
            finished_at=run.finished_at,
            note=run.note or None,
            ending=run.ending,
            settings=run.settings and SETTINGS.write(run.settings),
            form=run.settings and run.settings.form,
            usage=USAGE.write(run.usage) or None,
        ),
        "traces": [_run_trace_values(trace) for trace in run.traces],
    }


def _run_trace_values(trace: RunTrace) -> Values:
    return {
        "id": trace.trace_id,
        "findings": trace.findings,
        **_without_none(
            problem=trace.problem,
            quotes=trace.quotes.all or None,
            verified=trace.quotes.found or None,
            quote_kinds=QUOTES.write(trace.quotes) or None,
            windows=trace.windows or None,
            remarks=list(trace.remarks) or None,
        ),
    }


def run_from(fields: Fields) -> Run:
    """Return the run; raises ``ValueError`` where something is missing or cannot be."""
    settings = fields.child_or_none("settings")
    form = fields.text_or_none("form")
    usage = fields.child_or_none("usage")
    return Run(
        id=fields.text("id"),
        judge=fields.text("judge"),
        taxonomy=fields.text("taxonomy"),
        started_at=fields.text("started_at"),
        finished_at=fields.text_or_none("finished_at"),
        note=fields.text("note", ""),
        traces=tuple(map(_run_trace_from, fields.children("traces"))),
        settings=None if settings is None else SETTINGS.read(settings, {"form": form}),
        usage=Usage() if usage is None else USAGE.read(usage),
        ending=fields.text_or_none("ending"),
    )


def _run_trace_from(fields: Fields) -> RunTrace:
    return RunTrace(
        fields.text("id"),
        fields.whole("findings"),
        fields.text_or_none("problem"),
        quote_kinds_from(
            fields.child_or_none("quote_kinds"),
            quotes=fields.whole_or_none("quotes") or 0,
            found=fields.whole_or_none("verified") or 0,
        ),
        fields.whole_or_none("windows") or 0,
        fields.texts("remarks"),
    )


def share_from(fields: Fields) -> tuple[int, float]:
    """Return a share of traces that is set aside, with its seed; raises ``ValueError``."""
    share = fields.number_or_none("share")
    if share is None or not 0 < share < 1:
        raise ValueError(f"a share of traces lies between 0 and 1, not at {share}")
    return fields.whole("seed"), share


def _without_none(**values: object) -> Values:
    return {name: value for name, value in values.items() if value is not None}
