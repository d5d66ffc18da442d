"""Pictures of the screens; ``pytest --snapshot-update`` takes them anew, and one looks at them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable
from contextlib import closing
from pathlib import Path

import pytest
from textual.pilot import Pilot

from mast_tui.judges.rules import RULES, RulesJudge
from mast_tui.judges.runner import run_judge
from mast_tui.session import set_study
from mast_tui.study import Study
from mast_tui.traces.library import samples_folder
from mast_tui.ui.annotate import screen as annotate
from mast_tui.ui.annotate.screen import AnnotateScreen
from mast_tui.ui.app import MastApp
from mast_tui.ui.options import AppOptions
from mast_tui.ui.services.open_workspace import remember_welcome
from mast_tui.workspace import Workspace, WorkspaceError
from tests.ui.settle import settle
from tests.ui.stage import MAST, Stage, call, read_trace, result, write_trace

Compare = Callable[..., bool]

SAMPLE = samples_folder() / "ad-restart-loop.jsonl"
pytestmark = pytest.mark.parametrize("size", [(120, 40), (80, 24)], ids=["wide", "narrow"])


@pytest.fixture(autouse=True)
def a_burst_ends_with_its_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the machine takes between two keys."""
    monkeypatch.setattr(annotate, "SPAN_WAIT", 3600.0)


@pytest.fixture(autouse=True)
def _no_settings_of_git(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may have some, by which a name would be offered."""
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


def app(*paths: Path, workspace: Path, annotator: str | None = "alice") -> MastApp:
    """The app with these files, as the command line starts it."""
    options = AppOptions(paths, False, str(workspace), annotator, None, False, False)
    return MastApp(options, MAST)


def pressing(*batches: Iterable[str]) -> Callable[[Pilot[None]], Awaitable[None]]:
    """Presses keys, and waits after each batch."""

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
                on.app.screen.reading.write()

    return press


@pytest.fixture
def judged(tmp_path: Path) -> Path:
    """A workspace in which the rules judge has looked at the sample."""
    remember_welcome()
    place = tmp_path / "w.db"
    with closing(Workspace.open(place)) as workspace:
        run_judge(RulesJudge(RULES), MAST, [read_trace(SAMPLE)], workspace)
    return place


# A span that two keys in one batch pass by may be drawn between them, or not, and so count as read.
SCENES: dict[str, tuple[Iterable[str], ...]] = {
    "plain": (),
    "labelled": ("j", "j", "13", "j", "26", "j", "j", "t15", "-32"),
    "suggestion": ("]",),
    "read": ("]", "z"),
    "more_text": ("j", "ZZ"),
    "range": (*"jjvjjj",),
    "quote": ("j", "j", "wwv", "www"),
    "first_digit": ("j1",),
    "drawer": ("T",),
    "folded": (":67", ["enter"], ["space"], "jj13"),
    "search": ("/kubectl",),
    "pattern": (["ctrl+t"], "kube(ctl|config)"),
    "filter": ("Fco",),
    "filtered": ("Fe", ["enter"]),
    "help": ("?",),
    "compare": (":78", ["enter"], "="),
    "finder": ("l",),
    "finder_typed": ("lrepet",),
    "goto": (":fin",),
    "note": ("13m", "seen before"),
    "finish": ("D",),
    "remove": ("132631", ["backspace"]),
    "my_labels": ("j13cf", "m", "seen before", ["enter"], "jjvjj", "23", "jw", "v", "w11-32", "M"),
    "edit": ("jjvjj", "23", "e", "j"),
    "many": ("]", "X"),
}


@pytest.mark.parametrize("scene", SCENES)
def test_the_annotate_screen(
    snap_compare: Compare, judged: Path, size: tuple[int, int], scene: str
) -> None:
    run = pressing(*SCENES[scene])
    assert snap_compare(app(SAMPLE, workspace=judged), terminal_size=size, run_before=run)


MEANT = """# Why it is slow

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
PRINTED = """\x1b[1;31mFAILED\x1b[0m tests/test_pods.py \x1b[33m(1 warning)\x1b[0m \x1b[2J
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


@pytest.mark.parametrize("step", [1, 2, 3])
def test_texts_as_they_are_meant(
    snap_compare: Compare, tmp_path: Path, judged: Path, size: tuple[int, int], step: int
) -> None:
    inner = json.dumps({"code": "import pods\n\nprint(pods.ask(['a']))", "timeout": 3})
    steps = [
        {"role": "user", "content": MEANT},
        call(1, "run", json.dumps({"name": "python", "arguments": inner, "path": "a\\b.py"})),
        result(1, PRINTED),
    ]
    path = write_trace(tmp_path / "meant.json", steps)
    run = pressing("z", [")"] * (step - 1))
    assert snap_compare(app(path, workspace=judged), terminal_size=size, run_before=run)


def test_the_answer_key(snap_compare: Compare, judged: Path, size: tuple[int, int]) -> None:
    opened = app(samples_folder() / "support_desk_exchange.json", workspace=judged)
    assert snap_compare(opened, terminal_size=size, run_before=pressing("i", "/", "card"))


def test_the_library(snap_compare: Compare, judged: Path, size: tuple[int, int]) -> None:
    opened = app(samples_folder(), workspace=judged)
    run = pressing(["enter"], "j13", ["escape"], "jj")
    assert snap_compare(opened, terminal_size=size, run_before=run)


def test_the_library_with_nothing_in_it(
    snap_compare: Compare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    remember_welcome()
    folder = tmp_path / "empty"
    folder.mkdir()
    (folder / "notes.bin").write_bytes(bytes(range(256)))
    monkeypatch.chdir(tmp_path)
    opened = app(Path("empty"), workspace=tmp_path / "w.db")
    assert snap_compare(opened, terminal_size=size, run_before=pressing())


def test_a_file_that_holds_no_trace(
    snap_compare: Compare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    remember_welcome()
    (tmp_path / "picture.bin").write_bytes(bytes(range(256)) * 9)
    monkeypatch.chdir(tmp_path)
    opened = app(Path("picture.bin"), workspace=tmp_path / "w.db")
    assert snap_compare(opened, terminal_size=size, run_before=pressing())


def test_a_file_of_which_a_part_is_broken(
    snap_compare: Compare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    remember_welcome()
    lines = SAMPLE.read_text("utf-8").splitlines()[:12]
    (tmp_path / "cut.jsonl").write_text("\n".join([*lines, '{"timestamp": "2026']), "utf-8")
    monkeypatch.chdir(tmp_path)
    opened = app(Path("cut.jsonl"), workspace=tmp_path / "w.db")
    assert snap_compare(opened, terminal_size=size, run_before=pressing(["escape"]))


def test_the_first_start(snap_compare: Compare, tmp_path: Path, size: tuple[int, int]) -> None:
    opened = app(SAMPLE, workspace=tmp_path / "w.db")
    assert snap_compare(opened, terminal_size=size, run_before=pressing())


def test_the_question_for_a_name(
    snap_compare: Compare, tmp_path: Path, size: tuple[int, int]
) -> None:
    opened = app(SAMPLE, workspace=tmp_path / "w.db", annotator=None)
    assert snap_compare(opened, terminal_size=size, run_before=pressing("judge:x", ["enter"]))


def test_the_question_for_a_name_in_a_study(
    snap_compare: Compare, tmp_path: Path, size: tuple[int, int]
) -> None:
    place = tmp_path / "w.db"
    with closing(Workspace.open(place)) as workspace:
        workspace.add_taxonomy(MAST)
        set_study(workspace, "dee", Study(MAST.ref, ("ada", "ben", "cho"), ("dee",)))
    opened = app(SAMPLE, workspace=place, annotator=None)
    assert snap_compare(opened, terminal_size=size, run_before=pressing(["j", "j"]))


def test_a_workspace_that_does_not_open(
    snap_compare: Compare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    monkeypatch.setattr(
        "mast_tui.ui.services.open_workspace.Opening.open",
        Refusing("w.db is no workspace; name another file"),
    )
    opened = app(SAMPLE, workspace=tmp_path / "w.db")
    assert snap_compare(opened, terminal_size=size, run_before=pressing())


class Refusing:
    """Opens nothing."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __call__(self, taxonomy: str) -> None:
        raise WorkspaceError(self.reason)
