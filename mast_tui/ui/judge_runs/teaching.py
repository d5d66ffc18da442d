"""The next version of a judge: its examples, the change of its prompt, and the cost."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Final

from mast_tui.adjudication import TraceSides
from mast_tui.columns import ColumnWidth, TableColumn
from mast_tui.configuration import read_judge_configuration
from mast_tui.judges.comparing import Case, Mark, PresentSide
from mast_tui.judges.llm.prompt.few_shot import ExampleChoice
from mast_tui.judges.llm.prompt.prompt import Example
from mast_tui.judges.llm.run.estimate import estimate_run
from mast_tui.judges.llm.run.setup import Setup, configured_setup
from mast_tui.judges.llm.teaching import (
    JudgeError,
    JudgeVersion,
    examples_of,
    guidelines_of,
    keep_version,
    most_informative,
    versions,
    with_chosen_examples,
    with_guidelines,
)
from mast_tui.labels import WHOLE_TRACE, Label, VerdictValue
from mast_tui.safe_text import one_line
from mast_tui.study import random_sample
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.traces.model import Trace
from mast_tui.ui.actions.registry import Where
from mast_tui.ui.context import JudgeProgress
from mast_tui.ui.judge_runs.alignment import RunComparison
from mast_tui.ui.services.model_judge import Plan, estimate_text
from mast_tui.ui.services.open_workspace import OpenWorkspace
from mast_tui.ui.services.trace_catalog import OneByOne
from mast_tui.ui.services.trace_loader import TraceLoader
from mast_tui.ui.styles import BASE_SCREEN, RUNS
from mast_tui.ui.suggestion_wording import judge_name
from mast_tui.ui.table_screen import TableScreen
from mast_tui.ui.widgets.virtual_lines import ANY_FILLED, name_width, sign_column
from mast_tui.ui.wording import counted
from mast_tui.workspace import Run, TraceRecord
from mast_tui.workspace.events.model import now
from mast_tui.workspace.registers.hold_out import held_out
from mast_tui.writes import piece_of_work

FIRST_CHOSEN: Final = 4
"""The number of errors chosen at first if no person has marked any."""

MOST_EXAMPLES: Final = 12

SAMPLE_SIZE: Final = 20
"""The number of random traces that a new version judges, besides the wrongly judged ones."""


def wrong_traces(comparison: RunComparison) -> list[str]:
    """Return the ids of the traces on which the judge was wrong about a mode."""
    return sorted({case.trace_id for case in _wrong_cases(comparison)})


def _wrong_cases(comparison: RunComparison) -> Iterator[Case]:
    """Yield the cases in which only one side says present."""
    for cases in comparison.comparison.cases.values():
        yield from (case for case in cases if case.outcome is not PresentSide.BOTH)


def traces_to_judge(comparison: RunComparison) -> tuple[str, ...]:
    """Return the ids of the traces for the next version of the judge.

    These are the wrongly judged traces, a random sample, and the held-out traces.
    """
    random_traces = (*_sample(comparison), *comparison.alignment.test_traces)
    return tuple(dict.fromkeys((*wrong_traces(comparison), *random_traces)))


def _sample(comparison: RunComparison) -> tuple[str, ...]:
    """Return a random sample of the traces that measure the judge."""
    traces = comparison.work_by_trace.keys() - comparison.alignment.unmeasured
    return random_sample(traces, seed=0, n=SAMPLE_SIZE)


def _with_chosen_traces(setup: Setup, comparison: RunComparison) -> Setup:
    """Add to a setup which traces the judge gets only because the earlier judge was wrong there."""
    earlier = comparison.run.settings
    random_traces = {*_sample(comparison), *comparison.alignment.test_traces}
    return replace(
        setup,
        chosen=tuple(trace for trace in wrong_traces(comparison) if trace not in random_traces),
        chosen_from=(earlier and earlier.chosen_from) or comparison.run.judge,
    )


def judge_errors(comparison: RunComparison, opened: OpenWorkspace) -> list[JudgeError]:
    """Return the errors of the judge, the most informative first.

    In each case the judge is the first side, and people are the second side.

    Args:
        comparison: The judge beside the gold.
        opened: The workspace.

    Raises:
        WorkspaceError: The workspace cannot be read.
    """
    workspace = opened.workspace
    judge_labels = workspace.labels(annotator=comparison.run.judge, taxonomy=opened.taxonomy.ref)
    label_by_id = {label.id: label for label in judge_labels}
    record_by_trace = {record.trace_id: record for record in workspace.traces()}
    errors = []
    for case in _wrong_cases(comparison):
        error = _overlooked_failure(comparison, case, record_by_trace[case.trace_id])
        if case.outcome is PresentSide.FIRST and case.first:
            error = _as_false_alarm(error, case.first[0], label_by_id)
        errors.append(error)
    return most_informative(errors)


def _overlooked_failure(comparison: RunComparison, case: Case, record: TraceRecord) -> JudgeError:
    """Return a case as an error of a judge that overlooked a failure."""
    subject = (case.trace_id, case.mode)
    mistake_reason = comparison.alignment.mistake_reasons.get(subject, "")
    length_class = (record.spans or 0).bit_length()  # each class is twice as long
    return JudgeError(
        ExampleChoice(case.mode, VerdictValue.PRESENT, case.trace_id),
        case.second[0].target if case.second else WHOLE_TRACE,
        mistake_reason or _reason_of_people(comparison.work_by_trace[case.trace_id], case),
        marked_by_person=bool(mistake_reason),
        agreed=subject in comparison.alignment.agreed,
        stratum=f"{record.system} {length_class}",
    )


def _as_false_alarm(
    error: JudgeError, judge_mark: Mark, label_by_id: Mapping[str, Label]
) -> JudgeError:
    """Return an error as a false alarm, at the place that the judge has marked."""
    label = label_by_id.get(judge_mark.label or "")
    evidence = None if label is None else label.evidence
    return replace(
        error,
        choice=replace(error.choice, verdict=VerdictValue.ABSENT),
        target=judge_mark.target,
        quote=None if evidence is None else evidence.quote,
    )


def _reason_of_people(trace_work: TraceSides, case: Case) -> str:
    """Return people's reason why the judge was wrong in a case.

    It is the first reason of a decision or note on a label, or else a general sentence.
    """
    labels = [label for side in trace_work.sides for label in side.labels.values()]
    reasons = [
        *(decision.reason for decision in trace_work.decisions if decision.mode == case.mode),
        *(label.note for label in labels if label.mode == case.mode),
    ]
    only_people_say_present = case.outcome is PresentSide.SECOND
    general_reason = (
        "people say that it is"
        if only_people_say_present
        else "it looks like it, and people say that it is not"
    )
    return next((reason for reason in reasons if reason), general_reason)


@dataclass(frozen=True, slots=True)
class NextVersion:
    """A planned version of a judge, before it has judged.

    Attributes:
        version: The version.
        plan: The plan of its run, with the estimated cost.
        change: The added and removed lines of the prompt.
        tokens: The number of tokens by which the prompt grows.
        traces: The traces that the version judges.
        other_settings: The configured settings that differ from those of the judge.
    """

    version: JudgeVersion
    plan: Plan
    change: tuple[str, ...]
    tokens: int
    traces: Collection[Trace]
    other_settings: tuple[str, ...]


def next_version(
    opened: OpenWorkspace,
    comparison: RunComparison,
    chosen_errors: Sequence[JudgeError],
    loader: TraceLoader,
    library_traces: Mapping[str, Trace],
) -> NextVersion:
    """Plan the next version of a judge. This is slow, so call it in a worker.

    Args:
        opened: The workspace.
        comparison: The judge beside the gold.
        chosen_errors: The errors that become examples.
        loader: Reads the traces that the library does not list.
        library_traces: The traces of the library, by id.

    Raises:
        MastError: No model is configured, or the workspace cannot be read.
        OSError: A trace cannot be read.
    """
    workspace = opened.workspace
    base_setup = configured_setup(opened.taxonomy, read_judge_configuration())
    parent = versions(workspace, opened.taxonomy.ref).get(comparison.run.judge)
    parent_setup = base_setup if parent is None else parent.applied_to(base_setup)
    new_examples = examples_of(
        chosen_errors,
        loader.read,
        base_setup.redaction,
        count=MOST_EXAMPLES,
        may_use=lambda trace_id: not held_out(workspace, trace_id),
    )
    examples = _merged_examples(() if parent is None else parent.examples, new_examples)
    version = _version_with(opened, comparison.run.judge, examples, base_setup)
    new_setup = version.applied_to(base_setup)
    traces = _traces_without_examples(comparison, examples, loader, library_traces)
    return NextVersion(
        version,
        plan=Plan(
            _with_chosen_traces(new_setup, comparison), estimate_run(new_setup, traces, workspace)
        ),
        change=tuple(prompt_change(parent_setup, new_setup)),
        tokens=new_setup.prompt.system.tokens - parent_setup.prompt.system.tokens,
        traces=traces,
        other_settings=tuple(_other_settings(comparison.run, parent_setup)),
    )


def _other_settings(run: Run, setup: Setup) -> Iterator[str]:
    """Yield the settings of a setup that differ from those of a judge's run."""
    if run.settings is None or run.judge == setup.judge:
        return
    earlier, later = (
        {"model": settings.model, **dict(settings.parameters)}
        for settings in (run.settings, setup.settings())
    )
    for name in sorted(earlier.keys() | later.keys()):
        if earlier.get(name) != later.get(name):
            yield f"{name} {later.get(name, 'none')} (was {earlier.get(name, 'none')})"


def _version_with(
    opened: OpenWorkspace, parent: str, examples: tuple[Example, ...], base_setup: Setup
) -> JudgeVersion:
    """Return the version of a judge with the guidelines of people and with examples."""
    guidelines = guidelines_of(opened.workspace, opened.taxonomy.ref)
    setup = with_chosen_examples(with_guidelines(base_setup, guidelines), examples)
    return JudgeVersion(
        judge=setup.judge,
        parent=parent,
        guidelines=guidelines,
        examples=examples,
        choices=tuple(ExampleChoice.from_example(example).serialize() for example in examples),
        made_by=opened.annotator,
        made_at=now(),
    )


def _traces_without_examples(
    comparison: RunComparison,
    examples: Sequence[Example],
    loader: TraceLoader,
    library_traces: Mapping[str, Trace],
) -> OneByOne:
    """Return the traces that the next version judges, without the traces of examples."""
    example_ids = {example.trace_id for example in examples}
    candidates = (
        library_traces.get(trace_id) or loader.read(trace_id)
        for trace_id in traces_to_judge(comparison)
        if trace_id not in example_ids
    )
    return OneByOne([trace for trace in candidates if trace is not None])


def _merged_examples(
    earlier: tuple[Example, ...], later: tuple[Example, ...]
) -> tuple[Example, ...]:
    """Return the later examples, then the earlier examples that differ in mode, verdict or trace.

    At most ``MOST_EXAMPLES`` are returned.
    """
    later_choices = set(map(ExampleChoice.from_example, later))
    kept_examples = tuple(
        example for example in earlier if ExampleChoice.from_example(example) not in later_choices
    )
    return (*later, *kept_examples)[:MOST_EXAMPLES]


def prompt_change(old_setup: Setup, new_setup: Setup) -> Iterator[str]:
    """Yield the added and removed lines of the prompt, each below its heading.

    Args:
        old_setup: The setup of the judge so far.
        new_setup: The setup of the next version.
    """
    # Only the first piece of a prompt can differ.
    old_lines, new_lines = (
        setup.prompt.system.pieces[0].splitlines() for setup in (old_setup, new_setup)
    )
    heading = last_heading = ""
    for line in difflib.ndiff(old_lines, new_lines):
        sign = line[:1]
        text = line[2:]
        if text.startswith("#"):
            heading = text
        if sign in "+-":
            if heading not in (last_heading, text):  # neither yielded before nor this line
                yield heading
            last_heading = heading
            yield f"{sign} {text}"


_error_key: Final = attrgetter("choice.trace_id", "choice.mode")
"""Returns the trace id and mode of an error."""


def error_columns(
    taxonomy: Taxonomy, loader: TraceLoader, chosen_errors: frozenset[tuple[str, str]]
) -> tuple[TableColumn[JudgeError], ...]:
    """Return the columns of a judge's errors.

    Args:
        taxonomy: The taxonomy of the modes.
        loader: Returns the names of the traces.
        chosen_errors: The trace id and mode of each chosen error.
    """
    return (
        sign_column(lambda row: "●" if _error_key(row) in chosen_errors else "○", "figure"),
        TableColumn(
            "trace", lambda row: one_line(loader.name_of(row.choice.trace_id)), "name", name_width()
        ),
        TableColumn("", lambda row: taxonomy.mode(row.choice.mode).code, "name", ColumnWidth(95)),
        TableColumn("right is", lambda row: row.choice.verdict.value, "figure", ColumnWidth(94)),
        TableColumn("", _basis_text, "quiet", ColumnWidth(60, filled=ANY_FILLED)),
        TableColumn("reason", lambda row: one_line(row.rationale), "quiet", name_width(80)),
    )


def _basis_text(error: JudgeError) -> str:
    """Return who says that the judge is wrong; empty if several people agree."""
    if error.marked_by_person:
        return "marked"
    return "" if error.agreed else "one person"


class TeachingScreen(TableScreen[JudgeError]):
    """The errors of a judge. Chosen errors become examples in the next version's prompt."""

    CSS_PATH = [BASE_SCREEN, RUNS]
    where = Where.TEACHING
    table_id = "teaching"
    row_key = _error_key

    def __init__(self, comparison: RunComparison) -> None:
        super().__init__()
        self._comparison = comparison
        self._selected: frozenset[tuple[str, str]] = frozenset()
        """The trace ids and modes of the chosen errors."""
        self._loader: TraceLoader | None = None
        """The loader for the traces of examples. It adds no masks, because the judge masks the
        texts itself.
        """
        self._planned: NextVersion | None = None

    def show_title(self) -> None:
        """Show which judge is taught, and by whom."""
        name = judge_name(self._comparison.run.judge)
        self.title_bar.show(("Teach", name, "examples and guidelines"), self.right_title_parts())

    def read_rows(self, opened: OpenWorkspace) -> None:
        """Read the errors and the names of the traces in a worker once, then list them."""
        open_traces = list(self.mast.catalog.traces.values())

        def read_errors() -> tuple[Sequence[JudgeError], TraceLoader]:
            loader = TraceLoader(opened.workspace, open_traces)
            return judge_errors(self._comparison, opened), loader

        if self._loader is None:
            self.work.run("teaching", read_errors, self._list_errors, self.show_message_only)

    def _list_errors(self, errors_and_loader: tuple[Sequence[JudgeError], TraceLoader]) -> None:
        """Show the errors, and choose the first examples.

        These are the errors marked by a person, or else the first errors on which people agree.
        """
        errors, self._loader = errors_and_loader
        chosen_errors = [error for error in errors if error.marked_by_person]
        if not chosen_errors:
            chosen_errors = [error for error in errors if error.agreed][:FIRST_CHOSEN]
        self._selected = frozenset(map(_error_key, chosen_errors))
        self._show_errors(errors)

    def _show_errors(self, errors: Sequence[JudgeError]) -> None:
        """Show the errors with their choice, and plan the next version."""
        columns = error_columns(self.mast.taxonomy, self._comparison.loader, self._selected)
        self.show_rows(columns, errors)
        self._planned = None
        self.describe("The change of the prompt", "Reading the examples …")
        self.mast.workspace.when_ready(self._plan_version)

    def _plan_version(self, opened: OpenWorkspace) -> None:
        """Plan the next version of the judge in a worker, then show the plan or the error."""
        loader = self._loader
        if loader is None:
            return
        errors = [error for error in self.main_list.rows if _error_key(error) in self._selected]
        listed_traces = dict(self.mast.catalog.traces)
        self.work.run(
            "plan",
            lambda: next_version(opened, self._comparison, errors, loader, listed_traces),
            self._show_plan,
            self.detail.show_text,
        )

    def _show_plan(self, planned: NextVersion) -> None:
        """Show the change of the prompt and the cost of a run."""
        self._planned = planned
        version = planned.version
        shown = {example.trace_id for example in version.examples}
        wrong = set(wrong_traces(self._comparison)) - shown
        tests = set(self._comparison.alignment.test_traces) - shown
        random_count = len(planned.traces) - len(wrong | tests)
        lines = [
            f"{version.judge}: {counted(len(version.guidelines), 'guideline')}, "
            f"{counted(len(version.examples), 'example')}.",
            f"To judge: {counted(len(planned.traces), 'trace')} that are no examples: {len(wrong)} "
            f"on which the judge was wrong, {len(tests)} held out, {random_count} others.",
            estimate_text(planned.plan),
        ]
        if planned.other_settings:
            settings_text = ", ".join(planned.other_settings)
            lines.append(f"The comparison also measures changed settings: {settings_text}.")
        lines += [
            "",
            *(planned.change or ("Nothing changes: choose examples, or write a guideline.",)),
        ]
        self.describe(f"The change of the prompt: {planned.tokens:+,} tokens", "\n".join(lines))

    def action_choose(self) -> None:
        """Choose the error under the cursor as an example, or remove it from the examples."""
        error = self.main_list.row
        if error is None:
            self.hints.say("The judge made no error that people have corrected")
            return
        self._selected ^= {_error_key(error)}
        self._show_errors(self.main_list.rows)

    def action_open(self) -> None:
        """Run the next version of the judge."""
        planned = self._planned
        if planned is None:
            self.hints.say("There is no new version yet: the lower pane says why")
        elif not planned.change:
            self.hints.say("Nothing changes: choose examples, or write a guideline")
        else:
            self._store_and_judge(planned)

    @piece_of_work
    async def _store_and_judge(self, planned: NextVersion) -> None:
        opened = self.mast.opened
        if opened is None:
            return

        def store_version() -> NextVersion:
            """Store the version, and return it, because None would mean an error."""
            keep_version(opened.workspace, opened.taxonomy.ref, planned.version)
            return planned

        if await self.run_or_show_error(store_version) is not None:
            self.mast.judge_traces(planned.traces, planned.plan)

    def show_judge_progress(self, message: JudgeProgress) -> None:
        """Show the progress of the judge, and at its end the key that lists the new version."""
        message.show_in(self.hints)
        if message.done and not message.problem:
            key = self.mast.key_of("everywhere.runs")
            self.hints.say(f"{message.text} · {key} lists the new version")
