"""Hostile texts in a real terminal."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from mast_tui.labels import AnnotatorKind, Label, PassKind, Target
from mast_tui.traces.library import read_file, read_fully
from mast_tui.workspace import NewEvent, TraceRecord, Workspace
from mast_tui.workspace.events.types import Fact, LabelAdded, PassStarted, SpanNoteSet
from tests.terminal.forking import Apps
from tests.terminal.hostile import CLEAR, HOSTILE, TITLE, forbidden, gone, until_whole
from tests.ui.stage import MAST, SLUGS, call, finding, result, store_findings

PASTED = f"\x1b[200~{CLEAR}pasted\x1b[201~"
HOME = "\x01"
"""The key that moves to the start of an input line."""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A trace with hostile texts in every field and in the name of its file."""
    folder = tmp_path / "runs"
    folder.mkdir()
    path = folder / "a\x1b]0;PWNED\x07b\u202ec\x9b2J[@click=app.quit].json"
    messages = [
        {"role": "user", "content": HOSTILE},
        {"role": "assistant", "name": f"agent {HOSTILE}", "content": HOSTILE},
        {"role": "assistant", "name": "other", "content": f"short {TITLE}"},
        call(1, f"tool {HOSTILE}", json.dumps({"x": HOSTILE})),
        result(1, HOSTILE * 40),
    ]
    record = {"model": HOSTILE, "system": HOSTILE, "messages": messages}
    path.write_text(json.dumps(record), "utf-8")
    return path


@pytest.fixture
def workspace(trace: Path, tmp_path: Path) -> Path:
    """A workspace with hostile notes, labels and suggestions on the trace."""
    path = tmp_path / "w.db"
    (read,) = read_file(trace, named=True).traces
    read_fully(read)
    key = read.span(1).key
    with closing(Workspace.open(path)) as store:
        store.add_taxonomy(MAST)
        trace_id = store.register_trace(TraceRecord.from_trace(read))
        store.add_annotator("alice", AnnotatorKind.HUMAN)
        label = Label(
            store.new_id(),
            "alice",
            trace_id,
            MAST.ref,
            SLUGS["1.3"],
            Target(key, key, read.text(1)[:9], 0, 9),
            note=HOSTILE,
        )
        facts: list[Fact] = [PassStarted(PassKind.ASSISTED), LabelAdded(label)]
        facts.append(SpanNoteSet(read.span(2).key, "", HOSTILE))
        store.append([NewEvent("alice", trace_id, MAST.ref, 1, fact) for fact in facts])
        findings = [finding(read, "2.6", 1, 2, quote=TITLE, why=HOSTILE * 3)]
        store_findings(store, trace_id, findings, "judge:\x1b]0;PWNED\x07@1")
    return path


def test_hostile_texts_are_only_shown(apps: Apps, home: Path, trace: Path, workspace: Path) -> None:
    arguments = (str(trace.parent), "--workspace", str(workspace), "--annotator", "alice")
    with apps.terminal(*arguments, home=home) as terminal:
        terminal.until(r"0 of 1 finished")
        until_whole(terminal)
        steps: list[tuple[tuple[str, ...], str | Callable[[str], bool], str]] = [
            (("enter",), r"#1 message", ""),
            (("down",), r"#2 message", ""),
            (("down",), r"#3 message", ""),
            (("down",), r"#4 message", ""),
            (("down",), r"#5 tool", ""),
            (("down",), r"#6 tool", ""),
            (("]",), r"Suggestion 1 of 1", ""),
            (("m",), r"the end", "Note on 1.3"),
            ((HOME,), r"PWNED.*52;c", "Note on 1.3"),
            (("escape",), gone("Note on"), ""),
            (("down", "m"), r"the end", "Note on #3"),
            (("escape",), gone("Note on"), ""),
            (("/", "PWNED"), r"\d of \d", ""),
            (("enter",), r"n next", ""),
            (("/", PASTED), r"pasted", ""),
            (("escape",), gone("pasted"), ""),
            (("y",), r"Copied", ""),
            (("l",), r"Disobey", "Label with"),
            (("escape",), gone("Label with"), ""),
            (("]", "a"), r"answered", ""),
            (("D", "up"), r"✓ .*sugg. shown", ""),  # its message covers the borders
        ]
        for keys, expected, dialog in steps:
            terminal.press(*keys)
            terminal.until(expected)
            until_whole(terminal, dialog)
        # A notice covers the borders, so it comes last.
        terminal.press(":", "nowhere[/red]", "enter")
        terminal.until(r"Nothing here has the number or name “nowhere\[/red\]")
        terminal.press("Q")
        assert terminal.ended() == 0
        assert not forbidden(bytes(terminal.raw))
        # The text was shown, with its control characters replaced.
        assert "␛]0;PWNED␇".encode() in terminal.raw
