"""The signatures screen: within one's Sight, from each figure to its spans and back."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from mast_tui.exchange.importers.sample_content import fill_samples_workspace
from mast_tui.traces.library import samples_folder
from mast_tui.ui.reports.signature_traces import SignatureTracesScreen
from mast_tui.ui.reports.signatures import SignaturesScreen
from mast_tui.ui.services.open_workspace import remember_welcome
from mast_tui.workspace import Workspace
from tests.ui.office import Office, said
from tests.ui.stage import JUDGE, MAST, Stage, finding, stage, suggest
from tests.ui.test_looks import WIDE, Compare, app, pressing


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    """A workspace with what two people and a judge say of the samples."""
    remember_welcome()
    place = tmp_path / "w.db"
    with closing(Workspace.open(str(place))) as workspace:
        fill_samples_workspace(workspace)
    return place


@pytest.fixture
def office(tmp_path: Path) -> Office:
    """alice has finished one trace, and bob another one; none has an outcome."""
    office = Office(tmp_path / "set")
    office.label("alice", "one", {"1.3": (3, 8), "2.6": (9, 9)})
    office.label("bob", "two", {"3.3": (12, 12)})
    return office


@pytest.fixture
def ended(tmp_path: Path) -> Office:
    """alice has finished ten traces, of which two have failed."""
    office = Office(tmp_path / "ended")
    without = [f"w{number}" for number in range(7)]
    good = [f"{name},succeeded,1" for name in ("three", *without)]
    outcome_file(office, "one,failed,0.2", "two,failed,0.7", *good)
    office.label("alice", "one", {"1.3": (3, 8), "2.6": (9, 9)})
    office.label("alice", "two", {"1.3": (5, 6)})
    office.label("alice", "three", {"1.3": (7, 8)})
    for name in without:
        office.label("alice", name, {})
    return office


def outcome_file(office: Office, *rows: str) -> None:
    """Write how traces ended beside them."""
    office.folder.mkdir()
    lines = ["trace,outcome,score,model", *(row.replace(",", ".json,", 1) for row in rows)]
    (office.folder / "outcomes.csv").write_text("\n".join(lines), "utf-8")


def screen(on: Stage) -> SignaturesScreen:
    assert isinstance(on.app.screen, SignaturesScreen)
    return on.app.screen


def under_cursor(on: Stage) -> str:
    """The row under the cursor as it is drawn."""
    return next(line for line in on.lines if line.startswith("▌"))


async def test_from_a_bar_to_a_span_and_back_to_the_same_place(ended: Office) -> None:
    async with stage(ended.folder, workspace=ended.workspace, size=(80, 24)) as on:
        await on.press("S")
        assert on.lines[0].rstrip().endswith("alice · sugg. shown")
        assert "all traces" in on.lines[0]
        heading = next(line for line in on.lines if " code " in line)
        assert {"all", "traces", "of"} <= set(heading.split())
        await on.press("j", "j")
        assert "30%" in under_cursor(on)
        # On to the same mode in the table of failed and successful traces.
        await on.press(*["j"] * len(MAST.modes), "right")
        row = under_cursor(on)
        assert "Step repetition" in row
        assert "unclear" in row
        await on.press("enter")
        assert isinstance(on.app.screen, SignatureTracesScreen)
        assert "1.3 Step repetition, successful traces · 1 trace" in on.lines[0]
        assert "three.json" in under_cursor(on)
        await on.press("enter")
        assert on.annotate in on.app.screen_stack
        assert on.number == 7
        await on.press("escape")
        assert "1.3 Step repetition, successful traces" in on.lines[0]
        await on.press("escape")
        assert under_cursor(on) == row
        assert screen(on).main_list.chosen == "rate:succeeded"


async def test_what_is_settled_while_one_is_elsewhere_is_counted_on_the_way_back(
    ended: Office,
) -> None:
    async with stage(ended.folder, workspace=ended.workspace, size=(110, 30)) as on:
        await on.press("S")
        await on.press("j", "j", "enter")
        assert isinstance(on.app.screen, SignatureTracesScreen)
        ended.label("alice", "four", {"1.3": (5, 6)})
        await on.press("escape")
        assert "Step repetition" in under_cursor(on)
        assert "2 failed, 8 succeeded, 1 unknown" in on.lines[0]


async def test_pages_groups_and_labels_are_chosen_by_keys(ended: Office) -> None:
    async with stage(ended.folder, workspace=ended.workspace) as on:
        await on.press("S")
        await on.press("2")
        assert "Where the first failure stands" in on.text
        await on.press("3", "right")
        words = " ".join(screen(on).detail.text.split())
        assert "1.3 and 2.6: both in 1 of 2 failed traces judged on both" in words
        assert "how many show the one" in words
        await on.press("tab")
        assert "[4 traces]" in on.text
        assert "isolated" in on.text
        await on.press("v", "v", "v", "v")
        assert "all traces by reader" in on.lines[0]
        await on.press("w", *"alice", "enter")
        assert "labels of alice" in on.lines[0]
        await on.press("f", "0", ".", "5", "enter")
        assert "1 failed, 9 succeeded" in on.lines[0]
        assert "failed below 0.5" in on.lines[0]
        await on.press("f", *"nan", "enter")
        assert "nan is no score" in said(on)
        assert "1 failed, 9 succeeded" in on.lines[0]


async def test_groups_are_arms_of_an_experiment_over_the_same_tasks(tmp_path: Path) -> None:
    office = Office(tmp_path / "arms")
    names = [f"{arm}{task}" for arm in "ab" for task in range(6)]
    rows = [f"{name},{'failed' if name[0] == 'a' else 'succeeded'}" for name in names]
    outcome_file(office, *(f"{row},,model-{row[0]},T{row[1]}" for row in rows))
    file = office.folder / "outcomes.csv"
    file.write_text(file.read_text().replace("score,model", "score,model,task_id"))
    for name in names:
        office.label("alice", name, {"1.3": (3, 8)} if name[0] == "a" else {})
    async with stage(office.folder, workspace=office.workspace) as on:
        await on.press("S", "x")
        assert "[x experiment]" in on.text
        assert "Success of each arm" in on.text
        text = " ".join(on.text.split())
        assert "model-b 6 6" in text
        assert "+100 [–] 0.031" in text
        assert "-100 [–] 0.031 0.438" in text
        await on.press("end")
        assert "Power for 20 points" in on.text
        await on.press("home")
        await on.press("j", "enter")
        assert isinstance(on.app.screen, SignatureTracesScreen)
        assert "b0" in on.text
        assert "a0" not in on.text
        await on.press("escape")
        await on.press("v", "v")
        assert "An experiment has two arms or more" in on.text


async def test_without_outcomes_the_screen_tells_how_to_give_them(office: Office) -> None:
    async with stage(office.folder, workspace=office.workspace, size=(80, 24)) as on:
        await on.press("S")
        assert "0 of 1 outcome known · failed and successful ones compared from 10 on" in on.text
        assert "100%" in next(line for line in on.lines if "Step repetition" in line)
        assert "csv-wide" in screen(on).detail.text
        await on.press("2")
        assert "Where the first failure stands" in on.text
        await on.press("4")
        assert "1.3 → 2.6" in on.text


async def test_nobody_sees_what_others_said_of_traces_that_they_have_not_finished(
    office: Office,
) -> None:
    async with stage(office.folder, workspace=office.workspace) as on:
        await on.press("S")
        given = screen(on).signatures
        assert given is not None
        assert given.inputs is not None
        assert len(given.inputs.traces) == 1
        assert "1 trace left out until you finish it" in on.text
        await on.press("w", *"bob", "enter")
        assert "hidden from you" in on.text
        assert "Incorrect verification" not in on.text
        for key in ("slash", "right_square_bracket"):
            await on.press(key)
            assert said(on) == "There is no group to choose"
        await on.press("enter")
        assert "There is no trace to open here" in said(on)
        await on.press("o", "a")
        assert "Incorrect verification" in on.text
        assert office.adjudicates("alice", "two")


async def test_who_works_blind_sees_no_outcome_of_their_own_and_nothing_of_a_judge(
    tmp_path: Path,
) -> None:
    office = Office(tmp_path / "set")
    outcome_file(office, "one,failed,")
    office.label("carol", "one", {"1.3": (3, 8)})
    trace = office.trace("one")
    suggest(office.workspace, trace, [finding(trace, "3.3", 12, 12)])
    path = office.workspace
    async with stage(office.folder, workspace=path, annotator="carol", blind=True) as on:
        await on.press("S")
        await on.press("w", *"carol", "enter")
        assert "You work blind" in on.text
        assert "failed" not in on.lines[0]
        assert " succeeded " not in on.text
        await on.press("w", *"rules", "enter")
        assert screen(on).choice.labels == JUDGE
        assert "you work blind" in " ".join(on.text.split())
    async with stage(office.folder, workspace=path, annotator="carol", assisted=True) as on:
        await on.press("S")
        await on.press("w", *"carol", "enter")
        assert "1 failed" in on.lines[0]


async def test_a_judges_share_is_corrected_by_how_it_errs_beside_the_gold(office: Office) -> None:
    office.label("alice", "three", {})
    for name, codes in {"one": ["1.3"], "three": [], "four": ["1.3"], "five": []}.items():
        trace = office.trace(name)
        suggest(office.workspace, trace, [finding(trace, code, 3, 8) for code in codes])
    async with stage(office.folder, workspace=office.workspace) as on:
        await on.press("S")
        await on.press("w", *"rules", "enter")
        await on.press("j", "j")
        assert "share of all labelled traces         50%" in screen(on).detail.text
        assert "Corrected for the judge's errors: 50%" in screen(on).detail.text
        assert "on 2 traces that nobody else has labelled" in screen(on).detail.text
        await on.press("up", "up")
        assert "Not corrected for the judge's errors" in screen(on).detail.text


def test_the_signatures_screen(snap_compare: Compare, samples: Path) -> None:
    opened = app(samples_folder(), workspace=samples, annotator="mira")
    run = pressing("S", "vvvvv", "1", "j")
    assert snap_compare(opened, terminal_size=WIDE, run_before=run)


async def test_all_traces_come_first_then_the_groups_of_five_or_more(tmp_path: Path) -> None:
    office = Office(tmp_path / "set")
    models = ["small"] * 2 + ["large"] * 7
    rows = [f"n{place},{'' if place else 'failed'},,{name}" for place, name in enumerate(models)]
    outcome_file(office, *rows)
    for place in range(len(models)):
        office.label("alice", f"n{place}", {"1.3": (3, 8)} if place < 3 else {})
    async with stage(office.folder, workspace=office.workspace) as on:
        await on.press("S")
        assert "all traces (1 of 2)" in on.lines[0]
        assert "1 of 9 outcomes known" in on.text
        row = next(line for line in on.lines if "Step repetition" in line)
        assert {"33%", "3", "9"} <= set(row.split())
        await on.press("right_square_bracket")
        assert "model large (2 of 2)" in on.lines[0]
        await on.press("right_square_bracket")
        assert "all traces (1 of 2)" in on.lines[0]
        await on.press("slash", *"small", "enter")
        assert "model small · " in on.lines[0]
        await on.press("right_square_bracket")
        assert "model large" in on.lines[0]
