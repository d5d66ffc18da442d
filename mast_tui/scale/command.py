"""``mast-tui judge --out`` with rules, and the printed results of any run into shards."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mast_tui.cli.judge.output import (
    Document,
    by_code,
    money,
    print_modes,
    reasons,
    report_failures,
    suggestions_text,
    token_text,
    tokens_document,
    without_findings,
)
from mast_tui.cli.shared.asking import why_judges_hidden
from mast_tui.cli.shared.common import load_taxonomy_or_mast, print_json, print_line
from mast_tui.configuration import Prices
from mast_tui.counts import counted
from mast_tui.scale.judging import JudgeUnits, ShardRun, judge_into_shards
from mast_tui.scale.shards import ShardFolder

if TYPE_CHECKING:
    from mast_tui.cli.judge.command import JudgeRequest
    from mast_tui.cli.shared.workers import WorkerPool
    from mast_tui.judges.rules import RulesJudge
    from mast_tui.taxonomy.model import Taxonomy


def judge_with_rules(request: JudgeRequest, judge: RulesJudge, pool: WorkerPool) -> int:
    """Judge traces by rules, write the findings to shards, and return the exit code.

    Args:
        request: The options of the command.
        judge: The rules.
        pool: The workers, and the progress bar.

    Raises:
        ShardsError: The folder cannot be used.
    """
    folder = shard_folder(request)
    taxonomy = load_taxonomy_or_mast(request.common.taxonomy)
    run = judge_into_shards(
        JudgeUnits(judge),
        taxonomy,
        request.paths,
        folder,
        pool.workers,
        files=request.shard_files,
        tell=partial(show_progress, pool),
    )
    return print_shards(request, run, folder.address, taxonomy)


def shard_folder(request: JudgeRequest) -> ShardFolder:
    """Return the folder of ``--out``."""
    assert request.out is not None
    return ShardFolder(request.out)


def show_progress(pool: WorkerPool, run: ShardRun) -> None:
    """Show the number of judged traces, and the share of shards that exist.

    Args:
        pool: The pool with the progress bar.
        run: The counts of the run so far.
    """
    pool.set_counts(run.traces, len(run.failed))
    existing_shards = run.known + run.written  # earlier runs wrote the known ones
    pool.show_progress(existing_shards, run.shards)


def print_shards(
    request: JudgeRequest,
    run: ShardRun,
    folder: str,
    taxonomy: Taxonomy,
    prices: Prices | None = None,
) -> int:
    """Print the results of a run into shards, and return the exit code.

    Args:
        request: The options of the command.
        run: The counts of the run.
        folder: The folder or URL of the shards.
        taxonomy: The taxonomy of the modes.
        prices: The prices of the model's tokens; None if they are unknown.
    """
    document = _shards_document(run, folder, taxonomy)
    usage = run.usage
    if prices is not None:
        document["cost"] = prices.cost(usage.tokens_in, usage.tokens_out, usage.tokens_cached)
    if why_judges_hidden(request.common, taxonomy):
        document = without_findings(document)
    if request.as_json:
        print_json(document)
    else:
        _print_counts(document)
        print_modes(document, taxonomy)
    return report_failures(document)


def _shards_document(run: ShardRun, folder: str, taxonomy: Taxonomy) -> Document:
    """Return the results of a run; all fields but ``shards`` count what this run wrote."""
    return {
        "judge": run.judge,
        "taxonomy": taxonomy.ref,
        "out": folder,
        "shards": {"all": run.shards, "written": run.written, "known": run.known},
        "traces": {"judged": run.traces},
        "suggestions": run.by_mode.total(),
        "modes": by_code(run.by_mode, taxonomy),
        "requests": run.usage.requests,
        "tokens": tokens_document(run.usage),
        "stopped": run.stopped,
        "failed": reasons(run.failed),
        "skipped": reasons(run.skipped),
    }


def _print_counts(document: Document) -> None:
    """Print the numbers of shards, traces, suggestions, requests and tokens."""
    shards = document["shards"]
    # Hidden suggestions have no number, and a sentence of their own follows.
    separator = ";" if document["suggestions"] is None else ","
    print_line(
        f"{document['judge']}: {counted(shards['written'], 'shard')} of {shards['all']} "
        f"written to {document['out']}, {shards['known']} existed; "
        f"{counted(document['traces']['judged'], 'trace')} judged{separator} "
        f"{suggestions_text(document)}"
    )
    if document["requests"]:
        token_counts = document["tokens"]
        cost_text = f"; cost {money(document['cost'])}" if "cost" in document else ""
        print_line(
            f"{counted(document['requests'], 'request')}: {token_text(token_counts['in'])} tokens "
            f"in, {token_text(token_counts['out'])} out{cost_text}"
        )
