"""What has changed from one taxonomy to another: words, names, and modes that came, went or moved.

That a mode became another one is a guess, by names, former names and definitions; a map says what
is so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rapidfuzz import fuzz

from mast_tui.taxonomy.model import Mode, Taxonomy

ALIKE: Final = 0.6
"""From this likeness on, of 0 to 1, a mode may have become another."""

NEARLY: Final = 0.85
"""Beside a pair that is more alike, one counts where it comes to this share of it."""

_TEXTS: Final = (
    *("stages", "definition", "applies", "applies_not"),
    *("confusable", "detection", "fixes", "aliases"),
)


@dataclass(frozen=True, slots=True)
class Differs:
    """Something short of a mode that is another now: its name, code or category."""

    mode: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """Old modes that may have become new ones; ``likeness`` is that of the least alike pair."""

    before: tuple[str, ...]
    after: tuple[str, ...]
    likeness: float


@dataclass(frozen=True, slots=True)
class TaxonomyChanges:
    """Everything that differs; modes by slug, in the order of the old or of the new taxonomy.

    ``wording`` names the texts that differ by mode. ``same`` is whether labels can stay: texts and
    names alone differ. ``added`` and ``dropped`` hold all slugs of one side alone, candidates among
    them. ``categories`` are ids that are on one side only, old ones with ``-``.
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
    renamed: tuple[Candidate, ...]
    split: tuple[Candidate, ...]
    merged: tuple[Candidate, ...]


def changes(old: Taxonomy, new: Taxonomy) -> TaxonomyChanges:
    """Hold a taxonomy against another, or a later version of it."""
    was = {mode.slug: mode for mode in old.modes}
    now = {mode.slug: mode for mode in new.modes}
    both = [slug for slug in was if slug in now]
    wording = {slug: _texts(was[slug], now[slug]) for slug in both}
    dropped = tuple(slug for slug in was if slug not in now)
    added = tuple(slug for slug in now if slug not in was)
    pairs = _pairs([was[slug] for slug in dropped], [now[slug] for slug in added])
    reverse = {(b, a): likeness for (a, b), likeness in pairs.items()}
    ids = [one.identity[1] for one in (old, new)]
    return TaxonomyChanges(
        same=old.identity[1:] == new.identity[1:],
        wording={slug: texts for slug, texts in wording.items() if texts},
        names=_differing(both, was, now, "name"),
        codes=_differing(both, was, now, "code"),
        moved=_differing(both, was, now, "category"),
        categories=(
            *(f"-{one}" for one in ids[0] if one not in ids[1]),
            *(one for one in ids[1] if one not in ids[0]),
        ),
        reordered=both != [slug for slug in now if slug in was],
        added=added,
        dropped=dropped,
        renamed=_one_to_one(pairs),
        split=tuple(Candidate((a,), b, alike) for a, b, alike in _one_to_several(pairs)),
        merged=tuple(Candidate(a, (b,), alike) for b, a, alike in _one_to_several(reverse)),
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
    """How alike each old mode is to each new one, where they are at all."""
    found = {(a.slug, b.slug): _likeness(a, b) for a in old for b in new}
    alike = {pair: likeness for pair, likeness in found.items() if likeness >= ALIKE}
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
    names = {old.name.casefold(), *(alias.name.casefold() for alias in old.aliases)}
    others = {new.name.casefold(), *(alias.name.casefold() for alias in new.aliases)}
    if names & others:
        return 1.0
    likeness = fuzz.token_sort_ratio(old.name.casefold(), new.name.casefold())
    if old.definition and new.definition:
        words = (old.definition.casefold(), new.definition.casefold())
        likeness = max(likeness, fuzz.token_set_ratio(*words))
    return round(likeness / 100, 2)


def _one_to_one(pairs: _Pairs) -> tuple[Candidate, ...]:
    return tuple(
        Candidate((a,), (b,), likeness)
        for (a, b), likeness in pairs.items()
        if sum(a == one for one, _ in pairs) == 1 and sum(b == other for _, other in pairs) == 1
    )


def _one_to_several(pairs: _Pairs) -> tuple[tuple[str, tuple[str, ...], float], ...]:
    """What has several counterparts, with these and the likeness of the least alike."""
    found: dict[str, list[str]] = {}
    for one, other in pairs:
        found.setdefault(one, []).append(other)
    return tuple(
        (one, tuple(others), min(pairs[one, other] for other in others))
        for one, others in found.items()
        if len(others) > 1
    )
