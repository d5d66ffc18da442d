"""The report on agreement for the screen: which pass, whose traces, which judge against whom."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from mast_tui.reports.model import Behind, Note, Section
from mast_tui.safe_text import one_line
from mast_tui.ui.actions.registry import Where
from mast_tui.ui.context import ShowDisagreements, TraceLocation
from mast_tui.ui.phrases import counted, joined
from mast_tui.ui.reports.agreement_behind import (
    Cases,
    behind_judge,
    behind_people,
    behind_spans,
    listing_of,
)
from mast_tui.ui.reports.agreement_counts import (
    Figures,
    JudgeChoice,
    JudgeFigures,
    PassChoice,
    SpanFigures,
    count_figures,
    count_judge,
    count_spans,
)
from mast_tui.ui.reports.source import COUNTING, Host, Listing, Page, Stopped
from mast_tui.ui.suggestion_words import judge_name
from mast_tui.ui.trace_names import trace_names

if TYPE_CHECKING:
    from mast_tui.ui.services.open_workspace import OpenWorkspace

PEOPLE: Final = "people"
SPANS: Final = "spans"
JUDGE: Final = "judge"
"""What is counted apart; places and judges have pages of their own."""

ELSEWHERE: Final = ("no_spans", "no_judge")
"""Notes of the whole report that other pages of the screen make untrue."""

ON_PAGE_5: Final = "Judges have a page of their own: 5 shows it"


@dataclass(frozen=True, slots=True)
class People:
    """The figures of people, and the pages that were made of them."""

    figures: Figures
    sections: Mapping[str, Section] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class Spans:
    """The figures on places with their page."""

    figures: SpanFigures
    section: Section | None = None


@dataclass(frozen=True, slots=True)
class Judge:
    """The figures of a judge with their page, and what it is held ``against`` in words."""

    figures: JudgeFigures
    section: Section | None = None
    against: str = ""


class AgreementSource:
    """Counts people at once, places and a judge when their pages are first looked at."""

    where = Where.AGREEMENT

    def __init__(self) -> None:
        self.pages: Mapping[str, str] = {
            "modes": "modes",
            "categories": "categories",
            "pairs": "pairs",
            SPANS: "spans",
            JUDGE: "judge",
        }
        self.choices: Mapping[str, Callable[..., None]] = {
            "passes": self.choose_passes,
            "judge": self.choose_judge,
            "against": self.choose_against,
            "seen": self.choose_seen,
            "look": self.look,
            "adjudicate": self.adjudicate,
        }
        self.passes: PassChoice = "first"
        self.choice = JudgeChoice()
        self.people: People | None = None
        self.spans: Spans | None = None
        self.judge: Judge | None = None
        self._host: Host

    def attach(self, host: Host) -> None:
        """Work for this screen from now on."""
        self._host = host

    # Counting

    def start(self, opened: OpenWorkspace) -> None:
        """Count everything, or count it anew, the open page first."""
        passes = self.passes
        self.spans = self.judge = None
        self._host.forget(SPANS)
        self._host.forget(JUDGE)
        self._host.hints.prompt(COUNTING)
        self._host.count(PEOPLE, lambda _: _people(opened, passes))
        if self._host.page == JUDGE:
            self.page_opened(opened)
        if self.people is None:
            self._host.show()

    def page_opened(self, opened: OpenWorkspace) -> None:
        """Count what the open page needs and what is not under way already."""
        people, passes = self.people, self.passes
        if self._host.page == SPANS and people is not None and self.spans is None:
            self.spans = Spans(SpanFigures(pending=True))
            self._host.count(SPANS, lambda stopped: _spans(opened, people.figures, passes, stopped))
        elif self._host.page == JUDGE and self.judge is None:
            self.judge = Judge(JudgeFigures(pending=True))
            self._count_judge(opened)

    def come_back(self, opened: OpenWorkspace) -> None:
        """Count again what new decisions and later passes change; first passes stay as they are."""
        if self.people is None:
            return
        if self.passes == "last":
            self.start(opened)
        elif self._host.page == JUDGE:
            self._count_judge(opened)
        else:
            self._host.forget(JUDGE)
            self.judge = None

    def _count_judge(self, opened: OpenWorkspace) -> None:
        choice, passes = self.choice, self.passes
        self._host.count(JUDGE, lambda stopped: _judge(opened, choice, passes, stopped))

    def take_in(self, group: str, found: Any) -> None:
        """Keep the figures, and show them where their page is open."""
        page = self._host.page
        if group == SPANS:
            self.spans = found
        elif group == JUDGE:
            self.judge = found
            if page == JUDGE:
                self._host.hints.clear()
        else:
            self.people = found
            self._host.hints.clear()
            if page == SPANS:
                self._host.mast.when_ready(self.page_opened)
        if page == group or (group == PEOPLE and page not in (SPANS, JUDGE)):
            self._host.show()
        if group == PEOPLE:
            self._tell(found)

    def _tell(self, people: People) -> None:
        """Say what is left out, or what warns of the figures."""
        figures = people.figures
        warnings = [note.text for note in people.notes if note.warning]
        if figures.report is not None and figures.hidden:
            self._host.hints.say(hidden_words(len(figures.hidden)))
        elif warnings:
            self._host.hints.say(warnings[0])

    # Showing

    def title(self) -> tuple[str, ...]:
        """Whose figures, of which pass, over how many traces."""
        judge, people = self.judge, self.people
        of_pass = f"{self.passes} pass"
        if self._host.page == JUDGE:
            report = None if judge is None else judge.figures.report
            if judge is None or report is None:
                return ("Agreement",)
            told = f"{judge_name(report['judge'])} against {one_line(judge.against)}"
            compared = counted(report["traces"]["compared"], "trace")
            # Gold is of no pass.
            passes = () if report["gold"] is not None else (of_pass,)
            return ("Agreement", told, compared, *passes)
        if people is None or people.figures.report is None:
            return ("Agreement",)
        document = people.figures.report
        names = joined([one_line(name) for name in document["annotators"]])
        done = counted(document["traces"]["finished_by_all"], "trace")
        return ("Agreement", names, of_pass, f"{done} finished by all")

    def shown(self) -> Page:
        """The open page, or what stands in its place."""
        people, page = self.people, self._host.page
        if page == JUDGE:
            return self._judge_page()
        if people is None:
            return Page()
        if people.figures.report is None:
            return Page(words=nothing_to_count(people.figures))
        if page == SPANS:
            return self._spans_page(people)
        section = people.sections.get(page)
        if section is None:
            return Page(words=NO_PAGE[page])
        return Page(section, pending=people.figures.pending, notes=people.notes)

    def _spans_page(self, people: People) -> Page:
        spans = self.spans
        words = nothing_of_spans(None if spans is None else spans.figures)
        if spans is None or words:
            return Page(words=words)
        return Page(spans.section, pending=spans.figures.pending, notes=people.notes)

    def _judge_page(self) -> Page:
        judge = self.judge
        if judge is None or (judge.figures.report is None and judge.figures.pending):
            return Page()
        words = nothing_of_judge(judge.figures)
        if words:
            return Page(words=words)
        hidden = judge.figures.hidden
        words = (
            f"{counted(hidden, 'unlabelled trace')} left out: what judges say is hidden from you."
        )
        notes = (Note(words, "hidden"),) if hidden else ()
        keys = ("c against", "] judge")
        return Page(judge.section, pending=judge.figures.pending, notes=notes, keys=keys)

    # The traces behind

    def list_behind(self, behind: Behind) -> Callable[[OpenWorkspace], Listing | None]:
        """List what the sides say of the modes, where they differ first."""
        page = dict(behind.which).get("page", PEOPLE)
        pair = dict(behind.which).get("pair")
        people, spans, judge = self.people, self.spans, self.judge

        def cases() -> Cases | None:
            if page == JUDGE:
                of = None if judge is None else judge.figures
                if of is None or of.given is None or of.found is None:
                    return None
                return behind_judge(of.given, of.found, behind.modes)
            if page == SPANS:
                given = None if spans is None else spans.figures.given
                return None if given is None else behind_spans(given, behind.modes)
            study = None if people is None else people.figures.study
            return None if study is None else behind_people(study, behind.modes, pair)

        def listed(opened: OpenWorkspace) -> Listing | None:
            found = cases()
            if found is None:
                return None
            return listing_of(found, opened.taxonomy, trace_names(opened.workspace.traces()))

        return listed

    def opening(self, row: str) -> TraceLocation | None:
        """Nothing: no row is itself a trace."""
        return None

    # Choices

    def choose_passes(self) -> None:
        """Count first passes, or last ones."""
        self.passes = "first" if self.passes == "last" else "last"
        self._host.mast.when_ready(self.start)

    def choose_judge(self, step: int) -> None:
        """Another judge."""
        judges = () if self.judge is None else self.judge.figures.judges
        if self._host.page != JUDGE:
            self._host.hints.say(ON_PAGE_5)
        elif len(judges) < 2:
            self._host.hints.say("There is no other judge here")
        else:
            self._choose(replace(self.choice, judge=_next(self.choice.judge, judges, step)))

    def choose_against(self) -> None:
        """Hold the judge against gold, then against each person in turn."""
        references = () if self.judge is None else self.judge.figures.references
        if self._host.page != JUDGE:
            self._host.hints.say(ON_PAGE_5)
        elif len(references) < 2:
            self._host.hints.say(
                "Nobody has finished a trace yet: there is nobody to hold it against"
            )
        else:
            self._choose(replace(self.choice, against=_next(self.choice.against, references, 1)))

    def choose_seen(self) -> None:
        """Count also verdicts that came about with a judge on screen, or leave them out again."""
        if self._host.page != JUDGE:
            self._host.hints.say(ON_PAGE_5)
            return
        self._choose(replace(self.choice, with_seen=not self.choice.with_seen))

    def _choose(self, choice: JudgeChoice) -> None:
        self.choice = choice
        known = self.judge
        if known is not None:
            # Who there is stays known, so that keys pressed meanwhile choose among them.
            waiting = JudgeFigures(
                judges=known.figures.judges, references=known.figures.references, pending=True
            )
            self.judge = Judge(waiting)
        self._host.hints.prompt("Holding the judge against what people say …")
        self._host.mast.when_ready(self._count_judge)

    def adjudicate(self) -> None:
        """Settle the disagreements on the mode under the cursor."""
        row = self._host.row
        modes = () if row is None or row.behind is None else row.behind.modes
        if len(modes) != 1:
            self._host.hints.say("Choose a mode: totals have no disagreements of their own")
            return
        self._host.mast.go(ShowDisagreements(modes[0]))

    def look(self) -> None:
        """Count also traces that only others have finished, as their adjudicator."""
        if self.people is None:
            return
        hidden = self.people.figures.hidden
        if hidden:
            self._host.offer_adjudication(hidden)
        else:
            self._host.hints.say("All traces that two people have finished are counted already")


def _next(here: str | None, choices: tuple[str, ...], step: int) -> str:
    place = choices.index(here) if here in choices else 0
    return choices[(place + step) % len(choices)]


def _people(opened: OpenWorkspace, passes: PassChoice) -> Iterator[People]:
    from mast_tui.reports.agreement import agreement_report

    for figures in count_figures(opened, passes):
        if figures.report is None:
            yield People(figures)
            continue
        sight = {
            "annotator": opened.annotator,
            "blind": opened.blind,
            "left_out": len(figures.hidden),
        }
        report = agreement_report(figures.report, sight=sight if figures.hidden else None)
        notes = tuple(note for note in report.notes if note.reason not in ELSEWHERE)
        yield People(figures, {section.id: section for section in report.sections}, notes)


def _spans(
    opened: OpenWorkspace, known: Figures, passes: PassChoice, stopped: Stopped
) -> Iterator[Spans]:
    from mast_tui.reports.places import places_section

    for figures in count_spans(opened, known, passes, stopped):
        report = figures.report
        yield Spans(figures, None if report is None else places_section(report))


def _judge(
    opened: OpenWorkspace, choice: JudgeChoice, passes: PassChoice, stopped: Stopped
) -> Iterator[Judge]:
    from mast_tui.reports.judge import against_words, judge_section

    for figures in count_judge(opened, choice, passes, stopped):
        if figures.report is None:
            yield Judge(figures)
            continue
        section = judge_section(figures.report)
        yield Judge(figures, section, against_words(figures.report))


# What stands in the place of figures

NO_PAGE: Final = {
    "modes": "This taxonomy has no modes.",
    "categories": "This taxonomy has no categories.",
    "pairs": "Two people have finished the same traces: their figures stand on page 1. Pairs are "
    "told apart where there are three people or more.",
}


def hidden_words(count: int) -> str:
    """Say that traces are left out, and how they can be counted.

    Some may be finished by their annotator and come back to be labelled once more, so it is not
    said that they are not.
    """
    if count == 1:
        return "1 trace left out that you may not look into yet · o counts it as adjudicator"
    return f"{count} traces left out that you may not look into yet · o counts them as adjudicator"


def nothing_to_count(figures: Figures) -> str:
    """Say why there are no figures of people, and what to do."""
    if figures.problem is not None:
        return one_line(figures.problem)
    if figures.hidden:
        lines = ["No trace that somebody else has finished is yours to look into yet."]
    else:
        lines = ["Agreement needs two people who have finished the same trace."]
    lines.append("")
    if figures.finished:
        lines += [
            f"{one_line(name)} has finished {counted(count, 'trace')}."
            for name, count in figures.finished.items()
        ]
    else:
        lines.append("Nobody has finished a trace yet: D finishes the one that is open.")
    lines.append("")
    if figures.hidden:
        lines.append(f"{hidden_words(len(figures.hidden))}.")
    else:
        lines.append("Others label in this workspace with: mast-tui --annotator NAME")
    return "\n".join(lines)


def nothing_of_spans(spans: SpanFigures | None) -> str:
    """Say why there are no figures on places, and what to do; nothing where there are some."""
    if spans is not None and spans.problem is not None:
        return one_line(spans.problem)
    if spans is None or spans.report is None:
        return "Reading the traces and counting places …"
    traces = spans.report["traces"]
    if traces["compared"]:
        return ""
    count = counted(traces["not_at_hand"], "trace")
    return (
        f"No places can be compared: of {count} that two people have finished no file is where it "
        "was last seen.\n\nOpen the folder that holds them with mast-tui FOLDER, and come back "
        "here."
    )


def nothing_of_judge(judge: JudgeFigures) -> str:
    """Say why there is nothing to tell of a judge, and what to do; nothing where there is."""
    if judge.problem is not None:
        return one_line(judge.problem)
    if not judge.judges:
        return (
            "No judge has looked at a trace here.\n\nJ in the library runs one on the traces that "
            "are listed; mast-tui judge runs it without the app."
        )
    report = judge.report
    if report is None:
        return "Holding the judge against what people say …"
    held = report["withheld"]
    withheld = 0 if held is None else sum(held["passes"].values())
    if report["pooled"]["n"] or report["answers"]["n"] or withheld:
        return ""
    against = one_line(report["against"])
    seen = report["left_out"]["judge_seen"]
    lines = [f"{one_line(report['judge'])} cannot be held against {against} yet.", ""]
    if seen and not report["judge_seen_counted"]:
        lines.append(
            f"{seen} verdicts came about with a judge on screen, and are left out: s counts them "
            "all the same."
        )
    else:
        lines.append(
            "That needs traces that it has judged and that you have finished or adjudicated, "
            f"with a verdict of {against}."
        )
    lines += ["", "c holds it against somebody else · ] takes another judge"]
    return "\n".join(lines)
