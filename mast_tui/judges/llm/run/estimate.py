"""The estimate of a run's requests and cost, before anything is sent."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from math import ceil
from operator import add
from typing import Final, NamedTuple

from mast_tui.judges.llm.prompt.redacted_view import RedactedView
from mast_tui.judges.llm.prompt.story import STORY_TOKENS, SUMMARY_TOKENS
from mast_tui.judges.llm.prompt.tokens import (
    FRAME_TOKENS,
    HEADER_TOKENS,
    estimate,
    story_room,
    task_room,
    unit,
    weight,
)
from mast_tui.judges.llm.prompt.verification import MODE_TOKENS, SHOWN_TOKENS
from mast_tui.judges.llm.prompt.windows import plan, split
from mast_tui.judges.llm.request import TraceFails, Window, is_context_size
from mast_tui.judges.llm.run.run_journal import JudgedBefore
from mast_tui.judges.llm.run.setup import Setup
from mast_tui.redaction.engine import Redaction
from mast_tui.traces.library import read_fully
from mast_tui.traces.model import Trace
from mast_tui.workspace import TraceRecord, Workspace

ANSWER_TOKENS: Final = 300
ANSWER_TOKENS_A_MODE: Final = 40
"""A guess at the tokens of an answer: a base, and more for each mode."""

VERIFIED_FINDINGS: Final = 3
"""A guess at the findings of a window that are verified."""

UNSHARED_FINDINGS: Final = 3
"""A guess at the most findings of a trace that only one of its windows has."""

ESTIMATE_RATIO: Final = 1.15
"""The median ratio of a request's estimated tokens to the count of servers."""


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """The estimated requests and tokens of a run; the tokens are rather too high.

    Attributes:
        traces: The number of traces.
        known: The number of traces that were judged before.
        unread: The number of traces that could not be read.
        windows: The number of windows.
        requests: The number of requests on windows, for stories and for verifications.
        tokens_in: The tokens of the requests.
        tokens_out: The tokens of the answers.
        shortened: The number of spans with shortened texts.
        story_requests: The part of ``requests`` for stories.
        story_tokens: The part of ``tokens_in`` and ``tokens_out`` for stories.
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
        """The number of traces for the model to judge."""
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
    """Estimate the requests and tokens of a run; nothing is written.

    Args:
        setup: The judge and its server.
        traces: The traces.
        workspace: The workspace with judged traces and earlier answers, if there is one.
        again: True if the run judges known traces too.
        on_trace: Called with the estimate so far after each trace.
    """
    judged_before = None if workspace is None or again else JudgedBefore(setup, workspace)
    expected = expected_answers(setup, workspace)
    total = RunEstimate()
    for trace in traces:
        had_no_requests = total.requests == 0
        total += _estimate_trace(trace, setup, judged_before, expected)
        # Only the first tries of a run fail because a thinking model has too few tokens.
        if had_no_requests and total.requests:
            total += RunEstimate(tokens_out=expected.first_try_out)
        on_trace(total)
        del trace  # frees the trace before the next one is read
    return total


class _RequestGroup(NamedTuple):
    """The requests of one kind for a trace, and the tokens of their first tries."""

    requests: int = 0
    tokens_in: int = 0
    tokens_out: int = 0


def _estimate_trace(
    trace: Trace, setup: Setup, judged: JudgedBefore | None, expected: ExpectedAnswers
) -> RunEstimate:
    """Estimate the requests and tokens for one trace: judgements, story and verifications.

    The story is a summary of the run, which is sent with each of several windows.
    """
    try:
        read_fully(trace)
        if judged is not None and judged.has(TraceRecord.from_trace(trace)):
            return RunEstimate(traces=1, known=1)
        # Redaction hardly changes the sums, because secrets are short, and it takes time.
        view = RedactedView(trace, Redaction.none())
        planned = plan(view, setup.prompt, setup.parameters)
        windows = tuple(_split_windows(setup, view, planned, expected.longest_request))
        judgements = _judgements(setup, view, windows, expected)
        shortened = 0 if len(windows) == 1 else _shortened_count(setup, view)
    except OSError:
        return RunEstimate(traces=1, unread=1)
    # Windows that each ask about one step have no story.
    has_story = len(windows) > 1 and windows[0].step is None
    story = _story_requests(setup, view, windows) if has_story else _RequestGroup()
    verifications = _verifications(setup, view, len(windows), expected, has_story=has_story)
    groups = (judgements, verifications, story)
    return RunEstimate(
        traces=1,
        windows=len(windows),
        requests=sum(group.requests for group in groups),
        tokens_in=round(sum(group.tokens_in for group in groups) * expected.tries),
        tokens_out=sum(group.tokens_out for group in groups),
        shortened=shortened,
        story_requests=story.requests,
        story_tokens=round(story.tokens_in * expected.tries) + story.tokens_out,
    )


def _judgements(
    setup: Setup, view: RedactedView, windows: Sequence[Window], expected: ExpectedAnswers
) -> _RequestGroup:
    """Estimate the requests for the modes, or for the decisive step, of each window."""
    samples = setup.parameters.samples
    is_whole = len(windows) == 1
    tokens_of_a_sample = sum(
        _request_tokens(setup, view, window, is_whole=is_whole) for window in windows
    )
    requests = len(windows) * samples
    return _RequestGroup(requests, tokens_of_a_sample * samples, expected.answer * requests)


def _verifications(
    setup: Setup,
    view: RedactedView,
    window_count: int,
    expected: ExpectedAnswers,
    *,
    has_story: bool,
) -> _RequestGroup:
    """Guess the requests that verify findings."""
    count = 0
    if setup.parameters.verify:
        count = VERIFIED_FINDINGS * window_count
    elif has_story and not setup.parameters.decisive:
        # Findings that no other window confirms are verified. A few windows have few of them.
        count = min(UNSHARED_FINDINGS, (window_count - 1) // 2)
    data_tokens = min(SHOWN_TOKENS, sum(view.tokens) + HEADER_TOKENS * len(view))
    request_tokens = setup.prompt.verification.system.tokens + MODE_TOKENS + data_tokens
    # The guess for an answer grows with the modes, but a verification is about one mode.
    answer = expected.answer if expected.measured else min(expected.answer, ANSWER_TOKENS)
    return _RequestGroup(count, count * request_tokens, count * answer)


def _split_windows(
    setup: Setup, view: RedactedView, planned: tuple[Window, ...], longest: int | None
) -> Iterator[Window]:
    """Yield the windows of a trace, split until the server accepts their requests.

    ``longest`` is the approximate token limit of a request, or None. A window that cannot be split
    is yielded unchanged.
    """
    whole_range = (planned[0].first, planned[0].last) if len(planned) == 1 else None
    pending = deque(planned)
    while pending:
        window = pending.popleft()
        is_whole = (window.first, window.last) == whole_range
        if longest is None or _request_tokens(setup, view, window, is_whole=is_whole) <= longest:
            yield window
            continue
        try:
            pending.extendleft(reversed(split(window, view, setup.prompt, setup.parameters)))
        except TraceFails:
            yield window


def _request_tokens(setup: Setup, view: RedactedView, window: Window, *, is_whole: bool) -> int:
    """Estimate the tokens of the request on a window; ``is_whole`` if it is the only window.

    One of several windows also gets the story of the run.
    """
    budget = window.tokens or setup.parameters.window_tokens
    task_tokens = min(estimate(view.task), task_room(budget))
    tokens = view.tokens[window.first : window.last + 1]
    span_tokens = sum(tokens)
    # The texts of the only window are shortened only if it has its own limit.
    if not is_whole or window.tokens is not None:
        span_tokens = sum(map(min, tokens, _most_shown_tokens(view, budget)[window.first :]))
    data_tokens = FRAME_TOKENS + task_tokens + span_tokens + HEADER_TOKENS * len(tokens)
    story_tokens = 0 if is_whole else story_room(budget)
    return setup.prompt.system.tokens + min(budget, data_tokens) + story_tokens


def _story_requests(setup: Setup, view: RedactedView, windows: Sequence[Window]) -> _RequestGroup:
    """Estimate the requests for a summary of each window and for the story of a trace."""
    prompt = setup.prompt
    budget = setup.parameters.window_tokens
    # A summary has other instructions than a judgement, and no story.
    less_tokens = prompt.system.tokens - prompt.story.summary_system.tokens + story_room(budget)
    summary_tokens = sum(
        _request_tokens(setup, view, window, is_whole=False) - less_tokens for window in windows
    )
    notes_tokens = len(windows) * (SUMMARY_TOKENS + HEADER_TOKENS)
    task_tokens = min(estimate(view.task), task_room(budget))
    story_data_tokens = min(budget, notes_tokens + FRAME_TOKENS + task_tokens)
    return _RequestGroup(
        requests=len(windows) + 1,
        tokens_in=summary_tokens + prompt.story.story_system.tokens + story_data_tokens,
        tokens_out=len(windows) * SUMMARY_TOKENS + STORY_TOKENS,
    )


def _shortened_count(setup: Setup, view: RedactedView) -> int:
    """Count the shortened spans in a trace of several windows."""
    most_tokens = _most_shown_tokens(view, setup.parameters.window_tokens)
    return sum(tokens > most for tokens, most in zip(view.tokens, most_tokens, strict=True))


def _most_shown_tokens(view: RedactedView, budget: int) -> list[int]:
    """Return the token limit of each span's text, for a trace of several windows."""
    span_count = len(view)
    return [unit(budget) * weight(index, span_count) for index in range(span_count)]


@dataclass(frozen=True, slots=True)
class ExpectedAnswers:
    """The expected tokens of answers.

    Attributes:
        answer: The tokens of a usable answer, with the unusable answers before it.
        tries: The number of requests for a usable answer.
        first_try_out: The tokens that a thinking model wastes once in a run, before its limit is
            raised.
        longest_request: The approximate token limit of a request, or None.
        measured: True if these numbers come from earlier answers.
    """

    answer: int
    tries: float = 1.0
    first_try_out: int = 0
    longest_request: int | None = None
    measured: bool = False


def expected_answers(setup: Setup, workspace: Workspace | None) -> ExpectedAnswers:
    """Return the expected tokens of answers.

    They come from earlier answers of the judge, or else of its model, or else from a guess.

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
    runs_of_judge = [run.id for run in runs if run.judge == setup.judge]
    for run_ids in (runs_of_judge, [run.id for run in runs]):
        if workspace is None or not run_ids:
            continue
        statistics = workspace.answer_statistics(run_ids)
        if statistics.answers:
            longest = statistics.longest_request
            # The longest request shows the limit only if it reached the limit: a longer request was
            # refused, or its count is a usual context size.
            has_limit = statistics.overflows > 0 or is_context_size(longest)
            return ExpectedAnswers(
                answer=ceil(
                    (statistics.tokens_out + statistics.unusable_tokens_out) / statistics.answers
                ),
                tries=1 + statistics.unusable / statistics.answers,
                # The first try of a run may be cut while the model thinks.
                first_try_out=statistics.longest_thought,
                longest_request=round(longest * ESTIMATE_RATIO) if has_limit else None,
                measured=True,
            )
    guess = ANSWER_TOKENS + ANSWER_TOKENS_A_MODE * len(setup.prompt.modes)
    return ExpectedAnswers(min(setup.parameters.answer_tokens, guess))
