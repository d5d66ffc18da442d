"""The merge of two workspaces: the union of their events."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from msgspec import structs

from mast_tui.gold.model import Guideline
from mast_tui.study.model import Study
from mast_tui.workspace.events.chain import ForeignEvents, with_checked_chains
from mast_tui.workspace.events.model import Event, event_on_trace
from mast_tui.workspace.events.types import (
    Fact,
    GuidelineSet,
    StudySet,
)
from mast_tui.workspace.records import MergeReport, Run, SpanIndex, TraceRecord
from mast_tui.workspace.registers.hold_out import add_shares, shares_set_aside
from mast_tui.workspace.registers.tags import add_tags, all_tags
from mast_tui.workspace.store import Workspace


def merge(into: Workspace, other: Workspace, *, replacing: Collection[str] = ()) -> MergeReport:
    """Add everything from another workspace to this one, in one transaction.

    A trace with the id of another trace here gets the id ``id~2``, and so do its labels. Answers of
    models in runs of judges are not added.

    Args:
        into: This workspace.
        other: The other workspace.
        replacing: The people whose earlier work may be changed.

    Returns:
        The numbers of added events, and the changes to each annotator's work.

    Raises:
        MergeRefused: The merge would change the work of people who are not in ``replacing``.
        WorkspaceError: A taxonomy of the same name has other modes.
    """
    foreign = with_checked_chains(other.events())
    with into.transaction():
        into.add_revisions(other.revisions())
        into.add_annotators([(annotator.name, annotator.kind) for annotator in other.annotators()])
        traces = other.traces()
        local_ids = {record.trace_id: register_foreign(into, record) for record in traces}
        add_span_indices(into, other.span_indices(), traces, local_ids)
        for run in other.runs():
            into.add_run(run_with_local_ids(run, local_ids))
        add_shares(into, shares_set_aside(other))
        for taxonomy, author, tags in all_tags(other):
            add_tags(into, taxonomy, author, tags, local_ids)
        return into.merge_events(with_local_ids(foreign, local_ids), replacing=replacing)


def register_foreign(into: Workspace, record: TraceRecord) -> str:
    """Register a trace of another workspace, and return its id in this workspace.

    If the trace is known here, the stored path of its file stays.

    Args:
        into: This workspace.
        record: The trace in the other workspace.
    """
    if record.identity is not None:  # the other workspace may have stored it as ``id~2``
        record = structs.replace(record, trace_id=record.identity.trace_id)
    if into.find_trace(record) is not None:
        # Without the path and the position in the file, neither is updated.
        record = structs.replace(record, path=None, record=None)
    return into.register_trace(record)


def add_span_indices(
    into: Workspace,
    indices: Mapping[str, Mapping[str, SpanIndex]],
    traces: Iterable[TraceRecord],
    local_ids: Mapping[str, str],
) -> None:
    """Store the span indices of another workspace for spans without a known index here.

    Traces with other span keys are left out, since indices of different keys cannot be compared.

    Args:
        into: This workspace.
        indices: The indices by trace and span key, with the ids of the other workspace.
        traces: The traces of the other workspace.
        local_ids: The ids in this workspace by the other workspace's ids.
    """
    own_indices = into.span_indices()
    own_traces = {record.trace_id: record for record in into.traces()} if indices else {}
    missing_by_trace: dict[str, dict[str, SpanIndex]] = {}
    for record in traces:
        trace_id = local_ids[record.trace_id]
        own_trace = own_traces.get(trace_id)
        if own_trace is None or _have_other_keys(own_trace, record):
            continue
        known_indices = own_indices.get(trace_id, {})
        missing = {
            key: index
            for key, index in indices.get(record.trace_id, {}).items()
            if index.index is not None and known_indices.get(key, SpanIndex(None)).index is None
        }
        if missing:
            missing_by_trace[trace_id] = missing
    into.keep_span_indices(missing_by_trace)


def _have_other_keys(a: TraceRecord, b: TraceRecord) -> bool:
    """Return whether two readings of a trace have made its span keys in different ways.

    A record without an identity counts as equal.
    """
    if a.identity is None or b.identity is None:
        return False
    return (a.identity.reader, a.identity.key_scheme) != (b.identity.reader, b.identity.key_scheme)


def run_with_local_ids(run: Run, local_ids: Mapping[str, str]) -> Run:
    """Return a run with this workspace's trace ids.

    Args:
        run: The run of another workspace.
        local_ids: The ids in this workspace by the other workspace's ids.
    """
    traces = [
        structs.replace(trace, trace_id=local_ids.get(trace.trace_id, trace.trace_id))
        for trace in run.traces
    ]
    settings = run.settings
    if settings is not None:
        examples, chosen = (
            tuple(local_ids.get(trace_id, trace_id) for trace_id in trace_ids)
            for trace_ids in (settings.examples, settings.chosen)
        )
        settings = structs.replace(settings, examples=examples, chosen=chosen)
    return structs.replace(run, traces=tuple(traces), settings=settings)


def with_local_ids(foreign: ForeignEvents, local_ids: Mapping[str, str]) -> ForeignEvents:
    """Return events with this workspace's trace ids and unchanged chains.

    Args:
        foreign: The events of another workspace.
        local_ids: The ids in this workspace by the other workspace's ids.
    """
    if all(foreign_id == local_id for foreign_id, local_id in local_ids.items()):
        return foreign
    return structs.replace(
        foreign, events=[_renamed_event(event, local_ids) for event in foreign.events]
    )


def _renamed_event(event: Event, local_ids: Mapping[str, str]) -> Event:
    """Return an event with this workspace's trace ids."""
    if event.trace_id is None:
        return structs.replace(event, fact=_fact_with_local_ids(event.fact, local_ids))
    local_id = local_ids.get(event.trace_id, event.trace_id)
    if local_id == event.trace_id:
        return event
    return event_on_trace(event, local_id)


def _fact_with_local_ids(fact: Fact, local_ids: Mapping[str, str]) -> Fact:
    """Return a fact with this workspace's trace ids."""
    match fact:
        case StudySet(before, after):
            return StudySet(_renamed_study(before, local_ids), _renamed_study(after, local_ids))
        case GuidelineSet(name, old, new):
            return GuidelineSet(
                name,
                _renamed_guideline(old, local_ids),
                _renamed_guideline(new, local_ids),
            )
        case _:
            return fact


def _renamed_study(study: Study | None, local_ids: Mapping[str, str]) -> Study | None:
    """Return a study with this workspace's trace ids."""
    if study is None:
        return None

    def renamed_ids(trace_ids: Iterable[str]) -> tuple[str, ...]:
        return tuple(local_ids.get(trace_id, trace_id) for trace_id in trace_ids)

    return structs.replace(
        study,
        batches=tuple(map(renamed_ids, study.batches)),
        releases=tuple(
            structs.replace(release, traces=renamed_ids(release.traces))
            for release in study.releases
        ),
        assignments=tuple(
            structs.replace(
                assignment, trace_id=local_ids.get(assignment.trace_id, assignment.trace_id)
            )
            for assignment in study.assignments
        ),
    )


def _renamed_guideline(
    guideline: Guideline | None, local_ids: Mapping[str, str]
) -> Guideline | None:
    """Return a guideline with this workspace's trace id."""
    if guideline is None or guideline.trace_id is None:
        return guideline
    return structs.replace(
        guideline, trace_id=local_ids.get(guideline.trace_id, guideline.trace_id)
    )
