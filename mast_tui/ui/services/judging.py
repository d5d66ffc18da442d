"""Running a judge on traces: the choice of a judge, its progress, and cancelling it.

A judge runs in a thread. Its suggestions are in the workspace before they are reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from textual.worker import Worker, get_current_worker

from mast_tui.configuration import read_judge_configuration
from mast_tui.errors import MastError
from mast_tui.judges.llm.run.setup import (
    configured_setup,
    is_notice_seen,
    record_notice,
    what_is_sent,
)
from mast_tui.judges.llm.teaching import default_version
from mast_tui.judges.protocol import Judge
from mast_tui.judges.rules import RulesJudge
from mast_tui.judges.runner import Progress, run_judge
from mast_tui.judges.twins import TwinsJudge, comparable
from mast_tui.safe_text import one_line
from mast_tui.traces.model import Trace
from mast_tui.ui.context import HearsJudge, JudgeProgress
from mast_tui.ui.dialogs.judge_choice import (
    RULES_KEY,
    TWINS_KEY,
    WAYS,
    JudgeDialog,
    tokens_of,
)
from mast_tui.ui.dialogs.note import NoteScreen
from mast_tui.ui.services.model_judge import Plan, estimate_words, run_model
from mast_tui.ui.services.open_workspace import OpenWorkspace
from mast_tui.ui.services.trace_catalog import OneByOne
from mast_tui.ui.services.workspace import WorkspaceService
from mast_tui.ui.widgets.hint_bar import HintBar
from mast_tui.ui.wording import counted
from mast_tui.workspace import WorkspaceError
from mast_tui.writes import HeldKeys

if TYPE_CHECKING:
    from mast_tui.ui.context import MastApp

RULES: Final = "The rules judge"
TWINS: Final = "The twins judge"


RESERVED_CELLS: Final = 12
"""The cells of the last line that a message cannot use."""


@dataclass(slots=True)
class RunningJudge:
    """The judge at work.

    Attributes:
        name: The name of the judge.
        message: Its last report.
        worker: The worker that runs it; None before the start.
        stopping: Whether the user has cancelled it.
    """

    name: str
    message: str
    worker: Worker[None] | None = None
    stopping: bool = False


class JudgeRuns:
    """The judge at work, of which there is at most one. ``J`` on any screen asks to cancel it."""

    def __init__(self, app: MastApp, workspace: WorkspaceService) -> None:
        self.at_work: RunningJudge | None = None
        """The judge at work, or None."""
        self._app = app
        self._workspace = workspace

    def begin(self, traces: Sequence[Trace], plan: Plan | None = None) -> None:
        """Run a judge on traces; if a judge is already running, ask whether to cancel that one.

        Args:
            traces: The traces; the judge reads them without the masks of a study.
            plan: The model to ask; without one the user chooses a judge.
        """
        if not isinstance(traces, OneByOne):
            traces = [trace.with_masks(None) for trace in traces]
        if self.at_work is not None:
            self._ask_to_cancel(self.at_work)
        elif self._workspace.refused is not None:
            self._app.show_error("No workspace is open, so no judge can store its suggestions")
        elif plan is not None:
            self._workspace.when_ready(
                lambda opened: self._app.writes.do(
                    partial(self._confirm_plan, traces, opened, plan)
                )
            )
        else:
            self._workspace.when_ready(
                lambda opened: self._app.writes.do(partial(self._choose_judge, traces, opened))
            )

    async def _choose_judge(self, traces: Sequence[Trace], opened: OpenWorkspace) -> None:
        """Ask which judge to run, and start it; the choice is stored for the next time.

        If only the rules are possible, start them without a question.
        """
        setup = None
        try:
            configured = read_judge_configuration()
            if configured.model is not None:
                setup = configured_setup(opened.taxonomy, configured)
                read_version = partial(default_version, opened.workspace, opened.taxonomy.ref)
                version = await self._workspace.carry_out(read_version)
                setup = setup if version is None else version.applied_to(setup)
        except MastError as error:
            self._app.show_error(f"{error}; no model can be asked")
        twin_runs = self._comparable_runs(traces)
        help_key = self._app.key_of("everywhere.help")
        hint = "" if setup is not None else f"{help_key} explains how to use a model"
        if setup is None and not twin_runs:
            self._start_rules(traces, opened, hint)
            return
        setting = f"judge.chosen:{opened.annotator}"
        previous_key = await self._workspace.carry_out(
            partial(opened.workspace.get_setting, setting)
        )

        def answered(answer: tuple[str, Plan | None] | None) -> None:
            """Store the chosen judge, and start it; a model asks first."""
            if answer is None:
                return
            key, plan = answer
            store_key = partial(opened.workspace.set_setting, setting, key)
            self._app.writes.do(partial(self._workspace.carry_out, store_key), HeldKeys.NOTHING)
            if plan is not None:
                self._app.writes.do(partial(self._confirm_plan, traces, opened, plan))
            elif key == TWINS_KEY:
                self._start_twins(traces, opened, twin_runs)
            else:
                self._start_rules(traces, opened, hint)

        is_possible = {TWINS_KEY: bool(twin_runs), **dict.fromkeys(WAYS, setup is not None)}
        default = RULES_KEY
        if previous_key is not None and is_possible.get(previous_key):
            default = previous_key
        dialog = JudgeDialog(setup, opened, traces, twins=bool(twin_runs), default=default)
        self._app.ask(dialog, answered)

    async def _confirm_plan(
        self, traces: Sequence[Trace], opened: OpenWorkspace, plan: Plan
    ) -> None:
        """Ask what a model may receive and spend, then start it.

        - If all traces were judged before, show a message and do not start.
        - For several traces, ask for the token limit.
        - For one trace, ask only before the first run with this server in this workspace.
        """
        app = self._app
        trace_count = plan.estimate.to_judge
        token_limit = plan.default_allowance()
        if not trace_count:
            app.say(f"{estimate_words(plan)} Run mast-tui judge --again to ask again.", seconds=8)
            return
        has_consented = await self._workspace.carry_out(
            lambda: is_notice_seen(opened.workspace, plan.setup)
        )
        if has_consented is None:
            return

        def start(tokens: int) -> None:
            """Record that the user has consented, then start the model with a token limit."""

            async def record_and_start() -> None:
                await self._workspace.carry_out(lambda: record_notice(opened.workspace, plan.setup))
                self._start_model(traces, opened, plan.with_allowance(tokens))

            app.writes.do(record_and_start)

        def answered(answer: str | None) -> None:
            if answer == "y":
                start(token_limit)

        def limit_entered(text: str | None) -> None:
            if text is not None:
                start(int(text))

        sent_text = what_is_sent(plan.setup)
        if trace_count > 1:
            dialog = NoteScreen(
                f"Ask {plan.name} about {trace_count:,} traces?",
                f"{token_limit:,}",
                question=("" if has_consented else f"{sent_text}\n\n")
                + f"{estimate_words(plan)}\n\n"
                "It stops when so many tokens are spent, in and out together:",
                hint="Enter begins · Esc asks nothing",
                check=tokens_of,
                offered=True,
            )
            app.ask(dialog, limit_entered)
        elif has_consented:
            start(token_limit)
        else:
            app.ask_key(
                f"Send this trace to {one_line(plan.setup.host, 60)}?",
                f"{sent_text}\n\n{estimate_words(plan)} It stops at {token_limit:,} tokens."
                "\n\nThis is asked once for this server and workspace.",
                (("y", f"send it and ask {plan.name}"), ("n", "send nothing")),
                answered,
                default="n",
            )

    def _comparable_runs(self, traces: Sequence[Trace]) -> Sequence[Trace]:
        """Return the comparable runs in the library with the same tasks as these traces."""
        catalog_traces = self._app.catalog.traces
        current_traces = (catalog_traces.get(trace.identity.trace_id, trace) for trace in traces)
        tasks = {trace.meta.same_task for trace in current_traces}
        runs = (trace for trace in catalog_traces.values() if trace.meta.same_task in tasks)
        return OneByOne(comparable(runs))

    def _ask_to_cancel(self, at_work: RunningJudge) -> None:
        """Ask whether to cancel the judge at work."""

        def answered(answer: str | None) -> None:
            """Cancel the judge after ``y``."""
            # The judge may have ended meanwhile.
            if answer == "y" and self.at_work is at_work and at_work.worker is not None:
                at_work.stopping = True
                at_work.worker.cancel()
                self._show_report(f"{at_work.name}: stopping …")

        self._app.ask_key(
            f"{at_work.name} is at work",
            f"{at_work.message}\n\nIts suggestions and answers are kept. Run it again to continue.",
            (("y", "cancel it"), ("n", "let it continue")),
            answered,
            default="n",
        )

    def _start_rules(self, traces: Sequence[Trace], opened: OpenWorkspace, hint: str) -> None:
        """Start the rules judge; ``hint`` is shown after its end."""

        def run() -> None:
            judge = RulesJudge()
            self._run_offline_judge(RULES, judge, traces, opened, hint, judge.covered_by)

        self._start_worker(RULES, f"{RULES} looks at {counted(len(traces), 'trace')} …", run)

    def _start_twins(
        self, traces: Sequence[Trace], opened: OpenWorkspace, runs: Sequence[Trace]
    ) -> None:
        """Start the twins judge.

        Args:
            traces: The traces to judge.
            opened: The open workspace.
            runs: The runs of the same tasks, which the judge reads first.
        """

        def run() -> None:
            judge = TwinsJudge(self._read_runs(runs))
            self._run_offline_judge(TWINS, judge, traces, opened, judge.summary, covered_by=None)

        self._start_worker(TWINS, f"{TWINS} reads {counted(len(runs), 'run')} …", run)

    def _start_model(self, traces: Sequence[Trace], opened: OpenWorkspace, plan: Plan) -> None:
        """Start the model of a plan."""

        def run() -> None:
            worker = get_current_worker()
            run_model(plan, traces, opened, self._post_report, lambda: worker.is_cancelled)

        self._start_worker(
            plan.name, f"{plan.name} is asked about {counted(len(traces), 'trace')} …", run
        )

    def _start_worker(self, name: str, message: str, work: Callable[[], None]) -> None:
        """Start a judge in a worker, and show its first message.

        Args:
            name: The name of the judge.
            message: The message.
            work: Runs the judge.
        """
        self.at_work = RunningJudge(name, message)
        for bar in self._app.screen.query(HintBar):
            bar.clear()
        self._show_report(message)
        self.at_work.worker = self._app.run_worker(work, group="judge", exclusive=True, thread=True)

    def _show_report(self, message: str) -> None:
        if self.at_work is not None:
            self.at_work.message = message
        self._app.refresh_hints()

    def _post_report(self, message: JudgeProgress) -> None:
        self._app.call_later(self.judged, message)

    def judged(self, message: JudgeProgress) -> None:
        """Show a report of the running judge, and pass it on to the screens.

        If the last report is a problem that is too long for the last line, or that the visible
        screen does not show, it is shown as an error too.
        """
        at_work = self.at_work
        if message.done:
            self.at_work = None
            self._show_report("")
        elif at_work is not None and not at_work.stopping:
            self._show_report(message.text)
        is_shown = False
        for screen in self._app.screen_stack:
            if isinstance(screen, HearsJudge):
                screen.judged(message)
                is_shown = is_shown or screen is self._app.screen
        is_cut = len(message.text) > self._app.size.width - RESERVED_CELLS
        if message.done and message.problem and (is_cut or not is_shown):
            self._app.show_error(message.text)  # the whole text, in several lines

    def _read_runs(self, runs: Sequence[Trace]) -> Iterator[Trace]:
        """Yield runs and report the progress, until the judge is cancelled."""
        worker = get_current_worker()
        for read_count, run in enumerate(runs):
            if worker.is_cancelled:
                return
            self._post_report(JudgeProgress(f"{TWINS}: {read_count} of {len(runs)} runs read"))
            yield run

    def _run_offline_judge(
        self,
        name: str,
        judge: Judge,
        traces: Sequence[Trace],
        opened: OpenWorkspace,
        hint: str,
        covered_by: Sequence[str] | None = (),
    ) -> None:
        """Run a judge without a model on traces, store its suggestions, and report the result.

        Args:
            name: The name of the judge.
            judge: The judge.
            traces: The traces.
            opened: The open workspace.
            hint: A hint for the last report.
            covered_by: The names of judges whose verdicts include those of this judge. Traces that
                they have judged are skipped. None judges all traces again.
        """
        worker = get_current_worker()

        def report_progress(progress: Progress) -> None:
            message = f"{name}: {progress.done} of {counted(len(traces), 'trace')} done"
            self._post_report(JudgeProgress(message, trace_id=progress.trace_id))

        try:
            summary = run_judge(
                judge,
                opened.taxonomy,
                traces,
                opened.workspace,
                covered_by=covered_by,
                on_progress=report_progress,
                stop=lambda: worker.is_cancelled,
            )
        except WorkspaceError as error:
            self._post_report(JudgeProgress(one_line(str(error)), done=True, problem=True))
            return
        traces_text = counted(sum(summary.traces.values()), "trace")
        count = summary.suggestions
        result = counted(count, "suggestion") if count else "nothing found"
        if summary.stopped:
            message = f"{name} was cancelled after {traces_text}"
        elif summary.failed:
            problem = one_line(summary.failed[0].problem or "")
            message = f"{name} failed on {counted(len(summary.failed), 'trace')}: {problem}"
        elif opened.judges_hidden:
            message = f"{name} has looked at {traces_text}"
        elif len(traces) == 1:
            message = f"{name}: {result}"
        else:
            message = f"{name} has looked at {traces_text}: {result}"
        has_problem = bool(summary.failed)
        self._post_report(JudgeProgress(message, done=True, problem=has_problem, more=hint))
