"""The changes from one taxonomy to another: texts, names, and modes that are new, gone or moved.

Which mode became which other one is a guess, by names, former names and definitions; a codebook map
states it for certain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rapidfuzz import fuzz

from mast_tui.taxonomy.model import Mode, Taxonomy

ALIKE: Final = 0.6
"""The similarity, from 0 to 1, from which a mode may have become another."""

NEARLY: Final = 0.85
"""The share of the best similarity of either mode from which a pair still counts."""

_TEXTS: Final = (
    *("stages", "definition", "applies", "applies_not"),
    *("confusable", "detection", "fixes", "aliases"),
)


@dataclass(frozen=True, slots=True)
class Differs:
    """A field of a mode that has changed: its name, code or category."""

    mode: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class ModeCandidate:
    """Old modes that may have become new ones; ``likeness`` is that of the least similar pair."""

    old: tuple[str, ...]
    new: tuple[str, ...]
    likeness: float


@dataclass(frozen=True, slots=True)
class TaxonomyChanges:
    """All differences; modes by slug, in the order of the old or of the new taxonomy.

    ``same`` is True if labels can stay, as only texts and names differ. ``wording`` has the fields
    whose text differs, by mode. ``added`` and ``dropped`` hold all slugs of one side only,
    candidates included. ``categories`` are the ids of one side only, old ones with ``-``.
    """

    same: bool
    wording: Mapping[str, tuple[str, ...]]
    names: tuple[Differs, ...]
    codes: tuple[Differs, ...]
    moved: tuple[Differs, ...]
    categories: tuple[str, ...]
    reordered: bool
    added: tuple[str, ...]
    dropped: tuple[str, ...]
    renamed: tuple[ModeCandidate, ...]
    split: tuple[ModeCandidate, ...]
    merged: tuple[ModeCandidate, ...]


def changes(old: Taxonomy, new: Taxonomy) -> TaxonomyChanges:
    """Compare a taxonomy with another, or with a later version of it.

    Args:
        old: The taxonomy.
        new: The other one.
    """
    was = {mode.slug: mode for mode in old.modes}
    now = {mode.slug: mode for mode in new.modes}
    both = [slug for slug in was if slug in now]
    wording = {slug: _texts(was[slug], now[slug]) for slug in both}
    dropped = tuple(slug for slug in was if slug not in now)
    added = tuple(slug for slug in now if slug not in was)
    pairs = _pairs([was[slug] for slug in dropped], [now[slug] for slug in added])
    reverse = {(b, a): likeness for (a, b), likeness in pairs.items()}
    old_ids = old.identity[1]
    new_ids = new.identity[1]
    return TaxonomyChanges(
        same=old.identity[1:] == new.identity[1:],
        wording={slug: texts for slug, texts in wording.items() if texts},
        names=_differing(both, was, now, "name"),
        codes=_differing(both, was, now, "code"),
        moved=_differing(both, was, now, "category"),
        categories=(
            *(f"-{ident}" for ident in old_ids if ident not in new_ids),
            *(ident for ident in new_ids if ident not in old_ids),
        ),
        reordered=both != [slug for slug in now if slug in was],
        added=added,
        dropped=dropped,
        renamed=_one_to_one(pairs),
        split=tuple(ModeCandidate((a,), b, alike) for a, b, alike in _one_to_several(pairs)),
        merged=tuple(ModeCandidate(a, (b,), alike) for b, a, alike in _one_to_several(reverse)),
    )


def _texts(was: Mode, now: Mode) -> tuple[str, ...]:
    return tuple(name for name in _TEXTS if getattr(was, name) != getattr(now, name))


def _differing(
    both: Sequence[str], was: Mapping[str, Mode], now: Mapping[str, Mode], field: str
) -> tuple[Differs, ...]:
    pairs = [(slug, getattr(was[slug], field), getattr(now[slug], field)) for slug in both]
    return tuple(Differs(*pair) for pair in pairs if pair[1] != pair[2])


_Pairs = Mapping[tuple[str, str], float]


def _pairs(old: Sequence[Mode], new: Sequence[Mode]) -> _Pairs:
    """Return the similarity of each old mode to each new one that it may have become."""
    likenesses = {(a.slug, b.slug): _likeness(a, b) for a in old for b in new}
    alike = {pair: likeness for pair, likeness in likenesses.items() if likeness >= ALIKE}
    best: dict[str, float] = {}
    for (a, b), likeness in alike.items():
        best[f"-{a}"] = max(likeness, best.get(f"-{a}", 0.0))
        best[b] = max(likeness, best.get(b, 0.0))
    return {
        (a, b): likeness
        for (a, b), likeness in alike.items()
        if likeness >= NEARLY * max(best[f"-{a}"], best[b])
    }


def _likeness(old: Mode, new: Mode) -> float:
    old_names = {old.name.casefold(), *(alias.name.casefold() for alias in old.aliases)}
    new_names = {new.name.casefold(), *(alias.name.casefold() for alias in new.aliases)}
    if old_names & new_names:
        return 1.0
    likeness = fuzz.token_sort_ratio(old.name.casefold(), new.name.casefold())
    if old.definition and new.definition:
        definitions = (old.definition.casefold(), new.definition.casefold())
        likeness = max(likeness, fuzz.token_set_ratio(*definitions))
    return round(likeness / 100, 2)


def _one_to_one(pairs: _Pairs) -> tuple[ModeCandidate, ...]:
    return tuple(
        ModeCandidate((a,), (b,), likeness)
        for (a, b), likeness in pairs.items()
        if sum(a == old for old, _ in pairs) == 1 and sum(b == new for _, new in pairs) == 1
    )


def _one_to_several(pairs: _Pairs) -> tuple[tuple[str, tuple[str, ...], float], ...]:
    """Return each mode that has several counterparts, with these and their lowest similarity."""
    counterparts: dict[str, list[str]] = {}
    for slug, counterpart in pairs:
        counterparts.setdefault(slug, []).append(counterpart)
    return tuple(
        (slug, tuple(several), min(pairs[slug, counterpart] for counterpart in several))
        for slug, several in counterparts.items()
        if len(several) > 1
    )
