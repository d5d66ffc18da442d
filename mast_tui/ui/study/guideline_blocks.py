"""The page of a mode as blocks of text: definition, what was agreed, decided cases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from mast_tui.gold import Decision, Guideline, Order
from mast_tui.labels import VerdictValue
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.ui.place_words import place_words
from mast_tui.ui.widgets.taxonomy_panel import definition_of

if TYPE_CHECKING:
    from mast_tui.adjudication import Case, ModePage

MOST_PLACES = 3
"""Places of a case that are named."""


class BlockKind(StrEnum):
    """What a block of the page is."""

    HEADING = "heading"
    TEXT = "text"
    GUIDELINE = "guideline"
    CASE = "case"


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph of the page: a first line, and lines that stand under it more quietly."""

    kind: BlockKind
    text: str
    below: tuple[str, ...] = ()
    guideline: Guideline | None = None
    case: Case | None = None


def page_blocks(
    page: ModePage,
    taxonomy: Taxonomy,
    name_of: Callable[[str], str],
    order_of: Callable[[str], Order],
    *,
    how_to_write: str = "",
) -> list[Block]:
    """The blocks of a page. ``name_of`` and ``order_of`` are of a trace, by its id."""
    blocks = [
        Block(BlockKind.HEADING, "Definition"),
        Block(BlockKind.TEXT, definition_of(page.mode, taxonomy)),
        Block(BlockKind.HEADING, "What we agreed"),
    ]
    blocks += [_guideline_block(one, name_of) for one in page.guidelines]
    if not page.guidelines:
        blocks.append(Block(BlockKind.TEXT, f"Nothing is written down yet.{how_to_write}"))
    count = len(page.cases)
    blocks.append(Block(BlockKind.HEADING, f"Decided cases: {count}" if count else "Decided cases"))
    blocks += [_case_block(case, name_of, order_of(case.trace_id)) for case in page.cases]
    if page.hidden:
        more = "more case is" if page.hidden == 1 else "more cases are"
        words = f"{page.hidden} {more} in traces that you have not finished."
        blocks.append(Block(BlockKind.TEXT, words))
    elif not page.cases:
        blocks.append(Block(BlockKind.TEXT, "None yet."))
    return blocks


def _guideline_block(guideline: Guideline, name_of: Callable[[str], str]) -> Block:
    below = f"{one_line(guideline.written_by)} · {guideline.written_at[:10]}"
    if guideline.trace_id is not None:
        below += f" · at {one_line(name_of(guideline.trace_id))}"
    return Block(BlockKind.GUIDELINE, guideline.text, (below,), guideline=guideline)


def _case_block(case: Case, name_of: Callable[[str], str], order: Order) -> Block:
    decision = case.decision
    words = f"{one_line(name_of(case.trace_id))}: {_value_words(decision)}"
    places = [place_words(target, order) for target in decision.targets[:MOST_PLACES]]
    if places:
        more = " …" if len(decision.targets) > MOST_PLACES else ""
        words += f" at {', '.join(places)}{more}"
    below = [decision.reason] if decision.reason else []
    below.append(f"{one_line(decision.decided_by)} · {decision.decided_at[:10]}")
    return Block(BlockKind.CASE, words, tuple(below), case=case)


def _value_words(decision: Decision) -> str:
    if decision.is_verdict:
        return decision.value.value
    return "place taken" if decision.value is VerdictValue.PRESENT else "place dropped"
