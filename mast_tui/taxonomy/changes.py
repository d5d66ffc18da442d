"""The differences between two taxonomies: texts, names, and added, removed or moved modes.

Modes that may have become other modes are guessed by names, former names and definitions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rapidfuzz import fuzz

from mast_tui.grouping import values_by_key
from mast_tui.taxonomy.model import Mode, Taxonomy

LEAST_LIKENESS: Final = 0.6
"""The least similarity, from 0 to 1, at which a mode may have become another mode."""

BEST_SHARE: Final = 0.85
"""The least similarity of a pair, as a share of the best similarity of its two modes."""

_TEXT_FIELDS: Final = (
    *("stages", "definition", "applies", "applies_not"),
    *("confusable", "detection", "fixes", "aliases"),
)


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A changed field of a mode: its name, code or category."""

    mode: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class ModeCandidate:
    """Old modes that may have become new modes; ``likeness`` is their least similarity."""

    old: tuple[str, ...]
    new: tuple[str, ...]
    likeness: float


@dataclass(frozen=True, slots=True)
class TaxonomyChanges:
    """All differences; modes are named by slug, in the order of their taxonomy.

    Attributes:
        same: True if labels can stay, because only texts and names differ.
        wording: The fields with changed texts, by mode.
        names: The changed names.
        codes: The changed codes.
        moved: The changed categories of modes.
        categories: The ids of categories in only one taxonomy, with ``-`` before those of the old.
        reordered: True if the common modes have another order.
        added: The modes of the new taxonomy only, including all candidates.
        dropped: The modes of the old taxonomy only, including all candidates.
        renamed: Single old modes that may have become single new modes.
        split: Old modes that may have become several new modes.
        merged: Several old modes that may have become one new mode.
    """

    same: bool
    wording: Mapping[str, tuple[str, ...]]
    names: tuple[FieldChange, ...]
    codes: tuple[FieldChange, ...]
    moved: tuple[FieldChange, ...]
    categories: tuple[str, ...]
    reordered: bool
    added: tuple[str, ...]
    dropped: tuple[str, ...]
    renamed: tuple[ModeCandidate, ...]
    split: tuple[ModeCandidate, ...]
    merged: tuple[ModeCandidate, ...]


def changes(old: Taxonomy, new: Taxonomy) -> TaxonomyChanges:
    """Find the differences between two taxonomies, or two versions of one.

    Args:
        old: The first taxonomy, or the earlier version.
        new: The second taxonomy, or the later version.
    """
    old_modes = {mode.slug: mode for mode in old.modes}
    new_modes = {mode.slug: mode for mode in new.modes}
    common_slugs = [slug for slug in old_modes if slug in new_modes]
    dropped = tuple(slug for slug in old_modes if slug not in new_modes)
    added = tuple(slug for slug in new_modes if slug not in old_modes)
    # The pairs of dropped and added modes that may be the same, with their similarity.
    pairs = _likely_pairs(
        [old_modes[slug] for slug in dropped], [new_modes[slug] for slug in added]
    )
    reverse_pairs = {
        (new_slug, old_slug): likeness for (old_slug, new_slug), likeness in pairs.items()
    }
    common_modes = [(old_modes[slug], new_modes[slug]) for slug in common_slugs]
    _old_ref, old_categories, old_mode_keys = old.identity
    _new_ref, new_categories, new_mode_keys = new.identity
    wording = {mode.slug: _changed_text_fields(mode, new_mode) for mode, new_mode in common_modes}
    return TaxonomyChanges(
        same=(old_categories, old_mode_keys) == (new_categories, new_mode_keys),
        wording={slug: fields for slug, fields in wording.items() if fields},
        names=_field_changes(common_modes, "name"),
        codes=_field_changes(common_modes, "code"),
        moved=_field_changes(common_modes, "category"),
        categories=(
            *(f"-{category}" for category in old_categories if category not in new_categories),
            *(category for category in new_categories if category not in old_categories),
        ),
        reordered=common_slugs != [slug for slug in new_modes if slug in old_modes],
        added=added,
        dropped=dropped,
        renamed=_renamed_candidates(pairs),
        split=tuple(
            ModeCandidate((slug,), counterparts, likeness)
            for slug, counterparts, likeness in _divided_modes(pairs)
        ),
        merged=tuple(
            ModeCandidate(counterparts, (slug,), likeness)
            for slug, counterparts, likeness in _divided_modes(reverse_pairs)
        ),
    )


def _changed_text_fields(old: Mode, new: Mode) -> tuple[str, ...]:
    return tuple(name for name in _TEXT_FIELDS if getattr(old, name) != getattr(new, name))


def _field_changes(modes: Sequence[tuple[Mode, Mode]], field: str) -> tuple[FieldChange, ...]:
    """Return the changes of a field in pairs of old and new modes with the same slug."""
    all_values = [(old.slug, getattr(old, field), getattr(new, field)) for old, new in modes]
    return tuple(
        FieldChange(slug, old_value, new_value)
        for slug, old_value, new_value in all_values
        if old_value != new_value
    )


_LikenessByPair = Mapping[tuple[str, str], float]
"""The similarity of an old and a new mode, by their slugs."""


def _likely_pairs(old_modes: Sequence[Mode], new_modes: Sequence[Mode]) -> _LikenessByPair:
    """Return the pairs of old and new modes that may be the same.

    A pair is similar, and nearly as similar as the best pair of either mode.
    """
    similar_pairs: dict[tuple[str, str], float] = {}
    best_of_old: dict[str, float] = {}
    best_of_new: dict[str, float] = {}
    for old in old_modes:
        for new in new_modes:
            likeness = _mode_likeness(old, new)
            if likeness >= LEAST_LIKENESS:
                similar_pairs[old.slug, new.slug] = likeness
                best_of_old[old.slug] = max(likeness, best_of_old.get(old.slug, 0.0))
                best_of_new[new.slug] = max(likeness, best_of_new.get(new.slug, 0.0))
    return {
        (old_slug, new_slug): likeness
        for (old_slug, new_slug), likeness in similar_pairs.items()
        if likeness >= BEST_SHARE * max(best_of_old[old_slug], best_of_new[new_slug])
    }


def _mode_likeness(old: Mode, new: Mode) -> float:
    """Return the similarity of two modes from 0 to 1, by their names and definitions."""
    old_names = {old.name.casefold(), *(alias.name.casefold() for alias in old.aliases)}
    new_names = {new.name.casefold(), *(alias.name.casefold() for alias in new.aliases)}
    if old_names & new_names:
        return 1.0
    percent = fuzz.token_sort_ratio(old.name.casefold(), new.name.casefold())
    if old.definition and new.definition:
        old_definition = old.definition.casefold()
        new_definition = new.definition.casefold()
        percent = max(percent, fuzz.token_set_ratio(old_definition, new_definition))
    return round(percent / 100, 2)


def _renamed_candidates(pairs: _LikenessByPair) -> tuple[ModeCandidate, ...]:
    """Return the pairs of modes without other counterparts."""
    old_counts = Counter(old for old, _ in pairs)
    new_counts = Counter(new for _, new in pairs)
    return tuple(
        ModeCandidate((old,), (new,), likeness)
        for (old, new), likeness in pairs.items()
        if old_counts[old] == 1 and new_counts[new] == 1
    )


def _divided_modes(pairs: _LikenessByPair) -> tuple[tuple[str, tuple[str, ...], float], ...]:
    """Return the first modes of pairs that have several counterparts.

    Each entry is the slug of the mode, its counterparts, and the least similarity.
    """
    counterparts_by_slug = values_by_key(pairs)
    return tuple(
        (slug, tuple(counterparts), min(pairs[slug, counterpart] for counterpart in counterparts))
        for slug, counterparts in counterparts_by_slug.items()
        if len(counterparts) > 1
    )
