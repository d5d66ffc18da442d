"""Output of commands for a taxonomy of three levels."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_tui.exchange.migration.mapping import taxonomy_toml
from tests.cli.conftest import Cli
from tests.taxonomy.test_levels import desk

VERDICTS = {"ann": ("1100", "0010", "0001"), "bob": ("0100", "0010", "0001")}
"""A letter per mode for each of three traces."""


@pytest.fixture
def labelled(cli: Cli, tmp_path: Path) -> None:
    """Import the verdicts of all annotators under a taxonomy with levels."""
    modes = [mode.slug for mode in desk().modes]
    rows = ["trace_id,annotator,mode,value,taxonomy", "t0,ann,1.1,absent,mast@3"]
    for annotator, traces in VERDICTS.items():
        for number, line in enumerate(traces):
            for slug, letter in zip(modes, line, strict=True):
                value = "present" if letter == "1" else "absent"
                rows.append(f"t{number},{annotator},{slug},{value},desk@1")
            rows.append(f"t{number},{annotator},,finished,desk@1")
    Path("labels.csv").write_text("\n".join([*rows, ""]))
    Path("desk.toml").write_text(taxonomy_toml(desk()))
    command = ("import", "labels.csv", "--format", "csv-long", "--taxonomy", "desk.toml")
    cli.ok(*command, "--allow-new")


@pytest.mark.slow
def test_every_form_of_the_reports_has_each_level(cli: Cli, labelled: None) -> None:
    outputs = {name: f"out.{name}" for name in ("csv", "markdown", "latex", "html")}
    options = [part for name, file in outputs.items() for part in (f"--{name}", file)]
    arguments = ("--taxonomy", "desk@1", "--rounds", "0", *options)
    output = cli("agree", *arguments).out
    for text in (output, *(Path(file).read_text() for file in list(outputs.values())[1:])):
        assert "whole traces, by category" in text
        assert "whole traces, by group" in text
    rows = Path("out.csv").read_text().splitlines()
    assert "level,,Tools › Choice of tool,cohen_kappa,1.0,,,,3,ann|bob," in rows
    assert "level_pooled,,group,raw_agreement,1.0,,,,9,ann|bob," in rows

    signatures = cli.json("report", *arguments, "--labels", "ann", "--by", "all")
    levels = signatures["groups"]["all"]["levels"]
    choice = levels["group"]["categories"]["choice"]
    assert (choice["name"], choice["count"]) == ("Tools › Choice of tool", 2)
    assert levels["category"]["categories"] == signatures["groups"]["all"]["categories"]
    for file in list(outputs.values())[1:]:
        assert "(group)" in Path(file).read_text()
    assert any(
        row.startswith("level,all,,Talk,") for row in Path("out.csv").read_text().split("\n")
    )


def test_the_tree_shows_the_digits_that_label_a_mode(cli: Cli, labelled: None) -> None:
    assert cli("taxonomy", "show", "desk@1").out.splitlines()[1:4] == [
        "  Tools",
        "    Choice of tool",
        "      01  AC-1  Wrong tool",
    ]
    document = cli.json("taxonomy", "show", "desk.toml")
    assert document["levels"] == ["category", "group"]
    assert document["categories"][1] == {
        "id": "choice", "name": "Choice of tool", "level": "group", "under": "tools"
    }  # fmt: skip
    assert "  13  1.3  Step repetition" in cli("taxonomy", "show").out
