"""What came of a run of a judge, as a document, as text, and as lines on stderr."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mast_tui.cli.judge.progress import money, tokens
from mast_tui.cli.shared.common import print_json, print_line, print_table, say
from mast_tui.columns import TableColumn
from mast_tui.counts import counted
from mast_tui.judges.runner import Progress, RunSummary, TraceStatus

if TYPE_CHECKING:
    from mast_tui.judges.llm.run.estimate import Estimate
    from mast_tui.judges.llm.run.running import ModelRunSummary
    from mast_tui.judges.llm.run.setup import Setup
    from mast_tui.taxonomy.model import Mode, Taxonomy
    from mast_tui.traces.model import FileReport
    from mast_tui.workspace import Usage

Document = dict[str, Any]

_REMARKS_SHOWN: Final = 5

_KINDS: Final = ("exact", "spacing", "reworded", "in_parts", "altered", "not_found")
"""How a quote was found in a trace; the first three count as found."""


def run_document(
    summary: RunSummary, reports: Sequence[FileReport], taxonomy: Taxonomy
) -> Document:
    """What came of a run of any judge."""
    return {
        "judge": summary.judge,
        "taxonomy": taxonomy.ref,
        "run": summary.run_id,
        "traces": {step.value: summary.traces[step] for step in TraceStatus},
        "suggestions": summary.by_mode.total(),
        "modes": by_code(summary.by_mode, taxonomy),
        "failed": _failed(summary.failed, reports),
        "skipped": _skipped(reports),
    }


def model_document(
    summary: ModelRunSummary,
    setup: Setup,
    estimate: Estimate | None,
    reports: Sequence[FileReport],
) -> Document:
    """What came of a run of a model; tokens and cost are those of the whole run.

    How many traces are left is None where the run is not at its end and nobody had counted them.
    """
    document = run_document(summary, reports, setup.taxonomy)
    counted = sum(document["traces"].values())
    at_end = summary.stopped is None and summary.ending is None
    all_traces = None if estimate is None else estimate.traces
    left = summary.waiting if at_end else all_traces and max(summary.waiting, all_traces - counted)
    document["traces"]["left"] = left
    used, prices = summary.usage, setup.prices
    quotes = summary.quotes
    kinds = {kind: getattr(quotes, kind) for kind in _KINDS}
    share = quotes.found / quotes.all if quotes.all else None
    return document | {
        "quotes": {"all": quotes.all, "verified": quotes.found, "share": share, **kinds},
        "tokens": tokens_document(used),
        "cost": None
        if prices is None
        else prices.cost(used.tokens_in, used.tokens_out, used.tokens_cached),
        "requests": {"run": used.requests, "now": summary.asked},
        "form": summary.form,
        "model": setup.parameters.model,
        "host": setup.host,
        "examples": list(setup.settings().examples),
        "shortened": summary.shortened,
        "remarks": dict(sorted(summary.remarks.items())),
        "resumed": summary.resumed,
        "ending": summary.ending,
        "allowance": summary.allowance,
        "stopped": summary.stopped,
    }


def without_findings(document: Document) -> Document:
    """Return a summary without what shows the suggestions; these fields are null then.

    Remarks are among them, as what was mended or left out shows that something was found.
    """
    hidden = ("suggestions", "modes", "quotes", "remarks")
    return document | {name: None for name in hidden if name in document}


def estimate_document(
    estimate: Estimate, setup: Setup, sent: str, reports: Sequence[FileReport]
) -> Document:
    """What a run would take, and what would be ``sent`` where."""
    return {
        "judge": setup.judge,
        "taxonomy": setup.taxonomy.ref,
        "model": setup.parameters.model,
        "host": setup.host,
        "traces": {
            "all": estimate.traces,
            "known": estimate.known,
            "unread": estimate.unread,
            "to_judge": estimate.to_judge,
        },
        "windows": estimate.windows,
        "requests": estimate.requests,
        "tokens": {"in": estimate.tokens_in, "out": estimate.tokens_out},
        "cost": estimate.cost(setup),
        "shortened": estimate.shortened,
        "examples": list(setup.settings().examples),
        "sent": sent,
        "failed": _failed((), reports),
        "skipped": _skipped(reports),
    }


def by_code(by_mode: Counter[str], taxonomy: Taxonomy) -> Document:
    """Return counts by the codes of modes, in the taxonomy's order.

    Args:
        by_mode: The counts by slug.
        taxonomy: That of the modes.
    """
    return {mode.code: by_mode[mode.slug] for mode in taxonomy.modes if mode.slug in by_mode}


def tokens_document(used: Usage) -> Document:
    """Return the tokens that were used."""
    return {"in": used.tokens_in, "out": used.tokens_out, "cached": used.tokens_cached}


def _failed(progress: Iterable[Progress], reports: Iterable[FileReport]) -> list[Document]:
    return reasons(
        (
            *((report.path, report.failed) for report in reports),
            *((one.path, one.problem) for one in progress),
        )
    )


def _skipped(reports: Iterable[FileReport]) -> list[Document]:
    return reasons((report.path, report.skipped) for report in reports)


def reasons(files: Iterable[tuple[Path | str, str | None]]) -> list[Document]:
    """Return the files that have a reason, with it."""
    return [{"path": str(path), "reason": reason} for path, reason in files if reason is not None]


def print_run(document: Document, taxonomy: Taxonomy, *, hidden: bool, as_json: bool) -> Document:
    """Tell what came of a run on stdout.

    Args:
        document: What came of it.
        taxonomy: That of the modes.
        hidden: Do not tell what was found.
        as_json: For programs, not for people.

    Returns:
        What was told.
    """
    if hidden:
        document = without_findings(document)
    if as_json:
        print_json(document)
    else:
        _print_counts(document)
        if "quotes" in document:
            _print_use(document)
        print_modes(document, taxonomy)
    return document


def _print_counts(document: Document) -> None:
    """Print how many traces were judged, and how many suggestions there are of them."""
    counts = document["traces"]
    left = f", {counts['left']} left" if counts.get("left") else ""
    print_line(
        f"{document['judge']}: {counted(counts['judged'], 'trace')} judged, "
        f"{counts['known']} known, {counts['failed']} failed{left}; "
        f"{words_of_suggestions(document)}"
    )


def words_of_suggestions(document: Document) -> str:
    """Return how many suggestions there are, or that they are hidden."""
    if document["suggestions"] is None:
        return "what was found is hidden while you work blind or without suggestions"
    return counted(document["suggestions"], "suggestion")


def print_modes(document: Document, taxonomy: Taxonomy) -> None:
    """Print how many suggestions there are of each mode.

    Args:
        document: What came of a run.
        taxonomy: That of the modes.
    """
    counts = document["modes"] or {}
    columns: tuple[TableColumn[Mode], ...] = (
        TableColumn("", lambda mode: mode.code),
        TableColumn("mode", lambda mode: mode.name),
        TableColumn("suggestions", lambda mode: str(counts[mode.code]), right=True),
    )
    modes = [mode for mode in taxonomy.modes if mode.code in counts]
    if modes:
        print_table(columns, modes)


def _print_use(document: Document) -> None:
    quotes, used = document["quotes"], document["tokens"]
    if quotes is not None and quotes["all"]:
        share = f"{quotes['verified']} of {quotes['all']} ({quotes['share']:.0%})"
        kinds = (f"{quotes[kind]} {kind.replace('_', ' ')}" for kind in _KINDS if quotes[kind])
        print_line(f"quotes found in the traces: {share}; {', '.join(kinds)}")
    cost = "" if document["cost"] is None else f"; cost {money(document['cost'])}"
    cached = f" ({tokens(used['cached'])} of them cached)" if used["cached"] else ""
    now, in_all = document["requests"]["now"], document["requests"]["run"]
    before = f", {in_all - now} of them earlier" if in_all > now else ""
    if in_all:
        print_line(
            f"{counted(in_all, 'request')}{before}: {tokens(used['in'])} tokens in{cached}, "
            f"{tokens(used['out'])} out{cost}"
        )
    if document["examples"]:
        named = ", ".join(document["examples"])
        print_line(f"examples from {named}; they are left out of figures")
    if document["shortened"]:
        print_line(
            f"in {counted(document['shortened'], 'trace')} not all was shown: texts were shortened"
        )
    by_count = sorted((document["remarks"] or {}).items(), key=lambda said: -said[1])
    for remark, traces in by_count[:_REMARKS_SHOWN]:
        print_line(f"{remark} ({traces} traces)" if traces > 1 else remark)
    if len(by_count) > _REMARKS_SHOWN:
        left = counted(len(by_count) - _REMARKS_SHOWN, "other remark")
        print_line(f"and {left}; --json has them all")
    if "batch" in document:
        _print_batch(document["batch"])
    if document["ending"]:
        print_line(f"ended: {document['ending']}; {document['allowance']}")


def _print_batch(batch: Document) -> None:
    """What was written, what was read, and what is left."""
    if batch["files"]:
        named = ", ".join(batch["files"])
        print_line(f"{counted(batch['written'], 'request')} written to {named}")
    if batch["answers"]:
        used = counted(batch["read"], "answer")
        where = "files" if batch["batches"] is None else "batch"
        print_line(f"{used} taken of the {batch['answers']} in the {where}")
    for words, count in batch["troubles"].items():
        print_line(f"{counted(count, 'request')} without an answer: {words}")
    if batch["strangers"]:
        belong = "belongs" if batch["strangers"] == 1 else "belong"
        print_line(f"{counted(batch['strangers'], 'answer')} {belong} to no request of this run")
    if batch["broken"]:
        print_line(f"{counted(batch['broken'], 'line')} could not be read as an answer")
    if batch["waiting"] and not batch["files"]:
        how = "the same command sends what is missing in another batch"
        if batch["batches"] is None:
            how = "--write-batch writes what is missing, and without it the same command asks"
        print_line(f"{counted(batch['waiting'], 'trace')} still to be asked about: {how}")


def failed_files(document: Document) -> int:
    """Report on stderr each failure, and that there was no trace at all.

    Args:
        document: What came of a run.

    Returns:
        The exit code: 1 where anything failed or no trace was found.
    """
    stopped = document.get("stopped") or document.get("ending")
    if not (_any_trace(document) or document["failed"] or stopped):
        say("mast-tui judge: no traces under the paths; `mast-tui inspect PATH` says why")
        return 1
    for failure in document["failed"]:
        say(f"mast-tui judge: {failure['path']}: {failure['reason']}")
    if document.get("stopped"):
        say(f"mast-tui judge: {document['stopped']}")
    batch = document.get("batch")
    left = batch is not None and batch["waiting"] and not batch["written"]
    return 1 if document["failed"] or stopped or left else 0


def _any_trace(document: Document) -> bool:
    """Tell whether a run met a trace, a shard that was there before, or a batch."""
    shards = document.get("shards") or {}
    return any(document["traces"].values()) or bool(shards.get("known") or document.get("batch"))


def say_estimate(estimate: Estimate, setup: Setup) -> None:
    """The estimate on stderr, before a run."""
    for line in _estimate_lines(estimate, setup):
        say(line)


def print_estimate(document: Document, estimate: Estimate, setup: Setup) -> None:
    """The estimate of a dry run, on stdout: with what would be sent where."""
    for line in (*_estimate_lines(estimate, setup), document["sent"]):
        print_line(line)
    print_line("Nothing was sent and nothing was written (--dry-run).")


def _estimate_lines(estimate: Estimate, setup: Setup) -> list[str]:
    before = f", {estimate.known} of them judged before" if estimate.known else ""
    lines = [f"{setup.judge}: {counted(estimate.traces, 'trace')}{before}"]
    if estimate.requests:
        cost = estimate.cost(setup)
        what = "no price is known" if cost is None else f"cost about {money(cost)}"
        lines.append(
            f"at most about {counted(estimate.requests, 'request')}, "
            f"{tokens(estimate.tokens_in)} tokens in and {tokens(estimate.tokens_out)} out; {what}"
        )
    if estimate.shortened:
        lines.append(
            f"{estimate.shortened} long texts are shortened; more of them fits with --window-tokens"
        )
    return lines
