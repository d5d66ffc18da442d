"""A judge compared with people: rates with intervals, reasons, and the test of a taught version."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from mast_tui.adjudication import TraceSides
from mast_tui.counts import counted
from mast_tui.figures.judge.compare import JudgeComparison, judges_compared
from mast_tui.figures.judge.input import GoldReference, judge_input_from_workspace
from mast_tui.figures.judge.report import judge_report
from mast_tui.figures.record import Figure, FigureTable
from mast_tui.gold import GoldTrace, Resolution
from mast_tui.judges.comparing import Case, Comparison
from mast_tui.judges.llm.answer.parsing import Malformed, notes_by_mode
from mast_tui.judges.llm.teaching import (
    JudgeVersion,
    default_judge,
    mistakes,
    record_test,
    versions,
)
from mast_tui.labels import Label, VerdictValue
from mast_tui.redaction.filled_masks import masked_quote
from mast_tui.traces.model import Trace
from mast_tui.ui.services.open_workspace import OpenWorkspace
from mast_tui.ui.services.trace_loader import TraceLoader
from mast_tui.workspace import Run
from mast_tui.workspace.registers.hold_out import TracePart

SIGNIFICANCE_LEVEL: Final = 0.05
"""The largest p-value of a significant difference."""

ALL_MODES: Final = ""
"""The id of the row for all modes together."""

MOST_NAMED: Final = 4
"""The most modes that the result of a test names."""


@dataclass(frozen=True, slots=True)
class VersionTest:
    """The paired test of a version against its parent, on traces that no prompt may show.

    Attributes:
        result: The comparison, with the version as its first judge.
        earlier: The number of versions tested before on some of these traces.
    """

    result: JudgeComparison
    earlier: int

    @property
    def verdict(self) -> str:
        """The result of the paired test over all modes, in words."""
        pooled = self.result.table("judges_pooled")
        p_value = pooled.value("p_value")
        if p_value is None:
            return "no verdict to compare"
        return "no clear difference" if p_value > SIGNIFICANCE_LEVEL else _direction(pooled)


@dataclass(frozen=True, slots=True)
class JudgeAlignment:
    """The quality of a judge beside the gold.

    Attributes:
        rates: The figures of the judge, such as its true positive rate, by the slug of the mode.
        version: The judge as a taught version; None for any other judge.
        test: The test of the version against its parent; None without held-out traces.
        mistake_reasons: The reason why a person marked a verdict as wrong, by trace id and mode.
        held_out: The number of traces that were left out, because they are kept for uses such as
            tests.
        test_traces: The ids of the traces that are kept for tests.
        agreed: The trace id and mode of each unanimous or adjudicated verdict.
        is_default: Whether the judge is the default judge.
        unmeasured: The ids of the traces that the rates leave out.
    """

    rates: Mapping[str, FigureTable] = field(default_factory=dict)
    version: JudgeVersion | None = None
    test: VersionTest | None = None
    mistake_reasons: Mapping[tuple[str, str], str] = field(default_factory=dict)
    held_out: int = 0
    test_traces: tuple[str, ...] = ()
    agreed: frozenset[tuple[str, str]] = frozenset()
    is_default: bool = False
    unmeasured: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class RunComparison:
    """The comparison of a run with another run or with the gold.

    Attributes:
        run: The run, which is side A in a comparison of two runs.
        comparison: The counts and cases.
        loader: Reads the traces.
        trace_count: The number of compared traces.
        example_count: The number of traces left out because their text is an example in a prompt.
        hidden_count: The number of traces left out because the annotator may not see them yet.
        seen_verdict_count: The number of verdicts that were decided with a judge on screen.
        counts_seen_verdicts: Whether these verdicts are counted.
        alignment: The quality of the judge; empty in a comparison of two runs.
        work_by_trace: The work of annotators, by trace id; empty in a comparison of two runs.
    """

    run: Run
    comparison: Comparison
    loader: TraceLoader
    trace_count: int
    example_count: int = 0
    hidden_count: int = 0
    seen_verdict_count: int = 0
    counts_seen_verdicts: bool = False
    alignment: JudgeAlignment = field(default_factory=JudgeAlignment)
    work_by_trace: Mapping[str, TraceSides] = field(default_factory=dict)


def read_alignment(
    opened: OpenWorkspace,
    judge: str,
    gold_by_part: Mapping[TracePart, Mapping[str, GoldTrace]],
    *,
    with_seen: bool,
) -> JudgeAlignment:
    """Compare a judge with the gold. This is slow, so call it in a worker.

    If the judge is a taught version, test it on the held-out traces, and record the test.

    Args:
        opened: The workspace.
        judge: The judge.
        gold_by_part: The gold by part of the traces and by trace id, for traces that the annotator
            may see.
        with_seen: Whether to count verdicts that were decided with a judge on screen.

    Raises:
        WorkspaceError: The workspace cannot be read.
    """
    workspace = opened.workspace
    taxonomy = opened.taxonomy
    development_gold = GoldReference(gold_by_part[TracePart.DEVELOPMENT])
    test_gold = gold_by_part[TracePart.TEST]
    judge_input = judge_input_from_workspace(workspace, taxonomy, judge, development_gold)
    report = judge_report(judge_input, with_seen=with_seen)
    version = versions(workspace, taxonomy.ref).get(judge)
    return JudgeAlignment(
        rates={mode.slug: report.table("judge_mode", mode=mode.code) for mode in report.modes}
        | {ALL_MODES: report.table("judge_pooled")},
        version=version,
        test=None if version is None else _test_against_parent(opened, version, test_gold),
        mistake_reasons={
            (mistake.trace_id, mistake.mode): mistake.reason
            for mistake in mistakes(workspace, taxonomy.ref)
            if mistake.judge == judge
        },
        held_out=len(test_gold) + len(gold_by_part[TracePart.CALIBRATION]),
        test_traces=tuple(sorted(test_gold)),
        agreed=_agreed_subjects(development_gold.gold),
        is_default=default_judge(workspace, taxonomy.ref) == judge,
        unmeasured=judge_input.examples,
    )


def _agreed_subjects(gold_by_trace: Mapping[str, GoldTrace]) -> frozenset[tuple[str, str]]:
    return frozenset(
        (trace_id, verdict.mode)
        for trace_id, gold in gold_by_trace.items()
        for verdict in gold.verdicts
        if verdict.source in (Resolution.UNANIMOUS, Resolution.ADJUDICATED)
    )


def _test_against_parent(
    opened: OpenWorkspace, version: JudgeVersion, gold: Mapping[str, GoldTrace]
) -> VersionTest | None:
    """Compare a version with its parent on held-out traces, and record the test.

    Without a verdict to compare, return None and record nothing.
    """
    workspace = opened.workspace
    taxonomy = opened.taxonomy
    version_input, parent_input = (
        judge_input_from_workspace(workspace, taxonomy, judge, GoldReference(gold))
        for judge in (version.judge, version.parent)
    )
    result = judges_compared(version_input, parent_input)
    if not result.table("judges").count("units"):
        return None
    shared_subjects = version_input.verdicts.keys() & parent_input.verdicts.keys()
    trace_ids = sorted({trace_id for trace_id, _ in shared_subjects})
    return VersionTest(result, record_test(workspace, taxonomy.ref, version.judge, trace_ids))


def rate_text(rate: Figure | None) -> str:
    """Return a rate with its interval, such as ``0.61 [.45, .75]``; ``—`` without a rate."""
    if rate is None or rate.value is None:
        return "—"
    if rate.interval is None:
        return f"{rate.value:.2f}"
    low, high = (f"{bound:.2f}".removeprefix("0") for bound in rate.interval)
    return f"{rate.value:.2f} [{low}, {high}]"


def version_test_text(alignment: JudgeAlignment) -> str:
    """Return the result of a taught version's test; empty if the judge is no taught version."""
    test = alignment.test
    if alignment.version is None:
        return ""
    parent_name = alignment.version.parent.removeprefix("judge:")
    if test is None:
        return (
            f"A version of {parent_name}. Not tested: both must judge the same held-out traces, "
            "and these need gold (mast-tui study set --split holds traces out)."
        )
    pooled = test.result.table("judges_pooled")
    version_right = pooled.count("both_right") + pooled.count("only_first_right")
    parent_right = pooled.count("both_right") + pooled.count("only_second_right")
    p_value = pooled.value("p_value")
    p_text = "" if p_value is None else f" (p = {p_value:.3g})"
    traces_text = counted(test.result.table("judges").count("traces"), "held-out trace")
    sentences = [
        f"A version of {parent_name}. Right verdicts on {traces_text}: {version_right} of "
        f"{pooled.count('n')} (before: {parent_right}): {test.verdict}{p_text}.",
        *_changed_modes_sentences(test.result),
    ]
    if test.earlier:
        sentences.append(
            f"{counted(test.earlier, 'earlier version')} had a test on some of these traces, so "
            "this result may look too good. Only new traces show how good the version is."
        )
    return " ".join(sentences)


def _direction(figures: FigureTable) -> str:
    """Return whether the version, the first side of a paired test, was right more often."""
    is_better = figures.count("only_first_right") > figures.count("only_second_right")
    return "better" if is_better else "worse"


def _changed_modes_sentences(result: JudgeComparison) -> Iterator[str]:
    """Yield a sentence on the modes with a significant change, if there are any."""
    figures_by_code = result.index.figures_by_key("judges_mode", subject=result.judges)
    changed_modes = [
        f"{code} {_direction(figures)} (p = {p_value:.3g})"
        for code, figures in figures_by_code.items()
        if (p_value := figures.value("p_adjusted")) is not None and p_value <= SIGNIFICANCE_LEVEL
    ]
    if changed_modes:
        further_count = len(changed_modes) - MOST_NAMED
        further_text = f", and {further_count} more" if further_count > 0 else ""
        yield f"By mode, with adjusted p: {', '.join(changed_modes[:MOST_NAMED])}{further_text}."


def reason_lines(opened: OpenWorkspace, comparison: RunComparison, case: Case) -> list[str]:
    """Return the answers and reasons of the judge and of people on a mode in a trace.

    This is slow, so call it in a worker.

    Args:
        opened: The workspace.
        comparison: The comparison of the judge with the gold.
        case: The mode and the trace; the judge is the first side.

    Raises:
        WorkspaceError: The workspace cannot be read.
    """
    lines = list(_judge_lines(opened, comparison, case)) or ["judge: absent, without a reason"]
    lines += _people_lines(comparison.work_by_trace[case.trace_id], case.mode)
    mistake_reason = comparison.alignment.mistake_reasons.get((case.trace_id, case.mode))
    if mistake_reason:
        lines.append(f"marked as wrong: {mistake_reason}")
    return lines


def _judge_lines(opened: OpenWorkspace, comparison: RunComparison, case: Case) -> Iterator[str]:
    """Yield the judge's labels on a case, and its notes."""
    judge = comparison.run.judge
    judge_label_ids = {mark.label for mark in case.first}
    # The trace is needed only to mask personal data.
    trace = None if opened.masks is None else comparison.loader.read(case.trace_id)
    for label in opened.workspace.labels(
        annotator=judge, trace_id=case.trace_id, taxonomy=opened.taxonomy.ref
    ):
        if label.id in judge_label_ids:
            yield _label_text(label, opened, trace)
    for notes in _model_notes(opened, judge, case):
        shown_notes = notes if opened.masks is None else opened.masks.text(notes)
        yield f"judge's notes: {shown_notes}"


def _people_lines(trace_work: TraceSides, mode: str) -> Iterator[str]:
    """Yield the verdicts and notes of people on a mode of a trace, then the decisions."""
    for side in trace_work.sides:
        mode_labels = [label for label in side.labels.values() if label.mode == mode]
        verdict = VerdictValue.PRESENT if mode_labels else side.verdicts.get(mode)
        notes = "; ".join(label.note for label in mode_labels if label.note)
        if verdict is not None:
            yield f"{side.annotator}: {verdict}" + (f": {notes}" if notes else "")
    for decision in trace_work.decisions:
        if decision.mode == mode and decision.reason:
            yield f"{decision.decided_by} decided {decision.value}: {decision.reason}"


def _label_text(label: Label, opened: OpenWorkspace, trace: Trace | None) -> str:
    """Return a judge's label as a line, masked as the study asks."""
    masks = opened.masks
    evidence = label.evidence
    note = label.note if masks is None else masks.text(label.note)
    if evidence is None:
        return f"judge: present: {note}"
    quote = evidence.quote
    if masks is not None:
        quote = masked_quote(
            masks, trace, quote, evidence.key, evidence.char_start, evidence.char_end
        )
    return f"judge: present “{quote}”: {note}"


def _model_notes(opened: OpenWorkspace, judge: str, case: Case) -> Collection[str]:
    """Return the distinct notes on a mode in a model's answers about a trace.

    Malformed answers are skipped.
    """
    notes: dict[str, None] = {}
    for run in opened.workspace.runs():
        if run.judge != judge:
            continue
        for request in opened.workspace.answers_about(run.id, case.trace_id):
            with suppress(Malformed):
                text = notes_by_mode(request.answer, opened.taxonomy).get(case.mode)
                if text is not None:
                    notes[text] = None
    return notes
