"""Commands that are planned, written in another thread, and taken in."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from mast_tui.errors import ChangedElsewhere
from mast_tui.labels import VerdictValue
from mast_tui.session import Session
from tests.session.build import Desk, content, finding, put, span
from tests.workspace.build import MODES

ONE, TWO, THREE = MODES[:3]

Command = Callable[[Session], object]

COMMANDS: dict[str, Command] = {
    "label": lambda s: s.toggle_label(TWO, span(1), suggestions_on_screen=False),
    "take a label off": lambda s: s.toggle_label(ONE, span(0), suggestions_on_screen=False),
    "verdict": lambda s: s.set_verdict(THREE, VerdictValue.UNSURE),
    "note": lambda s: s.note_span("k1", "look here"),
    "accept": lambda s: s.accept(s.pending[0].id),
    "reject": lambda s: s.reject(s.pending[0].id),
    "read": lambda s: s.mark_read(["k2", "k3"]),
    "suggestions seen": lambda s: s.note_suggestions_on_screen(),
    "finish": lambda s: s.finish(open_modes="absent", split_modes=()),
    "undo": lambda s: s.undo(),
}


def session_content(session: Session) -> tuple[object, ...]:
    """Return all that a screen may show of a session."""
    current = session.current
    return content(session), set(session.read), current and current.judge_seen


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_planned_commands_appear_after_their_write(desk: Desk, command: Command) -> None:
    desk.judge(finding(TWO, 3))
    session = desk.open()
    put(session, ONE, span(0))
    before = session_content(session)
    _, write = session.planned(command)
    assert write is not None
    with ThreadPoolExecutor(1) as writer:
        recorded = writer.submit(write.record).result()
    assert session_content(session) == before
    session.take_in(write, recorded)
    assert session_content(session) != before
    assert session_content(session) == session_content(desk.open())


def test_late_commands_write_nothing(desk: Desk) -> None:
    session = desk.open()
    put(session, ONE, span(0))
    _, write = session.planned(COMMANDS["label"])
    put(desk.open(), THREE, span(4))
    assert write is not None
    with pytest.raises(ChangedElsewhere):
        write.record()
    assert [label.mode for label in session.labels] == [ONE]
    with ThreadPoolExecutor(1) as reader:
        anew = reader.submit(session.read_state).result()
    assert [label.mode for label in session.labels] == [ONE]
    session.show_state(anew)
    assert [label.mode for label in session.labels] == [ONE, THREE]
    assert "#5" in str(session.changed_meanwhile())


def test_refused_commands_plan_nothing(desk: Desk) -> None:
    session = desk.open()
    change, write = session.planned(lambda s: s.undo())
    assert (change, write) == (None, None)
