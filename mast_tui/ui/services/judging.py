"""Running a judge on traces: the choice of a judge, its progress, and cancelling it.

A judge runs in a thread. Its suggestions are stored before they are reported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from textual.worker import Worker, get_current_worker

from mast_tui.configuration import read_judge_configuration
from mast_tui.errors import MastError
from mast_tui.judges.llm.request import Way
from mast_tui.judges.llm.run.estimate import RunEstimate, estimate_run
from mast_tui.judges.llm.run.setup import (
    Setup,
    configured_setup,
    is_notice_seen,
    record_notice,
    sending_notice,
)
from mast_tui.judges.llm.teaching import default_version
from mast_tui.judges.rules import RulesJudge
from mast_tui.judges.runner import Judge, Progress, RunSummary, TraceStatus, run_judge
from mast_tui.judges.twins import TwinsJudge, comparable_runs
from mast_tui.safe_text import one_line
from mast_tui.traces.model import Trace
from mast_tui.ui.base_screen import Stopped
from mast_tui.ui.context import JudgeProgress, ShowsJudgeProgress
from mast_tui.ui.dialogs.dialog import AnswersDialog, NoteScreen
from mast_tui.ui.services.model_judge import Plan, estimate_text, model_name, run_model
from mast_tui.ui.services.open_workspace import OpenWorkspace
from mast_tui.ui.services.trace_catalog import OneByOne
from mast_tui.ui.widgets.bars import MAX_ROWS
from mast_tui.ui.wording import counted
from mast_tui.workspace import WorkspaceError
from mast_tui.writes import HeldKeys

if TYPE_CHECKING:
    from mast_tui.ui.context import MastApp

RULES_KEY: Final = "r"
TWINS_KEY: Final = "t"
MODEL_KEY: Final = "m"
MODEL_TASKS: Final[Mapping[str, Way]] = {MODEL_KEY: "", "d": "whole run", "s": "step by step"}
"""The tasks of the model by key: all modes, or the decisive step in one of two ways."""

ESTIMATE_PROGRESS: Final = "Estimating tokens and cost"

REPORT_EVERY: Final = 20
"""The number of traces between two updates of the progress."""


class JudgeDialog(AnswersDialog[tuple[str, Plan | None]]):
    """A dialog that returns the key of a judge and the plan of a model, or None after Escape.

    If the user chooses a model before its estimate is known, the dialog waits for the estimate.
    """

    def __init__(
        self,
        setup: Setup | None,
        opened: OpenWorkspace,
        traces: Collection[Trace],
        *,
        twins: bool,
        default: str,
        remark: str,
    ) -> None:
        """Make the dialog.

        Args:
            setup: The setup of the model; None if no model is configured.
            opened: The open workspace.
            traces: The traces to judge.
            twins: Whether the twins judge can be chosen.
            default: The key of the judge that Enter chooses.
            remark: A text below the question, or an empty text.
        """
        rows = _judge_rows(setup, twins=twins)
        count = len(traces)
        traces_text = "this trace" if count == 1 else f"{count:,} traces"
        super().__init__(
            f"{'Run the rules judge on' if len(rows) == 1 else 'Which judge for'} {traces_text}?",
            remark,
            rows,
            default=default,
            hint="" if setup is None else f"{ESTIMATE_PROGRESS} …",
        )
        self._setup = setup
        self._opened = opened
        self._traces = traces
        self._estimated_key = default if default in MODEL_TASKS else MODEL_KEY
        """The key of the task that is estimated."""
        self._plan: Plan | None = None
        self._is_model_chosen = False

    @property
    def dialog_keys(self) -> tuple[tuple[str, str], ...]:
        """The keys and their judges."""
        names = {RULES_KEY: "the rules", TWINS_KEY: "the twins", MODEL_KEY: "the model"}
        shown_keys = {MODEL_KEY: " ".join(MODEL_TASKS)}  # The model has a key for each task.
        effects = ((shown_keys.get(key, key), names[key]) for key in self.answers if key in names)
        return (*effects, ("Esc", "cancels"))

    def on_mount(self) -> None:
        """Start the estimate."""
        if self._setup is not None:
            self._estimate_cost(self._setup)

    def _estimate_cost(self, setup: Setup) -> None:
        """Estimate tokens and cost in a worker, then show the estimate or the error."""
        task = MODEL_TASKS[self._estimated_key]
        task_setup = setup.deciding(task) if task else setup  # empty: judge all modes
        workspace = self._opened.workspace

        def report_progress(partial_estimate: RunEstimate) -> None:
            if partial_estimate.traces % REPORT_EVERY == 0:
                self.work.post(partial(self._show_progress, partial_estimate.traces))

        def estimate(stopped: Stopped) -> Iterator[Plan]:
            traces = takewhile(lambda _: not stopped(), self._traces)
            yield Plan(
                task_setup, estimate_run(task_setup, traces, workspace, on_trace=report_progress)
            )

        self.work.run_stages("estimate", estimate, self._show_plan, self._show_failed_estimate)

    def _show_progress(self, traces: int) -> None:
        if self._plan is None:
            self.say_below(f"{ESTIMATE_PROGRESS}: {traces:,} of {len(self._traces):,} traces …")

    def _show_plan(self, plan: Plan) -> None:
        """Show the estimate. If the model is chosen already, close the dialog."""
        self._plan = plan
        self.say_below(estimate_text(plan))
        if self._is_model_chosen:
            self.dismiss((self._estimated_key, plan))

    def _show_failed_estimate(self, problem: str) -> None:
        """Show why there is no estimate, and let the user choose again."""
        self.say_below(problem, error=True)
        self._is_model_chosen = False
        self._estimated_key = ""  # so that the same judge is estimated again

    def take(self, key: str) -> bool:
        """Choose the judge of a key; return False if no judge has the key.

        The dialog closes at once, or for a model when the estimate is known.
        """
        if key not in self.answers:
            return False
        if key not in MODEL_TASKS or self._setup is None:
            self.dismiss((key, None))
        elif key == self._estimated_key and self._plan is not None:
            self.dismiss((key, self._plan))
        else:
            self._is_model_chosen = True
            self.say_below(f"{ESTIMATE_PROGRESS}; the judge starts then …")
            if key != self._estimated_key:
                self._estimated_key = key
                self._plan = None
                self._estimate_cost(self._setup)
        return True


def _judge_rows(setup: Setup | None, *, twins: bool) -> list[tuple[str, str]]:
    """Return the keys and descriptions of the judges that can be chosen."""
    rows = [(RULES_KEY, "the rules: offline, at once")]
    if twins:
        rows.append((TWINS_KEY, "the twins: find what only failed runs of a task do; offline"))
    if setup is not None:
        is_taught = setup.guidelines or setup.examples
        version = f"@{setup.prompt.hash}, as taught," if is_taught else ""
        rows += (
            (MODEL_KEY, f"{model_name(setup)}{version} at {one_line(setup.host, 60)}"),
            ("d", "the same, for the decisive step alone"),
            ("s", "the same, for the decisive step, asked step by step"),
        )
    return rows


def tokens_of(text: str) -> str:
    """Return a number of tokens, such as ``310,000``, ``310k`` or ``1.5M``, as plain digits.

    Raises:
        MastError: The text is no whole number of tokens, or it is zero or too large.
    """
    compact_text = re.sub(r"[\s,_]", "", text.lower())
    match = re.fullmatch(r"(?P<number>[0-9]+\.?[0-9]*)(?P<unit>[km]?)", compact_text)
    if match is None:
        raise MastError(f"“{one_line(text, 20)}” is not a number of tokens, such as 310000 or 310k")
    tokens = Decimal(match["number"]) * {"k": 1_000, "m": 1_000_000, "": 1}[match["unit"]]
    if not match["unit"] and tokens % 1:
        raise MastError("the number of tokens must be whole")
    if not 1 <= tokens < 10**12:
        raise MastError("the number of tokens must be from 1 to 999,999,999,999")
    return str(int(tokens))


RULES: Final = "The rules judge"
TWINS: Final = "The twins judge"


@dataclass(slots=True)
class RunningJudge:
    """The judge at work.

    Attributes:
        name: The name of the judge.
        message: The last report of the judge.
        worker: The worker of the judge; None before the start.
        stopping: Whether the user has cancelled it.
    """

    name: str
    message: str
    worker: Worker[None] | None = None
    stopping: bool = False


class JudgeRuns:
    """The judge at work. There is at most one."""

    def __init__(self, app: MastApp) -> None:
        self.running_judge: RunningJudge | None = None
        """The judge at work, or None."""
        self._app = app

    def begin(self, traces: Collection[Trace], plan: Plan | None = None) -> None:
        """Ask which judge to run on traces. If a judge is at work, ask whether to cancel it.

        Args:
            traces: The traces, which are judged without the masks of a study.
            plan: The planned run of a model judge; None to let the user choose a judge.
        """
        if not isinstance(traces, OneByOne):  # ``OneByOne`` removes the masks itself.
            traces = [trace.with_masks(None) for trace in traces]
        if self.running_judge is not None:
            self._ask_to_cancel(self.running_judge)
            return

        def queue_request(opened: OpenWorkspace) -> None:
            request = JudgingRequest(self._app, self, traces, opened)
            self._app.writes.do(
                request.choose_judge if plan is None else partial(request.confirm_plan, plan)
            )

        self._app.workspace.when_ready_or_refuse(
            queue_request, "no judge can store its suggestions"
        )

    def _ask_to_cancel(self, running_judge: RunningJudge) -> None:
        """Ask whether to cancel the judge at work."""

        def cancel() -> None:
            """Cancel the judge, unless it has ended meanwhile."""
            if self.running_judge is running_judge and running_judge.worker is not None:
                running_judge.stopping = True
                running_judge.worker.cancel()
                self._show_report(f"{running_judge.name}: stopping …")

        self._app.ask_key(
            f"{running_judge.name} is at work",
            f"{running_judge.message}\n\n"
            "If you cancel it, its suggestions and answers are kept. Run it again to continue.",
            (("y", "cancel it"), ("n", "let it continue")),
            {"y": cancel},
            default="n",
        )

    def start(self, name: str, message: str, work: Callable[[], None]) -> None:
        """Start a judge in a worker, and show its first message.

        Args:
            name: The name of the judge.
            message: The message.
            work: Runs the judge.
        """
        self.running_judge = RunningJudge(name, message)
        # A message in the last line would cover the report.
        self._app.answer("")
        self._show_report(message)
        self.running_judge.worker = self._app.run_worker(
            work, group="judge", exclusive=True, thread=True
        )

    def _show_report(self, message: str) -> None:
        if self.running_judge is not None:
            self.running_judge.message = message
        self._app.refresh_hints()

    def post_report(self, message: JudgeProgress) -> None:
        """Show a report from a worker."""
        self._app.call_later(self.show_judge_progress, message)

    def show_judge_progress(self, message: JudgeProgress) -> None:
        """Show a report of the running judge, and pass it on to the screens.

        A final problem is also shown as an error if it is cut or no visible screen shows it.
        """
        running_judge = self.running_judge
        if message.done:
            self.running_judge = None
            self._show_report("")
        elif running_judge is not None and not running_judge.stopping:
            self._show_report(message.text)
        is_shown = False
        for screen in self._app.screen_stack:
            if isinstance(screen, ShowsJudgeProgress):
                screen.show_judge_progress(message)
                is_shown = is_shown or screen is self._app.screen
        is_cut = len(message.text) > MAX_ROWS * (self._app.size.width - 2)
        if message.done and message.problem and (is_cut or not is_shown):
            self._app.show_error(message.text)  # the whole text, in several lines


class JudgingRequest:
    """A request to judge some traces: choosing, starting and running a judge."""

    def __init__(
        self, app: MastApp, runs: JudgeRuns, traces: Collection[Trace], opened: OpenWorkspace
    ) -> None:
        """Prepare the request.

        Args:
            app: The app.
            runs: Starts the judge, and shows its reports.
            traces: The traces, without the masks of a study.
            opened: The workspace that stores the suggestions.
        """
        self._app = app
        self._runs = runs
        self._traces = traces
        self._opened = opened
        self._chosen_setting = f"judge.chosen:{opened.annotator}"
        """The name of the setting for the judge that the annotator chose last."""

    async def choose_judge(self) -> None:
        """Ask which judge to run, and start it; remember the choice.

        For a single trace, the rules judge starts without a question if it is the only judge.
        """
        setup = await self._model_setup()
        help_key = self._app.key_of("everywhere.help")
        hint = "" if setup is not None else f"To use a language model: press {help_key}, then End"
        twin_runs = self._comparable_runs()
        if setup is None and not twin_runs and len(self._traces) == 1:
            self._start_rules(hint)
            return
        get_chosen = partial(self._opened.workspace.get_setting, self._chosen_setting)
        previous_key = await self._app.workspace.carry_out(get_chosen)
        is_possible = {TWINS_KEY: bool(twin_runs), **dict.fromkeys(MODEL_TASKS, setup is not None)}
        default = RULES_KEY
        if previous_key is not None and is_possible.get(previous_key):
            default = previous_key
        dialog = JudgeDialog(
            setup,
            self._opened,
            self._traces,
            twins=bool(twin_runs),
            default=default,
            remark=self._remark(),
        )
        self._app.ask(dialog, partial(self._start_chosen, twin_runs, hint))

    def _remark(self) -> str:
        """Return a text on the choice of several traces; empty for one trace."""
        if len(self._traces) == 1:
            return ""
        key = self._app.key_of("annotate.judge")
        text = f"To judge only one trace, open it and press {key} there."
        if self._app.catalog.complete:
            return text
        return f"The library is still being read: these are the traces so far. {text}"

    async def _model_setup(self) -> Setup | None:
        """Return the last taught setup of the configured model, or None without a model.

        If the model cannot be asked, show the reason.
        """
        opened = self._opened
        setup = None
        try:
            configured = read_judge_configuration()
            if configured.model is not None:
                setup = configured_setup(opened.taxonomy, configured)
                read_version = partial(default_version, opened.workspace, opened.taxonomy.ref)
                taught_version = await self._app.workspace.carry_out(read_version)
                if taught_version is not None:
                    setup = taught_version.applied_to(setup)
        except MastError as error:
            self._app.show_error(f"{error}; no model can be asked")
        return setup

    def _comparable_runs(self) -> Collection[Trace]:
        """Return the runs with which the twins judge compares these traces.

        These are the library's runs of the same tasks, if some runs have solved the task and others
        have not. They are read one after the other, because there may be many.
        """
        catalog_traces = self._app.catalog.traces
        current_traces = (
            catalog_traces.get(trace.identity.trace_id, trace) for trace in self._traces
        )
        tasks = {trace.meta.task_key for trace in current_traces}
        runs = (trace for trace in catalog_traces.values() if trace.meta.task_key in tasks)
        return OneByOne(comparable_runs(runs))

    def _start_chosen(
        self, twin_runs: Collection[Trace], hint: str, answer: tuple[str, Plan | None]
    ) -> None:
        """Store the key of the chosen judge, and start it; a model needs a confirmation first."""
        key, plan = answer
        store_key = partial(self._opened.workspace.set_setting, self._chosen_setting, key)
        self._app.writes.do(partial(self._app.workspace.carry_out, store_key), HeldKeys.NOTHING)
        if plan is not None:
            self._app.writes.do(partial(self.confirm_plan, plan))
        elif key == TWINS_KEY:
            self._start_twins(twin_runs)
        else:
            self._start_rules(hint)

    async def confirm_plan(self, plan: Plan) -> None:
        """Ask what a model may receive and spend, then start it.

        - If all traces were judged before, show a message instead.
        - For several traces, ask for the token limit.
        - For one trace, ask only before the first run with this server in this workspace.
        """
        trace_count = plan.estimate.to_judge
        if not trace_count:
            self._app.answer(f"{estimate_text(plan)} Run mast-tui judge --again to ask again.")
            return
        notice_seen = await self._app.workspace.carry_out(
            lambda: is_notice_seen(self._opened.workspace, plan.setup)
        )
        if notice_seen is None:  # the workspace cannot be read, which is shown
            return
        if trace_count > 1:
            self._ask_for_limit(plan, "" if notice_seen else f"{sending_notice(plan.setup)}\n\n")
        elif notice_seen:
            self._queue_start(plan, plan.default_allowance())
        else:
            self._ask_to_send(plan)

    def _ask_for_limit(self, plan: Plan, notice: str) -> None:
        """Ask how many tokens a model may spend, and show what is sent to it."""
        dialog = NoteScreen(
            f"Ask {plan.name} about {plan.estimate.to_judge:,} traces?",
            f"{plan.default_allowance():,}",
            question=f"{notice}{estimate_text(plan)}\n\n"
            "The judge stops at this number of tokens, in and out together:",
            hint="Enter begins · Esc cancels",
            check=tokens_of,
            typing_replaces=True,
        )
        self._app.ask(dialog, lambda text: self._queue_start(plan, int(text)))

    def _ask_to_send(self, plan: Plan) -> None:
        """Ask whether the trace may be sent to the server of a model."""
        token_limit = plan.default_allowance()
        self._app.ask_key(
            f"Send this trace to {one_line(plan.setup.host, 60)}?",
            f"{sending_notice(plan.setup)}\n\n"
            f"{estimate_text(plan)} The judge stops at {token_limit:,} tokens."
            "\n\nThis is asked once for this server and workspace.",
            (("y", f"send it and ask {plan.name}"), ("n", "send nothing")),
            {"y": partial(self._queue_start, plan, token_limit)},
            default="n",
        )

    def _queue_start(self, plan: Plan, tokens: int) -> None:
        """Record that the user has seen the notice, then start the model with a token limit."""

        async def record_and_start() -> None:
            await self._app.workspace.carry_out(
                lambda: record_notice(self._opened.workspace, plan.setup)
            )
            self._start_model(plan.with_allowance(tokens))

        self._app.writes.do(record_and_start)

    def _start_rules(self, hint: str) -> None:
        def run() -> None:
            judge = RulesJudge()
            self._run_offline_judge(RULES, judge, hint, judge.covered_by)

        self._runs.start(RULES, f"{RULES} looks at {counted(len(self._traces), 'trace')} …", run)

    def _start_twins(self, runs: Collection[Trace]) -> None:
        def run() -> None:
            judge = TwinsJudge(self._read_runs(runs))
            self._run_offline_judge(TWINS, judge, judge.summary, covered_by=None)

        self._runs.start(TWINS, f"{TWINS} reads {counted(len(runs), 'run')} …", run)

    def _start_model(self, plan: Plan) -> None:
        def run() -> None:
            worker = get_current_worker()
            report = self._runs.post_report
            run_model(plan, self._traces, self._opened, report, lambda: worker.is_cancelled)

        message = f"{plan.name} is asked about {counted(len(self._traces), 'trace')} …"
        self._runs.start(plan.name, message, run)

    def _read_runs(self, runs: Collection[Trace]) -> Iterator[Trace]:
        """Yield runs and report the progress, until the judge is cancelled."""
        worker = get_current_worker()
        for read_count, run in enumerate(runs):
            if worker.is_cancelled:
                return
            self._runs.post_report(JudgeProgress(f"{TWINS}: {read_count} of {len(runs)} runs read"))
            yield run

    def _run_offline_judge(
        self, name: str, judge: Judge, hint: str, covered_by: Sequence[str] | None
    ) -> None:
        """Run a judge without a model, store its suggestions, and report the result.

        Args:
            name: The name of the judge.
            judge: The judge.
            hint: The hint in the last report.
            covered_by: The names of judges. Traces that one of them has judged are skipped. None
                judges all traces again.
        """
        worker = get_current_worker()
        traces_text = counted(len(self._traces), "trace")

        def report_progress(progress: Progress) -> None:
            message = f"{name}: {progress.done} of {traces_text} done"
            self._runs.post_report(JudgeProgress(message, trace_id=progress.trace_id))

        try:
            summary = run_judge(
                judge,
                self._opened.taxonomy,
                self._traces,
                self._opened.workspace,
                covered_by=covered_by,
                on_progress=report_progress,
                stop=lambda: worker.is_cancelled,
            )
        except WorkspaceError as error:
            self._runs.post_report(JudgeProgress(one_line(str(error)), done=True, problem=True))
            return
        message = self._result_message(name, summary)
        self._runs.post_report(
            JudgeProgress(message, done=True, problem=bool(summary.failed), added_hint=hint)
        )

    def _result_message(self, name: str, summary: RunSummary) -> str:
        """Return the message on the result of a judge."""
        known_count = summary.traces[TraceStatus.KNOWN]
        traces_text = counted(sum(summary.traces.values()) - known_count, "trace")
        if known_count:
            traces_text += f" ({known_count} judged before)"
        if summary.stopped:
            return f"{name} was cancelled after {traces_text}"
        if summary.failed:
            problem = one_line(summary.failed[0].problem or "")
            return f"{name} failed on {counted(len(summary.failed), 'trace')}: {problem}"
        if self._opened.judges_hidden:  # so the number of suggestions is hidden too
            return f"{name} has looked at {traces_text}"
        # Suggestions on traces that were judged before are not counted.
        if summary.suggestions:
            noun = "new suggestion" if known_count else "suggestion"
            result = counted(summary.suggestions, noun)
        else:
            result = "nothing new" if known_count else "nothing found"
        if len(self._traces) == 1:
            return f"{name}: {result}"
        return f"{name} has looked at {traces_text}: {result}"
