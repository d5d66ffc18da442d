"""What a run would ask for and cost, told before anything is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from mast_tui.judges.llm.prompt.redacted_view import RedactedView
from mast_tui.judges.llm.prompt.redaction import Redaction
from mast_tui.judges.llm.prompt.token_budget import (
    FRAME_TOKENS,
    HEADER_TOKENS,
    digest_room,
    task_room,
    unit,
    weight,
)
from mast_tui.judges.llm.prompt.tokens import estimate
from mast_tui.judges.llm.prompt.verification import MODE_TOKENS, SHOWN_TOKENS
from mast_tui.judges.llm.prompt.windows import plan
from mast_tui.judges.llm.request import Window
from mast_tui.judges.llm.run.run_journal import JudgedBefore
from mast_tui.judges.llm.run.setup import Setup
from mast_tui.traces.library import read_fully
from mast_tui.traces.model import Trace
from mast_tui.workspace import TraceRecord, Workspace

ANSWER_TOKENS: Final = 300
ANSWER_TOKENS_A_MODE: Final = 40
"""A guess at what an answer takes, where this model was not asked here before."""

VERIFIED: Final = 3
"""A guess at how many findings of a window are looked at once more, where that is asked for."""

ENOUGH: Final = 5
"""From so many answers of a model on, what they took is a better guess."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Of so many ``traces`` how many are ``known``, and what judging the others takes.

    ``unread`` could not be read. ``requests`` are windows times samples, and a guess at how many
    findings are looked at once more; tokens are estimates from characters, and rather too many.
    ``shortened`` counts the spans whose text does not fit whole.
    """

    traces: int = 0
    known: int = 0
    unread: int = 0
    windows: int = 0
    requests: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    shortened: int = 0

    @property
    def to_judge(self) -> int:
        """How many traces the model would be asked about."""
        return self.traces - self.known - self.unread

    def cost(self, setup: Setup) -> float | None:
        """What that would cost, None where nobody has said the prices."""
        return None if setup.prices is None else setup.prices.cost(self.tokens_in, self.tokens_out)


def estimate_run(
    setup: Setup,
    traces: Iterable[Trace],
    workspace: Workspace | None,
    *,
    again: bool = False,
    on_trace: Callable[[Estimate], object] = lambda _: None,
) -> Estimate:
    """What judging the traces would take; each is read once and let go, and nothing is written.

    ``on_trace`` is told what was found so far after each of them.
    """
    counted = _Counted(setup, workspace, again)
    for trace in traces:
        counted.add(trace)
        on_trace(counted.so_far)
        del trace
    return counted.so_far


class _Counted:
    """The estimate as far as it has come."""

    def __init__(self, setup: Setup, workspace: Workspace | None, again: bool) -> None:
        self._setup = setup
        self._before = None if workspace is None or again else JudgedBefore(setup, workspace)
        self._answer = expected_answer(setup, workspace)
        self._system: int | None = None
        self.so_far = Estimate()

    def add(self, trace: Trace) -> None:
        """Count one trace."""
        so_far = replace(self.so_far, traces=self.so_far.traces + 1)
        try:
            read_fully(trace)
            if self._before is not None and self._before.has(TraceRecord.of(trace)):
                self.so_far = replace(so_far, known=so_far.known + 1)
                return
            # What is taken out is short: without looking for it the sums are the same, and sooner.
            view = RedactedView(trace, Redaction.none())
            windows = plan(view, self._setup.prompt, self._setup.parameters)
            tokens_in, shortened = self._sent(view, windows)
        except OSError:
            self.so_far = replace(so_far, unread=so_far.unread + 1)
            return
        requests = len(windows) * self._setup.parameters.samples
        again = VERIFIED * len(windows) if self._setup.parameters.verify else 0
        shown = min(SHOWN_TOKENS, sum(view.tokens) + HEADER_TOKENS * len(view))
        self.so_far = replace(
            so_far,
            windows=so_far.windows + len(windows),
            requests=so_far.requests + requests + again,
            tokens_in=so_far.tokens_in
            + tokens_in * self._setup.parameters.samples
            + again * (self._setup.prompt.verification.tokens + MODE_TOKENS + shown),
            tokens_out=so_far.tokens_out
            + self._answer * requests
            + again * min(self._answer, ANSWER_TOKENS),
            shortened=so_far.shortened + shortened,
        )

    def _sent(self, view: RedactedView, windows: tuple[Window, ...]) -> tuple[int, int]:
        """The tokens of the requests about a trace, and how many of its spans are shortened."""
        budget = self._setup.parameters.window_tokens
        task = min(estimate(view.task), task_room(budget))
        alone = len(windows) == 1
        spans = len(view)
        most = [unit(budget) * weight(index, spans) for index in range(spans)] if not alone else []
        total = 0
        for window in windows:
            tokens = view.tokens[window.first : window.last + 1]
            shown = sum(tokens) if alone else sum(map(min, tokens, most[window.first :]))
            data = FRAME_TOKENS + task + shown + HEADER_TOKENS * len(tokens)
            total += self._system_tokens(view, window) + min(budget, data)
            total += 0 if window.first == 0 else digest_room(budget)
        cut = 0 if alone else sum(map(int.__gt__, view.tokens, most))
        return total, cut

    def _system_tokens(self, view: RedactedView, window: Window) -> int:
        """What the words before the data take, which are the same for all requests."""
        if self._system is None:
            request = self._setup.prompt.request(view, replace(window, last=window.first), "")
            self._system = sum(map(estimate, request.system))
        return self._system


def expected_answer(setup: Setup, workspace: Workspace | None) -> int:
    """About how many tokens an answer takes: as this model's took here, else a guess."""
    most = setup.parameters.answer_tokens
    requests = tokens = 0
    for run in () if workspace is None else workspace.runs():
        if run.settings is not None and run.settings.model == setup.parameters.model:
            requests += run.usage.requests
            tokens += run.usage.tokens_out
    if requests >= ENOUGH:
        return min(most, -(-tokens // requests))
    return min(most, ANSWER_TOKENS + ANSWER_TOKENS_A_MODE * len(setup.prompt.modes))
