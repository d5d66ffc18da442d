"""The signatures screen, and the traces behind its figures."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mast_tui.exchange.jsonl import fill_samples_workspace
from mast_tui.figures.bootstrap import Resampling
from mast_tui.figures.record import Figure, Sources
from mast_tui.figures.signatures.model import ABSENT, PRESENT, Places, SignatureInput
from mast_tui.figures.signatures.report import signature_report
from mast_tui.reports.model import Row
from mast_tui.reports.signatures import group_report
from mast_tui.taxonomy.model import Group, Mode
from mast_tui.traces.library import samples_folder
from mast_tui.ui.reports.signature_traces import SignatureTracesScreen, chain_text, failing_traces
from mast_tui.ui.reports.signatures import (
    SignatureChoice,
    Signatures,
    SignaturesScreen,
    no_signatures_text,
)
from mast_tui.ui.services.open_workspace import remember_welcome
from mast_tui.workspace import Workspace
from tests.ui.stage import JUDGE, MAST, Stage, finding, missing, shown_key, stage, suggest
from tests.ui.team_dir import TeamDir, last_message
from tests.ui.test_looks import WIDE, Compare, app, pressing


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    """A workspace with the labels of two people and a judge on the samples."""
    remember_welcome()
    path = tmp_path / "w.db"
    with closing(Workspace.open(str(path))) as workspace:
        fill_samples_workspace(workspace)
    return path


@pytest.fixture
def team(team: TeamDir) -> TeamDir:
    """alice has finished one trace, and bob another one; none has an outcome."""
    team.label("alice", "one", {"1.3": (3, 8), "2.6": (9, 9)})
    team.label("bob", "two", {"3.3": (12, 12)})
    return team


@pytest.fixture
def ended(tmp_path: Path) -> TeamDir:
    """alice has finished ten traces, of which two have failed."""
    team = TeamDir(tmp_path / "ended")
    without = [f"w{number}" for number in range(7)]
    good = [f"{name},succeeded,1" for name in ("three", *without)]
    outcome_file(team, "one,failed,0.2", "two,failed,0.7", *good)
    team.label("alice", "one", {"1.3": (3, 8), "2.6": (9, 9)})
    team.label("alice", "two", {"1.3": (5, 6)})
    team.label("alice", "three", {"1.3": (7, 8)})
    for name in without:
        team.label("alice", name, {})
    return team


def outcome_file(team: TeamDir, *rows: str) -> None:
    """Write the outcomes of traces beside them."""
    team.folder.mkdir()
    lines = ["trace,outcome,score,model", *(row.replace(",", ".json,", 1) for row in rows)]
    (team.folder / "outcomes.csv").write_text("\n".join(lines), "utf-8")


def screen(on: Stage) -> SignaturesScreen:
    return on.screen(SignaturesScreen)


def under_cursor(on: Stage) -> str:
    return next(line for line in on.lines if line.startswith("▌"))


async def test_figures_lead_to_spans_and_are_updated(ended: TeamDir) -> None:
    async with stage(ended.folder, workspace=ended.workspace, size=(110, 24)) as on:
        await on.press("S")
        assert "all traces" in on.lines[0]
        heading = next(line for line in on.lines if " code " in line)
        assert {"share", "present", "verdicts"} <= set(heading.split())
        await on.press("j", "j")
        assert "30%" in under_cursor(on)
        # On to the same mode in the table of failed and successful traces.
        await on.press(*["j"] * len(MAST.modes), "right")
        row = under_cursor(on)
        assert not missing(row, "Step repetition", "unclear")
        await on.press("enter")
        assert isinstance(on.app.screen, SignatureTracesScreen)
        assert "1.3 Step repetition, successful traces · 1 trace" in on.lines[0]
        assert "three.json" in under_cursor(on)
        await on.press("enter")
        assert on.annotate in on.app.screen_stack
        assert on.number == 7
        await on.press("escape")
        assert "1.3 Step repetition, successful traces" in on.lines[0]
        ended.label("alice", "four", {"1.3": (5, 6)})
        await on.press("escape")
        assert "Step repetition" in under_cursor(on)
        assert "2 failed, 8 succeeded, 1 unknown" in on.lines[0]
        assert screen(on).main_list.chosen_column == "rate:succeeded"


async def test_pages_groups_and_labels_are_chosen(ended: TeamDir) -> None:
    async with stage(ended.folder, workspace=ended.workspace) as on:
        await on.press("S")
        await on.press("2")
        assert "Position of the first failure" in on.text
        await on.press("3", "right")
        detail = " ".join(screen(on).detail.text.split())
        assert "1.3 and 2.6: both in 1 of 2 failed traces with verdicts on both" in detail
        assert "diagonal: with the one mode" in detail
        await on.press("tab")
        assert not missing(on.text, "[4 traces]", "isolated")
        await on.press("v", "v", "v", "v")
        assert "all traces by reader" in on.lines[0]
        await on.press("w", *"alice", "enter")
        assert "labels of alice" in on.lines[0]
        await on.press("f", "0", ".", "5", "enter")
        assert not missing(on.lines[0], "1 failed, 9 succeeded", "failed below 0.5")
        await on.press("f", *"nan", "enter")
        assert "nan is not a score" in last_message(on)
        assert "1 failed, 9 succeeded" in on.lines[0]


async def test_groups_are_arms_of_an_experiment(tmp_path: Path) -> None:
    team = TeamDir(tmp_path / "arms")
    names = [*(f"{arm}{task}" for arm in "ab" for task in range(6)), "b6"]
    rows = [f"{name},{'failed' if name[0] == 'a' else 'succeeded'}" for name in names]
    outcome_file(team, *(f"{row},,model-{row[0]},T{row[1]}" for row in rows))
    file = team.folder / "outcomes.csv"
    file.write_text(file.read_text().replace("score,model", "score,model,task_id"))
    for name in names:
        labels = {"1.3": (3, 8)} if name[0] == "a" else {}
        team.label("alice", name, labels, finish=name != "b6")
    async with stage(team.folder, workspace=team.workspace) as on:
        await on.press("S", "x")
        assert not missing(on.text, "[x experiment]", "Success of each arm")
        text = " ".join(on.text.split())
        # The unfinished run counts for success, as in ``mast-tui experiment``.
        assert not missing(text, "model-b 7 7", "+100 [–] 0.031", "-100 [–] 0.031 0.438")
        await on.press("end")
        assert "Power to detect 20 points" in on.text
        await on.press("home")
        await on.press("j", "enter")
        assert isinstance(on.app.screen, SignatureTracesScreen)
        assert not missing(on.text, "b0", "b6")
        assert "a0" not in on.text
        await on.press("escape")
        await on.press("v", "v")
        assert "An experiment needs two arms or more" in on.text


async def test_signatures_without_outcomes(team: TeamDir) -> None:
    async with stage(team.folder, workspace=team.workspace, size=(80, 24)) as on:
        await on.press("S")
        assert "0 of 1 outcome known" in on.text
        assert "100%" in next(line for line in on.lines if "Step repetition" in line)
        assert "csv-wide" in screen(on).detail.text
        await on.press("a")
        assert "both outcomes side by side" in last_message(on)
        await on.press("2", "a")
        assert "Position of the first failure" in on.text
        assert "all traces are counted" in last_message(on)
        await on.press("4")
        assert "1.3 → 2.6" in on.text


async def test_labels_of_others_are_hidden(team: TeamDir) -> None:
    async with stage(team.folder, workspace=team.workspace) as on:
        await on.press("S")
        signatures = screen(on).signatures
        assert signatures is not None
        assert signatures.inputs is not None
        assert len(signatures.inputs.traces) == 1
        assert "1 trace is hidden from you: finish your work on it" in on.text
        await on.press("w", *"bob", "enter")
        assert "hidden from you" in on.text
        assert "Incorrect verification" not in on.text
        for key in ("slash", "right_square_bracket"):
            await on.press(key)
            assert last_message(on) == "There is no group to choose"
        await on.press("enter")
        assert "There is no trace to open here" in last_message(on)
        await on.press("o", "a")
        assert "Incorrect verification" in on.text
        assert team.adjudicates("alice", "two")


async def test_blind_annotators_see_no_outcomes(tmp_path: Path) -> None:
    team = TeamDir(tmp_path / "set")
    outcome_file(team, "one,failed,,m-1", "two,failed,,m-2")
    for name in ("one", "two"):
        team.label("carol", name, {"1.3": (3, 8)}, finish=name == "one")
    trace = team.trace("one")
    suggest(team.workspace, trace, [finding(trace, "3.3", 12, 12)])
    path = team.workspace
    async with stage(team.folder, workspace=path, annotator="carol", blind=True) as on:
        await on.press("S")
        await on.press("w", *"carol", "enter")
        assert "You work blind" in on.text
        assert "failed" not in on.lines[0]
        assert " succeeded " not in on.text
        await on.press("x")
        assert "the outcome of 2 traces is hidden from you" in " ".join(on.text.split())
        await on.press("1", "w", *"rules", "enter")
        assert screen(on).choice.labels == JUDGE
        assert "you work blind" in " ".join(on.text.split())
    async with stage(team.folder, workspace=path, annotator="carol", assisted=True) as on:
        await on.press("S")
        await on.press("w", *"carol", "enter")
        assert "1 failed" in on.lines[0]


def test_the_signatures_screen(snap_compare: Compare, samples: Path) -> None:
    opened = app(samples_folder(), workspace=samples, annotator="mira")
    run = pressing("S", "vvvvv", "1", "j")
    assert snap_compare(opened, terminal_size=WIDE, run_before=run)


async def test_groups_of_five_or_more_are_shown(tmp_path: Path) -> None:
    team = TeamDir(tmp_path / "set")
    models = ["small"] * 2 + ["large"] * 7
    rows = [f"n{number},{'' if number else 'failed'},,{name}" for number, name in enumerate(models)]
    outcome_file(team, *rows)
    for number in range(len(models)):
        team.label("alice", f"n{number}", {"1.3": (3, 8)} if number < 3 else {})
    async with stage(team.folder, workspace=team.workspace) as on:
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


NOT_COUNTED = ("stratified", "helps")
"""Tables whose counts are of fewer traces than those behind their rows."""

CODES = ("1.1", "1.3", "2.6", "3.3")


def random_signatures(seed: int, *, outcomes: bool = True) -> Signatures:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 14))
    verdicts = rng.choice([0, PRESENT, ABSENT, 4], size=(n, len(CODES)), p=[0.1, 0.5, 0.3, 0.1])
    spans = np.where(rng.random(n) < 0.2, -1, rng.integers(1, 30, size=n))
    rows, modes = (verdicts == PRESENT).nonzero()
    mask = rng.random(len(rows)) < 0.8
    rows = np.repeat(rows[mask], 2)
    modes = np.repeat(modes[mask], 2)
    first = (rng.random(len(rows)) * np.maximum(spans[rows], 1)).astype(np.int64)
    inputs = SignatureInput(
        taxonomy_ref="mast@3",
        modes=tuple(Mode(f"m{code}", code, f"mode {code}", "one") for code in CODES),
        categories=(Group("one", "One", tuple(f"m{code}" for code in CODES)),),
        by="model",
        label_source="gold",
        label_source_kind="gold",
        traces=tuple(f"t{i}" for i in range(n)),
        group_names=("a", "b"),
        group=rng.integers(0, 2, size=n),
        outcome=rng.integers(0, 3, size=n).astype(np.int8) * outcomes,
        score=np.full(n, np.nan),
        verdicts=verdicts.astype(np.uint8),
        spans=spans,
        places=Places(rows, modes, first, first, np.zeros(len(rows), dtype=bool)),
    )
    report = signature_report(inputs, Resampling(0))
    return Signatures(SignatureChoice(), report=report, inputs=inputs)


def count_in(column: str | None, row: Row) -> int | None:
    """Return the number of traces in a cell or a row, None if it has no such number."""
    cell = row.cells.get(column or "")
    if isinstance(cell, Figure):
        return None if cell.value is None or cell.n is None else round(cell.value * cell.n)
    if isinstance(cell, int):
        return cell
    for key in ("traces", "both", "count"):
        count = row.cells.get(key)
        if isinstance(count, int):
            return count
    return None


@given(st.integers(0, 10_000), st.booleans())
@settings(max_examples=20)
def test_each_figure_counts_its_traces(seed: int, every: bool) -> None:
    signatures = random_signatures(seed)
    assert signatures.report is not None
    assert signatures.inputs is not None
    for group in signatures.groups:
        report = group_report(signatures.report, group, over_all_traces=every)
        for table in report.tables:
            for row in table.rows:
                cells: dict[str | None, Sources | None] = dict(row.cell_sources.items())
                if row.sources is not None and not row.cell_sources:
                    cells[None] = row.sources
                for column, sources in cells.items():
                    count = count_in(column, row)
                    if count is not None and not table.id.startswith(NOT_COUNTED):
                        assert sources is not None
                        assert failing_traces(signatures.inputs, group, sources).total == count


@given(st.integers(0, 10_000))
@settings(max_examples=20)
def test_traces_are_shown_with_their_chains(seed: int) -> None:
    signatures = random_signatures(seed)
    assert signatures.inputs is not None
    for group in signatures.groups:
        failed = Sources("signatures", where=(("outcome", "failed"),))
        listed = failing_traces(signatures.inputs, group, failed)
        shapes = [trace.shape for trace in listed.traces]
        counted = signatures.groups[group].values("shape")
        assert {name: shapes.count(name) for name in counted} == counted
        for trace in listed.traces:
            chain_codes = [code for step in trace.chain for code in step]
            assert len(set(chain_codes)) == len(chain_codes)
            assert set(chain_codes) <= set(trace.modes)
            assert all(code in chain_text(trace) for code in trace.modes)
            assert (trace.first is None) == (not chain_codes)


def test_a_trace_opens_at_its_mode() -> None:
    signatures = next(
        signatures
        for signatures in map(random_signatures, range(99))
        if signatures.inputs and len(signatures.inputs.places.trace)
    )
    assert signatures.inputs is not None
    places = signatures.inputs.places
    row = int(places.trace[-1])
    mode = int(places.mode[-1])
    group = signatures.inputs.group_names[int(signatures.inputs.group[row])]
    listed = failing_traces(signatures.inputs, group, Sources("signatures", (f"m{CODES[mode]}",)))
    trace = next(trace for trace in listed.traces if trace.trace_id == f"t{row}")
    assert trace.opens_at == places.first[(places.trace == row) & (places.mode == mode)].min()


def test_empty_signatures_say_why() -> None:
    assert "D finishes" in no_signatures_text(Signatures(SignatureChoice()), shown_key)
    hidden = no_signatures_text(Signatures(SignatureChoice(), hidden_ids=("t1", "t2")), shown_key)
    assert "o shows them to you as adjudicator" in hidden
    judge = no_signatures_text(
        Signatures(SignatureChoice(labels="judge:rules@1"), hidden_ids=("t1",)), shown_key
    )
    assert "hidden from you" in judge
    assert "adjudicator" not in judge
    broken = Signatures(SignatureChoice(), problem="no such\x1b file")
    assert "no such\x1b" not in no_signatures_text(broken, shown_key)
