"""``mast-tui judge``: let a judge look at traces, without the app."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mast_tui.cli.common import (
    checked_sight,
    common_options,
    json_option,
    load_chosen_taxonomy,
    open_workspace,
    print_json,
    print_table,
    say,
)
from mast_tui.safe_text import one_line

if TYPE_CHECKING:
    from mast_tui.judges.runner import Progress, RunSummary
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.traces.model import FileReport, Trace


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH …")
@click.option("--judge", "judge_name", type=click.Choice(["rules"]), required=True)
@click.option("--again", is_flag=True, help="Judge traces anew that this judge has seen.")
@click.option("--quiet", is_flag=True, help="No progress on stderr.")
@common_options
@json_option
def judge_command(
    paths: tuple[Path, ...],
    judge_name: str,
    again: bool,
    quiet: bool,
    workspace: str | None,
    annotator: str | None,
    taxonomy: Path | None,
    blind: bool,
    assisted: bool,
    as_json: bool,
) -> int:
    """Let a judge suggest failure modes in traces.

    Each trace is kept at once, and one that this version of the judge has seen is passed over: a
    run that was broken off goes on where it ended.
    """
    checked_sight(blind, assisted)
    from mast_tui.judges.rules import RulesJudge
    from mast_tui.judges.runner import run_judge

    chosen = load_chosen_taxonomy(taxonomy)
    place = open_workspace(workspace, create=True)
    reports: list[FileReport] = []
    summary = run_judge(
        RulesJudge(),
        chosen,
        _traces(paths, reports),
        place,
        again=again,
        on_progress=(lambda _: None) if quiet else _show,
    )
    place.close()
    document = _document(summary, reports, chosen)
    if as_json:
        print_json(document)
    else:
        _print(summary, document, chosen)
    for failure in document["failed"]:
        say(f"mast-tui judge: {failure['path']}: {failure['reason']}")
    return 1 if document["failed"] else 0


def _traces(paths: tuple[Path, ...], reports: list[FileReport]) -> Iterator[Trace]:
    """The traces under the paths; what is none is collected in ``reports``."""
    from mast_tui.traces.library import scan

    for report in scan(paths):
        if report.format is None:
            reports.append(report)
        yield from report.traces


def _show(progress: Progress) -> None:
    outcome = {
        "judged": f"{progress.suggestions} suggestions",
        "known": "judged before",
        "failed": f"failed: {progress.problem}",
    }[progress.step]
    say(f"{progress.done:5d}  {progress.trace_id}  {outcome}")


def _document(summary: RunSummary, reports: list[FileReport], taxonomy: Taxonomy) -> dict[str, Any]:
    from mast_tui.judges.runner import Step

    failed = [
        {"path": str(path), "reason": reason}
        for path, reason in (
            *((report.path, report.failed) for report in reports),
            *((progress.path, progress.problem) for progress in summary.failed),
        )
        if reason is not None
    ]
    return {
        "judge": summary.judge,
        "taxonomy": summary.taxonomy,
        "run": summary.run_id,
        "traces": {step.value: summary.steps.get(step, 0) for step in Step},
        "suggestions": summary.suggestions,
        "modes": {
            mode.code: summary.by_mode[mode.slug]
            for mode in taxonomy.modes
            if mode.slug in summary.by_mode
        },
        "failed": failed,
        "skipped": [
            {"path": str(r.path), "reason": r.skipped} for r in reports if r.skipped is not None
        ],
    }


def _print(summary: RunSummary, document: dict[str, Any], taxonomy: Taxonomy) -> None:
    counts = document["traces"]
    click.echo(
        one_line(
            f"{summary.judge}: {counts['judged']} traces judged, {counts['known']} known, "
            f"{counts['failed']} failed; {summary.suggestions} suggestions"
        )
    )
    rows = [
        (mode.code, mode.name, str(summary.by_mode[mode.slug]))
        for mode in taxonomy.modes
        if mode.slug in summary.by_mode
    ]
    if rows:
        print_table([("", "mode", "suggestions"), *rows], numbers_from=2)
