"""``mast-tui search``: find text in all traces of files and folders."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Final

import click

from mast_tui.cli.shared import options
from mast_tui.cli.shared.common import say
from mast_tui.cli.shared.workers import WorkerPool
from mast_tui.safe_text import one_line
from mast_tui.traces.model import SpanKind
from mast_tui.traces.search.pattern import InvalidPattern
from mast_tui.traces.search.query import Hit, NotSearched, Query
from mast_tui.traces.search.search_processes import ManyFilesSearch

_NOTHING_HIDDEN: Final = "it tells neither outcomes nor labels, so there is nothing to hide"
_KINDS: Final = {kind.value.replace("_", "-"): kind.value for kind in SpanKind}


@click.command()
@click.argument("pattern")
@options.paths(required=True)
@click.option("--regex", is_flag=True, help="PATTERN is a regular expression.")
@click.option(
    "--case", is_flag=True, help="Case counts. Else it does where PATTERN has a capital letter."
)
@click.option("--tool", metavar="NAME", help="Only calls of this tool, and what came of them.")
@click.option("--agent", metavar="NAME", help="Only what this agent did.")
@click.option(
    "--kind", "kinds", multiple=True, type=click.Choice([*_KINDS]), help="Only spans of this kind."
)
@click.option("--failed", is_flag=True, help="Only spans that have an error.")
@click.option(
    "--max", "most", type=click.IntRange(min=1), metavar="N", help="Stop after so many spans."
)
@click.option("--count", is_flag=True, help="Print how many spans of each trace, not the spans.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
@options.workers
@options.common(
    workspace=options.NO_LABELS,
    annotator=options.NO_LABELS,
    taxonomy=options.NO_LABELS,
    blind=_NOTHING_HIDDEN,
    assisted=_NOTHING_HIDDEN,
)
def search_command(
    pattern: str,
    paths: tuple[Path, ...],
    regex: bool,
    case: bool,
    tool: str | None,
    agent: str | None,
    kinds: tuple[str, ...],
    failed: bool,
    most: int | None,
    count: bool,
    as_json: bool,
    wanted_workers: str | None,
) -> int:
    """Find text in all traces of files and folders.

    A line for each span that has it: where it stands, the trace, the span's number and kind, and
    the text around the first match. An empty PATTERN ('') finds every span for which the options
    hold. Exit code 0: something was found, and everything was searched; 1 else.
    """
    query = Query(pattern, regex, case, tool, agent, tuple(map(_KINDS.__getitem__, kinds)), failed)
    if query == Query():
        raise click.UsageError("an empty PATTERN needs --tool, --agent, --kind or --failed with it")
    try:
        query.matcher()
    except InvalidPattern as error:
        raise click.UsageError(
            f"{pattern!r} is no regular expression: {one_line(str(error))}"
        ) from None
    hits, left_out = 0, 0
    shown = _Counted(as_json) if count else _Lines(as_json)
    with WorkerPool(wanted_workers or "auto", quiet=True) as pool:
        search = ManyFilesSearch(pool.reachable(paths), query, pool.workers)
        for found in search.results():
            if isinstance(found, NotSearched):
                left_out += 1
                say(f"mast-tui search: {found.path}: {found.reason}")
            elif found is not None:
                hits += 1
                shown.take(found)
                if hits == most:
                    break
        shown.end()
    return 0 if hits and not left_out else 1


class _Lines:
    """Prints each hit as it comes."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json

    def take(self, hit: Hit) -> None:
        """Print a hit."""
        if self._as_json:
            _print_line(_values(hit))
            return
        kind = hit.kind.replace("_", " ")
        what = f"{kind} {hit.name}" if hit.name else kind
        lit = click.style(one_line(hit.preview[hit.lit : hit.unlit]), fg="red", bold=True)
        text = f"{one_line(hit.preview[: hit.lit])}{lit}{one_line(hit.preview[hit.unlit :])}"
        failed = "  ✗" if hit.status == "error" else ""
        parts = (hit.place, hit.trace_id, f"#{hit.span + 1} {what}")
        click.echo(f"{'  '.join(map(one_line, parts))}{failed}  {text}".rstrip())
        sys.stdout.flush()

    def end(self) -> None:
        """Nothing is left to be printed."""


class _Counted(_Lines):
    """Counts the hits of each trace, and prints a trace when the next one begins."""

    def __init__(self, as_json: bool) -> None:
        super().__init__(as_json)
        self._of: tuple[str, str] | None = None
        self._counts: Counter[str] = Counter()

    def take(self, hit: Hit) -> None:
        """Count a hit."""
        if self._of != (hit.path, hit.trace_id):
            self.end()
            self._of = (hit.path, hit.trace_id)
        self._counts.update(spans=1, matches=hit.matches)

    def end(self) -> None:
        """Print the last trace."""
        if self._of is None:
            return
        (path, trace_id), spans, matches = self._of, self._counts["spans"], self._counts["matches"]
        self._counts.clear()
        if self._as_json:
            _print_line({"path": path, "trace": trace_id, "spans": spans, "matches": matches})
        else:
            times = "" if matches <= spans else f", {matches:,} matches"
            words = f"{spans:,} span{'' if spans == 1 else 's'}{times}"
            click.echo("  ".join(map(one_line, (path, trace_id, words))))
        self._of = None


def _values(hit: Hit) -> dict[str, Any]:
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
        "lit": [hit.lit, hit.unlit],
    }


def _print_line(values: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(values, allow_nan=False) + "\n")
    sys.stdout.flush()
