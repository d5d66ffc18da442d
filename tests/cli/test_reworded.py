"""A definition is corrected in the midst of a study: everything stays, and figures tell of it."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from mast_tui.labels import PassKind, VerdictValue
from mast_tui.taxonomy.loader import load_mast
from mast_tui.workspace import NewEvent, Workspace, find_workspace
from mast_tui.workspace.events.types import Fact, PassFinished, PassStarted, VerdictSet
from tests.cli.conftest import Cli

MAST = load_mast()
SHIPPED = (Path(__file__).parents[2] / "mast_tui" / "taxonomy" / "mast.toml").read_text("utf-8")
CALLS = [{"role": "assistant", "content": f"Let me look again. {n % 2}"} for n in range(8)]


@pytest.fixture
def corrected(tmp_path: Path) -> Path:
    """MAST with one word of a definition put otherwise."""
    words = " ".join(MAST.modes[0].definition.split()[:4])
    assert words in SHIPPED
    file = tmp_path / "mine.toml"
    file.write_text(SHIPPED.replace(words, f"Surely {words}", 1))
    return file


@pytest.fixture
def labelled(cli: Cli, tmp_path: Path) -> Path:
    """A workspace in which two people have finished a trace, and the rules have looked at it."""
    (tmp_path / "run.json").write_text(json.dumps(CALLS), encoding="utf-8")
    assert cli("judge", "run.json", "--judge", "rules").code == 0
    database_path = find_workspace(None)
    with closing(Workspace.open(database_path)) as workspace:
        (trace,) = workspace.traces()
        for name in ("alice", "bob"):
            facts: list[Fact] = [
                PassStarted(PassKind.BLIND),
                *(VerdictSet(mode.slug, None, VerdictValue.ABSENT) for mode in MAST.modes),
                PassFinished(),
            ]
            workspace.append([NewEvent(name, trace.trace_id, MAST.ref, 1, fact) for fact in facts])
    return database_path


def test_a_corrected_definition_keeps_labels_and_is_told_by_every_figure(
    cli: Cli, labelled: Path, corrected: Path
) -> None:
    before = cli("agree", "--json").json
    assert [revision["passes"] for revision in before["revisions"]] == [2]
    assert cli("status").out.count("texts of the modes") == 0
    done = cli("judge", "run.json", "--judge", "rules", "--taxonomy", corrected)
    assert done.code == 0, done.err
    after = cli("agree", "--json").json
    assert {**after, "revisions": None} == {**before, "revisions": None}
    first, second = after["revisions"]
    assert (first["hash"], first["passes"]) == (MAST.content_hash, 2)
    assert (second["passes"], second["since"] > first["since"]) == (0, True)
    assert "the texts of the modes have changed once" in cli("status").out
    assert "The texts of the modes have changed once" in cli("agree").out
    for command in ("status", "report"):
        assert cli(command, "--json").json["revisions"] == after["revisions"]
    assert cli("export", "--format", "gold", "-o", "gold.json").code == 0
    told = json.loads(Path("gold.json").read_text())["taxonomy"]
    assert told["revisions"] == after["revisions"]
    assert told["content_hash"] == second["hash"]
    assert told["modes"][0]["definition"].startswith("Surely ")
    (sheet,) = Path().glob("gold*.md")
    assert "texts of the modes have changed once" in sheet.read_text()


def test_without_a_file_the_judge_reads_the_text_of_the_workspace(
    cli: Cli, labelled: Path, corrected: Path
) -> None:
    assert cli("judge", "run.json", "--judge", "rules", "--taxonomy", corrected).code == 0
    assert cli("judge", "run.json", "--judge", "rules", "--again").code == 0
    assert len(cli("status", "--json").json["revisions"]) == 2


def test_another_code_under_the_same_version_is_refused_with_what_to_do(
    cli: Cli, labelled: Path, tmp_path: Path
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(SHIPPED.replace('code = "1.1"', 'code = "1.9"', 1))
    for command in (("judge", "run.json", "--judge", "rules"), ("status",)):
        done = cli(*command, "--taxonomy", file)
        assert done.code == 1
        assert "has the code 1.9, not 1.1" in done.err
        assert "raise the version" in done.err
    assert len(cli("status", "--json").json["revisions"]) == 1
