"""The report on agreement for the screen: which pass, whose traces, which judge against whom.

Each of its figures is counted twice: at once without intervals, then with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final, Literal

from mast_tui.adjudication import SpanOrders, words_by_trace
from mast_tui.errors import MastError
from mast_tui.figures.agreement.report import Agreement, StudyInput, agreement_figures
from mast_tui.figures.bootstrap import ROUNDS
from mast_tui.figures.judge.confusion import Compared, compared
from mast_tui.figures.judge.input import GOLD, JudgeInput, judge_input_from_workspace
from mast_tui.figures.judge.report import JudgeReport, judge_report
from mast_tui.figures.source.agreement import study_from_workspace
from mast_tui.figures.source.spans import span_input_from_workspace
from mast_tui.figures.spans.input import SpanInput
from mast_tui.figures.spans.report import SpanAgreement, span_figures
from mast_tui.gold import Order, no_order
from mast_tui.labels import AnnotatorKind, annotator_kind
from mast_tui.reports.agreement import agreement_report, traces_compared
from mast_tui.reports.judge import against_words, judge_section
from mast_tui.reports.model import Behind, Note, Report, Section
from mast_tui.reports.span_agreement import places_section
from mast_tui.safe_text import one_line
from mast_tui.session import library_view, record_reveal, visible_traces_for_agreement
from mast_tui.ui.actions.registry import KeyOf, Where
from mast_tui.ui.context import ShowDisagreements
from mast_tui.ui.reports.agreement_traces import (
    AgreementTracesScreen,
    Cases,
    behind_judge,
    behind_people,
    behind_spans,
    listing_of,
)
from mast_tui.ui.reports.screen import (
    LeftError,
    Listing,
    Page,
    ReportScreen,
    Stopped,
    hidden_traces_text,
    until,
)
from mast_tui.ui.services.open_workspace import OpenWorkspace
from mast_tui.ui.suggestion_wording import judge_name
from mast_tui.ui.wording import counted, joined, trace_names

PassChoice = Literal["first", "last"]

PEOPLE: Final = "people"
SPANS: Final = "spans"
JUDGE: Final = "judge"
"""What is counted apart; places and judges have pages of their own."""

ELSEWHERE: Final = ("no_spans", "no_judge")
"""Notes of the whole report that other pages of the screen make untrue."""

HOLDING: Final = "Holding the judge against what people say …"

NO_PAGE: Final = {
    "modes": "This taxonomy has no modes.",
    "categories": "This taxonomy has no categories.",
    "pairs": "Two people have finished the same traces: the page of modes has their figures. "
    "Pairs are told apart where there are three people or more.",
}


@dataclass(frozen=True, slots=True)
class People:
    """How far people agree on whole traces: the figures, and the pages that were made of them.

    ``report`` is None where no two people have finished a trace that this annotator may know
    about, and so is ``study``, which it was made from. ``pending`` says that its intervals are
    still to come. ``hidden`` are ids of traces that two others have finished and this annotator
    has not; ``finished`` counts the finished traces of each person; ``visible`` are the traces of
    which they may know; ``problem`` is why nothing could be counted.
    """

    report: Agreement | None = None
    study: StudyInput | None = None
    pending: bool = False
    hidden: tuple[str, ...] = ()
    finished: Mapping[str, int] = field(default_factory=dict)
    visible: frozenset[str] = frozenset()
    problem: str | None = None
    sections: Mapping[str, Section] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class SpanFigures:
    """How far people agree on places: the report, its page, and what it was made from."""

    report: SpanAgreement | None = None
    given: SpanInput | None = None
    section: Section | None = None
    pending: bool = False
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class JudgeFigures:
    """How good a judge is: the report, its page, and what it was made from.

    ``judges`` are those of the workspace and ``references`` what they can be held against.
    ``hidden`` traces that nobody has labelled are left out of the corrected prevalence, as this
    annotator may not know what judges say of them.
    """

    report: JudgeReport | None = None
    given: JudgeInput | None = None
    found: Compared | None = None
    section: Section | None = None
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


class AgreementScreen(ReportScreen):
    """How far people and judges agree.

    People are counted at once, places and a judge when their pages are first looked at.
    """

    where = Where.AGREEMENT
    traces = AgreementTracesScreen
    keys_left_out = ("look",)  # until traces are known that are hidden
    pages: ClassVar[Mapping[str, str]] = {
        "modes": "modes",
        "categories": "categories",
        "pairs": "pairs",
        SPANS: "spans",
        JUDGE: "judge",
    }

    def __init__(self) -> None:
        super().__init__()
        self.passes: PassChoice = "first"
        self.choice = JudgeChoice()
        self.people: People | None = None
        self.spans: SpanFigures | None = None
        self.judge: JudgeFigures | None = None

    # Counting

    def start(self, opened: OpenWorkspace) -> None:
        """Count everything, or count it anew, the open page first."""
        passes = self.passes
        self.spans = self.judge = None
        self.forget(SPANS)
        self.forget(JUDGE)
        self.begins(opened)
        self.count(
            PEOPLE,
            lambda _: count_people(opened, passes),
            self._take_people,
            lambda problem: People(problem=problem),
        )
        if self.page == JUDGE:
            self.count_page(opened)
        if self.people is None:
            self.show()

    def count_page(self, opened: OpenWorkspace) -> None:
        """Count what the open page needs and what is not under way already."""
        people, passes = self.people, self.passes
        if self.page == SPANS and people is not None and self.spans is None:
            self.spans = SpanFigures(pending=True)
            self.count(
                SPANS,
                lambda stopped: count_spans(opened, people, passes, stopped),
                self._take_spans,
                lambda problem: SpanFigures(problem=problem),
            )
        elif self.page == JUDGE and self.judge is None:
            self.judge = JudgeFigures(pending=True)
            self._count_judge(opened)

    def _count_judge(self, opened: OpenWorkspace) -> None:
        choice, passes = self.choice, self.passes
        self.count(
            JUDGE,
            lambda stopped: count_judge(opened, choice, passes, stopped),
            self._take_judge,
            lambda problem: JudgeFigures(problem=problem),
        )

    def count_again(self, opened: OpenWorkspace) -> None:
        """Count again what new decisions and later passes change; first passes stay as they are."""
        if self.people is None:
            return
        if self.passes == "last":
            self.start(opened)
        elif self.page == JUDGE:
            self._count_judge(opened)
        else:
            self.forget(JUDGE)
            self.judge = None

    def _take_people(self, found: People) -> None:
        self.people = found
        self.hints.leave_out(() if found.hidden else ("look",))
        self.hints.clear()
        if self.page == SPANS:
            self.mast.workspace.when_ready(self.count_page)
        elif self.page != JUDGE:
            self.show()
        warnings = [note.text for note in found.notes if note.warning]
        if found.report is not None and found.hidden:
            self.hints.say(
                hidden_traces_text(len(found.hidden), self.mast.key_of("agreement.look"))
            )
        elif warnings:
            self.hints.say(warnings[0])

    def _take_spans(self, found: SpanFigures) -> None:
        self.spans = found
        if self.page == SPANS:
            self.show()

    def _take_judge(self, found: JudgeFigures) -> None:
        self.judge = found
        if self.page == JUDGE:
            self.hints.clear()
            self.show()

    # Showing

    def title_parts(self) -> tuple[str, ...]:
        """Whose figures, of which pass, over how many traces."""
        of_pass = f"{self.passes} pass"
        if self.page == JUDGE:
            held = None if self.judge is None else self.judge.report
            if held is None:
                return ("Agreement",)
            told = f"{judge_name(held['judge'])} against {one_line(against_words(held))}"
            # Gold is of no pass.
            passes = () if held["gold"] is not None else (of_pass,)
            return ("Agreement", told, counted(held["traces"]["compared"], "trace"), *passes)
        report = None if self.people is None else self.people.report
        if report is None:
            return ("Agreement",)
        names = joined([one_line(name) for name in report.annotators])
        return ("Agreement", names, of_pass, traces_compared(report))

    def open_page(self) -> Page:
        """The open page, or what stands in its place."""
        people, spans, page = self.people, self.spans, self.page
        if page == JUDGE:
            return self._judge_page()
        if people is None:
            return Page()
        if people.report is None:
            return Page(words=nothing_to_count(people, self.mast.key_of))
        if page == SPANS:
            words = nothing_of_spans(spans)
            if spans is None or words:
                return Page(words=words)
            return Page(spans.section, pending=spans.pending, notes=people.notes)
        section = people.sections.get(page)
        if section is None:
            return Page(words=NO_PAGE[page])
        return Page(section, pending=people.pending, notes=people.notes)

    def _judge_page(self) -> Page:
        judge = self.judge
        if judge is None or (judge.report is None and judge.pending):
            return Page()
        key_of = self.mast.key_of
        words = nothing_of_judge(judge, key_of)
        if words:
            return Page(words=words)
        left_out = counted(judge.hidden, "unlabelled trace")
        words = f"{left_out} left out: what judges say is hidden from you."
        notes = (Note(words, "hidden"),) if judge.hidden else ()
        keys = (f"{key_of('agreement.against')} against", f"{key_of('agreement.next_judge')} judge")
        return Page(judge.section, pending=judge.pending, notes=notes, keys=keys)

    def whole_report(self) -> Callable[[OpenWorkspace, Stopped], Report] | None:
        """People and places; a judge where its page was looked at, as it tells what judges say."""
        passes, choice = self.passes, self.choice
        if self.people is None or self.people.report is None:
            return None
        with_judge = self.judge is not None and self.judge.report is not None
        key_of = self.mast.key_of

        def made(opened: OpenWorkspace, stopped: Stopped) -> Report:
            *_, people = count_people(opened, passes)
            if people.report is None:
                raise MastError(nothing_to_count(people, key_of))
            *_, spans = count_spans(opened, people, passes, stopped)
            revisions = tuple(opened.workspace.revisions_read(opened.taxonomy.ref))
            agreement = replace(people.report, spans=spans.report, revisions=revisions)
            if with_judge:
                *_, judge = count_judge(opened, choice, passes, stopped)
                agreement = replace(agreement, judge=judge.report)
            return agreement_report(agreement, sight=_sight(opened, people))

        return made

    # The traces behind

    def list_behind(self, behind: Behind) -> Callable[[OpenWorkspace], Listing | None]:
        """List what the sides say of the modes, where they differ first."""
        which, modes = dict(behind.which), behind.modes
        people, spans, judge = self.people, self.spans, self.judge

        def cases() -> Cases | None:
            page = which.get("page")
            if page == JUDGE:
                if judge is None or judge.given is None or judge.found is None:
                    return None
                return behind_judge(judge.given, judge.found, modes)
            if page == SPANS:
                given = None if spans is None else spans.given
                return None if given is None else behind_spans(given, modes)
            study = None if people is None else people.study
            return None if study is None else behind_people(study, modes, which.get("pair"))

        def listed(opened: OpenWorkspace) -> Listing | None:
            found = cases()
            if found is None:
                return None
            return listing_of(found, opened.taxonomy, trace_names(opened.workspace.traces()))

        return listed

    # Choices

    def action_passes(self) -> None:
        """Count first passes, or last ones."""
        self.passes = "first" if self.passes == "last" else "last"
        self.mast.workspace.when_ready(self.start)

    def action_next_judge(self, step: int) -> None:
        """Another judge."""
        judges = () if self.judge is None else self.judge.judges
        if self._on_page_5():
            if len(judges) < 2:
                self.hints.say("There is no other judge here")
            else:
                self._choose(replace(self.choice, judge=_next(self.choice.judge, judges, step)))

    def action_against(self) -> None:
        """Hold the judge against gold, then against each person in turn."""
        references = () if self.judge is None else self.judge.references
        if self._on_page_5():
            if len(references) < 2:
                self.hints.say(
                    "Nobody has finished a trace yet: there is nobody to hold it against"
                )
            else:
                against = _next(self.choice.against, references, 1)
                self._choose(replace(self.choice, against=against))

    def action_seen(self) -> None:
        """Count also verdicts that came about with a judge on screen, or leave them out again."""
        if self._on_page_5():
            self._choose(replace(self.choice, with_seen=not self.choice.with_seen))

    def _on_page_5(self) -> bool:
        here = self.page == JUDGE
        if not here:
            key = self.mast.key_of("agreement.judge")
            self.hints.say(f"Judges have a page of their own: {key} shows it")
        return here

    def _choose(self, choice: JudgeChoice) -> None:
        self.choice = choice
        known = self.judge
        if known is not None:
            # Who there is stays known, so that keys pressed meanwhile choose among them.
            self.judge = JudgeFigures(
                judges=known.judges, references=known.references, pending=True
            )
        self.hints.prompt(HOLDING)
        self.mast.workspace.when_ready(self._count_judge)

    def action_adjudicate(self) -> None:
        """Settle the disagreements on the mode under the cursor."""
        row = self.row
        modes = () if row is None or row.behind is None else row.behind.modes
        if len(modes) != 1:
            self.hints.say("Choose a mode: totals have no disagreements of their own")
            return
        self.mast.go(ShowDisagreements(modes[0]))

    def action_look(self) -> None:
        """Count also traces that only others have finished, as their adjudicator."""
        if self.people is None:
            return
        if self.people.hidden:
            self.offer_adjudication(self.people.hidden)
        else:
            self.hints.say("All traces that two people have finished are counted already")


def _next(here: str | None, choices: tuple[str, ...], step: int) -> str:
    place = choices.index(here) if here in choices else 0
    return choices[(place + step) % len(choices)]


# Counting in a worker, within what the annotator may see


def count_people(opened: OpenWorkspace, passes: PassChoice) -> Iterator[People]:
    """Count over the traces that the annotator has finished or adjudicated.

    That they are shown is recorded, as they tell what others said.

    Args:
        opened: The open workspace.
        passes: Which passes count.
    """
    workspace, taxonomy = opened.workspace, opened.taxonomy
    visible = visible_traces_for_agreement(workspace, opened.annotator, taxonomy.ref)
    finished = study_from_workspace(workspace, taxonomy, which=passes).finished
    people: dict[str, set[str]] = {}
    for name, traces in finished.items():
        for trace in traces:
            people.setdefault(trace, set()).add(name)
    shared = {trace for trace, names in people.items() if len(names) > 1}
    found = People(
        hidden=tuple(sorted(shared - visible)),
        finished={name: len(traces) for name, traces in finished.items()},
        visible=visible,
    )
    if not shared & visible:
        yield found
        return
    names = sorted({name for trace in shared & visible for name in people[trace]})
    study = study_from_workspace(
        workspace, taxonomy, annotators=names, which=passes, traces=visible
    )
    record_reveal(workspace, opened.annotator, taxonomy.ref, sorted(shared & visible))
    for rounds in (0, ROUNDS):
        figures = agreement_figures(study, rounds=rounds)
        report = agreement_report(figures, sight=_sight(opened, found))
        yield replace(
            found,
            report=figures,
            study=study,
            pending=not rounds,
            sections={section.id: section for section in report.sections},
            notes=tuple(note for note in report.notes if note.reason not in ELSEWHERE),
        )


def _sight(opened: OpenWorkspace, people: People) -> dict[str, object] | None:
    """Whose sight limits the figures, None where it leaves nothing out."""
    hidden = len(people.hidden)
    if not hidden:
        return None
    return {"annotator": opened.annotator, "blind": opened.blind, "left_out": hidden}


def count_spans(
    opened: OpenWorkspace, people: People, passes: PassChoice, stopped: Stopped
) -> Iterator[SpanFigures]:
    """Count the places that the same people marked; every trace that is compared is read.

    Args:
        opened: The open workspace.
        people: What was counted of them.
        passes: Which passes count.
        stopped: Whether nobody waits any more.

    Raises:
        LeftError: Nobody does.
    """
    if people.study is None:
        yield SpanFigures()
        return
    orders = SpanOrders(opened.workspace)

    def order_of(trace_id: str) -> tuple[Order, int] | None:
        if stopped():
            raise LeftError
        return orders.spans_of(trace_id)

    given = span_input_from_workspace(
        opened.workspace,
        opened.taxonomy,
        people.study.annotators,
        order_of=order_of,
        length_of=orders.length_of,
        which=passes,
        traces=people.visible,
    )
    for rounds in (0, ROUNDS):
        report = span_figures(given, rounds=rounds)
        yield SpanFigures(report, given, places_section(report), pending=not rounds)


def count_judge(
    opened: OpenWorkspace, choice: JudgeChoice, passes: PassChoice, stopped: Stopped
) -> Iterator[JudgeFigures]:
    """Hold a judge against what was said of the traces that the annotator has finished or
    adjudicated; that it is shown is recorded where it tells what was hidden.

    Args:
        opened: The open workspace.
        choice: Which judge, against what.
        passes: Which passes count.
        stopped: Whether nobody waits any more.

    Raises:
        LeftError: Nobody does.
    """
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

    def held(given: JudgeInput, rounds: int) -> JudgeFigures:
        report = judge_report(given, rounds=rounds, with_seen=choice.with_seen)
        found = compared(given, with_seen=choice.with_seen)
        section = judge_section(report)
        return JudgeFigures(report, given, found, section, judges, references, hidden, not rounds)

    order_of = until(stopped, SpanOrders(workspace))
    gold = {
        trace: said.gold(taxonomy, order_of(trace) if trace in visible else no_order)
        for trace, said in words.items()
    }
    given = judge_input_from_workspace(
        workspace, taxonomy, judge, against,
        gold=gold, order_of=order_of, which=passes, traces=visible,
    )  # fmt: skip
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
    for rounds in (0, ROUNDS):
        yield held(given, rounds)


def _who_there_is(opened: OpenWorkspace) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The judges that have judged anything, and gold with everybody who has finished a trace."""
    workspace, ref = opened.workspace, opened.taxonomy.ref
    at_work = {one.judge for one in workspace.judgements(taxonomy=ref)}
    done = {one.annotator for one in workspace.passes(taxonomy=ref) if one.finished}
    names = [info.name for info in workspace.annotators()]
    judges = tuple(name for name in names if name in at_work)
    people = tuple(
        name for name in names if name in done and annotator_kind(name) is not AnnotatorKind.JUDGE
    )
    return judges, (GOLD, *people)


# What stands in the place of figures


def nothing_to_count(people: People, key_of: KeyOf) -> str:
    """Return why there are no figures of people, and what to do.

    Args:
        people: What is known of the people's work.
        key_of: Returns how the key of an action is shown.
    """
    if people.problem is not None:
        return one_line(people.problem)
    if people.hidden:
        lines = ["No trace that somebody else has finished is yours to look into yet."]
    else:
        lines = ["Agreement needs two people who have finished the same trace."]
    lines.append("")
    if people.finished:
        lines += [
            f"{one_line(name)} has finished {counted(count, 'trace')}."
            for name, count in people.finished.items()
        ]
    else:
        key = key_of("annotate.finish")
        lines.append(f"Nobody has finished a trace yet: {key} finishes the one that is open.")
    lines.append("")
    if people.hidden:
        lines.append(f"{hidden_traces_text(len(people.hidden), key_of('agreement.look'))}.")
    else:
        lines.append("Others label in this workspace with: mast-tui --annotator NAME")
    return "\n".join(lines)


def nothing_of_spans(spans: SpanFigures | None) -> str:
    """Say why there are no figures on places, and what to do; nothing where there are some."""
    if spans is not None and spans.problem is not None:
        return one_line(spans.problem)
    if spans is None or spans.report is None:
        return "Reading the traces and counting places …"
    if spans.report.compared:
        return ""
    count = counted(spans.report.not_at_hand, "trace")
    return (
        f"No places can be compared: of {count} that two people have finished no file is where it "
        "was last seen.\n\nOpen the folder that holds them with mast-tui FOLDER, and come back "
        "here."
    )


def nothing_of_judge(judge: JudgeFigures, key_of: KeyOf) -> str:
    """Return why there are no figures of a judge, and what to do.

    Args:
        judge: What is known of the judge.
        key_of: Returns how the key of an action is shown.

    Returns:
        The reason, or nothing where there are figures.
    """
    if judge.problem is not None:
        return one_line(judge.problem)
    if not judge.judges:
        return (
            f"No judge has looked at a trace here.\n\n{key_of('library.judge')} in the library "
            "runs one on the traces that are listed; mast-tui judge runs it without the app."
        )
    report = judge.report
    if report is None:
        return HOLDING
    held = report["withheld"]
    withheld = 0 if held is None else sum(held["passes"].values())
    if report["pooled"]["n"] or report["answers"]["n"] or withheld:
        return ""
    against = one_line(report["against"])
    seen = report["left_out"]["judge_seen"]
    lines = [f"{one_line(report['judge'])} cannot be held against {against} yet.", ""]
    if seen and not report["judge_seen_counted"]:
        lines.append(
            f"{seen} verdicts came about with a judge on screen, and are left out: "
            f"{key_of('agreement.seen')} counts them all the same."
        )
    else:
        lines.append(
            "That needs traces that it has judged and that you have finished or adjudicated, "
            f"with a verdict of {against}."
        )
    lines += [
        "",
        f"{key_of('agreement.against')} holds it against somebody else · "
        f"{key_of('agreement.next_judge')} takes another judge",
    ]
    return "\n".join(lines)
