"""What a run would ask for and cost, told before anything is sent."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple, dataclass
from operator import add
from typing import Final

from mast_tui.judges.llm.errors import TraceFails
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
from mast_tui.judges.llm.prompt.windows import plan, split
from mast_tui.judges.llm.request import Window, is_context_size
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

COUNTED_LESS: Final = 1.15
"""So many times what servers count for a request is its estimate, in the median."""


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
    judged_before = None if workspace is None or again else JudgedBefore(setup, workspace)
    expected = expected_answers(setup, workspace)
    so_far = Estimate()
    for trace in traces:
        begins = so_far.requests == 0
        so_far += _of_trace(trace, setup, judged_before, expected)
        if begins and so_far.requests:
            so_far += Estimate(tokens_out=expected.first_try_out)
        on_trace(so_far)
        del trace
    return so_far


def _of_trace(
    trace: Trace, setup: Setup, before: JudgedBefore | None, expected: ExpectedAnswers
) -> Estimate:
    """Estimate what judging one trace would take."""
    try:
        read_fully(trace)
        if before is not None and before.has(TraceRecord.of(trace)):
            return Estimate(traces=1, known=1)
        # What is taken out is short: without looking for it the sums are the same, and sooner.
        view = RedactedView(trace, Redaction.none())
        planned = plan(view, setup.prompt, setup.parameters)
        windows = tuple(_as_read(setup, view, planned, expected.longest_request))
        alone = len(windows) == 1
        tokens_in = sum(_sent(setup, view, window, alone=alone) for window in windows)
        shortened = 0 if alone else _shortened(setup, view)
    except OSError:
        return Estimate(traces=1, unread=1)
    samples = setup.parameters.samples
    requests = len(windows) * samples
    repeat_requests = VERIFIED * len(windows) if setup.parameters.verify else 0
    data_tokens = min(SHOWN_TOKENS, sum(view.tokens) + HEADER_TOKENS * len(view))
    verifying = setup.prompt.verification.system.tokens + MODE_TOKENS + data_tokens
    answer = expected.answer
    second_look = answer if expected.measured else min(answer, ANSWER_TOKENS)
    return Estimate(
        traces=1,
        windows=len(windows),
        requests=requests + repeat_requests,
        tokens_in=round((tokens_in * samples + repeat_requests * verifying) * expected.tries),
        tokens_out=answer * requests + repeat_requests * second_look,
        shortened=shortened,
    )


def _as_read(
    setup: Setup, view: RedactedView, planned: tuple[Window, ...], longest: int | None
) -> Iterator[Window]:
    """Yield the windows of a trace, split as they will be for a server that reads little.

    Args:
        setup: What is asked.
        view: The trace.
        planned: The windows that are tried first.
        longest: About the longest request that the server reads, None where none was too long.
    """
    left = deque(planned)
    while left:
        window = left.popleft()
        if longest is None or _sent(setup, view, window, alone=len(planned) == 1) <= longest:
            yield window
            continue
        try:
            left.extendleft(reversed(split(window, view, setup.prompt, setup.parameters)))
        except TraceFails:
            yield window


def _sent(setup: Setup, view: RedactedView, window: Window, *, alone: bool) -> int:
    """Estimate the tokens of the request about a window, ``alone`` if it shows the whole trace."""
    budget = window.tokens or setup.parameters.window_tokens
    task = min(estimate(view.task), task_room(budget))
    tokens = view.tokens[window.first : window.last + 1]
    span_tokens = sum(tokens)
    if not alone or window.tokens is not None:
        span_tokens = sum(map(min, tokens, _most_shown(view, budget)[window.first :]))
    data = FRAME_TOKENS + task + span_tokens + HEADER_TOKENS * len(tokens)
    digest = 0 if window.first == 0 else digest_room(budget)
    return setup.prompt.system.tokens + min(budget, data) + digest


def _shortened(setup: Setup, view: RedactedView) -> int:
    """Count the spans that are shortened in a trace of several windows."""
    return sum(map(int.__gt__, view.tokens, _most_shown(view, setup.parameters.window_tokens)))


def _most_shown(view: RedactedView, budget: int) -> list[int]:
    """Return the most tokens of each span's text in a window of a trace of several."""
    spans = len(view)
    return [unit(budget) * weight(index, spans) for index in range(spans)]


@dataclass(frozen=True, slots=True)
class ExpectedAnswers:
    """The tokens that answers are expected to take.

    ``answer`` is for one that can be used, with what was cut or of no use before it; ``tries`` is
    how often a request is sent for it. ``first_try_out`` is what a thinking model takes once in a
    run before it gets the room that it needs, ``longest_request`` about the longest one that the
    server reads (None: none was too long). ``measured`` says that all this is by earlier answers.
    """

    answer: int
    tries: float = 1.0
    first_try_out: int = 0
    longest_request: int | None = None
    measured: bool = False


def expected_answers(setup: Setup, workspace: Workspace | None) -> ExpectedAnswers:
    """Expect what this judge's answers took here, else those of its model, else a guess.

    Args:
        setup: The judge.
        workspace: Where its answers are kept.
    """
    model = setup.parameters.model
    runs = [
        run
        for run in (() if workspace is None else workspace.runs())
        if run.settings is not None and run.settings.model == model
    ]
    of_judge = [run.id for run in runs if run.judge == setup.judge]
    for run_ids in (of_judge, [run.id for run in runs]):
        if workspace is None or not run_ids:
            continue
        statistics = workspace.answer_statistics(run_ids)
        if statistics.answers:
            longest = statistics.longest_request
            reads_little = statistics.overflows > 0 or is_context_size(longest)
            return ExpectedAnswers(
                answer=-(-(statistics.tokens_out + statistics.repeats_out) // statistics.answers),
                tries=1 + statistics.repeats / statistics.answers,
                first_try_out=statistics.thought_out,
                longest_request=round(longest * COUNTED_LESS) if reads_little else None,
                measured=True,
            )
    guess = ANSWER_TOKENS + ANSWER_TOKENS_A_MODE * len(setup.prompt.modes)
    return ExpectedAnswers(min(setup.parameters.answer_tokens, guess))
