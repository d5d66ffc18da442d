"""What ``mast-tui agree`` puts together from several rooms: verdicts, places, a judge, gold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from mast_tui.adjudication import SpanOrders, words_by_trace
from mast_tui.figures.agreement.report import agreement_report
from mast_tui.figures.judge.compare import judges_compared
from mast_tui.figures.judge.input import JudgedBeyond, judge_input_from_workspace
from mast_tui.figures.judge.report import judge_report
from mast_tui.figures.source.agreement import study_from_workspace
from mast_tui.figures.source.spans import span_input_from_workspace
from mast_tui.figures.spans.input import SpanInput
from mast_tui.figures.spans.report import span_report
from mast_tui.gc_tuning import uncollected
from mast_tui.gold import no_orders
from mast_tui.labels import AnnotatorKind
from mast_tui.workspace import TraceRecord

if TYPE_CHECKING:
    from mast_tui.figures.agreement.report import Report, StudyInput
    from mast_tui.figures.judge.input import JudgeInput
    from mast_tui.figures.judge.report import JudgeReport
    from mast_tui.figures.spans.report import SpanReport
    from mast_tui.gold import GoldKind
    from mast_tui.labels import Pass
    from mast_tui.passes import Which
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.workspace import Workspace

CountBeyond = Callable[[str, Sequence[TraceRecord]], JudgedBeyond]
"""Counts a judge's verdicts on traces that are not among those given."""


def _everywhere(_trace_id: str) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for.

    Without ``annotators`` all people are compared; ``judge`` is a judge's whole name, and
    ``other_judge`` that of one to compare it with. ``against`` is ``gold`` or a name, ``gold`` how
    much of the gold counts. With ``places`` what people and judges marked is compared too.
    ``traces`` are those that may be seen, ``blind`` is whether they are shown to somebody who
    labels blind, and ``may_see_judges`` tells of which traces this person may know what judges
    say. ``count_beyond`` counts what the judge said of other traces than those of the workspace.
    """

    annotators: Sequence[str] | None = None
    judge: str | None = None
    other_judge: str | None = None
    against: str = "gold"
    gold: GoldKind = "all"
    which: Which = "first"
    rounds: int = 2000
    seed: int = 0
    places: bool = True
    traces: Container[str] | None = None
    blind: bool = False
    may_see_judges: Callable[[str], bool] = _everywhere
    count_beyond: CountBeyond | None = None


@uncollected()
def whole_report(workspace: Workspace, taxonomy: Taxonomy, wanted: Wanted) -> Report:
    """The report of ``agree --json``, with its parts on spans and on a judge.

    Raises ``WorkspaceError`` for a name that nobody here has.
    """
    passes = workspace.passes(taxonomy=taxonomy.ref)
    study = study_input(workspace, taxonomy, wanted, passes)
    # Before the figures, so that a wrong name is told at once.
    judged = judge_input(workspace, taxonomy, wanted)
    other = judge_input(workspace, taxonomy, replace(wanted, judge=wanted.other_judge))
    report = agreement_report(study, rounds=wanted.rounds, seed=wanted.seed)
    if wanted.places:
        report["spans"] = _spans(workspace, taxonomy, wanted, study, passes)
    if judged is not None:
        report["judge"] = _judge(judged, wanted)
    if judged is not None and other is not None:
        report["judges"] = judges_compared(judged, other, rounds=wanted.rounds, seed=wanted.seed)
    return report


def study_input(
    workspace: Workspace,
    taxonomy: Taxonomy,
    wanted: Wanted,
    passes: Sequence[Pass] | None = None,
) -> StudyInput:
    """The verdicts that are compared; ``passes`` are all of the taxonomy, where they were read."""
    return study_from_workspace(
        workspace,
        taxonomy,
        annotators=wanted.annotators,
        which=wanted.which,
        traces=wanted.traces,
        passes=passes,
    )


def judge_input(workspace: Workspace, taxonomy: Taxonomy, wanted: Wanted) -> JudgeInput | None:
    """The judge beside what it is measured by; None where no judge is asked for."""
    if wanted.judge is None:
        return None
    order_of = SpanOrders(workspace) if wanted.places else no_orders
    gold = None
    if wanted.against == "gold":
        gold = {
            trace: words.gold(taxonomy, order_of(trace))
            for trace, words in words_by_trace(workspace, taxonomy).items()
        }
    found = judge_input_from_workspace(
        workspace,
        taxonomy,
        wanted.judge,
        wanted.against,
        gold=gold,
        order_of=order_of,
        which=wanted.which,
        traces=wanted.traces,
        settled_only=wanted.gold == "settled",
    )
    if wanted.count_beyond is not None:
        judged = {trace for trace, _ in found.verdicts}
        known = [record for record in workspace.traces() if record.trace_id in judged]
        found = replace(found, beyond=wanted.count_beyond(found.judge, known))
    return replace(found, unlabelled=frozenset(filter(wanted.may_see_judges, found.unlabelled)))


def _judge(given: JudgeInput, wanted: Wanted) -> JudgeReport:
    report = judge_report(given, rounds=wanted.rounds, seed=wanted.seed)
    if wanted.blind:
        # It tells what the judge says of traces that this person has yet to label.
        report["prevalence"] = {}
    return report


def _spans(
    workspace: Workspace,
    taxonomy: Taxonomy,
    wanted: Wanted,
    study: StudyInput,
    passes: Sequence[Pass],
) -> SpanReport:
    given = _without_orders(workspace, study)
    if given is None:
        orders = SpanOrders(workspace)
        given = span_input_from_workspace(
            workspace,
            taxonomy,
            study.annotators,
            order_of=orders.spans_of,
            length_of=orders.length_of,
            which=wanted.which,
            traces=wanted.traces,
            read_passes=passes,
        )
    return span_report(given, rounds=wanted.rounds, seed=wanted.seed)


def _without_orders(workspace: Workspace, study: StudyInput) -> SpanInput | None:
    """Return the input where no trace that two have finished was ever read; None where one was.

    Labels are often imported without their traces: then nothing needs to be read once more.
    """
    finished = [study.finished.get(name, frozenset()) for name in study.annotators]
    often = Counter(trace for traces in finished for trace in traces)
    shared = {trace for trace, times in often.items() if times > 1}
    for column in ("spans", "path"):
        read = workspace.read_columns("traces", ("id",), list, given=column)
        if not shared.isdisjoint(trace for (trace,) in read):
            return None
    return SpanInput(
        study.taxonomy_ref,
        study.modes,
        study.annotators,
        study.pass_label,
        (),
        {name: len(traces) for name, traces in zip(study.annotators, finished, strict=True)},
        not_at_hand=len(shared),
        examples=study.examples,
    )


def judge_named(workspace: Workspace, text: str) -> str:
    """The judge with this name, or the only one whose name begins so.

    ``judge:`` may be left out. Raises ``ClickException`` where none or several begin so.
    """
    judges = [one.name for one in workspace.annotators() if one.kind is AnnotatorKind.JUDGE]
    if text in judges:
        return text
    found = [name for name in judges if name.startswith((text, f"judge:{text}"))]
    if len(found) == 1:
        return found[0]
    if found:
        raise click.ClickException(f"--judge {text!r} may be {', '.join(found)}; give more of it")
    there = f"there are: {', '.join(judges)}" if judges else "'mast-tui judge' has one look first"
    raise click.ClickException(f"no judge {text!r} in this workspace; {there}")
