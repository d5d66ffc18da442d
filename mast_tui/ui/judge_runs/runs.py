"""The judge runs in a workspace, the traces of each, and the annotator's answers to suggestions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter
from typing import Final, NamedTuple

from mast_tui.columns import ColumnWidth, TableColumn, padded, table_lines
from mast_tui.labels import QuoteCounts, ReviewAnswer
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.ui.actions.registry import KeyOf, Where
from mast_tui.ui.context import JudgeProgress, TraceLocation
from mast_tui.ui.judge_runs.comparison import ComparisonScreen
from mast_tui.ui.services.open_workspace import OpenWorkspace
from mast_tui.ui.services.trace_catalog import OneByOne
from mast_tui.ui.styles import BASE_SCREEN, RUNS
from mast_tui.ui.suggestion_wording import ALTERED, judge_name
from mast_tui.ui.table_screen import OpensTraces, TableScreen
from mast_tui.ui.widgets.virtual_lines import ANY_FILLED, figure_column, name_width, sign_column
from mast_tui.ui.wording import cost_text, counted, short_count, trace_names
from mast_tui.workspace.records import Asked, JudgementRecord, Run, RunSettings, RunTrace

HIDDEN: Final = "hidden"

TIME_CHARS: Final = 19
"""The length of a time (ISO 8601) up to its seconds."""


@dataclass(slots=True)
class AnswerCounts:
    """The number of suggestions by answer."""

    accepted: int = 0
    rejected: int = 0
    waiting: int = 0

    def add(self, answer: ReviewAnswer | None) -> None:
        """Count one suggestion. ``answer`` is None while it waits for an answer."""
        if answer is None:
            self.waiting += 1
        elif answer is ReviewAnswer.REJECT:
            self.rejected += 1
        else:
            self.accepted += 1

    @property
    def total(self) -> int:
        """The number of all suggestions."""
        return self.accepted + self.rejected + self.waiting

    @property
    def share(self) -> str:
        """The share of accepted suggestions among the answered ones; empty without answers."""
        answered = self.accepted + self.rejected
        return f"{self.accepted / answered:.0%}" if answered else ""


@dataclass(frozen=True, slots=True)
class RunView:
    """A run, and one annotator's answers to its current suggestions.

    Traces with their text as an example in the judge's prompt are not counted.

    Attributes:
        run: The run.
        answers: The number of suggestions by answer; None while hidden from the annotator.
        modes: The answers for each mode, by slug; None while hidden.
        waiting_by_trace: The number of suggestions without an answer, by trace id; empty while
            hidden.
        left_out: The number of traces with their text as an example in the prompt.
    """

    run: Run
    answers: AnswerCounts | None
    modes: Mapping[str, AnswerCounts] | None
    waiting_by_trace: Mapping[str, int] = field(default_factory=dict)
    left_out: int = 0

    @property
    def failed_count(self) -> int:
        """The number of traces on which the judge failed."""
        return sum(trace.problem is not None for trace in self.run.traces)

    @property
    def judge_text(self) -> str:
        """The name of the model, or of a judge without a model."""
        settings = self.run.settings
        return judge_name(self.run.judge) if settings is None else one_line(settings.model)

    @property
    def tokens_text(self) -> str:
        """The number of tokens that a model read and wrote; empty without a model."""
        usage = self.run.usage
        return short_count(usage.tokens_in + usage.tokens_out) if self.run.settings else ""


def imported_runs(opened: OpenWorkspace, runs: Sequence[Run]) -> list[Run]:
    """Return a run for each judge with imported judgements.

    Imported judgements belong to no stored run.

    Args:
        opened: The open workspace.
        runs: The runs that the workspace has.

    Raises:
        WorkspaceError: The workspace cannot be read.
    """
    workspace = opened.workspace
    judges_with_run = {(run.judge, run.taxonomy) for run in runs}
    imported_judgements: dict[tuple[str, str], list[JudgementRecord]] = {}
    for judgement in workspace.judgements():
        judge_key = (judgement.judge, judgement.taxonomy)
        if judge_key not in judges_with_run:
            imported_judgements.setdefault(judge_key, []).append(judgement)
    return [
        _imported_run(opened, judge, taxonomy, judgements)
        for (judge, taxonomy), judgements in imported_judgements.items()
    ]


def _imported_run(
    opened: OpenWorkspace, judge: str, taxonomy: str, judgements: Sequence[JudgementRecord]
) -> Run:
    """Return a run made up of the imported judgements of one judge."""
    labels = opened.workspace.labels(annotator=judge, taxonomy=taxonomy)
    findings = Counter(label.trace_id for label in labels)
    return Run(
        f"imported {judge} {taxonomy}",
        judge,
        taxonomy,
        started_at=min(record.at for record in judgements),
        finished_at=max(record.at for record in judgements),
        note="It did not run here: its judgements were imported.",
        traces=tuple(RunTrace(record.trace_id, findings[record.trace_id]) for record in judgements),
    )


def read_views(opened: OpenWorkspace, runs: Sequence[Run]) -> list[RunView]:
    """Read the runs as the annotator may see them, the latest first.

    This is slow, so call it in a worker. The suggestions of a judge on a trace count for each of
    its runs over that trace. Hidden suggestions and traces with their text in a prompt do not
    count.

    Args:
        opened: The open workspace.
        runs: The runs.

    Raises:
        WorkspaceError: The workspace cannot be read.
    """
    ordered_runs = sorted(runs, key=lambda run: run.started_at, reverse=True)
    if opened.judges_hidden:
        return [RunView(run, None, None) for run in ordered_runs]
    example_ids_by_judge: dict[str, set[str]] = {run.judge: set() for run in runs}
    for run in runs:
        if run.settings is not None:
            example_ids_by_judge[run.judge].update(run.settings.examples)
    answers_by_trace = _answers_by_trace(opened, example_ids_by_judge)
    return [
        _view_of_run(run, answers_by_trace, example_ids_by_judge[run.judge]) for run in ordered_runs
    ]


_ModeAnswer = tuple[str, ReviewAnswer | None]
"""The mode of a suggestion, and the annotator's answer or None."""

_JudgedTrace = tuple[str, str, str]
"""A judge, the id of a trace, and a taxonomy."""


def _answers_by_trace(
    opened: OpenWorkspace, judges: Iterable[str]
) -> dict[_JudgedTrace, list[_ModeAnswer]]:
    """Return the annotator's answers to the suggestions of some judges, by trace."""
    workspace = opened.workspace
    reviews = workspace.reviews(annotator=opened.annotator, pass_number=None)
    # The reviews are in the order of passes, so the last answer to a suggestion counts.
    answer_by_suggestion = {review.suggestion: review.answer for review in reviews}
    answers_by_trace: dict[_JudgedTrace, list[_ModeAnswer]] = {}
    for judge in judges:
        for label in workspace.labels(annotator=judge):
            mode_answer = (label.mode, answer_by_suggestion.get(label.id))
            judged_trace = (judge, label.trace_id, label.taxonomy)
            answers_by_trace.setdefault(judged_trace, []).append(mode_answer)
    return answers_by_trace


def _view_of_run(
    run: Run,
    answers_by_trace: Mapping[_JudgedTrace, Sequence[_ModeAnswer]],
    example_ids: Collection[str],
) -> RunView:
    """Count the answers to the suggestions of a run, without the traces in ``example_ids``."""
    counts = AnswerCounts()
    counts_by_mode: dict[str, AnswerCounts] = {}
    waiting_by_trace: dict[str, int] = {}
    for trace in run.traces:
        trace_answers = answers_by_trace.get((run.judge, trace.trace_id, run.taxonomy), ())
        waiting_by_trace[trace.trace_id] = sum(answer is None for _, answer in trace_answers)
        if trace.trace_id in example_ids:
            continue
        for mode, answer in trace_answers:
            counts.add(answer)
            counts_by_mode.setdefault(mode, AnswerCounts()).add(answer)
    left_out = sum(trace.trace_id in example_ids for trace in run.traces)
    return RunView(run, counts, counts_by_mode, waiting_by_trace, left_out)


def share_in_traces(quotes: QuoteCounts) -> str:
    """Return the share of quotes that are in the traces; empty without quotes."""
    return f"{quotes.found / quotes.all:.0%}" if quotes.all else ""


def local_time(iso: str) -> str:
    """Return a UTC time (ISO 8601) as local time.

    Of any other text return the first characters.
    """
    try:
        return datetime.fromisoformat(iso).astimezone().strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return one_line(iso, 16)


@dataclass(frozen=True, slots=True)
class RunTraceRow:
    """A trace of a run, as the annotator may see it.

    Attributes:
        trace: The trace with the result of the judge.
        name: The name in the list.
        waiting: The number of suggestions without an answer; 0 while hidden.
        is_hidden: Whether the judge's suggestions are hidden from the annotator.
    """

    trace: RunTrace
    name: str
    waiting: int
    is_hidden: bool

    @property
    def trace_id(self) -> str:
        """The id of the trace."""
        return self.trace.trace_id

    @property
    def has_failed(self) -> bool:
        """True if the judge failed on the trace."""
        return self.trace.problem is not None

    @property
    def sign(self) -> str:
        """The sign before the row."""
        if self.has_failed:
            return "!"
        return "◌" if self.waiting else "●"

    @property
    def note(self) -> str:
        """The reason of the failure, or the remarks on repaired or dropped suggestions."""
        if self.has_failed:
            return one_line(f"failed: {self.trace.problem}")
        return "" if self.is_hidden else one_line("; ".join(self.trace.remarks))

    def count_text(self, count: int) -> str:
        """Return a number of suggestions as text; empty if the judge failed."""
        if self.has_failed:
            return ""
        return HIDDEN if self.is_hidden else str(count)


def trace_rows(view: RunView, names: Mapping[str, str]) -> list[RunTraceRow]:
    """Return the rows of a run's traces, the most urgent first.

    Failed traces come before all others, then traces with many waiting suggestions.

    Args:
        view: The run.
        names: The names of the traces, by their ids.
    """
    rows = [
        RunTraceRow(
            trace,
            names.get(trace.trace_id, trace.trace_id),
            view.waiting_by_trace.get(trace.trace_id, 0),
            is_hidden=view.answers is None,
        )
        for trace in view.run.traces
    ]
    return sorted(rows, key=lambda row: (not row.has_failed, -row.waiting, row.trace_id))


_TRACE_COLUMNS: Final[Sequence[TableColumn[RunTraceRow]]] = (
    sign_column(
        lambda row: row.sign, lambda row: "doubt" if row.has_failed or row.waiting else "quiet"
    ),
    TableColumn("trace", lambda row: one_line(row.name), "name", name_width()),
    TableColumn(
        "found",
        lambda row: row.count_text(row.trace.findings),
        width=ColumnWidth(90, filled=ANY_FILLED),
        right=True,
    ),
    TableColumn(
        "waiting",
        lambda row: row.count_text(row.waiting),
        lambda row: "doubt" if row.waiting else "quiet",
        ColumnWidth(95, filled=ANY_FILLED),
        right=True,
    ),
    TableColumn(
        "quotes found",
        lambda row: "" if row.is_hidden else quotes_text(row.trace.quotes),
        lambda row: "doubt" if row.trace.quotes.found < row.trace.quotes.all else "figure",
        ColumnWidth(60, filled=ANY_FILLED),
        right=True,
    ),
    TableColumn(
        "windows",
        lambda row: str(row.trace.windows) if row.trace.windows else "",
        "quiet",
        ColumnWidth(40, filled=ANY_FILLED),
        right=True,
    ),
    TableColumn(
        "", lambda row: row.note, lambda row: "doubt" if row.has_failed else "quiet", name_width(80)
    ),
)


def answers_text(answers: Sequence[Asked]) -> str:
    """Return a model's answers in full, each below a line with its time, tokens and use.

    Without answers, return why there are none.
    """
    if not answers:
        return (
            "This workspace has no answer of a model about this trace. The rules judge asks no "
            "model, and the answers of a run on another machine stay there."
        )
    parts = []
    for number, request in enumerate(answers, 1):
        use = "used" if request.usable else "not usable"
        time = request.at[:TIME_CHARS].replace("T", " ")
        # Any finish but "stop" is the reason why the answer is incomplete.
        parts.append(
            f"{number} of {len(answers)} · {time} · {request.form} · "
            f"{request.tokens_in:,} tokens in, {request.tokens_out:,} out · "
            f"{use if request.finish == 'stop' else request.finish}\n"
            f"{request.answer or '(no words)'}"
        )
    return "\n\n".join(parts)


def quotes_text(quotes: QuoteCounts) -> str:
    """Return the numbers of found, of all and of altered quotes; empty without quotes."""
    if not quotes.all:
        return ""
    altered_text = f" {ALTERED}{quotes.altered}" if quotes.altered else ""
    return f"{quotes.found} of {quotes.all}{altered_text}"


class RunScreen(OpensTraces, TableScreen[RunTraceRow]):
    """The traces of one run, as the current annotator may see them."""

    CSS_PATH = [BASE_SCREEN, RUNS]
    where = Where.RUN
    table_id = "run"
    row_key = attrgetter("trace_id")

    def __init__(self, view: RunView, names: Mapping[str, str]) -> None:
        """Show a run. ``names`` are the names of traces by id."""
        super().__init__()
        self._view = view
        self._names = names
        self._reads_answers = False

    def read_rows(self, opened: OpenWorkspace) -> None:
        """Count the annotator's answers to the suggestions of the run, and show its traces."""
        run = self._view.run
        # After an error the old figures stay, and the next request reports it.
        self.work.run(
            "recount", lambda: read_views(opened, [run]), self._show_views, failed=lambda _: None
        )

    def _show_views(self, views: Sequence[RunView]) -> None:
        (self._view,) = views
        rows = trace_rows(self._view, self._names)
        if rows:
            self.show_rows(_TRACE_COLUMNS, rows)
        else:
            key = self.mast.key_of("everywhere.back")
            self.show_message_only(f"This run has no traces.\n\n{key} goes back.")

    def show_title(self) -> None:
        run = self._view.run
        title = (
            f"{judge_name(run.judge)} · {local_time(run.started_at)}",
            counted(len(run.traces), "trace"),
            *((f"{self._view.failed_count} failed",) if self._view.failed_count else ()),
        )
        self.title_bar.show(title, self.right_title_parts())

    def describe_row(self, row: RunTraceRow) -> None:
        """Show the judge's result or its full answers on a trace."""
        if self._reads_answers and self.mast.opened is not None:
            self._read_answers(self.mast.opened, row)
            return
        trace = row.trace
        lines = [trace.trace_id]
        if trace.problem is not None:
            lines.append(f"failed: {trace.problem}")
            lines.append("Run the judge again to retry it.")
        if not row.is_hidden:
            lines += [f"quotes: {trace.quotes.summary}"] if trace.quotes.all else []
            lines += trace.remarks
        self.describe(row.name, "\n".join(lines))

    def action_answers(self) -> None:
        """Switch between the model's answers about the trace and its result."""
        if self._view.answers is None:  # hidden from the annotator
            key = self.mast.key_of("annotate.reveal")
            self.hints.say(f"You work blind: {key} in the trace shows this after you finish it")
            return
        self._reads_answers = not self._reads_answers
        self.set_class(self._reads_answers, "-answers")
        self.show_detail()

    def _read_answers(self, opened: OpenWorkspace, row: RunTraceRow) -> None:
        """Read the model's answers about a trace in a worker, then show them."""

        def show_answers(answers: Sequence[Asked]) -> None:
            # The user may have returned to the result meanwhile.
            if self._reads_answers:
                count = counted(len(answers), "answer")
                self.describe(f"{row.name} · {count}", answers_text(answers))

        # After an error the text stays, and the next request reports it.
        self.work.run(
            "answers",
            lambda: opened.workspace.answers_about(self._view.run.id, row.trace_id),
            show_answers,
            failed=lambda _: None,
        )

    def action_open(self) -> None:
        """Open the trace at a suggestion of this judge, if possible one without an answer."""
        row = self.main_list.row
        if row is not None:
            self.open_at(TraceLocation(row.trace_id, judge=self._view.run.judge))


MOST_LISTED: Final = 100
"""The most traces of a run that are listed with their problems or remarks."""

_MODE_CELLS: Final = 32
"""The cells of a mode's name in the table of modes."""


_RUN_COLUMNS: Final[Sequence[TableColumn[RunView]]] = (
    TableColumn("judge", lambda row: row.judge_text, "name", name_width()),
    TableColumn(
        "prompt",
        lambda row: one_line(row.run.settings.prompt, 12) if row.run.settings else "",
        "quiet",
        ColumnWidth(30, filled=ANY_FILLED),
    ),
    TableColumn("when", lambda row: local_time(row.run.started_at), "quiet", ColumnWidth(80)),
    figure_column("traces", lambda row: str(len(row.run.traces)), 90),
    figure_column(
        "failed", lambda row: str(row.failed_count) if row.failed_count else "", 60, "doubt"
    ),
    figure_column("found", lambda row: str(row.run.findings) if row.answers else HIDDEN, 95),
    figure_column("quotes", lambda row: share_in_traces(row.run.quotes) if row.answers else "", 50),
    figure_column(
        "you accepted", lambda row: row.answers.share or "—" if row.answers else HIDDEN, 85
    ),
    figure_column(
        "waiting", lambda row: str(row.answers.waiting) if row.answers else HIDDEN, 92, "doubt"
    ),
    figure_column("tokens", lambda row: row.tokens_text, 40),
    figure_column("cost", lambda row: "" if row.run.cost is None else cost_text(row.run.cost), 45),
)
"""The columns after the sign of a run.

Figures on hidden suggestions are hidden too.
"""


def run_columns(marked_run_id: str | None = None) -> tuple[TableColumn[RunView], ...]:
    """Return the columns of the list of runs.

    Args:
        marked_run_id: The run marked for a comparison, or None.
    """

    def sign(view: RunView) -> str:
        """Return the sign of a run."""
        if view.run.id == marked_run_id:
            return "A"  # the name of the first side in the comparison
        if view.failed_count:
            return "!"
        # A run with an ``ending`` stopped before its last trace.
        return "✓" if view.run.finished_at is not None and view.run.ending is None else "◐"

    return (sign_column(sign, "doubt"), *_RUN_COLUMNS)


def run_text(
    view: RunView, names: Mapping[str, str], taxonomy: Taxonomy, *, is_running: bool = False
) -> str:
    """Describe one run in sentences and a table of modes.

    Args:
        view: The run.
        names: The names of traces, by id.
        taxonomy: The open taxonomy, for the names of modes.
        is_running: Whether the judge is running now.
    """
    run = view.run
    lines = [_status_line(run, is_running)]
    if view.failed_count:
        count = len(run.traces)
        lines.append(f"It failed on {view.failed_count} of {count} traces, listed in the run.")
    if run.note:
        lines.append(run.note)
    lines += _usage_lines(run)
    if view.modes is None:
        lines.append("Its suggestions are hidden while you work blind or the study hides them.")
    else:
        lines += _quote_lines(run)
        lines += _mode_table(view, taxonomy)
    problems = [(trace, trace.problem) for trace in run.traces if trace.problem]
    lines += _trace_lines("Failed", names, problems)
    # Remarks reveal that there are suggestions.
    visible_traces = run.traces if view.modes is not None else ()
    remarks = [(trace, "; ".join(trace.remarks)) for trace in visible_traces if trace.remarks]
    lines += _trace_lines("Remarks", names, remarks)
    if run.settings is not None:
        lines += ["", *_settings_lines(run.settings)]
    return "\n".join(lines)


def _status_line(run: Run, is_running: bool) -> str:
    """Return the judge, the taxonomy, and the state of the run."""
    title = f"{one_line(run.judge)}, {one_line(run.taxonomy)}"
    parameters = {} if run.settings is None else dict(run.settings.parameters)
    if "decisive" in parameters:
        title += f", asked for the decisive step ({one_line(parameters['decisive'])})"
    elif "verify" in parameters:
        title += ", each finding verified"
    if run.ending is not None:
        return f"{title}, ended early: {run.ending}. Run it again to continue."
    if run.finished_at is None and is_running:
        return f"{title}, still at work."
    if run.finished_at is None:
        return f"{title}, not finished: run it again to continue."
    return f"{title}."


def _usage_lines(run: Run) -> Iterator[str]:
    """Yield the requests, tokens and cost of a run with a model."""
    if run.settings is None:
        return
    usage = run.usage
    run_cost_text = "" if run.cost is None else f", cost {cost_text(run.cost)}"
    cached_text = f" ({usage.tokens_cached:,} cached)" if usage.tokens_cached else ""
    yield (
        f"{counted(usage.requests, 'request')} to {one_line(run.settings.host)}: "
        f"{usage.tokens_in:,} tokens in{cached_text}, {usage.tokens_out:,} out{run_cost_text}."
    )


def _quote_lines(run: Run) -> Iterator[str]:
    """Yield the share of quotes that are in the traces, and the number of quotes by kind."""
    quotes = run.quotes
    if quotes.all:
        share = share_in_traces(quotes)
        yield f"{quotes.found:,} of {quotes.all:,} quotes are in the traces ({share})."
        yield f"Quotes: {quotes.summary}."
        if quotes.altered or quotes.not_found:
            yield "Suggestions with altered quotes come late, those with missing quotes last."


def _mode_table(view: RunView, taxonomy: Taxonomy) -> Iterator[str]:
    """Yield a table of the annotator's answers by mode, after the number of left out traces.

    Modes that are not in the taxonomy come last, named by their slugs.
    """
    if view.left_out:
        traces = counted(view.left_out, "trace")
        yield f"Left out of the figures: {traces} whose text is an example in a prompt."
    if not view.modes:
        return
    yield ""
    modes = view.modes
    slugs = [mode.slug for mode in taxonomy.modes]

    def name(slug: str) -> str:
        mode = taxonomy.mode(slug) if slug in slugs else None
        return one_line(slug if mode is None else f"{mode.code} {mode.name}")

    columns: tuple[TableColumn[str], ...] = (
        TableColumn("", lambda slug: padded(name(slug), _MODE_CELLS)),
        TableColumn("found", lambda slug: str(modes[slug].total), right=True),
        TableColumn("accepted", lambda slug: str(modes[slug].accepted), right=True),
        TableColumn("rejected", lambda slug: str(modes[slug].rejected), right=True),
        TableColumn("waiting", lambda slug: str(modes[slug].waiting), right=True),
        TableColumn("rate", lambda slug: modes[slug].share or "—", right=True),
    )
    rows = [slug for slug in slugs if slug in modes]
    yield from table_lines(columns, [*rows, *sorted(modes.keys() - set(slugs))])


def _trace_lines(
    title: str, names: Mapping[str, str], texts: Sequence[tuple[RunTrace, str | None]]
) -> Iterator[str]:
    """Yield a title and a line for each trace, at most ``MOST_LISTED``; nothing without texts.

    ``texts`` are the problem or remarks of each trace.
    """
    if not texts:
        return
    yield ""
    yield f"{title}:"
    for trace, text in texts[:MOST_LISTED]:
        yield f"  {one_line(names.get(trace.trace_id, trace.trace_id))}: {one_line(text or '')}"
    if len(texts) > MOST_LISTED:
        yield f"  … and {len(texts) - MOST_LISTED:,} more traces"


def _settings_lines(settings: RunSettings) -> Iterator[str]:
    """Yield the model, its parameters and prices, and the number of examples."""
    form_text = "" if settings.form is None else f", answers as {one_line(settings.form)}"
    yield f"Asked {one_line(settings.model)}, prompt {one_line(settings.prompt)}{form_text}."
    if settings.parameters:
        parameters = (f"{name.replace('_', ' ')} {value}" for name, value in settings.parameters)
        yield f"With {one_line(', '.join(parameters))}."
    if settings.price_in is not None and settings.price_out is not None:
        cached_price = settings.price_cached
        cached_text = "" if cached_price is None else f" ({cached_price:g} cached)"
        yield (
            f"Price per million tokens: {settings.price_in:g} in{cached_text}, "
            f"{settings.price_out:g} out."
        )
    if settings.examples:
        count = len(settings.examples)
        clause = "trace is an example" if count == 1 else "traces are examples"
        yield f"{count} {clause} in the prompt."


def no_runs_text(key_of: KeyOf, *, blind: bool) -> str:
    """Return the text of an empty list of runs, which explains how to run a judge.

    Args:
        key_of: Returns how the key of an action is shown.
        blind: Whether the annotator sees suggestions only after finishing a trace.
    """
    text = (
        "No judge has run in this workspace yet.\n\n"
        f"{key_of('runs.judge')} runs one on all traces of the library. The rules judge needs no "
        "network and no model. To use a language model, name it in config.toml "
        f"({key_of('everywhere.help')} shows how).\n"
        "mast-tui judge PATH does the same without the app.\n\n"
        "Each finding of a judge is a suggestion in its trace: "
        f"{key_of('annotate.next_suggestion')} goes to it, {key_of('annotate.accept')} accepts, "
        f"{key_of('annotate.reject')} rejects."
    )
    key = key_of("annotate.reveal")
    blind_text = f"\n\nYou work blind: {key} shows suggestions after you finish a trace."
    return text + (blind_text if blind else "")


class _ListedRuns(NamedTuple):
    """The runs of a workspace, and the names of its traces by id."""

    views: Sequence[RunView]
    names: Mapping[str, str]


class RunsScreen(TableScreen[RunView]):
    """The runs in the workspace, as the current annotator may see them."""

    CSS_PATH = [BASE_SCREEN, RUNS]
    where = Where.RUNS
    table_id = "runs"
    row_key = attrgetter("run.id")

    def __init__(self) -> None:
        super().__init__()
        self._names: Mapping[str, str] = {}
        self._marked_run_id: str | None = None

    def read_rows(self, opened: OpenWorkspace) -> None:
        """Read the runs, the annotator's answers and the names of traces in a worker."""

        def read_runs() -> _ListedRuns:
            names = trace_names(opened.workspace.traces())
            runs = opened.workspace.runs()
            return _ListedRuns(read_views(opened, [*runs, *imported_runs(opened, runs)]), names)

        self.work.run("runs", read_runs, self._list_runs, self.show_message_only)

    def _list_runs(self, listed: _ListedRuns) -> None:
        self._names = listed.names
        if listed.views:
            self._show_views(listed.views)
        else:
            opened = self.mast.opened
            blind = opened is not None and opened.blind
            self.show_message_only(no_runs_text(self.mast.key_of, blind=blind))
        self.show_title()

    def _show_views(self, views: Sequence[RunView]) -> None:
        self.show_rows(run_columns(self._marked_run_id), views)

    def show_title(self) -> None:
        """Show the number of runs, and the annotator."""
        count = len(self.main_list.rows)
        title = ("Judge runs", counted(count, "run")) if count else ("Judge runs",)
        self.title_bar.show(title, self.right_title_parts())

    def describe_row(self, row: RunView) -> None:
        """Describe a run."""
        run = row.run
        key_of = self.mast.key_of
        is_latest = self.main_list.cursor == 0
        is_running = is_latest and self.mast.judge_at_work is not None
        self.describe(
            f"{judge_name(run.judge)} · {local_time(run.started_at)}",
            run_text(row, self._names, self.mast.taxonomy, is_running=is_running),
            f"{key_of('runs.open')}: its traces · "
            f"{key_of('runs.text_down')} {key_of('runs.text_up')} scroll",
        )

    def action_open(self) -> None:
        """Show the traces of the run under the cursor."""
        view = self._chosen_run()
        if view is not None:
            self.app.push_screen(RunScreen(view, self._names))

    def _chosen_run(self) -> RunView | None:
        """Return the run under the cursor, or show a hint and return None."""
        view = self.main_list.row
        if view is None:
            self.hints.say("There is no run under the cursor")
        return view

    def action_mark(self) -> None:
        """Mark the run under the cursor, or remove its mark."""
        view = self._chosen_run()
        if view is None:
            return
        self._marked_run_id = None if self._marked_run_id == view.run.id else view.run.id
        self._show_views(self.main_list.rows)
        if self._marked_run_id is None:
            self.hints.say("No run is marked")
        else:
            name = judge_name(view.run.judge)
            key = self.mast.key_of("runs.compare")
            self.hints.say(f"{name} is marked: go to another run, {key} compares the two")

    def action_compare(self) -> None:
        """Compare the marked run with the run under the cursor, or show why this is impossible."""
        view = self._chosen_run()
        views = (view for view in self.main_list.rows if view.run.id == self._marked_run_id)
        marked_view = next(views, None)
        if view is None:
            return
        if marked_view is None:
            key_of = self.mast.key_of
            self.hints.say(
                f"{key_of('runs.mark')} marks a run, {key_of('runs.compare')} then compares it "
                f"with another; {key_of('runs.gold')} compares with gold"
            )
        elif marked_view.run.id == view.run.id:
            key = self.mast.key_of("runs.compare")
            self.hints.say(f"This run is the marked one: go to another, {key} compares the two")
        elif marked_view.run.taxonomy != view.run.taxonomy:
            self.hints.say("Runs with different taxonomies cannot be compared", error=True)
        elif marked_view.run.judge == view.run.judge:
            self.hints.say("Both runs are of the same judge: only its latest suggestions count")
        else:
            self._open_comparison(marked_view, view)

    def action_gold(self) -> None:
        """Compare the run under the cursor with the gold."""
        view = self._chosen_run()
        if view is not None:
            self._open_comparison(view, None)

    def _open_comparison(self, first: RunView, second: RunView | None) -> None:
        """Open the comparison of a run with another run, or with the gold if ``second`` is None.

        Show an error if the run does not use the open taxonomy.
        """
        if first.run.taxonomy != self.mast.taxonomy.ref:
            self.hints.say(
                f"This run uses {one_line(first.run.taxonomy)}: open its file with --taxonomy FILE",
                error=True,
            )
        else:
            second_run = None if second is None else second.run
            self.app.push_screen(ComparisonScreen(first.run, second_run))

    def action_judge(self) -> None:
        """Run a judge on all traces of the library, or ask to cancel the judge at work."""
        traces = OneByOne(list(self.mast.catalog.traces.values()))
        if traces:
            self.mast.judge_traces(traces)
        else:
            self.hints.say("No traces are listed in the library", error=True)

    def show_judge_progress(self, message: JudgeProgress) -> None:
        """Show the progress of the judge, and at its end the new run."""
        message.show_in(self.hints)
        opened = self.mast.opened
        if message.done and opened is not None and self.is_attached:
            self.read_rows(opened)
