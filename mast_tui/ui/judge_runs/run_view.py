"""One run of a judge as an annotator may see it: what was found, and how they have answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from mast_tui.labels import Answer, Label, QuoteCounts, Review
from mast_tui.safe_text import one_line
from mast_tui.ui.services.open_workspace import OpenWorkspace
from mast_tui.workspace.records import Run

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
    """These runs as whoever works may see them, the latest first. Slow: for workers.

    Raises ``WorkspaceError``.
    """
    workspace, hidden = opened.workspace, opened.judges_hidden
    judges = () if hidden else dict.fromkeys(run.judge for run in runs)
    suggestions = [label for judge in judges for label in workspace.labels(annotator=judge)]
    reviews = workspace.reviews(annotator=opened.annotator, pass_number=None)
    return run_views(runs, suggestions, reviews, hidden=hidden)


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


def share_found(quotes: QuoteCounts) -> str:
    """Which share of the quotes was found in the traces; empty where nothing is quoted."""
    return f"{quotes.found / quotes.all:.0%}" if quotes.all else ""


def local_time(iso: str) -> str:
    """A time in UTC (ISO 8601) as a clock here shows it; what is no time stays as it is."""
    try:
        return datetime.fromisoformat(iso).astimezone().strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return one_line(iso, 16)
