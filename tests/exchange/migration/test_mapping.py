"""Maps from a codebook to its next version."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mast_tui.exchange.errors import ExchangeError
from mast_tui.exchange.migration.mapping import ModeChange, codebook_map
from tests.exchange.migration.codebooks import (
    DROPPED,
    FIRST,
    INTO,
    MAP,
    MERGED,
    NAMED,
    NEXT,
    RENAMED,
    SECOND,
    SPLIT,
    TARGETS,
)
from tests.workspace.build import MAST, MODES

WORDS = f"""
[modes]
{RENAMED} = "{NAMED}"
"1.2" = "1.3"
{SPLIT} = ["{FIRST}", "{SECOND}"]
{DROPPED} = []
"""


def test_a_map_names_what_changes_in_toml_and_json(tmp_path: Path) -> None:
    file = tmp_path / "map.toml"
    file.write_text(WORDS)
    found = codebook_map(MAST, NEXT, file)
    assert found.targets == TARGETS == MAP.targets
    assert found.sources[INTO] == (MERGED, INTO)
    assert found.added == ()
    told = {slug: found.change(slug) for slug in MODES[:6]}
    assert list(told.values()) == [
        ModeChange.RENAMED,
        ModeChange.MERGED,
        ModeChange.MERGED,
        ModeChange.SPLIT,
        ModeChange.DROPPED,
        ModeChange.SAME,
    ]
    file = tmp_path / "map.json"
    modes: dict[str, object] = {RENAMED: NAMED, MERGED: INTO, SPLIT: [FIRST, SECOND], DROPPED: []}
    file.write_text(json.dumps({MAST.ref: modes, "other@1": {"x": "y"}}))
    assert codebook_map(MAST, NEXT, file).targets == TARGETS


def test_impossible_maps_are_refused_also_onto_the_same_version(tmp_path: Path) -> None:
    for words, told in [
        (None, "has no mode 'disobey_task_specification'.*say with --map FILE"),
        ("[modes]\nnowhere = []\n", "'nowhere' is no mode of mast@3"),
        (f"{WORDS}step_repetition = 'nowhere'\n", "'nowhere' is no mode of mast@4"),
        (f"{WORDS}[\"mast@3\"]\n{DROPPED} = '1.3'\n", "both dropped and kept"),
        ("['other@1']\nx = 'y'\n", "says nothing of mast@3"),
        ("modes = 1\n", "outside a table"),
        ("[modes]\nx = 1\n", "wants a code"),
        ("[modes\n", "not TOML"),
    ]:
        file = None
        if words is not None:
            file = tmp_path / "map.toml"
            file.write_text(words)
        with pytest.raises(ExchangeError, match=told):
            codebook_map(MAST, NEXT, file)
    with pytest.raises(ExchangeError, match="give the new one another version"):
        codebook_map(MAST, MAST, None)
