"""Whether traces fail by one thing or by many."""

from __future__ import annotations

from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.signatures.model import ABSENT, PRESENT, Rules, Whole

Shape = Literal["none", "isolated", "between", "cascading", "open"]

SHAPES: Final[tuple[Shape, ...]] = ("none", "isolated", "between", "cascading", "open")


def shapes(verdicts: NDArray[np.uint8], rules: Rules) -> Whole:
    """Per trace the place of its shape in ``SHAPES``.

    A trace with modes that are open or unsure has a shape only where none of them could change it;
    modes that nobody was judged on are not looked at.
    """
    judged = (verdicts == PRESENT) | (verdicts == ABSENT)
    used = judged.any(axis=0)
    least = (verdicts == PRESENT).sum(axis=1)
    most = least + (~judged[:, used]).sum(axis=1)
    low, high = _shape(least, rules), _shape(most, rules)
    return np.where(low == high, low, SHAPES.index("open"))


def _shape(modes: Whole, rules: Rules) -> Whole:
    found = np.full(len(modes), SHAPES.index("between"))
    found[modes == 0] = SHAPES.index("none")
    found[(modes > 0) & (modes <= rules.isolated)] = SHAPES.index("isolated")
    found[modes >= rules.cascading] = SHAPES.index("cascading")
    return found


def complete(verdicts: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Whether each trace was judged on every mode that any of them was judged on."""
    judged = (verdicts == PRESENT) | (verdicts == ABSENT)
    found: NDArray[np.bool_] = judged[:, judged.any(axis=0)].all(axis=1) & judged.any(axis=1)
    return found
