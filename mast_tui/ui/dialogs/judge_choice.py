"""The choice of a judge: one without a model, or a model whose cost is estimated first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Final

from textual import work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static
from textual.worker import get_current_worker

from mast_tui.errors import MastError
from mast_tui.judges.llm.request import Way
from mast_tui.judges.llm.run.estimate import RunEstimate, estimate_run
from mast_tui.judges.llm.run.setup import Setup
from mast_tui.safe_text import one_line
from mast_tui.traces.model import Trace
from mast_tui.ui.dialogs.dialog import KeyDialog, KeyRow
from mast_tui.ui.services.model_judge import Plan, estimate_words, model_name
from mast_tui.ui.services.open_workspace import OpenWorkspace
from mast_tui.ui.wording import plain_lines, plain_title
from mast_tui.workspace import WorkspaceError

RULES_KEY: Final = "r"
TWINS_KEY: Final = "t"
MODEL_KEY: Final = "m"
WAYS: Final[Mapping[str, Way]] = {MODEL_KEY: "", "d": "whole run", "s": "step by step"}
"""The tasks of the model by key: all modes, or the decisive step in one of two ways."""

ESTIMATING: Final = "Estimating tokens and cost"

REPORT_EVERY: Final = 20
"""The number of traces between two updates of the progress."""


class JudgeDialog(KeyDialog[tuple[str, Plan | None]]):
    """A dialog that returns the key of the judge and the plan of a model, or None after Escape.

    A model that is chosen before its estimate is known is returned with the estimate.
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
        """Make the dialog.

        Args:
            setup: The setup of the model; None if no model is configured.
            opened: The open workspace.
            traces: The traces to judge.
            twins: Whether the twins judge can be chosen.
            default: The key of the judge that Enter chooses.
        """
        super().__init__()
        rows = [(RULES_KEY, "the rules: offline, at once")]
        if twins:
            rows.append((TWINS_KEY, "the twins: what only the failed runs of a task do; offline"))
        if setup is not None:
            rows += (
                (
                    MODEL_KEY,
                    f"{model_name(setup)}{_version_text(setup)} at {one_line(setup.host, 60)}",
                ),
                ("d", "the same, for the decisive step alone"),
                ("s", "the same, for the decisive step, asked step by step"),
            )
        self._title_by_key = dict(rows)
        self._setup = setup
        self._opened = opened
        self._traces = traces
        self.default = default
        self._estimated_key = default if default in WAYS else MODEL_KEY
        """The key of the task that is estimated."""
        self._plan: Plan | None = None
        self._is_chosen = False

    @property
    def dialog_keys(self) -> tuple[tuple[str, str], ...]:
        """The keys and their judges."""
        names = {RULES_KEY: "the rules", TWINS_KEY: "the twins", MODEL_KEY: "the model"}
        keys = {MODEL_KEY: " ".join(WAYS)}
        effects = ((keys.get(key, key), names[key]) for key in self._title_by_key if key in names)
        return (*effects, ("Esc", "asks nothing"))

    def compose(self) -> ComposeResult:
        """Yield the judges, and a line for the estimate."""
        count = len(self._traces)
        with Vertical(classes="dialog") as box:
            box.border_title = plain_title("Which judge?")
            yield Static(
                plain_lines("For this trace." if count == 1 else f"For {count:,} traces."),
                classes="question",
            )
            for key, title in self._title_by_key.items():
                default_mark = "  ↵" if key == self.default else ""
                yield KeyRow(key, f" {title}{default_mark}")
            if self._setup is not None:
                yield Static(plain_lines(f"{ESTIMATING} …"), classes="hint")

    def on_mount(self) -> None:
        """Start the estimate."""
        if self._setup is not None:
            self._estimate_cost(self._setup)

    @work(thread=True, group="estimate", exclusive=True)
    def _estimate_cost(self, setup: Setup) -> None:
        """Estimate tokens and cost in a worker, then show the estimate or the error."""
        worker = get_current_worker()
        key = self._estimated_key
        setup = setup.deciding(WAYS[key]) if WAYS[key] else setup  # empty: judge all modes

        def report_progress(partial_estimate: RunEstimate) -> None:
            if partial_estimate.traces % REPORT_EVERY == 0:
                self.call_later(self._show_progress, partial_estimate.traces)

        traces = takewhile(lambda _: not worker.is_cancelled, self._traces)
        try:
            estimate = estimate_run(setup, traces, self._opened.workspace, on_trace=report_progress)
        except (WorkspaceError, OSError) as error:
            self.call_later(self._show_failed_estimate, key, str(error))
            return
        if not worker.is_cancelled:
            self.call_later(self._show_plan, key, Plan(setup, estimate))

    def _show_progress(self, traces: int) -> None:
        """Show the progress of the estimate."""
        if self._plan is None:
            self.say_below(f"{ESTIMATING}: {traces:,} of {len(self._traces):,} traces …")

    def _show_plan(self, key: str, plan: Plan) -> None:
        """Show the estimate; if the model was chosen already, return it."""
        if key == self._estimated_key:
            self._plan = plan
            self.say_below(estimate_words(plan))
            if self._is_chosen:
                self.dismiss((key, plan))

    def _show_failed_estimate(self, key: str, problem: str) -> None:
        """Show why there is no estimate, and let the user choose again."""
        if key == self._estimated_key:
            self.say_below(problem, error=True)
            self._is_chosen = False
            self._estimated_key = ""

    def take(self, key: str) -> bool:
        """Choose the judge of a key; return False if no judge has the key.

        The dialog returns the key and the plan, which is None for a judge without an estimate. For
        a model it waits until the estimate is known.
        """
        if key not in self._title_by_key:
            return False
        if key not in WAYS or self._setup is None:
            self.dismiss((key, None))
        elif key == self._estimated_key and self._plan is not None:
            self.dismiss((key, self._plan))
        else:
            self._is_chosen = True
            self.say_below(f"{ESTIMATING}; the judge starts then …")
            if key != self._estimated_key:
                self._estimated_key = key
                self._plan = None
                self._estimate_cost(self._setup)
        return True


def _version_text(setup: Setup) -> str:
    """Return the version of the judge; an empty text for a judge that no one has taught."""
    return f"@{setup.prompt.hash}, as taught," if setup.guidelines or setup.examples else ""


def tokens_of(text: str) -> str:
    """Return the digits of a number of tokens, such as ``310,000``, ``310k`` or ``1.5M``.

    Raises:
        MastError: The text is no whole number of tokens, or it is zero or too large.
    """
    compact_text = text.strip().lower().replace(",", "").replace("_", "").replace(" ", "")
    unit = {"k": 1_000, "m": 1_000_000}.get(compact_text[-1:], 1)
    number = compact_text if unit == 1 else compact_text[:-1]
    integer_part, _, decimals = number.partition(".")
    is_integer = integer_part.isdecimal() and integer_part.isascii()
    if not is_integer or (decimals and not decimals.isdecimal()):
        raise MastError(f"“{one_line(text, 20)}” is not a number of tokens, such as 310000 or 310k")
    if unit == 1 and decimals:
        raise MastError("the number of tokens must be whole")
    tokens = int(float(number) * unit) if unit > 1 else int(integer_part)
    if not 0 < tokens < 10**12:
        raise MastError("that is not a possible number of tokens; Esc asks nothing")
    return str(tokens)
