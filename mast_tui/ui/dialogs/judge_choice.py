"""Which judge: one that asks no model at once, or a model, after what that takes and sends was
said."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from textual import work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static
from textual.worker import get_current_worker

from mast_tui.errors import MastError
from mast_tui.judges.llm.request import Way
from mast_tui.judges.llm.run.consent import is_told, note_told, what_is_sent
from mast_tui.judges.llm.run.setup import Setup
from mast_tui.safe_text import one_line
from mast_tui.traces.model import Trace
from mast_tui.ui.context import AppContext
from mast_tui.ui.dialogs.dialog import KeyDialog, KeyRow
from mast_tui.ui.dialogs.note import NoteScreen
from mast_tui.ui.dialogs.question import Ask
from mast_tui.ui.services.model_judge import Plan, estimate_words, model_name, plan_for
from mast_tui.ui.services.open_workspace import OpenWorkspace
from mast_tui.ui.wording import plain_lines, plain_title
from mast_tui.workspace import WorkspaceError
from mast_tui.writes import HeldKeys

RULES_KEY: Final = "r"
TWINS_KEY: Final = "t"
MODEL_KEY: Final = "m"
WAYS: Final[Mapping[str, Way]] = {MODEL_KEY: "", "d": "whole run", "s": "step by step"}
"""By its key what the model is asked for: all modes, or the decisive step in one of two ways."""

ESTIMATING: Final = "Estimating what the model would take"

TOLD_EVERY: Final = 20
"""Traces after which it is told how far the estimate is."""

_CHOSEN: Final = "judge.chosen"


class JudgeChoice(KeyDialog[tuple[str, Plan | None]]):
    """Gives back the key of what was chosen and what a model is to be asked, or None after Escape.

    A model waits for its estimate.
    """

    def __init__(
        self,
        setup: Setup | None,
        opened: OpenWorkspace,
        traces: Sequence[Trace],
        *,
        twins: bool,
        default: str,
    ) -> None:
        super().__init__()
        rows = [(RULES_KEY, "the rules: offline, at once")]
        if twins:
            rows.append((TWINS_KEY, "the twins: what only the failed runs of a task do; offline"))
        if setup is not None:
            rows += (
                (MODEL_KEY, f"{model_name(setup)} at {one_line(setup.host, 60)}"),
                ("d", "the same, for the decisive step alone"),
                ("s", "the same, for the decisive step, asked step by step"),
            )
        self._rows = dict(rows)
        self._setup = setup
        self._opened = opened
        self._traces = traces
        self.default = default
        self._estimated = default if default in WAYS else MODEL_KEY
        """What the model is asked for, of which the estimate is made."""
        self._plan: Plan | None = None
        self._wanted = False

    @property
    def dialog_keys(self) -> tuple[tuple[str, str], ...]:
        """What the keys do."""
        names = {RULES_KEY: "the rules", TWINS_KEY: "the twins", MODEL_KEY: "the model"}
        keys = {MODEL_KEY: " ".join(WAYS)}
        told = ((keys.get(key, key), names[key]) for key in self._rows if key in names)
        return (*told, ("Esc", "asks nothing"))

    def compose(self) -> ComposeResult:
        """The judges, and what the model takes."""
        count = len(self._traces)
        with Vertical(classes="dialog") as box:
            box.border_title = plain_title("Which judge?")
            yield Static(
                plain_lines("For this trace." if count == 1 else f"For {count:,} traces."),
                classes="question",
            )
            for key, words in self._rows.items():
                yield KeyRow(key, f" {words}{'  ↵' * (key == self.default)}")
            if self._setup is not None:
                yield Static(plain_lines(f"{ESTIMATING} …"), classes="hint")

    def on_mount(self) -> None:
        """Begin to estimate."""
        if self._setup is not None:
            self._estimate(self._setup)

    @work(thread=True, group="estimate", exclusive=True)
    def _estimate(self, setup: Setup) -> None:
        worker = get_current_worker()
        key = self._estimated
        setup = setup.deciding(WAYS[key]) if WAYS[key] else setup

        def counted(traces: int) -> None:
            if traces % TOLD_EVERY == 0:
                self.call_later(self._show_counted, traces)

        def stopped() -> bool:
            return worker.is_cancelled

        try:
            plan = plan_for(setup, self._traces, self._opened, stopped, counted)
        except (WorkspaceError, OSError) as error:
            self.call_later(self._cannot_estimate, key, str(error))
            return
        if not worker.is_cancelled:
            self.call_later(self._show_plan, key, plan)

    def _show_counted(self, traces: int) -> None:
        """Say how far the estimate is."""
        if self._plan is None:
            self.say_below(f"{ESTIMATING}: {traces:,} of {len(self._traces):,} traces …")

    def _show_plan(self, key: str, plan: Plan) -> None:
        """Say what asking takes; where the model was chosen already, go on with it."""
        if key == self._estimated:
            self._plan = plan
            self.say_below(estimate_words(plan))
            if self._wanted:
                self.dismiss((key, plan))

    def _cannot_estimate(self, key: str, problem: str) -> None:
        """Say why it is not known what asking takes."""
        if key == self._estimated:
            self.say_below(problem, error=True)
            self._wanted, self._estimated = False, ""

    def take(self, key: str) -> bool:
        """What asks no model at once; the model as soon as it is known what it takes."""
        if key not in self._rows:
            return False
        if key not in WAYS or self._setup is None:
            self.dismiss((key, None))
        elif key == self._estimated and self._plan is not None:
            self.dismiss((key, self._plan))
        else:
            self._wanted = True
            self.say_below(f"{ESTIMATING}, then it goes on …")
            if key != self._estimated:
                self._estimated, self._plan = key, None
                self._estimate(self._setup)
        return True


def choose_judge(
    context: AppContext,
    setup: Setup | None,
    opened: OpenWorkspace,
    traces: Sequence[Trace],
    *,
    rules: Callable[[], None],
    twins: Callable[[], None] | None,
    model: Callable[[Plan], None],
) -> None:
    """Ask which judge; before a model is asked, say what is sent where, and what it may take.

    Args:
        context: Where to ask.
        setup: How a model is asked; None where none can be.
        opened: Where it is remembered what was chosen.
        traces: What is judged.
        rules: Has the rules look at them.
        twins: Has their runs compared; None where there is nothing to compare.
        model: Has a model asked, as planned.
    """
    setting = f"{_CHOSEN}:{opened.annotator}"
    before = context.guarded(lambda: opened.workspace.get_setting(setting))

    def answered(chosen: tuple[str, Plan | None] | None) -> None:
        if chosen is None:
            return
        key, plan = chosen
        remember = partial(opened.workspace.set_setting, setting, key)
        context.writes.do(partial(context.guarded, remember), HeldKeys.NOTHING)
        if plan is not None:
            confirm(context, opened, plan, model)
        elif key == TWINS_KEY and twins is not None:
            twins()
        else:
            rules()

    choices = {TWINS_KEY: twins is not None, **dict.fromkeys(WAYS, setup is not None)}
    default = before if before is not None and choices.get(before) else RULES_KEY
    choice = JudgeChoice(setup, opened, traces, twins=twins is not None, default=default)
    context.ask(choice, answered)


def confirm(
    context: AppContext, opened: OpenWorkspace, plan: Plan, model: Callable[[Plan], None]
) -> None:
    """Begin at once where little is at stake; else ask what may be sent and spent."""
    if not plan.estimate.to_judge:
        context.say(f"{estimate_words(plan)} mast-tui judge --again asks anew.", seconds=8)
        return
    told = context.guarded(lambda: is_told(opened.workspace, plan.setup))
    if told is None:
        return

    def go(tokens: int) -> None:
        def note() -> None:
            context.guarded(lambda: note_told(opened.workspace, plan.setup))
            model(plan.allowing(tokens))

        context.writes.do(note)

    if plan.estimate.to_judge > 1:
        _ask_for_allowance(context, plan, go, told=told)
    elif told:
        go(plan.usual_allowance())
    else:
        _ask_to_send(context, plan, go)


def _ask_to_send(context: AppContext, plan: Plan, go: Callable[[int], None]) -> None:
    allowed = plan.usual_allowance()

    def answered(answer: str | None) -> None:
        if answer == "y":
            go(allowed)

    context.ask(
        Ask(
            f"Send this trace to {one_line(plan.setup.host, 60)}?",
            f"{what_is_sent(plan.setup)}\n\n{estimate_words(plan)} It stops at {allowed:,} tokens."
            "\n\nThis is asked once for this server and workspace.",
            (("y", f"send it and ask {plan.name}"), ("n", "send nothing")),
            default="n",
        ),
        answered,
    )


def _ask_for_allowance(
    context: AppContext, plan: Plan, go: Callable[[int], None], *, told: bool
) -> None:
    sent = "" if told else f"{what_is_sent(plan.setup)}\n\n"

    def written(text: str | None) -> None:
        if text is not None:
            go(int(text))

    context.ask(
        NoteScreen(
            f"Ask {plan.name} about {plan.estimate.to_judge:,} traces?",
            f"{plan.usual_allowance():,}",
            question=f"{sent}{estimate_words(plan)}\n\n"
            "It stops when so many tokens are spent, in and out together:",
            hint="Enter begins · Esc asks nothing",
            check=tokens_of,
            offered=True,
        ),
        written,
    )


def tokens_of(text: str) -> str:
    """A number of tokens as somebody writes it, such as ``310,000``, ``310k`` or ``1.5M``.

    Raises ``MastError`` for everything else.
    """
    plain = text.strip().lower().replace(",", "").replace("_", "").replace(" ", "")
    unit = {"k": 1_000, "m": 1_000_000}.get(plain[-1:], 1)
    number = plain if unit == 1 else plain[:-1]
    whole, _, part = number.partition(".")
    if not whole.isdecimal() or not whole.isascii() or (part and not part.isdecimal()):
        raise MastError(f"“{one_line(text, 20)}” is no number of tokens, such as 310000 or 310k")
    if unit == 1 and part:
        raise MastError("tokens are whole")
    tokens = int(float(number) * unit) if unit > 1 else int(whole)
    if not 0 < tokens < 10**12:
        raise MastError("that many tokens cannot be allowed; leave with Esc to ask nothing")
    return str(tokens)
