"""A judge beside people: rates with intervals, reasons on both sides, the test of a version."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from mast_tui.adjudication import TraceWords
from mast_tui.counts import counted
from mast_tui.figures.judge.compare import comparison_json, judges_compared
from mast_tui.figures.judge.input import judge_input_from_workspace
from mast_tui.figures.judge.report import judge_json, judge_report
from mast_tui.gold import GoldTrace, Resolution
from mast_tui.judges.comparing import Case
from mast_tui.judges.llm.answer.json_object import Malformed
from mast_tui.judges.llm.answer.parsing import notes_by_mode
from mast_tui.judges.llm.teaching import (
    JudgeVersion,
    default_judge,
    mistakes,
    record_test,
    versions,
)
from mast_tui.labels import Label, VerdictValue
from mast_tui.ui.services.open_workspace import OpenWorkspace
from mast_tui.workspace.registers.hold_out import TracePart, trace_part

SIGNIFICANT: Final = 0.05
"""The p-value up to which a difference counts as shown."""

ALL_MODES: Final = ""
"""The id of the row that sums up all modes."""

MOST_NAMED: Final = 4
"""The most modes that the result of a test names."""


@dataclass(frozen=True, slots=True)
class JudgeRates:
    """The shares of right verdicts where a mode is present (TPR), and where it is absent (TNR)."""

    tpr: str = "—"
    tnr: str = "—"


@dataclass(frozen=True, slots=True)
class VersionTest:
    """A version against the judge that it comes from, on the traces that no prompt may show.

    ``earlier`` counts the versions that were measured on some of these traces before.
    """

    result: Mapping[str, Any]
    earlier: int

    @property
    def verdict(self) -> str:
        """The result of the paired test over all modes, in words."""
        pooled = self.result["pooled"]
        p_value = pooled["p_value"]
        if p_value is None:
            return "no verdict to compare"
        if p_value > SIGNIFICANT:
            return "no better shown"
        more = pooled["only_first_right"] > pooled["only_second_right"]
        return "better" if more else "worse"


@dataclass(frozen=True, slots=True)
class JudgeAlignment:
    """A judge beside the gold.

    ``rates`` are by the slug of the mode. ``version`` is None for a judge that nobody taught;
    ``test`` is None without held-out traces. ``marked`` has the reason by trace id and mode of
    each verdict that a person has marked as wrong. ``held_out`` counts the traces that are left
    out because they measure versions. ``is_default`` is true for the judge that ``J`` asks.
    """

    rates: Mapping[str, JudgeRates] = field(default_factory=dict)
    version: JudgeVersion | None = None
    test: VersionTest | None = None
    marked: Mapping[tuple[str, str], str] = field(default_factory=dict)
    held_out: int = 0
    test_traces: tuple[str, ...] = ()
    agreed: frozenset[tuple[str, str]] = frozenset()
    is_default: bool = False


def read_alignment(
    opened: OpenWorkspace,
    judge: str,
    gold: Mapping[str, GoldTrace],
    *,
    with_seen: bool,
) -> JudgeAlignment:
    """Measure a judge against the gold. Slow: for workers only.

    Args:
        opened: The workspace.
        judge: The judge.
        gold: The gold of the traces that the annotator may see, by trace id.
        with_seen: Whether verdicts count that were settled with a judge on screen.

    Raises:
        WorkspaceError: The workspace cannot be read.
    """
    workspace = opened.workspace
    taxonomy = opened.taxonomy
    parts = {trace_id: trace_part(workspace, trace_id) for trace_id in gold}
    development = {t: g for t, g in gold.items() if parts[t] is TracePart.DEVELOPMENT}
    judged = judge_input_from_workspace(workspace, taxonomy, judge, gold=development)
    report = judge_json(judge_report(judged, with_seen=with_seen))
    tables = {mode["slug"]: mode for mode in report["modes"].values()}
    rates = {
        slug: JudgeRates(
            rate_words(table["true_positive_rate"]), rate_words(table["true_negative_rate"])
        )
        for slug, table in (*tables.items(), (ALL_MODES, report["pooled"]))
    }
    version = versions(workspace, taxonomy.ref).get(judge)
    tests = {t: g for t, g in gold.items() if parts[t] is TracePart.TEST}
    return JudgeAlignment(
        rates,
        version,
        None if version is None else _tested(opened, version, tests),
        {
            (each.trace_id, each.mode): each.reason
            for each in mistakes(workspace, taxonomy.ref)
            if each.judge == judge
        },
        held_out=len(gold) - len(development),
        test_traces=tuple(sorted(tests)),
        agreed=frozenset(
            (trace_id, verdict.mode)
            for trace_id, trace_gold in development.items()
            for verdict in trace_gold.verdicts
            if verdict.source in (Resolution.UNANIMOUS, Resolution.ADJUDICATED)
        ),
        is_default=default_judge(workspace, taxonomy.ref) == judge,
    )


def _tested(
    opened: OpenWorkspace, version: JudgeVersion, gold: Mapping[str, GoldTrace]
) -> VersionTest | None:
    """Compare a version with its parent on held-out traces, and record that they were used."""
    workspace = opened.workspace
    taxonomy = opened.taxonomy
    judged, parent = (
        judge_input_from_workspace(workspace, taxonomy, judge, gold=gold)
        for judge in (version.judge, version.parent)
    )
    result = comparison_json(judges_compared(judged, parent))
    if not result["units"]:
        return None
    traces = sorted({trace_id for trace_id, _ in judged.verdicts.keys() & parent.verdicts.keys()})
    earlier = record_test(workspace, taxonomy.ref, version.judge, traces)
    return VersionTest(result, earlier)


def rate_words(rate: Mapping[str, object]) -> str:
    """Return a rate with its interval, such as ``0.61 [.45, .75]``.

    Args:
        rate: The figure as a JSON document has it.
    """
    value = rate.get("value")
    interval = rate.get("ci")
    if not isinstance(value, int | float):
        return "—"
    if not isinstance(interval, list | tuple):
        return f"{value:.2f}"
    low, high = (f"{end:.2f}".removeprefix("0") for end in interval)
    return f"{value:.2f} [{low}, {high}]"


def test_words(alignment: JudgeAlignment) -> str:
    """Return what became of a version, or nothing for a judge that nobody taught.

    Args:
        alignment: The judge beside the gold.
    """
    version = alignment.version
    test = alignment.test
    if version is None:
        return ""
    name = version.parent.removeprefix("judge:")
    if test is None:
        return (
            f"A version of {name}. No test: neither has judged held-out traces with gold "
            "(mast-tui study set --split keeps some apart)."
        )
    pooled = test.result["pooled"]
    new = pooled["both_right"] + pooled["only_first_right"]
    old = pooled["both_right"] + pooled["only_second_right"]
    p_value = pooled["p_value"]
    p_words = "" if p_value is None else f" (p = {p_value:.3g})"
    lines = [
        f"A version of {name}, on {counted(test.result['traces'], 'held-out trace')}: {old} of "
        f"{pooled['n']} verdicts right before, {new} now: {test.verdict}{p_words}."
    ]
    changed = [
        f"{code} {'better' if mode['only_first_right'] > mode['only_second_right'] else 'worse'} "
        f"(p = {mode['p_adjusted']:.3g})"
        for code, mode in test.result["modes"].items()
        if mode["p_adjusted"] is not None and mode["p_adjusted"] <= SIGNIFICANT
    ]
    if changed:
        more = f", and {len(changed) - MOST_NAMED} more" if len(changed) > MOST_NAMED else ""
        lines.append(f"By mode, adjusted: {', '.join(changed[:MOST_NAMED])}{more}.")
    if test.earlier:
        lines.append(
            f"These traces have measured {counted(test.earlier, 'version')} before: they are used "
            "up, and this figure leans upwards. Only new traces tell."
        )
    return " ".join(lines)


def reasons(
    opened: OpenWorkspace, judge: str, case: Case, human: TraceWords, marked: str
) -> list[str]:
    """Return what the judge and people say of a mode in a trace, and why. Slow: for workers only.

    Args:
        opened: The workspace.
        judge: The judge.
        case: The mode in the trace.
        human: What people say of the trace.
        marked: The reason for which a person has marked the judge as wrong.

    Raises:
        WorkspaceError: The workspace cannot be read.
    """
    workspace = opened.workspace
    ref = opened.taxonomy.ref
    labels = workspace.labels(annotator=judge, trace_id=case.trace_id, taxonomy=ref)
    ids = {mark.label for mark in case.first}
    lines = [_label_words(label) for label in labels if label.id in ids]
    for notes in _notes(opened, judge, case):
        lines.append(f"judge's notes: {notes}")
    if not lines:
        lines.append("judge: absent, without a reason")
    for side in human.sides:
        labels_of_mode = [label for label in side.labels.values() if label.mode == case.mode]
        verdict = VerdictValue.PRESENT if labels_of_mode else side.verdicts.get(case.mode)
        notes = "; ".join(label.note for label in labels_of_mode if label.note)
        if verdict is not None:
            lines.append(f"{side.annotator}: {verdict}" + (f": {notes}" if notes else ""))
    for decision in human.decisions:
        if decision.mode == case.mode and decision.reason:
            lines.append(f"{decision.decided_by} decided {decision.value}: {decision.reason}")
    if marked:
        lines.append(f"marked as wrong: {marked}")
    return lines


def _label_words(label: Label) -> str:
    quote = f" “{label.evidence.quote}”" if label.evidence is not None else ""
    return f"judge: present{quote}: {label.note}"


def _notes(opened: OpenWorkspace, judge: str, case: Case) -> Collection[str]:
    """Return the notes on a mode in the answers of a model about a trace, each once."""
    notes: dict[str, None] = {}
    for run in opened.workspace.runs():
        if run.judge != judge:
            continue
        for asked in opened.workspace.answers_about(run.id, case.trace_id):
            with suppress(Malformed):
                text = notes_by_mode(asked.answer, opened.taxonomy).get(case.mode)
                if text is not None:
                    notes[text] = None
    return notes
