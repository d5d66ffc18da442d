"""``mast-tui inspect``: what was recognised in files, and what could not be read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from mast_tui.cli.shared.asking import hides_outcomes
from mast_tui.cli.shared.common import (
    NO_LABELS,
    checked_sight,
    common_options,
    json_option,
    print_json,
    print_table,
    say,
)
from mast_tui.safe_text import one_line
from mast_tui.traces.file_places import file_place
from mast_tui.traces.library import read_fully, scan
from mast_tui.traces.model import FileReport, Problem, Role, Trace
from mast_tui.traces.readers.answer_keys import as_json

_SHOWN_PREVIEW: Final = 60
_SPAN_HEADINGS: Final = ("place", "key", "kind", "agent", "name", "status", "chars", "text")


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH …")
@click.option("--spans", is_flag=True, help="One row per span.")
@common_options(taxonomy=NO_LABELS)
@json_option
def inspect_command(
    paths: tuple[Path, ...],
    spans: bool,
    workspace: str | None,
    annotator: str | None,
    blind: bool,
    assisted: bool,
    as_json: bool,
) -> int:
    """Show what was recognised in files and folders.

    Per file its format, its traces, and every problem with its place. Outcomes are left out for
    whoever works blind: with --blind, or as the workspace remembers it.
    """
    checked_sight(blind, assisted)
    veil = hides_outcomes(workspace, annotator, blind, assisted)
    if veil is not None:
        say(veil)
    reports = []
    for report in scan(paths):
        for trace in report.traces:
            read_fully(trace)
        reports.append(report)
    if as_json:
        print_json(_document(reports, spans, veil is not None))
    else:
        _print_reports(reports, spans, veil is not None)
    failed = [report for report in reports if report.failed is not None]
    for report in failed:
        say(f"mast-tui inspect: {report.path}: {report.failed}")
    return 1 if failed else 0


def _document(reports: list[FileReport], spans: bool, veiled: bool) -> dict[str, object]:
    return {
        "files": [_file(report, spans, veiled) for report in reports if report.format is not None],
        "skipped": [
            {"path": str(report.path), "reason": report.skipped, **_problems_of_skipped(report)}
            for report in reports
            if report.skipped is not None
        ],
        "failed": [
            {"path": str(report.path), "reason": report.failed}
            for report in reports
            if report.failed is not None
        ],
    }


def _problems_of_skipped(report: FileReport) -> dict[str, object]:
    """The problems of a file that is no trace and is read all the same (``outcomes.csv``)."""
    return {"problems": _problem_list(report)} if report.problems else {}


def _problem_list(report: FileReport) -> list[dict[str, str]]:
    return [{"place": one.place, "message": one.message} for one in _problems(report)]


def _file(report: FileReport, spans: bool, veiled: bool) -> dict[str, object]:
    return {
        "path": str(report.path),
        "format": report.format,
        "traces": [_trace(trace, spans, veiled) for trace in report.traces],
        "problems": _problem_list(report),
    }


def _trace(trace: Trace, spans: bool, veiled: bool) -> dict[str, object]:
    meta = trace.meta
    document: dict[str, object] = {
        "id": trace.identity.trace_id,
        "spans": len(trace),
        "agents": _agents(trace),
        "system": meta.system,
        "model": meta.model,
        "outcome": None if veiled else meta.outcome.value,
        "answer_key": None if veiled else as_json(meta.answer_key),
    }
    if spans:
        document["span_list"] = [_span(trace, index) for index in range(len(trace))]
    return document


def _span(trace: Trace, index: int) -> dict[str, object]:
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
        "text_chars": _chars(trace, index),
        "preview": span.preview,
    }


def _chars(trace: Trace, index: int) -> int | None:
    """How long a text is; None where the file has changed since it was opened."""
    try:
        return len(trace.text(index))
    except OSError:
        return None


def _agents(trace: Trace) -> list[str]:
    """Who acted in the run, in the order of their first steps."""
    spans = (trace.span(index) for index in range(len(trace)))
    return list(dict.fromkeys(span.agent for span in spans if span.role is Role.AGENT))


def _problems(report: FileReport) -> list[Problem]:
    return [*report.problems, *(problem for trace in report.traces for problem in trace.problems)]


def _print_reports(reports: list[FileReport], spans: bool, veiled: bool) -> None:
    traces = [(report, trace) for report in reports for trace in report.traces]
    if traces:
        headings = ("file", "format", "trace", "outcome", "system", "model", "agents", "spans")
        rows = [_row(report, trace, veiled) for report, trace in traces]
        print_table([headings, *rows], numbers_from=len(headings) - 2)
    else:
        click.echo("no traces")
    if spans:
        for _report, trace in traces:
            _print_spans(trace)
    _print_list(
        "problems", [_problem_line(report, p) for report in reports for p in _problems(report)]
    )
    _print_list("skipped", [f"{r.path}: {r.skipped}" for r in reports if r.skipped is not None])


def _row(report: FileReport, trace: Trace, veiled: bool) -> tuple[str, ...]:
    meta = trace.meta
    return (
        str(report.path),
        report.format or "",
        trace.identity.trace_id,
        "hidden" if veiled else meta.outcome.value,
        meta.system or "",
        meta.model or "",
        str(len(_agents(trace))),
        str(len(trace)),
    )


def _print_spans(trace: Trace) -> None:
    click.echo(f"\n{one_line(trace.identity.trace_id)}")
    if not len(trace):
        click.echo("  no spans")
        return
    print_table(_span_rows(trace), numbers_from=len(_SPAN_HEADINGS) + 1)


def _span_rows(trace: Trace) -> Iterator[tuple[str, ...]]:
    width = len(str(len(trace)))
    here = Path(trace.path.name)
    yield ("#".rjust(width), *_SPAN_HEADINGS)
    for index in range(len(trace)):
        span = trace.span(index)
        yield (
            str(index + 1).rjust(width),
            file_place(here, span.place),
            span.key,
            span.kind.value.replace("_", " "),
            span.agent,
            span.name or "",
            "" if span.status.value == "unknown" else span.status.value,
            str(_chars(trace, index) or 0).rjust(len("chars")),
            one_line(span.preview[:_SHOWN_PREVIEW]),
        )


def _problem_line(report: FileReport, problem: Problem) -> str:
    return f"{file_place(report.path, problem.place or 'whole file')}: {problem.message}"


def _print_list(heading: str, lines: list[str]) -> None:
    if lines:
        click.echo(f"\n{heading}")
        for line in lines:
            click.echo(f"  {one_line(line)}")
