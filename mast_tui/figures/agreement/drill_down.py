"""The traces behind a figure, the disagreements first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mast_tui.figures.agreement.report import StudyInput
from mast_tui.figures.agreement.verdict_table import PRESENT, VALUE_OF
from mast_tui.figures.judge.confusion import Compared
from mast_tui.figures.judge.input import JudgeInput
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
    study: StudyInput, mode: str, pair: tuple[str, ...] = ()
) -> tuple[TraceBehind, ...]:
    """List the traces in which two or more have a verdict on a mode.

    Args:
        study: Who said what of which traces.
        mode: The slug of one of its modes.
        pair: Two of its annotators whose traces alone are meant; empty for all of them.

    Returns:
        The greatest disagreement first, then what is present, then by trace id.
    """
    names = pair or study.annotators
    table = study.verdicts
    people = [study.annotators.index(name) for name in names]
    cells = table.said[people, :, table.slugs.index(mode)]
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


def judged_traces_behind(
    given: JudgeInput, compared: Compared, mode: str
) -> tuple[TraceBehind, ...]:
    """List the traces on which a judge and its reference can be compared.

    Args:
        given: What the judge said, and what it is measured by.
        compared: The same, as it was compared.
        mode: The slug of a mode.

    Returns:
        The judge's errors first, then what the reference calls present, then by trace id.
    """
    words = {True: VerdictValue.PRESENT, False: VerdictValue.ABSENT}
    sides = (given.judge, given.reference.name)
    cases = [
        (said is reference, not reference, trace, (words[said], words[reference]))
        for (trace, slug), said in compared.judge.items()
        if slug == mode
        for reference in (compared.reference[trace, slug],)
    ]
    return tuple(
        TraceBehind(trace, dict(zip(sides, said, strict=True)), float(not agree))
        for agree, _, trace, said in sorted(cases, key=lambda case: case[:3])
    )
