"""α_U against its published values and its definition."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from mast_tui.figures.record import Figure
from mast_tui.figures.spans.unitizing import Continuum, Section, UnitSums, alpha_u

FIRST = 150


def krippendorff_alpha_u(categories: Sequence[Sequence[Continuum]]) -> Figure:
    """Return α_U over categories, each with its continua.

    It is undefined with ``no_overlap`` if there is no continuum, and with ``no_variance`` if nobody
    marked anything, or everybody marked every continuum as one unit.
    """
    if not any(categories):
        return Figure(reason="no_overlap")
    sums = [UnitSums.from_continua(continua) for continua in categories]
    value = alpha_u([sum.disagreement(sum.features.sum(axis=0)[None, :]) for sum in sums])[0]
    return Figure(reason="no_variance") if np.isnan(value) else Figure(value=float(value))


def units(*begin_and_length: tuple[int, int]) -> tuple[Section, ...]:
    return tuple((begin - FIRST, begin + length - FIRST) for begin, length in begin_and_length)


# Krippendorff 2004: two observers, two categories, the continuum from 150 up to 450.
C = Continuum(300, (units((225, 70), (370, 30)), units((220, 80), (355, 20), (400, 20))))
K = Continuum(300, (units((180, 60), (300, 50)),) * 2)


def test_alpha_u_of_krippendorff_2004() -> None:
    assert krippendorff_alpha_u([[C]]).value == pytest.approx(0.7286, abs=0.00005)
    assert krippendorff_alpha_u([[C], [K]]).value == pytest.approx(0.859, abs=0.001)
    assert krippendorff_alpha_u([[K]]).value == pytest.approx(1)


def test_undefined_alpha_u_has_its_reason() -> None:
    assert krippendorff_alpha_u([[], []]) == Figure(reason="no_overlap")
    for marked in ((), ((0, 5),)):
        continuum = Continuum(5, (marked, marked))
        assert krippendorff_alpha_u([[continuum] * 3]) == Figure(reason="no_variance")
    unused = Continuum(300, ((), ()))
    assert krippendorff_alpha_u([[C], [unused]]) == krippendorff_alpha_u([[C]])


def test_impossible_continua_are_refused() -> None:
    for wrong in (((0, 3), (2, 4)), ((3, 3),), ((2, 9),)):
        with pytest.raises(ValueError, match="overlaps, is empty or lies outside"):
            Continuum(5, (wrong, ()))
    with pytest.raises(ValueError, match="two raters"):
        Continuum(5, (((0, 1),),))


# Values of the definition with its sums over all shifts, one position after the other.
BY_DEFINITION: list[tuple[float, list[list[Continuum]]]] = [
    # A unit over two of the other, units that touch, and units at either end.
    (-0.516204, [[Continuum(9, (((0, 6),), ((1, 3), (4, 8))))]]),
    (-0.434028, [[Continuum(6, (((0, 2), (2, 5)), ((1, 4),)))]]),
    (-1.375776, [[Continuum(7, (((0, 3),), ((4, 7),)))]]),
    # A unit alone, a continuum of one position, and three raters.
    (-1.333333, [[Continuum(3, (((0, 2),), ()))]]),
    (-0.666667, [[Continuum(1, (((0, 1),), ())), Continuum(2, (((0, 1),), ((1, 2),)))]]),
    (-0.620146, [[Continuum(8, (((1, 4),), ((2, 6),), ()))]]),
    # Units that fill everything, for all raters or for one.
    (0.440278, [[Continuum(5, (((0, 2), (2, 5)), ((0, 5),)))]]),
    (0.083333, [[Continuum(4, (((0, 1), (1, 4)), ((0, 3), (3, 4))))]]),
    (0.613333, [[Continuum(4, (((0, 4),), ((0, 4),))), Continuum(6, (((1, 3),), ((2, 5),)))]]),
    (-0.579646, [[Continuum(6, (((0, 6),), ((0, 1), (2, 3), (5, 6))))]]),
    # Several continua, and several categories.
    (
        -1.571001,
        [
            [
                Continuum(5, (((1, 2),), ((1, 3),))),
                Continuum(3, ((), ((0, 3),))),
                Continuum(9, (((2, 4), (6, 9)), ((3, 7),))),
            ]
        ],
    ),
    (
        0.470141,
        [[Continuum(6, (((0, 2),), ((1, 3),)))], [Continuum(4, (((1, 4),), ((2, 4),), ((1, 3),)))]],
    ),
    (-0.083333, [[Continuum(4, ((), ()))], [Continuum(4, (((0, 2),), ((1, 3),)))]]),
]


def test_alpha_u_follows_its_definition() -> None:
    for value, categories in BY_DEFINITION:
        assert krippendorff_alpha_u(categories).value == pytest.approx(value, abs=1e-6)
