"""The agreement report on screen: people, span ranges, and a judge against a reference.

All figures are computed twice: first without intervals, then with intervals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final, Literal

from mast_tui.adjudication import OrderOf, SpanOrders, read_work_by_trace
from mast_tui.errors import MastError
from mast_tui.figures.agreement.report import Agreement, StudyInput, agreement_figures
from mast_tui.figures.bootstrap import NO_RESAMPLING, RESAMPLING
from mast_tui.figures.judge.confusion import ComparedUnits, compared_units
from mast_tui.figures.judge.input import GoldReference, JudgeInput, judge_input_from_workspace
from mast_tui.figures.judge.report import JudgeReport, judge_report
from mast_tui.figures.record import Sources
from mast_tui.figures.source.agreement import span_input_from_workspace, study_from_workspace
from mast_tui.figures.spans.input import SpanInput
from mast_tui.figures.spans.report import SpanAgreement, span_figures
from mast_tui.gold import no_order
from mast_tui.gold.model import gold_words
from mast_tui.labels import GOLD, annotator_kind, counted_passes, is_judge
from mast_tui.reports.agreement import (
    HiddenTraces,
    agreement_report,
    left_out_by_annotator,
    traces_compared,
)
from mast_tui.reports.judge import against_words, judge_section
from mast_tui.reports.model import Note, Report, ReportSection, Row, Table
from mast_tui.reports.span_agreement import places_section
from mast_tui.safe_text import one_line
from mast_tui.session import (
    finished_or_judged_traces,
    library_view,
    outside_work_text,
    record_reveal,
    visible_traces_for_agreement,
)
from mast_tui.ui.actions.registry import KeyOf, Where
from mast_tui.ui.base_screen import Stopped
from mast_tui.ui.context import ShowDisagreements
from mast_tui.ui.reports.agreement_traces import (
    AgreementTracesScreen,
    ComparedTraces,
    compare_judge,
    compare_people,
    compare_spans,
    listing_of,
)
from mast_tui.ui.reports.screen import (
    HIDDEN_TEXT,
    Listing,
    Page,
    ReportScreen,
    stop_when,
    visible_labels,
)
from mast_tui.ui.services.open_workspace import OpenWorkspace
from mast_tui.ui.suggestion_wording import judge_name
from mast_tui.ui.wording import counted, hidden_traces_text, joined_names
from mast_tui.workspace import Workspace

PassChoice = Literal["first", "last"]

PEOPLE: Final = "people"
SPANS: Final = "spans"
JUDGE: Final = "judge"
"""The groups of figures that are computed separately."""

NOTE_ON_PLACES: Final = "no_spans"
"""The reason of a note that does not apply on screen, where places have their own page."""

COMPARING_TEXT: Final = "Comparing the judge with people …"

NO_PAGE: Final = {
    "modes": "This taxonomy has no modes.",
    "categories": "This taxonomy has no categories.",
    "pairs": "This page needs three people or more. The page of modes has the figures of two.",
}


@dataclass(frozen=True, slots=True)
class PeopleFigures:
    """The agreement of people on whole traces, and its pages.

    Attributes:
        report: The report; None without a visible trace that two people have finished.
        study: The input of the report, or None.
        intervals_pending: Whether intervals are still being computed.
        hidden_ids: The ids of traces that two others have finished and the user has not.
        finished_counts: The number of finished traces of each person whose labels count.
        outside_text: Sentences on finished traces that do not count in the study; empty for none.
        visible_ids: The ids of the traces that the user may see.
        refinished: The number of visible traces that someone has changed and finished again.
        problem: The reason why nothing could be computed, or None.
        sections: The pages, by the ids of their sections.
        notes: The notes of all pages.
    """

    report: Agreement | None = None
    study: StudyInput | None = None
    intervals_pending: bool = False
    hidden_ids: tuple[str, ...] = ()
    finished_counts: Mapping[str, int] = field(default_factory=dict)
    outside_text: str = ""
    visible_ids: frozenset[str] = frozenset()
    refinished: int = 0
    problem: str | None = None
    sections: Mapping[str, ReportSection] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()

    def source_traces(self, sources: Sources) -> ComparedTraces | None:
        """Return the source traces of a figure; None without figures."""
        return None if self.study is None else compare_people(self.study, sources)


@dataclass(frozen=True, slots=True)
class SpanFigures:
    """The agreement of people on span ranges: the report, its input, and its page."""

    report: SpanAgreement | None = None
    span_input: SpanInput | None = None
    section: ReportSection | None = None
    intervals_pending: bool = False
    problem: str | None = None

    def source_traces(self, sources: Sources) -> ComparedTraces | None:
        """Return the source traces of a figure; None without figures."""
        return None if self.span_input is None else compare_spans(self.span_input, sources)


@dataclass(frozen=True, slots=True)
class JudgeFigures:
    """The quality of a judge: the report, its input, and its page.

    Attributes:
        report: The report; None if there is none yet.
        judge_input: The input of the report, or None.
        confusion: The comparison of the judge with its reference, or None.
        section: The page, or None.
        judges: The judges of the workspace.
        references: The annotators (or gold) with whom a judge can be compared.
        omitted_unlabelled: The number of unlabelled traces that the prevalence leaves out, as the
            user may not see the judge's answers on them.
        hidden_ids: The ids of judged traces that others have finished and the user has not.
        intervals_pending: Whether figures or intervals are still being computed.
        problem: The reason why nothing could be computed, or None.
    """

    report: JudgeReport | None = None
    judge_input: JudgeInput | None = None
    confusion: ComparedUnits | None = None
    section: ReportSection | None = None
    judges: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    omitted_unlabelled: int = 0
    hidden_ids: tuple[str, ...] = ()
    intervals_pending: bool = False
    problem: str | None = None

    def source_traces(self, sources: Sources) -> ComparedTraces | None:
        """Return the source traces of a figure; None without figures."""
        if self.judge_input is None or self.confusion is None or self.report is None:
            return None
        reference = replace(self.judge_input.reference, name=against_words(self.report))
        named_input = replace(self.judge_input, reference=reference)
        return compare_judge(named_input, self.confusion, sources.modes)


@dataclass(frozen=True, slots=True)
class JudgeChoice:
    """The judge to compare and its reference; None for the first judge or reference.

    ``with_seen`` includes verdicts that were made with a judge on screen.
    """

    judge: str | None = None
    against: str | None = None
    with_seen: bool = False


class AgreementScreen(ReportScreen):
    """The agreement of people and judges.

    The figures of people are computed at once. The figures of span ranges and of a judge are
    computed when their pages are opened.
    """

    where = Where.AGREEMENT
    traces = AgreementTracesScreen
    keys_left_out = ("look",)  # until there are hidden traces
    pages: ClassVar[Mapping[str, str]] = {
        "modes": "modes",
        "categories": "categories",
        "pairs": "pairs",
        SPANS: "places",
        JUDGE: "judge",
    }

    def __init__(self) -> None:
        super().__init__()
        self.passes: PassChoice = "first"
        self.choice = JudgeChoice()
        self.people: PeopleFigures | None = None
        self.spans: SpanFigures | None = None
        self.judge: JudgeFigures | None = None

    def start(self, opened: OpenWorkspace) -> None:
        """Compute the figures of people again, and those of the judge if its page is open."""
        passes = self.passes
        # Other figures are discarded until their page needs them.
        self.spans = None
        self.judge = None
        self.work.stop(SPANS)
        self.work.stop(JUDGE)
        self.announce_start(opened)
        self.work.run_stages(
            PEOPLE,
            lambda _: compute_people(opened, passes),
            self._receive_people,
            failed=lambda problem: self._receive_people(PeopleFigures(problem=problem)),
        )
        if self.page == JUDGE:
            self.start_page(opened)
        if self.people is None:  # the previous figures stay until there are new ones
            self.show()

    def start_page(self, opened: OpenWorkspace) -> None:
        """Compute the figures of the open page, unless they are known or being computed."""
        people = self.people
        passes = self.passes
        if self.page == SPANS and people is not None and self.spans is None:
            self.spans = SpanFigures(intervals_pending=True)
            self.work.run_stages(
                SPANS,
                lambda stopped: compute_spans(opened, people, passes, stopped),
                self._receive_spans,
                failed=lambda problem: self._receive_spans(SpanFigures(problem=problem)),
            )
        elif self.page == JUDGE and self.judge is None:
            self.judge = JudgeFigures(intervals_pending=True)
            self._start_judge(opened)

    def _start_judge(self, opened: OpenWorkspace) -> None:
        """Compute the figures of the chosen judge in a worker."""
        choice = self.choice
        passes = self.passes
        self.work.run_stages(
            JUDGE,
            lambda stopped: compute_judge(opened, choice, passes, stopped),
            self._receive_judge,
            failed=lambda problem: self._receive_judge(JudgeFigures(problem=problem)),
        )

    def start_changed(self, opened: OpenWorkspace) -> None:
        """Compute again the figures that work on another screen may have changed."""
        if self.people is None:
            return
        # First passes never change, so only the comparison of a judge with the gold may change,
        # and the hidden traces, which a finish or an adjudication shows.
        if self.passes == "last" or self.people.hidden_ids:
            self.start(opened)
        elif self.page == JUDGE:
            self._start_judge(opened)
        else:
            self.work.stop(JUDGE)
            self.judge = None

    def _receive_people(self, figures: PeopleFigures) -> None:
        """Show the figures of people, and a hint about hidden traces or a warning."""
        self.people = figures
        self.hints.clear()
        if self.page == SPANS:
            self.mast.workspace.when_ready(self.start_page)
        elif self.page != JUDGE:  # its figures arrive separately
            self.show()
        warnings = [note.text for note in figures.notes if note.warning]
        if figures.report is not None and figures.hidden_ids:
            key = self.mast.key_of("agreement.look")
            self.hints.say(hidden_traces_text(len(figures.hidden_ids), key))
        elif warnings:
            self.hints.say(warnings[0])

    def _receive_spans(self, figures: SpanFigures) -> None:
        self.spans = figures
        if self.page == SPANS:
            self.show()

    def _receive_judge(self, figures: JudgeFigures) -> None:
        self.judge = figures
        if self.page == JUDGE:
            self.hints.clear()
            self.show()

    @property
    def _hidden_ids(self) -> tuple[str, ...]:
        """The ids of the traces that are left out of the open page, as others' work is hidden."""
        figures = self.judge if self.page == JUDGE else self.people
        return () if figures is None else figures.hidden_ids

    @property
    def can_look(self) -> bool:
        """True if others' work is hidden on some traces of the open page."""
        return bool(self._hidden_ids)

    def title_parts(self) -> tuple[str, ...]:
        """Return the names of the compared sides, the pass, and the number of traces.

        The pass stands before the numbers, because a narrow screen cuts the end.
        """
        pass_text = f"labels at {self.passes} finish"
        if self.page == JUDGE:
            report = None if self.judge is None else self.judge.report
            if report is None:
                return ("Agreement",)
            sides_text = f"{judge_name(report.judge)} against {one_line(against_words(report))}"
            compared_count = report.count("compared")
            parts = ("Agreement", sides_text, f"{counted(compared_count, 'trace')} compared")
            if report.gold is None:
                return (*parts, pass_text)
            # Gold has no single pass, and no sources to name without a compared verdict.
            return (*parts, gold_words(report.gold)) if compared_count else parts
        agreement = None if self.people is None else self.people.report
        if agreement is None:
            return ("Agreement",)
        names = joined_names([one_line(name) for name in agreement.annotators])
        open_text = left_out_by_annotator(agreement, "open")
        open_parts = (one_line(f"open modes: {open_text}"),) if open_text else ()
        return ("Agreement", names, pass_text, traces_compared(agreement), *open_parts)

    def open_page(self) -> Page:
        """Return the open page, or the reason why it has no figures."""
        if self.page == JUDGE:
            return self._judge_page()
        people = self.people
        if people is None:
            return Page()
        if people.report is None:
            command = self.mast.options.command_of_another()
            return Page(text=no_people_text(people, self.mast.key_of, command))
        if self.page == SPANS:
            problem = no_spans_text(self.spans)
            if self.spans is None or problem:
                return Page(text=problem)
            return Page(
                self.spans.section,
                intervals_pending=self.spans.intervals_pending,
                notes=people.notes,
            )
        section = people.sections.get(self.page)
        if section is None:
            return Page(text=NO_PAGE[self.page])
        return Page(
            section,
            intervals_pending=people.intervals_pending,
            notes=people.notes,
            about="\n".join(
                filter(
                    None,
                    (
                        single_trace_text(people.report),
                        self._refinished_text(people.refinished),
                    ),
                )
            ),
        )

    def _refinished_text(self, trace_count: int) -> str:
        """Return a sentence on traces that were finished again; empty without any."""
        if not trace_count:
            return ""
        other_pass = "last" if self.passes == "first" else "first"
        return (
            f"{counted(trace_count, 'trace was', 'traces were')} finished again; "
            f"{self.mast.key_of('agreement.passes')} counts the {other_pass} finish."
        )

    def _judge_page(self) -> Page:
        """Return the page of the judge, or the reason why it has no figures."""
        judge = self.judge
        if judge is None or (judge.report is None and judge.intervals_pending):
            return Page()
        key_of = self.mast.key_of
        problem = no_judge_text(judge, key_of)
        if problem:
            return Page(text=problem)
        notes = []
        if judge.omitted_unlabelled:
            omitted = counted(judge.omitted_unlabelled, "unlabelled trace")
            text = f"{omitted} excluded: the judges' answers are hidden from you."
            notes.append(Note(text, reason="hidden"))
        if judge.report is not None and judge.report.table("answers").count("n"):
            text = "Answers of others count on traces that you have finished or adjudicated."
            notes.append(Note(text, reason="answers"))
        keys = (f"{key_of('agreement.against')} against", f"{key_of('agreement.next_judge')} judge")
        about_lines = [
            _judged_modes_text(judge.judge_input),
            "" if judge.report is None else seen_text(judge.report, key_of),
        ]
        if judge.hidden_ids:
            hidden_text = hidden_traces_text(len(judge.hidden_ids), key_of("agreement.look"))
            about_lines.insert(0, f"{hidden_text}.")
        return Page(
            judge.section,
            intervals_pending=judge.intervals_pending,
            notes=notes,
            about="\n".join(filter(None, about_lines)),
            keys=keys,
        )

    def whole_report(self) -> Callable[[OpenWorkspace, Stopped], Report] | None:
        """Return a function that computes all pages, or None while there are no figures.

        The report includes a judge only if the judge's page was opened.
        """
        passes = self.passes
        choice = self.choice
        if self.people is None or self.people.report is None:
            return None
        with_judge = self.judge is not None and self.judge.report is not None

        def _compute_report(opened: OpenWorkspace, stopped: Stopped) -> Report:
            """Compute the report in a worker.

            Raises:
                MastError: There are no figures.
            """
            # The last figures of each kind have intervals.
            *_, people = compute_people(opened, passes)
            if people.report is None:
                raise MastError("agreement needs two people who have finished the same trace")
            *_, spans = compute_spans(opened, people, passes, stopped)
            revisions = tuple(opened.workspace.revisions_read(opened.taxonomy.ref))
            agreement = replace(people.report, spans=spans.report, revisions=revisions)
            if with_judge:
                *_, judge = compute_judge(opened, choice, passes, stopped)
                agreement = replace(agreement, judge=judge.report)
            return agreement_report(agreement, hidden=_hidden_traces(opened, people))

        return _compute_report

    def list_sources(self, sources: Sources) -> Callable[[OpenWorkspace], Listing | None]:
        """Return a function that lists the source traces of a figure, those with differences first.

        The function returns None if the figure is being computed again.
        """
        figures: PeopleFigures | SpanFigures | JudgeFigures | None = self.people
        if sources.part == SPANS:
            figures = self.spans
        elif sources.part == JUDGE:
            figures = self.judge

        def list_traces(opened: OpenWorkspace) -> Listing | None:
            traces = None if figures is None else figures.source_traces(sources)
            if traces is None:
                return None
            return listing_of(traces, opened)

        return list_traces

    def action_passes(self) -> None:
        """Switch between first and last passes, if the figures of the page depend on them."""
        report = None if self.judge is None else self.judge.report
        if self.page == JUDGE and report is not None and report.gold is not None:
            self.hints.say("Gold uses the last finish; this key works on the other pages")
            return
        self.passes = "first" if self.passes == "last" else "last"
        self.mast.workspace.when_ready(self.start)

    def action_next_judge(self, step: int) -> None:
        """Choose the next judge (``step`` 1) or the previous one (-1) on the page of the judge."""
        judge_names = () if self.judge is None else self.judge.judges
        if self._require_judge_page():
            if len(judge_names) < 2:
                self.hints.say("There is no other judge here")
            else:
                next_name = _neighbour_in_cycle(self.choice.judge, judge_names, step)
                self._start_choice(replace(self.choice, judge=next_name))

    def action_against(self) -> None:
        """Compare the judge with the next reference: gold, then each person."""
        references = () if self.judge is None else self.judge.references
        if self._require_judge_page():
            if len(references) < 2:
                self.hints.say("No one has finished a trace yet: there is no other reference")
            else:
                against = _neighbour_in_cycle(self.choice.against, references, 1)
                self._start_choice(replace(self.choice, against=against))

    def action_seen(self) -> None:
        """Include or exclude verdicts that were made with a judge on screen."""
        if self._require_judge_page():
            self._start_choice(replace(self.choice, with_seen=not self.choice.with_seen))

    def _require_judge_page(self) -> bool:
        """Return whether the page of the judge is open; if not, show its key."""
        is_judge_page = self.page == JUDGE
        if not is_judge_page:
            key = self.mast.key_of("agreement.judge")
            self.hints.say(f"Judges have a page of their own: {key} shows it")
        return is_judge_page

    def _start_choice(self, choice: JudgeChoice) -> None:
        """Compute the figures of another judge or reference."""
        self.choice = choice
        if self.judge is not None:
            # Keep the judges and references, so that the next key can choose among them.
            self.judge = JudgeFigures(
                judges=self.judge.judges, references=self.judge.references, intervals_pending=True
            )
        self.hints.prompt(COMPARING_TEXT)
        self.mast.workspace.when_ready(self._start_judge)

    def action_adjudicate(self) -> None:
        """Adjudicate the disagreements on the mode under the cursor."""
        row = self.row
        modes = () if row is None or row.sources is None else row.sources.modes
        if len(modes) == 1:
            self.mast.go(ShowDisagreements(modes[0]))
        else:
            self.hints.say("Choose a mode: totals have no list of disagreements")

    def action_look(self) -> None:
        """Ask whether to include hidden traces; the user then becomes their adjudicator."""
        if self._hidden_ids:
            self.offer_adjudication(self._hidden_ids)
        elif self.people is not None:
            self.hints.say("No trace is excluded")


def _neighbour_in_cycle(current: str | None, choices: tuple[str, ...], step: int) -> str:
    """Return the choice ``step`` after the current one; the last is followed by the first."""
    index = choices.index(current) if current in choices else 0
    return choices[(index + step) % len(choices)]


# Computation in a worker, over the traces that the annotator may see


def compute_people(opened: OpenWorkspace, passes: PassChoice) -> Iterator[PeopleFigures]:
    """Compute the figures of people over the traces that the user has finished or adjudicated.

    The workspace records that the answers of others on these traces were revealed.

    Args:
        opened: The open workspace.
        passes: The passes that count.

    Yields:
        The figures, first without intervals; only once, without a report, if no trace can be
        compared.
    """
    workspace = opened.workspace
    taxonomy = opened.taxonomy
    visible_ids = visible_traces_for_agreement(workspace, opened.annotator, taxonomy.ref)
    finished_by_name = study_from_workspace(workspace, taxonomy, which=passes).finished
    finish_counts = Counter(trace for traces in finished_by_name.values() for trace in traces)
    shared_traces = {trace for trace, count in finish_counts.items() if count > 1}
    compared_traces = shared_traces & visible_ids
    without_report = PeopleFigures(
        hidden_ids=tuple(sorted(shared_traces - visible_ids)),
        finished_counts={name: len(traces) for name, traces in finished_by_name.items()},
        outside_text=outside_work_text(workspace, workspace.study(taxonomy.ref)),
        visible_ids=visible_ids,
        refinished=_count_refinished(workspace, taxonomy.ref, finished_by_name, compared_traces),
    )
    if not compared_traces:
        yield without_report
        return
    names = sorted(
        name for name, traces in finished_by_name.items() if not compared_traces.isdisjoint(traces)
    )
    study = study_from_workspace(
        workspace, taxonomy, annotators=names, which=passes, traces=visible_ids, with_agents=True
    )
    revealed_traces = compared_traces | {trace for table in study.agents for trace in table.traces}
    record_reveal(workspace, opened.annotator, taxonomy.ref, sorted(revealed_traces))
    for resampling in (NO_RESAMPLING, RESAMPLING):  # without intervals it is fast
        figures = agreement_figures(study, resampling)
        report = agreement_report(figures, hidden=_hidden_traces(opened, without_report))
        yield replace(
            without_report,
            report=figures,
            study=study,
            intervals_pending=not resampling.count,
            sections={section.id: section for section in report.sections},
            notes=tuple(note for note in report.notes if note.reason != NOTE_ON_PLACES),
        )


def _count_refinished(
    workspace: Workspace, taxonomy: str, names: Container[str], trace_ids: Set[str]
) -> int:
    """Count those of the traces whose first and last finished passes differ for one of the people.

    The work of other people does not count in the figures.
    """
    passes = workspace.passes(taxonomy=taxonomy)
    last_passes = counted_passes(passes, "last")
    return len(
        {
            trace_id
            for (name, trace_id), first_pass in counted_passes(passes, "first").items()
            if name in names
            and trace_id in trace_ids
            and last_passes[name, trace_id].number != first_pass.number
        }
    )


def _hidden_traces(opened: OpenWorkspace, people: PeopleFigures) -> HiddenTraces | None:
    """Return the number of traces that are hidden from the user; None without any."""
    hidden_count = len(people.hidden_ids)
    return HiddenTraces(opened.annotator, hidden_count) if hidden_count else None


def compute_spans(
    opened: OpenWorkspace, people: PeopleFigures, passes: PassChoice, stopped: Stopped
) -> Iterator[SpanFigures]:
    """Compute the agreement of people on span ranges; this reads every compared trace.

    Args:
        opened: The open workspace.
        people: The figures of people.
        passes: The passes that count.
        stopped: Returns whether the figures are no longer needed.

    Yields:
        The figures, first without intervals.

    Raises:
        StoppedError: The figures are no longer needed.
    """
    if people.study is None:
        yield SpanFigures()
        return
    orders = SpanOrders(opened.workspace)
    span_input = span_input_from_workspace(
        opened.workspace,
        opened.taxonomy,
        people.study.annotators,
        order_of=stop_when(stopped, orders.spans_of),
        length_of=orders.length_of,
        which=passes,
        traces=people.visible_ids,
    )
    for resampling in (NO_RESAMPLING, RESAMPLING):  # without intervals it is fast
        report = span_figures(span_input, resampling)
        yield SpanFigures(
            report, span_input, places_section(report), intervals_pending=not resampling.count
        )


def compute_judge(
    opened: OpenWorkspace, choice: JudgeChoice, passes: PassChoice, stopped: Stopped
) -> Iterator[JudgeFigures]:
    """Compute the figures of a judge over the traces that the user has finished or adjudicated.

    The workspace records the traces on which the figures reveal hidden answers.

    Args:
        opened: The open workspace.
        choice: The judge and its reference.
        passes: The passes that count.
        stopped: Returns whether the figures are no longer needed.

    Yields:
        The figures, first without intervals.

    Raises:
        StoppedError: The figures are no longer needed.
    """
    without_report = _judges_and_references(opened)
    if not without_report.judges:
        yield without_report
        return
    judge = choice.judge if choice.judge in without_report.judges else without_report.judges[0]
    against = choice.against if choice.against in without_report.references else GOLD
    workspace = opened.workspace
    ref = opened.taxonomy.ref
    visible_ids = visible_traces_for_agreement(workspace, opened.annotator, ref)
    order_of = stop_when(stopped, SpanOrders(workspace))
    complete_input = _judge_input(opened, judge, against, passes, visible_ids, order_of)
    judged_ids = {trace_id for trace_id, _ in complete_input.verdicts}
    reference_labels = visible_labels(opened, against, finished_or_judged_traces(workspace, ref))
    ids_with_visible_suggestions = _ids_with_visible_suggestions(opened)
    _record_revealed_answers(opened, visible_ids & judged_ids, ids_with_visible_suggestions)
    # The prevalence also counts the judge's answers on these traces.
    visible_unlabelled = complete_input.unlabelled & ids_with_visible_suggestions
    judge_input = replace(complete_input, unlabelled=visible_unlabelled)
    for resampling in (NO_RESAMPLING, RESAMPLING):  # without intervals it is fast
        report = judge_report(judge_input, resampling, with_seen=choice.with_seen)
        yield replace(
            without_report,
            report=report,
            judge_input=judge_input,
            confusion=compared_units(judge_input, with_seen=choice.with_seen),
            section=_without_unjudged_modes(judge_section(report), judge_input),
            omitted_unlabelled=len(complete_input.unlabelled - visible_unlabelled),
            hidden_ids=tuple(sorted(reference_labels.hidden & judged_ids)),
            intervals_pending=not resampling.count,
        )


def _without_unjudged_modes(section: ReportSection, judge_input: JudgeInput) -> ReportSection:
    """Remove the rows of modes on which the judge has no verdict, unless it has none at all."""
    judged_modes = {mode for _, mode in judge_input.verdicts}
    unjudged = {mode.slug for mode in judge_input.modes if judged_modes} - judged_modes
    return replace(
        section,
        parts=tuple(
            replace(part, groups=tuple(_rows_except(group, unjudged) for group in part.groups))
            if isinstance(part, Table)
            else part
            for part in section.parts
        ),
    )


def _rows_except(rows: Sequence[Row], ids: Set[str]) -> tuple[Row, ...]:
    return tuple(row for row in rows if row.id not in ids)


def _judge_input(
    opened: OpenWorkspace,
    judge: str,
    against: str,
    passes: PassChoice,
    visible_ids: Collection[str],
    order_of: OrderOf,
) -> JudgeInput:
    """Read the answers of a judge, and those of its reference on the visible traces.

    The span ranges of the gold are ordered on the visible traces only, because orders of spans are
    read from files.
    """
    workspace = opened.workspace
    taxonomy = opened.taxonomy
    reference: GoldReference | str = against
    if against == GOLD:
        gold_by_trace = {
            trace_id: work.gold(
                taxonomy, order_of(trace_id) if trace_id in visible_ids else no_order
            )
            for trace_id, work in read_work_by_trace(workspace, taxonomy).items()
        }
        reference = GoldReference(gold_by_trace)
    return judge_input_from_workspace(
        workspace,
        taxonomy,
        judge,
        reference,
        order_of=order_of,
        which=passes,
        traces=visible_ids,
        viewer=opened.annotator,
    )


def _record_revealed_answers(
    opened: OpenWorkspace, judged_ids: Set[str], ids_with_visible_suggestions: Set[str]
) -> None:
    """Record on which judged traces figures reveal suggestions, or answers of other annotators."""
    ref = opened.taxonomy.ref
    ids_with_work_of_others = {
        a_pass.trace_id
        for a_pass in opened.workspace.passes(taxonomy=ref)
        if a_pass.annotator != opened.annotator and not is_judge(a_pass.annotator)
    }
    with_hidden_suggestions = judged_ids - ids_with_visible_suggestions
    revealed_ids = with_hidden_suggestions | (judged_ids & ids_with_work_of_others)
    record_reveal(opened.workspace, opened.annotator, ref, sorted(revealed_ids))


def _ids_with_visible_suggestions(opened: OpenWorkspace) -> set[str]:
    """Return the ids of the traces on which the user may see the suggestions of judges."""
    view = library_view(opened.workspace, opened.annotator, opened.taxonomy.ref, blind=opened.blind)
    return {trace_id for trace_id, entry in view.items() if entry.suggestions_visible}


def _judges_and_references(opened: OpenWorkspace) -> JudgeFigures:
    """Return figures with only the judges that have judged a trace, and the references."""
    workspace = opened.workspace
    ref = opened.taxonomy.ref
    active_judges = {judgement.judge for judgement in workspace.judgements(taxonomy=ref)}
    finished_by = {a_pass.annotator for a_pass in workspace.passes(taxonomy=ref) if a_pass.finished}
    names = [info.name for info in workspace.annotators()]
    judges = tuple(name for name in names if name in active_judges)
    people = tuple(name for name in names if name in finished_by and annotator_kind(name).is_person)
    return JudgeFigures(judges=judges, references=(GOLD, *people))


def single_trace_text(agreement: Agreement) -> str:
    """Return why most figures are undefined for a single trace, otherwise an empty text."""
    is_single = agreement.index.table("traces").count("finished_by_two") == 1
    return "1 trace: κ, α and AC1 need two or more." if is_single else ""


def no_people_text(people: PeopleFigures, key_of: KeyOf, command: str) -> str:
    """Return why there are no figures of people, and what to do.

    Args:
        people: The state of their figures.
        key_of: Returns how the key of an action is shown.
        command: The command with which another person labels the same traces.
    """
    if people.problem is not None:
        return one_line(people.problem)
    lines = ["Agreement needs two people who have finished the same trace."]
    if people.hidden_ids:
        lines = [HIDDEN_TEXT]
    lines.append("")
    if people.finished_counts:
        lines += [
            f"{one_line(name)} has finished {counted(count, 'trace')}."
            for name, count in people.finished_counts.items()
        ]
    elif people.outside_text:
        lines.append("No one in the study has finished a trace.")
    else:
        key = key_of("annotate.finish")
        lines.append(f"No one has finished a trace yet: {key} finishes an open one.")
    if people.outside_text:
        lines.append(people.outside_text)
    lines.append("")
    if people.hidden_ids:
        lines.append(f"{hidden_traces_text(len(people.hidden_ids), key_of('agreement.look'))}.")
    else:
        another_key = key_of("everywhere.another_annotator")
        lines += ["Another person labels here with", command, f"or presses {another_key}."]
    return "\n".join(lines)


def no_spans_text(spans: SpanFigures | None) -> str:
    """Return why there are no figures on span ranges, and what to do.

    The text is empty if there are figures.
    """
    if spans is not None and spans.problem is not None:
        return one_line(spans.problem)
    if spans is None or spans.report is None:
        return "Reading the traces and counting places …"
    if spans.report.compared:
        return ""
    count = counted(spans.report.not_at_hand, "trace")
    return (
        f"No places can be compared: the files of {count} that two people have finished are "
        "missing.\n\nOpen their folder with mast-tui FOLDER, and come back here."
    )


def _judged_modes_text(judge_input: JudgeInput | None) -> str:
    """Return a sentence on the modes that a judge looks for; empty if it looks for all."""
    if judge_input is None:
        return ""
    judged_modes = {mode for _, mode in judge_input.verdicts}
    codes = [mode.code for mode in judge_input.modes if mode.slug in judged_modes]
    if len(codes) in (0, len(judge_input.modes)):
        return ""
    return f"The judge {judge_name(judge_input.judge)} looks only for {', '.join(codes)}."


def seen_text(report: JudgeReport, key_of: KeyOf) -> str:
    """Return a sentence on verdicts made with suggestions on screen, and on the key for them.

    The sentence is empty without such verdicts.

    Args:
        report: The figures of the judge.
        key_of: Returns the text of an action's key.
    """
    key = key_of("agreement.seen")
    if report.judge_seen_counted:
        return f"Counted: verdicts given with suggestions on screen. {key} excludes them."
    seen_count = report.table("judge_left_out").count("judge_seen")
    if not seen_count:
        return ""
    if not report.table("judge_pooled").count("n"):
        return (
            "No verdict is compared: people gave all verdicts with suggestions on screen; "
            f"{key} counts them."
        )
    verdicts = counted(seen_count, "verdict")
    undecided_count = report.table("judge_left_out").count("unresolved")
    undecided_text = f", and {undecided_count:,} undecided" if undecided_count else ""
    pronoun = "it" if seen_count == 1 else "them"
    return (
        f"Not counted: {verdicts} given with suggestions on screen ({key} counts {pronoun})"
        f"{undecided_text}."
    )


def no_judge_text(judge: JudgeFigures, key_of: KeyOf) -> str:
    """Return why there are no figures of a judge, and what to do; empty if there are figures.

    Args:
        judge: The state of the judge's figures.
        key_of: Returns the text of an action's key.
    """
    if judge.problem is not None:
        return one_line(judge.problem)
    if not judge.judges:
        return (
            f"No judge has labelled a trace here.\n\n{key_of('library.judge')} in the library "
            "runs one on the listed traces; mast-tui judge runs one without the app."
        )
    report = judge.report
    if report is None:
        return COMPARING_TEXT
    has_verdicts = any(report.table(scope).count("n") for scope in ("judge_pooled", "answers"))
    has_passes = any(report.table("effect").values("passes").values())
    if has_verdicts or has_passes:
        return ""
    reference = one_line(report.against)
    condition = (
        "This needs a trace that you have finished or adjudicated, with verdicts of the judge and "
        f"of {reference}."
    )
    if report.table("judge_left_out").count("judge_seen") and not report.judge_seen_counted:
        condition = seen_text(report, key_of)
    elif report.against == GOLD:
        condition += (
            " Gold has the verdicts on which people agree, those that an adjudicator decided "
            f"({key_of('everywhere.adjudicate')}), and those that one person alone gave."
        )
    if judge.hidden_ids:
        condition += f"\n\n{hidden_traces_text(len(judge.hidden_ids), key_of('agreement.look'))}."
    return (
        f"{one_line(report.judge)} cannot be compared with {reference} yet.\n\n{condition}\n\n"
        f"{key_of('agreement.against')} compares it with another reference · "
        f"{key_of('agreement.next_judge')} chooses another judge"
    )
