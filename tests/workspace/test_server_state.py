"""State tables that the server derives from an annotator's events: they are what Python makes."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from mast_tui.labels import (
    Answer,
    Evidence,
    Match,
    Origin,
    PassKind,
    Severity,
    Target,
    VerdictValue,
)
from mast_tui.workspace import NewEvent, Workspace, WorkspaceError
from mast_tui.workspace.events.types import (
    EventKind,
    Fact,
    LabelAdded,
    LabelChanged,
    LabelRemoved,
    LookAgainSet,
    PassFinished,
    PassKindSet,
    PassStarted,
    PassUnfinished,
    PassWithdrawn,
    Revealed,
    ReviewGiven,
    ReviewSet,
    SightSet,
    SpanNoteSet,
    SpansRead,
    SuggestionsSeen,
    VerdictSet,
)
from mast_tui.workspace.records import Role, TraceRecord
from tests.postgres import PostgresServer
from tests.workspace.build import MAST, MODES, TRACE, label

pytestmark = pytest.mark.slow

ODD: Final = 'a \0 and \x1a, \\u0000, \\\0, "quoted" ’ü\n'
"""A text with all that JSON or the server keeps in another way."""
FINISHED: Final = PassFinished("absent", 3, 4)


def facts_of(workspace: Workspace) -> list[tuple[int | None, Fact]]:
    """Return facts of all kinds that an annotator may record, with their passes."""
    plain = label(workspace, annotator="mira")
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
        evidence=Evidence("k1", ODD, 1, 5, Match.REWORDED, ("kü", 'k"\0'), ODD),
    )
    changed = replace(full, target=Target("k0", "k2"), evidence=None, remedy="", confidence=1.0)
    bare = replace(plain, id=workspace.new_id(), target=Target(), confidence=1e-7)
    copy = replace(plain, id=workspace.new_id(), pass_number=2)
    given = ReviewGiven(Answer.EDIT, plain.id, ODD)
    first: list[Fact] = [
        PassStarted(PassKind.BLIND, withheld=True),
        PassStarted(PassKind.ASSISTED),
        PassKindSet(PassKind.BLIND, PassKind.ASSISTED),
        LabelAdded(plain),
        LabelAdded(full),
        LabelAdded(bare),
        LabelChanged(full, changed),
        LabelChanged(changed, full),
        LabelRemoved(plain),
        LabelAdded(plain),
        LabelRemoved(bare),
        VerdictSet(MODES[1], None, VerdictValue.UNSURE),
        VerdictSet(MODES[1], VerdictValue.UNSURE, VerdictValue.ABSENT),
        VerdictSet(MODES[2], None, VerdictValue.ABSENT),
        VerdictSet(MODES[2], VerdictValue.ABSENT, None),
        ReviewSet("suggested", None, given),
        ReviewSet("other", None, ReviewGiven(Answer.REJECT)),
        ReviewSet("other", ReviewGiven(Answer.REJECT), None),
        SpanNoteSet("k0", "", ODD),
        SpanNoteSet("k1", "", "note"),
        SpanNoteSet("k1", "note", ""),
        SpansRead(("k0",), (("k1", "k2"),)),
        SuggestionsSeen(),
        LookAgainSet((), (MODES[3],)),
        FINISHED,
        PassUnfinished(FINISHED),
        PassFinished(at="2026-01-02T03:04:05Z"),
    ]
    second: list[Fact] = [
        PassStarted(PassKind.SECOND_LOOK, 1),
        LabelAdded(copy),
        PassFinished(),
        PassWithdrawn(PassKind.SECOND_LOOK, 1),
        PassStarted(PassKind.RETEST, 1),
    ]
    return [
        (None, SightSet(None, True)),
        *((1, fact) for fact in first),
        *((2, fact) for fact in second),
        (2, PassWithdrawn(PassKind.RETEST, 1)),
        (1, Revealed("others")),
    ]


def test_the_server_derives_what_python_derives(postgres: PostgresServer, tmp_path: Path) -> None:
    database = postgres.new_database()
    with closing(Workspace.create_on_server(postgres.url(database))) as owner:
        owner.add_taxonomy(MAST)
        owner.register_trace(TraceRecord(TRACE))
        owner.add_member("mira", Role.ANNOTATOR)
        with closing(Workspace.open(postgres.url(database, user="mira"))) as workspace:
            facts = facts_of(workspace)
            for number, fact in facts:
                of_pass = NewEvent("mira", TRACE, MAST.ref, number, fact)
                of_no_trace = NewEvent("mira", None, None, None, fact)
                workspace.append([of_no_trace if number is None else of_pass])
                assert not owner.differences(), fact
            half = SpanNoteSet("k0", "", "half \ud800")
            with pytest.raises(WorkspaceError, match="half a character"):
                workspace.append([NewEvent("mira", TRACE, MAST.ref, 2, half)])
        recorded = list(owner.events())
        assert [event.fact for event in recorded] == [fact for _, fact in facts]
        assert not owner.edited_histories()
        # Nothing that an annotator may record is missing above.
        others = {"decided", "judged", "study_set", "guideline_set"}
        assert {event.kind.value for event in recorded} | others == {
            kind.value for kind in EventKind
        }
        owner.copy_to(tmp_path / "copy.db")
    with closing(Workspace.open(tmp_path / "copy.db", create=False)) as copy:
        assert not copy.differences()
        assert any(ODD in (one.note, one.target.quote) for one in copy.labels(pass_number=None))
