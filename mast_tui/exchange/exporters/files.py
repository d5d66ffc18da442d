"""The files of each export format, as commands and the app write them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from mast_tui.adjudication import SpanOrders, guidelines_document
from mast_tui.counts import counted
from mast_tui.errors import MastError
from mast_tui.exchange.csv_long import write_csv_long
from mast_tui.exchange.csv_wide import WideRow, write_csv_wide
from mast_tui.exchange.exporters.codebook import codebook_latex, codebook_markdown
from mast_tui.exchange.exporters.datasheet import DATASHEET_FILE, MARKS, datasheet, read_datasheet
from mast_tui.exchange.exporters.doccano import doccano_lines
from mast_tui.exchange.exporters.gold_document import GoldRules, gold_document
from mast_tui.exchange.exporters.huggingface import CARD, dataset_files, tables_named_in
from mast_tui.exchange.exporters.native_ids import native_from_files
from mast_tui.exchange.exporters.scores import TOOLS, score_text, scores_of
from mast_tui.exchange.formats import GOLD_FORMATS, SCORE_FORMATS, VERDICT_FORMATS
from mast_tui.exchange.jsonl import workspace_lines
from mast_tui.exchange.label_studio import CONFIG_MARK, META, label_config, label_studio_tasks
from mast_tui.exchange.mast_data import mast_data_records
from mast_tui.exchange.selection import (
    GOLD,
    check_ordered,
    gold_entries,
    gold_work,
    pseudonymous,
    selected_work,
)
from mast_tui.exchange.trace_files import texts_from_files
from mast_tui.figures.agreement.report import agreement_report
from mast_tui.figures.judge.input import judge_input_from_workspace
from mast_tui.figures.judge.report import judge_report
from mast_tui.figures.source.agreement import study_from_workspace
from mast_tui.figures.source.spans import span_input_from_workspace
from mast_tui.figures.spans.report import span_report
from mast_tui.labels import AnnotatorKind, annotator_kind
from mast_tui.output_files import Outputs, is_stream
from mast_tui.session import hidden_words, sight_values
from mast_tui.traces.model import Outcome
from mast_tui.workspace import TraceRecord
from mast_tui.workspace.outputs import marked

if TYPE_CHECKING:
    from mast_tui.exchange.csv_long import LongWork
    from mast_tui.exchange.exporters.gold_document import GoldEntry
    from mast_tui.figures.judge.input import JudgeInput
    from mast_tui.gold import GoldKind
    from mast_tui.passes import Which
    from mast_tui.session import Viewer
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.workspace import Workspace
    from mast_tui.workspace.registers.pseudonyms import Pseudonyms

_NAMES_SHOWN: Final = 10
_ROW_NAMES: Final = {"rows", "records"}
"""The counts of formats that hold verdicts and no labels."""


def written_lines(output: str, counts: Mapping[str, Any]) -> list[str]:
    """Say what was written where: how many of what, and the files beside it.

    Args:
        output: The file or folder.
        counts: What ``add_export`` or ``add_workspace`` has counted.
    """
    written = [
        counted(n, *_nouns(name))
        for name, n in counts.items()
        if isinstance(n, int) and not (name == "labels" and counts.keys() & _ROW_NAMES)
    ]
    beside = [f"{one}: written with it" for one in counts.get("beside", ())]
    return [f"{output}: {', '.join(written)}", *beside]


def _nouns(name: str) -> tuple[str, str]:
    """Return the singular and plural of what a field counts."""
    plural = name.replace("_", " ")
    return plural.removesuffix("s"), plural


def left_out_lines(counts: Mapping[str, Any], file_format: str, *, sight: bool = True) -> list[str]:
    """Say what is not in an export, why, and what to do.

    Args:
        counts: What ``add_export`` has counted.
        file_format: What was written.
        sight: Whether to say what is hidden from whom.
    """
    found = []
    told = counts.get("sight")
    if sight and told is not None and told["left_out"]:
        found.append(hidden_words(told["annotator"], told["left_out"]))
    missing = counts.get("without_text", 0)
    if missing:
        found.append(
            f"{counted(missing, 'trace is', 'traces are')} not at hand, so the text is missing; "
            "open the app or 'mast-tui judge' on the folder once, then export again"
        )
    return found + _without_id(counts.get("without_id", {}), file_format)


def _without_id(left_out: Mapping[str, Any], file_format: str) -> list[str]:
    """Say what the tool that the scores are for does not know."""
    found = []
    traces = left_out.get("traces", ())
    if traces:
        found.append(
            f"{counted(len(traces), 'trace')} left out, whose id in {file_format} is not known: "
            f"recorded by another tool, or without the file at hand: {_some(traces)}"
        )
    spans = [f"{one['key']} in {one['trace_id']}" for one in left_out.get("spans", ())]
    if spans:
        found.append(
            f"{counted(len(spans), 'labelled span')} left out, whose id in {file_format} is not "
            f"known: {_some(spans)}"
        )
    return found


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMES_SHOWN])
    left = len(names) - _NAMES_SHOWN
    return f"{shown} and {left} more; mast-tui export --json names all" if left > 0 else shown


Counts = dict[str, Any]

_VERDICTS_ONLY: Final = {"csv-wide": "rows", "mast-data": "records"}
"""The formats that hold verdicts and no labels, with what they are made of."""
Read = TypeVar("Read")
Say = Callable[[str], None]


def _nobody_hears(_words: str) -> None:
    """Take words that nobody wants."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be exported under one taxonomy, where to, and who asks.

    ``labels`` are those of ``gold``, of ``all`` or of a name; None: the gold's. ``which`` is the
    pass, None: the one that is usual. ``annotators`` are the sides of the gold, None: all people.
    ``allow_unordered`` is whether gold is written although the order of labelled spans is unknown.
    ``say`` is told what a person should know beside the counts, ``stage`` what is at work; it may
    raise an error to stop.
    """

    workspace: Workspace
    taxonomy: Taxonomy
    viewer: Viewer
    file_format: str
    output: Path
    labels: str | None = None
    which: Which | None = None
    annotators: Sequence[str] | None = None
    majority: bool = False
    gold: GoldKind | None = None
    datasheet: Path | None = None
    pseudonyms: Pseudonyms | None = None
    allow_unordered: bool = False
    say: Say = _nobody_hears
    stage: Say = _nobody_hears

    @property
    def counted_pass(self) -> Which:
        """The pass that is exported."""
        return usual_pass(self.file_format) if self.which is None else self.which


def usual_pass(file_format: str) -> Which:
    """The pass that a format holds unless another one is asked for."""
    return "first" if file_format in (*GOLD_FORMATS, "csv-wide") else "last"


def check_output(outputs: Outputs, file_format: str, output: Path) -> None:
    """Refuse a place where the export cannot or must not be written, before any work is done.

    Args:
        outputs: By whose rules.
        file_format: What is to be written.
        output: The file, for ``huggingface`` the folder.

    Raises:
        OutputError: What is there stays, or nothing can be there.
        MastError: The folder around it is missing.
    """
    if file_format != "huggingface":
        outputs.check(output)
        return
    if not output.parent.is_dir():
        raise MastError(f"{output.parent}: no such folder; make it first")
    outputs.add_folder(output)


def add_export(request: Request, outputs: Outputs) -> Counts:
    """Add the files of an export under one taxonomy; what is in them, counted.

    Args:
        request: What is to be exported.
        outputs: Where the files are added; its ``commit`` writes them.

    Raises:
        MastError: Something that is named is not there, or a file that is in the way stays.
    """
    if request.file_format in GOLD_FORMATS:
        return _add_gold(request, outputs)
    if request.file_format == "codebook":
        return _add_codebook(request, outputs)
    return _add_words(request, outputs)


def add_workspace(workspace: Workspace, outputs: Outputs, output: Path, say: Say) -> Counts:
    """Add the whole workspace as ``jsonl``, whoever asks; what is in it, counted.

    Args:
        workspace: What is exported.
        outputs: Where the file is added.
        output: The file.
        say: Is told of histories that were edited.
    """
    lines = list(workspace_lines(workspace))
    outputs.add(output, "".join(lines))
    for event in workspace.edited_histories():
        say(
            f"{event.annotator}'s events were edited outside of mast-tui, at or before step "
            f"{event.seq}; who imports this is asked for --replace"
        )
    for row in workspace.damaged_events():
        say(f"an event cannot be read and is left out: {row.name}: {row.problem}")
    return {"traces": len(workspace.traces()), "lines": len(lines)}


def _add_gold(request: Request, outputs: Outputs) -> Counts:
    """``gold`` with its datasheet beside it, or the folder of ``huggingface``."""
    viewer = request.viewer
    request.stage("Reading the gold")
    everything = gold_entries(
        request.workspace,
        request.taxonomy,
        annotators=request.annotators,
        majority=request.majority,
        settled_only=request.gold == "settled",
    )
    _check_ordered(request, everything)
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
    request.stage("Counting agreement")
    agreement = _agreement(request)
    request.stage("Holding judges against the gold")
    judges = _judges(request, everything)
    request.stage("Putting the gold together")
    document = gold_document(
        request.workspace,
        request.taxonomy,
        agreement,
        entries,
        judges=judges,
        rules=GoldRules(request.majority, request.gold == "settled"),
        traces=viewer.traces,
    )
    document |= sight
    if request.pseudonyms is not None:
        document = request.pseudonyms.in_document(document)
    document["datasheet"] = _datasheet_file(request)
    add = _add_gold_document if request.file_format == "gold" else _add_dataset
    beside = add(request, document, outputs)
    traces = document["traces"]
    return {
        "taxonomy": request.taxonomy.ref,
        "traces": len(traces),
        "labels": sum(len(trace["labels"]) for trace in traces),
        "unresolved": sum(_conflicts_left(trace) for trace in traces),
        "beside": beside,
        **sight,
    }


def _conflicts_left(trace: Mapping[str, Any]) -> int:
    """How much is left to decide on a trace; all disputed places of a mode are one conflict."""
    return len({(one["slug"], one["kind"]) for one in trace["unresolved"]})


def _check_ordered(request: Request, entries: Sequence[GoldEntry]) -> None:
    """Refuse gold in which overlaps may be missed, unless that was allowed."""
    if not request.allow_unordered:
        may_see = request.viewer.may_see_others
        check_ordered(one for one in entries if may_see(one.trace.trace_id))


def _datasheet_file(request: Request) -> dict[str, Any] | None:
    """What people wrote of the set: in the file that was named, else in the workspace's folder."""
    path = request.datasheet
    if path is None and request.workspace.path is not None:
        path = request.workspace.path.with_name(DATASHEET_FILE)
        if not path.exists():
            return None
    return None if path is None else read_datasheet(path)


def _agreement(request: Request) -> dict[str, Any]:
    """The report of ``agree --json`` on the sides, places included."""
    study = study_from_workspace(
        request.workspace,
        request.taxonomy,
        annotators=request.annotators,
        which=request.counted_pass,
        traces=request.viewer.traces,
    )
    orders = SpanOrders(request.workspace)
    marked = span_input_from_workspace(
        request.workspace,
        request.taxonomy,
        study.annotators,
        order_of=orders.spans_of,
        length_of=orders.length_of,
        which=request.counted_pass,
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
    order_of = SpanOrders(request.workspace)
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


def _add_gold_document(
    request: Request, document: Mapping[str, Any], outputs: Outputs
) -> list[str]:
    beside = _add_beside(request, outputs, "datasheet.md", datasheet(document), *MARKS)
    outputs.add(request.output, _json(document))
    return beside


def _add_beside(request: Request, outputs: Outputs, end: str, text: str, *marks: str) -> list[str]:
    """Add a file that nobody has named, beside one that somebody has; where it is.

    It replaces only an earlier one, which has the marks. Beside a pipe there is no place for it.
    """
    output = request.output
    beside = output.with_name(f"{output.stem}.{end}")
    if is_stream(output):
        request.say(f"{output}: is no file, so nothing is written beside it ({end})")
        return []
    outputs.add(beside, text, ours=marked(*marks))
    return [str(beside)]


def _add_dataset(request: Request, document: Mapping[str, Any], outputs: Outputs) -> list[str]:
    output = request.output
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
        raise MastError(str(error)) from None
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


def _add_codebook(request: Request, outputs: Outputs) -> Counts:
    """The codebook: LaTeX where the name ends so, else Markdown."""
    viewer, output = request.viewer, request.output
    request.stage("Reading the guidelines")
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


def _add_words(request: Request, outputs: Outputs) -> Counts:
    """One of the formats that hold anybody's words."""
    file_format, labels = request.file_format, request.labels or GOLD
    request.stage("Reading the labels")
    if labels == GOLD:
        entries = gold_entries(request.workspace, request.taxonomy, majority=request.majority)
        if file_format not in VERDICT_FORMATS:
            _check_ordered(request, entries)
        everything = gold_work(entries, request.taxonomy)
    else:
        everything = selected_work(
            request.workspace,
            request.taxonomy,
            labels,
            which=request.counted_pass,
            finished_only=file_format == "csv-wide",
        )
    work = _within_sight(request.viewer, everything)
    shown = request.viewer.may_see_outcomes()
    records = {record.trace_id: _veiled(record, shown) for record in request.workspace.traces()}
    left_out = {one.trace_id for one in everything} - {one.trace_id for one in work}
    counts: Counts = {
        "taxonomy": request.taxonomy.ref,
        "traces": len({one.trace_id for one in work}),
        **_label_counts(file_format, work),
        **sight_values(request.viewer, left_out),
    }
    kinds = {info.name: info.kind for info in request.workspace.annotators()}
    if request.pseudonyms is not None:
        kinds = {request.pseudonyms.name(name): kind for name, kind in kinds.items()}
        work = pseudonymous(work, request.pseudonyms)
    outputs.add(request.output, _written(request, outputs, work, records, kinds, counts))
    return counts


def _label_counts(file_format: str, work: Sequence[LongWork]) -> Counts:
    """Count the labels, and the rows of a format that holds verdicts only."""
    if file_format in _VERDICTS_ONLY:
        return {"labels": 0, _VERDICTS_ONLY[file_format]: len(work)}
    return {"labels": sum(len(one.labels) for one in work)}


def _written(
    request: Request,
    outputs: Outputs,
    work: Sequence[LongWork],
    records: Mapping[str, TraceRecord],
    kinds: Mapping[str, AnnotatorKind],
    counts: Counts,
) -> str:
    """The text in the format asked for; what it lacks is counted, what goes with it added."""
    match request.file_format:
        case "csv-long":
            return write_csv_long(work)
        case "label-studio":
            texts = _told(request, work, texts_from_files(request.workspace))
            tasks = label_studio_tasks(work, records, kinds, texts)
            counts["without_text"] = sum(not task["meta"][META]["texts"] for task in tasks)
            config = label_config(request.taxonomy)
            counts["beside"] = _add_beside(request, outputs, "config.xml", config, CONFIG_MARK)
            return _json(tasks)
        case "doccano":
            texts = _told(request, work, texts_from_files(request.workspace))
            lines, missing = doccano_lines(work, records, texts)
            counts["without_text"] = len(missing)
            return "".join(lines)
        case file_format if file_format in SCORE_FORMATS:
            native_of = _told(request, work, native_from_files(request.workspace))
            scores, left_out = scores_of(work, native_of, kinds, TOOLS[file_format])
            counts["scores"] = len(scores)
            counts["without_id"] = {
                "traces": list(left_out.traces),
                "spans": [{"trace_id": trace, "key": key} for trace, key in left_out.spans],
            }
            return score_text(scores, file_format)
    rows = [
        WideRow(records.get(one.trace_id, TraceRecord(one.trace_id)), one.annotator, one.verdicts)
        for one in work
    ]
    if request.file_format == "csv-wide":
        return write_csv_wide(rows, request.taxonomy)
    return _json(mast_data_records(rows, request.taxonomy))


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


def _told(
    request: Request, work: Sequence[LongWork], read: Callable[[str], Read]
) -> Callable[[str], Read]:
    """The same, which tells how many of the traces it has been asked for."""
    of = len({one.trace_id for one in work})
    asked: set[str] = set()

    def reading(trace_id: str) -> Read:
        asked.add(trace_id)
        request.stage(f"Reading trace {len(asked):,} of {of:,}")
        return read(trace_id)

    return reading


def _json(document: object) -> str:
    return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1) + "\n"
