"""The files of each export format."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mast_tui.adjudication import guidelines_document, orders_from_files
from mast_tui.adjudication.trace_files import SpanPlaces, traces_from_files
from mast_tui.cli.shared.asking import sight_values
from mast_tui.cli.shared.common import say
from mast_tui.cli.shared.outputs import marked
from mast_tui.exchange.csv_long import write_csv_long
from mast_tui.exchange.csv_wide import WideRow, write_csv_wide
from mast_tui.exchange.exporters import inspect_scores, langfuse, langsmith, phoenix
from mast_tui.exchange.exporters.codebook import codebook_latex, codebook_markdown
from mast_tui.exchange.exporters.datasheet import MARKS, datasheet
from mast_tui.exchange.exporters.datasheet_file import NAME, read_datasheet
from mast_tui.exchange.exporters.doccano import doccano_lines
from mast_tui.exchange.exporters.huggingface import CARD, dataset_files, tables_named_in
from mast_tui.exchange.exporters.label_studio_export import (
    CONFIG_MARK,
    META,
    label_config,
    label_studio_tasks,
)
from mast_tui.exchange.exporters.native_ids import native_from_files
from mast_tui.exchange.exporters.scores import scores_of
from mast_tui.exchange.exporters.trace_texts import texts_from_files
from mast_tui.exchange.formats import SCORE_FORMATS
from mast_tui.exchange.mast_data import mast_data_record, mast_data_records
from mast_tui.exchange.selection import gold_entries, gold_export, pseudonymous, selected_work
from mast_tui.figures.agreement.report import agreement_report
from mast_tui.figures.judge.input import judge_input_from_workspace
from mast_tui.figures.judge.report import judge_report
from mast_tui.figures.source.agreement import study_from_workspace
from mast_tui.figures.source.spans import span_input_from_workspace
from mast_tui.figures.spans.report import span_report
from mast_tui.labels import AnnotatorKind, annotator_kind
from mast_tui.output_files import Outputs, is_stream
from mast_tui.traces.model import Outcome
from mast_tui.workspace import TraceRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mast_tui.exchange.csv_long import LongWork
    from mast_tui.exchange.exporters.gold_document import GoldEntry
    from mast_tui.figures.judge.input import JudgeInput
    from mast_tui.gold import GoldKind
    from mast_tui.labels import AnnotatorKind
    from mast_tui.passes import Which
    from mast_tui.session import Viewer
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.workspace import TraceRecord, Workspace
    from mast_tui.workspace.registers.pseudonyms import Pseudonyms

Counts = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be exported under one taxonomy: whose labels, of which pass, and who asks."""

    workspace: Workspace
    taxonomy: Taxonomy
    labels: str
    which: Which
    majority: bool
    viewer: Viewer
    gold: GoldKind = "all"
    datasheet: Path | None = None
    pseudonyms: Pseudonyms | None = None


def add_gold(
    request: Request,
    file_format: str,
    outputs: Outputs,
    output: Path,
    annotators: list[str] | None,
) -> Counts:
    """Add ``gold`` with its datasheet beside it, or the folder of ``huggingface``."""
    viewer = request.viewer
    everything = gold_entries(
        request.workspace,
        request.taxonomy,
        annotators=annotators,
        majority=request.majority,
        settled_only=request.gold == "settled",
    )
    seen = {one.trace.trace_id for one in everything if viewer.may_see_others(one.trace.trace_id)}
    left_out = {one.trace.trace_id for one in everything} - seen
    sight = sight_values(viewer, left_out)
    viewer.reveal(seen, judges=True)
    shown = viewer.may_see_outcomes()
    entries = [
        replace(one, trace=_veiled(one.trace, shown))
        for one in everything
        if one.trace.trace_id in seen
    ]
    document = gold_export(
        request.workspace,
        request.taxonomy,
        _agreement(request, annotators),
        judges=_judges(request, everything),
        entries=entries,
        majority=request.majority,
        settled_only=request.gold == "settled",
        traces=viewer.traces,
    )
    document |= sight
    if request.pseudonyms is not None:
        document = request.pseudonyms.in_document(document)
    document["datasheet"] = _datasheet_file(request)
    add = _add_gold_document if file_format == "gold" else _add_dataset
    beside = add(document, outputs, output)
    traces = document["traces"]
    return {
        "taxonomy": request.taxonomy.ref,
        "traces": len(traces),
        "labels": sum(len(trace["labels"]) for trace in traces),
        "unresolved": sum(len(trace["unresolved"]) for trace in traces),
        "beside": beside,
        **sight,
    }


def _datasheet_file(request: Request) -> dict[str, Any] | None:
    """What people wrote of the set: in the file that was named, else in the workspace's folder."""
    path = request.datasheet
    if path is None and request.workspace.path is not None:
        path = request.workspace.path.with_name(NAME)
        if not path.exists():
            return None
    return None if path is None else read_datasheet(path)


def _agreement(request: Request, annotators: list[str] | None) -> dict[str, Any]:
    """The report of ``agree --json`` on the sides, places included."""
    study = study_from_workspace(
        request.workspace,
        request.taxonomy,
        annotators=annotators,
        which=request.which,
        traces=request.viewer.traces,
    )
    places = SpanPlaces(traces_from_files(request.workspace))
    marked = span_input_from_workspace(
        request.workspace,
        request.taxonomy,
        study.annotators,
        order_of=places.order_of,
        length_of=places.length_of,
        which=request.which,
        traces=request.viewer.traces,
    )
    return {**agreement_report(study), "spans": span_report(marked)}


def _judges(request: Request, entries: Sequence[GoldEntry]) -> dict[str, Mapping[str, Any]]:
    """How each judge that is no side of the gold fares against it, where that may be seen.

    The entries are all: of traces that are hidden it is no secret that somebody has spoken.
    """
    sides = {side.annotator for entry in entries for side in entry.sides}
    gold = {entry.trace.trace_id: entry.gold for entry in entries}
    seen = request.workspace.judgements(taxonomy=request.taxonomy.ref)
    order_of = orders_from_files(request.workspace)
    may_see = request.viewer.may_see_judges()

    def judged(name: str) -> JudgeInput:
        found = judge_input_from_workspace(
            request.workspace,
            request.taxonomy,
            name,
            gold=gold,
            order_of=order_of,
            traces=request.viewer.traces,
            settled_only=request.gold == "settled",
        )
        return replace(found, unlabelled=frozenset(filter(may_see, found.unlabelled)))

    return {
        name: judge_report(judged(name))
        for name in sorted({one.judge for one in seen} - sides)
        if gold
    }


def _add_gold_document(document: Mapping[str, Any], outputs: Outputs, output: Path) -> list[str]:
    beside = _add_beside(outputs, output, "datasheet.md", datasheet(document), *MARKS)
    outputs.add(output, _json(document))
    return beside


def _add_beside(outputs: Outputs, output: Path, end: str, text: str, *marks: str) -> list[str]:
    """Add a file that nobody has named, beside one that somebody has; where it is.

    It replaces only an earlier one, which has the marks. Beside a pipe there is no place for it.
    """
    beside = output.with_name(f"{output.stem}.{end}")
    if is_stream(output):
        say(f"{output}: is no file, so nothing is written beside it ({end})")
        return []
    outputs.add(beside, text, ours=marked(*marks))
    return [str(beside)]


def _add_dataset(document: Mapping[str, Any], outputs: Outputs, output: Path) -> list[str]:
    outputs.add_folder(output / "data")
    card = output / CARD
    outputs.check(card, ours=_is_card)
    earlier = tables_named_in(card.read_text("utf-8", "replace")) if card.is_file() else None
    earlier = earlier or ()

    def may_replace(name: str) -> Callable[[bytes], bool]:
        return _is_card if name == CARD else lambda _: name in earlier

    try:
        files = dataset_files(document)
    except ValueError as error:
        raise click.ClickException(str(error)) from None
    # The README comes last: it names the files, so until then the old ones are the set.
    for name, text in files.items():
        outputs.add(output / name, text, ours=may_replace(name))
    # Somebody whose labels are not in this set must not be published with it.
    for name in earlier:
        if name not in files:
            outputs.remove(output / name)
    return [str(output / name) for name in files]


def _is_card(head: bytes) -> bool:
    return tables_named_in(head.decode("utf-8", "replace")) is not None


def add_codebook(request: Request, outputs: Outputs, output: Path) -> Counts:
    """Add the codebook: LaTeX where the name ends so, else Markdown."""
    viewer = request.viewer
    agreed = guidelines_document(request.workspace, request.taxonomy, traces=viewer.traces)
    cases = [case for page in agreed.values() for case in page["cases"]]
    viewer.reveal({case["trace"] for case in cases})
    if request.pseudonyms is not None:
        agreed = request.pseudonyms.in_document(agreed)
    write = codebook_latex if output.suffix.lower() == ".tex" else codebook_markdown
    outputs.add(output, write(request.taxonomy, agreed))
    every = guidelines_document(request.workspace, request.taxonomy)
    decided = {case["trace"] for page in every.values() for case in page["cases"]}
    return {
        "taxonomy": request.taxonomy.ref,
        "modes": len(request.taxonomy.modes),
        "guidelines": sum(len(page["guidelines"]) for page in agreed.values()),
        "cases": len(cases),
        **sight_values(viewer, decided - {case["trace"] for case in cases}),
    }


def add_words(request: Request, file_format: str, outputs: Outputs, output: Path) -> Counts:
    """Add one of the formats that hold anybody's words."""
    everything = selected_work(
        request.workspace,
        request.taxonomy,
        request.labels,
        which=request.which,
        finished_only=file_format == "csv-wide" and request.labels != "gold",
        majority=request.majority,
    )
    work = _within_sight(request.viewer, everything)
    shown = request.viewer.may_see_outcomes()
    records = {record.trace_id: _veiled(record, shown) for record in request.workspace.traces()}
    left_out = {one.trace_id for one in everything} - {one.trace_id for one in work}
    counts: Counts = {
        "taxonomy": request.taxonomy.ref,
        "traces": len({one.trace_id for one in work}),
        "labels": sum(len(one.labels) for one in work),
        **sight_values(request.viewer, left_out),
    }
    kinds = {info.name: info.kind for info in request.workspace.annotators()}
    if request.pseudonyms is not None:
        kinds = {request.pseudonyms.name(name): kind for name, kind in kinds.items()}
        work = pseudonymous(work, request.pseudonyms)
    match file_format:
        case "csv-long":
            text = write_csv_long(work)
        case "label-studio":
            text = _label_studio(request, work, records, kinds, counts)
            config = label_config(request.taxonomy)
            counts["beside"] = _add_beside(outputs, output, "config.xml", config, CONFIG_MARK)
        case "doccano":
            text = _doccano(request, work, records, counts)
        case _ if file_format in SCORE_FORMATS:
            text = _scores(request, file_format, work, kinds, counts)
        case _:
            text = _trace_level(request, file_format, work, records)
    outputs.add(output, text)
    return counts


def _within_sight(viewer: Viewer, work: Sequence[LongWork]) -> list[LongWork]:
    """One's own work, and that of others and of judges where it may be seen, which is recorded."""
    own, others, judged = [], [], []
    for one in work:
        if one.annotator == viewer.name:
            own.append(one)
        elif annotator_kind(one.annotator) is AnnotatorKind.JUDGE:
            judged.append(one)
        elif viewer.may_see_others(one.trace_id):
            others.append(one)
    viewer.reveal(one.trace_id for one in others)
    # Only now: what is recorded as shown hides no suggestions any longer.
    may_see_judges = viewer.may_see_judges()
    shown = {id(one) for one in (*own, *others)}
    shown |= {id(one) for one in judged if may_see_judges(one.trace_id)}
    return [one for one in work if id(one) in shown]


def _veiled(record: TraceRecord, shown: Callable[[str], bool]) -> TraceRecord:
    """What is known of a trace, without what somebody blind may not see yet."""
    if shown(record.trace_id):
        return record
    return replace(record, outcome=Outcome.UNKNOWN, score=None)


def _trace_level(
    request: Request,
    file_format: str,
    work: Sequence[LongWork],
    records: Mapping[str, TraceRecord],
) -> str:
    """``csv-wide`` or ``mast-data``: a verdict per mode."""
    with_trace = [(records.get(one.trace_id, TraceRecord(one.trace_id)), one) for one in work]
    if file_format == "csv-wide":
        rows = [WideRow(trace, one.annotator, one.verdicts) for trace, one in with_trace]
        return write_csv_wide(rows, request.taxonomy)
    data = [
        mast_data_record(trace, one.annotator, one.verdicts, request.taxonomy)
        for trace, one in with_trace
    ]
    return _json(mast_data_records(data))


def _label_studio(
    request: Request,
    work: Sequence[LongWork],
    records: Mapping[str, TraceRecord],
    kinds: Mapping[str, AnnotatorKind],
    counts: Counts,
) -> str:
    tasks = label_studio_tasks(work, records, kinds, texts_from_files(request.workspace))
    counts["without_text"] = sum(not task["meta"][META]["texts"] for task in tasks)
    return _json(tasks)


def _doccano(
    request: Request,
    work: Sequence[LongWork],
    records: Mapping[str, TraceRecord],
    counts: Counts,
) -> str:
    lines, missing = doccano_lines(work, records, texts_from_files(request.workspace))
    counts["without_text"] = len(missing)
    return "".join(lines)


def _scores(
    request: Request,
    file_format: str,
    work: Sequence[LongWork],
    kinds: Mapping[str, AnnotatorKind],
    counts: Counts,
) -> str:
    """One of the formats that bring labels back to the tool in which the traces were recorded."""
    tools = {
        "langfuse": langfuse.TOOLS,
        "phoenix": phoenix.TOOLS,
        "langsmith": langsmith.TOOLS,
        "inspect-scores": inspect_scores.TOOLS,
    }[file_format]
    native_of = native_from_files(request.workspace)
    scores, left_out = scores_of(work, native_of, kinds, tools)
    counts["scores"] = len(scores)
    counts["without_id"] = {
        "traces": list(left_out.traces),
        "spans": [{"trace_id": trace, "key": key} for trace, key in left_out.spans],
    }
    match file_format:
        case "langfuse":
            return "".join(langfuse.langfuse_lines(scores))
        case "phoenix":
            return _json(phoenix.phoenix_bodies(scores))
        case "langsmith":
            return "".join(langsmith.langsmith_lines(scores))
    return "".join(inspect_scores.inspect_lines(scores))


def _json(document: object) -> str:
    return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1) + "\n"
