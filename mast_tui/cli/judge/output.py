"""The output of a judge's run: its progress on stderr, and its summary as a document or text."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from mast_tui.cli.shared.common import print_json, print_line, print_table, say
from mast_tui.cli.shared.workers import progress_bar
from mast_tui.columns import TableColumn
from mast_tui.counts import counted
from mast_tui.judges.runner import Progress, RunSummary, TraceStatus
from mast_tui.safe_text import one_line

if TYPE_CHECKING:
    from mast_tui.configuration import Prices
    from mast_tui.judges.llm.run.estimate import RunEstimate
    from mast_tui.judges.llm.run.running import ModelRunSummary
    from mast_tui.judges.llm.run.setup import Setup
    from mast_tui.labels import QuoteCounts
    from mast_tui.taxonomy.model import Mode, Taxonomy
    from mast_tui.traces.model import FileReport
    from mast_tui.workspace import Usage

WAIT_SECONDS: Final = 10.0
"""The minimum seconds for which the reason of a wait is shown. Answers to earlier requests arrive
meanwhile and must not hide it."""


class LineProgress(AbstractContextManager["LineProgress"]):
    """The progress of a run, as a line for each trace and each wait.

    A quiet run prints nothing.
    """

    def __init__(
        self,
        quiet: bool,
        *,
        hides_findings: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._hides_findings = hides_findings
        self._quiet = quiet
        self._start_time = clock()
        self._clock = clock

    def __exit__(self, *_: object) -> None:
        return None

    def on_trace(self, progress: Progress) -> None:
        """Report a completed trace."""
        if self._quiet:
            return
        suggestions = counted(progress.suggestions, "suggestion")
        outcome = {
            "judged": "judged" if self._hides_findings else suggestions,
            "known": "judged before",
            "failed": f"failed: {progress.problem}",
        }[progress.status]
        say(f"{progress.done:5d}  {progress.trace_id}  {outcome}")

    def on_use(self, usage: Usage) -> None:
        """Ignore the usage of tokens.

        Only a bar shows it.
        """

    def on_wait(self, reason: str) -> None:
        """Report the reason of a wait, and the time since the start."""
        if not self._quiet:
            say(f"{reason} ({elapsed_text(self._clock() - self._start_time)} since the start)")


class BarProgress(AbstractContextManager["BarProgress"]):
    """The progress of a run, as a bar in a terminal."""

    def __init__(
        self,
        traces: int,
        prices: Prices | None,
        clock: Callable[[], float] = time.monotonic,
        *,
        hides_findings: bool = False,
    ) -> None:
        self._prices = prices
        self._suggestions = 0
        self._hides_findings = hides_findings
        self._usage_text = ""
        self._wait_text = ""
        self._wait_start = 0.0
        self._clock = clock
        self._bar = progress_bar(traces, " traces", show_elapsed=True)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def on_trace(self, progress: Progress) -> None:
        """Advance the bar, and print the problem of a failed trace above it."""
        self._suggestions += progress.suggestions
        self._bar.update(self._bar.task_ids[0], completed=progress.done)
        self._update_bar()
        if progress.problem is not None:
            message = f"{progress.path}: {progress.problem}"
            self._bar.console.print(
                one_line(message), markup=False, highlight=False, soft_wrap=True
            )

    def on_use(self, usage: Usage) -> None:
        """Show the tokens and the cost so far."""
        self._usage_text = f"{token_text(usage.tokens_in + usage.tokens_out)} tokens"
        if self._prices is not None:
            cost = self._prices.cost(usage.tokens_in, usage.tokens_out, usage.tokens_cached)
            self._usage_text += f" · cost {money(cost)}"
        if self._clock() - self._wait_start >= WAIT_SECONDS:
            self._wait_text = ""  # the wait is over, and its reason was shown long enough
        self._update_bar()

    def on_wait(self, reason: str) -> None:
        """Show the reason of a wait."""
        self._wait_text = one_line(reason, 80)
        self._wait_start = self._clock()
        self._update_bar()

    def _update_bar(self) -> None:
        """Update the text beside the bar."""
        speed = self._bar.tasks[0].speed
        parts = (
            self._wait_text,
            "" if self._hides_findings else f"{self._suggestions} found",
            self._usage_text,
            f"{speed * 60:.0f} a minute" if speed else "",
        )
        self._bar.update(self._bar.task_ids[0], facts=" · ".join(part for part in parts if part))


def run_progress(
    estimate: RunEstimate | None, prices: Prices | None, *, hides_findings: bool = False
) -> LineProgress | BarProgress:
    """Return the display of progress: a bar in a terminal, else lines.

    Without an estimate the display shows nothing.

    Args:
        estimate: The estimate of the run; None if there is none.
        prices: The prices of tokens; None if unknown.
        hides_findings: Do not show the number of suggestions.
    """
    if estimate is not None and sys.stderr.isatty():
        return BarProgress(estimate.traces, prices, hides_findings=hides_findings)
    return LineProgress(quiet=estimate is None, hides_findings=hides_findings)


class EstimateProgress(AbstractContextManager["EstimateProgress"]):
    """A line in a terminal with the number of traces read for the estimate."""

    def __init__(self, quiet: bool) -> None:
        self._in_terminal = not quiet and sys.stderr.isatty()

    def __exit__(self, *_: object) -> None:
        if self._in_terminal:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def on_trace(self, estimate: RunEstimate) -> None:
        """Show the number of traces read so far."""
        if self._in_terminal and estimate.traces % 10 == 0:
            sys.stderr.write(f"\r{estimate.traces} traces read")
            sys.stderr.flush()


def elapsed_text(seconds: float) -> str:
    """Return a duration as text."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minute:02d}m"
    return f"{minute}m{second:02d}s" if minute else f"{second} s"


def token_text(count: int) -> str:
    """Return a number of tokens as text."""
    if count >= 10_000_000:
        return f"{count / 1e6:,.0f} M"
    if count >= 999_500:  # smaller numbers round to at most 999 k
        return f"{count / 1e6:.1f} M"
    return f"{count / 1000:,.0f} k" if count >= 10_000 else f"{count:,}"


def money(cost: float) -> str:
    """Return an amount of money as text, with more digits for small amounts."""
    return f"{cost:,.2f}" if cost >= 0.1 or cost == 0 else f"{cost:.4f}"


Document = dict[str, Any]

_MAX_REMARKS: Final = 5

_KINDS: Final = ("exact", "spacing", "reworded", "in_parts", "altered", "not_found")
"""The kinds of match of a quote with its trace. The first three count as found."""


def run_document(
    summary: RunSummary, reports: Sequence[FileReport], taxonomy: Taxonomy
) -> Document:
    """Return the summary of a run of any judge as JSON values.

    Args:
        summary: The result of the run.
        reports: The reports on files without traces.
        taxonomy: The taxonomy of the modes.
    """
    return {
        "judge": summary.judge,
        "taxonomy": taxonomy.ref,
        "run": summary.run_id,
        "traces": {status.value: summary.traces[status] for status in TraceStatus},
        "suggestions": summary.by_mode.total(),
        "modes": by_code(summary.by_mode, taxonomy),
        "failed": _failed_json(summary.failed, reports),
        "skipped": _skipped_json(reports),
    }


def model_document(
    summary: ModelRunSummary,
    setup: Setup,
    estimate: RunEstimate | None,
    reports: Sequence[FileReport],
) -> Document:
    """Return the summary of a model's run as JSON values.

    Tokens and cost include those before an interruption.

    Args:
        summary: The result of the run.
        setup: The model and its parameters.
        estimate: The estimate of the run; None if there is none.
        reports: The reports on files without traces.
    """
    document = run_document(summary, reports, setup.taxonomy)
    document["traces"]["left"] = _left_count(summary, estimate)
    usage = summary.usage
    prices = setup.prices
    return document | {
        "quotes": _quotes_json(summary.quotes),
        "tokens": tokens_document(usage),
        "cost": None
        if prices is None
        else prices.cost(usage.tokens_in, usage.tokens_out, usage.tokens_cached),
        "requests": {"run": usage.requests, "now": summary.asked},
        "form": summary.form,
        "model": setup.parameters.model,
        "host": setup.host,
        "examples": list(setup.settings().examples),
        "shortened": summary.shortened,
        "remarks": dict(sorted(summary.remarks.items())),
        "resumed": summary.resumed,
        "ending": summary.ending,
        "allowance": summary.spent_allowance,
        "stopped": summary.stopped,
    }


def _left_count(summary: ModelRunSummary, estimate: RunEstimate | None) -> int | None:
    """Return the number of traces left to judge; None if it is unknown."""
    # ``stopped`` is an error, and ``ending`` a spent allowance. A complete run has neither.
    if summary.stopped is None and summary.ending is None:
        return summary.waiting
    if estimate is None:
        return None
    return max(summary.waiting, estimate.traces - summary.traces.total())


def _quotes_json(quotes: QuoteCounts) -> Document:
    return {
        "all": quotes.all,
        "verified": quotes.found,
        "share": quotes.found / quotes.all if quotes.all else None,
        **{kind: getattr(quotes, kind) for kind in _KINDS},
    }


def without_findings(document: Document) -> Document:
    """Return a summary without the fields that reveal suggestions.

    Remarks are such a field, since they report corrected or dropped findings.
    """
    hidden = ("suggestions", "modes", "quotes", "remarks")
    return document | {name: None for name in hidden if name in document}


def estimate_document(
    estimate: RunEstimate, setup: Setup, sent: str, reports: Sequence[FileReport]
) -> Document:
    """Return the estimate of a run as JSON values.

    Args:
        estimate: The estimate.
        setup: The model and its parameters.
        sent: The notice on the texts to send and their receiver.
        reports: The reports on files without traces.
    """
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
        "stories": {"requests": estimate.story_requests, "tokens": estimate.story_tokens},
        "cost": estimate.cost(setup),
        "shortened": estimate.shortened,
        "examples": list(setup.settings().examples),
        "sent": sent,
        "failed": _failed_json((), reports),
        "skipped": _skipped_json(reports),
    }


def by_code(by_mode: Counter[str], taxonomy: Taxonomy) -> Document:
    """Return counts by the code of the mode, in the taxonomy's order.

    Args:
        by_mode: The counts by slug.
        taxonomy: The taxonomy of the modes.
    """
    return {mode.code: by_mode[mode.slug] for mode in taxonomy.modes if mode.slug in by_mode}


def tokens_document(usage: Usage) -> Document:
    """Return the used tokens as JSON values."""
    return {"in": usage.tokens_in, "out": usage.tokens_out, "cached": usage.tokens_cached}


def _failed_json(traces: Iterable[Progress], reports: Iterable[FileReport]) -> list[Document]:
    return reasons(
        (
            *((report.path, report.failed) for report in reports),
            *((trace.path, trace.problem) for trace in traces),
        )
    )


def _skipped_json(reports: Iterable[FileReport]) -> list[Document]:
    return reasons((report.path, report.skipped) for report in reports)


def reasons(files: Iterable[tuple[Path | str, str | None]]) -> list[Document]:
    """Return the files with a reason as JSON values."""
    return [{"path": str(path), "reason": reason} for path, reason in files if reason is not None]


def print_run(
    document: Document, taxonomy: Taxonomy, *, hides_findings: bool, as_json: bool
) -> Document:
    """Print the summary of a run on stdout.

    Args:
        document: The summary.
        taxonomy: The taxonomy of the modes.
        hides_findings: Leave out the findings.
        as_json: Print one JSON document.

    Returns:
        The printed document.
    """
    if hides_findings:
        document = without_findings(document)
    if as_json:
        print_json(document)
    else:
        _print_counts(document)
        if "quotes" in document:
            _print_model_use(document)
        print_modes(document, taxonomy)
    return document


def _print_counts(document: Document) -> None:
    counts = document["traces"]
    left_text = f", {counts['left']} left" if counts.get("left") else ""
    print_line(
        f"{document['judge']}: {counted(counts['judged'], 'trace')} judged, "
        f"{counts['known']} judged before, {counts['failed']} failed{left_text}; "
        f"{suggestions_text(document)}"
    )


def suggestions_text(document: Document) -> str:
    """Return the number of suggestions as text, or that findings are hidden."""
    if document["suggestions"] is None:
        return "findings are hidden while you work blind or without suggestions"
    return counted(document["suggestions"], "suggestion")


def print_modes(document: Document, taxonomy: Taxonomy) -> None:
    """Print the number of suggestions of each mode.

    Args:
        document: The summary of a run.
        taxonomy: The taxonomy of the modes.
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


def _print_model_use(document: Document) -> None:
    """Print the quotes, usage, examples and remarks of a model's run."""
    quotes = document["quotes"]
    if quotes is not None and quotes["all"]:
        share_text = f"{quotes['verified']} of {quotes['all']} ({quotes['share']:.0%})"
        kind_texts = (f"{quotes[kind]} {kind.replace('_', ' ')}" for kind in _KINDS if quotes[kind])
        print_line(f"quotes found in the traces: {share_text}; {', '.join(kind_texts)}")
    remarks_by_frequency = sorted((document["remarks"] or {}).items(), key=lambda item: -item[1])
    further_count = len(remarks_by_frequency) - _MAX_REMARKS
    shortened = document["shortened"]
    _print_lines(
        _requests_text(document) if document["requests"]["run"] else "",
        f"examples from {', '.join(document['examples'])}; figures leave them out"
        if document["examples"]
        else "",
        f"texts were shortened in {counted(shortened, 'trace')}" if shortened else "",
        *(
            f"{remark} ({traces} traces)" if traces > 1 else remark
            for remark, traces in remarks_by_frequency[:_MAX_REMARKS]
        ),
        f"and {counted(further_count, 'other remark')}; --json lists all"
        if further_count > 0
        else "",
    )
    if "batch" in document:
        _print_batch(document["batch"])
    if document["ending"]:
        print_line(f"ended: {document['ending']}; {document['allowance']}")


def _print_lines(*lines: str) -> None:
    for line in filter(None, lines):
        print_line(line)


def _requests_text(document: Document) -> str:
    tokens = document["tokens"]
    all_requests = document["requests"]["run"]
    earlier_requests = all_requests - document["requests"]["now"]
    earlier_text = f", {earlier_requests} of them earlier" if earlier_requests > 0 else ""
    cached_text = f" ({token_text(tokens['cached'])} of them cached)" if tokens["cached"] else ""
    cost_text = "" if document["cost"] is None else f"; cost {money(document['cost'])}"
    return (
        f"{counted(all_requests, 'request')}{earlier_text}: {token_text(tokens['in'])} "
        f"tokens in{cached_text}, {token_text(tokens['out'])} out{cost_text}"
    )


def _print_batch(batch: Document) -> None:
    """Print the counts of requests and answers in batches."""
    is_of_vendor = batch["batches"] is not None
    strangers_verb = "belongs" if batch["strangers"] == 1 else "belong"
    advice = (
        "the same command sends the missing requests in another batch"
        if is_of_vendor
        else "--write-batch writes the missing requests; without it the command sends them"
    )
    _print_lines(
        f"{counted(batch['written'], 'request')} written to {', '.join(batch['files'])}"
        if batch["files"]
        else "",
        f"{counted(batch['read'], 'answer')} used of {batch['answers']} in the "
        f"{'batch' if is_of_vendor else 'files'}"
        if batch["answers"]
        else "",
        *(
            f"{counted(count, 'request')} without an answer: {problem}"
            for problem, count in batch["troubles"].items()
        ),
        f"{counted(batch['strangers'], 'answer')} {strangers_verb} to no request of this run"
        if batch["strangers"]
        else "",
        f"{counted(batch['broken'], 'line')} could not be read as an answer"
        if batch["broken"]
        else "",
        f"{counted(batch['waiting'], 'trace')} without an answer yet: {advice}"
        if batch["waiting"] and not batch["files"]
        else "",
    )


def report_failures(document: Document) -> int:
    """Report failures on stderr, and return the exit code.

    Missing answers of a batch count as a failure.

    Args:
        document: The summary of a run.

    Returns:
        The exit code: 0 for success, else 1.
    """
    ended_early = document.get("stopped") or document.get("ending")
    if not (_has_any_trace(document) or document["failed"] or ended_early):
        say("mast-tui judge: the paths contain no traces; see `mast-tui inspect PATH`")
        return 1
    for failure in document["failed"]:
        say(f"mast-tui judge: {failure['path']}: {failure['reason']}")
    if document.get("stopped"):
        say(f"mast-tui judge: {document['stopped']}")
    batch = document.get("batch")
    # A run that has written requests is a success, although their answers are missing.
    misses_answers = batch is not None and batch["waiting"] and not batch["written"]
    return 1 if document["failed"] or ended_early or misses_answers else 0


def _has_any_trace(document: Document) -> bool:
    """Check for a trace, a shard of an earlier run, or a batch."""
    shards = document.get("shards") or {}
    return any(document["traces"].values()) or bool(shards.get("known") or document.get("batch"))


def say_estimate(estimate: RunEstimate, setup: Setup) -> None:
    """Report the estimate of a run on stderr.

    Args:
        estimate: The estimate.
        setup: The model and its parameters.
    """
    for line in _estimate_lines(estimate, setup):
        say(line)


def print_estimate(document: Document, estimate: RunEstimate, setup: Setup) -> None:
    """Print the estimate of a dry run, and the notice on what would be sent.

    Args:
        document: The estimate as JSON values.
        estimate: The estimate.
        setup: The model and its parameters.
    """
    for line in (*_estimate_lines(estimate, setup), document["sent"]):
        print_line(line)
    print_line("Nothing was sent and nothing was written (--dry-run).")


def _estimate_lines(estimate: RunEstimate, setup: Setup) -> list[str]:
    """Return the lines on the traces, requests, tokens and cost of a planned run."""
    judged_before = f", {estimate.known} of them judged before" if estimate.known else ""
    lines = [f"{setup.judge}: {counted(estimate.traces, 'trace')}{judged_before}"]
    if estimate.requests:
        cost = estimate.cost(setup)
        cost_text = "no price is known" if cost is None else f"cost about {money(cost)}"
        lines.append(
            f"at most about {counted(estimate.requests, 'request')}, "
            f"{token_text(estimate.tokens_in)} tokens in and "
            f"{token_text(estimate.tokens_out)} out; {cost_text}"
        )
    if estimate.story_requests:
        lines.append(
            f"{counted(estimate.story_requests, 'request')} and "
            f"{token_text(estimate.story_tokens)} tokens of these are for summaries of long "
            "traces"
        )
    if estimate.shortened:
        lines.append(
            f"{estimate.shortened} long texts are shortened; a larger --window-tokens keeps more "
            "of them"
        )
    return lines
