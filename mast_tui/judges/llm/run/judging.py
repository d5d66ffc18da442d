"""The judgement of one trace by a model: windows, samples, story and verifications."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, ParamSpec, TypeVar

from msgspec import structs

from mast_tui.counts import counted
from mast_tui.judges.llm.answer.merging import (
    Sighting,
    WindowAnswer,
    decisive_sightings,
    judgement_of,
    merge_sightings,
    partial_judgement,
    verdict_of,
)
from mast_tui.judges.llm.answer.parsing import Answer
from mast_tui.judges.llm.prompt.prompt import Prompt
from mast_tui.judges.llm.prompt.redacted_view import RedactedView
from mast_tui.judges.llm.prompt.story import read_notes
from mast_tui.judges.llm.prompt.verification import (
    LEAST_SHOWN,
    SHOWN_TOKENS,
    Verification,
    by_doubt,
    parse_verification,
)
from mast_tui.judges.llm.prompt.windows import LEAST_TOKENS, plan, split
from mast_tui.judges.llm.request import (
    OVERSHOOT,
    ContextOverflow,
    Deferred,
    Fact,
    ModelClient,
    Parameters,
    Request,
    RunStops,
    TraceFails,
    Unanswered,
    Window,
    is_context_size,
)
from mast_tui.judges.llm.run.request_loop import AnswerLimits, AnswerStore, RequestLoop
from mast_tui.judges.quote_anchoring import MOST_SEARCHED, Locator, anchored
from mast_tui.judges.rules import RulesJudge
from mast_tui.labels import Finding, Judgement, QuoteCounts, VerdictValue
from mast_tui.redaction.engine import Redaction
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.traces.model import Trace

MOST_REMARKS: Final = 20
"""The most remarks on one trace."""

SMALL_TRACE_TOKENS: Final = 20_000
"""The token limit of a trace for which no thread is used."""

_REMARK_CHARS: Final = 200

P = ParamSpec("P")
T = TypeVar("T")
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class TraceResult:
    """The result of judging one trace.

    Attributes:
        judgement: The findings and verdicts.
        quotes: The number of the findings' quotes by kind of match.
        windows: The number of windows of the last sample.
        remarks: Short sentences on problems.
    """

    judgement: Judgement
    quotes: QuoteCounts
    windows: int
    remarks: tuple[str, ...]


class _NothingSmaller(Unanswered):
    """An error because the smallest window is longer than the model's context."""


class _WholeTooLong(Exception):
    """An error because a whole trace is too long; its ``windows`` must be judged instead."""

    def __init__(self, windows: tuple[Window, ...]) -> None:
        super().__init__()
        self.windows = windows


async def gather_results(
    work: Callable[[Item], Coroutine[Any, Any, T]], items: Iterable[Item]
) -> list[T]:
    """Run work on several items concurrently, and return the results in the order of the items.

    The first error cancels the rest. ``Deferred`` is raised only after all work has ended, so that
    a batch gets all requests.

    Args:
        work: A coroutine function of one item.
        items: The items.
    """

    async def result_or_deferred(item: Item) -> T | Deferred:
        """Return ``Deferred`` instead of raising it, because ``gather`` ends at the first error."""
        # Make the coroutine only now. Python warns of a coroutine that never starts because its
        # task is cancelled first.
        try:
            return await work(item)
        except Deferred as error:
            return error

    tasks = [asyncio.create_task(result_or_deferred(item)) for item in items]
    try:
        outcomes = await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
    results: list[T] = []
    for outcome in outcomes:
        if isinstance(outcome, Deferred):
            raise outcome
        results.append(outcome)
    return results


class TraceJudge:
    """A judge of one trace that was read to its end.

    A trace of several windows is judged in four rounds of concurrent requests:

    1. Each window is summarised.
    2. One request merges the summaries into a story.
    3. Each window is judged with the story.
    4. Each finding of a mode that only one window has found is verified.

    The constructor takes as long as reading the whole trace, and may run in any thread.

    Raises:
        OSError: The source of the trace could not be read.
    """

    def __init__(
        self, trace: Trace, prompt: Prompt, parameters: Parameters, redaction: Redaction
    ) -> None:
        self._trace = trace
        self._prompt = prompt
        self._parameters = parameters
        self._samples: list[list[WindowAnswer]] = []
        self._shortening_remarks: list[str] = []
        self._problems: list[str] = []
        self._story = ""
        self._view = RedactedView(trace, redaction, parameters.first_number)
        self._facts = _rule_facts(trace, self._view) if parameters.hints else ()
        self._is_small = sum(self._view.tokens) <= SMALL_TRACE_TOKENS
        self._windows = plan(self._view, prompt, parameters)
        self.first_request: Request | None = None
        """The first request; None once it is sent."""
        if self._windows:
            window = self._windows[0]
            # A story is merged from summaries, so the first request is a summary.
            if self._has_story(self._windows):
                self.first_request = self._summary_request(window)
            else:
                self.first_request = self._new_request(0, window, "")
            _ = self.first_request.fingerprint  # computed early, not on the event loop

    async def judge(
        self,
        client: ModelClient,
        store: AnswerStore,
        limits: AnswerLimits,
        on_window: Callable[[Judgement], object] | None,
    ) -> TraceResult:
        """Request the answers of all samples, and merge them.

        Args:
            client: Sends the requests.
            store: Stores the answers.
            limits: The token limit of an answer, shared by the run.
            on_window: Called after each window with the findings so far.

        Raises:
            TraceFails: The trace cannot be judged; the message says why.
            RunStops: No trace can be judged.
        """
        key_of = self._prompt.answer_key
        self._judging_requests = RequestLoop(client, store, limits, key_of)
        # Summaries, the story and verifications have separate limits.
        self._other_requests = RequestLoop(client, store, limits, key_of)
        windows = self._windows
        if not windows:
            raise TraceFails("the trace has no spans; there is nothing to judge")
        try:
            window_count = await self._judge_all_samples(windows, on_window)
        except _NothingSmaller:
            # Overflow notes are stored records of requests that were too long. The server may
            # accept longer requests now.
            if not (self._judging_requests.has_used_note or self._other_requests.has_used_note):
                raise
            self._judging_requests.forget_limits()
            self._other_requests.forget_limits()
            window_count = await self._judge_all_samples(windows, on_window)
        sightings = await self._run_in_thread(self._merged_sightings)
        doubtful_indices = [
            index
            for index, sighting in enumerate(sightings)
            if self._parameters.verify or self._is_found_in_one_window(sighting.finding.mode)
        ]
        if doubtful_indices:
            sightings = await self._confirmed_sightings(sightings, doubtful_indices)
        return await self._run_in_thread(self._trace_result, window_count, sightings)

    async def _judge_all_samples(
        self, windows: tuple[Window, ...], on_window: Callable[[Judgement], object] | None
    ) -> int:
        """Judge all samples, and return the number of windows of the last sample.

        Raises:
            Deferred: The answers of a sample wait for a batch; the other samples were judged.
        """
        while True:
            self._locator = Locator(self._view)
            self._samples = []
            self._shortening_remarks = []
            self._problems = []
            windows, self._story = await self._read_story(windows)
            deferred: Deferred | None = None
            try:
                for sample in range(self._parameters.samples):
                    try:
                        windows = await self._judge_sample(sample, windows, on_window)
                    except Deferred as error:  # the other samples need not wait for this one
                        deferred = error
            except _WholeTooLong as error:
                # All samples need the same windows.
                windows = error.windows
                continue
            if deferred is not None:
                raise deferred
            return len(windows)

    @staticmethod
    def _has_story(windows: Sequence[Window]) -> bool:
        """Check whether windows are judged with a story: a summary of the whole run.

        A single window, and windows of single steps, need no story.
        """
        return len(windows) > 1 and windows[0].step is None

    async def _read_story(self, windows: tuple[Window, ...]) -> tuple[tuple[Window, ...], str]:
        """Summarise the windows of a trace, and merge the summaries into a story.

        Returns:
            The windows, split if they were too long, and the story. The story is empty if it is not
            needed or too long for the model.
        """
        if not self._has_story(windows):
            return windows, ""
        lists = await gather_results(self._window_summaries, windows)
        summaries = [summary for summary_list in lists for summary in summary_list]
        budget = self._parameters.window_tokens
        while budget >= LEAST_TOKENS:
            request = self._prompt.story.story_request(self._view, summaries, budget)
            try:
                story = await self._other_requests.answer(
                    request, partial(read_notes, field="story"), "the parts of the run"
                )
            except ContextOverflow:
                budget //= 2
                continue
            return tuple(window for window, _ in summaries), story
        self._problems.append("the parts were judged separately: the model's context is too small")
        return tuple(window for window, _ in summaries), ""

    async def _window_summaries(self, window: Window) -> list[tuple[Window, str]]:
        """Return a window with its summary, or the parts of a long window with theirs."""
        # The first request was made earlier, outside the event loop.
        request = self.first_request
        self.first_request = None
        if request is None:
            request = await self._run_in_thread(self._summary_request, window)
        try:
            parse = partial(read_notes, field="summary")
            summary = await self._other_requests.answer(request, parse, _window_name(window))
        except ContextOverflow as error:
            parts = await self._run_in_thread(self._split_window, window, error)
            lists = await gather_results(self._window_summaries, parts)
            return [summary for summary_list in lists for summary in summary_list]
        return [(window, summary)]

    def _summary_request(self, window: Window) -> Request:
        budget = self._parameters.window_tokens
        return self._prompt.story.summary_request(self._view, window, budget)

    def _is_found_in_one_window(self, mode: str) -> bool:
        """Check whether several windows were asked about a mode and only one has found it."""
        if self._parameters.decisive:  # windows are asked for the decisive step, not for modes
            return False
        asked_windows = set()
        finding_windows = set()
        for sample in self._samples:
            for answer in sample:
                if mode not in answer.window.modes:
                    continue
                asked_windows.add(answer.window.first)
                if any(sighting.finding.mode == mode for sighting in answer.sightings):
                    finding_windows.add(answer.window.first)
        return len(asked_windows) > 1 and len(finding_windows) == 1

    async def _confirmed_sightings(
        self, sightings: Sequence[Sighting], doubtful_indices: Sequence[int]
    ) -> list[Sighting]:
        """Verify the findings with these indices, and return all findings that hold."""
        order = sorted(doubtful_indices, key=lambda index: by_doubt(sightings[index]))
        results = await gather_results(self._verify_sighting, (sightings[index] for index in order))
        verification_by_index = dict(zip(order, results, strict=True))
        confirmed = []
        for index, sighting in enumerate(sightings):
            if index not in verification_by_index:
                confirmed.append(sighting)
                continue
            verification = verification_by_index[index]
            if verification is None:
                self._problems.append(
                    "a finding was not checked again: the model's context is too small"
                )
                confirmed.append(sighting)
            elif verification.verdict is not VerdictValue.ABSENT:
                finding = verification.apply(sighting.finding)
                if self._parameters.samples > 1:  # the confidence is a share of the samples
                    finding = structs.replace(finding, confidence=sighting.finding.confidence)
                confirmed.append(replace(sighting, finding=finding))
        rejected_count = len(sightings) - len(confirmed)
        if rejected_count:
            findings = counted(rejected_count, "finding")
            self._problems.append(f"{findings} did not hold on a second look")
        return confirmed

    async def _verify_sighting(self, sighting: Sighting) -> Verification | None:
        """Verify a finding with as many spans as fit; return None if too few fit."""
        shown_tokens = SHOWN_TOKENS
        while shown_tokens >= LEAST_SHOWN:
            request = await self._run_in_thread(
                self._prompt.verification.request,
                self._view,
                sighting,
                self._samples,
                shown_tokens,
                self._story,
            )
            try:
                return await self._other_requests.answer(
                    request,
                    partial(parse_verification, view=self._view),
                    f"a finding in {_sighting_name(sighting)}",
                )
            except ContextOverflow:
                shown_tokens //= 2
        return None

    async def _run_in_thread(self, work: Callable[P, T], *args: P.args, **keywords: P.kwargs) -> T:
        """Do work on the trace in a thread, or directly if the trace is small.

        For a small trace, the switch of threads takes longer than the work.
        """
        if self._is_small:
            return work(*args, **keywords)
        return await asyncio.to_thread(work, *args, **keywords)

    async def _judge_sample(
        self,
        sample: int,
        windows: Sequence[Window],
        on_window: Callable[[Judgement], object] | None,
    ) -> tuple[Window, ...]:
        """Judge one sample, and return its windows, which may be smaller than planned.

        Raises:
            _WholeTooLong: The request on a whole trace is too long.
        """
        answers: list[WindowAnswer] = []
        self._samples.append(answers)

        async def judge_window(window: Window) -> None:
            """Add the answer on a window; if it is too long, add the answers on its parts."""
            try:
                answer = await self._ask_about_window(sample, window)
            except ContextOverflow as error:
                parts = await self._run_in_thread(self._split_window, window, error)
                if len(windows) == 1 and len(parts) > 1:
                    raise _WholeTooLong(parts) from error
                await gather_results(judge_window, parts)
                return
            answers.append(await self._run_in_thread(self._window_answer, sample, window, answer))
            if on_window is not None:
                on_window(await self._run_in_thread(self._partial_judgement))

        is_step_by_step = windows[0].step is not None
        if not is_step_by_step:
            await gather_results(judge_window, windows)
        else:
            for window in windows:
                await judge_window(window)
                if answers and answers[-1].sightings:
                    break  # the first step with a finding is the decisive step
        answers.sort(key=lambda answer: (answer.window.first, answer.window.last))
        return tuple(answer.window for answer in answers)

    async def _ask_about_window(self, sample: int, window: Window) -> Answer:
        """Request the answer on a window, and record the remarks on both."""
        # The first request was made earlier, outside the event loop.
        request = self.first_request
        self.first_request = None
        if request is None:
            request = await self._run_in_thread(self._new_request, sample, window, self._story)
        parse = partial(self._prompt.read, view=self._view, window=window)
        answer = await self._judging_requests.answer(request, parse, _window_name(window))
        self._shortening_remarks += request.remarks
        self._problems += answer.remarks
        return answer

    def _new_request(self, sample: int, window: Window, story: str) -> Request:
        return self._prompt.request(self._view, window, story, sample=sample, facts=self._facts)

    def _split_window(self, window: Window, overflow: ContextOverflow) -> tuple[Window, ...]:
        """Return the parts of a window that was too long.

        Raises:
            _NothingSmaller: The window cannot be smaller.
            RunStops: The instructions alone are too long for the server.
        """
        instruction_tokens = self._prompt.system.tokens
        answer_tokens = self._parameters.answer_tokens
        limit = overflow.context_limit
        server_limit = "" if limit is None else f"the server reads {limit:,} tokens, and "
        sizes = (
            f"{server_limit}the instructions take about {instruction_tokens:,} tokens, an "
            f"answer up to {answer_tokens:,} (--answer-tokens), a window up to"
            f" {self._parameters.window_tokens:,} (--window-tokens) and at least {LEAST_TOKENS};"
            " give the model a larger context (llama.cpp -c, vLLM --max-model-len, Ollama"
            " OLLAMA_CONTEXT_LENGTH) or ask about fewer modes (--taxonomy)"
        )
        # Every window has the instructions, so no window of any trace would fit.
        if limit is not None and instruction_tokens > _largest_fitting_estimate(overflow):
            raise RunStops(f"{overflow}; {sizes}") from overflow
        try:
            return split(window, self._view, self._prompt, self._parameters)
        except TraceFails as error:
            raise _NothingSmaller(f"{error}; then: {overflow}; {sizes}") from error

    def _merged_sightings(self) -> list[Sighting]:
        if self._parameters.decisive:
            return decisive_sightings(self._samples)
        return merge_sightings(self._samples, self._prompt.modes)

    def _partial_judgement(self) -> Judgement:
        return partial_judgement(self._merged_sightings())

    def _window_answer(self, sample: int, window: Window, answer: Answer) -> WindowAnswer:
        """Return the answer on a window, with its findings located in the trace.

        Findings of other modes than those of the window are dropped.
        """
        span_range = (window.first, window.last)
        locate = partial(self._locator.locate, around=span_range)
        findings = (
            anchored(finding, self._trace, self._view, locate)
            for finding in answer.findings
            if finding.mode in window.modes
        )
        sightings = (
            Sighting.from_finding(finding, self._trace, span_range, sample) for finding in findings
        )
        return WindowAnswer(window, answer.verdicts, tuple(sightings))

    def _trace_result(self, window_count: int, confirmed: Sequence[Sighting]) -> TraceResult:
        """Return the result of judging the trace, from the confirmed findings of all samples."""
        remarks: list[str] = []
        if self._parameters.decisive:
            judgement = partial_judgement(confirmed)  # without verdicts on other modes
        else:
            judgement = judgement_of(self._samples, self._prompt.modes, confirmed)
            remarks += _missing_verdicts(self._samples, self._prompt.taxonomy)
        quotes = QuoteCounts.count(finding.evidence for finding in judgement.findings)
        remarks += _quote_remarks(
            judgement.findings, quotes, self._locator.partly_searched_quote_count
        )
        remarks += _form_remarks(self._judging_requests.forms)
        remarks += self._shortening_remarks
        remarks += self._problems
        return TraceResult(
            judgement=judgement,
            quotes=quotes,
            windows=window_count,
            remarks=_first_remarks(remarks),
        )


def _largest_fitting_estimate(overflow: ContextOverflow) -> float:
    """Return the largest estimated tokens of a text that may fit into a server's context.

    The limit is exact if the server named it or if it is a usual size. Otherwise it is the count of
    a truncated request, which may be lower than the estimate.
    """
    limit = overflow.context_limit or 0
    if overflow.truncated_usage is None or is_context_size(limit):
        return limit
    return limit * OVERSHOOT


def _rule_facts(trace: Trace, view: RedactedView) -> tuple[Fact, ...]:
    """Return the findings of the default rules as facts with redacted texts."""
    facts = []
    for finding in RulesJudge().judge(trace).findings:
        first = trace.index_of(finding.first or "")
        last = trace.index_of(finding.last or "")
        if first is not None and last is not None:
            rationale = view.redacted(view.with_numbers_sent(finding.rationale))
            facts.append(Fact(first, last, finding.mode, rationale))
    return tuple(facts)


def _first_remarks(remarks: Iterable[str]) -> tuple[str, ...]:
    """Return the first distinct remarks, and a remark on the number of the others."""
    distinct = tuple(dict.fromkeys(one_line(remark, _REMARK_CHARS) for remark in remarks))
    if len(distinct) <= MOST_REMARKS:
        return distinct
    further_count = len(distinct) - MOST_REMARKS + 1
    return (*distinct[: MOST_REMARKS - 1], f"and {further_count} more remarks")


def _sighting_name(sighting: Sighting) -> str:
    return "the whole run" if sighting.first is None else f"#{sighting.first + 1}"


def _window_name(window: Window) -> str:
    if window.first == window.last:
        return f"#{window.first + 1}"
    return f"#{window.first + 1} to #{window.last + 1}"


def _quote_remarks(
    findings: Iterable[Finding], quotes: QuoteCounts, partly_searched_count: int
) -> Iterable[str]:
    """Yield remarks on quotes with a problem."""
    elsewhere_count = sum(
        finding.evidence is not None and finding.evidence.misnamed_spans is not None
        for finding in findings
    )
    if elsewhere_count:
        subject = counted(elsewhere_count, "quote is", "quotes are")
        yield f"{subject} elsewhere than the model named"
    if quotes.altered:
        yield f"{counted(quotes.altered, 'quote differs', 'quotes differ')} from the trace"
    if quotes.not_found:
        yield f"{counted(quotes.not_found, 'quote was', 'quotes were')} not found in the trace"
    if partly_searched_count:
        subject = counted(partly_searched_count, "quote was", "quotes were")
        yield f"{subject} searched for only in the nearest {MOST_SEARCHED:,} characters"


def _missing_verdicts(samples: Sequence[list[WindowAnswer]], taxonomy: Taxonomy) -> Iterable[str]:
    """Yield a remark on the modes on which some sample has no verdict."""
    unanswered_codes = [
        mode.code
        for mode in taxonomy.modes
        if any(verdict_of(sample, mode.slug) is None for sample in samples)
    ]
    if unanswered_codes:
        yield f"not answered in all parts: {', '.join(unanswered_codes)}"


def _form_remarks(forms: Iterable[str]) -> Iterable[str]:
    """Yield a remark for each form of answers except ``json_schema``, the first choice."""
    for form in sorted(forms):
        if form != "json_schema":
            yield f"the server was asked for answers as {form}"
