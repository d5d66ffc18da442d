"""What a study comes to before it is set up: who labels how much, and what changes for work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from mast_tui.safe_text import one_line
from mast_tui.study import (
    Study,
    annotators_of,
    assigned,
    overlap_traces,
    retest_traces,
    withheld_traces,
)
from mast_tui.ui.wording import counted

EFFECTS: Final[Mapping[str, str]] = {
    "blind": "Annotators work so from now on, also on traces that are open.",
    "withheld": "Which traces are without suggestions is drawn anew.",
    "retests": "Which finished traces repeat is drawn anew; what has come back stays done.",
    "open_modes": "Finishes from now on follow it; what is finished stays as it is.",
    "judge_first": "Adjudication shows the judge so from now on.",
    "names_hidden": "Adjudication shows names so from now on.",
    "boundaries": "What is left to decide is counted anew; decisions stay.",
    "reasons": "Decisions from now on follow it; earlier ones stay as they are.",
}
"""What a changed part of the protocol does to work that is under way, by its field."""


def preview_words(
    before: Study | None,
    after: Study,
    *,
    changed: Sequence[tuple[str, str, str]] = (),
    away: Mapping[str, int] | None = None,
    finished: bool = False,
) -> str:
    """Say what a study comes to before it is set up.

    Args:
        before: The study as it is, None where there is none.
        after: The study as it is to be.
        changed: What changes: the title of each field, what stood there, and what is to.
        away: By name how many traces somebody has begun and no longer gets.
        finished: Whether somebody has finished a trace under the study.
    """
    if before == after:
        return "Nothing changes."
    dealt = assignment_words(before, after).split("\n")
    if before is not None and _dealt_alike(before, after):
        dealt = ["Who labels what stays as it is."]
    parts = [[f"{title}: {was or 'nobody'} → {now or 'nobody'}" for title, was, now in changed]]
    parts += [dealt, work_words(before, after, away or {})]
    if finished:
        last = "Traces have been finished, so what figures rest on stays; this may still change."
    else:
        last = (
            "All of this may be changed until somebody finishes a trace. From then on only further "
            "lots, adjudicators, repeats and how adjudication goes."
        )
    parts.append([last])
    return "\n\n".join("\n".join(one_line(line) for line in part) for part in parts if part)


def assignment_words(before: Study | None, after: Study) -> str:
    """Say on lines who would label how much, and of whom it is less or more than before.

    Args:
        before: The study as it is, None where there is none.
        after: The study as it is to be.
    """
    shared = overlap_traces(after)
    count, several = len(after.traces), frozenset(shared)
    who = "each of them"
    if after.per_trace < len(after.annotators):
        who = f"{after.per_trace} of {len(after.annotators)}"
    by_one = count - len(shared)
    lines = [f"{counted(count, 'trace')}: {len(shared):,} labelled by {who}, {by_one:,} by one."]
    if not by_one:
        lines = [f"{counted(count, 'trace')}, labelled by {who}."]
    elif not shared:
        lines = [f"{counted(count, 'trace')}, each labelled by one."]
    wide = max(map(len, after.annotators))
    for name in after.annotators:
        own = assigned(after, name)
        was = len(own) if before is None else len(assigned(before, name))
        so_far = f"{was:,} → " if was != len(own) else ""
        told = [f"{name:<{wide}}  {so_far}{counted(len(own), 'trace')}"]
        together = sum(one in several for one in own)
        if together not in (0, len(own)):
            told.append(f"{together:,} with others")
        held, again = len(withheld_traces(after, name)), len(retest_traces(after, name))
        told += [f"{held:,} without suggestions"] if held else []
        told += [f"{again:,} repeat{'s' if again == 1 else ''}"] if again else []
        lines.append(one_line(" · ".join(told)))
    return "\n".join(lines)


def work_words(before: Study | None, after: Study, away: Mapping[str, int]) -> list[str]:
    """Say what changes for work that is under way, a line each.

    Args:
        before: The study as it is, None where there is none.
        after: The study as it is to be.
        away: By name how many traces somebody has begun and no longer gets.
    """
    if before is None:
        return ["Everybody's queue holds what is theirs from now on, in an order of their own."]
    lines = []
    if not _dealt_alike(before, after):
        lines.append("Queues are dealt anew from now on; no label is lost.")
    lines += [
        f"{name} has begun {counted(count, 'trace')} that would no longer be theirs."
        for name, count in sorted(away.items())
    ]
    lines += [
        words for field, words in EFFECTS.items() if getattr(before, field) != getattr(after, field)
    ]
    if set(before.adjudicators) != set(after.adjudicators):
        lines.append("Who decides changes from now on; decisions stay.")
    return lines


def _dealt_alike(before: Study, after: Study) -> bool:
    return before.traces == after.traces and all(
        annotators_of(before, one) == annotators_of(after, one) for one in after.traces
    )
