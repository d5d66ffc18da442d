"""Choosing any mode by its name, its definition or its code."""

from __future__ import annotations

from mast_tui.taxonomy.model import Taxonomy
from mast_tui.ui.dialogs.finder import Choice, Finder


class ModeFinder(Finder):
    """Gives back a mode's slug."""

    def __init__(self, taxonomy: Taxonomy) -> None:
        choices = [
            Choice(
                mode.slug,
                mode.code if taxonomy.coded_by_digits else taxonomy.keys_of(mode),
                mode.name,
                " ".join([mode.definition, *(alias.name for alias in mode.aliases)]),
            )
            for mode in taxonomy.modes
        ]
        super().__init__("Label with", choices, placeholder="name, definition or code")
