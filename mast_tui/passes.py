"""The choice of the pass of an annotator that counts for a trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable
from typing import Literal

from mast_tui.labels import Pass, PassKind

Which = Literal["first", "last"]

_FIRST_LOOKS = (PassKind.BLIND, PassKind.ASSISTED)


def counted_passes(passes: Iterable[Pass], which: Which) -> dict[tuple[str, str], Pass]:
    """Return the finished pass that counts for each annotator and trace id.

    Adjudications and retests never count.

    Args:
        passes: Passes under one taxonomy.
        which: ``first`` for the first blind or assisted pass, made before the annotator saw the
            work of others; ``last`` for the latest finished pass.

    Returns:
        The passes by annotator and trace id, without traces that have no such pass.
    """
    passes_by_key: dict[tuple[str, str], Pass] = {}
    # The last pass in this order replaces the others.
    ordered_passes = sorted(passes, key=lambda p: p.number, reverse=which == "first")
    for trace_pass in ordered_passes:
        if not trace_pass.kind.is_reading or trace_pass.finished_at is None:
            continue
        if which == "first" and trace_pass.kind not in _FIRST_LOOKS:
            continue
        passes_by_key[trace_pass.annotator, trace_pass.trace_id] = trace_pass
    return passes_by_key


def finished_by(names: Container[str], finished: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Return the number of traces that each person has finished, without people with none.

    Args:
        names: The names of the people.
        finished: The annotator and trace id of every finished pass that counts.

    Returns:
        The number of traces by name.
    """
    return dict(sorted(Counter(name for name, _ in finished if name in names).items()))
