"""What a run would ask for and cost, told before anything is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass
from operator import add
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

    def __add__(self, other: Estimate) -> Estimate:
        return Estimate(*map(add, astuple(self), astuple(other)))

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
    before = None if workspace is None or again else JudgedBefore(setup, workspace)
    answer = expected_answer(setup, workspace)
    so_far = Estimate()
    for trace in traces:
        so_far += _of_trace(trace, setup, before, answer)
        on_trace(so_far)
        del trace
    return so_far


def _of_trace(trace: Trace, setup: Setup, before: JudgedBefore | None, answer: int) -> Estimate:
    """What judging one trace would take, with so many tokens for an answer."""
    try:
        read_fully(trace)
        if before is not None and before.has(TraceRecord.of(trace)):
            return Estimate(traces=1, known=1)
        # What is taken out is short: without looking for it the sums are the same, and sooner.
        view = RedactedView(trace, Redaction.none())
        windows = plan(view, setup.prompt, setup.parameters)
        tokens_in, shortened = _sent(setup, view, windows)
    except OSError:
        return Estimate(traces=1, unread=1)
    samples = setup.parameters.samples
    requests = len(windows) * samples
    again = VERIFIED * len(windows) if setup.parameters.verify else 0
    shown = min(SHOWN_TOKENS, sum(view.tokens) + HEADER_TOKENS * len(view))
    verifying = setup.prompt.verification.system.tokens + MODE_TOKENS + shown
    return Estimate(
        traces=1,
        windows=len(windows),
        requests=requests + again,
        tokens_in=tokens_in * samples + again * verifying,
        tokens_out=answer * requests + again * min(answer, ANSWER_TOKENS),
        shortened=shortened,
    )


def _sent(setup: Setup, view: RedactedView, windows: tuple[Window, ...]) -> tuple[int, int]:
    """The tokens of the requests about a trace, and how many of its spans are shortened."""
    budget = setup.parameters.window_tokens
    task = min(estimate(view.task), task_room(budget))
    alone = len(windows) == 1
    spans = len(view)
    most = [unit(budget) * weight(index, spans) for index in range(spans)] if not alone else []
    total = 0
    for window in windows:
        tokens = view.tokens[window.first : window.last + 1]
        shown = sum(tokens) if alone else sum(map(min, tokens, most[window.first :]))
        data = FRAME_TOKENS + task + shown + HEADER_TOKENS * len(tokens)
        total += setup.prompt.system.tokens + min(budget, data)
        total += 0 if window.first == 0 else digest_room(budget)
    cut = 0 if alone else sum(map(int.__gt__, view.tokens, most))
    return total, cut


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
