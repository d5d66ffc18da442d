"""The report on failure signatures for the screen: whose labels, by which field, which group.

It is counted twice: at once without places and resampling, then with both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from math import isfinite, nan
from typing import ClassVar, Final

from mast_tui.adjudication import OrderOf, SpanOrders
from mast_tui.adjudication.for_signatures import corrected_prevalence, extras_for, gold_of
from mast_tui.errors import MastError, WorkspaceError
from mast_tui.figures.bootstrap import ROUNDS
from mast_tui.figures.experiment import Experiment, experiment_figures
from mast_tui.figures.record import OUTCOMES, FigureIndex, FigureTable
from mast_tui.figures.signatures.model import ALL, OVERALL, SignatureInput
from mast_tui.figures.signatures.report import (
    LEAST_OUTCOMES,
    LEAST_TRACES,
    SignatureReport,
    compares_outcomes,
    large_groups,
    signature_report,
)
from mast_tui.figures.source.experiment import experiment_of
from mast_tui.figures.source.signatures import input_from_workspace, without_outcomes
from mast_tui.gold.sources import is_gold
from mast_tui.labels import JUDGE_PREFIX, AnnotatorKind, annotator_kind
from mast_tui.reports import model
from mast_tui.reports.examples import Extras
from mast_tui.reports.experiment import arm_parts, experiment_notes
from mast_tui.reports.model import Behind, Section
from mast_tui.reports.signatures import group_report, signatures_report
from mast_tui.safe_text import one_line
from mast_tui.session import (
    library_view,
    record_reveal,
    said_by,
    visible_traces_for_agreement,
    within_sight,
)
from mast_tui.ui.actions.registry import KeyOf, Where
from mast_tui.ui.context import TraceLocation
from mast_tui.ui.dialogs.finder import FinderChoice, FinderDialog
from mast_tui.ui.reports.screen import (
    LeftError,
    Listing,
    Page,
    ReportScreen,
    Stopped,
    hidden_words,
    until,
)
from mast_tui.ui.reports.signature_traces import (
    Listed,
    SignatureTracesScreen,
    TraceFilter,
    listing_of,
    traces_behind,
    traces_table,
)
from mast_tui.ui.services.open_workspace import OpenWorkspace
from mast_tui.ui.suggestion_wording import judge_name
from mast_tui.ui.wording import counted, trace_names
from mast_tui.workspace import Workspace

GOLD: Final = "gold"
FIELDS: Final = ("model", "system", "benchmark", "version", "reader", "all")
"""What tells groups apart; ``all`` makes one group."""

SIGNATURES: Final = "signatures"
"""All is counted at once."""

EXPERIMENT: Final = "experiment"
"""The page of the groups as arms over the same tasks; the first group is the baseline."""

TRACES: Final = "traces"
"""The page whose rows are traces themselves."""

IN_TITLE: Final = ("traces", "failed", "successful", "outcome unknown")
"""Facts of a group that the title tells."""

NO_GROUP: Final = "There is no group to choose"


@dataclass(frozen=True, slots=True)
class SignatureChoice:
    """Whose labels are counted, and how: by which field, and which score means failed."""

    labels: str = GOLD
    by: str = "model"
    failed_below: float | None = None

    @property
    def of_judge(self) -> bool:
        """Whether they are a judge's."""
        return self.labels != GOLD and annotator_kind(self.labels) is AnnotatorKind.JUDGE


@dataclass(frozen=True, slots=True)
class Signatures:
    """What was counted.

    ``report`` is None where nothing could be, and so is ``inputs``, which it was made from.
    ``pending`` says that places and intervals of means are still to come. ``sources`` are whose
    labels there are. ``hidden`` are ids of traces that are left out, as this annotator may not know
    yet what was said of them; ``veiled`` counts the traces whose outcome is kept from them.
    ``names`` are what traces go by; ``problem`` is why nothing could be counted. ``experiment`` has
    the groups as arms, None where there are not two.
    """

    choice: SignatureChoice
    report: SignatureReport | None = None
    inputs: SignatureInput | None = None
    pending: bool = False
    sources: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    veiled: int = 0
    names: Mapping[str, str] = field(default_factory=dict)
    problem: str | None = None
    experiment: tuple[Experiment, FigureIndex] | None = None

    @property
    def groups(self) -> Mapping[str, FigureTable]:
        """The figures of all traces (``OVERALL``), then those of the groups by their names."""
        report = self.report
        if report is None or not report.inputs.traces:
            return {}
        groups = () if self.choice.by == ALL else report.groups
        return {name: report.group(name) for name in (OVERALL, *groups)}

    @property
    def large_groups(self) -> tuple[str, ...]:
        """All traces, and the groups that are shown without being chosen by name."""
        return (OVERALL, *large_groups(self.report)) if self.report and self.groups else ()


class SignaturesScreen(ReportScreen):
    """How and why runs fail: all groups are counted, and one of them is shown."""

    where = Where.SIGNATURES
    traces = SignatureTracesScreen
    keys_left_out = ("look",)  # until traces are known that are hidden
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
        self.found: Signatures | None = None
        self.group = OVERALL
        self.every = False
        self._orders = cache(SpanOrders)
        self._made: tuple[object, model.Report, Listed] | None = None

    # Counting

    def start(self, opened: OpenWorkspace) -> None:
        """Count what is chosen."""
        choice = self.choice
        self.begins(opened)
        self.count(
            SIGNATURES,
            lambda stopped: count_signatures(opened, choice, self._orders, stopped),
            self._take,
            lambda problem: Signatures(choice, problem=problem),
        )
        if self.found is None:
            self.show()

    def count_again(self, opened: OpenWorkspace) -> None:
        """Count again what may have changed while one was on another screen."""
        if self.found is not None:
            self.start(opened)

    def _take(self, found: Signatures) -> None:
        """Show the figures, with the hint that fits."""
        known = self.found
        counted_before = known is not None and known.choice == found.choice and not known.pending
        if found.pending and counted_before:
            # Counted again: until all of it is there, what stands there is nearer to the truth.
            return
        self.found = found
        can_look = bool(found.hidden) and not found.choice.of_judge
        self.hints.leave_out(() if can_look else ("look",))
        if self.group not in found.groups:
            self.group = OVERALL
        if found.pending:
            self.hints.prompt("Finding the places of labels, and resampling …")
        else:
            self.hints.clear()
            if found.hidden and found.groups:
                self.hints.say(_left_out(found, self.mast.key_of("signatures.look")))
        self.show()

    # Showing

    def title_parts(self) -> tuple[str, ...]:
        """Which group of how many, whose labels, and how its traces ended."""
        found = self.found
        if found is None or self.group not in found.groups:
            return ("Signatures", whose_words(self.choice.labels))
        table = found.groups[self.group]
        groups = found.large_groups
        grouping = found.choice.by
        name = f"{grouping} {one_line(self.group, 40)}"
        if self.group == OVERALL:
            name = "all traces" if grouping in (ALL, FIELDS[0]) else f"all traces by {grouping}"
        position = ""
        if self.group in groups and len(groups) > 1:
            position = f" ({groups.index(self.group) + 1} of {len(groups)})"
        counts = {side: table.count("traces", side) for side in (*OUTCOMES, "unknown")}
        outcomes = [f"{count:,} {side}" for side, count in counts.items() if count]
        below = found.choice.failed_below
        return (
            "Signatures",
            f"{name}{position}",
            whose_counted(found),
            ", ".join(outcomes),
            *(() if below is None else (f"failed below {below:g}",)),
        )

    def open_page(self) -> Page:
        """The open page of the group, or why there is nothing on it."""
        found = self.found
        if found is None:
            return Page()
        if found.report is None or self.group not in found.groups:
            return Page(words=nothing_words(found, self.mast.key_of))
        page = self.page
        if page == EXPERIMENT:
            return self._experiment_page(found)
        report, listed = self._report(found)
        if page == TRACES:
            section = Section(TRACES, TRACES, (traces_table(listed, found.names),))
        else:
            section = next(one for one in report.sections if one.id == page)
        if not any(table.rows for table in section.tables):
            return Page(words=self._nothing(found, section))
        notes = [
            note for note in report.notes if not (found.veiled and note.reason == "no_outcomes")
        ]
        about = self._about(found, report)
        keys = () if page in ("modes", "helps") else ("a failed or all traces",)
        return Page(section, pending=found.pending, notes=notes, about=about, keys=keys)

    def _experiment_page(self, found: Signatures) -> Page:
        """Show all arms, and the group that is chosen against the baseline."""
        if found.experiment is None:
            if found.pending:
                return Page()
            by = self.mast.key_of("signatures.by")
            return Page(
                words=f"An experiment has two arms or more; by {found.choice.by} there are fewer. "
                f"{by} groups by something else."
            )
        experiment, figures = found.experiment
        arm = self.group if self.group in experiment.others else experiment.others[0]
        parts = arm_parts(experiment, figures, arm)
        about = f"baseline: {one_line(experiment.baseline, 60)} · arm: {one_line(arm, 60)}"
        section = Section(EXPERIMENT, EXPERIMENT, parts)
        notes = experiment_notes(experiment, figures)
        return Page(section, pending=found.pending, notes=notes, about=about)

    def _of_all(self, found: Signatures) -> bool:
        return self.every or not compares_outcomes(found.groups[self.group])

    def _report(self, found: Signatures) -> tuple[model.Report, Listed]:
        """The report on the group and its traces, made once."""
        every = self._of_all(found)
        asked = (found, self.group, every)
        if self._made is None or self._made[0] != asked:
            assert found.report is not None
            assert found.inputs is not None
            wanted = TraceFilter(outcome=None if every else "failed")
            self._made = (
                asked,
                group_report(
                    found.report,
                    self.group,
                    every=every,
                    extras=Extras(self.mast.taxonomy),
                ),
                traces_behind(found.inputs, self.group, wanted),
            )
        return self._made[1:]

    def _about(self, found: Signatures, report: model.Report) -> str:
        table = found.groups[self.group]
        if not compares_outcomes(table):
            if found.veiled:
                return f"{veiled_words(found.veiled)}."
            known_outcomes = sum(table.count("traces", side) for side in OUTCOMES)
            outcomes = counted(table.count("traces"), "outcome")
            return (
                f"{known_outcomes} of {outcomes} known · failed and "
                f"successful ones compared from {LEAST_OUTCOMES} on"
            )
        told = [
            f"{value} {name}" + (f" ({more})" if more else "")
            for name, value, more in report.facts
            if name not in IN_TITLE
        ]
        return one_line(" · ".join(told), 400)

    def _nothing(self, found: Signatures, section: Section) -> str:
        which = "traces" if self._of_all(found) else "failed traces"
        key = self.mast.key_of("signatures.every")
        all_of_them = "" if self._of_all(found) else f"\n\n{key} counts all traces."
        if section.id == "onset":
            if found.pending:
                return "Reading the traces and finding the places of their labels …"
            if section.notes:
                return "\n\n".join(one_line(note.text) for note in section.notes)
            return f"None of these {which} has a label with a place.{all_of_them}"
        if section.id == "helps":
            return f"None of these {which} shows a mode."
        if section.id == "together":
            return f"None of these {which} shows a mode.{all_of_them}"
        return f"There are no {which} here.{all_of_them}"

    def whole_report(self) -> Callable[[OpenWorkspace, Stopped], model.Report] | None:
        """All groups, with the examples and traces that the command's report has."""
        choice, orders = self.choice, self._orders
        key_of = self.mast.key_of
        if self.found is None or not self.found.groups:
            return None

        def made(opened: OpenWorkspace, stopped: Stopped) -> model.Report:
            *_, found = count_signatures(opened, choice, orders, stopped)
            if found.report is None or found.inputs is None or not found.groups:
                raise MastError(nothing_words(found, key_of))
            workspace, taxonomy = opened.workspace, opened.taxonomy
            extras = extras_for(workspace, taxonomy, found.inputs, places=True)
            return signatures_report(found.report, extras=extras)

        return made

    # The traces behind

    def list_behind(self, behind: Behind) -> Callable[[OpenWorkspace], Listing | None]:
        """List the traces of the group that show the modes."""
        found = self.found
        group = dict(behind.which).get("group", self.group)

        def listed(_opened: OpenWorkspace) -> Listing | None:
            if found is None or found.inputs is None:
                return None
            return listing_of(
                traces_behind(found.inputs, group, TraceFilter.of(behind)), found.names
            )

        return listed

    def opening(self, row: str) -> TraceLocation | None:
        """A row of the page of traces leads into its trace."""
        if self.page != TRACES or self._made is None:
            return None
        one = next((one for one in self._made[2].traces if one.trace_id == row), None)
        return None if one is None else one.location

    # Choices

    @property
    def _groups(self) -> Mapping[str, FigureTable]:
        return {} if self.found is None else self.found.groups

    def action_next_group(self, step: int) -> None:
        """The next group, around the end."""
        groups = () if self.found is None else self.found.large_groups
        if not groups:
            self.hints.say(NO_GROUP)
            return
        if len(groups) < 2 and self.group in groups:
            key = self.mast.key_of("signatures.by")
            message = f"There is one group only; {key} groups by something else"
            if len(self._groups) > 2:
                choose = self.mast.key_of("signatures.choose_group")
                message = (
                    f"The other groups have fewer than {LEAST_TRACES} traces; {choose} chooses one"
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
        """A group by its name."""
        if not self._groups:
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
            for name, table in self._groups.items()
        ]
        self._ask(f"Signatures by {self.choice.by}", choices, "name", self._show_group)

    def action_by(self) -> None:
        """Another field that tells groups apart."""
        place = FIELDS.index(self.choice.by)
        self._count(replace(self.choice, by=FIELDS[(place + 1) % len(FIELDS)]))

    def action_labels(self) -> None:
        """Whose labels are counted."""
        if self.found is None:
            key = self.mast.key_of("signatures.labels")
            self.hints.prompt(f"Still counting; then {key} chooses")
            return
        choices = [FinderChoice(name, "", name, whose_words(name)) for name in self.found.sources]
        self._ask(
            "Whose labels",
            choices,
            "gold, or a name",
            lambda name: self._count(replace(self.choice, labels=name)),
        )

    def action_outcome(self) -> None:
        """Which score means failed, or none."""
        choices = [
            FinderChoice("", "", "as recorded", "the outcome that the traces carry"),
            *(
                FinderChoice(value, "", f"below {value}", "has failed, any other score not")
                for value in ("0.25", "0.5", "0.75", "1")
            ),
        ]
        self._ask("Outcome", choices, "a score, or nothing", self._score, free=True)

    def _score(self, value: str) -> None:
        try:
            below = float(value) if value else None
        except ValueError:
            below = nan
        if below is not None and not isfinite(below):
            words = f"{one_line(value, 20)} is no score: give a number"
            self.hints.say(words, error=True)
            return
        self._count(replace(self.choice, failed_below=below))

    def action_every(self) -> None:
        """Count failed traces only, or all of them."""
        shown = self._groups.get(self.group)
        if self.page == "modes":
            self.hints.say("Both outcomes stand here side by side")
            return
        if shown is not None and not compares_outcomes(shown):
            message = f"Fewer than {LEAST_OUTCOMES} outcomes are known here; all traces are counted"
            self.hints.say(message)
            return
        self.every = not self.every
        self.show()
        self.hints.say("All traces" if self.every else "Failed traces only")

    def action_look(self) -> None:
        """Count also traces that only others have finished, as their adjudicator."""
        hidden = self.found.hidden if self.found is not None else ()
        if not hidden:
            self.hints.say("No trace is left out")
        elif self.choice.of_judge:
            self.hints.say("What a judge says of them is hidden from you for now")
        else:
            self.offer_adjudication(hidden)

    def _count(self, choice: SignatureChoice) -> None:
        if choice != self.choice:
            self.choice = choice
            self.mast.workspace.when_ready(self.start)

    def _ask(
        self,
        title: str,
        choices: Sequence[FinderChoice],
        hint: str,
        chosen: Callable[[str], None],
        *,
        free: bool = False,
    ) -> None:
        def answered(value: str | None) -> None:
            if value is not None:
                chosen(value)

        finder = FinderDialog(title, choices, placeholder=hint, free=free)
        self.app.push_screen(finder, answered)


# Counting in a worker, within what the annotator may see


def count_signatures(
    opened: OpenWorkspace,
    choice: SignatureChoice,
    orders: Callable[[Workspace], OrderOf],
    stopped: Stopped,
) -> Iterator[Signatures]:
    """Count over the traces that the annotator may know about.

    That they are shown is recorded, where they tell what others said.

    Args:
        opened: The open workspace.
        choice: Whose labels, and how.
        orders: Gives the orders of spans, read from the files of their traces.
        stopped: Whether nobody waits any more.

    Raises:
        LeftError: Nobody does.
    """
    workspace, taxonomy, me = opened.workspace, opened.taxonomy, opened.annotator
    said = said_by(workspace, taxonomy.ref)
    labels = None if choice.labels == GOLD else choice.labels
    sight = within_sight(workspace, me, taxonomy.ref, labels, blind=opened.blind, said=said)
    record_reveal(workspace, me, taxonomy.ref, sorted(sight.told))
    shown: set[str] | None = None
    if opened.blind:
        view = library_view(workspace, me, taxonomy.ref, blind=True)
        shown = {trace for trace, entry in view.items() if entry.hidden_visible}
    found = Signatures(
        choice,
        pending=True,
        sources=(GOLD, *(name for name in said if said[name])),
        hidden=tuple(sorted(sight.hidden)),
        names=trace_names(workspace.traces()),
    )
    order_of = until(stopped, orders(workspace))
    inputs = input_from_workspace(
        workspace,
        taxonomy,
        labels=choice.labels,
        by=choice.by,
        failed_below=choice.failed_below,
        gold=gold_of(workspace, taxonomy, order_of),
        order_of=order_of,
        traces=frozenset(sight.seen),
    )
    inputs, veiled = without_outcomes(inputs, shown)
    for rounds in (0, ROUNDS):
        corrected = None
        if choice.of_judge and rounds:
            visible = visible_traces_for_agreement(workspace, me, taxonomy.ref)
            corrected = corrected_prevalence(workspace, taxonomy, inputs, visible)
        report = signature_report(inputs, rounds=rounds, corrected=corrected)
        yield replace(
            found,
            report=report,
            inputs=inputs,
            pending=not rounds,
            veiled=veiled,
            experiment=_experiment_in(inputs) if rounds else None,
        )
        if stopped():
            raise LeftError


def _experiment_in(inputs: SignatureInput) -> tuple[Experiment, FigureIndex] | None:
    """Make an experiment of the groups; None where there are not two."""
    try:
        experiment = experiment_of(inputs)
    except WorkspaceError:
        return None
    return experiment, FigureIndex(experiment_figures(experiment))


# What is no figure, in words


def whose_counted(found: Signatures) -> str:
    """Say whose labels are counted: gold that is one person's word bears their name, kept short so
    that the outcomes stay on a narrow screen."""
    mix = None if found.report is None else found.report.inputs.gold
    if mix is None or is_gold(mix) or not mix["sources"]["single"]:
        return whose_words(found.choice.labels)
    people = mix["annotators"]
    return one_line(people[0], 30) if len(people) == 1 else f"{len(people)} people, no gold"


def whose_words(labels: str) -> str:
    """Say whose labels are counted."""
    if labels == GOLD:
        return "gold"
    if labels.startswith(JUDGE_PREFIX):
        return f"judge {one_line(judge_name(labels), 30)}"
    return f"labels of {one_line(labels, 30)}"


def veiled_words(veiled: int) -> str:
    """Say that outcomes are hidden from a blind annotator."""
    return (
        f"You work blind: the outcome of {counted(veiled, 'trace')} is hidden from you and counts "
        "as unknown"
    )


def _left_out(found: Signatures, key: str) -> str:
    """Return how many traces are left out; ``key`` includes them."""
    if found.choice.of_judge:
        return f"{counted(len(found.hidden), 'trace')} left out, hidden from you for now"
    return hidden_words(len(found.hidden), key)


def nothing_words(found: Signatures, key_of: KeyOf) -> str:
    """Return why there are no figures, and what to do.

    Args:
        found: What was counted.
        key_of: Returns how the key of an action is shown.
    """
    if found.problem is not None:
        return f"{one_line(found.problem, 400)}\n\n{key_of('everywhere.back')} goes back."
    labels = found.choice.labels
    lines = []
    if found.hidden and found.choice.of_judge:
        lines.append(
            f"What {one_line(labels)} says of {counted(len(found.hidden), 'trace')} is hidden from "
            "you, as you work blind or a study keeps it back for now."
        )
    elif found.hidden:
        lines += [
            "What others said of the traces that count here is hidden from you.",
            "",
            f"{hidden_words(len(found.hidden), key_of('signatures.look'))}.",
        ]
    elif labels == GOLD:
        lines += [
            "Nobody has finished a trace yet, so there is no gold.",
            "",
            f"{key_of('annotate.finish')} finishes the trace that is open; mast-tui import brings "
            "labels from elsewhere.",
        ]
    else:
        lines.append(f"{one_line(labels)} has finished no trace under this taxonomy.")
    if len(found.sources) > 1:
        lines += ["", f"{key_of('signatures.labels')} chooses whose labels are counted."]
    return "\n".join(lines)
