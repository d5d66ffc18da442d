"""What tells two taxonomies apart for labels: slugs, their order and levels, and codes."""

from __future__ import annotations

from collections.abc import Iterator

from mast_tui.taxonomy.model import Taxonomy


def differences(old: Taxonomy, new: Taxonomy) -> tuple[str, ...]:
    """Tell in words where the identities of two taxonomies of one name differ, none where equal.

    Args:
        old: The one that is known.
        new: The one that is held against it.
    """
    return tuple(_differences(old, new))


def _differences(old: Taxonomy, new: Taxonomy) -> Iterator[str]:
    was = {mode.slug: mode for mode in old.modes}
    now = {mode.slug: mode for mode in new.modes}
    for slug in (slug for slug in now if slug not in was):
        yield f"mode {slug!r} is new"
    for slug in (slug for slug in was if slug not in now):
        yield f"mode {slug!r} is gone"
    for slug in (slug for slug in was if slug in now):
        before, after = was[slug], now[slug]
        if before.code != after.code:
            yield f"{slug!r} has the code {after.code}, not {before.code}"
        if before.category != after.category:
            yield f"{slug!r} is under {after.category!r}, not {before.category!r}"
    if old.identity[1] != new.identity[1] and set(old.identity[1]) == set(new.identity[1]):
        yield "the categories stand in another order"
    elif old.identity[1] != new.identity[1]:
        yield "the categories are others"
    if list(was) != list(now) and set(was) == set(now):
        yield "the modes stand in another order"
