"""The files of each export format."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, Final, TypeVar

from msgspec import structs

from mast_tui.adjudication import SpanOrders, guidelines_document
from mast_tui.counts import counted
from mast_tui.errors import MastError
from mast_tui.exchange.csv_labels import write_csv_long, write_csv_wide
from mast_tui.exchange.exporters.codebook import codebook_text
from mast_tui.exchange.exporters.datasheet import (
    CITATION_FILE,
    CITATION_MARK,
    DATASHEET_FILE,
    MARKS,
    citation_file,
    datasheet,
    read_datasheet,
)
from mast_tui.exchange.exporters.gold_document import (
    GoldRules,
    GoldWithSides,
    events_hash,
    gold_document,
    with_set_facts,
)
from mast_tui.exchange.exporters.huggingface import CARD, dataset_files, tables_named_in
from mast_tui.exchange.exporters.scores import TOOLS, native_from_files, score_text, scores_of
from mast_tui.exchange.formats import (
    Counts,
    ExportRequest,
    FormatContent,
    Reporter,
)
from mast_tui.exchange.jsonl import json_document, json_line, workspace_lines
from mast_tui.exchange.label_studio import (
    CONFIG_MARK,
    META,
    label_config,
    label_name,
    label_studio_tasks,
    quote_range,
    span_indices,
)
from mast_tui.exchange.mast_data import mast_data_records
from mast_tui.exchange.selection import (
    WorkMasks,
    check_ordered,
    first_names,
    gold_entries,
    gold_work,
    pseudonymous,
    selected_work,
)
from mast_tui.exchange.trace_files import TextsOf, TextSpan, redacted_from_files, texts_from_files
from mast_tui.figures.agreement.report import Agreement, agreement_figures, agreement_json
from mast_tui.figures.judge.input import GoldReference, JudgeInput, judge_input_from_workspace
from mast_tui.figures.judge.report import JudgeReport, judge_json, judge_report
from mast_tui.figures.source.agreement import span_input_from_workspace, study_from_workspace
from mast_tui.figures.spans.report import span_figures
from mast_tui.labels import GOLD, AnnotatorKind, Target, TraceWork, VerdictValue, is_judge
from mast_tui.output_files import Outputs, is_stream
from mast_tui.redaction.masked_trace import Masks
from mast_tui.safe_text import one_line
from mast_tui.session import Viewer, hidden_traces_text, outside_work_text, visibility_json
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.traces.model import Outcome
from mast_tui.workspace import TraceRecord, Workspace
from mast_tui.workspace.outputs import marked

Values = dict[str, Any]


def doccano_lines(
    all_work: Iterable[TraceWork],
    taxonomy: Taxonomy,
    records: Mapping[str, TraceRecord],
    texts: TextsOf,
) -> tuple[list[str], list[str]]:
    """Return the lines of a Doccano file, and the ids of traces without a file.

    A line is the work of an annotator on a trace. Its ``label`` is a list of ``[start, end, name]``
    in code points of ``text``. Its ``cats`` are the labels of the whole trace. Doccano keeps the
    other fields, for a later import.

    Args:
        all_work: The work of annotators under the taxonomy.
        taxonomy: The taxonomy.
        records: The known facts of traces by id.
        texts: Returns the spans of a trace with their texts by its id; None without a file.
    """
    lines: list[str] = []
    missing: list[str] = []
    in_order = sorted(all_work, key=lambda work: (work.trace_id, work.annotator))
    for trace_id, trace_work in groupby(in_order, key=lambda work: work.trace_id):
        spans = texts(trace_id)
        if spans is None:
            missing.append(trace_id)
            continue
        record = records.get(trace_id, TraceRecord(trace_id))
        for work in trace_work:
            values = _line_values(work, taxonomy, spans, record)
            lines.append(json_line(values))
    return lines, missing


def _line_values(
    work: TraceWork, taxonomy: Taxonomy, spans: Sequence[TextSpan], record: TraceRecord
) -> Values:
    text, span_offsets = _whole_text(spans)
    ranges: set[tuple[int, int, str]] = set()
    merged_ranges: set[tuple[int, int, str]] = set()
    whole_trace_names: list[str] = []
    for label in work.labels.values():
        name = label_name(taxonomy.mode(label.mode))
        character_range = _character_range(label.target, spans, span_offsets)
        if character_range is None:
            whole_trace_names.append(name)
        else:
            named_range = (*character_range, name)
            ranges.add(named_range)
            if label.id in work.merged:
                merged_ranges.add(named_range)
    facts = {"system": record.system, "model": record.model, "benchmark": record.benchmark}
    return {
        "text": text,
        "label": list(map(list, sorted(ranges))),
        "cats": sorted(set(whole_trace_names)),
        "absent": _mode_names(work, taxonomy, VerdictValue.ABSENT),
        "unsure": _mode_names(work, taxonomy, VerdictValue.UNSURE),
        "trace_id": work.trace_id,
        "annotator": work.annotator,
        "taxonomy": taxonomy.ref,
        "finished": work.finished_at is not None,
        **({"merged": list(map(list, sorted(merged_ranges)))} if merged_ranges else {}),
        **{name: value for name, value in facts.items() if value is not None},
    }


def _whole_text(spans: Sequence[TextSpan]) -> tuple[str, list[tuple[int, int, int]]]:
    """Return the trace as one text, with the offsets of each span.

    The offsets are the start of the heading, the start of the text and its end.
    """
    pieces: list[str] = []
    span_offsets = []
    heading_start = 0
    for span in spans:
        heading = one_line(span.author) + "\n"
        text_start = heading_start + len(heading)
        text_end = text_start + len(span.text)
        span_offsets.append((heading_start, text_start, text_end))
        pieces += [heading, span.text, "\n\n"]
        heading_start = text_end + 2
    return "".join(pieces), span_offsets


def _character_range(
    target: Target, spans: Sequence[TextSpan], span_offsets: Sequence[tuple[int, int, int]]
) -> tuple[int, int] | None:
    """Return the start and end of a target in the text of the trace.

    ``span_offsets`` are those of ``_whole_text``. The result is None for the whole trace and for
    missing spans.
    """
    span_range = span_indices(target, spans)
    if span_range is None:
        return None
    first, last = span_range
    heading_start, text_start, _ = span_offsets[first]
    _, _, text_end = span_offsets[last]
    quoted = quote_range(target, spans[first].text)
    if quoted is not None:
        quote_start, quote_end = quoted
        return text_start + quote_start, text_start + quote_end
    if text_start == text_end:
        # Doccano accepts no empty range, so the heading stands for an empty text.
        heading_end = text_start - 1  # excludes the line feed
        return heading_start, heading_end
    return text_start, text_end


def _mode_names(work: TraceWork, taxonomy: Taxonomy, value: VerdictValue) -> list[str]:
    """Return the names of the modes with this verdict and without a label."""
    verdicts = work.verdicts_without_label(taxonomy)
    return [
        label_name(taxonomy.mode(slug)) for slug, verdict in verdicts.items() if verdict is value
    ]


_NAMES_SHOWN: Final = 10
_NAMES_REST: Final = "; mast-tui export --json names all"
_VERDICT_COUNTS: Final = {
    "rows": "verdicts of finished passes; csv-long also has places, notes and unfinished work",
    "records": "verdicts; csv-long also has places and notes",
}
"""The contents of formats of verdicts without labels, by the names of their counts."""

Read = TypeVar("Read")


def written_lines(output: str, counts: Mapping[str, Any]) -> list[str]:
    """Return lines on the written files and the number of their contents.

    Args:
        output: The file or folder.
        counts: The counts of the export by name. ``beside`` is a list of further files.
    """
    # A format of verdicts has no labels to count.
    holds_verdicts = bool(counts.keys() & _VERDICT_COUNTS)
    contents = [
        counted(number, name.removesuffix("s").replace("_", " "), name.replace("_", " "))
        for name, number in counts.items()
        if isinstance(number, int) and not (name == "labels" and holds_verdicts)
    ]
    other_lines = [f"{path}: also written" for path in counts.get("beside", ())]
    return [f"{output}: {', '.join(contents)}", *other_lines]


def left_out_lines(
    counts: Mapping[str, Any], file_format: str, *, hidden_traces: bool = True
) -> list[str]:
    """Return lines on the contents that an export lacks, with reason and remedy.

    Args:
        counts: The counts of the export.
        file_format: The name of the export's format.
        hidden_traces: Mention traces that are hidden from the viewer.
    """
    lines = []
    visibility = counts.get("sight")
    if hidden_traces and visibility is not None and visibility["left_out"]:
        lines.append(hidden_traces_text(visibility["annotator"], visibility["left_out"]))
    missing = counts.get("without_text", 0)
    if missing:
        lines.append(
            f"{counted(missing, 'trace is', 'traces are')} not available, so the text is "
            "missing; open the folder in the app or with 'mast-tui judge' once, then export "
            "again"
        )
    lines += [
        f"{file_format} has only {contents}"
        for name, contents in _VERDICT_COUNTS.items()
        if name in counts
    ]
    return lines + _lines_on_missing_ids(counts.get("without_id", {}), file_format)


def _lines_on_missing_ids(left_out: Mapping[str, Any], file_format: str) -> list[str]:
    """Return lines on the traces and spans without an id in the target tool."""
    lines = []
    traces = left_out.get("traces", ())
    if traces:
        names = first_names(traces, _NAMES_SHOWN, _NAMES_REST)
        lines.append(
            f"{counted(len(traces), 'trace')} left out, as the id in {file_format} is unknown "
            f"(another tool recorded the trace, or its file is not available): {names}"
        )
    spans = [f"{span['key']} in {span['trace_id']}" for span in left_out.get("spans", ())]
    if spans:
        lines.append(
            f"{counted(len(spans), 'labelled span')} left out, as the id in {file_format} is "
            f"unknown: {first_names(spans, _NAMES_SHOWN, _NAMES_REST)}"
        )
    return lines


def check_path(outputs: Outputs, output: Path, is_folder: bool) -> None:
    """Check that an export can be written to its file or folder.

    Args:
        outputs: The files to write.
        output: The file or folder.
        is_folder: True if the export is a folder.

    Raises:
        OutputError: An existing file must not be replaced, or the location is not writable.
        MastError: The parent folder is missing.
    """
    if not is_folder:
        outputs.check(output)
        return
    if not output.parent.is_dir():
        raise MastError(f"{output.parent}: no such folder; create it first")
    outputs.add_folder(output)


def add_workspace(workspace: Workspace, outputs: Outputs, output: Path, say: Reporter) -> Counts:
    """Add the file of a whole workspace (``jsonl``).

    It includes work that is hidden from viewers.

    Args:
        workspace: The workspace.
        outputs: The files to write.
        output: The file.
        say: Receives the warnings about edited histories and damaged events.

    Returns:
        The number of traces and lines.
    """
    lines = list(workspace_lines(workspace))
    outputs.add(output, "".join(lines))
    for event in workspace.edited_histories():
        say(
            f"{event.annotator}'s events were edited outside of mast-tui, at or before step "
            f"{event.seq}; importing this file requires --replace"
        )
    for row in workspace.damaged_events():
        say(f"an event cannot be read and was left out: {row.name}: {row.problem}")
    return {"traces": len(workspace.traces()), "lines": len(lines)}


def add_gold(request: ExportRequest, outputs: Outputs) -> Counts:
    """Add a gold document with its datasheet and citation file.

    Args:
        request: The export.
        outputs: The files to write.

    Returns:
        The counts of the export.
    """

    def add_files(document: Mapping[str, Any], sheet: str) -> list[str]:
        """Add the files, and return the paths of those beside the document."""
        paths = _add_companion(request, outputs, request.format.companion, sheet, *MARKS)
        citation = citation_file(document)
        if citation is not None:
            paths += _add_companion(request, outputs, CITATION_FILE, citation, CITATION_MARK)
        outputs.add(request.output, json_document(document))
        return paths

    return _add_gold_document(request, add_files)


def add_dataset(request: ExportRequest, outputs: Outputs) -> Counts:
    """Add the folder of a gold data set for the Hugging Face Hub.

    Args:
        request: The export.
        outputs: The files to write.

    Returns:
        The counts of the export.
    """
    return _add_gold_document(
        request, lambda document, sheet: _add_tables(request, document, sheet, outputs)
    )


def _add_gold_document(
    request: ExportRequest, add_files: Callable[[Mapping[str, Any], str], list[str]]
) -> Counts:
    """Build the gold document and its datasheet, add them, and return the counts.

    ``add_files`` gets the document and the datasheet, and returns the paths of further files. The
    viewer's history records the exported traces as seen.

    Raises:
        MastError: There is no gold, or the viewer may see none of it.
    """
    request.stage("Reading the gold")
    entries = _requested_gold(request)
    _check_ordered(request, entries)
    visible_entries, visibility = _reveal_gold(request, entries)
    request.stage("Counting agreement")
    agreement = _agreement_of_sides(request)
    request.stage("Comparing judges with the gold")
    judges = _judge_reports(request, entries)  # leaves out hidden traces itself
    request.stage("Putting the gold together")
    document = gold_document(
        request.workspace,
        request.taxonomy,
        agreement_json(agreement),
        visible_entries,
        judges={name: judge_json(report) for name, report in judges.items()},
        rules=GoldRules(request.majority, request.gold == "settled"),
        traces=request.viewer.traces,
    )
    document |= visibility
    if request.pseudonyms is not None:
        letters = request.pseudonyms.letters
        in_document = request.pseudonyms.in_document
        document = in_document(document)
        agreement = agreement.renamed(letters, in_document)
        judges = {name: report.renamed(letters, in_document) for name, report in judges.items()}
    if request.masks is not None:
        document = _work_masks(request, request.masks).masked_document(document)
    events = events_hash(request.workspace, request.taxonomy.ref)
    document = with_set_facts(document, _datasheet_values(request), events)
    return {
        "taxonomy": request.taxonomy.ref,
        **_gold_counts(document),
        "beside": add_files(document, datasheet(document, agreement, judges)),
        **visibility,
    }


def _requested_gold(request: ExportRequest) -> list[GoldWithSides]:
    """Return the gold by the annotators and rules of the request."""
    request.workspace.check_annotators(*(request.annotators or ()))
    return gold_entries(
        request.workspace,
        request.taxonomy,
        annotators=request.annotators,
        majority=request.majority,
        settled_only=request.gold == "settled",
    )


def _reveal_gold(
    request: ExportRequest, entries: Sequence[GoldWithSides]
) -> tuple[list[GoldWithSides], Counts]:
    """Return the gold of the visible traces, and the JSON values on hidden traces.

    Hidden outcomes are left out. The viewer's history records the traces as seen.

    Raises:
        MastError: There is no gold, or the viewer may see none of it.
    """
    viewer = request.viewer
    trace_ids = {entry.trace.trace_id for entry in entries}
    visible = set(filter(viewer.may_see_others, trace_ids))
    if not visible:
        raise MastError(_no_gold_text(request, len(trace_ids)))
    visibility = visibility_json(viewer, trace_ids - visible)
    viewer.reveal(visible, judges=True)
    may_see_outcome = viewer.may_see_outcomes()
    visible_entries = [
        replace(entry, trace=without_hidden_outcome(entry.trace, may_see_outcome))
        for entry in entries
        if entry.trace.trace_id in visible
    ]
    return visible_entries, visibility


def _work_masks(request: ExportRequest, masks: Masks) -> WorkMasks:
    return WorkMasks(
        masks,
        redacted_from_files(request.workspace, masks),
        in_masked_texts=request.format.holds_texts,
    )


def _gold_counts(document: Mapping[str, Any]) -> Counts:
    traces = document["traces"]
    # A mode in a trace has at most one conflict of each kind, which can have several entries.
    conflicts = {
        (trace["trace_id"], conflict["slug"], conflict["kind"])
        for trace in traces
        for conflict in trace["unresolved"]
    }
    return {
        "traces": len(traces),
        "labels": sum(len(trace["labels"]) for trace in traces),
        "unresolved": len(conflicts),
    }


def _no_gold_text(request: ExportRequest, hidden_count: int) -> str:
    """Return the message why there is no gold to export, with the remedy.

    ``hidden_count`` is the number of traces with gold that the viewer may not see.
    """
    if hidden_count and request.viewer.name is not None:
        return f"no gold to export: {hidden_traces_text(request.viewer.name, hidden_count)}"
    if request.annotators:
        names = " and ".join(request.annotators)
        return (
            f"there is no gold by {names}; leave out --annotators, or finish traces under "
            "these names"
        )
    if request.gold == "settled":
        return (
            "there is no settled gold yet: no verdict of two annotators agrees, and no adjudicator "
            "has decided one; --gold all exports the verdicts of one annotator too"
        )
    outside_text = outside_work_text(
        request.workspace, request.workspace.study(request.taxonomy.ref)
    )
    if outside_text:
        return f"there is no gold yet: no one in the study has finished a trace. {outside_text}"
    return (
        "there is no gold yet: no one has finished a trace; finish one in the app "
        "(D on an open trace), then export again"
    )


def _check_ordered(request: ExportRequest, entries: Sequence[GoldWithSides]) -> None:
    """Check that the order of labelled spans is known, unless the request allows otherwise."""
    if not request.allow_unordered:
        may_see = request.viewer.may_see_others
        check_ordered(entry for entry in entries if may_see(entry.trace.trace_id))


def _datasheet_values(request: ExportRequest) -> dict[str, Any] | None:
    """Return the values of the datasheet: the requested file, or the one beside the workspace.

    Without a requested file, the result is None if the workspace has none.
    """
    if request.datasheet is not None:
        return read_datasheet(request.datasheet)
    if request.workspace.path is None:
        return None
    usual_path = request.workspace.path.with_name(DATASHEET_FILE)
    return read_datasheet(usual_path) if usual_path.exists() else None


def _agreement_of_sides(request: ExportRequest) -> Agreement:
    """Return the agreement of the gold's annotators on verdicts and spans."""
    study = study_from_workspace(
        request.workspace,
        request.taxonomy,
        annotators=request.annotators,
        which=request.counted_pass,
        traces=request.viewer.traces,
    )
    orders = SpanOrders(request.workspace)
    spans = span_input_from_workspace(
        request.workspace,
        request.taxonomy,
        study.annotators,
        order_of=orders.spans_of,
        length_of=orders.length_of,
        which=request.counted_pass,
        traces=request.viewer.traces,
    )
    return replace(agreement_figures(study), spans=span_figures(spans))


def _judge_reports(
    request: ExportRequest, entries: Sequence[GoldWithSides]
) -> dict[str, JudgeReport]:
    """Return the comparison of each judge with the gold, by name.

    Judges that are a source of the gold are left out. ``entries`` must include hidden traces.
    """
    gold_annotators = {side.annotator for entry in entries for side in entry.sides}
    gold = {entry.trace.trace_id: entry.gold for entry in entries}
    judgements = request.workspace.judgements(taxonomy=request.taxonomy.ref)
    orders = SpanOrders(request.workspace)
    may_see = request.viewer.may_see_judges()

    def input_of(name: str) -> JudgeInput:
        """Return the verdicts of a judge on the traces that the viewer may see."""
        judge_input = judge_input_from_workspace(
            request.workspace,
            request.taxonomy,
            name,
            GoldReference(gold, settled_only=request.gold == "settled"),
            order_of=orders,
            traces=request.viewer.traces,
        )
        unlabelled = frozenset(filter(may_see, judge_input.unlabelled))
        return replace(judge_input, unlabelled=unlabelled)

    names = {judgement.judge for judgement in judgements} - gold_annotators
    return {name: judge_report(input_of(name)) for name in sorted(names)} if gold else {}


def _add_companion(
    request: ExportRequest, outputs: Outputs, suffix: str, text: str, *marks: str
) -> list[str]:
    """Add a file beside the output, and return a list with its path.

    An existing file is replaced only if it contains ``marks``. A pipe has no files beside it.
    """
    output = request.output
    path = request.format.companion_path(output, suffix)
    if is_stream(output):
        request.say(f"{output}: is not a file, so nothing is written beside it ({suffix})")
        return []
    outputs.add(path, text, ours=marked(*marks))
    return [str(path)]


def _add_tables(
    request: ExportRequest, document: Mapping[str, Any], sheet: str, outputs: Outputs
) -> list[str]:
    """Add the files of a data set, and return their paths."""
    output = request.output
    outputs.add_folder(output / "data")
    card = output / CARD
    outputs.check(card, ours=_is_card)
    earlier_tables: Collection[str] = ()
    if card.is_file():
        earlier_tables = tables_named_in(card.read_text("utf-8", "replace")) or ()

    def may_replace(name: str) -> Callable[[bytes], bool]:
        """Return a check of the content of an existing file: may it be replaced?"""
        return _is_card if name == CARD else lambda _: name in earlier_tables

    files = dataset_files(document, sheet)
    citation = citation_file(document)
    if citation is not None:
        outputs.add(output / CITATION_FILE, citation, ours=marked(CITATION_MARK))
    # The card is the last file. Until it is replaced, the earlier card lists the earlier tables.
    for name, text in files.items():
        outputs.add(output / name, text, ours=may_replace(name))
    # An earlier table may have labels that must not be published with this set.
    for name in earlier_tables:
        if name not in files:
            outputs.remove(output / name)
    written = [*files, *([] if citation is None else [CITATION_FILE])]
    return [str(output / name) for name in written]


def _is_card(head: bytes) -> bool:
    return tables_named_in(head.decode("utf-8", "replace")) is not None


def add_codebook(request: ExportRequest, outputs: Outputs) -> Counts:
    """Add the codebook: LaTeX for the suffix ``.tex``, else Markdown.

    The viewer's history records its decided cases as seen.

    Args:
        request: The export.
        outputs: The files to write.

    Returns:
        The counts of the export.
    """
    viewer = request.viewer
    request.stage("Reading the guidelines")
    pages = guidelines_document(request.workspace, request.taxonomy, traces=viewer.traces)
    cases = [case for page in pages.values() for case in page["cases"]]
    viewer.reveal({case["trace"] for case in cases})
    if request.pseudonyms is not None:
        pages = request.pseudonyms.in_document(pages)
    taxonomy = request.taxonomy
    if request.masks is not None:
        work_masks = _work_masks(request, request.masks)
        pages = work_masks.masked_document(pages)
        taxonomy = work_masks.masked_taxonomy(taxonomy)
    is_latex = request.output.suffix.lower() == ".tex"
    outputs.add(request.output, codebook_text(taxonomy, pages, latex=is_latex))
    all_pages = guidelines_document(request.workspace, request.taxonomy)
    decided_traces = {case["trace"] for page in all_pages.values() for case in page["cases"]}
    hidden_traces = decided_traces - {case["trace"] for case in cases}
    return {
        "taxonomy": request.taxonomy.ref,
        "modes": len(request.taxonomy.modes),
        "guidelines": sum(len(page["guidelines"]) for page in pages.values()),
        "cases": len(cases),
        **visibility_json(viewer, hidden_traces),
    }


@dataclass(frozen=True, slots=True)
class LabelsToWrite:
    """The labels and verdicts to export, with the data that their formats need.

    ``records`` are the facts of traces by id. ``kinds`` are the kinds of annotators by name.
    """

    request: ExportRequest
    outputs: Outputs
    work: Sequence[TraceWork]
    records: Mapping[str, TraceRecord]
    kinds: Mapping[str, AnnotatorKind]

    def with_progress(self, read: Callable[[str], Read]) -> Callable[[str], Read]:
        """Return a function that reads a trace by its id and reports the progress."""
        total = len({work.trace_id for work in self.work})
        requested: set[str] = set()

        def read_and_report(trace_id: str) -> Read:
            requested.add(trace_id)
            self.request.stage(f"Reading trace {len(requested):,} of {total:,}")
            return read(trace_id)

        return read_and_report


LabelText = tuple[str, Counts]
"""The text of an export, and the counts of its format."""


def labels_writer(
    text_of: Callable[[LabelsToWrite], LabelText],
) -> Callable[[ExportRequest, Outputs], Counts]:
    """Return the exporter of a format.

    ``text_of`` makes the text from the labels.
    """
    return partial(_add_labels, text_of)


def _add_labels(
    text_of: Callable[[LabelsToWrite], LabelText], request: ExportRequest, outputs: Outputs
) -> Counts:
    """Add the file with the text of ``text_of``, and return the counts."""
    request.stage("Reading the labels")
    all_work = _requested_work(request)
    exported_work, hidden = reveal_work(request.viewer, all_work)
    counts: Counts = {
        "taxonomy": request.taxonomy.ref,
        "traces": len({work.trace_id for work in exported_work}),
        "labels": sum(len(work.labels) for work in exported_work),
        **visibility_json(request.viewer, hidden),
    }
    may_see_outcome = request.viewer.may_see_outcomes()
    records = {
        record.trace_id: without_hidden_outcome(record, may_see_outcome)
        for record in request.workspace.traces()
    }
    kinds = {info.name: info.kind for info in request.workspace.annotators()}
    if request.pseudonyms is not None:
        kinds = {request.pseudonyms.name(name): kind for name, kind in kinds.items()}
        exported_work = pseudonymous(exported_work, request.pseudonyms)
    if request.masks is not None:
        work_masks = _work_masks(request, request.masks)
        records = {name: work_masks.masked_record(record) for name, record in records.items()}
        exported_work = work_masks.masked_work(exported_work)
    to_write = LabelsToWrite(request, outputs, exported_work, records, kinds)
    text, format_counts = text_of(to_write)
    outputs.add(request.output, text)
    return counts | format_counts


def _requested_work(request: ExportRequest) -> Sequence[TraceWork]:
    """Return the work that the request selects."""
    labels = request.labels or GOLD
    if labels != GOLD:
        return selected_work(
            request.workspace,
            request.taxonomy,
            labels,
            which=request.counted_pass,
            finished_only=request.format.first_passes,
        )
    entries = _requested_gold(request)
    # Verdicts are not on spans, so no order is needed.
    if request.format.content is not FormatContent.VERDICTS:
        _check_ordered(request, entries)
    return gold_work(entries, request.taxonomy)


def csv_long_text(labels: LabelsToWrite) -> LabelText:
    """Return the table ``csv-long``."""
    return write_csv_long(labels.work, labels.request.taxonomy), {}


def csv_wide_text(labels: LabelsToWrite) -> LabelText:
    """Return the table ``csv-wide``."""
    text = write_csv_wide(labels.work, labels.records, labels.request.taxonomy)
    return text, {"labels": 0, "rows": len(labels.work)}


def mast_data_text(labels: LabelsToWrite) -> LabelText:
    """Return the records of ``mast-data``."""
    records = mast_data_records(labels.work, labels.records, labels.request.taxonomy)
    return json_document(records), {"labels": 0, "records": len(records)}


def label_studio_text(labels: LabelsToWrite) -> LabelText:
    """Return the Label Studio tasks, and add the labelling configuration as a file."""
    request = labels.request
    texts = labels.with_progress(texts_from_files(request.workspace, request.masks))
    tasks = label_studio_tasks(labels.work, request.taxonomy, labels.records, labels.kinds, texts)
    config = label_config(request.taxonomy)
    return json_document(tasks), {
        "without_text": sum(not task["meta"][META]["texts"] for task in tasks),
        "beside": _add_companion(
            request, labels.outputs, request.format.companion, config, CONFIG_MARK
        ),
    }


def doccano_text(labels: LabelsToWrite) -> LabelText:
    """Return the lines of ``doccano``."""
    request = labels.request
    texts = labels.with_progress(texts_from_files(request.workspace, request.masks))
    lines, missing = doccano_lines(labels.work, request.taxonomy, labels.records, texts)
    return "".join(lines), {"without_text": len(missing)}


def tool_scores_text(labels: LabelsToWrite) -> LabelText:
    """Return the labels as scores for a tool such as Langfuse."""
    request = labels.request
    tool = request.format.name
    # Scores refer to traces and spans by the ids of the tool.
    native_ids_of = labels.with_progress(native_from_files(request.workspace))
    scores, left_out = scores_of(
        labels.work, request.taxonomy, native_ids_of, labels.kinds, TOOLS[tool]
    )
    return score_text(scores, tool), {
        "scores": len(scores),
        "without_id": {
            "traces": list(left_out.traces),
            "spans": [{"trace_id": trace, "key": key} for trace, key in left_out.spans],
        },
    }


def reveal_work(viewer: Viewer, all_work: Sequence[TraceWork]) -> tuple[list[TraceWork], set[str]]:
    """Return the work that the viewer may see, and record the work of others as seen.

    Args:
        viewer: The user of the export.
        all_work: The work of annotators and judges.

    Returns:
        The visible work, and the ids of the traces with hidden work. A pass without content that
        is not finished does not count as hidden.
    """
    others_work = [
        work
        for work in all_work
        if work.annotator != viewer.name
        and not is_judge(work.annotator)
        and viewer.may_see_others(work.trace_id)
    ]
    viewer.reveal(work.trace_id for work in others_work)
    # This check follows the record, since the record can make suggestions visible.
    may_see_judges = viewer.may_see_judges()

    def is_visible(work: TraceWork) -> bool:
        if work.annotator == viewer.name:
            return True
        if is_judge(work.annotator):
            return may_see_judges(work.trace_id)
        return viewer.may_see_others(work.trace_id)

    hidden = {
        work.trace_id
        for work in all_work
        if not is_visible(work)
        and (work.labels or work.verdicts or work.notes or work.finished_at is not None)
    }
    return [work for work in all_work if is_visible(work)], hidden


def without_hidden_outcome(
    record: TraceRecord, may_see_outcome: Callable[[str], bool]
) -> TraceRecord:
    """Return the record of a trace, without its outcome if that is hidden.

    Args:
        record: The facts of the trace.
        may_see_outcome: Checks whether the outcome of a trace may be seen, by its id.
    """
    if may_see_outcome(record.trace_id):
        return record
    return structs.replace(record, outcome=Outcome.UNKNOWN, score=None)
