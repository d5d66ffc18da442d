"""Conflicts, decisions and agreed items in the words and rows of the adjudicate screen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from mast_tui.gold import Conflict, ConflictKind, Decision, GoldVerdict, Said, Source
from mast_tui.labels import JUDGE_PREFIX, Label, Target, VerdictValue
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.model import Mode, Taxonomy
from mast_tui.ui.place_words import IndexOf, place_words
from mast_tui.ui.widgets.conflict_list import QueueRow, RowState
from mast_tui.ui.widgets.sides_panel import Place, SideView

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


def conflict_row(conflict: Conflict, trace_id: str, taxonomy: Taxonomy) -> QueueRow:
    """A conflict that is left to decide."""
    code, name = mode_words(taxonomy, conflict.mode)
    return QueueRow(
        trace_id, conflict.id, RowState.OPEN, code, name, difference(conflict), who(conflict.said)
    )


def decision_row(
    decision: Decision, trace_id: str, taxonomy: Taxonomy, *, changed: bool
) -> QueueRow:
    """What was decided, by whose word."""
    code, name = mode_words(taxonomy, decision.mode)
    state = RowState.CHANGED if changed else RowState.DECIDED
    return QueueRow(
        trace_id, decision.item, state, code, name, outcome(decision), who(decision.said)
    )


def agreed_row(verdict: GoldVerdict, trace_id: str, taxonomy: Taxonomy) -> QueueRow:
    """A mode on which nobody differs."""
    code, name = mode_words(taxonomy, verdict.mode)
    value = verdict.value.value if verdict.value is not None else "open"
    names = [name for name, said in verdict.sides.items() if said is not None]
    how = f"only {one_line(names[0])}" if verdict.source is Source.SINGLE and names else ""
    return QueueRow(trace_id, verdict.mode, RowState.AGREED, code, name, value, how)


def difference(conflict: Conflict) -> str:
    """What the sides differ on: ``present / absent``, ``place: only ann``, ``place differs``."""
    if conflict.kind is ConflictKind.PLACE:
        marked = [said for said in conflict.said if said.targets]
        only = one_line(marked[0].annotator) if len(marked) == 1 else None
        return f"place: only {only}" if only is not None else "place differs"
    values = {said.value for said in conflict.said}
    return " / ".join(value.value for value in VerdictValue if value in values)


def outcome(decision: Decision) -> str:
    """A decision in a few words: ``absent``, ``present, as ann``, ``place taken, as ann``."""
    if decision.is_verdict:
        words = decision.value.value
    else:
        words = "place taken" if decision.value is VerdictValue.PRESENT else "place dropped"
    if len(decision.sides) == 1:
        return f"{words}, as {one_line(decision.sides[0])}"
    return f"{words}, as all" if len(decision.sides) > 1 else words


def who(said: Iterable[Said]) -> str:
    """The sides with what each says, shortest first words first: ``ann present · bob absent``."""
    return " · ".join(
        f"{one_line(side.annotator, 16)} {side.value.value if side.value else 'open'}"
        for side in said
    )


def side_views(
    said: Sequence[Said],
    labels: Sequence[Label],
    index_of: IndexOf,
    *,
    places_only: bool,
    taken: Iterable[str] = (),
) -> list[SideView]:
    """The sides, numbered as their keys, with the places that they marked.

    ``labels`` bring quotes and notes; with ``places_only`` the verdict is settled and the sides
    are asked about one place. ``taken`` are those whose word was taken.
    """
    by_taken = frozenset(taken)
    views = []
    for number, side in enumerate(said, start=1):
        own = [label for label in labels if label.annotator == side.annotator]
        views.append(
            SideView(
                number if number <= MOST_SIDES else None,
                side.annotator,
                _verdict_words(side, places_only),
                tuple(_place(target, own, index_of) for target in side.targets),
                "✓ taken" if side.annotator in by_taken else "",
            )
        )
    return views


def judge_views(labels: Sequence[Label], index_of: IndexOf) -> list[SideView]:
    """What judges marked, per judge; no key takes their word."""
    judges = dict.fromkeys(label.annotator for label in labels)
    return [
        SideView(
            None,
            name.removeprefix(JUDGE_PREFIX),
            "suggests it",
            tuple(
                _place(label.target, [label], index_of)
                for label in labels
                if label.annotator == name
            ),
            "judge",
        )
        for name in judges
    ]


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
