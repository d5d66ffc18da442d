"""``mast-tui search``: find text in all traces of files and folders."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import click

from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.shared import options
from mast_tui.cli.shared.common import say
from mast_tui.cli.shared.workers import WorkerPool
from mast_tui.safe_text import one_line
from mast_tui.traces.model import SpanKind
from mast_tui.traces.search.file_search import Hit, ManyFilesSearch, NotSearched, Query
from mast_tui.traces.search.pattern import InvalidPattern

_NOTHING_HIDDEN: Final = "it shows no outcomes or labels, so there is nothing to hide"
_KINDS: Final = {kind.value.replace("_", "-"): kind.value for kind in SpanKind}


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """The options of ``mast-tui search``."""

    pattern: str = options.argument()
    paths: tuple[Path, ...] = options.paths(required=True)
    regex: bool = options.option("--regex", is_flag=True, help="PATTERN is a regular expression.")
    case: bool = options.option(
        "--case", is_flag=True, help="Match case. Default: only if PATTERN has a capital letter."
    )
    tool: str | None = options.option(
        "--tool", metavar="NAME", help="Only calls of this tool, and their results."
    )
    agent: str | None = options.option("--agent", metavar="NAME", help="Only steps of this agent.")
    kinds: tuple[str, ...] = options.option(
        "--kind", multiple=True, type=click.Choice([*_KINDS]), help="Only spans of this kind."
    )
    failed: bool = options.option("--failed", is_flag=True, help="Only spans that have an error.")
    most: int | None = options.option(
        "--max", type=click.IntRange(min=1), metavar="N", help="Stop after N spans."
    )
    count: bool = options.option(
        "--count", is_flag=True, help="Print the number of spans per trace, not the spans."
    )
    as_json: bool = options.option("--json", is_flag=True, help="Print one JSON object a line.")
    workers: str | None = options.workers()
    common: CommonOptions = options.common(
        workspace=options.NO_LABELS,
        annotator=options.NO_LABELS,
        taxonomy=options.NO_LABELS,
        blind=_NOTHING_HIDDEN,
        assisted=_NOTHING_HIDDEN,
    )


@click.command()
@options.takes(SearchRequest)
def search_command(request: SearchRequest) -> int:
    """Find text in all traces of files and folders.

    Prints a line for each span with a match: its location, the trace, the span's number and kind,
    and the text around the first match. An empty PATTERN ('') finds every span that the options
    select. Exit code 0: there are matches, and everything was searched; else 1.

    Example: mast-tui search --regex 'time.?out' runs/ --kind tool-result
    """
    query = Query(
        text=request.pattern,
        regex=request.regex,
        exact=request.case,
        tool=request.tool,
        agent=request.agent,
        kinds=tuple(map(_KINDS.__getitem__, request.kinds)),
        failed=request.failed,
    )
    if query == Query():
        raise click.UsageError("an empty PATTERN needs --tool, --agent, --kind or --failed")
    try:
        query.matcher()
    except InvalidPattern as error:
        raise click.UsageError(
            f"{request.pattern!r} is not a valid regular expression: {one_line(str(error))}"
        ) from None
    hits = 0
    left_out = 0

    def matching_spans() -> Iterator[Hit]:
        """Yield hits up to the limit, and report files that cannot be searched on stderr."""
        nonlocal hits, left_out
        for result in search.results():
            if isinstance(result, NotSearched):
                left_out += 1
                say(f"mast-tui search: {result.path}: {result.reason}")
            elif result is not None:
                hits += 1
                yield result
                if hits == request.most:
                    return

    with WorkerPool(request.workers or "auto", quiet=True) as pool:
        search = ManyFilesSearch(pool.reachable(request.paths), query, pool.workers)
        if request.count:
            for (path, trace_id), trace_hits in groupby(
                matching_spans(), key=lambda hit: (hit.path, hit.trace_id)
            ):
                _print_counts(path, trace_id, [hit.matches for hit in trace_hits], request.as_json)
        else:
            for hit in matching_spans():
                _print_hit(hit, request.as_json)
    return 0 if hits and not left_out else 1


def _print_hit(hit: Hit, as_json: bool) -> None:
    """Print a hit as a line with a highlighted match, or as JSON."""
    if as_json:
        _print_line(_hit_json(hit))
        return
    kind = hit.kind.replace("_", " ")
    description = f"{kind} {hit.name}" if hit.name else kind
    match_text = one_line(hit.preview[hit.match_start : hit.match_end])
    highlighted = click.style(match_text, fg="red", bold=True)
    text_before = one_line(hit.preview[: hit.match_start])
    text = f"{text_before}{highlighted}{one_line(hit.preview[hit.match_end :])}"
    error_mark = "  ✗" if hit.status == "error" else ""
    parts = (hit.place, hit.trace_id, f"#{hit.span + 1} {description}")
    click.echo(f"{'  '.join(map(one_line, parts))}{error_mark}  {text}".rstrip())
    sys.stdout.flush()


def _print_counts(path: str, trace_id: str, match_counts: list[int], as_json: bool) -> None:
    spans = len(match_counts)
    matches = sum(match_counts)
    if as_json:
        _print_line({"path": path, "trace": trace_id, "spans": spans, "matches": matches})
        return
    match_text = "" if matches <= spans else f", {matches:,} matches"
    summary = f"{spans:,} span{'' if spans == 1 else 's'}{match_text}"
    click.echo("  ".join(map(one_line, (path, trace_id, summary))))


def _hit_json(hit: Hit) -> dict[str, Any]:
    return {
        "path": hit.path,
        "place": hit.place,
        "trace": hit.trace_id,
        "span": hit.span,
        "key": hit.key,
        "kind": hit.kind,
        "agent": hit.agent,
        "name": hit.name,
        "status": hit.status,
        "matches": hit.matches,
        "start": hit.start,
        "end": hit.end,
        "preview": hit.preview,
        "lit": [hit.match_start, hit.match_end],
    }


def _print_line(values: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(values, allow_nan=False) + "\n")
    sys.stdout.flush()
