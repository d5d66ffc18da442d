"""Conflicts, decisions and agreed items in the words and rows of the adjudicate screen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mast_tui.gold import Conflict, Decision, GoldVerdict, Said, Source
from mast_tui.labels import JUDGE_PREFIX, Label, Target
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.model import Mode, Taxonomy
from mast_tui.ui.adjudicate.conflict_list import QueueRow, RowState
from mast_tui.ui.adjudicate.names import Names, difference, outcome, who
from mast_tui.ui.place_words import IndexOf, place_words
from mast_tui.ui.widgets.sides_panel import Place, SideView

if TYPE_CHECKING:
    from mast_tui.adjudication import JudgeWord

MOST_SIDES: Final = 9
"""Sides that a digit can take."""

MOST_CODE_CHARS: Final = 8


@dataclass(frozen=True, slots=True)
class ItemView:
    """One item of the queue with all that its panes show.

    ``where`` is the place to look at first; ``note`` says how it was settled.
    """

    title: str
    sides: tuple[SideView, ...]
    where: Target | None
    note: str = ""


def known_mode(taxonomy: Taxonomy, slug: str) -> Mode | None:
    """The mode with this slug, or None where the taxonomy has none."""
    return next((mode for mode in taxonomy.modes if mode.slug == slug), None)


def mode_words(taxonomy: Taxonomy, slug: str) -> tuple[str, str]:
    """Code and name of a mode; a slug that is not known stands for itself."""
    mode = known_mode(taxonomy, slug)
    if mode is None:
        return "?", one_line(slug)
    return one_line(mode.code, MOST_CODE_CHARS), one_line(mode.name)


def conflict_row(conflict: Conflict, trace_id: str, taxonomy: Taxonomy, names: Names) -> QueueRow:
    """A conflict that is left to decide."""
    code, name = mode_words(taxonomy, conflict.mode)
    what, said = difference(conflict, names), who(conflict.said, names)
    return QueueRow(trace_id, conflict.id, RowState.OPEN, code, name, what, said)


def decision_row(
    decision: Decision, trace_id: str, taxonomy: Taxonomy, names: Names, *, changed: bool
) -> QueueRow:
    """What was decided, by whose word."""
    code, name = mode_words(taxonomy, decision.mode)
    state = RowState.CHANGED if changed else RowState.DECIDED
    what, said = outcome(decision, names), who(decision.said, names)
    return QueueRow(trace_id, decision.item, state, code, name, what, said)


def agreed_row(verdict: GoldVerdict, trace_id: str, taxonomy: Taxonomy, names: Names) -> QueueRow:
    """A mode on which nobody differs."""
    code, name = mode_words(taxonomy, verdict.mode)
    value = verdict.value.value if verdict.value is not None else "open"
    sides = [name for name, said in verdict.sides.items() if said is not None]
    how = f"only {names.of(sides[0])}" if verdict.source is Source.SINGLE and sides else ""
    return QueueRow(trace_id, verdict.mode, RowState.AGREED, code, name, value, how)


def side_views(
    said: Sequence[Said],
    labels: Sequence[Label],
    index_of: IndexOf,
    names: Names,
    *,
    places_only: bool,
    taken: Iterable[str] = (),
    then: Sequence[Said] = (),
) -> list[SideView]:
    """The sides, numbered as their keys, with the places that they marked.

    ``labels`` bring quotes and notes; with ``places_only`` the verdict is settled and the sides
    are asked about one place. ``taken`` are those whose word was taken, and ``then`` what the sides
    had said when it was: where that was something else, it is told.
    """
    by_taken = frozenset(taken)
    before = {side.annotator: side for side in then}
    views = []
    for number, side in enumerate(names.in_order(said), start=1):
        own = [label for label in labels if label.annotator == side.annotator]
        remarks = ["✓ taken"] if side.annotator in by_taken else []
        if then:
            remarks += _changed_words(before.pop(side.annotator, None), side, index_of, places_only)
        views.append(
            SideView(
                number if number <= MOST_SIDES else None,
                names.of(side.annotator, 32),
                _verdict_words(side, places_only),
                tuple(_place(target, own, index_of) for target in side.targets),
                " · ".join(remarks),
            )
        )
    for side in before.values():
        remark = f"! then {_said_words(side, index_of, places_only)}"
        views.append(SideView(None, names.of(side.annotator, 32), "open", remark=remark))
    return views


def _changed_words(
    then: Said | None, side: Said, index_of: IndexOf, places_only: bool
) -> list[str]:
    """What a side had said when it was decided, where that was something else."""
    if then is None:
        return ["! since then"]
    same_value = places_only or then.value == side.value
    if same_value and set(then.targets) == set(side.targets):
        return []
    return [f"! then {_said_words(then, index_of, places_only)}"]


def _said_words(side: Said, index_of: IndexOf, places_only: bool) -> str:
    words = _verdict_words(side, places_only)
    places = [place_words(target, index_of, quoted=False) for target in side.targets[:2]]
    more = " …" if len(side.targets) > 2 else ""
    return f"{words} {', '.join(places)}{more}" if places else words


def reason_view(reason: str) -> SideView:
    """Why it was decided so, in the words of who decided."""
    return SideView(None, "why", "", note=reason)


def judge_views(words: Sequence[JudgeWord], index_of: IndexOf) -> list[SideView]:
    """What judges say, per judge; no key takes their word."""
    return [
        SideView(
            None,
            word.judge.removeprefix(JUDGE_PREFIX),
            _judge_verdict(word),
            tuple(_place(label.target, [label], index_of) for label in word.labels),
            "judge",
        )
        for word in words
    ]


def _judge_verdict(word: JudgeWord) -> str:
    if word.labels:
        return "suggests it"
    return word.value.value if word.value is not None else "cannot tell"


def _verdict_words(side: Said, places_only: bool) -> str:
    if places_only:
        return "marked" if side.targets else "did not mark this place"
    return side.value.value if side.value is not None else "open"


def _place(target: Target, labels: Sequence[Label], index_of: IndexOf) -> Place:
    label = next((label for label in labels if label.target == target), None)
    extra = []
    if label is not None:
        if label.severity is not None:
            extra.append(label.severity.value)
        if label.confidence is not None:
            extra.append(f"sure {label.confidence:.0%}")
        if label.saw_suggestions:
            extra.append("saw suggestions")
    return Place(
        target,
        place_words(target, index_of, quoted=False),
        quote=target.quote or "",
        note=label.note if label is not None else "",
        extra=" · ".join(extra),
    )
