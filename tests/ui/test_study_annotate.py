"""Labelling under a study: withheld suggestions, retests, and finishing."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_tui.labels import Finding, PassKind, VerdictValue
from mast_tui.study import OpenModes, Study, retest_traces
from mast_tui.ui.context import ShowTrace
from mast_tui.workspace import TraceRecord, Workspace
from tests.ui.stage import SLUGS, Stage, finding, missing, stage, suggest, write_trace
from tests.ui.team_dir import TeamDir
from tests.ui.test_annotate_reading import repeated_messages


def study_over(team: TeamDir, *names: str, **fields: object) -> Study:
    """Set up an assisted study of these traces, of alice and bob by default."""
    with team.store() as store:
        records = [TraceRecord.from_trace(team.trace(name)) for name in names]
        ids = [store.register_trace(record) for record in records]
    return team.set_study(*ids, author="carol", **{"adjudicators": (), "blind": False, **fields})


def suggestions_for(team: TeamDir, name: str) -> list[Finding]:
    return [finding(team.trace(name), "1.3", 3, 8)]


OPEN_MODES = {
    OpenModes.LEAVE: (None, "stay open (study rule)", "left open"),
    OpenModes.ABSENT: (VerdictValue.ABSENT, "become absent (study rule)", "set absent"),
}


@pytest.mark.parametrize("answer", OPEN_MODES)
async def test_a_study_can_fix_the_answer_for_open_modes(team: TeamDir, answer: OpenModes) -> None:
    value, rule, result = OPEN_MODES[answer]
    path = write_trace(team.folder / "long.json", repeated_messages(2))
    study_over(team, "long", open_modes=answer)
    async with stage(path, workspace=team.workspace) as on:
        await on.press("1", "3", "D")
        assert not missing(on.text, "Not read: #2 to #6", rule)
        assert "only if you looked" not in on.text
        await on.press("o")
        assert on.session.finished
        assert on.message.startswith(
            f"finished · 1 of 6 spans read · 13 modes {result} (study rule)"
        )
        assert on.session.verdict(SLUGS["1.1"]) is value


async def test_unanswered_suggestions_are_asked_about(team: TeamDir) -> None:
    study_over(team, "one")
    suggest(team.workspace, team.trace("one"), suggestions_for(team, "one"))
    async with stage(team.folder / "one.json", workspace=team.workspace) as on:
        await on.press("D")
        assert "1 unanswered suggestion" in on.text
        await on.press("enter")
        assert not on.session.finished
        await on.press("x")
        assert on.message.endswith("· press - 1 3 to mark 1.3 absent")
        await on.press("D")
        assert on.session.finished


async def test_withheld_suggestions_leave_no_sign(tmp_path: Path) -> None:
    texts_by_study = []
    for judged in (False, True):
        team = TeamDir(tmp_path / str(judged) / "set")
        study_over(team, "one", withheld=1.0)
        if judged:
            suggest(team.workspace, team.trace("one"), suggestions_for(team, "one"))
        async with stage(team.folder, workspace=team.workspace) as on:
            await on.press("k")
            library = on.text
            await on.press("R")
            assert "1.3" not in on.text
            await on.press("escape", "enter")
            assert not on.session.suggestions
            texts = [library, on.text]
            for key in ("]", "j", "j", "F"):
                await on.press(key)
                texts.append(on.text)
            await on.press("escape", "J")
            texts.append(on.message)
            texts_by_study.append(texts)
            await on.press("L")
            assert "looked at" not in on.text  # said once
            # The judge has run now; what it found is not counted anywhere.
            await on.press("R")
            assert "hidden" in on.text
            assert "1.3" not in on.text
    for text, judged_text in zip(*texts_by_study, strict=True):
        assert text.splitlines() == judged_text.splitlines()
    assert "looked at 1 trace" in texts_by_study[1][-1]
    assert "suggestion" not in texts_by_study[1][-1].split("·")[0]


def title_conditions(on: Stage) -> str:
    before_counts = on.lines[0].partition(" of ")[0].rpartition("·")[0]
    return " ".join(before_counts.partition("·")[2].split())


async def test_a_retest_is_named_and_hides_the_first_labels(team: TeamDir) -> None:
    names = ("one", "two", "three")
    study = study_over(team, *names, retests=0.34, per_trace=2)
    (retest,) = retest_traces(study, "alice")
    store = Workspace.open(team.workspace)
    name_of = {team.trace_id(store, name): name for name in names}
    store.close()
    first, *other_ids = [retest, *(trace_id for trace_id in name_of if trace_id != retest)]
    for trace_id in (first, other_ids[0]):
        team.label("alice", name_of[trace_id], {"1.3": (3, 8)})
    team.label("bob", name_of[other_ids[1]], {"1.3": (3, 8)})
    async with stage(team.folder, workspace=team.workspace) as on:
        assert not missing(on.lines[0], "mine to do", "2 of 3 finished")
        assert "↻" not in on.text
        on.app.go(ShowTrace(on.app.catalog.traces[first]))
        await on.press("G", "L", "enter")
        assert on.session.trace_id == other_ids[1]
        fresh = title_conditions(on)
        await on.press("D")
        assert "only 1 retest left · } next trace: label it as if it were new" in on.message
        # The question is the same, whichever trace it is.
        await on.press("r")
        assert not missing(on.text, "See what others say?", "asks you to label some traces")
        await on.press("escape", "}")
        assert (on.session.trace_id, on.labels, on.number) == (first, set(), 1)
        assert "1.3 ●" not in on.text
        assert not missing(on.lines[0], "retest: ", "3 of 3 finished · 1 retest to do")
        await on.press("L")
        assert "↻" in on.text
        await on.press("enter")
        assert title_conditions(on) == fresh
        await on.press("2", "6", "D")
        current = on.session.current
        assert current is not None
        assert current.kind is PassKind.RETEST
        await on.press("L")
        assert "Nothing is left for you to do" in on.text
        assert "3 of 3 finished" in on.lines[0]
