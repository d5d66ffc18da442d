"""``mast-tui inspect``: show the recognised traces of files, and their problems."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.shared import options
from mast_tui.cli.shared.asking import hides_outcomes
from mast_tui.cli.shared.common import print_json, print_table, problem_lines, say
from mast_tui.cli.shared.workers import WorkerPool
from mast_tui.columns import ColumnWidth, TableColumn, key_column
from mast_tui.counts import counted
from mast_tui.safe_text import one_line
from mast_tui.traces.file_places import place_in_file
from mast_tui.traces.library import read_fully
from mast_tui.traces.model import FileReport, Problem, Role, Trace
from mast_tui.traces.readers.run_facts import as_json
from mast_tui.traces.scan.each_trace import each_trace

_PREVIEW_WIDTH: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectRequest:
    """The options of ``mast-tui inspect``."""

    paths: tuple[Path, ...] = options.paths(required=True)
    spans: bool = options.option("--spans", is_flag=True, help="One row per span.")
    workers: str | None = options.workers()
    common: CommonOptions = options.common(taxonomy=options.NO_LABELS)
    as_json: bool = options.as_json()


@click.command()
@options.takes(InspectRequest)
def inspect_command(request: InspectRequest) -> int:
    """Show the traces that are recognised in files and folders.

    Lists per file its format, its traces, and every problem with its location. Blind annotators do
    not see outcomes.

    Example: mast-tui inspect runs/
    """
    hide_outcomes = hides_outcomes(request.common)
    files = []
    with WorkerPool(request.workers) as pool:
        # Without workers, text output reads each span when it prints it, since a trace can have
        # many.
        documents_have_spans = request.spans and (request.as_json or pool.workers is not None)
        inspect = partial(_inspect_trace, documents_have_spans, hide_outcomes)
        for report, inspected in each_trace(
            pool.reachable(request.paths), inspect, pool.workers, tell=pool.show_progress
        ):
            files.append(_File(report, tuple(inspected)))
            pool.on_trace(len(files[-1].traces))
    if request.as_json:
        print_json(_document_of_files(files))
    else:
        _print_files(files, request.spans)
    failed = [file.report for file in files if file.report.failed is not None]
    for report in failed:
        say(f"mast-tui inspect: {report.path}: {report.failed}")
    return 1 if failed else 0


class _InspectedTrace(NamedTuple):
    """The JSON document of a trace, and the problems of reading it."""

    document: dict[str, Any]
    problems: tuple[Problem, ...]


def _inspect_trace(spans: bool, hide_outcomes: bool, trace: Trace) -> _InspectedTrace:
    trace.spans.load_cached()  # uses the index of a big file that the app has stored
    read_fully(trace)
    return _InspectedTrace(_trace_json(trace, spans, hide_outcomes), tuple(trace.problems))


@dataclass(frozen=True, slots=True)
class _File:
    """A file and its inspected traces."""

    report: FileReport
    traces: tuple[_InspectedTrace, ...]

    @property
    def problems(self) -> list[Problem]:
        """The problems of the file, then those of its traces."""
        return [
            *self.report.problems,
            *chain.from_iterable(trace.problems for trace in self.traces),
        ]


def _document_of_files(files: list[_File]) -> dict[str, object]:
    reports = [file.report for file in files]
    return {
        "files": [_file_json(file) for file in files if file.report.format is not None],
        "skipped": [
            {
                "path": str(file.report.path),
                "reason": file.report.skipped,
                # A skipped ``outcomes.csv`` is still read, and can have problems.
                **({"problems": _problems_json(file)} if file.problems else {}),
            }
            for file in files
            if file.report.skipped is not None
        ],
        "failed": [
            {"path": str(report.path), "reason": report.failed}
            for report in reports
            if report.failed is not None
        ],
    }


def _problems_json(file: _File) -> list[dict[str, str]]:
    return [{"place": problem.place, "message": problem.message} for problem in file.problems]


def _file_json(file: _File) -> dict[str, object]:
    return {
        "path": str(file.report.path),
        "format": file.report.format,
        "traces": [trace.document for trace in file.traces],
        "problems": _problems_json(file),
    }


def _trace_json(trace: Trace, spans: bool, hide_outcomes: bool) -> dict[str, Any]:
    meta = trace.meta
    document: dict[str, Any] = {
        "id": trace.identity.trace_id,
        "spans": len(trace),
        "agents": _agents_of_run(trace),
        "system": meta.system,
        "model": meta.model,
        "outcome": None if hide_outcomes else meta.outcome.value,
        "answer_key": None if hide_outcomes else as_json(meta.answer_key),
    }
    if spans:
        document["span_list"] = list(_span_list(trace))
    return document


def _span_list(trace: Trace) -> Iterator[dict[str, Any]]:
    return (_span_json(trace, index) for index in range(len(trace)))


def _span_json(trace: Trace, index: int) -> dict[str, Any]:
    span = trace.span(index)
    return {
        "index": span.index,
        "key": span.key,
        "kind": span.kind.value,
        "agent": span.agent,
        "name": span.name,
        "parent": span.parent,
        "place": span.place,
        "status": span.status.value,
        "text_chars": trace.text_chars(index),
        "preview": span.preview,
    }


def _agents_of_run(trace: Trace) -> list[str]:
    """Return the agents of a run, in the order of their first steps."""
    spans = (trace.span(index) for index in range(len(trace)))
    return list(dict.fromkeys(span.agent for span in spans if span.role is Role.AGENT))


def _print_files(files: list[_File], spans: bool) -> None:
    """Print the traces, on request their spans, the problems, and the totals."""
    traces = [(file.report, inspected) for file in files for inspected in file.traces]
    if traces:
        print_table(_TRACE_COLUMNS, [(report, inspected.document) for report, inspected in traces])
    else:
        click.echo("no traces")
    if spans:
        for file in files:
            for number, inspected in enumerate(file.traces):
                # Without this list, spans are read one by one, since a trace can have many.
                span_list = inspected.document.get("span_list")
                _print_spans(
                    inspected.document, span_list or _span_list(file.report.traces[number]), file
                )
    reports = [file.report for file in files]
    problems = [(file.report, problem) for file in files for problem in file.problems]
    _print_list("problems", _problem_lines(problems))
    skipped = [report for report in reports if report.skipped is not None]
    for heading, used in (("used with the traces", True), ("skipped", False)):
        _print_list(
            heading,
            [f"{file.path}: {file.skipped}" for file in skipped if file.is_used is used],
        )
    formats = {report.format for report, _ in traces}
    click.echo(
        f"\n{counted(len(traces), 'trace')}, {counted(len(formats), 'format')}, "
        f"{counted(len(problems), 'problem')}"
    )


def _meta_column(key: str, rank: float) -> TableColumn[tuple[FileReport, Mapping[str, Any]]]:
    return TableColumn(key, lambda row: row[1][key] or "", width=ColumnWidth(drop_rank=rank))


_TRACE_COLUMNS: Final[Sequence[TableColumn[tuple[FileReport, Mapping[str, Any]]]]] = (
    TableColumn("file", lambda row: str(row[0].path)),
    TableColumn("format", lambda row: row[0].format or ""),
    TableColumn("trace", lambda row: row[1]["id"], width=ColumnWidth(cuts=((4, 13),))),
    TableColumn("outcome", lambda row: row[1]["outcome"] or "hidden"),
    _meta_column("system", 2),
    _meta_column("model", 1),
    TableColumn(
        "agents",
        lambda row: str(len(row[1]["agents"])),
        right=True,
        width=ColumnWidth(drop_rank=3),
    ),
    TableColumn("spans", lambda row: str(row[1]["spans"]), right=True),
)


def _print_spans(
    document: Mapping[str, Any], spans: Iterable[Mapping[str, Any]], file: _File
) -> None:
    click.echo(f"\n{one_line(document['id'])}")
    span_count = document["spans"]
    if not span_count:
        click.echo("  no spans")
        return
    path = Path(file.report.path.name)
    width = len(str(span_count))  # rows are printed before the last number is known
    columns: tuple[TableColumn[Mapping[str, Any]], ...] = (
        TableColumn("#".rjust(width), lambda span: str(span["index"] + 1), right=True),
        TableColumn("place", lambda span: str(place_in_file(path, span["place"]))),
        key_column("key"),
        TableColumn("kind", lambda span: span["kind"].replace("_", " ")),
        key_column("agent"),
        TableColumn("name", lambda span: span["name"] or ""),
        TableColumn("status", lambda span: "" if span["status"] == "unknown" else span["status"]),
        TableColumn("chars", lambda span: str(span["text_chars"] or 0), right=True),
        TableColumn("text", lambda span: one_line(span["preview"][:_PREVIEW_WIDTH])),
    )
    print_table(columns, spans)


def _problem_lines(problems: Iterable[tuple[FileReport, Problem]]) -> list[str]:
    rows = (
        (str(report.path), problem.place or "whole file", problem.message)
        for report, problem in problems
    )
    return problem_lines(rows, located=lambda file, place: str(place_in_file(Path(file), place)))


def _print_list(heading: str, lines: list[str]) -> None:
    if lines:
        click.echo(f"\n{heading}")
        for line in lines:
            click.echo(f"  {one_line(line)}")
