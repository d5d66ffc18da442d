"""One run of a judge: how its suggestions were answered, and where in its traces they wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from textual import work

from mast_tui.labels import Answer, QuoteCounts
from mast_tui.safe_text import one_line
from mast_tui.ui.actions.registry import Where
from mast_tui.ui.context import TraceLocation
from mast_tui.ui.screens.table_screen import TableScreen
from mast_tui.ui.screens.trace_opening import OpensTraces
from mast_tui.ui.services.open_workspace import OpenWorkspace
from mast_tui.ui.styles import BASE_SCREEN, RUNS
from mast_tui.ui.suggestion_wording import ALTERED, judge_name
from mast_tui.ui.widgets.column_table import Column, TableRow
from mast_tui.ui.wording import counted, plain_title
from mast_tui.workspace import WorkspaceError
from mast_tui.workspace.records import Asked, Run, RunTrace

HIDDEN: Final = "hidden"


@dataclass(slots=True)
class Answers:
    """How suggestions were answered that stand: counts."""

    accepted: int = 0
    rejected: int = 0
    waiting: int = 0

    def take(self, answer: Answer | None) -> None:
        """Count one suggestion with its answer; None where it waits for one."""
        if answer is None:
            self.waiting += 1
        elif answer is Answer.REJECT:
            self.rejected += 1
        else:
            self.accepted += 1

    @property
    def standing(self) -> int:
        """All suggestions that stand."""
        return self.accepted + self.rejected + self.waiting

    @property
    def share(self) -> str:
        """Which share of those that were answered was accepted; empty where none was."""
        answered = self.accepted + self.rejected
        return f"{self.accepted / answered:.0%}" if answered else ""


@dataclass(frozen=True, slots=True)
class RunView:
    """One run, and how one annotator has answered what of it stands.

    ``modes`` are by slug and, like ``answers``, leave out ``left_out`` traces whose text stood as
    examples in the judge's prompt. Both are None while they are hidden from the annotator.
    ``waiting`` counts by trace id, and nothing while it is hidden.
    """

    run: Run
    answers: Answers | None
    modes: Mapping[str, Answers] | None
    waiting: Mapping[str, int] = field(default_factory=dict)
    left_out: int = 0

    @property
    def failed(self) -> int:
        """On how many traces the judge failed."""
        return sum(trace.problem is not None for trace in self.run.traces)


def read_views(opened: OpenWorkspace, runs: Sequence[Run]) -> list[RunView]:
    """The runs as whoever works may see them, the latest first. Slow: for workers.

    What stands on a trace counts for every run of that judge over it, and a trace that stood in any
    prompt of that judge for none. Nothing is counted that tells what a judge has found where that
    is hidden. Raises ``WorkspaceError``.
    """
    workspace, hidden = opened.workspace, opened.judges_hidden
    judges = () if hidden else dict.fromkeys(run.judge for run in runs)
    suggestions = [label for judge in judges for label in workspace.labels(annotator=judge)]
    reviews = workspace.reviews(annotator=opened.annotator, pass_number=None)
    examples: dict[str, set[str]] = {}
    for run in runs:
        if run.settings is not None:
            examples.setdefault(run.judge, set()).update(run.settings.examples)
    # In the order of passes, so that the last answer to a suggestion stands.
    answers = {review.suggestion: review.answer for review in reviews}
    standing: dict[tuple[str, str, str], list[tuple[str, Answer | None]]] = {}
    for label in suggestions:
        key = (label.annotator, label.trace_id, label.taxonomy)
        standing.setdefault(key, []).append((label.mode, answers.get(label.id)))
    views = []
    for run in sorted(runs, key=lambda run: run.started_at, reverse=True):
        if hidden:
            views.append(RunView(run, None, None))
            continue
        left_out = examples.get(run.judge, set())
        every, modes, waiting = Answers(), dict[str, Answers](), dict[str, int]()
        for trace in run.traces:
            found = standing.get((run.judge, trace.trace_id, run.taxonomy), ())
            if count := sum(answer is None for _, answer in found):
                waiting[trace.trace_id] = count
            if trace.trace_id in left_out:
                continue
            for mode, answer in found:
                every.take(answer)
                modes.setdefault(mode, Answers()).take(answer)
        examples_here = sum(trace.trace_id in left_out for trace in run.traces)
        views.append(RunView(run, every, modes, waiting, examples_here))
    return views


def share_found(quotes: QuoteCounts) -> str:
    """Which share of the quotes was found in the traces; empty where nothing is quoted."""
    return f"{quotes.found / quotes.all:.0%}" if quotes.all else ""


def local_time(iso: str) -> str:
    """A time in UTC (ISO 8601) as a clock here shows it; what is no time stays as it is."""
    try:
        return datetime.fromisoformat(iso).astimezone().strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return one_line(iso, 16)


COLUMNS: Final = (
    Column("trace", "trace", shrinks=True),
    Column("found", "found", figure=True, keeps=90),
    Column("waiting", "waiting", figure=True, keeps=95),
    Column("quotes", "quotes found", figure=True, keeps=60),
    Column("windows", "windows", figure=True, keeps=40),
    Column("note", "", keeps=80, shrinks=True),
)


def trace_rows(view: RunView, names: Mapping[str, str]) -> list[TableRow]:
    """The run's traces, those that failed first, then those with most that waits."""

    def rank(trace: RunTrace) -> tuple[bool, int, str]:
        return (trace.problem is None, -view.waiting.get(trace.trace_id, 0), trace.trace_id)

    hidden = view.answers is None
    rows = []
    for trace in sorted(view.run.traces, key=rank):
        failed = trace.problem is not None
        waiting = view.waiting.get(trace.trace_id, 0)
        note = f"failed: {trace.problem}" if failed else "" if hidden else "; ".join(trace.remarks)
        cells = {
            "trace": one_line(names.get(trace.trace_id, trace.trace_id)),
            "found": "" if failed else HIDDEN if hidden else str(trace.findings),
            "waiting": "" if failed else HIDDEN if hidden else str(waiting),
            "quotes": "" if hidden else quote_words(trace.quotes),
            "windows": str(trace.windows) if trace.windows else "",
            "note": one_line(note),
        }
        doubted = trace.quotes.found < trace.quotes.all
        styles = {
            "glyph": "doubt" if failed or waiting else "quiet",
            "trace": "name",
            "waiting": "doubt" if waiting else "quiet",
            "quotes": "doubt" if doubted else "figure",
            "windows": "quiet",
            "note": "doubt" if failed else "quiet",
        }
        glyph = "!" if failed else "◌" if waiting else "●"
        rows.append(TableRow(trace.trace_id, cells, glyph, styles))
    return rows


def answer_words(answers: Sequence[Asked]) -> str:
    """What a model answered, word for word, each with what it took."""
    if not answers:
        return "No answer about this trace is kept here: rules give none, and those of a run on\
 another machine stay there."
    heads = (
        f"{number} of {len(answers)} · {asked.at[:19].replace('T', ' ')} · {asked.form} · "
        f"{asked.tokens_in:,} tokens in, {asked.tokens_out:,} out · "
        + (asked.finish if asked.finish != "stop" else "used" if asked.usable else "not usable")
        for number, asked in enumerate(answers, 1)
    )
    texts = (asked.answer or "(no words)" for asked in answers)
    return "\n\n".join(f"{head}\n{text}" for head, text in zip(heads, texts, strict=True))


def quote_words(quotes: QuoteCounts) -> str:
    """How many of the quotes were found, and how many were altered; empty where there is none."""
    if not quotes.all:
        return ""
    altered = f" {ALTERED}{quotes.altered}" if quotes.altered else ""
    return f"{quotes.found} of {quotes.all}{altered}"


class RunScreen(OpensTraces, TableScreen):
    """Counts of answers are this annotator's own; where it is hidden nothing found is counted."""

    CSS_PATH = [BASE_SCREEN, RUNS]
    where = Where.RUN
    table_id = "run"
    columns = COLUMNS

    def __init__(self, view: RunView, names: Mapping[str, str]) -> None:
        """``names`` are what traces go by, by their ids."""
        super().__init__()
        self._view = view
        self._names = names
        self._reads_answers = False

    def on_screen_resume(self) -> None:
        """List the traces; what waits may have been answered where one comes back from."""
        if self.mast.opened is not None:
            self._recount(self.mast.opened)

    @work(thread=True, group="recount", exclusive=True)
    def _recount(self, opened: OpenWorkspace) -> None:
        try:
            (view,) = read_views(opened, [self._view.run])
        except WorkspaceError:
            return  # the figures stay as they were; whatever is asked next says what is wrong
        self.call_later(self._show_recounted, view)

    def _show_recounted(self, view: RunView) -> None:
        self._view = view
        self._show_rows()
        if self.focused is None:
            self.main_list.focus()

    def _show_rows(self) -> None:
        if not self._view.run.traces:
            self.show_words("This run has come to no trace.\n\nEsc goes back.")
            return
        self.remove_class("-empty")
        self.main_list.show(trace_rows(self._view, self._names))
        self.show_detail()

    def show_title(self) -> None:
        """Which run, and who works."""
        run = self._view.run
        count = len(run.traces)
        words = (
            f"{judge_name(run.judge)} · {local_time(run.started_at)}",
            f"{count} trace{'' if count == 1 else 's'}",
            *((f"{self._view.failed} failed",) if self._view.failed else ()),
        )
        self.title_bar.show(words, self.who())

    def show_detail(self) -> None:
        """Tell what came of the trace under the cursor, or what the model answered about it."""
        row = self.main_list.row
        trace = next((t for t in self._view.run.traces if row and t.trace_id == row.id), None)
        if row is None or trace is None:
            self.detail.show_text("")
            return
        if self._reads_answers and self.mast.opened is not None:
            self._find_answers(self.mast.opened, trace.trace_id)
            return
        self.detail.border_title = plain_title(row.cells["trace"])
        lines = [trace.trace_id]
        if trace.problem is not None:
            lines.append(f"failed: {trace.problem}")
            lines.append("The same run again tries it anew.")
        if self._view.answers is not None:
            lines += [f"quotes: {trace.quotes.words}"] if trace.quotes.all else []
            lines += trace.remarks
        self.detail.show_text("\n".join(lines))

    def action_answers(self) -> None:
        """Show what the model answered about the trace, or what came of it again."""
        if self._view.answers is None:
            self.hints.say("You work blind: what a judge says is shown after finishing")
            return
        self._reads_answers = not self._reads_answers
        self.set_class(self._reads_answers, "-answers")
        self.show_detail()

    @work(thread=True, group="answers", exclusive=True)
    def _find_answers(self, opened: OpenWorkspace, trace_id: str) -> None:
        try:
            answers = opened.workspace.answers_about(self._view.run.id, trace_id)
        except WorkspaceError:
            return  # the words stay as they were; whatever is asked next says what is wrong
        self.call_later(self._show_answers, trace_id, answers)

    def _show_answers(self, trace_id: str, answers: Sequence[Asked]) -> None:
        """Show what the model answered about a trace, if it is still asked for."""
        row = self.main_list.row
        if self._reads_answers and row is not None and row.id == trace_id:
            count = counted(len(answers), "answer")
            self.detail.border_title = plain_title(f"{row.cells['trace']} · {count}")
            self.detail.show_text(answer_words(answers))

    def action_open(self) -> None:
        """Open the trace at the first suggestion of this judge that waits, else at the first."""
        row = self.main_list.row
        if row is not None:
            self.open_at(TraceLocation(row.id, judge=self._view.run.judge))
