"""The report on failure signatures on screen, with choices of labels, field and group.

It is computed twice: first without span ranges and resampling, then with both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import takewhile
from math import isfinite, nan
from typing import ClassVar, Final, NamedTuple

from mast_tui.adjudication import OrderOf, SpanOrders
from mast_tui.adjudication.for_signatures import corrected_prevalence, extras_for, gold_of
from mast_tui.errors import MastError, WorkspaceError
from mast_tui.figures.bootstrap import NO_RESAMPLING, RESAMPLING
from mast_tui.figures.experiment import Experiment, experiment_figures
from mast_tui.figures.power import power_figures
from mast_tui.figures.record import OUTCOMES, Figure, FigureIndex, FigureTable, Sources
from mast_tui.figures.signatures.model import ALL, OVERALL, SignatureInput
from mast_tui.figures.signatures.report import (
    LEAST_OUTCOMES,
    SignatureReport,
    compares_outcomes,
    large_groups,
    signature_report,
)
from mast_tui.figures.source.signatures import experiment_of, input_from_workspace, without_outcomes
from mast_tui.figures.time_study import LEAST_TRACES
from mast_tui.gold.model import is_gold
from mast_tui.labels import GOLD, is_judge
from mast_tui.reports import model
from mast_tui.reports.examples import Extras
from mast_tui.reports.experiment import arm_parts, experiment_notes
from mast_tui.reports.model import ReportSection
from mast_tui.reports.signatures import group_report, signatures_report
from mast_tui.safe_text import one_line
from mast_tui.session import (
    VisibleWork,
    finished_or_judged_traces,
    library_view,
    outside_work_text,
    record_reveal,
    visible_traces_for_agreement,
)
from mast_tui.ui.actions.registry import KeyOf, Where
from mast_tui.ui.base_screen import Stopped, StoppedError
from mast_tui.ui.context import TraceLocation
from mast_tui.ui.dialogs.finder import FinderChoice, FinderDialog
from mast_tui.ui.reports.screen import (
    HIDDEN_TEXT,
    Listing,
    Page,
    ReportScreen,
    stop_when,
    visible_labels,
)
from mast_tui.ui.reports.signature_traces import (
    FailingTraces,
    SignatureTracesScreen,
    failing_traces,
    listing_of,
    traces_table,
)
from mast_tui.ui.services.open_workspace import OpenWorkspace
from mast_tui.ui.suggestion_wording import judge_name
from mast_tui.ui.wording import counted, hidden_traces_text, trace_names
from mast_tui.workspace import Workspace

FIELDS: Final = ("model", "system", "benchmark", "version", "reader", "all")
"""The fields by which traces are grouped; ``all`` makes one group."""

DEFAULT_FIELD: Final = "model"

SIGNATURES: Final = "signatures"
"""The only group of figures: all pages are computed together."""

EXPERIMENT: Final = "experiment"
"""The page of the groups as arms of an experiment; the first group is the baseline."""

TRACES: Final = "traces"
"""The page with rows of traces."""

IN_TITLE: Final = ("traces", "failed", "succeeded", "outcome unknown")
"""The facts of a group in the title."""

NO_GROUP: Final = "There is no group to choose"


@dataclass(frozen=True, slots=True)
class SignatureChoice:
    """The choices of the user for the report.

    Attributes:
        labels: ``GOLD``, or the annotator or judge of the labels.
        grouping: The field of the groups, one of ``FIELDS``.
        failed_below: The score below which a trace has failed; None for the recorded outcome.
    """

    labels: str = GOLD
    grouping: str = DEFAULT_FIELD
    failed_below: float | None = None

    @property
    def of_judge(self) -> bool:
        """True if the labels are those of a judge."""
        return self.labels != GOLD and is_judge(self.labels)


@dataclass(frozen=True, slots=True)
class Signatures:
    """The figures of failure signatures.

    Attributes:
        choice: The choices for the figures.
        report: The report; None if nothing could be computed.
        inputs: The input of the report; None if nothing could be computed.
        intervals_pending: Whether span ranges and intervals are still being computed.
        sources: ``GOLD``, and the annotators and judges with labels.
        hidden_ids: The ids of traces that are left out, because answers on them are hidden from the
            user.
        outside_text: Sentences on finished traces that do not count in the study; empty for none.
        hidden_outcomes: The number of traces whose outcome is hidden.
        names: The names of traces, by id.
        problem: The reason why nothing could be computed, or None.
        experiment: The groups as arms; None if there are fewer than two.
        hidden_of_runs: The number of runs of the experiment whose outcome is hidden.
    """

    choice: SignatureChoice
    report: SignatureReport | None = None
    inputs: SignatureInput | None = None
    intervals_pending: bool = False
    sources: tuple[str, ...] = ()
    hidden_ids: tuple[str, ...] = ()
    outside_text: str = ""
    hidden_outcomes: int = 0
    names: Mapping[str, str] = field(default_factory=dict)
    problem: str | None = None
    experiment: tuple[Experiment, FigureIndex] | None = None
    hidden_of_runs: int = 0

    @property
    def groups(self) -> Mapping[str, FigureTable]:
        """The figures of all traces, under ``OVERALL``, and of each group, by name."""
        report = self.report
        if report is None or not report.inputs.traces:
            return {}
        groups = () if self.choice.grouping == ALL else report.groups
        return {name: report.group(name) for name in (OVERALL, *groups)}

    @property
    def large_groups(self) -> tuple[str, ...]:
        """All traces, and the groups that are not only shown on request."""
        return (OVERALL, *large_groups(self.report)) if self.report and self.groups else ()


class _GroupReport(NamedTuple):
    """The report on a group and its traces, for one combination of choices."""

    choices: tuple[Signatures, str, bool]
    report: model.Report
    failing: FailingTraces


class SignaturesScreen(ReportScreen):
    """The failure signatures of all groups, one of which is on screen."""

    where = Where.SIGNATURES
    traces = SignatureTracesScreen
    keys_left_out = ("look",)  # until there are hidden traces
    pages: ClassVar[Mapping[str, str]] = {
        "modes": "modes",
        "onset": "onset",
        "together": "together",
        TRACES: "traces",
        "helps": "what helps",
        EXPERIMENT: "experiment",
    }

    def __init__(self) -> None:
        super().__init__()
        self.choice = SignatureChoice()
        self.signatures: Signatures | None = None
        self.group = OVERALL
        """The name of the group on screen."""
        self.includes_all = False
        """True if the user has chosen to count all traces of the group, not only failed ones."""
        self._orders = cache(SpanOrders)
        """Returns the orders of the spans of a workspace, which are kept for the next figures."""
        self._group_report: _GroupReport | None = None
        """The report that was computed last."""
        self._planning: tuple[Figure, ...] | None = None
        """The figures for planning an experiment; None if they have not been computed yet."""

    def start(self, opened: OpenWorkspace) -> None:
        """Compute the figures of the current choice."""
        choice = self.choice
        self.announce_start(opened)
        self.work.run_stages(
            SIGNATURES,
            lambda stopped: compute_signatures(opened, choice, self._orders, stopped),
            self._receive_figures,
            failed=lambda problem: self._receive_figures(Signatures(choice, problem=problem)),
        )
        if self.signatures is None:
            self.show()

    def start_page(self, opened: OpenWorkspace) -> None:
        """Compute the figures for planning if the page of the experiment is open."""
        signatures = self.signatures
        if self.page != EXPERIMENT or self._planning is not None or signatures is None:
            return
        if signatures.experiment is not None:
            experiment, _ = signatures.experiment
            self.work.run_stages(
                EXPERIMENT,
                partial(_planning_of, experiment),
                self._receive_planning,
                failed=lambda _: self._receive_planning(()),
            )

    def start_changed(self, opened: OpenWorkspace) -> None:
        """Compute again what may have changed on another screen."""
        if self.signatures is not None:
            self.start(opened)

    def _receive_figures(self, signatures: Signatures) -> None:
        """Show the figures, and a hint about hidden traces."""
        previous_signatures = self.signatures
        has_complete_figures = (
            previous_signatures is not None
            and previous_signatures.choice == signatures.choice
            and not previous_signatures.intervals_pending
        )
        if signatures.intervals_pending and has_complete_figures:
            # Keep complete figures on screen until the new ones are complete.
            return
        self.signatures = signatures
        self.work.stop(EXPERIMENT)
        self._planning = None
        self.mast.workspace.when_ready(self.start_page)
        if self.group not in signatures.groups:
            self.group = OVERALL
        if signatures.intervals_pending:
            self.hints.prompt("Finding the places of labels, and resampling …")
        else:
            self.hints.clear()
            if signatures.hidden_ids and signatures.groups:
                self.hints.say(_left_out_text(signatures, self.mast.key_of("signatures.look")))
        self.show()

    @property
    def can_look(self) -> bool:
        """True if an adjudicator may see hidden labels; a judge's labels stay hidden."""
        signatures = self.signatures
        return (
            signatures is not None
            and bool(signatures.hidden_ids)
            and not signatures.choice.of_judge
        )

    def _receive_planning(self, figures: tuple[Figure, ...]) -> None:
        self._planning = figures
        if self.page == EXPERIMENT:
            self.show()

    def title_parts(self) -> tuple[str, ...]:
        """Return the group with its position, the annotator, and the traces by outcome."""
        signatures = self.signatures
        if signatures is None or self.group not in signatures.groups:
            return ("Signatures", labels_title(self.choice.labels))
        table = signatures.groups[self.group]
        groups = signatures.large_groups
        grouping = signatures.choice.grouping
        name = f"{grouping} {one_line(self.group, 40)}"
        if self.group == OVERALL:
            is_default_grouping = grouping in (ALL, DEFAULT_FIELD)
            name = "all traces" if is_default_grouping else f"all traces by {grouping}"
        position = ""
        if self.group in groups and len(groups) > 1:
            position = f" ({groups.index(self.group) + 1} of {len(groups)})"
        counts = {side: table.count("traces", side) for side in (*OUTCOMES, "unknown")}
        outcomes = [f"{count:,} {side}" for side, count in counts.items() if count]
        failed_below = signatures.choice.failed_below
        return (
            "Signatures",
            f"{name}{position}",
            counted_labels_title(signatures),
            ", ".join(outcomes),
            *(() if failed_below is None else (f"failed below {failed_below:g}",)),
        )

    def open_page(self) -> Page:
        """Return the open page of the group, or the reason why it is empty."""
        signatures = self.signatures
        if signatures is None:
            return Page()
        if signatures.report is None or self.group not in signatures.groups:
            return Page(text=no_signatures_text(signatures, self.mast.key_of))
        if self.page == EXPERIMENT:
            return self._experiment_page(signatures)
        return self._group_page(signatures)

    def _group_page(self, signatures: Signatures) -> Page:
        """Return the page with the figures or the traces of the group on screen."""
        _, report, failing = self._report_on_group(signatures)
        if self.page == TRACES:
            section = ReportSection(TRACES, TRACES, (traces_table(failing, signatures.names),))
        else:
            section = next(section for section in report.sections if section.id == self.page)
        if not any(table.rows for table in section.tables):
            return Page(text=self._empty_page_text(signatures, section))
        # For hidden outcomes, the line over the tables replaces this note.
        notes = [
            note
            for note in report.notes
            if not (signatures.hidden_outcomes and note.reason == "no_outcomes")
        ]
        return Page(
            section,
            intervals_pending=signatures.intervals_pending,
            notes=notes,
            about=self._line_over_tables(signatures, report),
            # The key has no effect on the figures of these two pages.
            keys=()
            if self.page in ("modes", "helps")
            else (f"{self.mast.key_of('signatures.every')} failed or all traces",),
        )

    def _experiment_page(self, signatures: Signatures) -> Page:
        """Return the page with all arms, and with the chosen group against the baseline."""
        if signatures.experiment is None:
            if signatures.intervals_pending:  # the experiment is computed with the intervals
                return Page()
            key = self.mast.key_of("signatures.by")
            return Page(
                text="An experiment needs two arms or more. Groups by "
                f"{signatures.choice.grouping} are fewer. {key} groups by another field."
            )
        experiment, figures = signatures.experiment
        if self._planning is not None:
            figures = FigureIndex((*figures.figures, *self._planning))
        arm = self.group if self.group in experiment.compared else experiment.compared[0]
        about = f"baseline: {one_line(experiment.baseline, 60)} · arm: {one_line(arm, 60)}"
        if signatures.hidden_of_runs:
            about += f"\n{_hidden_outcomes_text(signatures.hidden_of_runs)}"
        section = ReportSection(EXPERIMENT, EXPERIMENT, arm_parts(experiment, figures, arm))
        notes = tuple(experiment_notes(experiment, figures))
        return Page(
            section, intervals_pending=signatures.intervals_pending, notes=notes, about=about
        )

    def _shows_all(self, signatures: Signatures) -> bool:
        """Return whether all traces of the group count instead of only failed ones."""
        return self.includes_all or not compares_outcomes(signatures.groups[self.group])

    def _report_on_group(self, signatures: Signatures) -> _GroupReport:
        """Return the report on the group on screen, cached until the choices change."""
        shows_all = self._shows_all(signatures)
        choices = (signatures, self.group, shows_all)
        cached = self._group_report
        if cached is not None and cached.choices == choices:
            return cached
        assert signatures.report is not None
        assert signatures.inputs is not None
        conditions = () if shows_all else (("outcome", "failed"),)
        self._group_report = _GroupReport(
            choices=choices,
            report=group_report(
                signatures.report,
                self.group,
                over_all_traces=shows_all,
                extras=Extras(self.mast.taxonomy),
            ),
            failing=failing_traces(
                signatures.inputs, self.group, Sources(SIGNATURES, where=conditions)
            ),
        )
        return self._group_report

    def _line_over_tables(self, signatures: Signatures, report: model.Report) -> str:
        """Return the facts of the group, or a text on missing outcomes, for the first line."""
        table = signatures.groups[self.group]
        if not compares_outcomes(table):
            if signatures.hidden_outcomes:
                return _hidden_outcomes_text(signatures.hidden_outcomes)
            known_outcomes = sum(table.count("traces", side) for side in OUTCOMES)
            outcomes = counted(table.count("traces"), "outcome")
            return (
                f"{known_outcomes} of {outcomes} known · comparing failed and successful "
                f"traces needs {LEAST_OUTCOMES} known outcomes"
            )
        facts = [
            f"{value} {name}" + (f" ({detail})" if detail else "")
            for name, value, detail in report.facts
            if name not in IN_TITLE
        ]
        return one_line(" · ".join(facts), 400)

    def _empty_page_text(self, signatures: Signatures, section: ReportSection) -> str:
        """Return the reason why a page of the group has no rows."""
        traces_text = "traces" if self._shows_all(signatures) else "failed traces"
        key = self.mast.key_of("signatures.every")
        hint = "" if self._shows_all(signatures) else f"\n\n{key} counts all traces."
        if section.id == "onset":
            if signatures.intervals_pending:
                return "Reading the traces and locating their labels …"
            if section.notes:
                return "\n\n".join(one_line(note.text) for note in section.notes)
            return f"None of these {traces_text} has a label with a place.{hint}"
        if section.id == "helps":
            return f"None of these {traces_text} shows a mode."
        if section.id == "together":
            return f"None of these {traces_text} shows a mode.{hint}"
        return f"There are no {traces_text} here.{hint}"

    def whole_report(self) -> Callable[[OpenWorkspace, Stopped], model.Report] | None:
        """Return a function that computes all groups, or None while there are no figures.

        Examples and traces are the same as in the report of the command.
        """
        choice = self.choice
        orders = self._orders
        key_of = self.mast.key_of
        if self.signatures is None or not self.signatures.groups:
            return None

        def _compute_report(opened: OpenWorkspace, stopped: Stopped) -> model.Report:
            """Compute the report in a worker.

            Raises:
                MastError: There are no figures.
            """
            *_, signatures = compute_signatures(opened, choice, orders, stopped)
            if signatures.report is None or signatures.inputs is None or not signatures.groups:
                raise MastError(no_signatures_text(signatures, key_of))
            extras = extras_for(opened.workspace, opened.taxonomy, signatures.inputs, places=True)
            return signatures_report(signatures.report, extras=extras)

        return _compute_report

    def list_sources(self, sources: Sources) -> Callable[[OpenWorkspace], Listing | None]:
        """Return a function that lists the source traces of a figure.

        The traces are in the figure's group, or else in the group on screen. The function returns
        None without figures.
        """
        signatures = self.signatures
        group = sources.group or self.group
        is_experiment = self.page == EXPERIMENT

        def list_traces(_opened: OpenWorkspace) -> Listing | None:
            """List the source traces of the figure."""
            if signatures is None or signatures.inputs is None:
                return None
            inputs = signatures.inputs
            if is_experiment and signatures.experiment is not None:
                inputs = signatures.experiment[0].inputs
            return listing_of(failing_traces(inputs, group, sources), signatures.names)

        return list_traces

    def location_of(self, row: str) -> TraceLocation | None:
        """Return the location of the trace with the id ``row``; None if no traces are listed."""
        if self.page != TRACES or self._group_report is None:
            return None
        traces = self._group_report.failing.traces
        return next((trace.location for trace in traces if trace.trace_id == row), None)

    @property
    def _figures_by_group(self) -> Mapping[str, FigureTable]:
        return {} if self.signatures is None else self.signatures.groups

    def action_next_group(self, step: int) -> None:
        """Show the next or previous group; the last is followed by the first."""
        groups = () if self.signatures is None else self.signatures.large_groups
        if not groups:
            self.hints.say(NO_GROUP)
            return
        if len(groups) < 2 and self.group in groups:
            key = self.mast.key_of("signatures.by")
            message = f"There is one group only; {key} groups by another field"
            if len(self._figures_by_group) > 2:  # one is the group of all traces
                key = self.mast.key_of("signatures.choose_group")
                message = (
                    f"The other groups have fewer than {LEAST_TRACES} traces; {key} chooses one"
                )
            self.hints.say(message)
            return
        index = groups.index(self.group) if self.group in groups else 0
        self._show_group(groups[(index + step) % len(groups)])

    def _show_group(self, group: str) -> None:
        self.group = group
        self.hints.clear()
        self.show()

    def action_choose_group(self) -> None:
        """Ask for a group by its name."""
        if not self._figures_by_group:
            self.hints.say(NO_GROUP)
            return
        choices = [
            FinderChoice(
                name,
                "",
                name or "all traces",
                f"{counted(table.count('traces'), 'trace')}, "
                f"{table.count('traces', 'failed'):,} failed, "
                f"{table.count('traces', 'succeeded'):,} succeeded",
            )
            for name, table in self._figures_by_group.items()
        ]
        title = f"Signatures by {self.choice.grouping}"
        self.mast.ask(FinderDialog(title, choices, placeholder="name"), self._show_group)

    def action_by(self) -> None:
        """Group the traces by the next field."""
        index = FIELDS.index(self.choice.grouping)
        self._start_choice(replace(self.choice, grouping=FIELDS[(index + 1) % len(FIELDS)]))

    def action_labels(self) -> None:
        """Ask for the source of the labels."""
        if self.signatures is None:
            key = self.mast.key_of("signatures.labels")
            self.hints.prompt(f"Still counting; {key} works when it is done")
            return
        choices = [
            FinderChoice(name, code="", name=name, detail=labels_title(name))
            for name in self.signatures.sources
        ]
        self.mast.ask(
            FinderDialog("Whose labels", choices, placeholder="gold, or a name"),
            lambda name: self._start_choice(replace(self.choice, labels=name)),
        )

    def action_outcome(self) -> None:
        """Ask for the score below which a trace has failed."""
        choices = [
            FinderChoice("", "", "as recorded", "the outcome recorded in the traces"),
            *(
                FinderChoice(
                    value, "", f"below {value}", "counts as failed, any other score does not"
                )
                for value in ("0.25", "0.5", "0.75", "1")
            ),
        ]
        finder = FinderDialog(
            "Outcome",
            choices,
            placeholder="a score, or empty",
            other_effect="below {}: counts as failed, any other score does not",
        )
        self.mast.ask(finder, self._set_failed_below)

    def _set_failed_below(self, value: str) -> None:
        """Set the score below which a trace has failed; an empty text is the recorded outcome.

        Show an error for any other text.
        """
        try:
            score = float(value) if value else None
        except ValueError:
            score = nan  # leads to the error below
        if score is not None and not isfinite(score):
            self.hints.say(f"{one_line(value, 20)} is not a score: enter a number", error=True)
        else:
            self._start_choice(replace(self.choice, failed_below=score))

    def action_every(self) -> None:
        """Switch between failed traces and all traces."""
        table = self._figures_by_group.get(self.group)
        if self.page == "modes":
            self.hints.say("This page shows both outcomes side by side")
            return
        if table is not None and not compares_outcomes(table):
            message = f"Fewer than {LEAST_OUTCOMES} outcomes are known here; all traces are counted"
            self.hints.say(message)
            return
        self.includes_all = not self.includes_all
        self.show()
        self.hints.say("All traces" if self.includes_all else "Failed traces only")

    def action_look(self) -> None:
        """Ask whether to adjudicate the hidden traces, so that the report includes them."""
        hidden_ids = self.signatures.hidden_ids if self.signatures is not None else ()
        if not hidden_ids:
            self.hints.say("No trace is excluded")
        elif self.choice.of_judge:
            self.hints.say("The judge's labels on the excluded traces are hidden from you for now")
        else:
            self.offer_adjudication(hidden_ids)

    def _start_choice(self, choice: SignatureChoice) -> None:
        """Compute the figures of a choice, unless it is the current one."""
        if choice != self.choice:
            self.choice = choice
            self.mast.workspace.when_ready(self.start)


# Computation in a worker, over the traces that the annotator may see


def compute_signatures(
    opened: OpenWorkspace,
    choice: SignatureChoice,
    orders: Callable[[Workspace], OrderOf],
    stopped: Stopped,
) -> Iterator[Signatures]:
    """Compute the figures over the traces that the annotator may see.

    The workspace records the traces on which this reveals answers of others.

    Args:
        opened: The open workspace.
        choice: The labels, the field of the groups, and the score of a failure.
        orders: Returns the orders of spans, read from the files of traces.
        stopped: Returns whether the figures are no longer needed.

    Yields:
        The figures, first without resampling, corrected prevalences and experiment.

    Raises:
        StoppedError: The figures are no longer needed.
    """
    order_of = stop_when(stopped, orders(opened.workspace))
    traces_by_author = finished_or_judged_traces(opened.workspace, opened.taxonomy.ref)
    labels = visible_labels(opened, choice.labels, traces_by_author)
    first_figures = _first_signatures(opened, choice, order_of, labels, traces_by_author)
    yield first_figures
    if stopped():
        raise StoppedError
    inputs = first_figures.inputs
    assert inputs is not None
    corrected_figures = _corrected_figures(opened, inputs) if choice.of_judge else ()
    all_runs, hidden_of_runs = _visible_input(
        opened, choice, order_of, labels, with_unlabelled=True
    )
    yield replace(
        first_figures,
        report=signature_report(inputs, RESAMPLING, corrected=corrected_figures),
        intervals_pending=False,
        experiment=_experiment_of_groups(all_runs),
        hidden_of_runs=hidden_of_runs,
    )


def _first_signatures(
    opened: OpenWorkspace,
    choice: SignatureChoice,
    order_of: OrderOf,
    labels: VisibleWork,
    traces_by_author: Mapping[str, frozenset[str]],
) -> Signatures:
    """Compute the figures without resampling, and record the traces that they reveal."""
    workspace = opened.workspace
    taxonomy = opened.taxonomy
    record_reveal(workspace, opened.annotator, taxonomy.ref, sorted(labels.revealing))
    inputs, hidden_outcomes = _visible_input(opened, choice, order_of, labels)
    return Signatures(
        choice,
        signature_report(inputs, NO_RESAMPLING),
        inputs,
        intervals_pending=True,
        sources=(GOLD, *(name for name, traces in traces_by_author.items() if traces)),
        hidden_ids=tuple(sorted(labels.hidden)),
        outside_text=outside_work_text(workspace, workspace.study(taxonomy.ref)),
        hidden_outcomes=hidden_outcomes,
        names=trace_names(workspace.traces()),
    )


def _visible_input(
    opened: OpenWorkspace,
    choice: SignatureChoice,
    order_of: OrderOf,
    labels: VisibleWork,
    *,
    with_unlabelled: bool = False,
) -> tuple[SignatureInput, int]:
    """Read the visible labels and outcomes, and count the hidden outcomes.

    With ``with_unlabelled``, traces without visible labels are added, as for an experiment.
    """
    inputs = input_from_workspace(
        opened.workspace,
        opened.taxonomy,
        labels=choice.labels,
        by=choice.grouping,
        failed_below=choice.failed_below,
        gold=gold_of(opened.workspace, opened.taxonomy, order_of),
        order_of=order_of,
        traces=labels.visible,
        with_unlabelled=with_unlabelled,
    )
    return without_outcomes(inputs, _visible_outcomes(opened))


def _visible_outcomes(opened: OpenWorkspace) -> set[str] | None:
    """Return the ids of the traces with visible outcomes; None for all traces."""
    if not opened.blind:
        return None
    view = library_view(opened.workspace, opened.annotator, opened.taxonomy.ref, blind=True)
    return {trace_id for trace_id, entry in view.items() if entry.outcome_visible}


def _corrected_figures(opened: OpenWorkspace, inputs: SignatureInput) -> tuple[Figure, ...]:
    """Return the prevalences of a judge's modes, corrected by the visible work of people."""
    workspace = opened.workspace
    taxonomy = opened.taxonomy
    visible_ids = visible_traces_for_agreement(workspace, opened.annotator, taxonomy.ref)
    return corrected_prevalence(workspace, taxonomy, inputs, visible_ids)


def _planning_of(experiment: Experiment, stopped: Stopped) -> Iterator[tuple[Figure, ...]]:
    """Yield the figures for planning an experiment, all at once. After the stop they are cut."""
    yield tuple(takewhile(lambda _: not stopped(), power_figures(experiment)))


def _experiment_of_groups(inputs: SignatureInput) -> tuple[Experiment, FigureIndex] | None:
    """Make an experiment of the groups; None for fewer than two groups."""
    try:
        experiment = experiment_of(inputs)
    except WorkspaceError:
        return None
    return experiment, FigureIndex(experiment_figures(experiment))


def counted_labels_title(signatures: Signatures) -> str:
    """Return a title for the labels that are counted.

    Gold without agreement or decisions consists of the labels of single annotators. Then the title
    is the name of the only annotator, or the number of annotators. A name is cut to leave room on a
    narrow screen.
    """
    gold = None if signatures.report is None else signatures.report.inputs.gold
    if gold is None or is_gold(gold) or not gold["sources"]["single"]:
        return labels_title(signatures.choice.labels)
    people = gold["annotators"]
    return one_line(people[0], 30) if len(people) == 1 else f"{len(people)} people, no gold"


def labels_title(labels: str) -> str:
    """Return the title of labels: ``gold``, or their annotator."""
    if labels == GOLD:
        return "gold"
    if is_judge(labels):
        return f"judge {one_line(judge_name(labels), 30)}"
    return f"labels of {one_line(labels, 30)}"


def _hidden_outcomes_text(trace_count: int) -> str:
    traces = counted(trace_count, "trace")
    return f"You work blind: the outcome of {traces} is hidden from you and counts as unknown."


def _left_out_text(signatures: Signatures, key: str) -> str:
    """Return the number of excluded traces, and the key that includes them if possible."""
    if signatures.choice.of_judge:
        return f"{counted(len(signatures.hidden_ids), 'trace')} excluded, hidden from you for now"
    return hidden_traces_text(len(signatures.hidden_ids), key)


def no_signatures_text(signatures: Signatures, key_of: KeyOf) -> str:
    """Return why there are no figures, and what to do.

    Args:
        signatures: The result without figures.
        key_of: Returns the text of an action's key.
    """
    if signatures.problem is not None:
        return f"{one_line(signatures.problem, 400)}\n\n{key_of('everywhere.back')} goes back."
    reason = _no_labels_text(signatures, key_of)
    if len(signatures.sources) > 1:
        return f"{reason}\n\n{key_of('signatures.labels')} chooses whose labels are counted."
    return reason


def _no_labels_text(signatures: Signatures, key_of: KeyOf) -> str:
    """Return why there are no labels to count: they are hidden, or there are none."""
    name = one_line(signatures.choice.labels)
    hidden_count = len(signatures.hidden_ids)
    if hidden_count and signatures.choice.of_judge:
        return (
            f"Labels of {name} are hidden from you on {counted(hidden_count, 'trace')} while you "
            "work blind or the study hides them."
        )
    if hidden_count:
        return f"{HIDDEN_TEXT}\n\n{hidden_traces_text(hidden_count, key_of('signatures.look'))}."
    if signatures.choice.labels == GOLD and signatures.outside_text:
        return (
            "No one in the study has finished a trace, so there is no gold.\n\n"
            f"{signatures.outside_text}"
        )
    if signatures.choice.labels == GOLD:
        return (
            "No finished trace counts for you yet, so there is no gold.\n\n"
            f"{key_of('annotate.finish')} finishes an open trace; mast-tui import adds labels from "
            "files."
        )
    return f"No trace that {name} has finished counts for you yet."
