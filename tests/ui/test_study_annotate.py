"""Labelling under a study: withheld suggestions, retests, and finishing."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_tui.labels import Finding, PassKind, VerdictValue
from mast_tui.study import OpenModes, Study, retest_traces
from mast_tui.ui.context import ShowTrace
from mast_tui.workspace import TraceRecord, Workspace
from tests.ui.office import Office
from tests.ui.stage import SLUGS, Stage, finding, missing, stage, suggest, write_trace
from tests.ui.test_annotate_reading import repeating


def study_over(office: Office, *names: str, **fields: object) -> Study:
    """Set up an assisted study of these traces, of alice and bob by default."""
    with office.store() as store:
        records = [TraceRecord.from_trace(office.trace(name)) for name in names]
        ids = [store.register_trace(record) for record in records]
    return office.set_study(*ids, who="carol", **{"adjudicators": (), "blind": False, **fields})


def found(office: Office, name: str) -> list[Finding]:
    return [finding(office.trace(name), "1.3", 3, 8)]


OPEN_MODES = {
    OpenModes.LEAVE: (None, "leaves modes without a verdict open", "left open"),
    OpenModes.ABSENT: (VerdictValue.ABSENT, "sets modes without a verdict absent", "set absent"),
}


@pytest.mark.parametrize("answer", OPEN_MODES)
async def test_a_study_can_fix_the_answer_for_open_modes(office: Office, answer: OpenModes) -> None:
    value, rule, result = OPEN_MODES[answer]
    path = write_trace(office.folder / "long.json", repeating(2))
    study_over(office, "long", open_modes=answer)
    async with stage(path, workspace=office.workspace) as on:
        await on.press("1", "3", "D")
        assert not missing(on.text, "Not read: #2 to #6", f"finish; the study {rule}")
        assert "set the open modes absent" not in on.text
        await on.press("o")
        assert on.session.finished
        assert on.message.startswith(
            f"finished · 1 of 6 spans read · 13 modes {result} (study rule)"
        )
        assert on.session.verdict(SLUGS["1.1"]) is value


async def test_unanswered_suggestions_are_asked_about(office: Office) -> None:
    study_over(office, "one")
    suggest(office.workspace, office.trace("one"), found(office, "one"))
    async with stage(office.folder / "one.json", workspace=office.workspace) as on:
        await on.press("D")
        assert "1 suggestion without your answer" in on.text
        await on.press("enter")
        assert not on.session.finished
        await on.press("x")
        assert on.message.endswith("all suggestions answered · to mark it absent press - 1 3")
        await on.press("D")
        assert on.session.finished


async def test_withheld_suggestions_leave_no_sign(tmp_path: Path) -> None:
    shown = []
    for judged in (False, True):
        office = Office(tmp_path / str(judged) / "set")
        study_over(office, "one", withheld=1.0)
        if judged:
            suggest(office.workspace, office.trace("one"), found(office, "one"))
        async with stage(office.folder, workspace=office.workspace) as on:
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
            shown.append(texts)
            await on.press("L")
            assert "looked at" not in on.text  # said once
            # The judge has run now; what it found is not counted anywhere.
            await on.press("R")
            assert "hidden" in on.text
            assert "1.3" not in on.text
    assert shown[0] == shown[1]
    assert "looked at 1 trace" in shown[1][-1]
    assert "suggestion" not in shown[1][-1].split("·")[0]


def conditions(on: Stage) -> str:
    return " ".join(on.lines[0].partition("·")[2].rpartition("·")[0].split())


async def test_a_retest_is_named_and_hides_the_first_labels(office: Office) -> None:
    names = ("one", "two", "three")
    study = study_over(office, *names, retests=0.34, per_trace=2)
    (again,) = retest_traces(study, "alice")
    store = Workspace.open(office.workspace)
    name_of = {office.trace_id(store, name): name for name in names}
    store.close()
    first, *others = [again, *(one for one in name_of if one != again)]
    for trace_id in (first, others[0]):
        office.label("alice", name_of[trace_id], {"1.3": (3, 8)})
    async with stage(office.folder, workspace=office.workspace) as on:
        assert not missing(on.lines[0], "mine to do", "2 of 3 finished")
        assert "↻" not in on.text
        on.app.go(ShowTrace(on.app.catalog.traces[first]))
        await on.press("G", "L", "enter")
        assert on.session.trace_id == others[1]
        fresh = conditions(on)
        await on.press("D")
        assert "only 1 retest left, to label as if new: } next trace" in on.message
        # The question is the same, whichever trace it is.
        await on.press("r")
        assert not missing(on.text, "See what others say?", "some finished traces repeat")
        await on.press("escape", "}")
        assert (on.session.trace_id, on.labels, on.number) == (first, set(), 1)
        assert "1.3 ●" not in on.text
        assert not missing(on.lines[0], "retest: ", "1 retest, 3 of 3 finished")
        await on.press("L")
        assert "↻" in on.text
        await on.press("enter")
        assert conditions(on) == fresh
        await on.press("2", "6", "D")
        current = on.session.current
        assert current is not None
        assert current.kind is PassKind.RETEST
        await on.press("L")
        assert "Nothing is left for you to do" in on.text
        assert "3 of 3 finished" in on.lines[0]
