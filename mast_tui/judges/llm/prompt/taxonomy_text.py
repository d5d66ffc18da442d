"""The definitions of a taxonomy as a model reads them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from mast_tui.taxonomy.model import Mode, Taxonomy

Guidelines = Mapping[str, Sequence[str]]
"""The guidelines of a team, by the slug of their mode."""

AGREED: Final = "As this team has agreed:"
"""The heading of the guidelines in a mode's section."""

NO_GUIDELINES: Final[Guidelines] = MappingProxyType({})


def reordered(taxonomy: Taxonomy, seed: int) -> Taxonomy:
    """A taxonomy with its categories, and the modes in each, in an order drawn from a seed."""

    def drawn(name: str) -> bytes:
        return hashlib.sha256(f"{seed} {name}".encode()).digest()

    categories = sorted(taxonomy.categories, key=lambda one: drawn(one.id))
    place = {category.id: number for number, category in enumerate(categories)}
    modes = sorted(taxonomy.modes, key=lambda one: (place[one.category], drawn(one.slug)))
    return replace(taxonomy, categories=tuple(categories), modes=tuple(modes))


def taxonomy_text(taxonomy: Taxonomy, guidelines: Guidelines = NO_GUIDELINES) -> str:
    """Write all categories and modes, with what tells them apart.

    Args:
        taxonomy: The taxonomy.
        guidelines: What the team has agreed on its modes.
    """
    parts: list[str] = []
    for category in taxonomy.categories:
        modes = [mode for mode in taxonomy.modes if mode.category == category.id]
        if modes:
            parts.append(f"## {taxonomy.title(category.id)}")
            parts.extend(mode_text(mode, taxonomy, guidelines) for mode in modes)
    return "\n\n".join(parts)


def mode_text(mode: Mode, taxonomy: Taxonomy, guidelines: Guidelines = NO_GUIDELINES) -> str:
    """Write one mode, with what tells it apart; the text begins with its code.

    Args:
        mode: The mode.
        taxonomy: Its taxonomy.
        guidelines: What the team has agreed on the taxonomy's modes.
    """
    lines = [f"### {mode.code} {mode.name}"]
    if mode.definition:
        lines.append(mode.definition)
    lines.extend(_listed("It is this:", mode.applies))
    lines.extend(_listed("It is not this:", mode.applies_not))
    lines.extend(_listed("Easily confused with it:", _differences(mode, taxonomy)))
    if mode.detection:
        lines.append(f"How to look: {mode.detection}")
    agreed = (" ".join(text.split()) for text in guidelines.get(mode.slug, ()))
    lines.extend(_listed(AGREED, agreed))
    return "\n".join(lines)


def _listed(head: str, points: Iterable[str]) -> list[str]:
    points = list(points)
    return [head, *(f"- {point}" for point in points)] if points else []


def _differences(mode: Mode, taxonomy: Taxonomy) -> list[str]:
    """What sets the mode apart from others, each of which is named by its code."""
    codes = [taxonomy.mode(other.slug).code for other in mode.confusable]
    return [
        other.difference if code in other.difference else f"{code}: {other.difference}"
        for code, other in zip(codes, mode.confusable, strict=True)
    ]
