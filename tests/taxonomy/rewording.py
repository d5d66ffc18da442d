"""Taxonomies that differ from another in their words, or in their modes."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from mast_tui.taxonomy.loader import from_dict, to_dict
from mast_tui.taxonomy.model import Mode, Taxonomy


def reworded(taxonomy: Taxonomy, words: str = "Put otherwise.") -> Taxonomy:
    """The taxonomy with another definition of its first mode."""
    return changed(taxonomy, lambda modes: [replace(modes[0], definition=words), *modes[1:]])


def changed(
    taxonomy: Taxonomy, change: Callable[[list[Mode]], list[Mode]], version: str | None = None
) -> Taxonomy:
    """The taxonomy with other modes, and as another version where one is named."""
    other = replace(taxonomy, modes=tuple(change(list(taxonomy.modes))))
    return from_dict(to_dict(replace(other, version=version or taxonomy.version)))
