"""The output of ``codex exec --json`` among other lines of a terminal."""

from __future__ import annotations

import json
from pathlib import Path

from mast_tui.traces.io.source import Source
from mast_tui.traces.library import read_fully
from mast_tui.traces.readers.codex.exec import READER
from tests.traces.checks import spans_of, texts_of

Event = dict[str, object]
THREAD = "01a2b3c4-0000-7000-8000-00000000e4ec"
BEGIN: list[Event] = [{"type": "thread.started", "thread_id": THREAD}, {"type": "turn.started"}]


def item(stage: str, name: str, key: str = "item_0", **fields: object) -> Event:
    return {"type": f"item.{stage}", "item": {"id": key, "type": name, **fields}}


def command(stage: str, key: str = "item_0", code: int | None = None, output: str = "") -> Event:
    """Return a command item; ``code`` is its exit code, None while it runs."""
    status = "in_progress"
    if code is not None:
        status = "failed" if code else "completed"
    return item(
        stage,
        "command_execution",
        key,
        command="bash -lc 'kubectl get pods'",
        aggregated_output=output,
        exit_code=code,
        status=status,
    )


def agent_message(text: str, key: str = "item_9") -> Event:
    return item("completed", "agent_message", key, text=text)


def turn_completed(input_count: int, output_count: int) -> Event:
    usage = {"input_tokens": input_count, "cached_input_tokens": 1, "output_tokens": output_count}
    return {"type": "turn.completed", "usage": usage}


def write(folder: Path, *lines: Event | str, name: str = "stdout.log") -> Path:
    """Write the lines to a file, events as JSON; return its path."""
    path = folder / name
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return path


LINES: list[Event | str] = [
    *BEGIN,
    command("started"),
    command("completed", code=0, output="x"),
    command("started", "item_1"),
    item("started", "web_search", "item_2", query=""),
    item("completed", "web_search", "item_2", query="q"),
    item("completed", "file_change", "item_1", changes=[]),
    item("updated", "todo_list", "item_4", items=[{"text": "a", "completed": True}]),
    agent_message("ok"),
    turn_completed(3, 4),
    {"type": "turn.failed", "error": {"message": "no"}},
    "noise",
    "",
]


def test_the_spans_do_not_depend_on_the_slices(tmp_path: Path) -> None:
    lines = [line for number in range(40) for line in (*LINES, f"noise {number} " * 2000)]
    path = write(tmp_path, *BEGIN, *lines)
    whole, sliced = (READER.read(Source(path)).traces[0] for _ in range(2))
    read_fully(whole)
    while sliced.advance(1):
        pass
    assert spans_of(sliced) == spans_of(whole)
    assert texts_of(sliced) == texts_of(whole)
