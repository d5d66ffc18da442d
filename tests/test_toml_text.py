"""TOML that is nested too deeply: all readers refuse it with the same error."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from mast_tui.configuration import read_configuration, with_theme
from mast_tui.errors import MastError
from mast_tui.exchange.crosswalk import read_crosswalk
from mast_tui.exchange.exporters.datasheet import read_datasheet
from mast_tui.taxonomy.loader import load_taxonomy
from mast_tui.toml_text import MOST_LEVELS, parse_toml

DEEP = {
    "brackets": f"x = {'[' * 20_000}",
    "closed": f"x = {'[' * 3000}{']' * 3000}",
    "braces": f"x = {'{a = ' * 3000}1{'}' * 3000}",
    "key": f"{'.'.join('a' * 20_000)} = 1",
    "table": f"[{'.'.join('a' * 300)}]",
    "lists": f"x = {'[' * 60}{']' * 60}",
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
def test_deep_nesting_is_an_error(text: str, tmp_path: Path) -> None:
    with pytest.raises(tomllib.TOMLDecodeError, match="nested more than 50 deep"):
        parse_toml(text)
    file = tmp_path / "x.toml"
    file.write_text(text)
    for read in (load_taxonomy, read_crosswalk, read_datasheet):
        with pytest.raises(MastError, match=r"x\.toml.*nested more than 50 deep"):
            read(file)
    (problem,) = read_configuration(file).problems
    assert "nested more than 50 deep" in str(problem)
    with pytest.raises(MastError, match="nested more than 50 deep"):
        with_theme(text, "nord")


def test_ordinary_nesting_is_read() -> None:
    levels = MOST_LEVELS - 1
    assert parse_toml(f"x = {'[' * levels}{']' * levels}")
    prose = "a.b.c. " * 100
    assert parse_toml(f'x = """\n{prose}\n"""') == {"x": f"{prose}\n"}


def test_a_crosswalk_in_deep_json_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text("[" * 200_000)
    with pytest.raises(MastError, match="nested too deeply"):
        read_crosswalk(file)
