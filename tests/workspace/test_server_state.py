"""State tables that the server derives from events, beside those of Python."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace

from mast_tui.gold.model import Decision, Guideline, SideAnswer
from mast_tui.labels import (
    Evidence,
    Match,
    Origin,
    PassKind,
    ReviewAnswer,
    Severity,
    Target,
    VerdictValue,
)
from mast_tui.study import Study
from mast_tui.workspace import NewEvent, Workspace, WorkspaceError
from mast_tui.workspace.events import types
from mast_tui.workspace.events.model import Event
from mast_tui.workspace.records import TeamRole, TraceRecord
from tests.postgres import PostgresServer
from tests.workspace.build import MAST, MODES, TRACE, event, label

pytestmark = pytest.mark.slow

ODD: Final = 'a \0 and \x1a, \\u0000, \\\0, "quoted" ’ü\n'
"""A text with all characters that JSON or the server stores in another way."""
FINISHED: Final = types.PassFinished("absent", 3, 4)


def facts_of(workspace: Workspace) -> list[tuple[int | None, types.Fact]]:
    """Return facts of all kinds that an annotator may record, with their passes."""
    plain = label(workspace, annotator="mira")
    evidence = Evidence(
        key="k1",
        quote=ODD,
        char_start=1,
        char_end=5,
        wording=ODD,
        match=Match.REWORDED,
        misnamed_spans=("kü", 'k"\0'),
    )
    full = replace(
        plain,
        id=workspace.new_id(),
        target=Target("k0", "k0", ODD, 3, 9),
        note=ODD,
        severity=Severity.FATAL,
        confidence=0.25,
        origin=Origin.ACCEPTED,
        suggestion="judged",
        saw_suggestions=True,
        decisive=False,
        remedy=ODD,
        evidence=evidence,
    )
    changed = replace(full, target=Target("k0", "k2"), evidence=None, remedy="", confidence=1.0)
    bare = replace(plain, id=workspace.new_id(), target=Target(), confidence=1e-7)
    copy = replace(plain, id=workspace.new_id(), pass_number=2)
    review = types.ReviewGiven(ReviewAnswer.EDIT, plain.id, ODD)
    first: list[types.Fact] = [
        types.PassStarted(PassKind.BLIND, withheld=True),
        types.PassStarted(PassKind.ASSISTED),
        types.PassKindSet(PassKind.BLIND, PassKind.ASSISTED),
        types.LabelAdded(plain),
        types.LabelAdded(full),
        types.LabelAdded(bare),
        types.LabelChanged(full, changed),
        types.LabelChanged(changed, full),
        types.LabelRemoved(plain),
        types.LabelAdded(plain),
        types.LabelRemoved(bare),
        types.VerdictSet(MODES[1], None, VerdictValue.UNSURE),
        types.VerdictSet(MODES[1], VerdictValue.UNSURE, VerdictValue.ABSENT),
        types.VerdictSet(MODES[2], None, VerdictValue.ABSENT),
        types.VerdictSet(MODES[2], VerdictValue.ABSENT, None),
        types.ReviewSet("suggested", None, review),
        types.ReviewSet("other", None, types.ReviewGiven(ReviewAnswer.REJECT)),
        types.ReviewSet("other", types.ReviewGiven(ReviewAnswer.REJECT), None),
        types.SpanNoteSet("k0", "", ODD),
        types.SpanNoteSet("k1", "", "note"),
        types.SpanNoteSet("k1", "note", ""),
        types.SpansRead(("k0",), (types.SpanRange("k1", "k2"),)),
        types.SuggestionsSeen(),
        types.LookAgainSet((), (MODES[3],)),
        FINISHED,
        types.PassUnfinished(FINISHED),
        types.PassFinished(at="2026-01-02T03:04:05Z"),
    ]
    second: list[types.Fact] = [
        types.PassStarted(PassKind.SECOND_LOOK, 1),
        types.LabelAdded(copy),
        types.PassFinished(),
        types.PassWithdrawn(PassKind.SECOND_LOOK, 1),
        types.PassStarted(PassKind.RETEST, 1),
    ]
    return [
        (None, types.BlindWorkSet(None, True)),
        *((1, fact) for fact in first),
        *((2, fact) for fact in second),
        (2, types.PassWithdrawn(PassKind.RETEST, 1)),
        (1, types.Revealed("others")),
    ]


def test_server_derives_the_state_of_annotators_as_python_does(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    database = postgres.new_database()
    with closing(Workspace.create_on_server(postgres.url(database))) as owner:
        owner.add_taxonomy(MAST)
        owner.register_trace(TraceRecord(TRACE))
        owner.add_member("mira", TeamRole.ANNOTATOR)
        with closing(Workspace.open(postgres.url(database, user="mira"))) as workspace:
            facts = facts_of(workspace)
            for number, fact in facts:
                of_pass = NewEvent("mira", TRACE, MAST.ref, number, fact)
                of_no_trace = NewEvent("mira", None, None, None, fact)
                workspace.append([of_no_trace if number is None else of_pass])
                assert not owner.differences(), fact
            half = types.SpanNoteSet("k0", "", "half \ud800")
            with pytest.raises(WorkspaceError, match="half a character"):
                workspace.append([NewEvent("mira", TRACE, MAST.ref, 2, half)])
        recorded = list(owner.events())
        assert [event.fact for event in recorded] == [fact for _, fact in facts]
        assert not owner.edited_histories()
        # Every kind that an annotator may record is above.
        other_kinds = {"decided", "judged", "study_set", "guideline_set"}
        assert {event.kind for event in recorded} | other_kinds == set(types.FACT_TYPES)
        owner.copy_to(tmp_path / "copy.db")
    with closing(Workspace.open(tmp_path / "copy.db", create=False)) as copy:
        assert not copy.differences()
        assert any(ODD in (row.note, row.target.quote) for row in copy.labels(pass_number=None))


def test_server_derives_the_state_of_adjudicators_judges_and_leads(
    postgres: PostgresServer,
) -> None:
    database = postgres.new_database()
    decided = Decision(
        *(MODES[0], MODES[0], VerdictValue.PRESENT, (Target("k0", "k0", ODD),), ("mira",)),
        *((SideAnswer("mira", None, (Target("k1", "k2"),)),), "carol", "2026-01-02T03:04:05Z"),
        reason=ODD,
    )
    guideline = Guideline("page", MODES[0], ODD, "carol", "2026-01-02T03:04:05Z", TRACE, MODES[0])
    study = Study(MAST.ref, ("mira", "bob"), ("carol",), ((TRACE,),))
    judge = "judge:rules@1"
    with closing(Workspace.create_on_server(postgres.url(database))) as owner:
        owner.add_taxonomy(MAST)
        owner.register_trace(TraceRecord(TRACE))
        for name, role in (
            ("carol", TeamRole.ADJUDICATOR),
            ("lea", TeamRole.LEAD),
            ("runner", TeamRole.JUDGE),
        ):
            owner.add_member(name, role)
        suggestion = label(owner, annotator=judge)
        recorded: list[tuple[str, NewEvent]] = [
            *(
                ("carol", NewEvent("carol", TRACE, MAST.ref, None, fact))
                for fact in (
                    types.Decided(MODES[0], None, decided),
                    types.Decided(MODES[0], decided, replace(decided, value=VerdictValue.ABSENT)),
                    types.Decided(MODES[1], None, replace(decided, mode=MODES[1], item=MODES[1])),
                    types.Decided(MODES[0], decided, None),
                )
            ),
            *(
                ("carol", NewEvent("carol", None, MAST.ref, None, fact))
                for fact in (
                    types.GuidelineSet("page", None, guideline),
                    types.GuidelineSet("x", None, guideline),
                    types.GuidelineSet("x", guideline, None),
                )
            ),
            ("lea", NewEvent("lea", None, MAST.ref, None, types.StudySet(None, study))),
            *(
                ("runner", NewEvent(judge, TRACE, MAST.ref, 1, fact))
                for fact in (
                    types.PassStarted(PassKind.BLIND),
                    types.LabelAdded(suggestion),
                    types.Judged(MODES[:4], (MODES[1],), "run", (MODES[2], MODES[3])),
                    types.Judged(MODES[:3], (MODES[2],), None, (), "2026-01-02T03:04:05Z"),
                    types.PassWithdrawn(PassKind.BLIND),
                    types.Judged(MODES[:2], (MODES[1],), "run", ()),
                )
            ),
        ]
        for name, new in recorded:
            with closing(Workspace.open(postgres.url(database, user=name))) as workspace:
                workspace.append([new])
            assert not owner.differences(), new.fact
        assert {(row.mode, row.value) for row in owner.verdicts(annotator=judge)} == {
            (MODES[0], VerdictValue.PRESENT),
            (MODES[1], VerdictValue.ABSENT),
        }
        assert [row.mode for row in owner.decisions(TRACE, MAST.ref)] == [MODES[1]]
        assert owner.guidelines(MAST.ref) == (guideline,)
        assert owner.study(MAST.ref) == study


def test_lead_merges_diverging_histories_like_a_file(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    database = postgres.new_database()
    histories = list[list[Event]]()
    for number in range(3):
        with closing(Workspace.open(tmp_path / f"{number}.db")) as source:
            source.add_taxonomy(MAST)
            source.register_trace(TraceRecord(TRACE))
            if number:
                source.merge_events(histories[0])
            else:
                source.append([event(types.PassStarted(PassKind.BLIND), annotator="zoe")])
            for mode in MODES[: number + 2]:
                row = replace(label(source, mode, annotator="zoe"), note=f"{number}")
                source.append([event(types.LabelAdded(row), annotator="zoe")])
            histories.append(list(source.events()))
    edited = [
        replace(row, fact=types.LabelAdded(replace(row.fact.label, note="edited")))
        if isinstance(row.fact, types.LabelAdded)
        else row
        for row in histories[0]
    ]
    merges: list[tuple[list[Event], tuple[str, ...]]] = [
        (histories[2], ()),
        (histories[1], ("zoe",)),
        (histories[0], ()),
        (edited, ("zoe",)),
    ]
    with closing(Workspace.create_on_server(postgres.url(database))) as owner:
        owner.add_taxonomy(MAST)
        owner.register_trace(TraceRecord(TRACE))
        owner.add_member("lea", TeamRole.LEAD)
        with (
            closing(Workspace.open(postgres.url(database, user="lea"))) as lea,
            closing(Workspace.open(tmp_path / "file.db")) as file,
        ):
            file.add_taxonomy(MAST)
            file.register_trace(TraceRecord(TRACE))
            for events, replacing in merges:
                for workspace in (lea, file):
                    workspace.merge_events(events, replacing=replacing)
                assert not owner.differences()
                assert list(owner.events(annotator="zoe")) == list(file.events())
                assert owner.labels(pass_number=None) == file.labels(pass_number=None)
            assert {row.note for row in file.labels(pass_number=None)} == {"edited", "1", "2"}
