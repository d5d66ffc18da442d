"""Pictures of the screens (``pytest --snapshot-update`` retakes them) and narrow screens."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot

from mast_tui.judges.rules import RULES, RulesJudge
from mast_tui.judges.runner import run_judge
from mast_tui.traces.library import samples_folder
from mast_tui.ui.annotate import screen as annotate
from mast_tui.ui.annotate.screen import AnnotateScreen
from mast_tui.ui.app import MastApp
from mast_tui.ui.options import AppOptions
from mast_tui.ui.services.open_workspace import remember_welcome
from mast_tui.workspace import Workspace
from tests.ui.settle import settle
from tests.ui.stage import (
    MAST,
    Stage,
    call,
    finding,
    read_trace,
    result,
    stage,
    suggest,
    write_trace,
)
from tests.ui.team_dir import TeamDir

Compare = Callable[..., bool]

SAMPLE = samples_folder() / "ad-restart-loop.jsonl"
WIDE = (120, 40)
NARROW = (80, 24)


@pytest.fixture(autouse=True)
def _no_waits_and_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep a burst of keys whole, however long the machine takes between two of them."""
    monkeypatch.setattr(annotate, "SPAN_WAIT", 3600.0)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


@pytest.fixture(autouse=True)
def _no_settings_of_git(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ignore the system's settings of git, by which a name would be offered."""
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


def app(*paths: Path, workspace: Path, annotator: str | None = "alice") -> MastApp:
    options = AppOptions(paths, False, str(workspace), annotator, None, False, False)
    return MastApp(options, MAST)


def pressing(*batches: Iterable[str]) -> Callable[[Pilot[None]], Awaitable[None]]:

    async def press(pilot: Pilot[None]) -> None:
        assert isinstance(pilot.app, MastApp)
        await settle(pilot)
        on = Stage(pilot.app, pilot)
        for keys in ((), *batches):
            await on.press(*keys)
            if isinstance(on.app.screen, AnnotateScreen):
                # Else it would depend on the time which spans of a burst of moves were shown, and
                # whether what was read is shown as read.
                on.app.screen._moves_over()
                await settle(pilot)
                on.app.screen.drawn_spans.write()

    return press


@pytest.fixture
def judged(workspace: Path) -> Path:
    """A workspace in which the rules judge has looked at the sample."""
    remember_welcome()
    with closing(Workspace.open(workspace)) as store:
        run_judge(RulesJudge(RULES), MAST, [read_trace(SAMPLE)], store)
    return workspace


# A span that two keys in one batch pass by may be drawn between them, or not, and so count as read.
SCENES: dict[str, tuple[Iterable[str], ...]] = {
    "labelled-wide": ("j", "j", "13", "j", "26", "j", "j", "t15", "-32"),
    "labelled-narrow": ("j", "j", "13", "j", "26", "j", "j", "t15", "-32"),
    "suggestion-wide": ("]",),
    "search-wide": ("/kubectl",),
    "filter-wide": ("Fco",),
    "help-wide": ("?",),
    "compare-wide": (":78", ["enter"], "="),
    "finder_typed-wide": ("lrepet",),
    "note-wide": ("13m", "seen before"),
    "finish-wide": ("D",),
    "my_labels-wide": (
        *("j13cf", "m", "seen before", ["enter"]),
        *(*"jjvjj", "23", *"jw", "v", "w11-32", "M"),
    ),
    "edit-wide": (*"jjvjj", "23", "e", "j"),
}


@pytest.mark.parametrize("scene", SCENES)
def test_the_annotate_screen(snap_compare: Compare, judged: Path, scene: str) -> None:
    size = NARROW if scene.endswith("narrow") else WIDE
    run = pressing(*SCENES[scene])
    assert snap_compare(app(SAMPLE, workspace=judged), terminal_size=size, run_before=run)


NARROW_TEXTS: list[tuple[tuple[Iterable[str], ...], tuple[str, ...]]] = [
    (
        (),
        (
            " ad-restart-loop · kestrel-70b · failed · 90 spans …        alice · sugg. shown",
            "│▌  1  0:00 ▕▏       ▏ system  You are an SRE agent. Tools: a shell with k…  │▏░",
            "│ 2 wait for an answer: ] goes to the next",
        ),
    ),
    (
        ("jjvjjj",),
        (
            "│┃  3  0:00",
            "│▌  6  0:13",
            " range #3 to #6: ↑ ↓ move · o other end · two digits label · Esc cancels",
        ),
    ),
    (
        (["escape"], "kkkwwv", "www"),
        (" quote: ← → ↑ ↓ move to the last word · two digits label · Esc",),
    ),
    ((["escape"], "1323e"), ("│▌  3  0:00", " Edit 2.3 Task derailment on #3? (1 of 2)")),
    (
        (["escape"], "26", ["backspace"]),
        ("1.3 ● 2.3 ● +1", "Remove 2.6 Reasoning-action mi… on #3? (1 of 3) · ⌫ = this one"),
    ),
    ((["escape"], "uuu", "T"), ("╮▶·╭─ MAST ─", "│▌ 1.3 Step repetition", "◌1  │")),
    (("T", "]"), ("┌1.3 ◌", "╭─ Suggestion 1 of 2 ─", "╰─ a accept  x reject  e edit ─")),
    (("X",), ("╭─ Answer many suggestions ─", "b  ( ) 2 by rules@5+all", "│   x  reject 1")),
    ((["escape"], "ZZZ"), (" 80 % of the height for the text",)),
    (("Z", ":67", ["enter"], ["space"]), ("⋮                  ×1 the same again: shell",)),
    (
        (["space"], ["ctrl+t"], "kube(ctl|config)"),
        ("─ /kube(ctl|config)/ · 33 matches ─", " of 33 · Enter keeps · Esc leaves"),
    ),
    (
        (["escape"], "Fe", ["enter"]),
        ("╭─ Timeline · errors · 4 of 90 ─", " Shown: errors · 4 of 90"),
    ),
    ((["escape"], "l"), ("╭─ Label with ─", "1.1  Disobey task specification  The task states")),
    (("vvv",), ("No mode matches “vvv”",)),
    (
        (["escape"], ":fin"),
        ("╭─ Find an action, or go to a span ─", "D     Finish, so that your labels count"),
    ),
]
"""Keys pressed one after the other, and texts that they bring on a narrow screen."""


async def test_the_annotate_screen_on_a_narrow_terminal(judged: Path) -> None:
    async with stage(SAMPLE, workspace=judged, size=NARROW) as on:
        for batches, texts in NARROW_TEXTS:
            for keys in batches:
                await on.press(*keys)
            missing = [text for text in texts if text not in on.text]
            assert not missing, f"after {batches} on screen:\n{on.text}"


MARKDOWN = """# Why it is slow

The **checkout** asks `inventory` *twice*; see [the dashboard](http://grafana/d/1).

- a long point that goes on and on, so that it is broken at the edge of the pane and hangs there
1. another

| pod | restarts |
|-----|----------|
| a   | 3        |

```python
def ask(pods: list[str]) -> int:
    return len(pods)  # one for each
```
"""
OUTPUT = """\x1b[1;31mFAILED\x1b[0m tests/test_pods.py \x1b[33m(1 warning)\x1b[0m \x1b[2J
--- a/pods.py
+++ b/pods.py
@@ -1,2 +1,2 @@
-    return len(pods)
+    return round(sum(pod.restarts for pod in pods if pod.ready) / max(1, len(pods)), ndigits=2)
 # end
Traceback (most recent call last):
  File "pods.py", line 2, in ask
ZeroDivisionError: division by zero
"""


@pytest.mark.parametrize("step", [1, 3])
def test_highlighted_texts(snap_compare: Compare, tmp_path: Path, judged: Path, step: int) -> None:
    inner = json.dumps({"code": "import pods\n\nprint(pods.ask(['a']))", "timeout": 3})
    steps = [
        {"role": "user", "content": MARKDOWN},
        call(1, "run", json.dumps({"name": "python", "arguments": inner, "path": "a\\b.py"})),
        result(1, OUTPUT),
    ]
    path = write_trace(tmp_path / "meant.json", steps)
    run = pressing("z", [")"] * (step - 1))
    assert snap_compare(app(path, workspace=judged), terminal_size=WIDE, run_before=run)


def test_the_answer_key(snap_compare: Compare, judged: Path) -> None:
    opened = app(samples_folder() / "support_desk_exchange.json", workspace=judged)
    run = pressing("i", "/", "card")
    assert snap_compare(opened, terminal_size=WIDE, run_before=run)


def test_the_library(snap_compare: Compare, judged: Path) -> None:
    opened = app(samples_folder(), workspace=judged)
    run = pressing(["enter"], "j13", ["escape"], "jj")
    assert snap_compare(opened, terminal_size=WIDE, run_before=run)


async def test_the_library_on_a_narrow_terminal(tmp_path: Path) -> None:
    async with stage(samples_folder(), workspace=tmp_path / "w.db", size=NARROW) as on:
        assert on.lines[0].startswith(" Library · 16 traces · 4 files skipped   ")
        assert on.lines[0].rstrip().endswith(" 0 of 16 finished")
        assert on.lines[1].split() == ["trace", "model", "outcome", "spans", "labels"]
        assert "catalog-postgres-connections.jsonl" in on.text


CONTENTS = {
    "empty": (
        b"",
        (),
        ("Library · 0 traces ", "No traces in empty.", "mast-tui without a path opens"),
    ),
    "picture.bin": (
        bytes(range(256)) * 9,
        (),
        ("0 traces · 1 file not read", "No traces in picture.bin.", "no trace: binary file;"),
    ),
    "cut.jsonl": (
        b"\n".join([*SAMPLE.read_bytes().splitlines()[:12], b'{"timestamp": "2026']),
        ("escape",),
        ("Library · 1 trace", "line 13: the last line is cut off; everything before it was read"),
    ),
}
"""By the name of a file: its content, keys, and texts on the screen; ``empty`` is a folder."""


@pytest.mark.parametrize("name", CONTENTS)
async def test_the_library_of_unreadable_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    content, keys, texts = CONTENTS[name]
    path = tmp_path / name
    if content:
        path.write_bytes(content)
    else:
        path.mkdir()
    monkeypatch.chdir(tmp_path)
    async with stage(Path(name), workspace=tmp_path / "w.db", size=NARROW) as on:
        await on.press(*keys)
        assert [text for text in texts if text not in on.text] == []


def test_adjudication_with_hidden_names(snap_compare: Compare, team: TeamDir) -> None:
    remember_welcome()
    team.label("alice", "one", {"1.3": (3, 8), "2.6": (10, 10)}, note="the same call thrice")
    team.label("bob", "one", {"3.1": "Done: the checkout", "2.6": (2, 2)})
    team.set_study("one")
    opened = app(team.folder, workspace=team.workspace)
    keys = ("A", "1", "k", "v", "m", *"thrice is a loop", "enter")
    run = pressing(*([key] for key in keys))
    assert snap_compare(opened, terminal_size=WIDE, run_before=run)


def test_pages_of_agreement(snap_compare: Compare, team: TeamDir) -> None:
    remember_welcome()
    for name, spans in (("one", (3, 8)), ("two", (5, 5))):
        trace = team.trace(name)
        suggestion = replace(finding(trace, "1.3", *spans), confidence=0.75)
        suggest(team.workspace, trace, [suggestion])
        for annotator in ("alice", "bob", "carol"):
            labels = {"1.3": (3, 8)} if annotator != "carol" or name == "one" else {}
            team.label(annotator, name, labels)
    opened = app(team.folder, workspace=team.workspace)
    run = pressing(*([key] for key in ("K", "3", "down", *("j",) * 5, "enter", "j")))
    assert snap_compare(opened, terminal_size=WIDE, run_before=run)
