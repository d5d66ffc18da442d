"""Having a judge look at traces: which one, how far it is, cancelling it.

It works in a thread and posts messages; what it finds is in the workspace before it is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from textual import on, work
from textual.message import Message
from textual.worker import Worker, get_current_worker

from mast_tui.safe_text import one_line
from mast_tui.traces.model import Trace
from mast_tui.ui.background import Background

if TYPE_CHECKING:
    from mast_tui.ui.services.model_judge import Plan
    from mast_tui.ui.services.open_workspace import OpenWorkspace
    from mast_tui.ui.widgets.hint_bar import HintBar

RULES: Final = "The rules judge"

HOW_TO_HAVE_A_MODEL: Final = """\
Judges
  J runs the rules judge, which needs no network. It asks a language model
  too, of any server that speaks the OpenAI chat API, once config.toml in
  the configuration folder names one:

    [judge]
    model = "gpt-oss-120b"
    base_url = "http://localhost:8000/v1"
    key_variable = "OPENAI_API_KEY"

  Without base_url it is OPENAI_BASE_URL, or the vendor's own. The key
  stands in the environment variable, never in the file. Nothing is sent
  before J has said what goes where and what it may take; J again, while
  it works, asks whether to cancel."""

MODEL_HINT: Final = "? tells how J asks a model too"


BESIDE_WORDS: Final = 12
"""Cells of the last line that words cannot have."""


@dataclass
class Judged(Message):
    """How far a judge has come, in words that are fit for display.

    ``done`` is said once, at the end; with ``problem`` the words say what went wrong. ``more`` is
    what else there is to know then. ``trace_id`` is the trace of which something new is in the
    workspace, None where any may be.
    """

    words: str
    done: bool = False
    problem: bool = False
    more: str = ""
    trace_id: str | None = None

    def tell(self, hints: HintBar, then: str = "") -> None:
        """Say how it ended, and what to do ``then``; how far it is the bar says by itself."""
        if self.done:
            parts = (self.words, then, self.more)
            hints.say(" · ".join(part for part in parts if part), error=self.problem)


@runtime_checkable
class HearsJudge(Protocol):
    """A screen that wants to know how far a judge has come."""

    def judged(self, message: Judged) -> None: ...


@dataclass(slots=True)
class UnderWay:
    """A judge at work: its name for people, how far it is, whether it was told to stop."""

    name: str
    words: str
    worker: Worker[None] | None = None
    stopping: bool = False


class Judging(Background):
    """One judge at a time; whatever screen is open, ``J`` there asks to cancel it."""

    judge_at_work: UnderWay | None = None

    @property
    def urgently(self) -> str:
        """What is waited for before anything else can be saved, or nothing."""
        return self.writes.words

    @property
    def report(self) -> str:
        """How far the judge at work has come, or nothing; shown in the last line."""
        return "" if self.judge_at_work is None else self.judge_at_work.words

    def judge_traces(self, traces: Sequence[Trace]) -> None:
        """Have a judge look at these traces; while one does, ask whether to cancel it."""
        if self.judge_at_work is not None:
            self._ask_to_cancel(self.judge_at_work)
            return

        if self.refused is not None:
            self.complain("No workspace is open, so no judge can keep what it finds")
            return

        def ready(opened: OpenWorkspace) -> None:
            self._choose(traces, opened)

        self.when_ready(ready)

    def _choose(self, traces: Sequence[Trace], opened: OpenWorkspace) -> None:
        from mast_tui.configuration import ConfigurationError, read_judge_configuration

        try:
            configured = read_judge_configuration()
        except ConfigurationError as error:
            self.complain(f"{error}; only the rules judge can run")
            configured = None
        if configured is None or configured.model is None:
            self._start_rules(traces, opened, MODEL_HINT)
            return
        from mast_tui.ui.judge_runs.judge_choice import choose_judge

        choose_judge(
            self,
            configured,
            opened,
            traces,
            rules=lambda: self._start_rules(traces, opened),
            model=lambda plan: self._start_model(traces, opened, plan),
        )

    def _ask_to_cancel(self, at_work: UnderWay) -> None:
        from mast_tui.ui.dialogs.question import Ask

        def answered(answer: str | None) -> None:
            if answer == "y" and self.judge_at_work is at_work:
                self.cancel_judge()

        self.push_screen(
            Ask(
                f"{at_work.name} is at work",
                f"{at_work.words}\n\nWhat it has found and what was answered is kept; "
                "J later goes on from there.",
                (("y", "cancel it"), ("n", "let it go on")),
                default="n",
            ),
            answered,
        )

    def cancel_judge(self) -> None:
        """Have the judge at work stop; it says so when it has."""
        at_work = self.judge_at_work
        if at_work is not None and at_work.worker is not None:
            at_work.stopping = True
            at_work.worker.cancel()
            self._show_report(f"{at_work.name}: stopping …")

    def _start_rules(self, traces: Sequence[Trace], opened: OpenWorkspace, more: str = "") -> None:
        self._begin(RULES, f"{RULES} looks at {_counted(len(traces))} …")
        assert self.judge_at_work is not None
        self.judge_at_work.worker = self.run_rules(traces, opened, more)

    def _start_model(self, traces: Sequence[Trace], opened: OpenWorkspace, plan: Plan) -> None:
        self._begin(plan.name, f"{plan.name} is asked about {_counted(len(traces))} …")
        assert self.judge_at_work is not None
        self.judge_at_work.worker = self.run_model(traces, opened, plan)

    def _begin(self, name: str, words: str) -> None:
        from mast_tui.ui.widgets.hint_bar import HintBar

        self.judge_at_work = UnderWay(name, words)
        for bar in self.screen.query(HintBar):
            bar.clear()
        self._show_report(words)

    def _show_report(self, words: str) -> None:
        from mast_tui.ui.widgets.hint_bar import HintBar

        if self.judge_at_work is not None:
            self.judge_at_work.words = words
        for screen in self.screen_stack:
            for bar in screen.query(HintBar):
                bar.refresh()

    @on(Judged)
    def _judged(self, message: Judged) -> None:
        at_work = self.judge_at_work
        if message.done:
            self.judge_at_work = None
            self._show_report("")
        elif at_work is not None and not at_work.stopping:
            self._show_report(message.words)
        heard = False
        for screen in self.screen_stack:
            if isinstance(screen, HearsJudge):
                screen.judged(message)
                heard = heard or screen is self.screen
        cut = len(message.words) > self.size.width - BESIDE_WORDS
        if message.done and message.problem and (cut or not heard):
            self.complain(message.words)  # whole, in as many lines as it takes

    @work(thread=True, group="judge", exclusive=True)
    def run_rules(self, traces: Sequence[Trace], opened: OpenWorkspace, more: str = "") -> None:
        """Run the rules judge on these traces and store what it finds."""
        from mast_tui.judges.rules import RulesJudge
        from mast_tui.judges.runner import Progress, run_judge
        from mast_tui.workspace import WorkspaceError

        worker = get_current_worker()

        def looked(progress: Progress) -> None:
            words = f"{RULES}: {progress.done} of {_counted(len(traces))} done"
            self.post_message(Judged(words, trace_id=progress.trace_id))

        try:
            summary = run_judge(
                RulesJudge(),
                opened.taxonomy,
                traces,
                opened.workspace,
                on_progress=looked,
                stop=lambda: worker.is_cancelled,
            )
        except WorkspaceError as error:
            self.post_message(Judged(one_line(str(error)), done=True, problem=True))
            return
        seen = _counted(sum(summary.steps.values()))
        found = "" if opened.judges_hidden else f": {summary.suggestions} suggestions"
        words = f"{RULES} has looked at {seen}{found}"
        if summary.stopped:
            words = f"{RULES} was cancelled after {seen}; J goes on from there"
        elif summary.failed:
            words = f"{RULES} failed on {_counted(len(summary.failed))}: " + one_line(
                summary.failed[0].problem or ""
            )
        self.post_message(Judged(words, True, bool(summary.failed), more))

    @work(thread=True, group="judge", exclusive=True)
    def run_model(self, traces: Sequence[Trace], opened: OpenWorkspace, plan: Plan) -> None:
        """Ask a model about these traces and store what it finds."""
        from mast_tui.ui.services.model_judge import run_model

        worker = get_current_worker()
        run_model(plan, traces, opened, self.post_message, lambda: worker.is_cancelled)


def _counted(traces: int) -> str:
    return "1 trace" if traces == 1 else f"{traces:,} traces"
