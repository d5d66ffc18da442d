"""The choice of a judge by J, its limits, its progress, and cancelling it."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from mast_tui.workspace import Workspace
from tests.cli.conftest import configure
from tests.cli.test_judge import write_trials
from tests.judges.llm.made_answers import decisive, judgement, notes
from tests.judges.llm.server import MODEL, Action, ModelServer, answer, hang, status
from tests.ui.stage import missing, stage, write_trace
from tests.ui.team_dir import TeamDir
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


def right_answer(body: dict[str, object], span: int = -1) -> Action:
    """Return a right answer with the number of tokens that were sent."""
    return answer(judgement(body, position=span), tokens_in=len(str(body)) // 3, tokens_out=400)


def first_window() -> Callable[[dict[str, object], int], Action]:
    windows = itertools.count()

    def script(body: dict[str, object], _: int) -> Action:
        return right_answer(body) if notes(body) or next(windows) == 0 else hang()

    return script


def configure_model(base_url: str, more: str = "") -> None:
    configure(f'[judge]\nmodel = "{MODEL}"\nbase_url = "{base_url}"\n{more}')


@contextmanager
def model(
    script: Callable[[dict[str, object], int], Action] | None = None,
) -> Iterator[ModelServer]:
    with ModelServer(script or (lambda body, _: right_answer(body))) as server:
        configure_model(server.base_url)
        yield server


class FakeRun:
    """A stand-in for asking a model that records its plans."""

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
def model_run(monkeypatch: pytest.MonkeyPatch) -> FakeRun:
    """Replace the request to a model."""
    fake = FakeRun()
    monkeypatch.setattr("mast_tui.ui.services.judging.run_model", fake)
    return fake


async def test_the_rules_run_without_a_model(small: Path, tmp_path: Path) -> None:
    async with stage(small, workspace=tmp_path / "w.db") as on:
        await on.press("J")
        assert on.session.pending
        assert "1 waits for an answer" in on.text
        assert on.message.endswith("1 suggestion · To use a language model: press ?, then End")
        assert on.message in on.lines[-1]
        await on.press("J")
        assert "nothing new" in on.message
    assert "A model as judge" in [s.title for s in sections_of(Where.ANNOTATE, {})]
    assert "A model as judge" not in [s.title for s in sections_of(Where.ADJUDICATE, {})]


async def test_a_model_is_asked_after_its_estimate(small: Path, tmp_path: Path) -> None:
    with model() as server:
        async with stage(small, workspace=tmp_path / "w.db") as on:
            await on.press("J")
            assert isinstance(on.app.screen, JudgeDialog)
            assert not missing(on.text, f"{MODEL} at 127.0.0.1", "1 request, about")
            assert not server.chats
            await on.press("m")
            assert len(server.chats) == 1
            assert f"{MODEL} has judged 1 trace · 1 suggestion" in on.message
            await on.press("]")
            assert not missing(on.text, f"{MODEL}@", "decisive for the outcome")
            await on.press("a")
            assert on.labels == {("1.3", 12, 12)}
            # What was judged is not paid for twice, and it was the choice made last.
            await on.press("J", "enter")
            assert len(server.chats) == 1
            assert on.app.judge_at_work is None


@pytest.mark.parametrize(("key", "steps"), [("d", False), ("s", True)])
async def test_a_model_is_asked_for_the_decisive_step(
    small: Path, tmp_path: Path, key: str, steps: bool
) -> None:
    def script(body: dict[str, object], n: int) -> Action:
        step_asked = not steps or "Is #5 the decisive step?" in str(body)
        reply = decisive(body, 5) if step_asked else decisive(body)
        return answer(reply, tokens_in=len(str(body)) // 3)

    with model(script) as server:
        async with stage(small, workspace=tmp_path / "w.db") as on:
            await on.press("J", key)
            assert f"{MODEL} has judged 1 trace · 1 suggestion" in on.message
            asked = len(server.chats)
            assert asked == 1 or steps
            await on.press("]")
            assert not missing(on.text, "decisive step: its correction", "instead: Ask first.")
            await on.press("J", "enter")
            assert len(server.chats) == asked
            # All modes are another question.
            server.script = lambda body, n: right_answer(body)
            await on.press("J", "m")
            assert len(server.chats) == asked + 1
            assert len({suggestion.judge for suggestion in on.session.suggestions}) == 2


async def test_waiting_for_an_answer_is_shown(
    long: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_judge, "REPORT_WAIT_AFTER", 0.0)
    with model(lambda body, n: hang()) as server:
        async with stage(long, workspace=tmp_path / "w.db") as on:
            await on.press("J")
            await on.send("m")
            await on.until(lambda: server.chats and "no answer yet · waiting" in on.text)
            assert len(server.chats) == 1
            await on.send("J", "y")
            await on.until(lambda: on.app.judge_at_work is None)


async def test_suggestions_appear_at_once_and_cancelling_keeps_them(
    long: Path, tmp_path: Path
) -> None:
    with model(first_window()) as server:
        async with stage(long, workspace=tmp_path / "w.db") as on:
            await on.press("J")
            await on.send("m")
            await on.until(lambda: on.session.pending)
            assert len(on.session.pending) == 1
            await on.until(lambda: not missing(on.text, "window 2 of", "1 suggestion"))
            # Keys go on meanwhile, and J asks before anything is stopped.
            await on.send("j", "1")
            assert on.number == 2
            await on.send("escape", "J")
            assert isinstance(on.app.screen, Ask)
            await on.send("n")
            assert on.app.judge_at_work is not None
            await on.send("R")
            await on.until(lambda: "still at work" in on.text)
            await on.send("escape", "J", "y")
            await on.until(lambda: on.app.judge_at_work is None)
            assert "was cancelled. What it answered is kept" in on.message
            assert (len(on.session.pending), on.session.workspace.judgements()) == (1, ())
    with model() as server:
        async with stage(long, workspace=tmp_path / "w.db") as on:
            await on.press("J", "enter")
            assert "has judged 1 trace" in on.message
            # Neither the story nor the window that was answered is asked for again.
            assert not any(map(notes, (chat.body for chat in server.chats)))
            windows = sum("Judge these modes" in str(chat.body) for chat in server.chats)
            assert windows < on.session.workspace.runs()[-1].traces[0].windows


async def test_suggestions_do_not_disturb_a_pending_digit(long: Path, tmp_path: Path) -> None:
    go_on = threading.Event()

    def script(body: dict[str, object], n: int) -> Action:
        return right_answer(body, 0) if go_on.wait(PATIENCE) else hang()

    with model(script):
        async with stage(long, workspace=tmp_path / "w.db") as on:
            await on.press("J")
            await on.send("m")
            await on.send("j", "1")
            assert on.annotate.labelling.entry.has_begun
            go_on.set()
            await on.until(lambda: on.app.judge_at_work is None)
            assert on.annotate.labelling.entry.has_begun
            assert on.number == 2
            assert on.session.pending
            await on.press("3")
            assert on.labels == {("1.3", 2, 2)}


async def test_leaving_does_not_wait_for_a_model(long: Path, tmp_path: Path) -> None:
    with model(first_window()):
        async with stage(long, workspace=tmp_path / "w.db") as on:
            await on.press("J")
            await on.send("m")
            await on.until(lambda: on.session.pending)
    store = Workspace.open(tmp_path / "w.db")
    assert ([run.finished_at for run in store.runs()], len(store.labels())) == ([None], 1)
    store.close()


async def test_errors_of_a_model_are_shown_without_the_api_key(small: Path, tmp_path: Path) -> None:
    with model(lambda *_: status(401, f"no {KEY}\x1b[2J")):
        async with stage(small, workspace=tmp_path / "w.db") as on:
            await on.press("J", "m")
            assert on.message.startswith(f"{MODEL}: ")
            assert KEY not in on.message
            assert "\x1b" not in on.message
            assert not on.session.suggestions


async def test_another_machine_is_asked_after_consent(
    small: Path, tmp_path: Path, model_run: FakeRun
) -> None:
    configure_model("https://models.example/v1")
    async with stage(small, workspace=tmp_path / "w.db") as on:
        await on.press("J", "m")
        assert isinstance(on.app.screen, Ask)
        assert "Send this trace to models.example?" in on.text
        assert "The texts of the traces" in on.text
        await on.press("enter")
        assert model_run.plans == []
        await on.press("J", "m")
        await on.press("y")
        assert len(model_run.plans) == 1
        assert model_run.plans[0].setup.allowance.tokens == model_run.plans[0].default_allowance()
        await on.press("J", "enter")
        assert len(model_run.plans) == 2


async def test_many_traces_need_an_allowance(tmp_path: Path, model_run: FakeRun) -> None:
    team = TeamDir(tmp_path / "set")
    for name in ("one", "two", "three"):
        team.file(name)
    with model():
        async with stage(team.folder, workspace=team.workspace) as on:
            await on.press("J", "m")
            assert isinstance(on.app.screen, NoteScreen)
            assert f"Ask {MODEL} about 3 traces?" in on.text
            await on.press("escape")
            assert model_run.plans == []
            await on.press("J", "enter")
            await on.press("x", "enter")
            assert "is not a number of tokens" in on.text
            await on.press(*["backspace"] * 9, *"50k", "enter")
            assert [plan.setup.allowance.tokens for plan in model_run.plans] == [50_000]


async def test_blind_annotators_see_no_number_of_suggestions(small: Path, tmp_path: Path) -> None:
    with model():
        async with stage(small, workspace=tmp_path / "w.db", blind=True) as on:
            await on.press("J", "m")
            assert "has judged 1 trace" in on.message
            assert "suggestion" not in on.message


async def test_the_rules_can_be_chosen(small: Path, tmp_path: Path) -> None:
    with model() as server:
        async with stage(small, workspace=tmp_path / "w.db") as on:
            await on.press("J", "r")
            assert {s.judge for s in on.session.suggestions} == {RulesJudge().name}
            assert not server.chats
            configure_model(server.base_url, "concurrency = 0\n")
            await on.press("J")
            assert not isinstance(on.app.screen, JudgeDialog)
            assert "The rules judge" in on.message


async def test_the_twins_judge_is_offered(tmp_path: Path) -> None:
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
        assert "t  the twins: find what only failed runs of a task do; offline  ↵" in on.text


@given(st.integers(1, 10**9))
def test_numbers_of_tokens_are_read(number: int) -> None:
    assert (tokens_of(f"{number:,}"), tokens_of(f" {number} ")) == (str(number), str(number))
    for text, tokens in (("310k", "310000"), ("1.5M", "1500000"), ("0.5k", "500")):
        assert tokens_of(text) == tokens
