"""Export from the app: formats, fields, files, and refusals."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from textual.widgets import Static

from mast_tui.cli.command_line import split_command
from mast_tui.cli.dispatch import run as run_command
from mast_tui.exchange.registry import EXPORT_FORMATS
from mast_tui.ui.dialogs.export import ExportForm
from mast_tui.ui.dialogs.finder import ChoiceList
from mast_tui.ui.dialogs.form import completed_path
from tests.ui.stage import SMALL, Stage, missing, stage, write_trace
from tests.ui.team_dir import TeamDir

ROW = "trace_id,annotator,mode,value"


@pytest.fixture
def team(team: TeamDir) -> TeamDir:
    """One trace that alice and bob have finished, and one that only bob has."""
    team.label("alice", "one", {"1.3": (3, 8), "2.6": (9, 9)})
    team.label("bob", "one", {"1.3": (3, 8)})
    team.label("bob", "two", {"3.1": (12, 12)})
    return team


async def choose(on: Stage, file_format: str) -> None:
    """Open the form of a format."""
    await on.press("V")
    await on.press(*file_format)
    await on.press("enter")
    assert isinstance(on.app.screen, ExportForm)


async def write_over(on: Stage, name: Path | str) -> None:
    """Replace the file name in the first field."""
    await on.press("end", "ctrl+u", *(os.path.relpath(name) if name else ""), "enter")


def screen_text(on: Stage) -> str:
    return " ".join(on.text.replace("│", " ").split())


async def test_all_formats_are_offered_and_fit_80_columns(team: TeamDir) -> None:
    async with stage(team.folder / "one.json", workspace=team.workspace, size=(80, 24)) as on:
        await on.press("V")
        choices = on.app.screen.query_one(ChoiceList).choices
        assert [(choice.value, choice.name) for choice in choices] == [
            *((name, row.title) for name, row in EXPORT_FORMATS.items()),
            ("page", "this run with its labels, an HTML page to hand over"),
            ("markdown", "this run with its labels as Markdown"),
        ]
        for row in choices:
            assert row.name in on.text
            await on.press("down")


async def test_gold_is_written_and_summed_up(team: TeamDir, tmp_path: Path) -> None:
    async with stage(team.folder, workspace=team.workspace) as on:
        await on.press("K")
        await choose(on, "gold")
        assert not missing(screen_text(on), "Writes", "beside it, gold.datasheet.md")
        await write_over(on, tmp_path / "gold.json")
        assert "1 conflict left to decide: A opens them" in on.text
        assert not missing(on.text, "labels on 1 trace are left out", "also written")
        assert on.screen(ExportForm).typed_texts is None
        await on.press("enter")
        assert not isinstance(on.app.screen, ExportForm)
    assert (tmp_path / "gold.datasheet.md").exists()
    document = json.loads((tmp_path / "gold.json").read_text())
    # What bob says of a trace that alice has not finished is not told to her.
    assert [len(trace["unresolved"]) for trace in document["traces"]] == [1]


async def test_unknown_order_of_spans_asks_before_writing(team: TeamDir, tmp_path: Path) -> None:
    team.label("bob", "three", {"1.3": (3, 5)})
    team.label("alice", "three", {"1.3": (4, 6)})
    team.lose_order("one", "three")
    gold = tmp_path / "gold.json"
    async with stage(team.folder, workspace=team.workspace) as on:
        await on.press("K")
        await choose(on, "gold")
        await write_over(on, gold)
        assert "order of 2 labelled spans in 1 trace is unknown" in screen_text(on)
        texts = [str(static.content) for static in on.app.screen.query(Static)]
        assert any("three.json" in text for text in texts)  # on screen a long path is wrapped
        assert "Enter exports anyway" in screen_text(on)
        await on.press("escape")
        assert not gold.exists()
        await on.press("enter")
        await on.press("enter")
        assert "also written" in screen_text(on)
    assert json.loads(gold.read_text())["unordered"] == 2


async def test_reports_are_written_as_by_the_commands(
    team: TeamDir, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with stage(team.folder, workspace=team.workspace) as on:
        await on.press("K")
        await choose(on, "html")
        assert "agreement.html" in on.text
        await write_over(on, tmp_path / "agreement.html")
        assert "Written" in on.text
        for key, name in (("K", "agreement.csv"), ("S", "signatures.csv")):
            await on.press("enter", key)
            await choose(on, "csv")
            await write_over(on, tmp_path / name)
            assert "Written" in on.text
    page = (tmp_path / "agreement.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "alice" in page
    assert "You are alice here" not in page
    assert (tmp_path / "signatures.csv").read_text().startswith("scope,group,mode,")
    for name, command in (("agreement.csv", "agree"), ("signatures.csv", "report")):
        run(team, command, "--annotator", "alice", "--csv", str(tmp_path / "shell.csv"))
        assert (tmp_path / name).read_text() == (tmp_path / "shell.csv").read_text()
        (tmp_path / "shell.csv").unlink()


def run(team: TeamDir, *command: str, workspace: Path | None = None) -> None:
    """Run a command in this process, and check that it succeeds."""
    option = ["--workspace", str(workspace or team.workspace)]
    assert run_command(split_command([*command, *option])) == 0


async def test_the_open_run_is_written_as_a_page(team: TeamDir, tmp_path: Path) -> None:
    async with stage(team.folder / "one.json", workspace=team.workspace) as on:
        await choose(on, "page")
        await write_over(on, tmp_path / "run.html")
        assert "1 run, 3 labels, 1 gold label" in screen_text(on)
        await on.press("enter")
        assert not isinstance(on.app.screen, ExportForm)
    page = str(tmp_path / "run.html")
    run(team, "import", page, "--format", "page", workspace=tmp_path / "w.db")


async def test_the_library_writes_the_run_under_the_cursor_or_all(
    team: TeamDir, tmp_path: Path
) -> None:
    async with stage(team.folder, workspace=team.workspace) as on:
        await choose(on, "page")
        assert "two.html" in screen_text(on)
        await on.press("escape")
        await choose(on, "pages")
        await write_over(on, tmp_path / "pages")
        assert "2 runs, 3 labels, 1 gold label" in screen_text(on)
    names = {path.name for path in (tmp_path / "pages").iterdir()}
    assert names == {"index.html", "one.html", "two.html"}
    assert "<title>two</title>" in (tmp_path / "pages" / "two.html").read_text()


async def test_a_run_can_be_written_with_masks(team: TeamDir, tmp_path: Path) -> None:
    first = {"role": "user", "content": "Ask ada@example.org why the checkout is slow."}
    path = write_trace(team.folder / "three.json", (first, *SMALL[1:]), id="three")
    async with stage(path, workspace=team.workspace) as on:
        await choose(on, "markdown")
        await on.press("end", "ctrl+u", *str(tmp_path / "run.md"), "tab", "tab", "space", "enter")
        await on.press("enter")
    written = (tmp_path / "run.md").read_text("utf-8")
    assert "ada@example.org" not in written
    assert "email" in written


async def test_reports_are_not_offered_without_figures(team: TeamDir) -> None:
    async with stage(team.folder, workspace=team.workspace, annotator="dora") as on:
        for screen in "KS":
            await on.press(screen, "V", *"html")
            assert "as one page" not in on.text
            await on.press("escape")


async def test_export_by_the_palette_of_one_annotator(team: TeamDir) -> None:
    async with stage(team.folder, workspace=team.workspace) as on:
        await on.press(":", *"hand", "space", *"over", "enter")
        await on.press(*"csv-long", "enter")
        assert "labels.csv" in on.text
        await on.press(*"mine.csv", "down", "space", "space", "enter")
        assert "1 trace, 2 labels" in on.text
    written = Path("mine.csv").read_text()
    assert written.startswith(ROW)
    assert {line.split(",")[1] for line in written.splitlines()[1:]} == {"alice"}


async def test_existing_files_are_asked_about_and_wrong_places_refused(
    team: TeamDir, tmp_path: Path
) -> None:
    earlier = tmp_path / "earlier.csv"
    earlier.write_text(f"{ROW}\n")
    foreign = team.file("three").rename(tmp_path / "trace.json")
    original = foreign.read_bytes()
    async with stage(team.folder, workspace=team.workspace) as on:
        await choose(on, "csv-long")
        await write_over(on, earlier)
        assert "the export replaces it" in screen_text(on)
        assert earlier.read_text() == f"{ROW}\n"
        await on.press("enter")
        assert "Written" in on.text
        assert len(earlier.read_text().splitlines()) > 2
        await on.press("enter")
        await choose(on, "csv-long")
        await write_over(on, foreign)
        assert "looks like a trace" in screen_text(on)
        await on.press("escape")
        assert "whose labels" in on.text
        assert foreign.read_bytes() == original
        await on.press("enter", "enter")
        assert "Written" in on.text
        assert foreign.read_text().startswith(ROW)
        await on.press("enter")
        await choose(on, "gold")
        await write_over(on, "")
        assert "file: type a path" in on.text
        await write_over(on, tmp_path / "missing" / "gold.json")
        assert "no such folder; create it first" in screen_text(on)
        await write_over(on, team.workspace)
        assert "this file contains the labels" in screen_text(on)
        await write_over(on, team.folder / "one.json")
        assert "traces are never written to" in screen_text(on)
        await write_over(on, tmp_path / "gold.json")
        assert "Written" in on.text
        await on.press("enter")
        await choose(on, "gold")
        await write_over(on, tmp_path / "gold")
        assert "gold.datasheet.md exists" in " ".join(screen_text(on).split())
        await on.press("escape")
        await write_over(on, tmp_path / "gold.v2")
        assert not missing(on.text, "Written", "gold.v2.datasheet.md")


async def test_a_stopped_export_writes_nothing(
    team: TeamDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stage(team.folder, workspace=team.workspace) as on:
        await choose(on, "jsonl")
        form = on.app.screen
        assert isinstance(form, ExportForm)
        # The worker is as far as the first stage when Escape is pressed.
        monkeypatch.setattr(
            "mast_tui.ui.dialogs.export.add_workspace",
            lambda *_: on.app.call_from_thread(form.action_leave) or {"traces": 0, "lines": 0},
        )
        await write_over(on, tmp_path / "all.jsonl")
        assert "Stopped: nothing was written" in on.text
    assert not (tmp_path / "all.jsonl").exists()


async def test_blind_annotators_export_their_own_labels_alone(
    team: TeamDir, tmp_path: Path
) -> None:
    team.set_study(author="carol", annotators=("alice", "bob", "dora"), blind=False)
    async with stage(team.folder, workspace=team.workspace, annotator="dora") as on:
        await choose(on, "csv-long")
        await on.press("down", "space", "down", "down", "space", "enter")
        assert "majority decides: yes is possible only if whose labels is gold" in screen_text(on)
        await on.press("space", "up", "up", "up")
        await write_over(on, tmp_path / "all.csv")
        await on.until(lambda: "It has no traces" in on.text)
        assert "labels on 2 traces are left out" in screen_text(on)
    assert len((tmp_path / "all.csv").read_text().splitlines()) == 1


def test_file_names_are_completed(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "gold.json").touch()
    assert completed_path(f"{tmp_path}/res") == f"{tmp_path}/results/"
    assert completed_path(f"{tmp_path}/results/g") == f"{tmp_path}/results/gold.json"
    assert completed_path(f"{tmp_path}/results/") is None
    assert completed_path(f"{tmp_path}/nowhere/g") is None


async def test_a_form_shows_its_fields_and_takes_all_keys(team: TeamDir) -> None:
    async with stage(team.folder, workspace=team.workspace, size=(80, 24)) as on:
        await choose(on, "gold")
        form = on.app.screen
        choices = ("verdicts", "majority decides", "agreement from", "names")
        for title in ("file", "annotators", "facts for datasheet", *choices):
            assert any(f"  {title}  " in line for line in on.lines), title
        # On a choice, letters are no text, and mean nothing of what is under the form.
        await on.press("down", *"LKSYVJQ:?uU", "f9")
        assert on.app.screen is form
        await on.press("escape")
        assert not isinstance(on.app.screen, ExportForm)
