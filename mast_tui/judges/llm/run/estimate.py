"""The estimate of the requests and the cost of a run, before anything is sent."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from operator import add
from typing import Final

from mast_tui.judges.llm.errors import TraceFails
from mast_tui.judges.llm.prompt.redacted_view import RedactedView
from mast_tui.judges.llm.prompt.story import STORY_TOKENS, SUMMARY_TOKENS
from mast_tui.judges.llm.prompt.token_budget import (
    FRAME_TOKENS,
    HEADER_TOKENS,
    story_room,
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
from mast_tui.redaction.engine import Redaction
from mast_tui.traces.library import read_fully
from mast_tui.traces.model import Trace
from mast_tui.workspace import TraceRecord, Workspace

ANSWER_TOKENS: Final = 300
ANSWER_TOKENS_A_MODE: Final = 40
"""A guess at the tokens of an answer of a model without earlier answers."""

VERIFIED: Final = 3
"""A guess at the number of findings of a window that are verified."""

CHECKED: Final = 3
"""A guess at the most findings that only one window of a trace of several has."""

COUNTED_LESS: Final = 1.15
"""The median ratio of the estimated tokens of a request to the count of servers."""


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """The estimated requests and tokens of a run over ``traces``, without the ``known`` ones.

    ``unread`` counts the traces that could not be read. ``requests`` are windows × samples, with a
    guess at the number of verifications, and those for the stories of traces of several windows.
    ``story_requests`` and ``story_tokens`` (in and out) are the part of the stories in these and
    in the tokens; tokens are estimated from characters, rather too high.
    ``shortened`` counts the spans whose text does not fit.
    """

    traces: int = 0
    known: int = 0
    unread: int = 0
    windows: int = 0
    requests: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    shortened: int = 0
    story_requests: int = 0
    story_tokens: int = 0

    @property
    def to_judge(self) -> int:
        """The number of traces that the model would judge."""
        return self.traces - self.known - self.unread

    def __add__(self, other: RunEstimate) -> RunEstimate:
        return RunEstimate(*map(add, astuple(self), astuple(other)))

    def cost(self, setup: Setup) -> float | None:
        """Return the cost, or None without prices."""
        return None if setup.prices is None else setup.prices.cost(self.tokens_in, self.tokens_out)


def estimate_run(
    setup: Setup,
    traces: Iterable[Trace],
    workspace: Workspace | None,
    *,
    again: bool = False,
    on_trace: Callable[[RunEstimate], object] = lambda _: None,
) -> RunEstimate:
    """Estimate a run; each trace is read once, and nothing is written.

    Args:
        setup: The judge and its server.
        traces: The traces.
        workspace: The workspace with judged traces and earlier answers, if there is one.
        again: Whether the run judges known traces too.
        on_trace: Called with the estimate so far after each trace.
    """
    judged_before = None if workspace is None or again else JudgedBefore(setup, workspace)
    expected = expected_answers(setup, workspace)
    so_far = RunEstimate()
    for trace in traces:
        begins = so_far.requests == 0
        so_far += _of_trace(trace, setup, judged_before, expected)
        if begins and so_far.requests:
            so_far += RunEstimate(tokens_out=expected.first_try_out)
        on_trace(so_far)
        del trace
    return so_far


def _of_trace(
    trace: Trace, setup: Setup, judged: JudgedBefore | None, expected: ExpectedAnswers
) -> RunEstimate:
    """Estimate the judging of one trace."""
    try:
        read_fully(trace)
        if judged is not None and judged.has(TraceRecord.from_trace(trace)):
            return RunEstimate(traces=1, known=1)
        # Secrets are short: without redaction the sums are the same, and faster to compute.
        view = RedactedView(trace, Redaction.none())
        planned = plan(view, setup.prompt, setup.parameters)
        windows = tuple(_as_read(setup, view, planned, expected.longest_request))
        alone = len(windows) == 1
        tokens_in = sum(_sent(setup, view, window, alone=alone) for window in windows)
        shortened = 0 if alone else _shortened(setup, view)
    except OSError:
        return RunEstimate(traces=1, unread=1)
    samples = setup.parameters.samples
    requests = len(windows) * samples
    has_story = not alone and windows[0].step is None
    story_requests = len(windows) + 1 if has_story else 0
    story_in = _story_sent(setup, view, windows) if has_story else 0
    story_out = len(windows) * SUMMARY_TOKENS + STORY_TOKENS if has_story else 0
    repeat_requests = 0
    if has_story and not setup.parameters.decisive:
        repeat_requests = min(CHECKED, (len(windows) - 1) // 2)
    if setup.parameters.verify:
        repeat_requests = VERIFIED * len(windows)
    data_tokens = min(SHOWN_TOKENS, sum(view.tokens) + HEADER_TOKENS * len(view))
    verifying = setup.prompt.verification.system.tokens + MODE_TOKENS + data_tokens
    answer = expected.answer
    second_look = answer if expected.measured else min(answer, ANSWER_TOKENS)
    return RunEstimate(
        traces=1,
        windows=len(windows),
        requests=requests + repeat_requests + story_requests,
        tokens_in=round(
            (tokens_in * samples + repeat_requests * verifying + story_in) * expected.tries
        ),
        tokens_out=answer * requests + repeat_requests * second_look + story_out,
        shortened=shortened,
        story_requests=story_requests,
        story_tokens=round(story_in * expected.tries) + story_out,
    )


def _as_read(
    setup: Setup, view: RedactedView, planned: tuple[Window, ...], longest: int | None
) -> Iterator[Window]:
    """Yield the windows of a trace, split as they will be for a server that reads little.

    Args:
        setup: The judge and its server.
        view: The trace.
        planned: The windows that are tried first.
        longest: The approximate longest request that the server accepts, None without a limit.
    """
    pending = deque(planned)
    while pending:
        window = pending.popleft()
        if longest is None or _sent(setup, view, window, alone=len(planned) == 1) <= longest:
            yield window
            continue
        try:
            pending.extendleft(reversed(split(window, view, setup.prompt, setup.parameters)))
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
    story = 0 if alone else story_room(budget)
    return setup.prompt.system.tokens + min(budget, data) + story


def _story_sent(setup: Setup, view: RedactedView, windows: Sequence[Window]) -> int:
    """Estimate the tokens of the requests for the summaries and the story of a trace."""
    prompt = setup.prompt
    budget = setup.parameters.window_tokens
    saved = prompt.system.tokens - prompt.story.summary_system.tokens
    summaries = sum(_sent(setup, view, window, alone=False) - saved for window in windows)
    notes = len(windows) * (SUMMARY_TOKENS + HEADER_TOKENS)
    task = min(estimate(view.task), task_room(budget))
    merged = min(budget, notes + FRAME_TOKENS + task)
    # Summaries are written without a story beside the spans.
    return summaries - len(windows) * story_room(budget) + prompt.story.story_system.tokens + merged


def _shortened(setup: Setup, view: RedactedView) -> int:
    """Count the spans that are shortened in a trace of several windows."""
    return sum(map(int.__gt__, view.tokens, _most_shown(view, setup.parameters.window_tokens)))


def _most_shown(view: RedactedView, budget: int) -> list[int]:
    """Return the most tokens of each span's text in a window of a trace of several."""
    spans = len(view)
    return [unit(budget) * weight(index, spans) for index in range(spans)]


@dataclass(frozen=True, slots=True)
class ExpectedAnswers:
    """The expected tokens of answers.

    ``answer`` is for a usable answer, with the cut or unusable ones before it; ``tries`` is the
    number of requests for it. ``first_try_out`` are the tokens that a thinking model uses once in a
    run before it gets enough. ``longest_request`` is the approximate longest request that the
    server accepts, None without a limit. ``measured`` is true if all come from earlier answers.
    """

    answer: int
    tries: float = 1.0
    first_try_out: int = 0
    longest_request: int | None = None
    measured: bool = False


def expected_answers(setup: Setup, workspace: Workspace | None) -> ExpectedAnswers:
    """Return the expected tokens from the judge's earlier answers, else its model's, else a guess.

    Args:
        setup: The judge.
        workspace: The workspace with earlier answers, if there is one.
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
