"""The traces behind a figure, the disagreements first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mast_tui.figures.agreement.report import StudyInput
from mast_tui.figures.agreement.verdict_table import PRESENT, VALUE_OF
from mast_tui.labels import VerdictValue


@dataclass(frozen=True, slots=True)
class TraceBehind:
    """One trace that a figure rests on: who said what of the mode; None is open.

    Who has not finished the trace is not in ``said``. ``disagreement`` is the share of the pairs
    of present and absent that differ, 0 where all agree.
    """

    trace_id: str
    said: Mapping[str, VerdictValue | None]
    disagreement: float


def traces_behind(
    study: StudyInput, mode_slug: str, a: str | None = None, b: str | None = None
) -> tuple[TraceBehind, ...]:
    """List the traces in which two or more have a verdict on a mode.

    Args:
        study: Who said what of which traces.
        mode_slug: The mode.
        a: One of two annotators whose traces alone are meant; by default all of them.
        b: The other one.

    Returns:
        The greatest disagreement first, then what is present, then by trace id.

    Raises:
        ValueError: The study has no such mode or annotator, or only one of the two is named.
    """
    if (a is None) != (b is None):
        raise ValueError("name both annotators of a pair, or neither")
    names = study.annotators if a is None or b is None else (a, b)
    unknown = [name for name in names if name not in study.annotators]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not among the annotators of the figures")
    if all(slug != mode_slug for slug, _, _ in study.modes):
        raise ValueError(f"{study.taxonomy_ref} has no mode {mode_slug!r}")
    table = study.verdicts
    people = [study.annotators.index(name) for name in names]
    cells = table.said[people, :, table.slugs.index(mode_slug)]
    rated, present = (cells >= 0).sum(axis=0), (cells == PRESENT).sum(axis=0)
    behind = [
        (
            int(present[place]),
            TraceBehind(
                table.traces[place],
                {
                    name: VALUE_OF.get(cell)
                    for name, cell in zip(names, cells[:, place].tolist(), strict=True)
                    if table.traces[place] in study.finished.get(name, frozenset())
                },
                _differing(int(rated[place]), int(present[place])),
            ),
        )
        for place in (rated > 1).nonzero()[0].tolist()
    ]
    behind.sort(key=lambda one: (-one[1].disagreement, -one[0], one[1].trace_id))
    return tuple(trace for _, trace in behind)


def _differing(rated: int, present: int) -> float:
    return present * (rated - present) / (rated * (rated - 1) / 2)
