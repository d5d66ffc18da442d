"""A codebook and its next version, and the map between them."""

from __future__ import annotations

from msgspec.structs import replace

from mast_tui.exchange.migration.mapping import CodebookMap
from mast_tui.taxonomy.model import Mode, Taxonomy
from tests.taxonomy.rewording import changed
from tests.workspace.build import MAST, MODES

RENAMED, MERGED, INTO, SPLIT, DROPPED = MODES[:5]
NAMED = "another_name"
FIRST = "first_part"
SECOND = "second_part"
PARTS = (FIRST, SECOND)


def change_modes(modes: list[Mode]) -> list[Mode]:
    bare = [replace(mode, confusable=()) for mode in modes]
    named = replace(bare[0], slug=NAMED, name="Another name")
    parts = [
        replace(bare[3], slug=slug, code=code, name=slug)
        for slug, code in zip(PARTS, ("1.4", "1.6"), strict=True)
    ]
    return [named, bare[2], *parts, *bare[5:]]


NEXT: Taxonomy = changed(MAST, change_modes, version="4")
"""MAST with a mode renamed, two merged, one split and one dropped."""

TARGETS = {
    **{mode: (mode,) for mode in MODES},
    RENAMED: (NAMED,),
    MERGED: (INTO,),
    SPLIT: PARTS,
    DROPPED: (),
}
MAP = CodebookMap(MAST, NEXT, TARGETS)
