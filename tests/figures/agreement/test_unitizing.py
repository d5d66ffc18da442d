"""α_U against its published values and its definition."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_tui.figures.agreement.coefficients import Coefficient
from mast_tui.figures.spans.unitizing import Continuum, Section, UnitSums, alpha_u

FIRST = 150


def krippendorff_alpha_u(categories: Sequence[Sequence[Continuum]]) -> Coefficient:
    """Return α_U over categories, each with its continua.

    It is undefined with ``no_overlap`` if there is no continuum, and with ``no_variance`` if nobody
    marked anything, or everybody marked every continuum as one unit.
    """
    if not any(categories):
        return Coefficient(undefined="no_overlap")
    sums = [UnitSums.from_continua(continua) for continua in categories]
    value = alpha_u([sum.disagreement(sum.features.sum(axis=0)[None, :]) for sum in sums])[0]
    return Coefficient(undefined="no_variance") if np.isnan(value) else Coefficient(float(value))


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
    assert krippendorff_alpha_u([[], []]) == Coefficient(undefined="no_overlap")
    for marked in ((), ((0, 5),)):
        continuum = Continuum(5, (marked, marked))
        assert krippendorff_alpha_u([[continuum] * 3]) == Coefficient(undefined="no_variance")
    unused = Continuum(300, ((), ()))
    assert krippendorff_alpha_u([[C], [unused]]) == krippendorff_alpha_u([[C]])


def test_impossible_continua_are_refused() -> None:
    for wrong in (((0, 3), (2, 4)), ((3, 3),), ((2, 9),)):
        with pytest.raises(ValueError, match="overlaps, is empty or lies outside"):
            Continuum(5, (wrong, ()))
    with pytest.raises(ValueError, match="two raters"):
        Continuum(5, (((0, 1),),))


# The definition, one position after the other: a section is (begins, length, is a unit).
Part = tuple[int, int, bool]


def parts(length: int, marked: tuple[Section, ...]) -> list[Part]:
    """Return the units and gaps of a rater."""
    of = [next((i for i, (a, b) in enumerate(marked) if a <= x < b), None) for x in range(length)]
    sections: list[Part] = []
    for x in range(length):
        if x and of[x] == of[x - 1]:
            sections[-1] = (sections[-1][0], sections[-1][1] + 1, sections[-1][2])
        else:
            sections.append((x, 1, of[x] is not None))
    return sections


def difference(g: Part, h: Part) -> int:
    """Return the squared difference of two parts as Krippendorff defines it."""
    (start, length, is_unit), (other_start, other_length, is_other_unit) = g, h
    positions, other_positions = (
        set(range(start, start + length)),
        set(range(other_start, other_start + other_length)),
    )
    if is_unit and is_other_unit and positions & other_positions:
        return (start - other_start) ** 2 + (start + length - other_start - other_length) ** 2
    if is_unit and not is_other_unit and positions <= other_positions:
        return length**2
    if is_other_unit and not is_unit and other_positions <= positions:
        return other_length**2
    return 0


def falling(g: Part, h: Part) -> int:
    """Return the differences over all shifts of one section on another."""
    return sum(difference((shift, g[1], g[2]), (0, h[1], h[2])) for shift in range(-g[1], h[1] + 1))


def by_definition(categories: list[list[Continuum]]) -> float | None:
    """Return α_U, or None if nothing is expected to differ."""
    observed = expected = 0.0
    for continua in categories:
        cut = [
            [parts(continuum.length, marked) for marked in continuum.units]
            for continuum in continua
        ]
        length = sum(continuum.length for continuum in continua)
        differing = sum(
            difference(g, h)
            for raters in cut
            for i, ours in enumerate(raters)
            for j, theirs in enumerate(raters)
            if i != j
            for g in ours
            for h in theirs
        )
        compared = sum(
            len(continuum.units) * (len(continuum.units) - 1) * continuum.length
            for continuum in continua
        )
        sections = [part for raters in cut for of_one in raters for part in of_one]
        fallen = sum(
            falling(g, h) for i, g in enumerate(sections) for j, h in enumerate(sections) if i != j
        )
        rated = sum(len(continuum.units) * continuum.length for continuum in continua)
        pairs = rated * (rated - 1) - sum(n * (n - 1) for _, n, unit in sections if unit)
        observed += differing / (length * compared)
        expected += fallen / (length * pairs)
    return 1 - observed / expected if expected else None


@st.composite
def continua(draw: st.DrawFn, raters: int | None = None) -> Continuum:
    """Draw a continuum with disjoint sections of each rater."""
    length = draw(st.integers(1, 9))

    def marked_sections() -> tuple[Section, ...]:
        ends = sorted(draw(st.sets(st.integers(0, length), max_size=6)))
        pieces = list(pairwise(ends))
        kept = draw(st.lists(st.booleans(), min_size=len(pieces), max_size=len(pieces)))
        return tuple(piece for piece, keep in zip(pieces, kept, strict=True) if keep)

    rater_count = raters or draw(st.integers(2, 4))
    return Continuum(length, tuple(marked_sections() for _ in range(rater_count)))


CATEGORIES = st.lists(st.lists(continua(), min_size=1, max_size=3), min_size=1, max_size=2)


@given(CATEGORIES)
def test_alpha_u_follows_its_definition(categories: list[list[Continuum]]) -> None:
    ours, theirs = krippendorff_alpha_u(categories), by_definition(categories)
    if ours.value is not None:
        assert theirs is not None
        assert ours.value == pytest.approx(theirs, abs=1e-9)
    else:
        # The formula gives 1 if every continuum is one unit.
        assert theirs is None or theirs == pytest.approx(1)
