"""The judging of one trace by a model: its windows at once, its stored answers, its quotes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, ParamSpec, TypeVar

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
from mast_tui.judges.llm.errors import (
    ContextOverflow,
    Deferred,
    RunStops,
    TraceFails,
    Unanswered,
)
from mast_tui.judges.llm.prompt.prompt import Prompt
from mast_tui.judges.llm.prompt.redacted_view import RedactedView
from mast_tui.judges.llm.prompt.story import read_story, read_summary
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
    Fact,
    ModelClient,
    Parameters,
    Request,
    Window,
    is_context_size,
)
from mast_tui.judges.llm.run.request_loop import AnswerRoom, AnswerStore, RequestLoop
from mast_tui.judges.protocol import Judgement
from mast_tui.judges.quote_anchoring import MOST_SEARCHED, Locator, anchored
from mast_tui.judges.rules import RulesJudge
from mast_tui.labels import Finding, Match, QuoteCounts, VerdictValue
from mast_tui.redaction.engine import Redaction
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.traces.model import Trace

MOST_REMARKS: Final = 20
"""The most remarks on one trace."""

SMALL: Final = 20_000
"""The most tokens of a trace whose work is done on the event loop's thread once it is read."""

_REMARK_CHARS: Final = 200

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TraceResult:
    """The result of judging one trace.

    ``quotes`` counts the quotes of the findings by their matches. ``windows`` is the number of
    windows of the last sample. ``remarks`` are short sentences.
    """

    judgement: Judgement
    quotes: QuoteCounts
    windows: int
    remarks: tuple[str, ...]


class _NothingSmaller(Unanswered):
    """The smallest window is longer than the model's context."""


class _WholeTooLong(Exception):
    """The request on a whole trace is too long; ``windows`` are the windows to ask about."""

    def __init__(self, windows: tuple[Window, ...]) -> None:
        super().__init__()
        self.windows = windows


async def _at_once(works: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run work at once and return the results in their order.

    The first failure ends the rest, except that requests which wait for a batch let the others be
    written too.
    """

    async def waited(work: Coroutine[Any, Any, T]) -> T | Deferred:
        try:
            return await work
        except Deferred as error:
            return error

    tasks = [asyncio.create_task(waited(work)) for work in works]
    try:
        results = await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
    done: list[T] = []
    for result in results:
        if isinstance(result, Deferred):
            raise result
        done.append(result)
    return done


class TraceJudge:
    """The judging of a trace that was read to its end.

    A trace of several windows takes few requests in sequence: its windows are summarised at once,
    one request merges the summaries into a story, the windows are judged at once with the story,
    and what only one of them has found is verified at once. Samples are judged one after the
    other. Stored answers are not requested again. The constructor plans the windows and prepares
    the first request; it takes as long as reading the whole trace, and may run in any thread.

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
        self._shortened: list[str] = []
        self._problems: list[str] = []
        self._story = ""
        self._view = RedactedView(trace, redaction, parameters.first_number)
        self._facts = _checked_facts(trace, self._view) if parameters.hints else ()
        self._small = sum(self._view.tokens) <= SMALL
        self._windows = plan(self._view, prompt, parameters)
        self.first: Request | None = None
        """The first request, until it is sent."""
        if self._windows:
            window = self._windows[0]
            several = self._has_story(self._windows)
            self.first = self._summary(window) if several else self._new_request(0, window, "")
            _ = self.first.fingerprint  # computed here, not on the event loop

    async def judge(
        self,
        client: ModelClient,
        store: AnswerStore,
        room: AnswerRoom,
        on_part: Callable[[Judgement], object] | None,
    ) -> TraceResult:
        """Request the answers of all samples, and merge them.

        Args:
            client: Sends the requests.
            store: Stores the answers.
            room: The tokens of an answer, shared by the run.
            on_part: Called after each window with the findings so far.

        Raises:
            TraceFails: The trace cannot be judged; the message says why.
            RunStops: No trace can be judged.
        """
        key_of = self._prompt.answer_key
        self._requests: RequestLoop[Answer] = RequestLoop(client, store, room, key_of)
        self._notes: RequestLoop[str] = RequestLoop(client, store, room, key_of)
        windows = self._windows
        if not windows:
            raise TraceFails("the trace has no spans; there is nothing to judge")
        try:
            count = await self._all_samples(windows, on_part)
        except _NothingSmaller:
            # Stored refusals led here, but the server may accept longer requests by now.
            if not (self._requests.believed or self._notes.believed):
                raise
            self._requests.forget_limits()
            self._notes.forget_limits()
            count = await self._all_samples(windows, on_part)
        sightings = await self._aside(self._sightings)
        doubtful = [
            number
            for number, sighting in enumerate(sightings)
            if self._parameters.verify or self._in_one_window(sighting.finding.mode)
        ]
        if doubtful:
            sightings = await self._verified(sightings, doubtful, client, store, room)
        return await self._aside(self._result, count, sightings)

    async def _all_samples(
        self, windows: tuple[Window, ...], on_part: Callable[[Judgement], object] | None
    ) -> int:
        """Judge all samples, and return the number of windows of the last one."""
        while True:
            self._locator = Locator(self._view)
            self._samples = []
            self._shortened = []
            self._problems = []
            windows, self._story = await self._read_whole(windows)
            deferred: Deferred | None = None
            try:
                for sample in range(self._parameters.samples):
                    try:
                        windows = await self._sample(sample, windows, on_part)
                    except Deferred as error:  # the other samples need not wait for this one
                        deferred = error
            except _WholeTooLong as error:
                windows = error.windows
                continue
            if deferred is not None:
                raise deferred
            return len(windows)

    @staticmethod
    def _has_story(windows: Sequence[Window]) -> bool:
        """Return whether windows are judged with the story of the run."""
        return len(windows) > 1 and windows[0].step is None

    async def _read_whole(self, windows: tuple[Window, ...]) -> tuple[tuple[Window, ...], str]:
        """Read a trace of several windows as a whole.

        Returns:
            The windows, as small as the model needs them, and the story; without a story for a
            single window, and if the model reads too little to tell it.
        """
        if not self._has_story(windows):
            return windows, ""
        parts = await _at_once(self._summarised(window) for window in windows)
        summaries = [summary for part in parts for summary in part]
        budget = self._parameters.window_tokens
        while budget >= LEAST_TOKENS:
            request = self._prompt.story.story_request(self._view, summaries, budget)
            try:
                story = await self._notes.answer(request, read_story, "the parts of the run")
            except ContextOverflow:
                budget //= 2
                continue
            return tuple(window for window, _ in summaries), story
        self._problems.append("the parts were judged apart: the model reads too little")
        return tuple(window for window, _ in summaries), ""

    async def _summarised(self, window: Window) -> list[tuple[Window, str]]:
        """Summarise a window, or the parts of it that the model can read."""
        request = self.first
        self.first = None
        if request is None:
            request = await self._aside(self._summary, window)
        try:
            summary = await self._notes.answer(request, read_summary, _about(window))
        except ContextOverflow as error:
            smaller = await self._aside(self._split, window, error)
            parts = await _at_once(self._summarised(part) for part in smaller)
            return [summary for part in parts for summary in part]
        return [(window, summary)]

    def _summary(self, window: Window) -> Request:
        budget = self._parameters.window_tokens
        return self._prompt.story.summary_request(self._view, window, budget)

    def _in_one_window(self, mode: str) -> bool:
        """Return whether one window alone has found a mode that several were asked about."""
        if self._parameters.decisive:
            return False
        asked = {
            (answer.window.first, any(s.finding.mode == mode for s in answer.sightings))
            for sample in self._samples
            for answer in sample
            if mode in answer.window.modes
        }
        windows = {first for first, _ in asked}
        return len(windows) > 1 and sum(found for _, found in asked) == 1

    async def _verified(
        self,
        sightings: Sequence[Sighting],
        doubtful: Sequence[int],
        client: ModelClient,
        store: AnswerStore,
        room: AnswerRoom,
    ) -> list[Sighting]:
        """Verify the doubtful findings, those with altered quotes first.

        Args:
            sightings: All findings.
            doubtful: The numbers of the doubtful ones.
            client: Sends the requests.
            store: Stores the answers.
            room: The tokens of an answer.

        Returns:
            The findings without those that do not hold.
        """
        key_of = self._prompt.answer_key
        requests: RequestLoop[Verification] = RequestLoop(client, store, room, key_of)
        order = sorted(doubtful, key=lambda number: by_doubt(sightings[number]))
        results = await _at_once(self._verify(sightings[number], requests) for number in order)
        verifications = dict(zip(order, results, strict=True))
        confirmed = []
        for number, sighting in enumerate(sightings):
            if number not in verifications:
                confirmed.append(sighting)
                continue
            verification = verifications[number]
            if verification is None:
                self._problems.append(
                    "a finding was not looked at again: the model reads too little"
                )
                confirmed.append(sighting)
            elif verification.verdict is not VerdictValue.ABSENT:
                finding = verification.apply(sighting.finding)
                if self._parameters.samples > 1:  # there it is the share of the samples
                    finding = replace(finding, confidence=sighting.finding.confidence)
                confirmed.append(replace(sighting, finding=finding))
        failed = len(sightings) - len(confirmed)
        if failed:
            self._problems.append(f"{counted(failed, 'finding')} did not hold on a second look")
        return confirmed

    async def _verify(
        self, sighting: Sighting, requests: RequestLoop[Verification]
    ) -> Verification | None:
        """Verify a finding with as many spans around it as fit; None if too few do."""
        shown = SHOWN_TOKENS
        while shown >= LEAST_SHOWN:
            request = await self._aside(
                self._prompt.verification.request,
                self._view,
                sighting,
                self._samples,
                shown,
                self._story,
            )
            try:
                return await requests.answer(
                    request,
                    partial(parse_verification, view=self._view),
                    f"a finding in {_location(sighting)}",
                )
            except ContextOverflow:
                shown //= 2
        return None

    async def _aside(self, work: Callable[P, T], *args: P.args, **keywords: P.kwargs) -> T:
        """Do work on the trace, in a thread unless the trace is small.

        For a small trace the switch of threads delays the event loop more than the work.
        """
        if self._small:
            return work(*args, **keywords)
        return await asyncio.to_thread(work, *args, **keywords)

    async def _sample(
        self,
        sample: int,
        windows: Sequence[Window],
        on_part: Callable[[Judgement], object] | None,
    ) -> tuple[Window, ...]:
        """Judge one sample, and return its windows, which may be smaller than the planned ones."""
        answers: list[WindowAnswer] = []
        self._samples.append(answers)

        async def judged(window: Window) -> None:
            try:
                answer = await self._answer(sample, window)
            except ContextOverflow as error:
                parts = await self._aside(self._split, window, error)
                if len(windows) == 1 and len(parts) > 1:
                    raise _WholeTooLong(parts) from error
                await _at_once(judged(part) for part in parts)
                return
            answers.append(await self._aside(self._window_answer, sample, window, answer))
            if on_part is not None:
                on_part(await self._aside(self._partial_judgement))

        if windows[0].step is None:
            await _at_once(judged(window) for window in windows)
        else:
            for window in windows:
                await judged(window)
                if answers and answers[-1].sightings:
                    break  # the earliest step counts
        answers.sort(key=lambda answer: (answer.window.first, answer.window.last))
        return tuple(answer.window for answer in answers)

    async def _answer(self, sample: int, window: Window) -> Answer:
        request = self.first
        self.first = None
        if request is None:
            request = await self._aside(self._new_request, sample, window, self._story)

        read = partial(self._prompt.read, view=self._view, window=window)
        answer = await self._requests.answer(request, read, _about(window))
        self._shortened += request.remarks
        self._problems += answer.remarks
        return answer

    def _new_request(self, sample: int, window: Window, story: str) -> Request:
        return self._prompt.request(self._view, window, story, sample=sample, facts=self._facts)

    def _split(self, window: Window, overflow: ContextOverflow) -> tuple[Window, ...]:
        """Split a window that was too long.

        Raises:
            _NothingSmaller: The window cannot become smaller.
            RunStops: The instructions alone are too long for the server.
        """
        instructions = self._prompt.system.tokens
        answer = self._parameters.answer_tokens
        limit = overflow.context_limit
        reads = "" if limit is None else f"the server reads {limit:,} tokens, and "
        sizes = (
            f"{reads}the instructions take about {instructions:,}, an answer up to {answer:,}"
            f" (--answer-tokens), a window up to {self._parameters.window_tokens:,}"
            f" (--window-tokens) and at least {LEAST_TOKENS}; give the model a larger context"
            " (llama.cpp -c, vLLM --max-model-len, Ollama OLLAMA_CONTEXT_LENGTH) or ask about"
            " fewer modes (--taxonomy)"
        )
        if limit is not None and instructions > _most_of_estimate(overflow):
            raise RunStops(f"{overflow}; {sizes}") from overflow
        try:
            return split(window, self._view, self._prompt, self._parameters)
        except TraceFails as error:
            raise _NothingSmaller(f"{error}; at last: {overflow}; {sizes}") from error

    def _sightings(self) -> list[Sighting]:
        if self._parameters.decisive:
            return decisive_sightings(self._samples)
        return merge_sightings(self._samples, self._prompt.modes)

    def _partial_judgement(self) -> Judgement:
        return partial_judgement(self._sightings())

    def _window_answer(self, sample: int, window: Window, answer: Answer) -> WindowAnswer:
        """Return the answer on a window with its findings anchored."""
        shown = (window.first, window.last)
        locate = partial(self._locator.locate, around=shown)
        findings = (
            anchored(finding, self._trace, self._view, locate)
            for finding in answer.findings
            if finding.mode in window.modes
        )
        sightings = (
            Sighting.from_finding(finding, self._trace, shown, sample) for finding in findings
        )
        return WindowAnswer(window, answer.verdicts, tuple(sightings))

    def _result(self, windows: int, confirmed: Sequence[Sighting]) -> TraceResult:
        remarks: list[str] = []
        if self._parameters.decisive:
            judgement = partial_judgement(confirmed)  # without verdicts on other modes
        else:
            judgement = judgement_of(self._samples, self._prompt.modes, confirmed)
            remarks += _missing_verdicts(self._samples, self._prompt.taxonomy)
        remarks += _quote_remarks(judgement.findings, self._locator.limited)
        remarks += _form_remarks(self._requests.forms)
        remarks += self._shortened
        remarks += self._problems
        return TraceResult(
            judgement=judgement,
            quotes=QuoteCounts.count(finding.evidence for finding in judgement.findings),
            windows=windows,
            remarks=_first_remarks(remarks),
        )


def _most_of_estimate(overflow: ContextOverflow) -> float:
    """Return the largest estimate of a text that fits into the context of a server.

    A limit that the server names, or that is a common size, is taken as it is. Other counts of
    truncated requests may come from a server that counts fewer tokens.
    """
    limit = overflow.context_limit or 0
    if overflow.truncated_usage is None or is_context_size(limit):
        return limit
    return limit * OVERSHOOT


def _checked_facts(trace: Trace, view: RedactedView) -> tuple[Fact, ...]:
    """Return the findings of the default rules in a trace, redacted."""
    facts = []
    for finding in RulesJudge().judge(trace).findings:
        first, last = (trace.index_of(key) for key in (finding.first or "", finding.last or ""))
        if first is not None and last is not None:
            rationale = view.redacted(view.with_numbers_sent(finding.rationale))
            facts.append(Fact(first, last, finding.mode, rationale))
    return tuple(facts)


def _first_remarks(remarks: Iterable[str]) -> tuple[str, ...]:
    """Return the first remarks, each once and on one line, and the number of further ones."""
    distinct = tuple(dict.fromkeys(one_line(remark, _REMARK_CHARS) for remark in remarks))
    if len(distinct) <= MOST_REMARKS:
        return distinct
    more = len(distinct) - MOST_REMARKS + 1
    return (*distinct[: MOST_REMARKS - 1], f"and {more} remarks more")


def _location(sighting: Sighting) -> str:
    return "the whole run" if sighting.first is None else f"#{sighting.first + 1}"


def _about(window: Window) -> str:
    if window.first == window.last:
        return f"#{window.first + 1}"
    return f"#{window.first + 1} to #{window.last + 1}"


def _quote_remarks(findings: Iterable[Finding], limited: int) -> Iterable[str]:
    """Yield remarks on quotes that were elsewhere, altered or not found."""
    elsewhere = 0
    altered = 0
    missing = 0
    for finding in findings:
        evidence = finding.evidence
        if evidence is not None:
            elsewhere += evidence.named is not None
            altered += evidence.match is Match.ALTERED
            missing += not evidence.placed
    if elsewhere:
        quotes = counted(elsewhere, "quote stands", "quotes stand")
        yield f"{quotes} elsewhere than the model named"
    if altered:
        yield f"{counted(altered, 'quote says', 'quotes say')} something else than the trace"
    if missing:
        yield f"{counted(missing, 'quote was', 'quotes were')} not found in the trace"
    if limited:
        quotes = counted(limited, "quote was", "quotes were")
        yield f"{quotes} looked for in the {MOST_SEARCHED:,} nearest characters only"


def _missing_verdicts(samples: Sequence[list[WindowAnswer]], taxonomy: Taxonomy) -> Iterable[str]:
    """Yield a remark on the modes without a verdict, as a window's answer leaves them out."""
    open_modes = [
        mode.code
        for mode in taxonomy.modes
        if any(verdict_of(sample, mode.slug) is None for sample in samples)
    ]
    if open_modes:
        yield f"not answered everywhere: {', '.join(open_modes)}"


def _form_remarks(forms: Iterable[str]) -> Iterable[str]:
    """Yield a remark for each form of answers but the first choice."""
    for form in sorted(forms):
        if form != "json_schema":
            yield f"the server was asked for answers as {form}"
