"""The figures of agreement: counted off the screen's thread, within one's Sight.

Each is counted twice: at once without intervals, then with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from mast_tui.labels import AnnotatorKind, annotator_kind
from mast_tui.ui.reports.source import LeftError, Stopped

if TYPE_CHECKING:
    from mast_tui.figures.agreement.report import Report, StudyInput
    from mast_tui.figures.judge.confusion import Compared
    from mast_tui.figures.judge.input import JudgeInput
    from mast_tui.figures.judge.report import JudgeReport
    from mast_tui.figures.spans.input import SpanInput
    from mast_tui.figures.spans.report import SpanReport
    from mast_tui.ui.services.open_workspace import OpenWorkspace

PassChoice = Literal["first", "last"]


@dataclass(frozen=True, slots=True)
class Figures:
    """How far people agree on whole traces.

    ``report`` is None where no two people have finished a trace that this annotator may know
    about, and so is ``study``, which it was made from. ``pending`` says that its intervals are
    still to come. ``hidden`` are ids of traces that two others have finished and this annotator
    has not; ``finished`` counts the finished traces of each person; ``visible`` are the traces of
    which they may know; ``problem`` is why nothing could be counted.
    """

    report: Report | None = None
    study: StudyInput | None = None
    pending: bool = False
    hidden: tuple[str, ...] = ()
    finished: Mapping[str, int] = field(default_factory=dict)
    visible: frozenset[str] = frozenset()
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class SpanFigures:
    """How far people agree on places: the report and what it was made from."""

    report: SpanReport | None = None
    given: SpanInput | None = None
    pending: bool = False
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class JudgeFigures:
    """How good a judge is: the report and what it was made from.

    ``judges`` are those of the workspace and ``references`` what they can be held against.
    ``hidden`` traces that nobody has labelled are left out of the corrected prevalence, as this
    annotator may not know what judges say of them.
    """

    report: JudgeReport | None = None
    given: JudgeInput | None = None
    found: Compared | None = None
    judges: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    hidden: int = 0
    pending: bool = False
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class JudgeChoice:
    """Which judge is held against what; None is the first there is."""

    judge: str | None = None
    against: str | None = None
    with_seen: bool = False


def count_figures(opened: OpenWorkspace, passes: PassChoice) -> Iterator[Figures]:
    """The figures over the traces that the annotator has finished or adjudicated.

    That they are shown is recorded, as they tell what others said.
    """
    from mast_tui.figures.agreement.report import agreement_report
    from mast_tui.figures.source.agreement import study_from_workspace
    from mast_tui.session import SessionError, record_reveal, visible_traces_for_agreement
    from mast_tui.workspace import WorkspaceError

    workspace, taxonomy = opened.workspace, opened.taxonomy
    try:
        visible = visible_traces_for_agreement(workspace, opened.annotator, taxonomy.ref)
        everywhere = study_from_workspace(workspace, taxonomy, which=passes)
        people = _finishers(everywhere.finished)
        shared = {trace for trace, names in people.items() if len(names) > 1}
        finished = {name: len(traces) for name, traces in everywhere.finished.items()}
        hidden = tuple(sorted(shared - visible))
        if not shared & visible:
            yield Figures(hidden=hidden, finished=finished, visible=visible)
            return
        names = sorted({name for trace in shared & visible for name in people[trace]})
        study = study_from_workspace(
            workspace, taxonomy, annotators=names, which=passes, traces=visible
        )
        record_reveal(workspace, opened.annotator, taxonomy.ref, sorted(shared & visible))
        at_once = Figures(agreement_report(study, rounds=0), study, True, hidden, finished, visible)
        yield at_once
        yield replace(at_once, report=agreement_report(study), pending=False)
    except (SessionError, WorkspaceError, ValueError) as error:
        yield Figures(problem=str(error))


def _finishers(finished: Mapping[str, frozenset[str]]) -> dict[str, set[str]]:
    """Who has finished each trace."""
    people: dict[str, set[str]] = {}
    for name, traces in finished.items():
        for trace in traces:
            people.setdefault(trace, set()).add(name)
    return people


def count_spans(
    opened: OpenWorkspace, figures: Figures, passes: PassChoice, stopped: Stopped
) -> Iterator[SpanFigures]:
    """The same people on the places that they marked; every trace that is compared is read.

    Raises ``LeftError`` where nobody waits any more.
    """
    from mast_tui.adjudication.trace_files import SpanPlaces, traces_from_files
    from mast_tui.figures.source.spans import span_input_from_workspace
    from mast_tui.figures.spans.report import span_report
    from mast_tui.gold import Order
    from mast_tui.workspace import WorkspaceError

    if figures.study is None:
        yield SpanFigures()
        return
    try:
        places = SpanPlaces(traces_from_files(opened.workspace))

        def order_of(trace_id: str) -> tuple[Order, int] | None:
            if stopped():
                raise LeftError
            return places.order_of(trace_id)

        given = span_input_from_workspace(
            opened.workspace,
            opened.taxonomy,
            figures.study.annotators,
            order_of=order_of,
            length_of=places.length_of,
            which=passes,
            traces=figures.visible,
        )
        yield SpanFigures(span_report(given, rounds=0), given, pending=True)
        yield SpanFigures(span_report(given), given)
    except (WorkspaceError, OSError, ValueError) as error:
        yield SpanFigures(problem=str(error))


def count_judge(
    opened: OpenWorkspace, choice: JudgeChoice, passes: PassChoice, stopped: Stopped
) -> Iterator[JudgeFigures]:
    """How good a judge is over the traces that the annotator has finished or adjudicated.

    That it is shown is recorded where it tells what was hidden. Raises ``LeftError`` where nobody
    waits any more.
    """
    from mast_tui.session import SessionError
    from mast_tui.workspace import WorkspaceError

    try:
        yield from _count_judge(opened, choice, passes, stopped)
    except (SessionError, WorkspaceError, OSError, ValueError) as error:
        yield JudgeFigures(problem=str(error))


def _count_judge(
    opened: OpenWorkspace, choice: JudgeChoice, passes: PassChoice, stopped: Stopped
) -> Iterator[JudgeFigures]:
    from mast_tui.adjudication import orders_from_files, words_by_trace
    from mast_tui.figures.judge.confusion import compared
    from mast_tui.figures.judge.input import GOLD, judge_input_from_workspace
    from mast_tui.figures.judge.report import judge_report
    from mast_tui.gold import GoldTrace, Order, no_order
    from mast_tui.session import library_view, record_reveal, visible_traces_for_agreement

    workspace, taxonomy = opened.workspace, opened.taxonomy
    judges, references = _who_there_is(opened)
    if not judges:
        yield JudgeFigures(references=references)
        return
    judge = choice.judge if choice.judge in judges else judges[0]
    against = choice.against if choice.against in references else GOLD
    visible = visible_traces_for_agreement(workspace, opened.annotator, taxonomy.ref)
    view = library_view(workspace, opened.annotator, taxonomy.ref, blind=opened.blind)
    allowed = {trace for trace, entry in view.items() if entry.suggestions_visible}
    words = words_by_trace(workspace, taxonomy)

    def no_orders(_trace_id: str) -> Order:
        return no_order

    def made(order_of: Callable[[str], Order]) -> JudgeInput:
        gold: dict[str, GoldTrace] = {
            trace: said.gold(taxonomy, order_of(trace) if trace in visible else no_order)
            for trace, said in words.items()
        }
        return judge_input_from_workspace(
            workspace, taxonomy, judge, against,
            gold=gold, order_of=order_of, which=passes, traces=visible,
        )  # fmt: skip

    given = made(no_orders)
    hidden = len(given.unlabelled - allowed)
    judged = {trace for trace, _ in given.verdicts}
    spoken = {
        one.trace_id
        for one in workspace.passes(taxonomy=taxonomy.ref)
        if one.annotator != opened.annotator
        and annotator_kind(one.annotator) is not AnnotatorKind.JUDGE
    }
    told = {trace for trace in visible & judged if trace in spoken or trace not in allowed}
    record_reveal(workspace, opened.annotator, taxonomy.ref, sorted(told))
    given = replace(given, unlabelled=given.unlabelled & allowed)
    found = compared(given, with_seen=choice.with_seen)
    yield JudgeFigures(
        judge_report(given, rounds=0, with_seen=choice.with_seen),
        given, found, judges, references, hidden, pending=True,
    )  # fmt: skip
    from_files = orders_from_files(workspace)

    def order_of(trace_id: str) -> Order:
        order = from_files(trace_id)

        def asked(key: str) -> int | None:
            if stopped():
                raise LeftError
            return order(key)

        return asked

    given = replace(made(order_of), unlabelled=given.unlabelled)
    found = compared(given, with_seen=choice.with_seen)
    report = judge_report(given, with_seen=choice.with_seen)
    yield JudgeFigures(report, given, found, judges, references, hidden)


def _who_there_is(opened: OpenWorkspace) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The judges that have judged anything, and gold with everybody who has finished a trace."""
    from mast_tui.figures.judge.input import GOLD

    workspace, ref = opened.workspace, opened.taxonomy.ref
    at_work = {one.judge for one in workspace.judgements(taxonomy=ref)}
    done = {one.annotator for one in workspace.passes(taxonomy=ref) if one.finished}
    names = [info.name for info in workspace.annotators()]
    judges = tuple(name for name in names if name in at_work)
    people = tuple(
        name for name in names if name in done and annotator_kind(name) is not AnnotatorKind.JUDGE
    )
    return judges, (GOLD, *people)
