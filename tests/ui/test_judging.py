"""J: which judge, what it may take and send, how far it is, cancelling it."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_tui.configuration import configuration_path
from mast_tui.errors import MastError
from mast_tui.judges.rules import RulesJudge
from mast_tui.traces.model import Trace
from mast_tui.ui.actions.registry import Where
from mast_tui.ui.context import JudgeProgress
from mast_tui.ui.dialogs.dialog import Ask, NoteScreen
from mast_tui.ui.dialogs.help import sections_of
from mast_tui.ui.services import model_judge
from mast_tui.ui.services.judging import JudgeDialog, tokens_of
from mast_tui.ui.services.model_judge import Plan
from mast_tui.ui.services.open_workspace import OpenWorkspace
from mast_tui.workspace import Workspace, WorkspaceError
from tests import waiting
from tests.cli.test_judge_twins import write_trials
from tests.judges.llm.made_answers import decisive, notes, said
from tests.judges.llm.server import MODEL, Action, ModelServer, answer, hang, status
from tests.ui.office import Office
from tests.ui.stage import SMALL, Stage, stage, write_trace
from tests.waiting import PATIENCE

KEY = "sk-made-up-for-this-test"


@pytest.fixture(autouse=True)
def _a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


@pytest.fixture
def long(tmp_path: Path) -> Path:
    """A trace that takes a few windows."""
    steps = (
        {"role": ("user", "assistant")[n % 2], "content": f"step {n}\n" + f"word{n} " * 3000}
        for n in range(16)
    )
    return write_trace(tmp_path / "long.json", tuple(steps))


def right(body: dict[str, object], place: int = -1) -> Action:
    """A right answer; as many tokens are counted as were sent, at least."""
    return answer(said(body, place=place), tokens_in=len(str(body)) // 3, tokens_out=400)


def first_window() -> Callable[[dict[str, object], int], Action]:
    """A model that answers about the first window alone; of the run it tells the story."""
    windows = itertools.count()

    def script(body: dict[str, object], _: int) -> Action:
        return right(body) if notes(body) or next(windows) == 0 else hang()

    return script


def configure(base_url: str, more: str = "") -> None:
    """A model is named in the configuration."""
    path = configuration_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'[judge]\nmodel = "{MODEL}"\nbase_url = "{base_url}"\n{more}')


@contextmanager
def model(
    script: Callable[[dict[str, object], int], Action] | None = None,
) -> Iterator[ModelServer]:
    """A server on this machine that is configured."""
    with ModelServer(script or (lambda body, _: right(body))) as server:
        configure(server.base_url)
        yield server


class FakeRun:
    """Stands in for asking a model; remembers with which plan."""

    def __init__(self) -> None:
        self.plans: list[Plan] = []

    def __call__(
        self,
        plan: Plan,
        traces: Sequence[Trace],
        opened: OpenWorkspace,
        tell: Callable[[JudgeProgress], object],
        stopped: Callable[[], bool],
    ) -> None:
        self.plans.append(plan)
        tell(JudgeProgress("asked", done=True))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> FakeRun:
    """What would be asked, where nothing is."""
    fake = FakeRun()
    monkeypatch.setattr("mast_tui.ui.services.judging.run_model", fake)
    return fake


async def reached(on: Stage, wanted: Callable[[], object]) -> None:
    """Wait until something holds, while a judge is at work."""
    for _ in waiting.until(wanted):
        await on.pilot.pause(0.01)


async def test_without_a_model_the_rules_run_at_once_and_say_how_to_have_one(
    small: Path, tmp_path: Path
) -> None:
    async with stage(small, workspace=tmp_path / "w.db") as on:
        await on.press("J")
        assert on.session.pending
        assert "] goes there" in on.message
        assert on.message.count("suggestion") == 1  # how many there are is said once
        assert on.message.endswith("? explains how to use a model")
        assert on.message in on.lines[-1]
    assert "A model as judge" in [one.title for one in sections_of(Where.ANNOTATE, {})]
    assert "A model as judge" not in [one.title for one in sections_of(Where.ADJUDICATE, {})]


async def test_a_model_is_asked_after_its_estimate_and_is_the_first_choice_then(
    small: Path, tmp_path: Path
) -> None:
    with model() as server:
        async with stage(small, workspace=tmp_path / "w.db") as on:
            await on.press("J")
            assert isinstance(on.app.screen, JudgeDialog)
            assert f"{MODEL} at 127.0.0.1" in on.text
            assert "1 request, about" in on.text
            assert not server.chats
            await on.press("m")
            assert len(server.chats) == 1
            assert f"{MODEL} has judged 1 trace · 1 found" in on.message
            await on.press("]")
            assert f"{MODEL}@" in on.text
            assert "decisive for the outcome" in on.text
            await on.press("a")
            assert on.labels == {("1.3", 12, 12)}
            # What was judged is not paid for twice, and it was the choice made last.
            await on.press("J", "enter")
            assert len(server.chats) == 1
            assert on.app.judge_at_work is None


@pytest.mark.parametrize(("key", "steps"), [("d", False), ("s", True)])
async def test_the_decisive_step_is_asked_for_and_is_the_first_choice_then(
    small: Path, tmp_path: Path, key: str, steps: bool
) -> None:
    def script(body: dict[str, object], n: int) -> Action:
        there = not steps or "Is #5 the decisive step?" in str(body)
        said = decisive(body, 5) if there else decisive(body)
        return answer(said, tokens_in=len(str(body)) // 3)

    with model(script) as server:
        async with stage(small, workspace=tmp_path / "w.db") as on:
            await on.press("J", key)
            assert f"{MODEL} has judged 1 trace · 1 found" in on.message
            asked = len(server.chats)
            assert asked == 1 or steps
            await on.press("]")
            assert "decisive step: its correction" in on.text
            assert "instead: Ask first." in on.text
            await on.press("J", "enter")
            assert len(server.chats) == asked
            # All modes are another question.
            server.script = lambda body, n: right(body)
            await on.press("J", "m")
            assert len(server.chats) == asked + 1
            assert len({one.judge for one in on.session.suggestions}) == 2


async def test_it_is_told_how_long_no_answer_has_come(
    long: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_judge, "REPORT_WAIT_AFTER", 0.0)
    with model(lambda body, n: hang()) as server:
        async with stage(long, workspace=tmp_path / "w.db") as on:
            await on.press("J")
            await on.send("m")
            await reached(on, lambda: server.chats and "no answer yet · waiting" in on.text)
            assert len(server.chats) == 1
            await on.send("J", "y")
            await reached(on, lambda: on.app.judge_at_work is None)


async def test_what_is_found_comes_as_it_is_found_and_cancelling_keeps_it(
    long: Path, tmp_path: Path
) -> None:
    with model(first_window()) as server:
        async with stage(long, workspace=tmp_path / "w.db") as on:
            await on.press("J")
            await on.send("m")
            await reached(on, lambda: on.session.pending)
            assert len(on.session.pending) == 1
            assert "window 2 of" in on.text
            assert "1 found" in on.text
            # Keys go on meanwhile, and J asks before anything is stopped.
            await on.send("j", "1")
            assert on.number == 2
            await on.send("escape", "J")
            assert isinstance(on.app.screen, Ask)
            await on.send("n")
            assert on.app.judge_at_work is not None
            await on.send("R")
            await reached(on, lambda: "still at work" in on.text)
            await on.send("escape", "J", "y")
            await reached(on, lambda: on.app.judge_at_work is None)
            assert "was cancelled. What it answered is kept" in on.message
            assert len(on.session.pending) == 1
            assert on.session.workspace.judgements() == ()
    with model() as server:
        async with stage(long, workspace=tmp_path / "w.db") as on:
            await on.press("J", "enter")
            assert "has judged 1 trace" in on.message
            # Neither the story nor the window that was answered is asked for again.
            assert not any(map(notes, (chat.body for chat in server.chats)))
            windows = sum("Judge these modes" in str(chat.body) for chat in server.chats)
            assert windows < on.session.workspace.runs()[-1].traces[0].windows


async def test_what_comes_does_not_disturb_a_key_that_is_waited_for(
    long: Path, tmp_path: Path
) -> None:
    go_on = threading.Event()

    def script(body: dict[str, object], n: int) -> Action:
        return right(body, 0) if go_on.wait(PATIENCE) else hang()

    with model(script):
        async with stage(long, workspace=tmp_path / "w.db") as on:
            await on.press("J")
            await on.send("m")
            await on.send("j", "1")
            assert on.annotate.labelling.entry.has_begun
            go_on.set()
            await reached(on, lambda: on.app.judge_at_work is None)
            assert on.annotate.labelling.entry.has_begun
            assert on.number == 2
            assert on.session.pending
            await on.press("3")
            assert on.labels == {("1.3", 2, 2)}


async def test_leaving_while_a_model_is_asked_waits_for_nothing(long: Path, tmp_path: Path) -> None:
    with model(first_window()):
        async with stage(long, workspace=tmp_path / "w.db") as on:
            await on.press("J")
            await on.send("m")
            await reached(on, lambda: on.session.pending)
    store = Workspace.open(tmp_path / "w.db")
    assert [run.finished_at for run in store.runs()] == [None]
    assert len(store.labels()) == 1
    store.close()


async def test_what_goes_wrong_is_one_sentence_without_the_key(small: Path, tmp_path: Path) -> None:
    with model(lambda *_: status(401, f"no {KEY}\x1b[2J")):
        async with stage(small, workspace=tmp_path / "w.db") as on:
            await on.press("J", "m")
            assert on.message.startswith(f"{MODEL}: ")
            assert KEY not in on.message
            assert "\x1b" not in on.message
            assert not on.session.suggestions


async def test_another_machine_is_asked_only_after_a_yes_which_is_remembered(
    small: Path, tmp_path: Path, asked: FakeRun
) -> None:
    configure("https://models.example/v1")
    async with stage(small, workspace=tmp_path / "w.db") as on:
        await on.press("J", "m")
        assert isinstance(on.app.screen, Ask)
        assert "Send this trace to models.example?" in on.text
        assert "The texts of the traces" in on.text
        await on.press("enter")
        assert asked.plans == []
        await on.press("J", "m")
        await on.press("y")
        assert len(asked.plans) == 1
        assert asked.plans[0].setup.allowance.tokens == asked.plans[0].default_allowance()
        await on.press("J", "enter")
        assert len(asked.plans) == 2


async def test_many_traces_want_an_allowance(tmp_path: Path, asked: FakeRun) -> None:
    office = Office(tmp_path / "set")
    for name in ("one", "two", "three"):
        office.file(name)
    with model():
        async with stage(office.folder, workspace=office.workspace) as on:
            await on.press("J", "m")
            assert isinstance(on.app.screen, NoteScreen)
            assert f"Ask {MODEL} about 3 traces?" in on.text
            await on.press("escape")
            assert asked.plans == []
            await on.press("J", "enter")
            await on.press("x", "enter")
            assert "is not a number of tokens" in on.text
            await on.press(*["backspace"] * 9, *"50k", "enter")
            assert [plan.setup.allowance.tokens for plan in asked.plans] == [50_000]


async def test_working_blind_nothing_found_is_counted(small: Path, tmp_path: Path) -> None:
    with model():
        async with stage(small, workspace=tmp_path / "w.db", blind=True) as on:
            await on.press("J", "m")
            assert "has judged 1 trace" in on.message
            assert "found" not in on.message


async def test_the_rules_can_be_chosen_and_a_wrong_configuration_leaves_them(
    small: Path, tmp_path: Path
) -> None:
    with model() as server:
        async with stage(small, workspace=tmp_path / "w.db") as on:
            await on.press("J", "r")
            assert {s.judge for s in on.session.suggestions} == {RulesJudge().name}
            assert not server.chats
            configure(server.base_url, "concurrency = 0\n")
            await on.press("J")
            assert not isinstance(on.app.screen, JudgeDialog)
            assert "The rules judge" in on.message


async def test_one_judge_at_a_time_also_from_the_library(long: Path, tmp_path: Path) -> None:
    write_trace(tmp_path / "set" / "small.json", SMALL)
    long.rename(tmp_path / "set" / "long.json")
    with model(lambda *_: hang()):
        async with stage(tmp_path / "set", workspace=tmp_path / "w.db") as on:
            await on.press("J")
            await on.press("m")
            await on.send("enter")
            await reached(on, lambda: on.app.judge_at_work is not None)
            await on.send("R", "J")
            assert isinstance(on.app.screen, Ask)
            await on.send("y")
            await reached(on, lambda: on.app.judge_at_work is None)
            assert "was cancelled" in on.text


async def test_the_twins_are_offered_where_runs_of_the_task_have_failed_and_succeeded(
    tmp_path: Path,
) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    write_trials(runs)
    async with stage(runs, workspace=tmp_path / "w.db") as on:
        await on.press("J")
        assert isinstance(on.app.screen, JudgeDialog)
        await on.press("t")
        assert "The twins judge has looked at 8 traces: 4 suggestions" in on.text
        assert "comparing 8 runs of 1 task" in on.text
        await on.press("J")
        assert "t  the twins: what only the failed runs of a task do; offline  ↵" in on.text


@given(st.integers(1, 10**9))
def test_tokens_are_read_as_they_are_written(number: int) -> None:
    assert tokens_of(f"{number:,}") == str(number)
    assert tokens_of(f" {number} ") == str(number)


@pytest.mark.parametrize(
    ("text", "tokens"), [("310k", "310000"), ("1.5M", "1500000"), ("0.5k", "500")]
)
def test_tokens_have_units(text: str, tokens: str) -> None:
    assert tokens_of(text) == tokens


@given(st.text(max_size=8))
def test_any_text_is_a_number_of_tokens_or_refused_in_words(text: str) -> None:
    try:
        read = tokens_of(text)
    except MastError as error:
        read = str(error)
    assert read.isdecimal() or "token" in read


async def test_a_run_that_was_cancelled_goes_on_whatever_it_has_spent(
    long: Path, tmp_path: Path
) -> None:
    windows = itertools.count()
    cancelled = threading.Event()

    def dear(body: dict[str, object], _: int) -> Action:
        number = -1 if notes(body) else next(windows)
        if number == 0:
            return answer(said(body), tokens_in=8 * len(str(body)) // 3, tokens_out=1)
        return hang() if number > 0 and not cancelled.is_set() else right(body)

    with model(dear):
        async with stage(long, workspace=tmp_path / "w.db") as on:
            await on.press("J")
            await on.send("m")
            await reached(on, lambda: on.session.pending)
            await on.send("J", "y")
            await reached(on, lambda: on.app.judge_at_work is None)
            cancelled.set()
            await on.press("J", "enter")
            assert "has judged 1 trace" in on.message
            assert len(on.session.workspace.runs()) == 1


async def test_without_a_workspace_no_judge_runs_and_that_is_said(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object, taxonomy: str) -> None:
        raise WorkspaceError("w.db is no workspace")

    monkeypatch.setattr("mast_tui.ui.services.open_workspace.Opening.open", refuse)
    async with stage(small, workspace=tmp_path / "w.db") as on:
        await on.press("r", "L", "J")
        assert any("no judge can store" in note.message for note in on.app._notifications)
        assert on.app.judge_at_work is None
