"""Judging of a trace whose file has changed since it was read."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_tui.judges.llm.prompt.redacted_view import RedactedView
from mast_tui.judges.rules import RulesJudge
from mast_tui.redaction.engine import Redaction
from mast_tui.traces.index import lines
from mast_tui.traces.library import read_file, read_fully
from mast_tui.traces.model import Trace
from tests.traces.rollouts import message, meta, write


@pytest.fixture
def changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trace:
    """A rollout that was cut after it was read, of which no text is in memory."""
    monkeypatch.setattr(lines, "_CACHED_CHARS", 0)
    said = [message("assistant", f"{number} " + "word " * 40_000) for number in range(3)]
    path = write(tmp_path, meta(), message("user", "go"), *said, name="run.jsonl")
    (trace,) = read_file(path, named=True).traces
    read_fully(trace)
    path.write_bytes(path.read_bytes()[:1000])
    return trace


def test_a_changed_file_is_neither_judged_nor_sent(changed: Trace) -> None:
    with pytest.raises(OSError, match="the file has been cut"):
        RulesJudge().judge(changed)
    with pytest.raises(OSError, match="the file has been cut"):
        list(RedactedView(changed, Redaction()).spans(0, 3))
