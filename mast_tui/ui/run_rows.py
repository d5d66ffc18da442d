"""Runs of judges as rows: when, over how many traces, and how one has answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from mast_tui.labels import JUDGE_PREFIX, Answer, Label, Review
from mast_tui.safe_text import one_line

if TYPE_CHECKING:
    from mast_tui.workspace.records import Run

MOST_LISTED: Final = 400
"""Traces of one run that are listed in words."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run: what it found, and how one has answered what of it stands; None while hidden.

    ``finished`` is False for a run that was broken off or still goes on; ``problems`` counts
    traces on which the judge failed.
    """

    run_id: str
    judge: str
    when: str
    finished: bool
    traces: int
    problems: int
    suggestions: int | None
    accepted: int | None
    rejected: int | None
    waiting: int | None


def run_rows(
    runs: Sequence[Run],
    suggestions: Sequence[Label],
    reviews: Sequence[Review],
    *,
    hidden: bool,
) -> list[RunRow]:
    """A row per run, the latest first.

    ``suggestions`` are the labels of judges that stand, ``reviews`` those of one annotator. What
    stands on a trace counts for every run of that judge over it. With ``hidden`` nothing is
    counted that tells what a judge has found.
    """
    # In the order of passes, so that the last answer to a suggestion stands.
    answers = {review.suggestion: review.answer for review in reviews}
    standing: dict[tuple[str, str, str], list[Answer | None]] = {}
    for label in suggestions:
        key = (label.annotator, label.trace_id, label.taxonomy)
        standing.setdefault(key, []).append(answers.get(label.id))
    rows = []
    for run in sorted(runs, key=lambda run: run.started_at, reverse=True):
        answered = [
            answer
            for trace in run.traces
            for answer in standing.get((run.judge, trace.trace_id, run.taxonomy), ())
        ]
        rejected = answered.count(Answer.REJECT)
        waiting = answered.count(None)
        rows.append(
            RunRow(
                run.id,
                one_line(run.judge.removeprefix(JUDGE_PREFIX)),
                local_time(run.started_at),
                run.finished_at is not None,
                len(run.traces),
                sum(trace.problem is not None for trace in run.traces),
                None if hidden else run.findings,
                None if hidden else len(answered) - rejected - waiting,
                None if hidden else rejected,
                None if hidden else waiting,
            )
        )
    return rows


def run_words(run: Run, row: RunRow, names: Mapping[str, str]) -> str:
    """One run in sentences, with its traces by their ``names``, which are as they were given."""
    end = "" if row.finished else ", not finished: run it again and it goes on where it stopped"
    lines = [f"{run.judge}, {run.taxonomy}{end}."]
    if row.problems:
        lines.append(f"It failed on {row.problems} of {row.traces} traces.")
    if run.note:
        lines.append(run.note)
    if row.suggestions is None:
        lines.append("What it found is hidden while you work blind.")
    lines.append("")
    for trace in run.traces[:MOST_LISTED]:
        name = names.get(trace.trace_id, trace.trace_id)
        if trace.problem is not None:
            lines.append(f"{name}: failed: {trace.problem}")
        elif row.suggestions is None:
            lines.append(name)
        else:
            found = "nothing found" if not trace.findings else f"{trace.findings} found"
            lines.append(f"{name}: {found}")
    if len(run.traces) > MOST_LISTED:
        lines.append(f"… and {len(run.traces) - MOST_LISTED} more traces")
    return "\n".join(lines)


def local_time(iso: str) -> str:
    """A time in UTC (ISO 8601) as a clock here shows it; what is no time stays as it is."""
    try:
        return datetime.fromisoformat(iso).astimezone().strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return one_line(iso, 16)
