"""Runs of judges as rows: when, over how many traces, what it took, and how one has answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Final

from mast_tui.labels import Answer, Label, QuoteCounts, Review
from mast_tui.safe_text import one_line
from mast_tui.ui.phrases import cost_words, short_count
from mast_tui.ui.suggestion_words import judge_name
from mast_tui.ui.widgets.column_table import Column, TableRow

if TYPE_CHECKING:
    from mast_tui.workspace.records import Run

HIDDEN: Final = "hidden"

COLUMNS: Final = (
    Column("judge", "judge", shrinks=True),
    Column("prompt", "prompt", keeps=30),
    Column("when", "when", keeps=80),
    Column("traces", "traces", figure=True, keeps=90),
    Column("failed", "failed", figure=True, keeps=60),
    Column("found", "found", figure=True, keeps=95),
    Column("verified", "quotes", figure=True, keeps=50),
    Column("accepted", "accepted", figure=True, keeps=85),
    Column("waiting", "waiting", figure=True, keeps=92),
    Column("tokens", "tokens", figure=True, keeps=40),
    Column("cost", "cost", figure=True, keeps=45),
)


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


def run_views(
    runs: Sequence[Run],
    suggestions: Sequence[Label],
    reviews: Sequence[Review],
    *,
    hidden: bool,
) -> list[RunView]:
    """The runs, the latest first.

    ``suggestions`` are the labels of judges that stand, ``reviews`` those of one annotator. What
    stands on a trace counts for every run of that judge over it, and a trace that stood in any
    prompt of that judge for none. With ``hidden`` nothing is counted that tells what a judge has
    found.
    """
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


def run_row(view: RunView, *, marked: bool = False) -> TableRow:
    """A run as a row; ``marked`` is the one that another will be compared with."""
    run, answers = view.run, view.answers
    settings, asks = run.settings, run.settings is not None
    finished = run.finished_at is not None and run.ending is None
    glyph = "!" if view.failed else "●" if finished else "◐"
    waiting = 0 if answers is None else answers.waiting
    cells = {
        "judge": one_line(settings.model) if settings is not None else judge_name(run.judge),
        "prompt": one_line(settings.prompt, 12) if settings is not None else "",
        "when": local_time(run.started_at),
        "traces": str(len(run.traces)),
        "failed": str(view.failed) if view.failed else "",
        "found": HIDDEN if answers is None else str(run.findings),
        "verified": "" if answers is None else share_found(run.quotes),
        "accepted": HIDDEN if answers is None else answers.share or "—",
        "waiting": HIDDEN if answers is None else str(waiting),
        "tokens": short_count(run.usage.tokens_in + run.usage.tokens_out) if asks else "",
        "cost": cost_words(run.cost) if run.cost is not None else "",
    }
    styles = {
        "glyph": "quiet" if glyph == "●" else "doubt",
        "judge": "name",
        "when": "quiet",
        "prompt": "quiet",
        "failed": "doubt",
        "waiting": "doubt" if waiting else "quiet",
    }
    quiet = {name: "quiet" for name, text in cells.items() if text in ("0", "—", HIDDEN)}
    if marked:
        glyph, styles["glyph"] = "A", "doubt"  # as it is called in the comparison
    return TableRow(run.id, cells, glyph, {**styles, **quiet})


def share_found(quotes: QuoteCounts) -> str:
    """Which share of the quotes was found in the traces; empty where nothing is quoted."""
    return f"{quotes.found / quotes.all:.0%}" if quotes.all else ""


def local_time(iso: str) -> str:
    """A time in UTC (ISO 8601) as a clock here shows it; what is no time stays as it is."""
    try:
        return datetime.fromisoformat(iso).astimezone().strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return one_line(iso, 16)
